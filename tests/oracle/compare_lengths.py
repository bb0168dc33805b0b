#!/usr/bin/python3
"""Compares the lengths of x86_64 instructions that Stacker finds with those of a disassembler.

    compare_lengths.py LENGTHS FILE...

LENGTHS is the program made of tests/oracle/lengths.c. For every instruction that `objdump -d` shows
of every FILE, its bytes with more bytes behind them must have the same length. Left out: data in
code that objdump calls bad, lone prefixes, the two instructions that it shows as one where a wait
comes before an x87 instruction, and branches of 16 bits, which AMD's processors have and Intel's not.
Prints the numbers compared and different; exits with 1 when any is different.
"""
import re
import subprocess
import sys

SHOWN_MAX = 10
MORE = "90" * 16
LINE = re.compile(r"\s*[0-9a-f]+:\t((?:[0-9a-f]{2} )+)\s*\t?(.*)")
PREFIX = r"(data16|rep|repz|repnz|lock|cs|ds|es|ss|fs|gs|addr32|rex(\.[WRXB]+)?|bnd|notrack)"
LEFT_OUT = re.compile(rf"\(bad\)|^\.byte|^({PREFIX} *)+$|^(call|jmp)w +[0-9a-f]+ ")


def instructions(path):
    """Bytes in hex -> how often they are there."""
    text = subprocess.run(["objdump", "-d", "-w", path], capture_output=True, text=True, check=True).stdout
    counts = {}
    for line in text.splitlines():
        found = LINE.match(line)
        if found and not LEFT_OUT.search(found[2]) and not found[1].startswith("9b d"):
            code = found[1].replace(" ", "")
            counts[code] = counts.get(code, 0) + 1
    return counts


def main():
    program, *paths = sys.argv[1:]
    failed = False
    for path in paths:
        counts = instructions(path)
        lines = "".join(f"{code}{MORE}\n" for code in counts)
        out = subprocess.run([program], input=lines, capture_output=True, text=True, check=True).stdout.split()
        assert len(out) == len(counts)
        different = [(code, n) for code, n in zip(counts, out) if 2 * int(n) != len(code)]
        print(f"{path}: {sum(counts.values())} instructions, {len(counts)} distinct, {len(different)} different")
        for code, n in different[:SHOWN_MAX]:
            print(f"  {code}: {n}")
        failed |= bool(different) or not counts
    return failed


if __name__ == "__main__":
    sys.exit(main())
