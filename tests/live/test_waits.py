"""Processes of which something does not answer: --timeout bounds the wait, a signal ends it at any moment, and the
process is left as it was."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import paths
import program
import pytest
import target

METHODS = {"bpf": ("--method", "bpf"), "ptrace": ("--method", "ptrace"), "auto": ()}
TIMEOUT_MS = 300
PAUSE = 34 if program.paths.MACHINE == "x86_64" else 73  # on aarch64 it is ppoll
# The machine that tests may have more to do than this.
ANSWER_S, SIGNAL_S = 1.5, 1.0


class SlowFiles:
    """A mounted file system of tests/lib/slow_files.py."""

    def __init__(self, folder):
        self.mount, self.directory = folder / "mount", folder / "files"
        self.mount.mkdir()
        self.directory.mkdir()
        self.server = target.Target(["/usr/bin/python3", paths.TOP / "tests" / "lib" / "slow_files.py", self.mount,
                                     self.directory], stderr=subprocess.PIPE)
        self.server.lines_until("ready")

    def tell(self, *words):
        self.server.say(" ".join(words) + "\n")
        self.server.lines_until("ok")

    def await_stalled(self):
        while not self.server.line().startswith("stalled"):
            pass

    def end(self):
        self.server.end()  # what waits for it fails then
        subprocess.run(["umount", "-l", self.mount], stderr=subprocess.DEVNULL, check=False)
        self.server.process.stderr.close()


@pytest.fixture
def slow_files(tmp_path):
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("mounting a FUSE file system takes root and /dev/fuse")
    files = SlowFiles(tmp_path)
    yield files
    files.end()


@contextlib.contextmanager
def frozen(process, version):
    """Stopped by SIGSTOP, and its cgroup frozen."""
    top = pathlib.Path("/sys/fs/cgroup")
    if version == 1:
        top, name, on, off = top / "freezer", "freezer.state", "FROZEN", "THAWED"
    else:
        name, on, off = "cgroup.freeze", "1", "0"
        top = next((p for p in (top, top / "unified") if (p / "cgroup.controllers").exists()), top)
    if os.geteuid() != 0 or not (top / "cgroup.procs").exists():
        pytest.skip(f"no freezer of cgroup v{version} here")
    group = top / f"stacker-test-{process.pid}"
    group.mkdir()
    process.signal(signal.SIGSTOP)
    process.await_state(process.pid, "T")
    try:
        (group / "cgroup.procs").write_text(str(process.pid))
        (group / name).write_text(on)
        yield
    finally:
        (group / name).write_text(off)
        process.signal(signal.SIGCONT)
        process.end()
        target.await_that(lambda: not (group / "cgroup.procs").read_text(), 10, lambda: "an empty group")
        group.rmdir()


def goes(process):
    process.say("\n")
    process.lines_until("goes")


def wchan(pid, tid):
    number = pathlib.Path(f"/proc/{pid}/task/{tid}/syscall").read_text().split()[0]
    return "pause" if number == str(PAUSE) else number


class Stuck:
    """The situations: each starts a process, brings it into its state, and yields it."""

    def __init__(self, start, request):
        self.start, self.request = start, request

    @property
    def files(self):
        return self.request.getfixturevalue("slow_files")

    def started(self, *arguments):
        process = self.start(*arguments)
        process.lines_until("ready")
        return process

    @contextlib.contextmanager
    def program(self):
        """Its own file is on a file system that hangs."""
        path = shutil.copy(target.fixture("stuck"), self.files.directory)
        process = self.started(self.files.mount / pathlib.Path(path).name, "plain")
        self.files.tell("stall", "LOOKUP", "GETATTR", "OPEN", "READ")
        yield process

    @contextlib.contextmanager
    def library(self):
        path = shutil.copy(target.fixture("plugin-1.so"), self.files.directory)
        process = self.started("plugin-host", str(self.files.mount / pathlib.Path(path).name))
        self.files.tell("stall", "LOOKUP", "GETATTR", "OPEN", "READ")
        yield process

    @contextlib.contextmanager
    def pages(self):
        """A library can be opened, but not read to its end."""
        path = self.files.directory / "plugin-1.so"
        path.write_bytes(target.fixture("plugin-1.so").read_bytes() + bytes(4 << 20))
        process = self.started("plugin-host", str(self.files.mount / "plugin-1.so"))
        self.files.tell("stall", "READ", "FLUSH")
        yield process

    @contextlib.contextmanager
    def space(self):
        """The lock of its memory is held for writing."""
        (self.files.directory / "data").write_bytes(bytes(8192))
        process = self.start("stuck", "space", str(self.files.mount / "data"))
        process.lines_until("direct")
        self.files.tell("direct", "on")
        process.say("\n")
        process.lines_until("dirty")
        self.files.tell("stall", "WRITE")
        process.say("\n")
        process.lines_until("ready")
        goes(process)
        self.files.await_stalled()
        yield process
        self.files.tell("go")

    @contextlib.contextmanager
    def exec(self):
        """One of its threads is inside execve."""
        path = self.files.directory / "program"
        shutil.copy("/bin/true", path)
        process = self.started("stuck", "exec", str(self.files.mount / "program"))
        self.files.tell("stall", "READ")
        goes(process)
        self.files.await_stalled()
        yield process

    @contextlib.contextmanager
    def stack(self):
        """A stack of it is supplied by another thread of it."""
        process = self.start("stuck", "stack")
        try:
            process.lines_until("ready")
        except AssertionError:
            pytest.skip("no userfaultfd here")
        yield process

    @contextlib.contextmanager
    def file_stack(self):
        """The memory of a stack is a file's, on a file system that hangs."""
        (self.files.directory / "data").write_bytes(bytes(512 << 10))
        process = self.started("stuck", "file-stack", str(self.files.mount / "data"))
        target.await_that(lambda: all("pause" in wchan(process.pid, t) for t in process.tids()[1:]), 10,
                          lambda: "threads in pause")
        self.files.tell("stall", "READ")
        yield process

    @contextlib.contextmanager
    def frozen_v1(self):
        process = self.started("stuck", "plain")
        with frozen(process, 1):
            yield process

    @contextlib.contextmanager
    def frozen_v2(self):
        process = self.started("stuck", "plain")
        with frozen(process, 2):
            yield process


