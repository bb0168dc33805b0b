"""Where --output leads: open descriptors, other people's files, files that have to stay the same.

What is decided about names, and an attacker beside it, is in tests/unit/test_live_output.c; here it is whether commands
work with it, inside their sandbox.
"""
import json
import os
import pathlib
import signal
import stat
import struct
import subprocess

import paths
import program
import pytest

NOBODY = 65534
OPENING = ["2", "257", "56"]  # open and openat: of x86_64, of aarch64


@pytest.fixture
def process(start):
    started = start("threads-gcc-O2")
    started.told()
    return started


def run_shell(line, *arguments, **more):
    """`$S` is stacker; arguments are $1 and on. Returns what stdout and stderr were."""
    done = subprocess.run(["bash", "-c", line, "sh", *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, "S": str(paths.STACKER)}, timeout=program.RUN_S, **more)
    assert done.returncode == 0, done
    return done


def is_capture(text):
    return json.loads(text)["format"] == "stacker-capture"


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1"])
def test_stdout_by_name(process, tmp_path, name):
    """Appended to a log: what was in it stays, and the descriptor still leads to it."""
    log = tmp_path / "log"
    log.write_text("before\n")
    done = run_shell('{ "$S" capture -p $1 -o $2; echo after; } >>"$3"', process.pid, name, log)
    text = log.read_text()
    assert text.startswith("before\n") and text.endswith("after\n")
    assert is_capture(text.removeprefix("before\n").removesuffix("after\n"))
    assert "Found 11 threads" in done.stderr, "the words about it must not stand in it"
    assert os.path.islink("/dev/stdout")


@pytest.mark.parametrize("name", ["/dev/fd/7", "/proc/self/fd/7"])
def test_other_descriptor(process, tmp_path, name):
    log = tmp_path / "log"
    log.write_text("before\n")
    done = run_shell('"$S" capture -p $1 -o $2 7>>"$3"', process.pid, name, log)
    assert log.read_text().startswith("before\n") and is_capture(log.read_text()[7:])
    assert "Found 11 threads" in done.stdout
    to_stdout = run_shell('"$S" capture -p $1 -o $2 7>&1', process.pid, name)
    assert is_capture(to_stdout.stdout)


def test_deleted_stdout(process, tmp_path):
    """stdout is a file without a name: its text leads nowhere, and nothing may be made of it."""
    gone = tmp_path / "gone"
    done = run_shell('exec >"$2" 3<"$2"; rm "$2"; "$S" capture -q -p $1 -o /dev/stdout; cat <&3 >&2', process.pid, gone)
    assert os.listdir(tmp_path) == [] and is_capture(done.stderr) and os.path.islink("/dev/stdout")


def test_process_substitution(process, tmp_path):
    run_shell('"$S" capture -p $1 -q -o >(cat >"$2/copy"; : >"$2/done") && while [ ! -e "$2/done" ]; do sleep 0.01; done',
              process.pid, tmp_path)
    assert is_capture((tmp_path / "copy").read_text())


