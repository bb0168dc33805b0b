#!/usr/bin/python3
"""How long a process is held: as its own clock sees it, and as the tool says.

    bench/stop.py STACKER [--runs N]

The victim (clock_gap.c) has a thread that reads the clock without pause. Tools take turns; medians.
"none" is the gap without any tool in as much time as stacker takes: the noise of the machine.
"""
import argparse
import itertools
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import measure


def stacker(binary, pid, *options):
    done = subprocess.run([binary, "capture", "--pid", str(pid), "--output", "-", "--quiet", *options],
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["capture"]["stopped_ns"]


def quietly(*command):
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def tools(binary, threads, busy):
    """Where many threads compute, to wait for each alone takes long: a thread must be on a processor to stop."""
    few = threads <= (10 if busy else 100)
    yield "none", lambda pid: time.sleep(0.05)
    yield "stacker", lambda pid: stacker(binary, pid)
    yield "stacker --method ptrace", lambda pid: stacker(binary, pid, "--method", "ptrace")
    yield "the same, normal priority", lambda pid: stacker(binary, pid, "--method", "ptrace", "--no-realtime")
    if few or not busy:
        yield "stacker --rolling", lambda pid: stacker(binary, pid, "--rolling")
    if shutil.which("eu-stack") and not (busy and threads > 100):
        yield "eu-stack", lambda pid: quietly("eu-stack", "-p", str(pid))
    if shutil.which("gdb") and few:
        yield "gdb", lambda pid: quietly("gdb", "-p", str(pid), "--batch", "-nx", "-ex", "thread apply all bt")


def measure_one(program, binary, threads, busy, runs):
    gaps, stated, wall = {}, {}, {}
    with measure.Victim(program, threads, "busy" if busy else "blocked") as victim:
        for _ in range(runs):
            for name, tool in tools(binary, threads, busy):
                victim.gap_ns()
                begin = time.monotonic()
                said = tool(victim.pid)
                wall.setdefault(name, []).append(time.monotonic() - begin)
                gaps.setdefault(name, []).append(victim.gap_ns())
                if said is not None:
                    stated.setdefault(name, []).append(said)
    for name in gaps:
        middle = statistics.median(gaps[name])
        said = f"{statistics.median(stated[name]) / 1e6:.3f}" if name in stated else ""
        measure.row(threads, "half busy" if busy else "blocked", name, f"{middle / 1e6:.3f}",
                    f"{middle / 1e3 / (threads + 2):.1f}", said, f"{statistics.median(wall[name]):.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stacker")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--only", help="one row alone: 100, or 100,busy")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        program = measure.victim_build(place)
        measure.head("threads", "state", "tool", "gap ms", "µs a thread", "stated ms", "wall s")
        for threads, busy in itertools.product((1, 10, 100, 1000), (False, True)):
            if options.only and options.only != f"{threads}{',busy' if busy else ''}":
                continue
            measure_one(program, options.stacker, threads, busy, options.runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
