#!/usr/bin/python3
"""Stacks of real programs at random moments, beside eu-stack's and gdb's.

    compare_live.py STACKER [--samples N] [--gdb-every K] [--seed S] [--only NAME,NAME...]

Each program computes; at a random moment it gets SIGSTOP, so that all tracers see the same instant;
then it runs on. Every thread's stack is compared function by function: the same program counters, and
at each the same name (gdb: inlined functions too). Prints for each program the samples, the stacks, how
many end at the outermost frame, and how many are equal, and one example of each kind of difference.
Exits with 1 when stacks are incomplete in more than one of a thousand, or when a difference is not
one of the explained kinds.
"""
import argparse
import collections
import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import live_programs  # noqa: E402
import oracle  # noqa: E402
import program  # noqa: E402

# Theirs is the beginning of ours, which goes on to the outermost frame: they gave up. Or theirs reads
# on above the dynamic linker's first function, where the program's arguments are.
EXPLAINED = {"equal", "theirs ends early", "theirs goes on where there is no code"}
SHELLS = {"dash", "bash", "sh"}
# What has used so much processor time (of 10 ms) is at its work; looked for at most so long.
WORK_TICKS, WORK_S = 10, 5


# --- The programs ---

def children(pid):
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/children", encoding="ascii") as file:
            found += [int(child) for child in file.read().split()]
    return found


def stat_fields(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rsplit(")", 1)[1].split()


def busiest(pid):
    """The process below pid that computes: shells wait for their children, and compilers for theirs."""
    best, best_time, queue = pid, -1, [pid]
    while queue:
        at = queue.pop()
        with contextlib.suppress(OSError):
            below = children(at)
            queue += below
            fields = stat_fields(at)
            spent = int(fields[11]) + int(fields[12])
            if fields[0] in "RS" and (not below or at == pid) and spent >= best_time and \
                    os.path.basename(os.readlink(f"/proc/{at}/exe")) not in SHELLS:
                best, best_time = at, spent
    return best


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        deadline = time.monotonic() + 5
        while stat_fields(pid)[0] != "T" and time.monotonic() < deadline:
            time.sleep(0.0005)
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def running(command):
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)


# --- Their stacks: {tid: [(pc, function, inlined)...]} ---

def stacker_threads(binary, pid):
    done = program.run("onephase", "--pid", pid, "--format", "json", "--quiet", "--no-maps", "--no-registers",
                       binary=binary)
    return json.loads(done.out)["threads"] if done.status in (program.COMPLETE, program.PARTIAL) else []


def frames_of(thread):
    return [(int(f["pc"], 16), f["function"], f["inlined"]) for f in thread["frames"]]


