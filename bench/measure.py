"""What the benchmarks share: victims, one measured run of a command, medians, tables, versions."""
import os
import pathlib
import platform
import signal
import statistics
import subprocess
import threading
import time

# What is measured is work, not what Stacker's cache of an earlier run remembers of it.
os.environ["XDG_CACHE_HOME"] = "/nonexistent/cache"

HERE = pathlib.Path(__file__).parent
DEPTH = 30


class Run:
    """One run of a command: wall and CPU seconds, peak memory in MB, status (None: out of time)."""

    def __init__(self, command, limit_s=120, stdin=None, stdout=subprocess.DEVNULL, environment=None):
        begin = time.monotonic()
        process = subprocess.Popen([str(word) for word in command], stdin=stdin, stdout=stdout,
                                   stderr=subprocess.DEVNULL, env={**os.environ, **(environment or {})})
        # Not by a preexec_fn: copying this program to run it would count as the command's time.
        limit = threading.Timer(limit_s, os.kill, [process.pid, signal.SIGALRM])
        limit.start()
        _, status, usage = os.wait4(process.pid, 0)
        limit.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        self.status = None if process.returncode == -signal.SIGALRM else process.returncode
        self.wall = time.monotonic() - begin
        self.cpu = usage.ru_utime + usage.ru_stime
        self.memory = usage.ru_maxrss / 1024

    def ok(self):
        """Complete, or partial: a picture all the same."""
        return self.status in (0, 3)


def median(runs, what):
    return statistics.median(getattr(run, what) for run in runs)


class Victim:
    """clock_gap.c with this many threads, DEPTH calls deep: "blocked", "busy" (half of them) or
    "idle" (blocked, and nobody reads the clock)."""

    def __init__(self, program, threads, mode):
        self.process = subprocess.Popen([program, str(threads), str(DEPTH), mode],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        assert self.process.stdout.readline() == "ready\n"

    def gap_ns(self):
        """The longest gap since the last call."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def victim_build(place):
    program = pathlib.Path(place) / "clock_gap"
    subprocess.run(["cc", "-O2", "-pthread", "-o", program, HERE / "clock_gap.c"], check=True)
    return program


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def head(*cells):
    row(*cells)
    print("|" + "---|" * len(cells), flush=True)


def machine():
    """One line about the machine that the figures are of."""
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8")
                if line.startswith("model name")), platform.machine())
    return f"{os.cpu_count()} x {cpu}, Linux {platform.release()}"


def version(command):
    done = subprocess.run([command, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = done.stdout.strip().splitlines()
    return next((line.strip() for line in lines if any(letter.isdigit() for letter in line)), lines[0])
