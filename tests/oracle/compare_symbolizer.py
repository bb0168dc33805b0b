#!/usr/bin/python3
"""Compares Stacker's symbols with those of llvm-symbolizer, or of binutils' addr2line, at random addresses.

For each FILE: N addresses inside functions of its symbol table are asked of both, and each answer
is put into one class:

  equal      the same lines at all levels, and the same names
  names      the same lines at all levels; a name differs
  chain      the same innermost line; the levels around it differ
  line       the innermost line differs

What is not a difference: a file without a line (llvm-symbolizer takes one from the symbol table),
and, for the outermost function, two names of one symbol: aliases, versions (name@VERSION), and
parts that the compiler split off (name.cold, name.part.0), which only the symbol table tells apart.

Exit status 0 when the goals are met for every file, else 1.
"""

import argparse
import collections
import json
import os
import random
import re
import subprocess
import sys

Level = collections.namedtuple("Level", "name file line")


def functions_of(path):
    """(address, size, name) of all sized functions that have a section."""
    text = subprocess.run(["readelf", "-sW", path], capture_output=True, text=True,
                          check=True).stdout
    found = set()
    for line in text.splitlines():
        part = line.split()
        if len(part) >= 8 and part[3] in ("FUNC", "IFUNC") and part[6].isdigit():
            size = int(part[2], 0)
            if size:
                found.add((int(part[1], 16), size, part[7]))
    return sorted(found)


def addresses_of(functions, count, seed):
    rng = random.Random(seed)
    picked = (rng.choice(functions) for _ in range(count))
    return sorted({start + rng.randrange(size) for start, size, _ in picked})


def ask(command, addresses):
    """What the command prints for the addresses on its stdin."""
    text = "".join(f"{address:#x}\n" for address in addresses)
    return subprocess.run(command, input=text, capture_output=True, text=True,
                          check=True).stdout


# binutils joins a relative compilation directory to names that begin with it already.
JOINED_TWICE = re.compile(r"^(\./[^/]+)/\1(?=/)")


def is_binutils(tool):
    return os.path.basename(tool).endswith("addr2line")


def drop_files(ours, theirs):
    """binutils 2.40 takes the unit's own file for files 0 and 1 of DWARF 5: says how often files are the
    same, and leaves the lines to be compared."""
    files = [[level.file for level in answers[address]] for address in ours for answers in (ours, theirs)]
    same = sum(1 for one, other in zip(files[::2], files[1::2]) if one == other)
    print(f"files {100 * same / len(ours):.2f} %")
    for answers in (ours, theirs):
        for address, levels in answers.items():
            answers[address] = [level._replace(file=None) for level in levels]


def ask_binutils(tool, path, addresses):
    answers = ask_addr2line([tool], path, addresses)
    return {address: [level._replace(file=level.file and JOINED_TWICE.sub(r"\1", level.file)) for level in levels]
            for address, levels in answers.items()}


def ask_oracle(tool, path, addresses):
    if is_binutils(tool):
        return ask_binutils(tool, path, addresses)
    text = ask([tool, "--no-demangle", "--no-debuginfod", "--output-style=JSON", "-e", path],
               addresses)
    answers = {}
    for line in text.splitlines():
        answer = json.loads(line)
        answers[int(answer["Address"], 16)] = [
            Level(level["FunctionName"] or None, level["FileName"] or None, level["Line"])
            for level in answer.get("Symbol", [])]
    return answers


def ask_addr2line(command, path, addresses):
    lines = ask([*command, "-a", "-f", "-i", "-e", path], addresses).splitlines()
    answers, levels, name = {}, [], None
    for line in lines:
        if re.fullmatch(r"0x[0-9a-f]+", line):
            levels = answers[int(line, 16)] = []
            name = None
        elif name is None:
            name = line
        else:
            file, _, number = line.split(" (discriminator")[0].rpartition(":")
            levels.append(Level(None if name == "??" else name, None if file == "??" else file,
                                int(number) if number.isdigit() else 0))
            name = None
    return answers


