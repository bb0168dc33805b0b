#!/usr/bin/python3
"""How long the smallest runs take: stacker --version, and a trace of one thread of `sleep`: bench/start.py STACKER [--runs N]

By hyperfine, without a shell; file caches are warm, the cache of answers is on where that is said. "no debug
files": as on a machine where none is installed (an empty /usr/lib/debug, in a mount namespace that both share).
"""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import measure

RUNS_EACH = 20
SLEEP = ["sleep", "600"]
HIDDEN_SLEEP = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /usr/lib/debug && echo ready && exec sleep 600']


@contextlib.contextmanager
def sleeping(command):
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    if command is HIDDEN_SLEEP:
        process.stdout.readline()
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def cases(stacker, pid, hidden, cache):
    """Name, what the command is run by, command, environment."""
    there = ["nsenter", "-t", str(hidden), "-m"]
    trace = [stacker, "onephase", "-q", "-p", pid]
    yield "stacker --version", [], [stacker, "--version"], {}
    yield "stacker, no debug files", there, [stacker, "onephase", "-q", "--no-cache", "-p", hidden], {}
    yield "stacker, libc's debug file", [], [*trace, "--no-cache"], {}
    yield "stacker, libc's debug file, second run", [], trace, {"XDG_CACHE_HOME": cache}
    if shutil.which("eu-stack"):
        yield "eu-stack, no debug files", there, ["eu-stack", "-p", hidden], {}
        yield "eu-stack -i -s, libc's debug file", [], ["eu-stack", "-i", "-s", "-p", pid], {}


def measured(prefix, command, environment, runs, place):
    out = pathlib.Path(place) / "hyperfine.json"
    line = " ".join(str(word) for word in command)
    subprocess.run([*prefix, "hyperfine", "-N", "--ignore-failure", "--warmup", "3", "--runs", str(runs), "--export-json", out, line],
                   env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return json.loads(out.read_text(encoding="utf-8"))["results"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stacker")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    if not shutil.which("hyperfine"):
        print("skipped: hyperfine is not installed")
        return 0
    measure.head("what", "wall ms, median", "least", "CPU ms")
    with sleeping(SLEEP) as pid, sleeping(HIDDEN_SLEEP) as hidden, tempfile.TemporaryDirectory() as place:
        for name, prefix, command, environment in cases(pathlib.Path(options.stacker).resolve(), pid, hidden, place):
            result = measured(prefix, command, environment, options.runs * RUNS_EACH, place)
            cpu = result["user"] + result["system"]
            measure.row(name, *(f"{1e3 * value:.2f}" for value in (result["median"], result["min"], cpu)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