SITUATIONS = ["program", "library", "pages", "space", "exec", "stack", "frozen_v1", "frozen_v2"]
# What the report names, and the exit status by method; None: nothing is in the way.
NAMED = {
    "program": {"bpf": "/mount/stuck", "ptrace": "/mount/stuck", "auto": "/mount/stuck"},
    "library": {"bpf": "/mount/plugin-1.so", "ptrace": "/mount/plugin-1.so", "auto": "/mount/plugin-1.so"},
    "pages": {"bpf": "/mount/plugin-1.so", "ptrace": "/mount/plugin-1.so", "auto": "/mount/plugin-1.so"},
    "space": {"bpf": "memory", "ptrace": "memory", "auto": "memory"},
    "exec": {"bpf": None, "ptrace": "thread", "auto": None},
    "stack": {"bpf": None, "ptrace": "memory of its stacks", "auto": None},
    "frozen_v1": {"bpf": None, "ptrace": "thread", "auto": None},
    "frozen_v2": {"bpf": None, "ptrace": None, "auto": None},
}


@pytest.fixture
def stuck(start, request):
    return Stuck(start, request)


@pytest.fixture(params=list(METHODS))
def way(request, bpf_here):
    if request.param == "bpf" and bpf_here:
        pytest.skip(bpf_here)
    if request.param == "auto" and program.METHOD:
        pytest.skip("chooses its method itself")
    return request.param