def eu_stacks(pid):
    out = subprocess.run(["eu-stack", "-n", "0", "-p", str(pid)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         text=True, timeout=oracle.ORACLE_S, check=False).stdout
    stacks, at = {}, None
    for line in out.splitlines():
        if line.startswith("TID"):
            at = stacks.setdefault(int(line.split()[1].rstrip(":")), [])
        elif at is not None and line.startswith("#"):
            words = line.split(None, 3)
            name = line.split(words[1], 1)[1].strip().removeprefix("- 1").strip()
            at.append((int(words[1], 16), name or None, False))
    return stacks


def gdb_stacks(pid):
    return {tid: [(f["pc"], f["function"], f["inlined"]) for f in frames] for tid, frames in oracle.gdb(pid).items()}


# --- Comparing ---

def real(frames):
    return [pc for pc, _, inlined in frames if not inlined]


def kind_of_walk(ours, theirs, end):
    """A word for how two lists of program counters differ."""
    if ours == theirs:
        return "equal"
    if theirs == ours[:len(theirs)]:
        return "theirs ends early"
    if ours == theirs[:len(ours)]:
        return f"ours ends early ({end})"
    same = next(i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b)
    return f"differs below frame {'n' if same else 0}"


def kind(thread, ours, theirs):
    beyond = theirs[len(ours):]
    if beyond and thread["end"] == "outermost frame" and ours[-1][1] == "_start" and not any(f[1] for f in beyond):
        return "theirs goes on where there is no code"
    walk = kind_of_walk(real(ours), real(theirs), thread["end"])
    if walk != "equal":
        return walk
    if len(ours) != len(theirs):
        return "inlined functions differ"
    rust = any((f["file"] or "").endswith(".rs") for f in thread["frames"])
    modules = {int(f["pc"], 16): f["module"] for f in thread["frames"]}
    for (pc, name, inlined), (_, their_name, their_inlined) in zip(ours, theirs):
        if inlined != their_inlined:
            return "inlined functions differ"
        if not oracle.same_name(name, their_name and oracle.plain(their_name), modules[pc], rust) and \
                not oracle.same_name(name, their_name, modules[pc], rust):
            return f"names differ: {name} / {their_name}"
    return "equal"


def shown(thread, theirs):
    rows = [f"  {pc:#x} {function}{' [inlined]' if inlined else ''}" for pc, function, inlined in theirs]
    return "\n".join([program.shown(thread), "theirs:", *rows])


class Tally:
    def __init__(self):
        self.counts, self.examples = collections.Counter(), {}

    def add(self, who, thread, ours, theirs):
        what = f"{who} {kind(thread, ours, theirs)}"
        self.counts[what] += 1
        self.counts[f"{who} stacks"] += 1
        if not what.endswith("equal"):
            self.examples.setdefault(what, shown(thread, theirs))

    def add_own(self, thread):
        self.counts["stacks"] += 1
        complete = thread["end"] == "outermost frame"
        self.counts["complete"] += complete
        if not complete:
            what = f"incomplete: {thread['end']}"
            self.counts[what] += 1
            self.examples.setdefault(what, program.shown(thread))

    def update(self, other):
        self.counts.update(other.counts)
        self.examples = {**other.examples, **self.examples}

    def __str__(self):
        return ", ".join(f"{k} {v}" for k, v in sorted(self.counts.items()))

    def is_good(self):
        unexplained = [k for k in self.counts if k.startswith(("eu ", "gdb ")) and not k.endswith(" stacks") and
                       k.split(" ", 1)[1] not in EXPLAINED]
        incomplete = self.counts["stacks"] - self.counts["complete"]
        return not unexplained and incomplete * 1000 <= self.counts["stacks"]


def sample(binary, pid, tally, with_gdb):
    with stopped(pid):
        threads = stacker_threads(binary, pid)
        if not threads:
            return
        eu, gdb = eu_stacks(pid), gdb_stacks(pid) if with_gdb else {}
    tally.counts["samples"] += 1
    for thread in threads:
        frames = frames_of(thread)
        tally.add_own(thread)
        if thread["tid"] in eu:
            tally.add("eu", thread, [f for f in frames if not f[2]], eu[thread["tid"]])
        if thread["tid"] in gdb:
            tally.add("gdb", thread, frames, gdb[thread["tid"]])


def await_work(pid):
    """Until something below pid has computed: it has come to its work."""
    deadline = time.monotonic() + WORK_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            fields = stat_fields(busiest(pid))
            if int(fields[11]) + int(fields[12]) >= WORK_TICKS:
                return
        time.sleep(0.01)


def sampled(options, command, moments):
    tally = Tally()
    with running(command) as process:
        await_work(process.pid)
        for number in range(options.samples * 3):
            if tally.counts["samples"] == options.samples:
                break
            time.sleep(moments.random() * 0.02)
            with contextlib.suppress(OSError, subprocess.TimeoutExpired, AssertionError):
                sample(options.stacker, busiest(process.pid), tally, number % options.gdb_every == 0)
    return tally


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stacker")
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--gdb-every", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", type=lambda text: text.split(","))
    options = parser.parse_args()
    moments, total = random.Random(options.seed), Tally()
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory() as place:
        for name, command in live_programs.programs(place).items():
            if options.only and name not in options.only:
                continue
            tally = sampled(options, command(), moments)
            print(f"{name:10} {tally}", flush=True)
            total.update(tally)
    print(f"{'total':10} {total}")
    for what, example in sorted(total.examples.items()):
        print(f"\n{what}\n{example}")
    return 0 if total.is_good() and total.counts["samples"] else 1


if __name__ == "__main__":
    sys.exit(main())
