"""--debuginfod: debug files that are nowhere on the machine, by the external command debuginfod-find.

A script of that name, first in PATH, plays every part; where the distribution's debuginfod is
installed, one test asks a real server in a network namespace of its own.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import textwrap

import paths
import program
import pytest
import target
import truth
import wants

COMMANDS = ["onephase", "symbolize", "addr2line"]


def build_id_of(path):
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", notes)[1]


class Finder:
    """The directory that holds the script, the environment in which it is found, and its log."""

    def __init__(self, place):
        self.bin = place / "bin"
        self.bin.mkdir()
        self.log = place / "log"
        self.stripped = place / "program"
        shutil.copy(target.fixture("threads-stripped"), self.stripped)
        self.build_id = build_id_of(self.stripped)
        self.env = {"PATH": f"{self.bin}:{os.environ['PATH']}", "DEBUGINFOD_URLS": "http://127.0.0.1:1",
                    "DEBUGINFOD_CACHE_PATH": str(place / "no-cache")}

    def does(self, text):
        """What the script does for the program; for all other build-ids it finds nothing."""
        script = self.bin / "debuginfod-find"
        script.write_text(f'#!/bin/sh\necho "$# $1 $2" >>{self.log}\n'
                          f'[ "$2" = {self.build_id} ] || exit 1\n{text}\n')
        script.chmod(0o755)

    def asked(self):
        """How often it was asked for the program; every call has the form of the real command."""
        calls = self.log.read_text().splitlines() if self.log.exists() else []
        assert all(re.fullmatch(r"2 debuginfo ([0-9a-f]{2})+", call) for call in calls), calls
        return calls.count(f"2 debuginfo {self.build_id}")


@pytest.fixture
def finder(tmp_path):
    return Finder(tmp_path)


class Subject:
    """The stripped program, running, as one of the commands sees it."""

    def __init__(self, command, finder, process, place):
        self.command, self.finder, self.process = command, finder, process
        self.stacks = process.told()
        self.capture = place / "capture.json"
        if command == "symbolize":
            program.capture(process.pid, self.capture)

    def arguments(self):
        if self.command == "onephase":
            return "onephase", "--pid", self.process.pid, "--format", "json"
        if self.command == "symbolize":
            return "symbolize", "--input", self.capture, "--format", "json"
        return "addr2line", "-f", "-e", self.finder.stripped, main_address()

    def run(self, *options, **env):
        """Whether names were found, and all that was noted."""
        done = program.run(*self.arguments(), *options, env={**self.finder.env, **env})
        assert done.status == program.COMPLETE, done
        if self.command == "addr2line":
            return done.out.splitlines()[0] == "main", done.err
        assert done.err == ""
        report = json.loads(done.out)
        names = {name for t in report["threads"] for name in program.functions(t)}
        if "main" in names:
            truth.compare_all(self.stacks, report)
        return "main" in names, "\n".join(report["notes"])


def main_address():
    symbols = subprocess.run(["nm", target.fixture("threads-gcc-O2")], capture_output=True, text=True, check=True)
    return "0x" + next(row.split()[0] for row in symbols.stdout.splitlines() if row.endswith(" T main"))


@pytest.fixture(params=COMMANDS)
def subject(request, finder, start, tmp_path):
    return Subject(request.param, finder, start(finder.stripped), tmp_path)


def fetched():
    return f"echo {target.fixture('threads-gcc-O2')}"


def test_not_without_the_option(subject, finder):
    finder.does(fetched())
    found, notes = subject.run()
    assert not found and "debuginfod-find" not in notes and finder.asked() == 0 and not finder.log.exists()


def test_found(subject, finder):
    """Its stdin is empty, and what it says on stderr stays away."""
    finder.does(f"[ -z \"$(cat)\" ] || exit 1\necho progress >&2\n{fetched()}")
    found, notes = subject.run("--debuginfod")
    assert found and "program" not in notes, notes
    assert finder.asked() == 1


def test_no_need(finder, start, tmp_path):
    """What has its debug information, or a debug file here, is not asked for."""
    finder.does(fetched())
    subject = Subject("onephase", finder, start(finder.stripped), tmp_path)
    place = tmp_path / "debug" / ".build-id" / finder.build_id[:2]
    place.mkdir(parents=True)
    shutil.copy(target.fixture("threads-gcc-O2"), place / f"{finder.build_id[2:]}.debug")
    assert subject.run("--debuginfod", "--debug-dir", tmp_path / "debug")[0] and finder.asked() == 0
    done = program.run("addr2line", "-f", "-e", target.fixture("threads-gcc-O2"), main_address(), "--debuginfod",
                       env=finder.env)
    assert done.out.startswith("main\n") and done.err == "" and finder.asked() == 0


BAD = [
    ("other-build-id", lambda: f"echo {target.fixture('threads-clang-O2')}", "refused: other build-id"),
    ("no-program", lambda: "echo /dev/null", "refused"),
    ("text", lambda: "echo $0", "refused"),
    ("no-such-file", lambda: "echo /nowhere/at/all", "/nowhere/at/all was fetched and cannot be used"),
    ("garbage", lambda: "echo garbage", "not a path"),
    ("two-lines", lambda: "echo /a; echo /b", "not a path"),
    ("no-newline", lambda: "printf /a", "not a path"),
    ("nothing", lambda: ":", "not a path"),
    ("long", lambda: "printf /; head -c 20000 /dev/zero | tr '\\0' x; echo", "not a path"),
    ("fails", lambda: f"{fetched()}; exit 1", "found nothing"),
    ("killed", lambda: f"{fetched()}; kill -9 $$", "signal 9"),
]


@pytest.mark.parametrize("script,text", [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_brings_nothing(subject, finder, script, text):
    """A note, and the frames keep module and offset."""
    finder.does(script())
    found, notes = subject.run("--debuginfod")
    assert not found and text in notes, notes
    assert finder.asked() == 1


def test_no_servers_are_known(subject, finder):
    finder.does("exit 1")
    assert "DEBUGINFOD_URLS is not set" in subject.run("--debuginfod", DEBUGINFOD_URLS="")[1]


def test_not_installed(subject, finder, tmp_path):
    found, notes = subject.run("--debuginfod", PATH=str(finder.bin))
    assert not found and "debuginfod-find: it is not installed" in notes
    assert program.run("addr2line", "-e", tmp_path / "none", "0", "--debuginfod").status == program.NOTHING


def test_process_that_runs_it_is_killed(finder, start, tmp_path):
    """Two modules ask: the first one hears nothing, the second one finds nobody."""
    finder.does("")
    (finder.bin / "debuginfod-find").write_text("#!/bin/sh\nkill -9 $PPID\n")
    for name in ("plugin-host", "plugin-1.so"):
        subprocess.run(["strip", "-o", tmp_path / name, target.fixture(name)], check=True)
    process = start(tmp_path / "plugin-host", tmp_path / "plugin-1.so")
    process.lines_until("ready")
    done = program.run("onephase", "--pid", process.pid, "--debuginfod", env=finder.env)
    assert done.status == program.COMPLETE and done.err == "", done
    assert done.out.count("debuginfod-find: the process that runs it has ended") == 2, done


def is_gone(pid):
    return not os.path.exists(f"/proc/{pid}")


def test_out_of_time(subject, finder, tmp_path):
    """The command is ended, and nothing that was left is asked for."""
    finder.does(f"echo $$ >>{tmp_path}/pid\nexec sleep 1000")
    found, notes = subject.run("--debuginfod", "--debuginfod-timeout", "1")
    assert not found and "debuginfod-find: out of time (--debuginfod-timeout)" in notes
    pid, = (tmp_path / "pid").read_text().split()
    assert is_gone(pid)


def test_what_it_says_with_verbose(finder, start, tmp_path):
    finder.does(f"echo 'progress of it' >&2\n{fetched()}")
    subject = Subject("onephase", finder, start(finder.stripped), tmp_path)
    done = program.run(*subject.arguments(), "--debuginfod", "--verbose", "--no-cache", env=finder.env)
    assert done.status == program.COMPLETE and done.err == "progress of it\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_ends_with_stacker(finder, tmp_path, number):
    """Stacker waits in its sandbox; when it is ended, so are the command and the process that runs it."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    finder.does(f"echo $$ $PPID >{fifo}\nexec sleep 1000")
    command = [paths.STACKER, "addr2line", "-e", finder.stripped, "--debuginfod", "0x1000"]
    # The tests themselves may have been started in the background, where SIGINT is ignored.
    with subprocess.Popen(command, env={**os.environ, **finder.env}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          preexec_fn=lambda: signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None) as stacker:
        with open(fifo, encoding="ascii") as said:
            pid, parent = said.read().split()
        status = pathlib.Path(f"/proc/{stacker.pid}/status").read_text(encoding="ascii")
        assert re.search(r"^Seccomp:\t2$", status, re.M), status
        assert int(parent) != stacker.pid
        stacker.send_signal(number)
        assert stacker.wait(program.RUN_S) == -number
        target.await_that(lambda: is_gone(pid) and is_gone(parent), 10, lambda: "the command ended")
        assert stacker.stdout.read() == b""


