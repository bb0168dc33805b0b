"""The command line: exit statuses, messages, files that are written whole or not at all."""
import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import stat
import subprocess
import tempfile

import paths
import program
import pytest
import target
import truth
import wants

NOBODY = 65534
COMMANDS = ["capture", "symbolize", "onephase", "addr2line", "cache"]


def fails(done, status, *texts):
    """One line on stderr that says all of these, nothing on stdout, and the exit status."""
    assert done.status == status, done
    assert done.out == "", done
    lines = done.err.splitlines()
    if status == program.USAGE and len(lines) == 2:
        assert lines[1].startswith("Try 'stacker"), done
    else:
        assert len(lines) == 1, done
    assert lines[0].startswith("stacker: "), done
    for text in texts:
        assert text in lines[0], done


@pytest.fixture
def process(start):
    started = start("threads-gcc-O2")
    started.stacks = started.told()
    return started


@pytest.fixture
def capture(process, tmp_path):
    path = tmp_path / "capture.json"
    program.capture(process.pid, path)
    return path


# Asking for help, and asking wrongly.

def test_version():
    done = program.run("--version")
    assert done.status == 0 and re.match(r"stacker \d+\.\d+\.\d+\n", done.out) and done.err == ""
    assert program.run("-V").out == done.out and program.run("capture", "--version").out == done.out


def test_help():
    done = program.run("--help")
    assert done.status == 0 and done.err == ""
    for command in COMMANDS:
        assert command in done.out
        own = program.run(command, "--help")
        assert own.status == 0 and own.err == "" and own.out.startswith(f"Usage: stacker {command} ")
        assert own.out == program.run(command, "-h").out
        columns = {re.search(r"--\S+( \S+)?  +", line).end() for line in own.out.splitlines() if "  --" in line or ", --" in line}
        assert len(columns) == 1, own.out
    assert max(len(line) for line in done.out.splitlines()) <= 100


@pytest.mark.parametrize("arguments,text", [
    ((), "command is missing"),
    (("frobnicate",), "frobnicate"),
    (("capture",), "--output"),
    (("capture", "--pid", "1"), "--output"),
    (("capture", "--output", "x"), "--pid"),
    (("onephase",), "--pid"),
    (("onephase", "--pid"), "--pid"),
    (("onephase", "--pid", "abc"), "abc"),
    (("onephase", "--pid", "-5"), "-5"),
    (("onephase", "--pid", "0"), "0"),
    (("onephase", "--pid", "99999999999999999999"), "99999999999999999999"),
    (("onephase", "--pid", "1", "2"), "2"),
    (("onephase", "--pid", "1", "-p", "2"), "given twice: 1 and 2"),
    (("onephase", "--pid", "1", "--output", ""), "output is empty"),
    (("onephase", "--nonsense"), "--nonsense"),
    (("onephase", "-Z"), "-Z"),
    (("onephase", "--pid", "1", "--format", "xml"), "xml"),
    (("onephase", "--pid", "1", "--timeout", "soon"), "soon"),
    (("onephase", "--pid", "1", "--quiet=yes"), "--quiet"),
    (("onephase", "--pid", "1", "--tid", "x"), "x"),
    (("onephase", "x\x1b[31m"), r"x\x1b[31m"),
    (("symbolize",), "--input"),
    (("symbolize", "--input", "x", "y"), "y"),
    (("symbolize", "--pid", "1"), "--pid"),
], ids=lambda value: " ".join(value).replace("\x1b", "^") if isinstance(value, tuple) else "")
def test_usage(arguments, text):
    fails(program.run(*arguments), program.USAGE, text)


