#!/usr/bin/python3
"""Capture on the default path while half of the threads compute: what is stated, what the victim feels, when the answer is there.

    bench/load.py STACKER [--runs N]

Median and, after the stroke, the run of which nine of ten are no longer. This program runs under SCHED_FIFO where it may, or
it would measure its own waiting; Stacker begins at normal priority.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

import measure


def plain():
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def both(values):
    return f"{statistics.median(values):.3f} / {sorted(values)[math.ceil(len(values) * 0.9) - 1]:.3f}"


def captured(binary, pid):
    """The facts of one capture, and the seconds until it was there."""
    with tempfile.TemporaryFile() as out:
        begin = time.monotonic()
        subprocess.run([binary, "capture", "--pid", str(pid), "--output", "-", "--quiet"], stdout=out, check=True, preexec_fn=plain)
        wall = time.monotonic() - begin
        out.seek(0)
        return json.load(out)["capture"], wall


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stacker")
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        program = measure.victim_build(place)
        measure.head("threads", "stated stop ms", "capture ms", "gap ms", "answer s", "threads stopped")
        for threads in (10, 100, 1000):
            runs, gaps = [], []
            with measure.Victim(program, threads, "busy") as victim:
                try:
                    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))
                except PermissionError:
                    pass
                for _ in range(options.runs):
                    victim.gap_ns()
                    runs.append(captured(options.stacker, victim.pid))
                    gaps.append(victim.gap_ns() / 1e6)
            plain()
            measure.row(threads, both([f["stopped_ns"] / 1e6 for f, _ in runs]), both([f["capture_ns"] / 1e6 for f, _ in runs]),
                        both(gaps), both([wall for _, wall in runs]), max(f["threads_stopped"] for f, _ in runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
