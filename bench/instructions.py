#!/usr/bin/python3
"""Instructions that the hot kernels take, by valgrind: a figure that a busy machine does not change.

    bench/instructions.py DIRECTORY [FILE]

DIRECTORY holds unwind_bench and lookup_bench; FILE is whose functions are looked up, unwind_bench
itself if none is given.

Each is the difference of a run with more and one with less work, so that starting up does not count.
"""
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import measure


def instructions(command, text=None):
    """Of one run, all threads."""
    with tempfile.NamedTemporaryFile() as out:
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}", *map(str, command)],
                              input=text, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    return int(re.search(r"Collected *: *(\d+)", done.stderr).group(1))


def functions_of(path):
    out = subprocess.run(["nm", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    return sorted({int(line.split()[0], 16) for line in out.splitlines() if line.split()[1] in "tT"})


def row(what, more, less, units, unit):
    measure.row(what, f"{(more - less) / units:,.0f}", unit)


def main():
    place = pathlib.Path(sys.argv[1])
    unwind, lookup = place / "unwind_bench", place / "lookup_bench"
    program = sys.argv[2] if len(sys.argv) > 2 else unwind
    threads, frames = 100, 35
    measure.head("kernel", "instructions", "for each")
    row("walk, all plans cached", instructions([unwind, threads, 6]), instructions([unwind, threads, 2]),
        frames * threads * 4, "frame")
    functions = functions_of(program)
    text = [f"{address + 1:#x}\n" for address in random.Random(1).sample(functions, min(400, len(functions)))]
    few, many = instructions([lookup, program], text[0]), instructions([lookup, program], "".join(text))
    row(f"DIE walk, line program, names ({pathlib.Path(program).name}): the first address", few, 0, 1, "run")
    row("the same: all others at once", many, few, len(text) - 1, "address")
    return 0


if __name__ == "__main__":
    sys.exit(main())
