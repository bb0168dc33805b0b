#!/usr/bin/python3
"""Stacks of real programs at random moments, beside eu-stack's and gdb's.

    compare_live.py STACKER [--samples N] [--gdb-every K] [--seed S] [--only NAME]

Each program computes; at a random moment it gets SIGSTOP, so that all tracers see the same
instant; then it runs on. For every thread the list of pcs is compared. Prints, for each program, the
samples, the threads, how many stacks end at the outermost frame, how many are equal to eu-stack's
(and to gdb's), and every kind of difference once. Exits with 1 when stacks are incomplete in
more than one of a thousand, or when a difference is not one of the explained kinds.
"""
import argparse
import collections
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PYTHON_WORK = """
import json, re, hashlib, zlib, random
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
while True:
    fib(16); d = json.dumps([{str(i): i * 1.5} for i in range(500)]); json.loads(d)
    re.findall(r"(\\d+)\\.(\\d)", d); zlib.compress(d.encode()); sorted(random.random() for _ in range(2000))
"""
CPP_WORK = """
#include <algorithm>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <vector>
int main()
{
	for (unsigned round = 0;; round++) {
		std::map<std::string, std::vector<int>> index;
		for (int i = 0; i < 2000; i++)
			index[std::to_string(i * 7919 % 503)].push_back(i);
		std::ostringstream out;
		for (auto &[key, list] : index) {
			std::sort(list.begin(), list.end(), [](int a, int b) { return a % 13 < b % 13; });
			out << key << ':' << list.size() << '\\n';
		}
		std::string text = out.str();
		std::regex pattern("([0-9]+):([0-9])");
		if (std::distance(std::sregex_iterator(text.begin(), text.end(), pattern), std::sregex_iterator()) < 1)
			return 1;
		try {
			if (round % 3 == 0)
				throw std::runtime_error(text);
		} catch (const std::exception &) {
		}
	}
}
"""


def programs(place):
    """name -> command line; what this machine does not have is left out."""
    big = os.path.join(place, "big")
    with open(big, "wb") as file:
        generator = random.Random(1)
        for _ in range(64):
            file.write(bytes(generator.randrange(32, 64) for _ in range(1 << 16)) * 8)
    yield "python3", ["/usr/bin/python3", "-c", PYTHON_WORK]
    for name, command in (("gzip", f"while :; do gzip -9 -c {big} >/dev/null; done"),
                          ("xz", f"while :; do xz -c {big} >/dev/null; done"),
                          ("sort", f"while :; do tr ' ' '\\n' <{big} | sort >/dev/null; done"),
                          ("sqlite3", "while :; do sqlite3 :memory: 'with recursive c(x) as (select 1 union all select "
                                      "x+1 from c where x<400000) select sum(x*x%7),count(distinct x%991) from c'; done")):
        if shutil.which(name):
            yield name, ["/bin/sh", "-c", command]
    if shutil.which("g++"):
        source, binary = os.path.join(place, "work.cpp"), os.path.join(place, "cpp-work")
        with open(source, "w") as file:
            file.write(CPP_WORK)
        subprocess.run(["g++", "-O2", "-g", "-std=c++17", source, "-o", binary], check=True)
        yield "c++", [binary]
        yield "cc1plus", ["/bin/sh", "-c", f"while :; do g++ -O2 -std=c++17 -c {source} -o {binary}.o; done"]
        if shutil.which("clang++"):
            yield "clang", ["/bin/sh", "-c", f"while :; do clang++ -O2 -std=c++17 -c {source} -o {binary}.o; done"]
    if shutil.which("redis-server") and shutil.which("redis-benchmark"):
        path = os.path.join(place, "redis.sock")
        yield "redis", ["/bin/sh", "-c", f"redis-server --port 0 --unixsocket {path} --save '' >/dev/null & s=$!; "
                        f"trap 'kill $s' EXIT; while :; do redis-benchmark -s {path} -q -n 20000 >/dev/null; done"]


def children(pid):
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/children", encoding="ascii") as file:
            found += [int(child) for child in file.read().split()]
    return found


def busiest(pid):
    """The process below pid that computes: shells wait for their children, and compilers for theirs."""
    best, best_time, queue = pid, -1, [pid]
    while queue:
        at = queue.pop()
        with contextlib.suppress(OSError):
            below = children(at)
            queue += below
            fields = open(f"/proc/{at}/stat", encoding="utf-8", errors="replace").read().rsplit(")", 1)[1].split()
            spent = int(fields[11]) + int(fields[12])
            if fields[0] in "RS" and (not below or at == pid) and spent >= best_time and os.path.exists(f"/proc/{at}/exe"):
                if os.path.basename(os.readlink(f"/proc/{at}/exe")) not in ("dash", "bash", "sh"):
                    best, best_time = at, spent
    return best


