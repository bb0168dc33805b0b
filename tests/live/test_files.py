"""Which file a module is: deleted, replaced, in memory, oddly named, of another file system's root."""
import json
import os
import re
import shutil
import subprocess
import sys

import paths
import program
import pytest
import target
import truth
import wants


def traced(process, stacks, **how):
    report = program.report(process.pid)
    truth.compare_all(stacks, report, **how)
    return report


@pytest.fixture
def copy(tmp_path):
    """Copies of fixtures under names of the test's choosing."""
    def copy_one(name, to):
        to = os.path.join(os.fsencode(tmp_path), os.fsencode(to))
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy(target.fixture(name), to)
        return to
    return copy_one


def executable_of(report):
    found, = [m for m in report["modules"] if m["executable"]]
    return found


def test_program_deleted(start, copy):
    path = copy("threads-gcc-O2", "program")
    process = start(path)
    stacks = process.told()
    os.unlink(path)
    report = traced(process, stacks)
    assert executable_of(report)["path"] == os.fsdecode(path)
    assert any(m["deleted"] for m in report["memory_maps"] if m["pathname"] == os.fsdecode(path))


def test_program_replaced(start, copy):
    """As an upgrade does it: another program is renamed over it. Its names are never used."""
    path = copy("threads-gcc-O2", "program")
    process = start(path)
    stacks = process.told()
    os.rename(copy("threads-clang-O2", "program.new"), path)
    traced(process, stacks)


def test_library_deleted_and_replaced(start, copy):
    library = copy("plugin-1.so", "plugin.so")
    process = start("plugin-host", library)
    stacks = process.told()
    assert {c.function for c in stacks[0].calls} >= {"plugin_run", "first_version_helper"}
    traced(process, stacks)
    os.rename(copy("plugin-2.so", "plugin.so.new"), library)
    report = traced(process, stacks)
    assert not any("second_version" in (f["function"] or "") for t in report["threads"] for f in t["frames"])
    os.unlink(library)
    traced(process, stacks)


def test_library_replaced_before_symbolizing(start, copy, tmp_path):
    """The file that is there now has another build-id: refused and said, module and offset are kept."""
    library = copy("plugin-1.so", "plugin.so")
    process = start("plugin-host", library)
    process.told()
    program.capture(process.pid, tmp_path / "capture.json")
    os.rename(copy("plugin-2.so", "plugin.so.new"), library)
    report = program.symbolized(tmp_path / "capture.json", status=program.PARTIAL)
    frames = [f for f in report["threads"][0]["frames"] if program.module_name(f) == "plugin.so"]
    assert len(frames) == 2
    assert all(f["function"] is None and int(f["offset"], 16) > 0 for f in frames)
    assert report["partial"] and any("plugin.so" in n and "build-id" in n for n in report["notes"]), report["notes"]


def test_program_in_memory(start):
    """A program without a file: run from a memfd."""
    path = target.fixture("threads-gcc-O2")
    fd = os.memfd_create("a program in memory")
    with open(path, "rb") as file:
        os.write(fd, file.read())
    process = start(path, executable=f"/proc/self/fd/{fd}", pass_fds=(fd,))
    os.close(fd)
    stacks = process.told()
    report = traced(process, stacks)
    assert "a program in memory" in executable_of(report)["path"]


ODD_NAMES = [b"with space", b"with\nnewline", b"with \xff\xfe no utf-8", b"really named so (deleted)",
             b"back\\slash", b"\\012", "ünï".encode(), b"quo'te\"", b"[brackets]", b"tab\there"]


@pytest.mark.parametrize("name", ODD_NAMES, ids=[f"name{i}" for i in range(len(ODD_NAMES))])
def test_odd_names(start, copy, tmp_path, name):
    path = copy("threads-gcc-O2", name)
    process = start(path)
    stacks = process.told()
    done = program.run("onephase", "--pid", process.pid, "--format", "json", text=False)
    assert done.status == program.COMPLETE, done.err
    report = json.loads(done.out.decode("utf-8"))  # valid UTF-8, whatever the path is
    truth.compare_all(stacks, report)
    shown = executable_of(report)["path"]
    assert program.bytes_of(shown) == path
    assert not any(m["deleted"] for m in report["memory_maps"] if m["pathname"] == shown)
    capture = tmp_path / "capture.json"
    done = program.run("capture", "-p", process.pid, "-o", capture, text=False)
    truth.compare_all(stacks, program.symbolized(capture))
    # the command that capture prints works as it is
    command = done.out.decode("utf-8", "surrogateescape").split("\n  stacker ", 1)[1].rstrip("\n")
    done = subprocess.run(os.fsencode(f"{paths.STACKER} {command} --format json"), shell=True, capture_output=True)
    assert done.returncode == program.COMPLETE, done.stderr
    truth.compare_all(stacks, json.loads(done.stdout))


def test_deleted_file_that_was_named_deleted(start, copy):
    path = copy("threads-gcc-O2", "x (deleted)")
    process = start(path)
    stacks = process.told()
    os.unlink(path)
    report = traced(process, stacks)
    assert executable_of(report)["path"] == os.fsdecode(path)


def test_other_root(start, tmp_path):
    """The target's root is another: its files are its own, not those of the same path outside."""
    if os.geteuid() != 0:
        pytest.skip("needs root for chroot")
    outside = tmp_path / "program"
    root = tmp_path / "root"
    inside = root / outside.relative_to("/")
    inside.parent.mkdir(parents=True)
    shutil.copy(target.fixture("threads-static"), inside)
    for other in (None, "threads-static-pie"):
        if other:
            shutil.copy(target.fixture(other), outside)
        with target.running("chroot", root, outside) as process:
            stacks = process.told()
            truth.compare_all(stacks, program.report(process.pid))