def test_short_forms_are_the_same(process):
    """-p PID, -pPID, --pid=PID, an abbreviated option, the plain number, and all of them without the command."""
    def names(*arguments):
        done = program.run(*arguments, "--format", "json", "--no-maps")
        assert done.status == 0, done
        return [program.functions(t) for t in json.loads(done.out)["threads"]]
    pid = str(process.pid)
    wanted = names("onephase", "--pid", pid)
    for form in (["onephase", "-p", pid], ["onephase", f"-p{pid}"], ["onephase", f"--pid={pid}"], ["onephase", pid], [pid],
                 ["-p", pid], [f"-p{pid}"], ["--pid", pid], [f"--pid={pid}"], ["--no-registers", pid], ["--timeout", "900", pid]):
        assert names(*form) == wanted, form


# Processes that cannot be traced.

def test_no_such_process():
    child = subprocess.Popen(["true"])
    child.wait()
    fails(program.run("onephase", "--pid", child.pid), program.NOTHING, f"no process with pid {child.pid}")


def test_kernel_thread():
    with contextlib.suppress(OSError):
        if pathlib.Path("/proc/2/comm").read_text() == "kthreadd\n":
            fails(program.run("onephase", "--pid", 2), program.NOTHING, "kthreadd", "kernel thread")
            return
    pytest.skip("no kernel thread to be seen here")


def test_thread_id_instead_of_process_id(process):
    other = [s.tid for s in process.stacks if s.tid != process.pid][0]
    fails(program.run("onephase", "--pid", other), program.NOTHING, f"thread of process {process.pid}",
          f"--pid {process.pid}")


def test_32_bit_program(start):
    try:
        process = start("bits32")
    except OSError as error:
        pytest.skip(f"this kernel runs no 32-bit programs: {error}")
    process.lines_until("ready")
    fails(program.run("onephase", "--pid", process.pid), program.NOTHING, "32-bit")
    assert process.is_unharmed()


def test_itself():
    """A process that asks for its own parent is fine; a shell can trace itself through exec."""
    done = subprocess.run(["sh", "-c", f'exec "{paths.STACKER}" onephase --pid $$'], capture_output=True, text=True,
                          timeout=program.RUN_S)
    assert done.returncode == program.NOTHING and "is this stacker itself" in done.stderr and done.stdout == ""