def stacker_stacks(binary, pid):
    done = subprocess.run([binary, "onephase", "--pid", str(pid), "--format", "json", "--quiet", "--no-maps", "--no-registers"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    if done.returncode not in (0, 3):
        return None
    stacks = {}
    for thread in json.loads(done.stdout)["threads"]:
        pcs = [int(f["pc"], 16) for f in thread["frames"] if not f["inlined"]]
        stacks[thread["tid"]] = (pcs, thread["end"], thread["frames"])
    return stacks


def eu_stacks(pid):
    out = subprocess.run(["eu-stack", "-n", "0", "-p", str(pid)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         text=True, timeout=60).stdout
    stacks, at = {}, None
    for line in out.splitlines():
        if line.startswith("TID"):
            at = stacks.setdefault(int(line.split()[1].rstrip(":")), [])
        elif at is not None and line.startswith("#"):
            at.append(int(line.split()[1], 16))
    return stacks


def gdb_stacks(pid):
    out = subprocess.run(["gdb", "-p", str(pid), "-nx", "-batch", "-ex", "set pagination off",
                          "-ex", "set debuginfod enabled off", "-ex", "set print address on",
                          "-ex", "set print frame-arguments none", "-ex", "thread apply all bt"],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=120).stdout
    stacks, at = {}, None
    for line in out.splitlines():
        thread = re.match(r"Thread \d+ \((?:Thread 0x\w+ \(LWP (\d+)\)|LWP (\d+)|process (\d+))", line)
        frame = re.match(r"#\d+\s+(?:0x(\w+) in )?(\S+)", line)
        if thread:
            at = stacks.setdefault(int(next(g for g in thread.groups() if g)), [])
        elif frame and at is not None:
            at.append((int(frame[1], 16) if frame[1] else None, frame[2]))
    return stacks


def difference_kind(ours, theirs, end):
    """A word for how two lists of pcs differ."""
    if ours == theirs:
        return "equal"
    if theirs == ours[:len(theirs)]:
        return "theirs ends early"
    if ours == theirs[:len(ours)]:
        return f"ours ends early ({end})"
    if len(theirs) > 1 and any(theirs[:n] == ours[:n] for n in range(1, len(theirs))):
        same = next(i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b)
        return "differs below frame 0" if same > 0 else "differs from the first frame"
    return "differs from the first frame"


# theirs ends early: ours goes on to the outermost frame, theirs gave up.
EXPLAINED = {"equal", "theirs ends early"}


def gdb_pcs_equal(ours, theirs):
    """gdb shows no address for an exact line start and lists inlined frames: compare those it shows."""
    shown = [pc for pc, _ in theirs if pc is not None]
    return all(pc in ours for pc in shown) and [pc for pc in ours if pc in set(shown)] == shown


def sample(binary, root, counts, with_gdb):
    pid = busiest(root)
    try:
        os.kill(pid, signal.SIGSTOP)
    except ProcessLookupError:
        return False
    try:
        for _ in range(1000):
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "T":
                    break
            time.sleep(0.0005)
        ours = stacker_stacks(binary, pid)
        if not ours:
            return False
        theirs = eu_stacks(pid)
        gdbs = gdb_stacks(pid) if with_gdb else {}
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    counts["samples"] += 1
    for tid, (pcs, end, frames) in ours.items():
        counts["threads"] += 1
        counts["complete"] += end == "outermost frame"
        if end != "outermost frame":
            counts[f"incomplete: {end} in {frames[-1]['module'] if frames else '?'}"] += 1
        if tid in theirs:
            counts["eu " + difference_kind(pcs, theirs[tid], end)] += 1
        if tid in gdbs:
            counts["gdb equal" if gdb_pcs_equal(pcs, gdbs[tid]) else "gdb differs"] += 1
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stacker")
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--gdb-every", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only")
    options = parser.parse_args()
    moments = random.Random(options.seed)
    total = collections.Counter()
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory() as place:
        for name, command in programs(place):
            if options.only and name != options.only:
                continue
            counts = collections.Counter()
            process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                time.sleep(0.5)  # let it come to its work
                tries = 0
                while counts["samples"] < options.samples and tries < options.samples * 3:
                    tries += 1
                    time.sleep(moments.random() * 0.02)
                    sample(options.stacker, process.pid, counts, tries % options.gdb_every == 0)
            finally:
                os.killpg(process.pid, signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(5)
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            print(f"{name:10}", ", ".join(f"{k} {v}" for k, v in counts.items()), flush=True)
            total.update(counts)
    print(f"{'total':10}", ", ".join(f"{k} {v}" for k, v in total.items()))
    unexplained = {k: v for k, v in total.items() if k.startswith("eu ") and k[3:] not in EXPLAINED}
    incomplete = total["threads"] - total["complete"]
    return 1 if unexplained or incomplete * 1000 > total["threads"] else 0


if __name__ == "__main__":
    sys.exit(main())