@pytest.mark.parametrize("command", ["capture", "onephase"])
def test_fifo(process, tmp_path, command):
    """One of our own, with a reader that comes later."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen([paths.STACKER, command, "-p", str(process.pid), "-q", "-o", fifo]) as running:
        text = fifo.read_text()
        assert running.wait(program.RUN_S) == 0
    assert "threads-gcc-O2" in text and stat.S_ISFIFO(fifo.stat().st_mode)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_fifo_that_nobody_reads(process, tmp_path, number):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen([paths.STACKER, "capture", "-p", str(process.pid), "-o", fifo]) as running:
        while pathlib.Path(f"/proc/{running.pid}/syscall").read_text().split()[0] not in OPENING:
            assert running.poll() is None
        running.send_signal(number)
        assert running.wait(program.RUN_S) == -number
    assert process.is_unharmed()


def test_directory_of_another_process(process, tmp_path):
    """/proc/PID/cwd is a place like any other."""
    with subprocess.Popen(["sleep", "60"], cwd=tmp_path) as sleeper:
        try:
            for _ in range(2):
                program.capture(process.pid, f"/proc/{sleeper.pid}/cwd/y")
            done = program.run("symbolize", "-i", tmp_path / "y", "-o", f"/proc/{sleeper.pid}/cwd/z")
        finally:
            sleeper.kill()
    assert done.status == 0 and is_capture((tmp_path / "y").read_text()) and (tmp_path / "z").stat().st_size
    assert sorted(os.listdir(tmp_path)) == ["y", "z"]


def test_hard_links(process, tmp_path):
    (tmp_path / "one").write_text("old" * 100000)
    os.link(tmp_path / "one", tmp_path / "two")
    program.capture(process.pid, tmp_path / "one")
    assert is_capture((tmp_path / "two").read_text())
    failed = program.run("capture", "--pid", 2 ** 22 + 5, "-o", tmp_path / "one")
    assert failed.status == program.NOTHING and is_capture((tmp_path / "two").read_text())


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount")
def test_mounted_file(process, tmp_path):
    """As in a container: a single file is mounted, which nothing can be renamed onto."""
    (tmp_path / "outside").write_text("old")
    (tmp_path / "inside").write_text("")
    done = subprocess.run(["unshare", "-m", "bash", "-c",
                           f'mount --bind "$1/outside" "$1/inside" && "{paths.STACKER}" capture -p $2 -o "$1/inside"', "sh",
                           tmp_path, str(process.pid)], capture_output=True, text=True, timeout=program.RUN_S)
    if "permission denied" in done.stderr:
        pytest.skip("cannot mount here")
    assert done.returncode == 0, done
    assert is_capture((tmp_path / "outside").read_text()) and sorted(os.listdir(tmp_path)) == ["inside", "outside"]


def test_access_control_list(process, tmp_path):
    path = tmp_path / "shared"
    path.write_text("old")
    # acl(5) as linux/posix_acl_xattr.h has it: owner rw, one user r, group r, mask r, others nothing.
    entries = [(0x01, 6, 2 ** 32 - 1), (0x02, 4, NOBODY), (0x04, 4, 2 ** 32 - 1), (0x10, 4, 2 ** 32 - 1), (0x20, 0, 2 ** 32 - 1)]
    access = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(path, "system.posix_acl_access", access)
    except OSError:
        pytest.skip("no access control lists on this file system")
    program.capture(process.pid, path)
    assert os.getxattr(path, "system.posix_acl_access") == access and is_capture(path.read_text())


def test_killed_before_the_end(process, tmp_path):
    """By SIGKILL, while it waits for the process: nothing is left, and nothing is lost."""
    (tmp_path / "x").write_text("old")
    for rounds in range(8):
        with subprocess.Popen([paths.STACKER, "onephase", "-p", str(process.pid), "-o", tmp_path / "x"],
                              stderr=subprocess.DEVNULL) as running:
            for _ in range(rounds * 20000):
                pass
            running.kill()
        assert os.listdir(tmp_path) == ["x"] and (tmp_path / "x").read_text()[:3] in ("old", "Sta")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_a_link_of_another_user(process, tmp_path):
    tmp_path.chmod(0o1777)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    os.symlink(victim, tmp_path / "out")
    os.lchown(tmp_path / "out", NOBODY, NOBODY)
    done = program.run("capture", "-p", process.pid, "-o", tmp_path / "out")
    assert done.status == program.NOTHING and len(done.err.splitlines()) == 1 and done.out == ""
    assert "link of another user" in done.err and f"to {victim}: name the place itself" in done.err
    assert victim.read_text() == "precious"


@pytest.mark.skipif(os.geteuid() != 0, reason="as root beside another user")
def test_mounts_of_another_namespace(process, tmp_path):
    """Whoever made a mount namespace may have put any file of the machine under any name in it."""
    precious = tmp_path / "precious"
    precious.write_text("kept\n")
    os.chmod(tmp_path, 0o755)
    (tmp_path / "trap").touch()
    script = f"mount -t tmpfs none /mnt && ln -s {precious} /mnt/link && mount -t tmpfs none /opt && ln -s /mnt /opt/way && mount --bind {precious} {tmp_path}/trap && mkdir /mnt/dir && mount --bind {tmp_path} /mnt/dir && echo ready && exec sleep 60"
    with subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
                          stdout=subprocess.PIPE, text=True) as trap:
        try:
            assert trap.stdout.readline() == "ready\n"
            root = pathlib.Path(f"/proc/{trap.pid}/root")
            for name in (root / str(tmp_path / "trap").lstrip("/"), root / "mnt/dir/new", root / "mnt/dir/precious", root / "mnt/link",
                         root / "opt/way/dir/new"):
                done = program.run("onephase", "-p", process.pid, "-o", name)
                assert done.status == program.NOTHING and "another mount namespace" in done.err, (name, done)
        finally:
            trap.kill()
    assert precious.read_text() == "kept\n" and not (tmp_path / "new").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="as root beside another user")
def test_directory_with_an_access_list(process, tmp_path):
    """Its group's bits are what the list grants at most: others may write there."""
    place = tmp_path / "shared"
    place.mkdir()
    entry = struct.Struct("<HHI").pack
    everybody = 0xffffffff
    os.setxattr(place, "system.posix_acl_access", struct.pack("<I", 2) + entry(1, 7, everybody) + entry(2, 7, NOBODY) +
                entry(4, 5, everybody) + entry(16, 7, everybody) + entry(32, 5, everybody))
    os.mkfifo(place / "out")
    os.chown(place / "out", NOBODY, NOBODY)
    done = program.run("onephase", "-p", process.pid, "-o", place / "out")
    assert done.status == program.NOTHING and "a FIFO of another user" in done.err, done


@pytest.mark.skipif(os.geteuid() != 0, reason="as root beside another user")
def test_file_of_a_process_that_is_not_dumpable(process, tmp_path):
    """Root owns its files in /proc, and yet it is another user's."""
    code = ("import ctypes, os, sys\nfd = os.open(sys.argv[1], os.O_RDWR)\nos.setresgid(65534, 65534, 65534)\n"
            "os.setresuid(65534, 65534, 65534)\nctypes.CDLL(None).prctl(4, 0)\nprint(fd, flush=True)\nsys.stdin.read()\n")
    theirs = tmp_path / "theirs"
    theirs.write_text("kept\n")
    with subprocess.Popen(["/usr/bin/python3", "-c", code, theirs], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        fd = int(holder.stdout.readline())
        assert os.stat(f"/proc/{holder.pid}/fd").st_uid == 0
        done = program.run("onephase", "-p", process.pid, "-o", f"/proc/{holder.pid}/fd/{fd}")
        holder.stdin.close()
    assert done.status == program.NOTHING and "process of another user" in done.err, done
    assert theirs.read_text() == "kept\n"
