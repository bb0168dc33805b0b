#!/usr/bin/python3
"""Whole traces of real programs: python3, redis, node, java (20 threads of its own and the JVM's).

    bench/real.py STACKER [--runs N]

Tools take turns; medians. What is not installed is left out.
"""
import argparse
import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import measure

START_S = 60
PYTHON = """
import threading
def down(n): return done.wait() if n == 0 else down(n - 1)
done = threading.Event()
for _ in range(8): threading.Thread(target=down, args=(20,), daemon=True).start()
print("ready", flush=True)
down(20)
"""
NODE = "setInterval(() => 0, 1000); process.stdout.write('ready\\n')"
JAVA = """
public class Waits {
	static void down(int n) throws Exception { if (n == 0) Thread.sleep(3600000); else down(n - 1); }
	public static void main(String[] none) throws Exception {
		for (int i = 0; i < 20; i++) {
			Thread t = new Thread(() -> { try { down(20); } catch (Exception e) { } });
			t.setDaemon(true);
			t.start();
		}
		System.out.println("ready");
		down(20);
	}
}
"""


@contextlib.contextmanager
def running(command, wait_for_line=True, **more):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **more)
    try:
        if wait_for_line:
            assert process.stdout.readline() == "ready\n"
        yield process.pid
    finally:
        process.kill()
        process.wait()


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@contextlib.contextmanager
def redis(path, place):
    port = free_port()
    with running([path, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", place], wait_for_line=False) as pid:
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
        yield pid


@contextlib.contextmanager
def java(path, place):
    source = pathlib.Path(place) / "Waits.java"
    source.write_text(JAVA, encoding="utf-8")
    # A JRE has no compiler on its path, but starts a source file where the compiler's module is there.
    with running([path, str(source)], cwd=place) as pid:
        yield pid


def programs(place):
    yield "python3", lambda: running([sys.executable, "-c", PYTHON])
    for name, make in (("redis-server", lambda p: redis(p, place)), ("node", lambda p: running([p, "-e", NODE])),
                       ("java", lambda p: java(p, place))):
        path = shutil.which(name)
        if path:
            yield name, lambda path=path, make=make: make(path)


def tools(stacker, pid):
    yield "stacker onephase --no-cache", [stacker, "onephase", "-q", "--no-cache", "-p", pid]
    yield "stacker onephase", [stacker, "onephase", "-q", "-p", pid]
    if shutil.which("eu-stack"):
        yield "eu-stack -i (inlines and lines too)", ["eu-stack", "-i", "-s", "-p", pid]
    if shutil.which("gdb"):
        yield "gdb", ["gdb", "-p", pid, "--batch", "-nx", "-ex", "thread apply all bt"]


def measure_one(stacker, name, start, runs):
    results = {}
    with start() as pid:
        threads = len(os.listdir(f"/proc/{pid}/task"))
        for _ in range(runs):
            for tool, command in tools(stacker, pid):
                run = measure.Run(command)
                if run.ok():
                    results.setdefault(tool, []).append(run)
    for tool, done in results.items():
        measure.row(name, threads, tool, *(f"{measure.median(done, what):.3f}" for what in ("wall", "cpu")),
                    f"{measure.median(done, 'memory'):.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stacker")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    measure.head("program", "threads", "tool", "wall s", "CPU s", "MB")
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        for name, start in programs(place):
            try:
                measure_one(options.stacker, name, start, options.runs)
            except AssertionError:
                print(f"\n{name} did not start here: left out\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
