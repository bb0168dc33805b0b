"""The sandbox as users meet it: what it leaves usable, and what is said when the kernel does not enforce it."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import paths
import program
import pytest
import wants

AIMS = ["system calls", "files written", "files read", "files cut short", "network", "device controls",
        "signals to other processes", "root's privileges"]


@pytest.fixture
def capture(start, tmp_path):
    process = start("threads-gcc-O2")
    process.told()
    path = tmp_path / "capture.json"
    program.capture(process.pid, path)
    return path


def where_calls_fail(*arguments, inject):
    """Run with a system call made to fail, as on another kernel or in another container."""
    wants.tool("strace")
    command = ["strace", "-qq", "-o", "/dev/null", "-e", f"inject={inject}", paths.STACKER, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=program.RUN_S, check=False)


def test_version_says_what_is_enforced():
    done = program.run("--version", "--verbose")
    assert done.status == program.COMPLETE and done.err == "", done
    assert done.out.startswith(program.run("--version").out)
    lines = done.out.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("sandbox on this kernel"))
    assert os.uname().release in lines[head]
    assert [line[2:30].strip() for line in lines[head + 1:]] == AIMS, done.out


def test_version_says_what_is_not_enforced():
    done = where_calls_fail("--version", "-v", inject="landlock_create_ruleset:error=ENOSYS")
    assert done.returncode == program.COMPLETE
    assert "files written               not enforced\n" in done.stdout and "Landlock version 0" in done.stdout
    done = where_calls_fail("--version", "-v", inject="prctl:error=EPERM")
    assert "system calls                not enforced\n" in done.stdout
    assert "  failed: no_new_privs: Operation not permitted\n" in done.stdout


def test_what_is_not_enforced_is_a_note(capture):
    missing = "landlock_create_ruleset:error=ENOSYS"
    done = where_calls_fail("symbolize", "-i", capture, "--verbose", "--no-cache", inject=missing)
    assert done.returncode == program.COMPLETE and done.stderr == ""
    assert "  the sandbox does not enforce: files written, files read (no Landlock)\n" in done.stdout
    assert "the sandbox does" not in where_calls_fail("symbolize", "-i", capture, inject=missing).stdout
    assert "the sandbox does" not in program.run("symbolize", "-i", capture, "--verbose").out


@pytest.mark.parametrize("inject, says", [
    ("landlock_restrict_self:error=EPERM", "Landlock: Operation not permitted"),
    ("prctl:error=EACCES", "no_new_privs: Permission denied"),
    ("capset:error=EPERM", "capset: Operation not permitted"),
])
def test_what_fails_is_said(capture, inject, says):
    """Not only with --verbose: this should not happen. The report is made all the same."""
    done = where_calls_fail("symbolize", "-i", capture, inject=inject)
    assert done.stderr == f"stacker: the sandbox is incomplete: {says}\n"
    assert done.returncode == program.COMPLETE and " in main at " in done.stdout


# Debug files and outputs may be anywhere.

PLACES = ["/home", "/mnt", "/opt", "/srv", "/var/tmp", "/dev/shm", "/run", "/run/user", "/tmp", "."]


@pytest.fixture(params=PLACES)
def place(request):
    if not os.access(request.param, os.W_OK):
        pytest.skip(f"{request.param} cannot be written")
    with tempfile.TemporaryDirectory(prefix="stacker test ", dir=request.param) as path:
        yield pathlib.Path(os.path.relpath(path) if request.param == "." else path)


def stripped(place, debug):
    """A program with its debug file in another directory."""
    source = place / "prog.c"
    source.write_text("int twice(int x)\n{\n\treturn 2 * x;\n}\nint main(void) { return twice(0); }\n")
    built = place / "prog"
    subprocess.run(["gcc", "-g", "-O0", "-o", built, source], check=True)
    symbols = subprocess.run(["nm", built], check=True, capture_output=True, text=True).stdout
    address = next(line.split()[0] for line in symbols.splitlines() if line.endswith(" T twice"))
    subprocess.run(["objcopy", "--only-keep-debug", built, debug / "prog.dbg"], check=True)
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug / 'prog.dbg'}", built], check=True)
    return built, address


def test_debug_file_beside_the_program(place):
    built, address = stripped(place, place)
    done = program.run("addr2line", "-f", "-e", built, address)
    assert done.out.startswith("twice\n") and done.out.endswith("prog.c:2\n"), done


def test_debug_file_in_a_directory_that_was_named(place, tmp_path):
    built, address = stripped(tmp_path, place)
    done = program.run("addr2line", "-f", "-e", built, "--debug-dir", place, address)
    assert done.out.startswith("twice\n") and done.out.endswith("prog.c:2\n"), done


def test_sysroot(place, capture):
    """Its own /proc is none of it."""
    shutil.copy(paths.STACKER, place / "stacker")
    done = program.run("symbolize", "-i", capture, "--sysroot", place, "--no-maps")
    assert "No such file or directory" in done.out and "Permission denied" not in done.out, done


def test_output(place, capture):
    done = program.run("symbolize", "-i", capture, "-o", place / "report")
    assert done.status == program.COMPLETE and done.err == "", done
    assert " in main at " in (place / "report").read_text(encoding="utf-8")
    assert [path.name for path in place.iterdir()] == ["report"]


def test_split_debug_file(place):
    """Found by the build directory that the program names, which is relative or anywhere."""
    source = place / "prog.c"
    source.write_text("int twice(int x)\n{\n\treturn 2 * x;\n}\nint main(void) { return twice(0); }\n")
    subprocess.run(["gcc", "-g", "-gdwarf-5", "-gsplit-dwarf", "-O0", "-c", "-o", "prog.o", "prog.c"], check=True, cwd=place)
    subprocess.run(["gcc", "-o", "prog", "prog.o"], check=True, cwd=place)
    symbols = subprocess.run(["nm", place / "prog"], check=True, capture_output=True, text=True).stdout
    address = next(line.split()[0] for line in symbols.splitlines() if line.endswith(" T twice"))
    done = program.run("addr2line", "-f", "-e", place / "prog", address)
    assert done.out.startswith("twice\n") and done.out.endswith("prog.c:2\n"), done


# What it may write.

def rules(*arguments):
    """The rules that let something be made, and what system calls the program made afterwards to name a file."""
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    with tempfile.NamedTemporaryFile(mode="r", encoding="utf-8") as log:
        subprocess.run(["strace", "-qq", "-y", "-o", log.name, "-e", "signal=none",
                        "-e", "trace=landlock_add_rule,linkat,renameat,renameat2,rename", paths.STACKER,
                        *map(str, arguments)], check=True, capture_output=True, timeout=program.RUN_S)
        lines = log.read().splitlines()
    return [line for line in lines if "MAKE_REG" in line], [line for line in lines if "landlock" not in line]


@pytest.mark.parametrize("exists", [False, True])
def test_no_directory_may_be_written_for_the_output(capture, tmp_path, exists):
    """Another process gives it its name: it does so also beside files that are there."""
    out = tmp_path / "report"
    if exists:
        out.write_text("old", encoding="utf-8")
    writable, naming = rules("symbolize", "-i", capture, "-o", out, "--no-cache")
    assert writable == [] and naming == []
    assert " in main at " in out.read_text(encoding="utf-8")


def test_the_cache_may_be_written(capture, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", os.fspath(tmp_path))
    writable, _ = rules("symbolize", "-i", capture)
    assert len(writable) == 1 and f"<{tmp_path}/stacker>" in writable[0], writable
