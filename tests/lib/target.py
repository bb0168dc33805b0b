"""Processes to trace: started, waited for until they say they are ready, and always ended.

Every wait has a bound, and nothing waits for time to pass: a target says "ready" on its stdout, and
what the kernel shows about it is looked at until it is so.
"""
import contextlib
import os
import pathlib
import select
import signal
import subprocess
import time

import paths
import pytest
import truth
import wants

READY_S = 30
STATE_S = 10


class Target:
    """A running process. Its stdout is read line by line; what it said is in .lines."""

    def __init__(self, arguments, **popen):
        self.process = subprocess.Popen(
            [os.fspath(a) if isinstance(a, pathlib.Path) else a for a in arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, **popen)
        self.pid = self.process.pid
        self.lines = []
        self._rest = b""

    # What it says.

    def line(self, timeout=READY_S):
        """Its next line of output; fails when it ends or says nothing in time."""
        deadline = time.monotonic() + timeout
        out = self.process.stdout.fileno()
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([out], [], [], left)[0]:
                raise AssertionError(f"{self.process.args}: said nothing for {timeout} s: {self.lines}")
            got = os.read(out, 65536)
            if not got:
                raise AssertionError(f"{self.process.args} ended: {self.process.wait(READY_S)}, {self.lines}")
            self._rest += got
        text, self._rest = self._rest.split(b"\n", 1)
        self.lines.append(text.decode())
        return self.lines[-1]

    def lines_until(self, wanted, timeout=READY_S):
        lines = [self.line(timeout)]
        while lines[-1] != wanted:
            lines.append(self.line(timeout))
        return lines

    def told(self):
        """The stacks it told until "ready", each thread now really blocked (or computing)."""
        stacks = truth.parse(self.lines_until("ready"))
        for stack in stacks:
            if stack.mode == "blocked":
                self.await_state(stack.tid, "S")
        return stacks

    def say(self, text):
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    # What the kernel shows.

    def task_stat(self, tid=None):
        """The fields of /proc/PID/task/TID/stat after the name, or None when it is gone."""
        path = f"/proc/{self.pid}/task/{tid or self.pid}/stat"
        try:
            text = pathlib.Path(path).read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return None
        return text.rsplit(")", 1)[1].split()

    def state(self, tid=None):
        fields = self.task_stat(tid)
        return fields[0] if fields else None

    def tids(self):
        return sorted(int(t) for t in os.listdir(f"/proc/{self.pid}/task"))

    def await_state(self, tid, wanted, timeout=STATE_S):
        await_that(lambda: self.state(tid) in wanted, timeout,
                   lambda: f"thread {tid} in state {wanted}, it is {self.state(tid)}")

    def is_unharmed(self):
        """Lives, is not stopped, and nobody traces it."""
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text(errors="replace")
        tracer = [line for line in status.splitlines() if line.startswith("TracerPid")]
        states = [self.state(tid) for tid in self.tids()]
        return tracer == ["TracerPid:\t0"] and not any(s in ("T", "t") for s in states)

    def await_unharmed(self, timeout=STATE_S):
        """As above; a tracer that was killed lets go a moment later."""
        await_that(self.is_unharmed, timeout, lambda: "target let go")

    # Its end.

    def signal(self, number):
        os.kill(self.pid, number)

    def finish(self, timeout=60):
        """Closes its stdin and returns the rest of what it says and its exit status."""
        rest, _ = self.process.communicate(timeout=timeout)
        return (self._rest + rest).decode().splitlines(), self.process.returncode

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(READY_S)
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                stream.close()


def await_that(is_so, timeout, what):
    deadline = time.monotonic() + timeout
    while not is_so():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout} s for: {what()}")
        time.sleep(0.001)


@contextlib.contextmanager
def running(*arguments, **popen):
    target = Target(arguments, **popen)
    try:
        yield target
    finally:
        target.end()


def fixture(name):
    """Path of a built fixture; ends the test when this machine cannot build it."""
    path = paths.FIXTURES / name
    skipped = path.with_name(name + ".skipped")
    if skipped.exists():
        lacks = skipped.read_text().split()
        if foreign := set(lacks) & set(paths.MACHINES):
            pytest.skip(f"fixtures for {foreign.pop()}")
        wants.lack(" and ".join(lacks))
    assert path.exists(), f"{path} is not built: make fixtures"
    return path


def kill_quietly(pid, number=signal.SIGKILL):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