# Started in surroundings that are not the usual ones.

def as_started(finder, wrapper, *options):
    """addr2line of the program's main, its command line behind `wrapper`."""
    command = [*wrapper, paths.STACKER, "addr2line", "-f", "-e", finder.stripped, main_address(), "--debuginfod",
               *options]
    return subprocess.run(command, env={**os.environ, **finder.env}, capture_output=True, text=True, check=True,
                          timeout=program.RUN_S)


def test_started_with_stdin_closed(finder):
    finder.does(fetched())
    done = as_started(finder, ["sh", "-c", 'exec "$@" <&-', "sh"])
    assert (done.stdout.splitlines()[0], done.stderr) == ("main", "")


@pytest.mark.parametrize("ignored,script", [("CHLD", ":"), ("HUP", "kill -HUP $PPID"), ("INT", "kill -INT $PPID")])
def test_started_with_signals_ignored(finder, ignored, script):
    """What Stacker was told to ignore (nohup, a job in the background) does not end the other process."""
    finder.does(f"{script}\n{fetched()}")
    done = as_started(finder, ["env", f"--ignore-signal={ignored}"], "--debuginfod-timeout", "20")
    assert (done.stdout.splitlines()[0], done.stderr) == ("main", "")


@contextlib.contextmanager
def waiting(finder):
    """addr2line that waits for addresses, and the process that it has set apart."""
    command = [paths.STACKER, "addr2line", "-f", "-e", finder.stripped, "--debuginfod"]
    with subprocess.Popen(command, env={**os.environ, **finder.env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as stacker:
        children = pathlib.Path(f"/proc/{stacker.pid}/task/{stacker.pid}/children")
        target.await_that(lambda: children.read_text(encoding="ascii").split(), 10, lambda: "the process set apart")
        other = int(children.read_text(encoding="ascii"))
        target.await_that(lambda: os.readlink(f"/proc/{other}/fd/0") == "/dev/null", 10, lambda: "its beginning")
        yield stacker, other


def test_process_that_runs_it_is_gone(finder):
    """Before it was asked anything; stdout is a pipe, and a pipe that nobody reads may end Stacker by now."""
    finder.does(fetched())
    with waiting(finder) as (stacker, other):
        os.kill(other, signal.SIGKILL)
        target.await_that(lambda: " Z " in pathlib.Path(f"/proc/{other}/stat").read_text(encoding="ascii"), 10,
                          lambda: "its end")
        out, err = stacker.communicate(main_address() + "\n", timeout=program.RUN_S)
    assert stacker.returncode == program.COMPLETE and out.startswith("??"), out
    assert "the process that runs it has ended" in err and finder.asked() == 0


def pipes(pid, mode):
    """Its pipes' ends of this mode, by descriptor. It may open and close other files meanwhile."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            info = pathlib.Path(f"/proc/{pid}/fdinfo/{fd}").read_text(encoding="ascii")
            name = os.readlink(f"/proc/{pid}/fd/{fd}")
            flags = int(re.search(r"^flags:\s*(\d+)", info, re.M)[1], 8)
            if name.startswith("pipe:") and flags & os.O_ACCMODE == mode:
                found[fd] = name
    return found


QUESTION_SIZE = 129  # a build-id of 64 bytes, NUL-terminated


@pytest.mark.parametrize("what", ["/etc/hostname", "--help", "", "abc", "ABCD", "ab/cd"])
def test_only_build_ids_are_passed_on(finder, what):
    """Whoever has taken Stacker over in its sandbox holds the pipe, and gets nothing but files by build-id."""
    finder.does(fetched())
    with waiting(finder) as (stacker, other):
        fd, = [fd for fd, pipe in pipes(stacker.pid, os.O_WRONLY).items()
               if pipe in pipes(other, os.O_RDONLY).values()]
        with open(f"/proc/{stacker.pid}/fd/{fd}", "wb", buffering=0) as pipe:
            pipe.write(what.encode().ljust(QUESTION_SIZE, b"\0"))
        out, err = stacker.communicate(main_address() + "\n", timeout=program.RUN_S)  # hears the answer to it
    assert stacker.returncode == program.COMPLETE and out.startswith("??"), out
    assert "not a build-id" in err
    finder.asked()


def test_what_came_of_files_here_is_not_told(finder, tmp_path):
    """addr2line tells what was fetched in vain, not of a local file that was refused before it."""
    finder.does(fetched())
    place = tmp_path / "debug" / ".build-id" / finder.build_id[:2]
    place.mkdir(parents=True)
    shutil.copy(target.fixture("threads-clang-O2"), place / f"{finder.build_id[2:]}.debug")
    done = as_started(finder, [], "--debug-dir", tmp_path / "debug")
    assert (done.stdout.splitlines()[0], done.stderr) == ("main", "")


@pytest.mark.parametrize("value", ["0", "-1", "x"])
def test_timeout_is_positive(value):
    done = program.run("addr2line", "--debuginfod", "--debuginfod-timeout", value, "0")
    assert done.status == program.USAGE and "positive number" in done.err


def test_timeout_needs_the_option():
    done = program.run("addr2line", "--debuginfod-timeout", "5", "0")
    assert done.status == program.USAGE and "only with --debuginfod" in done.err


# A real server, in a network namespace where there is nothing but loopback.

IN_NAMESPACE = textwrap.dedent("""
    import fcntl, os, socket, struct, sys
    control = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    name = struct.pack("16sH14x", b"lo", 0x1 | 0x40)  # IFF_UP, IFF_RUNNING
    fcntl.ioctl(control, 0x8914, name)  # SIOCSIFFLAGS
    os.execvp(sys.argv[1], sys.argv[1:])
""")


@contextlib.contextmanager
def real_server(files, place):
    """Serves the directory; yields what to put before a command that is to reach it."""
    wants.tools("debuginfod", "debuginfod-find", "unshare", "nsenter")
    if os.geteuid() != 0:
        pytest.skip("needs root for a network namespace")
    command = ["unshare", "--net", sys.executable, "-c", IN_NAMESPACE, "debuginfod", "-d", place / "index.sqlite",
               "-p", "8002", "-F", files]
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, env={**os.environ, "DEBUGINFOD_URLS": ""})
    try:
        yield ["nsenter", "--net", f"--target={server.pid}"]
    finally:
        server.kill()
        server.wait()


SERVES = """
import sys, urllib.request
sys.exit(urllib.request.urlopen("http://127.0.0.1:8002/buildid/" + sys.argv[1] + "/debuginfo").status != 200)
"""


def test_real_server(finder, tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    shutil.copy(target.fixture("threads-gcc-O2"), files / "program.debug")
    with real_server(files, tmp_path) as within:
        target.await_that(lambda: subprocess.run([*within, sys.executable, "-c", SERVES, finder.build_id],
                                                 stderr=subprocess.DEVNULL, check=False).returncode == 0,
                          30, lambda: "the server to have the file")
        env = {**os.environ, "DEBUGINFOD_URLS": "http://127.0.0.1:8002",
               "DEBUGINFOD_CACHE_PATH": str(tmp_path / "cache")}
        command = [*within, paths.STACKER, "addr2line", "-f", "-e", finder.stripped, main_address()]
        for options, name in (([], "??"), (["--debuginfod"], "main"), ([], "main")):  # the last one by the cache
            done = subprocess.run([*command, *options], env=env, capture_output=True, text=True, check=True)
            assert (done.stdout.splitlines()[0], done.stderr) == (name, ""), (options, done)
        assert list((tmp_path / "cache").glob(f"{finder.build_id}/debuginfo"))
