"""What the command line names: pipes, links, and places that only exist while a process does.

All of it is opened before the sandbox, which would not let it.
"""
import contextlib
import json
import os
import re
import shutil
import subprocess

import paths
import program
import pytest
import target
import truth

FIXTURE = "threads-gcc-O2"


@pytest.fixture
def process(start):
    started = start(FIXTURE)
    started.stacks = started.told()
    return started


@pytest.fixture
def capture(process, tmp_path):
    path = tmp_path / "capture.json"
    program.capture(process.pid, path)
    return path


@contextlib.contextmanager
def copy_running(directory, *before, strip=False):
    """A copy of the fixture, which can be deleted."""
    path = directory / "copy"
    shutil.copy(target.fixture(FIXTURE), path)
    if strip:
        subprocess.run(["strip", path], check=True)
    with target.running(*before, path) as process:
        process.stacks = process.told()
        yield process, path


def separate_debug(directory):
    """The fixture's debug information, where its build-id says."""
    made = directory / "made.debug"
    subprocess.run(["objcopy", "--only-keep-debug", target.fixture(FIXTURE), made], check=True)
    notes = subprocess.check_output(["readelf", "-n", made], text=True)
    build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)[1]
    place = directory / "debug" / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    place.parent.mkdir(parents=True)
    made.rename(place)
    return directory / "debug"


def bash(line, *arguments, **more):
    done = subprocess.run(["bash", "-c", line, "sh", *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, "S": str(paths.STACKER)}, timeout=program.RUN_S, **more)
    assert done.returncode == 0, done
    return done.stdout


# The executable.

def test_executable_of_a_process(tmp_path):
    """Of a program that is deleted, as after an upgrade: the process still has it."""
    with copy_running(tmp_path) as (process, path):
        program.capture(process.pid, tmp_path / "c.json")
        path.unlink()
        report = program.symbolized(tmp_path / "c.json", "-e", f"/proc/{process.pid}/exe")
        truth.compare_all(process.stacks, report)
        line = program.run("addr2line", "-f", "-e", f"/proc/{process.pid}/exe", "main")
        assert line.status == 0 and line.out.splitlines()[0] == "main", line


def test_debug_file_beside_a_process_s_executable(tmp_path):
    """A name of /proc says nothing of where the file lies; that is asked before."""
    with copy_running(tmp_path, strip=True) as (process, path):
        shutil.copy(next(separate_debug(tmp_path).rglob("*.debug")), tmp_path / "copy.debug")
        program.capture(process.pid, tmp_path / "c.json")
        report = program.symbolized(tmp_path / "c.json", "-e", f"/proc/{process.pid}/exe")
        truth.compare_all(process.stacks, report)


def test_executable_from_a_pipe(process, capture, tmp_path):
    report = bash('"$S" symbolize -i "$1" -e <(cat "$2") --format json', capture, target.fixture(FIXTURE))
    truth.compare_all(process.stacks, json.loads(report))
    assert bash('"$S" addr2line -f -e <(cat "$1") main', target.fixture(FIXTURE)).splitlines()[0] == "main"


def test_executable_by_links_and_relative(process, capture, tmp_path):
    (tmp_path / "link").symlink_to(target.fixture(FIXTURE))
    for name in ("link", "./link", "../" + tmp_path.name + "/link"):
        report = bash('cd "$1"; "$S" symbolize -i capture.json -e "$2" --format json', tmp_path, name)
        truth.compare_all(process.stacks, json.loads(report))


# The capture.

@pytest.mark.parametrize("line", [
    '"$S" symbolize -i <(cat "$1") --format json',
    'cat "$1" | "$S" symbolize -i /dev/stdin --format json',
    'cat "$1" | "$S" symbolize -i /proc/self/fd/0 --format json',
    '"$S" symbolize -i /dev/fd/5 --format json 5<"$1"',
    '{ read -r; "$S" symbolize -i /dev/stdin --format json; } < <(echo; cat "$1")',
    'mkfifo "$1.fifo"; cat "$1" >"$1.fifo" & "$S" symbolize -i "$1.fifo" --format json',
])
def test_capture_from_pipes(process, capture, line):
    truth.compare_all(process.stacks, json.loads(bash(line, capture)))


def test_closed_descriptor_as_input(capture):
    done = program.run("symbolize", "-i", "/dev/fd/87")
    assert done.status == program.NOTHING and done.err == "stacker: /dev/fd/87: Bad file descriptor\n"


# Directories.

def test_sysroot_of_a_process(process, capture):
    report = program.symbolized(capture, "--sysroot", f"/proc/{process.pid}/root")
    truth.compare_all(process.stacks, report)


@pytest.mark.parametrize("command", ["symbolize", "onephase"])
def test_debug_directory_of_a_process(tmp_path, command):
    debug = separate_debug(tmp_path)
    with copy_running(tmp_path, strip=True) as (process, path):
        program.capture(process.pid, tmp_path / "c.json")
        asked = ["-i", tmp_path / "c.json"] if command == "symbolize" else ["-p", process.pid]
        done = program.run(command, *asked, "--format", "json", "--debug-dir", f"/proc/{process.pid}/root{debug}")
        assert done.status == 0, done
        truth.compare_all(process.stacks, json.loads(done.out))