def check_unharmed(process, situation):
    """In the state that the situation has put it in, and nobody traces it."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text(errors="replace")
    states = {process.state(tid) for tid in process.tids()}
    assert "TracerPid:\t0" in status
    assert "t" not in states and (situation.startswith("frozen") or "T" not in states), states


def await_let_go(process, situation):
    deadline = time.monotonic() + 5
    while True:
        try:
            return check_unharmed(process, situation)
        except AssertionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.001)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_timeout(stuck, situation, way):
    with getattr(stuck, situation)() as process:
        begin = time.monotonic()
        done = program.run("onephase", "--pid", process.pid, "--format", "json", "--timeout", TIMEOUT_MS, *METHODS[way],
                           timeout=20)
        took = time.monotonic() - begin
        named = NAMED[situation][way if way != "auto" or not program.why_no_bpf() else "ptrace"]
        await_let_go(process, situation)
        if done.status == program.NOTHING:
            assert named and named in done.err and len(done.err.splitlines()) == 1, done
        elif named:
            assert done.status == program.PARTIAL, done
            assert named in json.loads(done.out)["capture"]["unanswered"], done
        else:
            assert json.loads(done.out)["capture"]["unanswered"] is None, done
        if situation in ("program", "library"):
            assert len(json.loads(done.out)["threads"]) == len(process.tids()), done
            assert all(t["frames"] for t in json.loads(done.out)["threads"]), done
        assert took < ANSWER_S, (took, done)


def children_of(pid):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def is_waiting(pid):
    """A child of stacker is there, and for a while none of its threads has done anything."""
    def look():
        seen = []
        for child in children_of(pid):
            for task in pathlib.Path(f"/proc/{child}/task").iterdir():
                seen.append((task.name, (task / "syscall").read_text(), (task / "status").read_text()))
        return seen
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        before = look()
        time.sleep(0.02)
        return bool(before) and [s[1] for s in before] == [s[1] for s in look()] and "running" not in str(before)
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_signal(stuck, situation, way, number, tmp_path):
    named = NAMED[situation][way if way != "auto" or not program.why_no_bpf() else "ptrace"]
    if not named:
        pytest.skip("nothing is in the way of this method")
    folder = tmp_path / "out"
    folder.mkdir()
    with getattr(stuck, situation)() as process:
        stacker = subprocess.Popen([paths.STACKER, "onephase", "--pid", str(process.pid), "--timeout", "60000",
                                    "--output", folder / "report", *METHODS[way]],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        target.await_that(lambda: is_waiting(stacker.pid), 10, lambda: "stacker to wait")
        begin = time.monotonic()
        stacker.send_signal(number)
        out, err = stacker.communicate(timeout=20)
        took = time.monotonic() - begin
        await_let_go(process, situation)
        assert stacker.returncode == -number, (out, err)
        assert not list(folder.iterdir())
        assert took < SIGNAL_S, took


def test_stack_of_a_file(stuck, way):
    """Nobody is held while its file system is waited for, and only this stack is lacking."""
    with stuck.file_stack() as process:
        begin = time.monotonic()
        done = program.run("onephase", "--pid", process.pid, "--format", "json", "--timeout", TIMEOUT_MS, *METHODS[way],
                           timeout=20)
        took = time.monotonic() - begin
        check_unharmed(process, "file_stack")
        report = json.loads(done.out)
        assert done.status == program.PARTIAL and report["capture"]["stack_bytes_missing"] > 0, done
        assert report["capture"]["stopped_ns"] < 100e6, report["capture"]
        assert [t["end"] for t in report["threads"]].count("outside the captured stack") == 1, done
        assert took < ANSWER_S, took


def test_killed_at_any_moment(start, way):
    """SIGKILL to the process that was started ends the one that captures, too."""
    process = start("busy", "4")
    process.told()
    for number in range(60):
        stacker = subprocess.Popen([paths.STACKER, "capture", "--pid", str(process.pid), "--output", "/dev/null",
                                    "--quiet", *METHODS[way]])
        time.sleep(0.0002 * number)  # any moment will do
        children = children_of(stacker.pid)
        stacker.kill()
        stacker.wait(program.RUN_S)
        for child in children:
            target.await_that(lambda pid=child: is_gone(pid), 5, lambda: "its child to end")
        process.await_unharmed()


def is_gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True
