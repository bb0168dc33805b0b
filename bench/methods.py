#!/usr/bin/python3
"""Capture without a stop beside ptrace: what the target feels of it, and what it costs.

    bench/methods.py STACKER [--runs N] [--only THREADS]

The victim (clock_gap.c) has THREADS threads that wait 30 calls deep, and one that reads the clock
without pause and so feels every gap; "idle" has not that one. Methods take turns; medians. The row
"another process" is the noise: the gap while Stacker captures a process that is not the victim.
"""
import argparse
import json
import statistics
import sys
import tempfile

import measure

WAYS = {
    "another process": None,
    "bpf --never-stop": ("--method", "bpf", "--never-stop"),
    "bpf": ("--method", "bpf"),
    "ptrace": ("--method", "ptrace"),
}


def captured(binary, pid, options):
    """The facts of one capture, and what it cost."""
    with tempfile.TemporaryFile() as out:
        run = measure.Run([binary, "capture", "--pid", pid, "--output", "-", "--quiet", *options], stdout=out)
        assert run.ok(), run.status
        out.seek(0)
        return json.load(out)["capture"], run


def measure_one(program, binary, threads, mode, runs):
    rows = {way: [] for way in WAYS}
    with measure.Victim(program, threads, mode) as victim, measure.Victim(program, threads, "idle") as other:
        for _ in range(runs):
            for way, options in WAYS.items():
                if options is None and mode == "idle":
                    continue
                if mode != "idle":
                    victim.gap_ns()
                facts, run = captured(binary, (victim if options else other).pid, options or WAYS["bpf"])
                rows[way].append((facts, run, victim.gap_ns() if mode != "idle" else 0))
    for way, found in rows.items():
        if not found:
            continue
        facts, runs_of, gaps = zip(*found)

        def middle(name):
            return statistics.median(f[name] for f in facts)

        own = way != "another process"
        measure.row(threads, mode, way, f"{middle('threads_untouched'):.0f}" if own else "",
                    f"{middle('threads_stopped'):.0f}" if own else "",
                    f"{middle('stopped_ns') / 1e6:.3f}" if own else "",
                    f"{statistics.median(gaps) / 1e6:.1f}" if mode != "idle" else "",
                    f"{measure.median(runs_of, 'wall'):.3f}", f"{measure.median(runs_of, 'cpu'):.3f}",
                    f"{sum(f['one_instant'] for f in facts)}/{len(facts)}" if own else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stacker")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--only", type=int, help="rows of so many threads alone")
    options = parser.parse_args()
    print(measure.machine())
    with tempfile.TemporaryDirectory() as place:
        program = measure.victim_build(place)
        measure.head("threads", "victim", "method", "read without a stop", "stopped", "stopped ms", "gap ms", "wall s",
                     "CPU s", "one instant")
        for threads in (10, 100, 1000, 10000):
            for mode in ("idle", "blocked"):
                if options.only in (None, threads):
                    measure_one(program, options.stacker, threads, mode, options.runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