# Makes the directory argv[1] the root of a mount namespace of its own, and runs the program argv[2] there.
CONTAINED = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
root = os.fsencode(sys.argv[1])
def call(function, *arguments):
    if function(*arguments) != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
call(libc.unshare, 0x20000)  # CLONE_NEWNS
call(libc.mount, b"none", b"/", None, 0x44000, None)  # MS_PRIVATE | MS_REC
call(libc.mount, root, root, None, 0x1000, None)  # MS_BIND
os.chdir(root)
call(lambda *a: libc.syscall(*a), libc_pivot, b".", b".")
call(libc.umount2, b".", 2)  # MNT_DETACH
os.execv(sys.argv[2], sys.argv[2:])
""".replace("libc_pivot", {"x86_64": "155", "aarch64": "41"}.get(paths.MACHINE, "-1"))


@pytest.mark.parametrize("where", ["by-build-id", "by-debug-link"])
def test_debug_files_in_a_container(tmp_path, where):
    """They are looked for in the target's root, where links mean what they mean to the target. Outside
    is another program at the same path."""
    if os.geteuid() != 0:
        pytest.skip("needs root for a mount namespace")
    root, full, path = tmp_path / "root", target.fixture("threads-static"), tmp_path / "program"
    inside, debug = root / path.relative_to("/"), root / "store" / "program.debug"
    for directory in (inside.parent, debug.parent):
        directory.mkdir(parents=True)
    shutil.copy(target.fixture("threads-static-pie"), path)
    shutil.copy(full, debug)
    subprocess.run(["strip", "-o", inside, full], check=True)
    if where == "by-build-id":
        out = subprocess.run(["readelf", "-n", full], capture_output=True, text=True, check=True).stdout
        build_id = re.search(r"Build ID: ([0-9a-f]+)", out).group(1)
        link = root / "usr/lib/debug/.build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    else:
        subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", inside], check=True)
        link = inside.parent / ".debug" / "program.debug"
    link.parent.mkdir(parents=True)
    link.symlink_to("/store/program.debug")
    beside = path.parent / ".debug" / "program.debug"  # outside
    beside.parent.mkdir()
    shutil.copy(target.fixture("threads-static-pie"), beside)
    with target.running(sys.executable, "-c", CONTAINED, root, path) as process:
        stacks = process.told()
        report = program.report(process.pid)
        truth.compare_all(stacks, report)
        assert not any("refused" in n for n in report["notes"]), report["notes"]  # nothing outside was looked at
        # of another build: refused, and said by the name that leads there from outside
        shutil.copy(target.fixture("threads-static-pie"), debug)
        report = program.report(process.pid)
        assert not any("main" in program.functions(t) for t in report["threads"])
        assert any(f"/proc/{process.pid}/root/" in n and "refused" in n for n in report["notes"]), report["notes"]


def test_mapped_device_is_not_opened():
    """A device in the maps is not opened: opening may block, and reading may do anything."""
    wants.tool("strace")
    code = ("import mmap, os, signal\n"
            "fd = os.open('/dev/zero', os.O_RDWR)\n"
            "m = mmap.mmap(fd, 8192, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)\n"
            "print('ready', flush=True)\nsignal.pause()\n")
    with target.running("/usr/bin/python3", "-c", code) as process:
        process.lines_until("ready")
        process.await_state(process.pid, "S")
        opened = subprocess.run(["strace", "-f", "-e", "trace=open,openat", paths.STACKER, str(process.pid)],
                                capture_output=True, text=True, timeout=program.RUN_S)
        assert opened.returncode == program.COMPLETE
        names = re.findall(r'open(?:at)?\(.*"([^"]*)"', opened.stderr)
        mapped, = [line.split("-")[0] for line in open(f"/proc/{process.pid}/maps") if "/dev/zero" in line]
        assert names and not any("/dev/zero" in n or mapped in n for n in names), names


def test_debug_directory_and_debug_link(start, copy, tmp_path):
    """--debug-dir: a stripped program and its debug file elsewhere, by build-id and by debug link."""
    path = copy("threads-stripped", "bin/program")
    out = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    build_id = re.search(r"Build ID: ([0-9a-f]+)", out).group(1)
    debug = tmp_path / "debug"
    (debug / ".build-id" / build_id[:2]).mkdir(parents=True)
    process = start(path)
    stacks = process.told()
    thread = program.report(process.pid)["threads"][0]
    assert "main" not in program.functions(thread)
    shutil.copy(target.fixture("threads-gcc-O2"), debug / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug")
    truth.compare_all(stacks, program.report(process.pid, "--debug-dir", debug))
    # of another build: refused
    shutil.copy(target.fixture("threads-clang-O2"), debug / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug")
    thread = program.report(process.pid, "--debug-dir", debug, status=(0, 3))["threads"][0]
    assert "main" not in program.functions(thread)


def test_leased_file(tmp_path):
    """Its holder would be told by a signal that ends him: the file is not opened, and the report says why."""
    copy = tmp_path / "leased.so"
    copy.write_bytes(target.fixture("plugin-1.so").read_bytes())
    code = ("import fcntl, mmap, os, signal, sys\nfd = os.open(sys.argv[1], os.O_RDWR)\n"
            "m = mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)\n"
            "fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)\nprint('ready', flush=True)\nsignal.pause()\n")
    with target.running("/usr/bin/python3", "-c", code, copy) as process:
        process.lines_until("ready")
        process.await_state(process.pid, "S")
        report = program.report(process.pid)
        assert report["threads"][0]["end"] == "outermost frame"
        assert process.is_unharmed() and process.process.poll() is None
