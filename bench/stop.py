#!/usr/bin/python3
"""How long a process is held: as its own clock sees it, and as the tool says.

    bench/stop.py STACKER [--runs N]

The victim (clock_gap.c) has a thread that reads the clock without pause. Tools take turns; medians.
"none" is the gap without any tool in as much time as stacker takes: the noise of the machine.
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
DEPTH = 30


class Victim:
    def __init__(self, program, threads, busy):
        self.process = subprocess.Popen([program, str(threads), str(DEPTH), "busy" if busy else "blocked"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def gap_ns(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def end(self):
        self.process.kill()
        self.process.wait()


def stacker(binary, pid, *options):
    done = subprocess.run([binary, "onephase", "--pid", str(pid), "--format", "json", "--quiet", *options],
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["capture"]["stopped_ns"]


def quietly(*command):
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def tools(binary, threads):
    yield "none", lambda pid: time.sleep(0.05)
    yield "stacker", lambda pid: stacker(binary, pid)
    yield "stacker, normal priority", lambda pid: stacker(binary, pid, "--no-realtime")
    yield "stacker --rolling", lambda pid: stacker(binary, pid, "--rolling")
    if shutil.which("eu-stack"):
        yield "eu-stack", lambda pid: quietly("eu-stack", "-p", str(pid))
    if shutil.which("gdb") and threads <= 100:
        yield "gdb", lambda pid: quietly("gdb", "-p", str(pid), "--batch", "-nx", "-ex", "thread apply all bt")


def measure(program, binary, threads, busy, runs):
    victim = Victim(program, threads, busy)
    gaps, stated, wall = {}, {}, {}
    try:
        for _ in range(runs):
            for name, tool in tools(binary, threads):
                victim.gap_ns()
                begin = time.monotonic()
                said = tool(victim.process.pid)
                wall.setdefault(name, []).append(time.monotonic() - begin)
                gaps.setdefault(name, []).append(victim.gap_ns())
                if said is not None:
                    stated.setdefault(name, []).append(said)
    finally:
        victim.end()
    for name in gaps:
        middle = statistics.median(gaps[name])
        said = f"{statistics.median(stated[name]) / 1e6:10.3f}" if name in stated else " " * 10
        print(f"| {threads:5} | {'half busy' if busy else 'blocked':9} | {name:24} | {middle / 1e6:10.3f} | "
              f"{middle / 1e3 / (threads + 2):8.1f} | {said} | {statistics.median(wall[name]):7.3f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stacker")
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        program = pathlib.Path(place) / "clock_gap"
        subprocess.run(["cc", "-O2", "-pthread", "-o", program, HERE / "clock_gap.c"], check=True)
        print("| threads | state | tool | gap ms | µs a thread | stated ms | wall s |\n|---|---|---|---|---|---|---|")
        for threads, busy in ((1, False), (10, False), (100, False), (1000, False), (10, True), (100, True)):
            measure(program, options.stacker, threads, busy, options.runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