def ask_stacker(program, path, addresses):
    return ask_addr2line([program, "addr2line", "--no-cache"], path, addresses)


def place(level):
    """File and line; without a line there is no place."""
    return (level.file, level.line) if level.line else None


class Names:
    """Which names of the symbol table mean the same function."""

    def __init__(self, functions):
        self.at = collections.defaultdict(set)
        for start, _, name in functions:
            self.at[name].add(start)

    def same(self, ours, theirs):
        if ours == theirs:
            return True
        if not ours or not theirs:
            return False
        if re.split(r"[.@]", theirs)[0] == re.split(r"[.@]", ours)[0]:
            return True
        # A function that only its unit can name (a lambda, a local class) has no linkage name in
        # its entry; the symbol table's mangled name contains the plain one.
        if theirs.startswith("_Z") and f"{len(ours)}{ours}" in theirs:
            return True
        if self.at[ours] & self.at[theirs.split("@")[0]] or self.at[ours] & self.at[theirs]:
            return True
        # A constructor or destructor for whole objects and the one for bases are one function.
        kind = re.compile(r"([CD])[1-5](?=E|I)")
        return kind.sub(r"\1", ours) == kind.sub(r"\1", theirs.split(".")[0])


def classify(ours, theirs, names):
    ours = ours or [Level(None, None, 0)]
    theirs = theirs or [Level(None, None, 0)]
    if place(ours[0]) != place(theirs[0]):
        return "line"
    if [place(level) for level in ours] != [place(level) for level in theirs]:
        return "chain"
    if [level.name for level in ours[:-1]] != [level.name for level in theirs[:-1]]:
        return "names"
    if not names.same(ours[-1].name, theirs[-1].name):
        return "names"
    return "equal"


def show(address, ours, theirs):
    print(f"    {address:#x}")
    for who, levels in (("stacker", ours), ("oracle", theirs)):
        for level in levels or []:
            print(f"      {who:8} {level.name} {level.file}:{level.line}")


def compare(path, options):
    """Prints one row (and samples of what differs); True when the goals are met."""
    functions = functions_of(path)
    if not functions:
        print(f"{path}: no functions in its symbol table")
        return False
    names = Names(functions)
    addresses = addresses_of(functions, options.count, options.seed)
    ours = ask_stacker(options.stacker, path, addresses)
    theirs = ask_oracle(options.oracle, options.oracle_file or path, addresses)
    classes = collections.defaultdict(list)
    if is_binutils(options.oracle):
        drop_files(ours, theirs)
    for address in addresses:
        kind = classify(ours.get(address), theirs.get(address), names)
        classes[kind].append(address)
    count = len(addresses)
    known = sum(1 for levels in theirs.values() if levels and place(levels[0]))
    line = 100 * (1 - len(classes["line"]) / count)
    chain = 100 * (1 - (len(classes["line"]) + len(classes["chain"])) / count)
    name = 100 * len(classes["equal"]) / count
    print(f"{options.label or path}: {count} addresses ({known} with a line), "
          f"line {line:.2f} %, chain {chain:.2f} %, names {name:.2f} %")
    for kind in ("line", "chain", "names"):
        for address in classes[kind][:options.samples]:
            print(f"  {kind}:")
            show(address, ours.get(address), theirs.get(address))
    return line >= options.line_goal and chain >= options.chain_goal


def options_parser():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stacker", default="dist/stacker-amd64")
    parser.add_argument("--oracle", default="llvm-symbolizer")
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--samples", type=int, default=2, help="of each class of difference")
    parser.add_argument("--line-goal", type=float, default=99.9)
    parser.add_argument("--chain-goal", type=float, default=99.5)
    parser.set_defaults(label=None, oracle_file=None)
    return parser


def oracle_version(tool):
    text = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout
    return next((line.strip() for line in text.splitlines() if "version" in line), tool)


def main():
    parser = options_parser()
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    print(f"oracle: {oracle_version(options.oracle)}")
    met = [compare(path, options) for path in options.files]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
