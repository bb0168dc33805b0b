#!/usr/bin/python3
"""Compares the rows of Stacker's call frame machine with those of other readers.

    compare_rows.py [--llvm DWARFDUMP] [--lookup] ROWS FILE...

ROWS is the program made of tests/oracle/rows.c. For every FDE of every FILE, the rows that it
prints are compared with those of `readelf --debug-dump=frames-interp`, or with --llvm those of
`llvm-dwarfdump --eh-frame` (of LLVM 16 or later: 14 forgets the CFA on restore_state). With --lookup each row is found by its address, as unwinding does it,
and not by running through the FDE. Prints the numbers compared and different; exits with 1 when
any is different.

A row is (address, CFA, {register: rule}), in the words of rows.c. Registers that a walk does not
follow (from 40 up: vectors of aarch64) are left out, undefined and unmentioned ones alike.
"""
import argparse
import os
import re
import subprocess
import sys

REGISTERS_FOLLOWED = 40
SHOWN_MAX = 10

X86_64 = dict(zip("rax rdx rcx rbx rsi rdi rbp rsp".split(), range(8)))
X86_64.update({f"r{n}": n for n in range(8, 16)}, rip=16)
X86_64.update({f"xmm{n}": 17 + n for n in range(32)})
AARCH64 = {f"x{n}": n for n in range(31)}
AARCH64.update({f"w{n}": n for n in range(31)}, sp=31, wsp=31, lr=30, fp=29, pc=32)
AARCH64.update({f"{kind}{n}": 64 + n for n in range(32) for kind in "vbdq"})


class Fde:
    def __init__(self, start, end):
        self.start, self.end, self.rows = start, end, {}

    def add(self, address, cfa, rules):
        # Of several rows at one address, the last holds.
        self.rows[address] = (cfa, {r: v for r, v in rules.items() if r < REGISTERS_FOLLOWED})


def stacker_fdes(rows, path, lookup):
    """{source: [Fde]} as the driver prints them."""
    command = [rows] + (["-l"] if lookup else []) + [path]
    sections, fde, problems = {}, None, []
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        word = line.split()
        if word[0] == "fde":
            fde = Fde(int(word[2], 16), int(word[3], 16))
            sections.setdefault(int(word[1]), []).append(fde)
        elif word[0] in ("bad", "lost"):
            problems.append(f"{fde.start:#x}: {line}" if fde else line)
        else:
            rules = dict(rule.split("=") for rule in word[2:])
            fde.add(int(word[0], 16), word[1], {int(r): v for r, v in rules.items()})
    return list(sections.values()), problems


def register_names(path):
    with open(path, "rb") as file:
        machine = file.read(20)[18]
    return {62: X86_64, 183: AARCH64}[machine]


def readelf_cfa(text, names):
    match = re.fullmatch(r"([a-z0-9]+)([+-]\d+)", text)
    return f"{names[match[1]]}{match[2]}" if match else text


class ReadelfParser:
    """One dump; CIEs are kept for the FDEs that say nothing beyond them."""

    def __init__(self, names):
        self.names, self.sections = names, []
        self.cies, self.cie, self.fde, self.columns = {}, None, None, None

    def line(self, line):
        if line.startswith("Contents of the"):
            self.sections.append([])
            self.cies = {}
        elif match := re.match(r"([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ CIE .* ra=(\d+)", line):
            self.cie = self.cies[int(match[1], 16)] = {"ra": int(match[2]), "row": None}
            self.fde = None
        elif match := re.match(r".* FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+)", line):
            self.begin_fde(int(match[1], 16), int(match[2], 16), int(match[3], 16))
        elif line.startswith("   LOC"):
            self.columns = line.split()[2:]
        elif re.match(r"[0-9a-f]{16} ", line) and self.columns is not None:
            # A register in another one is shown by number and name: "r1 (rdx)".
            self.row(re.sub(r"(r\d+) \(\w+\)", r"\1", line).split())

    def begin_fde(self, cie, start, end):
        self.cie = self.cies[cie]
        self.fde = Fde(start, end)
        self.columns = None
        self.sections[-1].append(self.fde)
        if self.cie["row"]:
            self.fde.add(start, *self.cie["row"])

    def row(self, words):
        names = dict(self.names, ra=self.cie["ra"])
        rules = {names[c]: w for c, w in zip(self.columns, words[2:])
                 if w != "u" and c in names}
        cfa = readelf_cfa(words[1], names)
        if self.fde:
            self.fde.add(int(words[0], 16), cfa, rules)
        else:
            self.cie["row"] = (cfa, rules)


