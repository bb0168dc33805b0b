#!/usr/bin/python3
"""A whole trace of N blocked threads: wall and CPU time, peak memory.

    bench/trace.py STACKER [--runs N] [--threads 1,100,...]

Tools take turns; medians. gdb is left out above 1,000 threads: it needs minutes.
"""
import argparse
import math
import pathlib
import shutil
import sys
import tempfile

import measure


def tools(stacker, threads, pid, place):
    yield "stacker onephase", [stacker, "onephase", "-q", "-p", pid]
    yield "stacker capture", [stacker, "capture", "-q", "-p", pid, "-o", place / "capture.json"]
    yield "stacker symbolize", [stacker, "symbolize", "-q", "-i", place / "capture.json"]
    if shutil.which("eu-stack"):
        yield "eu-stack", ["eu-stack", "-p", pid]
    if shutil.which("gdb") and threads <= 1000:
        yield "gdb", ["gdb", "-p", pid, "--batch", "-nx", "-ex", "thread apply all bt"]


def measure_one(stacker, program, threads, runs, place):
    results = {}
    with measure.Victim(program, threads, "idle") as victim:
        for _ in range(runs):
            for name, command in tools(stacker, threads, victim.pid, place):
                run = measure.Run(command)
                if run.ok():
                    results.setdefault(name, []).append(run)
    for name, done in results.items():
        measure.row(threads, name, *(f"{measure.median(done, what):.3f}" for what in ("wall", "cpu")),
                    f"{measure.median(done, 'memory'):.0f}")
    size = (place / "capture.json").stat().st_size
    print(f"<!-- capture file: {size / 1e6:.2f} MB -->", flush=True)
    return measure.median(results["stacker onephase"], "wall")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stacker")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", default="1,100,1000,3000,10000")
    options = parser.parse_args()
    counts = [int(count) for count in options.threads.split(",")]
    walls = []
    with tempfile.TemporaryDirectory() as place:
        program = measure.victim_build(place)
        measure.head("threads", "tool", "wall s", "CPU s", "MB")
        for threads in counts:
            walls.append(measure_one(options.stacker, program, threads, options.runs, pathlib.Path(place)))
    if len(counts) > 1:
        growth = math.log(walls[-1] / walls[-2]) / math.log(counts[-1] / counts[-2])
        print(f"\nFrom {counts[-2]} to {counts[-1]} threads the wall time of onephase grows with exponent {growth:.2f}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
