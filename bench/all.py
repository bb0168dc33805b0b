#!/usr/bin/python3
"""All measurements, one after the other, into one file of tables: bench/all.py OUT STACKER BUILD [--runs N] [--only NAME,...]"""
import argparse
import datetime
import pathlib
import shutil
import subprocess
import sys

import measure

HERE = pathlib.Path(__file__).resolve().parent
PEERS = ("eu-stack", "gdb", "llvm-symbolizer-19", "addr2line", "eu-addr2line")


def sections(stacker, build, runs):
    """Name, title, what is measured, command."""
    python = sys.executable
    yield ("stop", "The stop", "Longest gap that a thread of the victim sees which reads the clock without pause, and what the tool "
           "states. \"none\": no tool, the noise of the machine. Threads wait 30 calls deep; half busy: every second one computes.",
           [python, HERE / "stop.py", stacker, "--runs", runs])
    yield ("methods", "Capture without a stop", "Methods in turn on one victim. \"another process\": the gap that is seen while Stacker "
           "captures a process that is not the victim.", [python, HERE / "methods.py", stacker, "--runs", runs])
    yield ("load", "Under load", "Every second thread computes; default method. Median / 18th of 20 runs.",
           [python, HERE / "load.py", stacker])
    yield ("trace", "A whole trace", "Threads that wait in about 33 frames.", [python, HERE / "trace.py", stacker, "--runs", runs])
    yield ("start", "The smallest runs", "One thread of `sleep`, by hyperfine; file caches are warm.",
           [python, HERE / "start.py", stacker, "--runs", runs])
    yield ("symbols", "Symbolizing", "Random function addresses, full inline chains; the cache is off but where it says so.",
           [python, HERE / "symbolize.py", stacker, "--runs", runs, "--place", build / "bench", "--json", build / "bench/symbolize.json"])
    yield ("unwind", "Unwinding alone", "10,000 copies of one real stack, in memory.", [build / "bench/unwind_bench", 10000, 5])
    yield ("real", "Real programs", "gdb and eu-stack are asked for what onephase tells: lines and inlined functions.",
           [python, HERE / "real.py", stacker, "--runs", runs])
    yield ("capture", "The capture file", "10,000 threads of 33 frames.", [build / "bench/capture_bench"])
    yield ("instructions", "Instructions", "By valgrind: a figure that a busy machine does not change.",
           [python, HERE / "instructions.py", build / "bench"])


def versions():
    return "; ".join(measure.version(peer) for peer in PEERS if shutil.which(peer))


def section(title, what, command):
    """Runs the command, shows and returns its output."""
    lines = [f"## {title}", "", what, ""]
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        print(line, end="", flush=True)
        lines.append(line.rstrip("\n"))
    if process.wait() != 0:
        lines += ["", f"(ended early, status {process.returncode})"]
    if not any(line.startswith("|") for line in lines):
        lines[4:] = ["```", *lines[4:], "```"]
    return lines + [""]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("stacker", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--runs", default="5")
    parser.add_argument("--only", help="stop, methods, load, trace, start, symbols, unwind, real, capture, instructions")
    options = parser.parse_args()
    lines = ["# Results of `make bench`", "", f"{datetime.date.today()}; {measure.machine()}; {measure.version(options.stacker)}.",
             f"Beside: {versions()}.", "", f"Medians of {options.runs} runs, tools in turn. What counts is the ratio.", ""]
    for name, title, what, command in sections(options.stacker.resolve(), options.build.resolve(), options.runs):
        if options.only and name not in options.only.split(","):
            continue
        print(f"\n{title}", flush=True)
        lines += section(title, what, command)
        options.out.write_text("\n".join(lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