def readelf_fdes(path):
    parser = ReadelfParser(register_names(path))
    for line in subprocess.run(["readelf", "-W", "--debug-dump=frames-interp", path], check=False,
                               capture_output=True, text=True).stdout.splitlines():
        parser.line(line)
    return [section for section in parser.sections if section]


def llvm_rule(text, names):
    if match := re.fullmatch(r"\[CFA([+-]\d+)?\]", text):
        return f"c{match[1] or '+0'}"
    if match := re.fullmatch(r"CFA([+-]\d+)?", text):
        return f"v{match[1] or '+0'}"
    if text in ("same", "undefined", "unspecified"):
        return text[0]
    if text.lower() in names:
        return f"r{names[text.lower()]}"
    return "exp" if text.startswith("[") else "vexp"


def llvm_row(line, names):
    match = re.match(r"  (0x[0-9a-f]+): CFA=([^:]+?)(?:: (.*))?$", line)
    cfa = re.fullmatch(r"([A-Z0-9]+)([+-]\d+)?", match[2])
    cfa = f"{names[cfa[1].lower()]}{cfa[2] or '+0'}" if cfa else "exp"
    rules = {}
    for rule in re.split(r", (?=\w+=)", match[3] or ""):
        name, _, text = rule.partition("=")
        if name.lower() in names:
            rules[names[name.lower()]] = llvm_rule(text, names)
    return int(match[1], 16), cfa, {r: v for r, v in rules.items() if v != "u"}


def llvm_fdes(dwarfdump, path):
    # It begins with .debug_frame, and Stacker with .eh_frame.
    names, sections, fde = register_names(path), {".eh_frame": [], ".debug_frame": []}, None
    for line in subprocess.run([dwarfdump, "--eh-frame", path], check=True,
                               capture_output=True, text=True).stdout.splitlines():
        if line.endswith(" contents:"):
            section = sections[line.split()[0]]
        elif match := re.search(r" FDE cie=.* pc=([0-9a-f]+)\.\.\.([0-9a-f]+)", line):
            fde = Fde(int(match[1], 16), int(match[2], 16))
            section.append(fde)
        elif " CIE" in line:
            fde = None
        elif fde and re.match(r"  0x[0-9a-f]+: CFA=", line):
            fde.add(*llvm_row(line, names))
    return [section for section in sections.values() if section]


def compare(mine, other):
    """Rows compared, and the differences in words."""
    count, differences = 0, []
    if len(mine) != len(other):
        differences.append(f"{len(mine)} sections, not {len(other)}")
    for a, b in zip(mine, other):
        if len(a) != len(b):
            differences.append(f"{len(a)} FDEs, not {len(b)}")
        for x, y in zip(a, b):
            if (x.start, x.end) != (y.start, y.end):
                differences.append(f"FDE {x.start:#x}..{x.end:#x}, not {y.start:#x}..{y.end:#x}")
                continue
            # Rows at or after the end hold nowhere; a function of no size has none.
            addresses = {p for p in x.rows.keys() | y.rows.keys() if x.start <= p < x.end}
            count += len(addresses)
            differences += [f"{p:#x}: {x.rows.get(p)}, not {y.rows.get(p)}"
                            for p in sorted(addresses) if x.rows.get(p) != y.rows.get(p)]
    return count, differences


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--llvm", metavar="DWARFDUMP")
    parser.add_argument("--lookup", action="store_true")
    parser.add_argument("rows")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    total, different = 0, 0
    for path in options.files:
        other = llvm_fdes(options.llvm, path) if options.llvm else readelf_fdes(path)
        mine, differences = stacker_fdes(options.rows, path, options.lookup)
        count, more = compare(mine, other)
        differences += more
        total += count
        different += len(differences)
        fdes = sum(len(section) for section in mine)
        print(f"{os.path.basename(path)}: {fdes} functions, {count} rows, "
              f"{len(differences)} different")
        for line in differences[:SHOWN_MAX]:
            print(f"  {line}")
    print(f"total: {total} rows, {different} different")
    return different > 0


if __name__ == "__main__":
    sys.exit(main())