def test_debug_directory_of_addr2line(process, tmp_path):
    debug = separate_debug(tmp_path)
    shutil.copy(target.fixture(FIXTURE), tmp_path / "copy")
    subprocess.run(["strip", tmp_path / "copy"], check=True)
    address = re.search(r"([0-9a-f]+) T main\n", subprocess.check_output(["nm", target.fixture(FIXTURE)], text=True))[1]
    done = program.run("addr2line", "-f", "-e", tmp_path / "copy", "--debug-dir", f"/proc/{process.pid}/root{debug}", address)
    assert done.out.splitlines()[0] == "main", done


@pytest.mark.parametrize("option,goes_on", [("--sysroot", False), ("--debug-dir", True)])
def test_directories_that_are_none(capture, tmp_path, option, goes_on):
    done = program.run("symbolize", "-i", capture, option, tmp_path / "none")
    assert done.err == f"stacker: {option} {tmp_path}/none: No such file or directory\n", done
    assert (done.status == program.COMPLETE) == goes_on


# A program that was started by way of the loader.

def loader():
    text = subprocess.check_output(["readelf", "-l", target.fixture(FIXTURE)], text=True)
    return re.search(r"interpreter: (\S+)\]", text)[1]


def test_started_by_the_loader(tmp_path):
    """The kernel calls ld.so the executable. --executable is the module that it is by its build-id."""
    with copy_running(tmp_path, loader()) as (process, path):
        program.capture(process.pid, tmp_path / "c.json")
        modules = json.loads((tmp_path / "c.json").read_text())["modules"]
        assert [module["path"] for module in modules if module.get("executable")] != [str(path)]
        path.rename(tmp_path / "elsewhere")
        lost = program.run("symbolize", "-i", tmp_path / "c.json")
        assert lost.status == program.PARTIAL, lost
        report = program.symbolized(tmp_path / "c.json", "-e", tmp_path / "elsewhere")
        truth.compare_all(process.stacks, report)
        named = program.symbolized(tmp_path / "c.json", "-e", os.path.realpath(loader()), status=program.PARTIAL)
        assert any("copy" in note for note in named["notes"])
    wrong = program.run("symbolize", "-i", tmp_path / "c.json", "-e", target.fixture("threads-clang-O2"))
    assert wrong.status == program.NOTHING and "build-id" in wrong.err and len(wrong.err.splitlines()) == 1


# The command that capture prints.

def hinted(done):
    command = done.out.split("\n  stacker ", 1)[1].strip()
    return subprocess.run(f"{paths.STACKER} {command} --format json", shell=True, capture_output=True, text=True,
                          timeout=program.RUN_S)


@pytest.mark.parametrize("replaced", [False, True])
def test_hint_for_a_deleted_program(tmp_path, replaced):
    with copy_running(tmp_path) as (process, path):
        path.unlink()
        if replaced:
            shutil.copy(target.fixture("threads-clang-O2"), path)
        done = program.run("capture", "-p", process.pid, "-o", tmp_path / "c.json")
        capture = json.loads((tmp_path / "c.json").read_text())
        module = next(module for module in capture["modules"] if module["executable"])
        assert f"The program's file was deleted or replaced (build-id {module['build_id']})." in done.out
        assert "While the process lives" in done.out and f"/proc/{process.pid}/exe" in done.out
        again = hinted(done)
        assert again.returncode == program.COMPLETE, again
        truth.compare_all(process.stacks, json.loads(again.stdout))
    assert module["path"] == capture["executable_path"] == str(path) and module["deleted"] is True
    assert not any(other["deleted"] for other in capture["modules"] if other is not module)
    text = program.run("symbolize", "-i", tmp_path / "c.json", "--any-build-id")
    assert f"Executable: {path} (deleted)\n" in text.out


# Makes the directory $1 the root of a mount namespace of its own, and runs $2 there.
CONTAINED = 'mount --bind "$1" "$1" && cd "$1" && mkdir -p old && pivot_root . old && exec "$2"'


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a mount namespace")
def test_hint_for_a_container(tmp_path):
    """Outside is another program at the same path."""
    path = tmp_path / "program"
    root = tmp_path / "root"
    inside = root / path.relative_to("/")
    inside.parent.mkdir(parents=True)
    shutil.copy(target.fixture("threads-static"), inside)
    shutil.copy(target.fixture("threads-static-pie"), path)
    with target.running("unshare", "-m", "bash", "-c", CONTAINED, "sh", root, path) as process:
        stacks = process.told()
        done = program.run("capture", "-p", process.pid, "-o", tmp_path / "c.json")
        assert "While the process lives" in done.out
        again = hinted(done)
        assert again.returncode == program.COMPLETE, again
        truth.compare_all(stacks, json.loads(again.stdout))