@pytest.fixture
def for_all():
    """A directory that everyone may read, with stacker in it."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    directory = tempfile.mkdtemp(prefix="stacker-test-")
    os.chmod(directory, 0o755)
    shutil.copy(paths.STACKER, os.path.join(directory, "stacker"))
    yield pathlib.Path(directory)
    shutil.rmtree(directory)


def as_nobody(*command):
    return ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", *map(str, command)]


def run_as_nobody(directory, *arguments):
    done = subprocess.run(as_nobody(directory / "stacker", *arguments), capture_output=True, text=True,
                          timeout=program.RUN_S, cwd="/")
    return program.Run(arguments, done)


PYTHON_WAITS = "print('ready', flush=True)\nimport signal\nsignal.pause()\n"
PYTHON_HIDES = "import ctypes\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n" + PYTHON_WAITS


def test_process_of_somebody_else(for_all, process):
    fails(run_as_nobody(for_all, "onephase", "--pid", process.pid), program.NOTHING,
          f"process {process.pid} belongs to root (uid 0)", "sudo")
    assert process.is_unharmed()


def test_own_process_needs_no_root(for_all):
    with target.running(*as_nobody("/usr/bin/python3", "-c", PYTHON_WAITS), cwd="/") as process:
        process.lines_until("ready")
        process.await_state(process.pid, "S")
        done = run_as_nobody(for_all, "onephase", "--pid", process.pid, "--format", "json")
        assert done.status == program.COMPLETE, done
        assert json.loads(done.out)["threads"][0]["end"] == "outermost frame"
        assert process.is_unharmed()


def test_process_that_is_not_dumpable(for_all):
    with target.running(*as_nobody("/usr/bin/python3", "-c", PYTHON_HIDES), cwd="/") as process:
        process.lines_until("ready")
        fails(run_as_nobody(for_all, "onephase", "--pid", process.pid), program.NOTHING, "not dumpable", "sudo")
        assert program.run("onephase", "--pid", process.pid).status == program.COMPLETE


def test_root_without_the_capability(for_all, process):
    done = subprocess.run(["setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace", for_all / "stacker",
                           "onephase", "--pid", str(process.pid)], capture_output=True, text=True, timeout=program.RUN_S)
    fails(program.Run(["without CAP_SYS_PTRACE"], done), program.NOTHING, "CAP_SYS_PTRACE")


def test_yama(for_all):
    scope = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
    if not scope.exists():
        pytest.skip("this kernel has no Yama")
    before = scope.read_text()
    if before.strip() == "3":
        pytest.skip("Yama is at its end")
    scope.write_text("1")
    try:
        with target.running(*as_nobody("/usr/bin/python3", "-c", PYTHON_WAITS), cwd="/") as process:
            process.lines_until("ready")
            fails(run_as_nobody(for_all, "onephase", "--pid", process.pid), program.NOTHING, "ptrace_scope is 1",
                  "/proc/sys/kernel/yama/ptrace_scope")
    finally:
        scope.write_text(before)


# Files that are not what they should be.

def test_executable_is_a_script(capture, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\nexec sleep 100\n")
    fails(program.run("symbolize", "-i", capture, "-e", script), program.NOTHING, "script", "not an ELF file")


def test_executable_does_not_exist(capture, tmp_path):
    fails(program.run("symbolize", "-i", capture, "-e", tmp_path / "none"), program.NOTHING, "none", "No such file")


@pytest.mark.parametrize("thing", ["/", "/dev/null"])
def test_executable_is_no_file(capture, thing):
    fails(program.run("symbolize", "-i", capture, "-e", thing, timeout=10), program.NOTHING, thing, "not a regular file")


def test_executable_of_another_architecture(capture):
    fails(program.run("symbolize", "-i", capture, "-e", target.fixture("threads-other-machine")), program.NOTHING,
          "threads-other-machine is for machine 243, the process is ")
    if paths.STACKER_OTHER.exists():
        fails(program.run("symbolize", "-i", capture, "-e", paths.STACKER_OTHER), program.NOTHING,
              f"{paths.STACKER_OTHER} is for ", "the process is ")


def test_executable_with_another_build_id(capture, process):
    other = target.fixture("threads-clang-O2")
    done = program.run("symbolize", "-i", capture, "-e", other)
    fails(done, program.NOTHING, "build-id")
    assert len(re.findall(r"[0-9a-f]{40}", done.err)) == 2, done
    same = target.fixture("threads-other-build-id")
    fails(program.run("symbolize", "-i", capture, "-e", same), program.NOTHING, "build-id")
    report = program.symbolized(capture, "--executable", same, "--any-build-id", status=program.COMPLETE)
    truth.compare_all(process.stacks, report)
    assert any("names may be wrong" in note and len(re.findall(r"[0-9a-f]{40}", note)) == 2 for note in report["notes"])


@pytest.mark.parametrize("text,says", [
    ("", "empty"),
    ("this is no JSON", "JSON"),
    ("[1, 2, 3]", ""),
    ("{}", ""),
    ('{"format": "other"}', "other"),
    ('{"format": "stacker-capture", "version": 1}', ""),
    ('{"format": "stacker-report", "version": 1}', ""),
    ("\x00\x01\x02", "JSON"),
    ("[" * 100000, ""),
], ids=["empty", "text", "array", "object", "other-format", "no-threads", "report", "binary", "deep"])
def test_capture_file_that_is_none(tmp_path, text, says):
    path = tmp_path / "bad.json"
    path.write_text(text)
    fails(program.run("symbolize", "-i", path), program.NOTHING, "bad.json", says)


def test_capture_file_of_a_newer_version(capture):
    data = json.loads(capture.read_text())
    data["version"] = 99
    capture.write_text(json.dumps(data))
    fails(program.run("symbolize", "-i", capture), program.NOTHING, "version", "newer")


def test_capture_file_cut_short(capture, tmp_path):
    """Anywhere: always one line that says so."""
    text = capture.read_bytes()
    path = tmp_path / "cut.json"
    for part in range(1, 40):
        path.write_bytes(text[:len(text) * part // 40])
        fails(program.run("symbolize", "-i", path), program.NOTHING, "cut.json")


def test_capture_file_from_elsewhere(capture, process):
    """Only the addresses, as plain integers, and no more than a few fields."""
    data = json.loads(capture.read_text())
    own = {k: data[k] for k in ("format", "version", "architecture", "process_id", "memory_maps")}
    for mapping in own["memory_maps"]:
        del mapping["module"]
    own["threads"] = [{"tid": t["tid"], "thread_name": t["thread_name"], "state": t["state"],
                       "stack_trace": [int(pc, 16) for pc in t["stack_trace"]]} for t in data["threads"]]
    capture.write_text(json.dumps(own))
    report = program.symbolized(capture)
    for stack in process.stacks:
        truth.compare(stack, program.thread_of(report, stack.tid), complete=False)


def test_capture_file_does_not_exist(tmp_path):
    fails(program.run("symbolize", "-i", tmp_path / "none.json"), program.NOTHING, "none.json", "No such file")


def test_machine_without_the_files(capture, tmp_path):
    """Nothing to name functions with: module and offset are kept, and the status says partial."""
    text = capture.read_text().replace(str(paths.FIXTURES), "/nowhere")
    capture.write_text(text)
    done = program.run("symbolize", "-i", capture, "--format", "json")
    assert done.status == program.PARTIAL, done
    report = json.loads(done.out)
    frames = [f for t in report["threads"] for f in t["frames"] if f["module"] and "nowhere" in f["module"]]
    assert frames and all(f["function"] is None and f["offset"] and f["build_id"] for f in frames)
    assert any("/nowhere/threads-gcc-O2" in n for n in report["notes"]), report["notes"]
    text = program.run("symbolize", "-i", capture)
    assert text.status == program.PARTIAL and re.search(r"in \?\? \(threads-gcc-O2\+0x[0-9a-f]+\)", text.out), text


def test_sysroot(capture, process, tmp_path):
    """The files under another root: as on the machine that the capture comes from."""
    for module in json.loads(capture.read_text())["modules"]:
        if module["path"].startswith("/"):
            copy = tmp_path / "root" / module["path"][1:]
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(module["path"], copy)
    report = program.symbolized(capture, "--sysroot", tmp_path / "root")
    truth.compare_all(process.stacks, report)


# Writing.

def no_leftovers(directory, *names):
    assert sorted(os.listdir(directory)) == sorted(names)


def test_capture_file_is_private_and_whole(process, tmp_path):
    path = tmp_path / "new"
    path.mkdir()
    os.umask(0)
    try:
        program.capture(process.pid, path / "capture.json")
    finally:
        os.umask(0o022)
    assert stat.S_IMODE((path / "capture.json").stat().st_mode) == 0o600
    no_leftovers(path, "capture.json")
    (path / "capture.json").write_text("old")
    (path / "capture.json").chmod(0o640)
    program.capture(process.pid, path / "capture.json")
    assert stat.S_IMODE((path / "capture.json").stat().st_mode) == 0o640
    no_leftovers(path, "capture.json")


def test_failed_capture_leaves_the_old_file(tmp_path):
    path = tmp_path / "capture.json"
    path.write_text("old")
    done = program.run("capture", "--pid", 2 ** 22 + 5, "--output", path)
    fails(done, program.NOTHING)
    assert path.read_text() == "old"
    no_leftovers(tmp_path, "capture.json")


@pytest.mark.parametrize("path,status,says", [
    ("/nowhere/at/all.json", program.NOTHING, "No such file"),
    ("/proc/version/x", program.NOTHING, "Not a directory"),
    ("/proc/version", program.NOTHING, "a new file cannot be made there"),
    ("/", program.USAGE, "directory"),
])
def test_unwritable_output(process, path, status, says):
    fails(program.run("capture", "-p", process.pid, "-o", path), status, path, says)
    fails(program.run("onephase", "-p", process.pid, "-o", path), status, path, says)


def test_directory_without_permission(for_all, tmp_path):
    with target.running(*as_nobody("/usr/bin/python3", "-c", PYTHON_WAITS), cwd="/") as process:
        process.lines_until("ready")
        fails(run_as_nobody(for_all, "capture", "-p", process.pid, "-o", for_all / "x.json"), program.NOTHING,
              "x.json", "Permission denied")
        assert os.listdir(for_all) == ["stacker"]


def test_full_disk(process, tmp_path):
    fails(program.run("capture", "-p", process.pid, "-o", "/dev/full"), program.NOTHING, "No space left")
    program.capture(process.pid, tmp_path / "c.json")
    commands = [["onephase", "-p", process.pid], ["onephase", "-p", process.pid, "--format", "json"],
                ["onephase", "-p", process.pid, "-o", "/dev/stdout"], ["capture", "-p", process.pid, "-o", "-"],
                ["capture", "-p", process.pid, "-o", tmp_path / "again.json"], ["symbolize", "-i", tmp_path / "c.json"],
                ["addr2line", "-e", paths.STACKER, "0x1000"], ["cache"], ["--help"], ["--version"]]
    for command in commands:
        with open("/dev/full", "wb") as full:
            done = program.run(*command, stdout=full)
        assert done.status == program.NOTHING, command
        assert done.err.startswith("stacker: writing") and done.err.count("\n") == 1, (command, done.err)


def test_small_file_system(process, tmp_path):
    """A disk that gets full in the middle: an error, and nothing is left behind."""
    directory = tmp_path / "small"
    directory.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "none", directory], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("cannot mount here")
    try:
        fails(program.run("capture", "-p", process.pid, "-o", directory / "x.json"), program.NOTHING, "No space left")
        no_leftovers(directory)
        done = program.run("onephase", "-p", process.pid, "-o", directory / "x.txt")
        assert done.status == program.NOTHING and "No space left" in done.err
        no_leftovers(directory)
    finally:
        subprocess.run(["umount", directory], check=True)


def test_interrupted_while_writing_leaves_nothing(process, tmp_path):
    """SIGTERM before the rename: the temporary file goes too."""
    fifo = tmp_path / "maps"
    os.mkfifo(fifo)
    for rounds in range(8):
        running = subprocess.Popen([paths.STACKER, "capture", "-p", str(process.pid), "-o", tmp_path / "x.json"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(rounds * 20000):
            pass
        running.send_signal(signal.SIGTERM)
        status = running.wait(program.RUN_S)
        left = sorted(set(os.listdir(tmp_path)) - {"maps"})
        assert left == (["x.json"] if status == 0 else []) or (status == -signal.SIGTERM and left == ["x.json"]), left
        with contextlib.suppress(FileNotFoundError):
            json.loads((tmp_path / "x.json").read_text())
            (tmp_path / "x.json").unlink()


def test_capture_to_stdout(process):
    done = program.run("capture", "-p", process.pid, "-o", "-")
    assert done.status == 0 and json.loads(done.out)["format"] == "stacker-capture"
    assert "Found 11 threads" in done.err
    quiet = program.run("capture", "-p", process.pid, "-o", "-", "--quiet")
    assert quiet.err == "" and json.loads(quiet.out)


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_capture_from_stdin(capture, process, name):
    with open(capture, "rb") as file:
        done = program.run("symbolize", "-i", name, "--format", "json", stdin=file)
    assert done.status == 0, done
    truth.compare_all(process.stacks, json.loads(done.out))


def test_capture_from_a_pipe(process):
    """Of more than the first guess at its size."""
    with subprocess.Popen([paths.STACKER, "capture", "-p", str(process.pid), "-o", "-", "--quiet", "--with-stacks"],
                          stdout=subprocess.PIPE) as capturing:
        done = program.run("symbolize", "-i", "-", "--format", "json", stdin=capturing.stdout)
    assert capturing.returncode == 0 and done.status == 0, done
    truth.compare_all(process.stacks, json.loads(done.out))


@pytest.mark.parametrize("text", ["", "{", "[]"])
def test_pipe_without_a_capture(text):
    done = program.run("symbolize", "-i", "-", input=text)
    assert done.status == 1 and done.err.startswith("stacker: standard input: "), done
    assert len(done.err.splitlines()) == 1


def test_capture_prints_the_next_command(process, tmp_path):
    path = tmp_path / "it's a capture.json"
    done = program.run("capture", "-p", process.pid, "-o", path)
    assert done.status == 0 and done.err == "", done
    command = done.out.splitlines()[-1].strip()
    assert command.startswith("stacker symbolize --input ")
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    os.symlink(paths.STACKER, tmp_path / "stacker")
    done = subprocess.run(f"{command} --format json", shell=True, capture_output=True, env=env, check=True)
    truth.compare_all(process.stacks, json.loads(done.stdout))


def test_report_to_a_file(process, tmp_path):
    done = program.run("onephase", "-p", process.pid, "-o", tmp_path / "report.txt")
    assert done.status == 0 and done.out == "" and done.err == ""
    assert "=== Thread 1 (TID:" in (tmp_path / "report.txt").read_text()


# The text report.

def test_text_report(process):
    done = program.run("onephase", "-p", process.pid)
    assert done.status == 0 and done.err == "", done
    lines = done.out.splitlines()
    assert re.fullmatch(r"Stacker v\d+\.\d+\.\d+ - Multi-architecture stack tracer", lines[0])
    for pattern in (r"^Target architecture: (x86_64|aarch64)$", rf"^Attaching to process {process.pid}$",
                    r"^Found 11 threads$", r"^Process was stopped for: \d+(\.\d+)?(ns|µs|ms|s)$",
                    r"^=== Memory Maps ===$", r"^Symbolizing stack traces\.\.\.$",
                    rf"^=== Thread 1 \(TID: {process.pid}, Name: 'threads-gcc-O2'\) ===$",
                    r"^  Registers \((x86_64|aarch64)\):$", r"^  #\d+: 0x[0-9a-f]{16} in in_pause at .*threads\.c:\d+$",
                    r"^  \[stack ends: outermost frame\]$"):
        assert re.search(pattern, done.out, re.MULTILINE), (pattern, done.out[:3000])
    without = program.run("onephase", "-p", process.pid, "--no-registers", "--no-maps")
    assert "Registers" not in without.out and "Memory Maps" not in without.out and "in_pause" in without.out
    verbose = program.run("onephase", "-p", process.pid, "--verbose")
    assert re.search(r"\bcfi\b", verbose.out)


def test_no_demangle(start):
    process = start("inlines-cpp-gcc-O2")
    process.told()
    names = [n for t in program.report(process.pid, "--no-demangle")["threads"] for n in program.functions(t) if n]
    assert any(n.startswith("_ZN4shop") for n in names), names


def test_no_progress_without_a_terminal(process):
    assert program.run("onephase", "-p", process.pid).err == ""


def on_a_terminal(*arguments):
    """What stands on the terminal that is stderr."""
    ours, theirs = os.openpty()
    try:
        done = program.run(*arguments, stderr=theirs)
    finally:
        os.close(theirs)
    assert done.status == 0
    shown = b""
    with os.fdopen(ours, "rb", buffering=0) as terminal, contextlib.suppress(OSError):
        while piece := terminal.read(4096):  # EIO when the other side is closed and all is read
            shown += piece
    return shown


def test_progress_on_a_terminal(process, tmp_path):
    """On a terminal progress is shown, and wiped away; --quiet shows none."""
    output = ["-o", tmp_path / "report"]
    for more, is_shown in ((output, True), (output + ["--quiet"], False)):
        shown = on_a_terminal("onephase", "-p", process.pid, *more)
        assert (shown != b"") == is_shown
        assert not is_shown or shown.endswith(b"\r\x1b[K")


def test_no_progress_beside_a_pager(process):
    """`stacker PID | less`: the pager has the terminal, and stdout is a pipe."""
    assert on_a_terminal("onephase", "-p", process.pid) == b""
    assert on_a_terminal("onephase", "-p", process.pid, "-o", "-") == b""


@pytest.mark.parametrize("command", ["onephase", "onephase json", "capture", "symbolize", "addr2line"])
def test_closed_pipe(tmp_path, start, command):
    """`| head`: ends as other programs do, without a word; the process runs on."""
    process = start("threads-gcc-O2")
    process.told()
    program.capture(process.pid, tmp_path / "c.json")
    reader, writer = os.pipe()
    os.close(reader)
    arguments = {
        "onephase": ["-p", process.pid],
        "onephase json": ["-p", process.pid, "--format", "json"],
        "capture": ["-p", process.pid, "-o", "-"],
        "symbolize": ["-i", tmp_path / "c.json"],
        "addr2line": ["-e", target.fixture("threads-gcc-O2"), "0x1", "main"],
    }[command]
    done = program.run(command.split()[0], *arguments, stdout=writer)
    os.close(writer)
    assert done.status == -signal.SIGPIPE and done.err == "", done
    process.await_unharmed()


@pytest.mark.parametrize("command", ["onephase", "capture"])
def test_sandbox_before_files_are_read(tmp_path, start, command):
    """Once the process is let go, and before the first module is mapped, the sandbox is entered."""
    wants.tool("strace")
    process = start("threads-gcc-O2")
    process.told()
    log = tmp_path / "log"
    subprocess.run(["strace", "-o", log, "-e", "trace=prctl,seccomp,mmap", paths.STACKER, command, "-p", str(process.pid),
                    "-o", tmp_path / "out"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    calls = log.read_text().splitlines()
    entered = next(i for i, call in enumerate(calls) if "PR_SET_SECCOMP" in call or "SECCOMP_SET_MODE_FILTER" in call)
    # Before it only build-ids are looked at, of files whose mapping is given back.
    after = [call for call in calls[entered:] if "PROT_READ, MAP_PRIVATE, " in call]
    assert len(after) >= 3, "the program, the C library and the dynamic linker"


@pytest.mark.parametrize("limit", [4, 5, 6, 7])
def test_too_few_open_files(process, limit):
    """It is told as what it is, not as a process that is gone."""
    done = program.run("onephase", "-p", process.pid,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
    assert done.status == program.NOTHING and "too many open files" in done.err, done


def test_files_that_frames_need_come_first():
    """gdb maps some sixty libraries, most of them before the C library. With few descriptors the stacks are the same."""
    wants.tools("gdb")

    def stacks(limit):
        done = program.run("onephase", "-p", process.pid, "--format", "json",
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
        assert done.status == program.COMPLETE, done
        return {t["tid"]: [(f["pc"], f["function"]) for f in t["frames"]] for t in json.loads(done.out)["threads"]}
    with target.running("gdb", "-q", "-nx", "-ex", "echo ready\\n") as process:
        process.lines_until("ready")
        process.await_state(process.pid, "S")
        assert len(pathlib.Path(f"/proc/{process.pid}/maps").read_text().splitlines()) > 100
        assert stacks(32) == stacks(1024)


def test_few_open_files_are_not_all_there_may_be(process):
    """The limit that a shell sets is raised as far as it may be."""
    done = program.run("onephase", "-p", process.pid, "--format", "json",
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (4, 1024)))
    assert done.status == program.COMPLETE, done
    truth.compare_all(process.stacks, json.loads(done.out))
