"""The capture without a stop: what it shows, that nothing can be noticed of it, and where it cannot be had."""
import contextlib
import errno
import os
import pathlib
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import paths
import program
import pytest
import target
import truth
import wants

BPF = ("--method", "bpf")
CAPTURES = 1000
NOBODY = 65534
# For what comes by chance; nearly always at once.
PATIENCE_S = 60
# enum bpf_cmd of linux/bpf.h
ANY_COMMAND, PROG_LOAD, LINK_CREATE, ITER_CREATE = -1, 5, 28, 33


def without_a_stop(report, threads=None):
    """The report says, in all its places, that nothing was stopped."""
    facts = report["capture"]
    assert facts["method"] == "bpf" and facts["method_note"] is None
    assert facts["stopped_ns"] == facts["threads_stopped"] == facts["held_longest_ns"] == 0, facts
    assert all(t["held_ns"] == 0 for t in report["threads"])
    if threads is not None:
        assert facts["threads_untouched"] == threads and facts["threads_left_out"] == 0, facts


def stacks_of(report):
    return {t["tid"]: [(f["pc"], f["function"], f["file"], f["line"], f["inlined"]) for f in t["frames"]] + [t["end"]]
            for t in report["threads"]}


# What it shows.

@pytest.mark.parametrize("name", ["threads-gcc-O2", "threads-musl-static", "threads-nocfi-fp"])
def test_same_stacks_as_ptrace(start, bpf, name):
    process = start(name)
    stacks = process.told()
    by_bpf = program.report(process.pid, *BPF)
    by_ptrace = program.report(process.pid, "--method", "ptrace")
    without_a_stop(by_bpf, len(stacks))
    assert by_bpf["capture"]["one_instant"] is True and by_ptrace["capture"]["one_instant"] is True
    assert stacks_of(by_bpf) == stacks_of(by_ptrace)
    if name == "threads-gcc-O2":
        truth.compare_all(stacks, by_bpf)


def test_same_registers_as_ptrace(start, bpf):
    """All but the result of the system call, which a stop makes visible, and what entry code overwrites."""
    process = start("threads-gcc-O2")
    process.told()
    by_bpf, by_ptrace = (program.report(process.pid, "--method", m) for m in ("bpf", "ptrace"))
    for one, other in zip(by_bpf["threads"], by_ptrace["threads"]):
        differ = {n for n in one["registers"] if one["registers"][n] != other["registers"][n]}
        assert differ <= {"RAX", "ORIG_RAX", "X0"}, (differ, one["thread_name"])
        assert (one["state"], one["syscall"], one["stack_missing"]) == (other["state"], other["syscall"], 0)


def test_one_program_is_loaded(start, bpf, tmp_path):
    """To load one takes longer than all else that a capture of a small process does: it is looked, and glanced, with one."""
    wants.tool("strace")
    process = start("threads-gcc-O2")
    process.told()
    log = tmp_path / "log"
    subprocess.run(["strace", "-f", "-o", log, "-e", "trace=bpf", program.paths.STACKER, "capture", "-p", str(process.pid), "-o",
                    tmp_path / "capture.json", *BPF], stdout=subprocess.DEVNULL, timeout=program.RUN_S, check=True)
    calls = re.findall(r"bpf\((\w+)", log.read_text())
    assert calls.count("BPF_PROG_LOAD") == calls.count("BPF_LINK_CREATE") == 1 and calls.count("BPF_ITER_CREATE") == 2, calls
    loaded, = re.findall(r"BPF_PROG_LOAD.* insn_cnt=(\d+)", log.read_text())
    assert int(loaded) < 200, "a generated loader of two programs"


def test_thousand_threads(start, bpf):
    process = start("many", "1000")
    stacks = process.told()
    report = program.report(process.pid, *BPF)
    without_a_stop(report, 1001)
    truth.compare_all(stacks, report)


def test_text_says_it(start, bpf):
    process = start("threads-gcc-O2")
    process.told()
    out = program.run("onephase", "-p", process.pid, *BPF, "--no-maps").out
    assert re.search(r"^Process was stopped for: 0ns\nCapture method: bpf\nThreads read without a stop: 11, stopped: 0\n"
                     r"All stacks are of one instant: yes$", out, re.MULTILINE), out[:1000]


def test_auto_is_bpf_where_it_can_be_had(start, bpf):
    process = start("threads-gcc-O2")
    process.told()
    assert program.report(process.pid)["capture"]["method"] == "bpf"
    assert program.report(process.pid, "--rolling")["capture"]["method"] == "ptrace-rolling"


def test_chosen_threads(start, bpf):
    process = start("threads-gcc-O2")
    stacks = process.told()
    chosen = stacks[1:4]
    report = program.report(process.pid, *BPF, *(o for s in chosen for o in ("--tid", s.tid)))
    truth.compare_all(chosen, report)
    without_a_stop(report, 3)


def test_running_threads(start, bpf):
    """Threads that compute: read while they wait for a processor, or held, they alone."""
    process = start("busy", "3")
    stacks = process.told()
    for _ in range(20):
        report = program.report(process.pid, *BPF)
        facts = report["capture"]
        assert facts["threads_untouched"] + facts["threads_stopped"] == 4 and facts["threads_untouched"] >= 1, facts
        assert (facts["stopped_ns"] == 0) == (facts["threads_stopped"] == 0)
        for stack in stacks:
            thread = program.thread_of(report, stack.tid)
            if stack.mode != "busy":
                truth.compare(stack, thread)
                assert thread["held_ns"] == 0
                continue
            names = program.functions(thread)
            assert "thread_main" in names[:3] and thread["end"] == "outermost frame", program.shown(thread)
    assert process.is_unharmed()


def test_never_stop(start, bpf):
    """What is on a processor whenever one looks, and is not to be driven from it, is left out, and the report says so."""
    process = start("busy", "1")
    stacks = process.told()
    left_out, looks, end = 0, 0, time.monotonic() + PATIENCE_S
    while looks < 60 or (not left_out and time.monotonic() < end):
        looks += 1
        report = program.report(process.pid, "--never-stop", "--no-realtime", status=(program.COMPLETE, program.PARTIAL))
        without_a_stop(report)
        for stack in stacks:
            thread = program.thread_of(report, stack.tid)
            if not thread["left_out"]:
                assert thread["end"] == "outermost frame" and "main" in "".join(map(str, program.functions(thread)))
                continue
            left_out += 1
            assert stack.mode == "busy" and thread["left_out"] in (
                "was running, and is not to be stopped", "ran between two looks, and is not to be stopped")
            assert thread["registers"] is None and thread["frames"] == []
    # With one processor Stacker is the one that runs.
    assert left_out > 0 or len(os.sched_getaffinity(0)) == 1
    out = program.run("onephase", "-p", process.pid, "--never-stop").out
    assert "Process was stopped for: 0ns" in out


def real_time_or_skip():
    """One processor is Stacker's own, so a second one is needed where somebody else runs."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two processors")
    allowed = subprocess.run([sys.executable, "-c", "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))"],
                             stderr=subprocess.DEVNULL, timeout=program.RUN_S)
    if allowed.returncode != 0:
        pytest.skip("real-time scheduling is not permitted here")


def pin(stacks, cpus):
    """Thread by thread, on one processor after the other."""
    for i, stack in enumerate(stacks):
        os.sched_setaffinity(stack.tid, {cpus[i % len(cpus)]})


@pytest.mark.parametrize("a_processor", [1, 3])
@pytest.mark.parametrize("options", [BPF, ("--never-stop",)])
def test_threads_that_run_are_read_without_a_stop(start, bpf, a_processor, options):
    """Threads compute on every processor: Stacker takes one of them, and on the others one is always running. It is driven
    from there for a moment."""
    real_time_or_skip()
    cpus = sorted(os.sched_getaffinity(0))[:4]
    process = start("busy", str(len(cpus) * a_processor))
    stacks = process.told()
    pin([s for s in stacks if s.mode == "busy"], cpus)
    end = time.monotonic() + PATIENCE_S
    while True:
        report = program.report(process.pid, *options, status=(program.COMPLETE, program.PARTIAL))
        if report["capture"]["threads_stopped"] == report["capture"]["threads_left_out"] == 0:
            break
        assert time.monotonic() < end, report["capture"]
    without_a_stop(report, len(stacks))
    for stack in stacks:
        thread = program.thread_of(report, stack.tid)
        assert thread["end"] == "outermost frame", program.shown(thread)
        if stack.mode == "busy":
            assert thread["state"] == "R" and "thread_main" in program.functions(thread)[:3], program.shown(thread)
    assert process.is_unharmed()


def test_real_time_threads_are_not_driven_away(start, bpf):
    """They have their priority for a reason, and Stacker's does not suffice."""
    real_time_or_skip()
    process = start("busy", "1")
    stack, = (s for s in process.told() if s.mode == "busy")
    pin([stack], sorted(os.sched_getaffinity(0))[-1:])
    os.sched_setscheduler(stack.tid, os.SCHED_FIFO, os.sched_param(2))
    try:
        # It cannot be preempted by anything here, unless Stacker itself runs there.
        reports = [program.report(process.pid, "--never-stop", status=(program.COMPLETE, program.PARTIAL)) for _ in range(3)]
    finally:
        os.sched_setscheduler(stack.tid, os.SCHED_OTHER, os.sched_param(0))
    threads = [program.thread_of(r, stack.tid) for r in reports]
    assert all(t["left_out"] for t in threads), [t["left_out"] for t in threads]
    assert process.is_unharmed()


def test_waiting_in_order_to_stop_is_no_stop(start):
    """A thread of the lowest priority, on a processor that others want: it takes long until it can
    stop, and until then it is not stopped."""
    process, hog = start("busy", "1"), start("busy", "2")
    stack, = (s for s in process.told() if s.mode == "busy")
    cpus = sorted(os.sched_getaffinity(0))[-1:]
    pin([stack], cpus)
    pin([s for s in hog.told() if s.mode == "busy"], cpus)
    os.setpriority(os.PRIO_PROCESS, stack.tid, 19)
    end = time.monotonic() + PATIENCE_S
    while True:
        facts = program.report(process.pid, "--method", "ptrace", "--tid", stack.tid, "--timeout", 30000)["capture"]
        assert facts["threads_stopped"] == 1 and 0 < facts["held_longest_ns"] == facts["stopped_ns"] < facts["capture_ns"], facts
        # Nearly always; it may also be put aside when it has all but stopped.
        if facts["capture_ns"] > 20 * 1000 * 1000 and facts["stopped_ns"] < facts["capture_ns"] / 2:
            break
        assert time.monotonic() < end, facts


def test_torn_stacks_are_never_shown(start, bpf):
    """Threads that change their stack all the time, in a way that can have only one form."""
    process = start("weave", "6")
    process.lines_until("ready")
    untouched, looks, end = 0, 0, time.monotonic() + PATIENCE_S
    while looks < 150 or (not untouched and time.monotonic() < end):
        looks += 1
        report = program.report(process.pid, *BPF)
        for thread in report["threads"]:
            if thread["tid"] == process.pid:
                continue
            untouched += not thread["held_ns"]
            if program.functions(thread) == ["clone3"] and thread["end"] == "outermost frame":
                continue  # it has only begun, and never run yet
            names = [n for n in program.functions(thread) if n in ("odd", "even", "weaver")]
            woven, outermost = names[:-1], names[-1:]
            assert outermost == ["weaver"] and thread["end"] == "outermost frame", program.shown(thread)
            # From the outside: odd, even, odd ...
            assert all(n == ("odd", "even")[i % 2] for i, n in enumerate(reversed(woven))), program.shown(thread)
            truth.check_outermost(thread, program.functions(thread).index("weaver") + 1, None)
    # With a processor for each none ever waits.
    assert untouched > 0 or len(os.sched_getaffinity(0)) > 6, looks


# What ptrace cannot do.

def test_parent_of_a_vfork(start, bpf):
    """In uninterruptible sleep."""
    process = start("vfork")
    process.lines_until("ready")
    child, = (int(w) for w in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())
    try:
        target.await_that(lambda: process.state() == "D", 10, lambda: "the parent in vfork")
        report = program.report(process.pid, *BPF)
        without_a_stop(report, 1)
        thread, = report["threads"]
        names = program.functions(thread)
        assert thread["state"] == "D" and names[0] in ("vfork", "__vfork", "__libc_vfork"), names
        assert names[1:3] == ["starts_child", "main"], names
        truth.compare_all(truth.parse(process.lines), program.report(child, *BPF))
        assert process.state() == "D"
    finally:
        target.kill_quietly(child)


def test_stopped_process(start, bpf):
    process = start("threads-gcc-O2")
    stacks = process.told()
    process.signal(signal.SIGSTOP)
    for stack in stacks:
        process.await_state(stack.tid, "T")
    report = program.report(process.pid, *BPF)
    without_a_stop(report, len(stacks))
    truth.compare_all(stacks, report)
    assert {t["state"] for t in report["threads"]} == {"T"}
    assert {process.state(s.tid) for s in stacks} == {"T"}
    process.signal(signal.SIGCONT)


@contextlib.contextmanager
def gdb_on(pid):
    tracer = subprocess.Popen(["gdb", "-nx", "-q", "-iex", "set debuginfod enabled off", "-p", str(pid), "-ex", "echo attached\\n"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        for line in tracer.stdout:
            if "attached" in line:
                break
        yield tracer
    finally:
        tracer.kill()
        tracer.communicate(timeout=30)


def test_traced_process(start, bpf, tmp_path):
    """A debugger has it, and keeps it."""
    process = start("threads-gcc-O2")
    stacks = process.told()
    with gdb_on(process.pid) as tracer:
        report = program.report(process.pid)
        without_a_stop(report, len(stacks))
        assert {t["state"] for t in report["threads"]} == {"t"}
        assert {(t["tracer_pid"], t["tracer_name"]) for t in report["threads"]} == {(tracer.pid, "gdb")}
        text = program.run("onephase", "-p", process.pid).out
        assert text.count("  State: t (stopped by a tracer)") == text.count(f"  Traced by: process {tracer.pid} (gdb)\n") > 0
        path = tmp_path / "capture"
        program.capture(process.pid, path)
        assert {t["tracer_pid"] for t in program.symbolized(path)["threads"]} == {tracer.pid}
        truth.compare_all(stacks, report)
        assert tracer.poll() is None and {process.state(s.tid) for s in stacks} == {"t"}
    process.await_unharmed()


# That nothing can be noticed.

@pytest.mark.parametrize("name, some", [
    ("blocking", {"epoll_wait", "sigtimedwait_timeout", "semop", "recv_timeout"}),
    ("halfway", {"write_part", "recvmmsg_part", "accept_timeout"})])
def test_no_call_returns_early(bpf, name, some):
    """Every kind of blocking call, also those that signal(7) says return EINTR after a stop, and those half done."""
    with target.running(target.fixture(name)) as blocked:
        assert blocked.line() == "ready"
        for _ in range(CAPTURES):
            done = program.run("capture", "-p", blocked.pid, "-o", "/dev/null", "--quiet", *BPF)
            assert done.status == program.COMPLETE, done
        rest, status = blocked.finish()
        assert status == 0, rest
        counts = {name: int(count) for name, count, _ in (line.split(None, 2) for line in rest)}
        assert some <= set(counts)
        assert not any(counts.values()), counts


def test_clock_gap(start, bpf):
    """A thread that reads the clock without pause sees no other gaps than while another process is
    captured: those of the scheduler, since Stacker needs a processor too."""
    other = start("many", "300")
    other.told()
    process = start("clock-gap", "300", "10", "blocked")
    process.lines_until("ready")

    def gap(pid, *options):
        process.say("\n")
        process.line()
        done = program.run("capture", "-p", pid, "-o", "/dev/null", "-q", *options)
        assert done.status in (program.COMPLETE, program.PARTIAL)
        process.say("\n")
        return int(process.line())

    rounds = [(gap(other.pid, "--never-stop"), gap(process.pid, "--never-stop")) for _ in range(20)]
    without, with_capture = zip(*rounds)
    print(f"gaps in µs: without {sorted(without)}, with {sorted(with_capture)}")
    assert statistics.median(with_capture) <= 2 * statistics.median(without) + 1000000


# Where it cannot be had.

def refused(command, number, *arguments):
    return subprocess.run([target.fixture("refuse"), str(command), str(number), paths.STACKER, *map(str, arguments)],
                          capture_output=True, text=True, timeout=program.RUN_S)


@pytest.mark.parametrize("command, number, words", [
    (ANY_COMMAND, errno.EPERM, "BPF is not permitted"),
    (ANY_COMMAND, errno.ENOSYS, "this kernel has no BPF"),
    (ANY_COMMAND, errno.EINVAL, "this kernel does not take the BPF program: Invalid argument"),
    (PROG_LOAD, errno.EACCES, "BPF is not permitted"),
    (PROG_LOAD, errno.EAGAIN, "this kernel does not take the BPF program: "),
    (PROG_LOAD, errno.EINVAL, "this kernel does not take the BPF program: Invalid argument"),
    (LINK_CREATE, errno.E2BIG, "need Linux 6.1"),
    (LINK_CREATE, errno.EPERM, "not permitted"),
    (LINK_CREATE, errno.ENOENT, "this kernel refuses a BPF task iterator"),
    (ITER_CREATE, errno.ENOMEM, "making a BPF task iterator: "),
    (ITER_CREATE, errno.EPERM, "making a BPF task iterator: "),
])
def test_kernel_that_refuses(start, bpf, command, number, words):
    process = start("threads-gcc-O2")
    stacks = process.told()
    done = refused(command, number, "onephase", "-p", process.pid, "--format", "json")
    assert (done.returncode, done.stderr) == (program.COMPLETE, ""), done
    report = program.json.loads(done.stdout)
    assert report["capture"]["method"] == "ptrace" and words in report["capture"]["method_note"]
    assert report["capture"]["threads_stopped"] == len(stacks) and report["capture"]["threads_untouched"] == 0
    truth.compare_all(stacks, report)
    for only in (BPF, ("--never-stop",)):
        done = refused(command, number, "onephase", "-p", process.pid, *only)
        assert done.returncode == program.NOTHING and done.stdout == "" and words in done.stderr, done
        assert len(done.stderr.splitlines()) == 1
    text = refused(command, number, "onephase", "-p", process.pid, "--no-maps").stdout
    assert re.search(rf"^Capture method: ptrace.*\(.*{re.escape(words)}", text, re.MULTILINE), text[:800]
    assert process.is_unharmed()


def test_signals_while_the_program_is_loaded(start, bpf):
    """The kernel gives the load up at any signal; that is not a kernel that refuses it. There are fewer signals than tries."""
    process = start("threads-gcc-O2")
    process.told()
    for run in range(40):
        stacker = subprocess.Popen([paths.STACKER, "capture", "-p", str(process.pid), "-o", "-", "-q"], stdout=subprocess.PIPE)
        try:
            for i in range(20):
                stacker.send_signal(signal.SIGSTOP)
                stacker.send_signal(signal.SIGCONT)
                # At other moments each time; when exactly does not matter.
                select.select([], [], [], (run * 7 + i) % 10 * 0.0001)
            out, _ = stacker.communicate(timeout=program.RUN_S)
        finally:
            stacker.kill()
        assert stacker.returncode == program.COMPLETE
        assert program.json.loads(out)["capture"]["method"] == "bpf", program.json.loads(out)["capture"]


def test_kernel_without_type_information(start, bpf):
    """Its file is hidden, and the program is refused: what such a kernel looks like."""
    process = start("threads-gcc-O2")
    process.told()
    if os.geteuid() != 0:
        pytest.skip("needs root for a mount namespace")
    hide = f"mount -t tmpfs none /sys/kernel/btf && exec {target.fixture('refuse')} {PROG_LOAD} {errno.EINVAL} \"$@\""
    done = subprocess.run(["unshare", "-m", "sh", "-c", hide, "sh", paths.STACKER, "onephase", "-p", str(process.pid),
                           "--no-maps"], capture_output=True, text=True, timeout=program.RUN_S)
    assert done.returncode == program.COMPLETE, done
    assert re.search(r"^Capture method: ptrace.*\(this kernel has no type information \(BTF\)\)$", done.stdout, re.MULTILINE)


def test_unprivileged_user(bpf):
    """Reads its own process by ptrace, and the report says why."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    with tempfile.TemporaryDirectory(prefix="stacker-test-") as directory:
        os.chmod(directory, 0o755)
        for path in (paths.STACKER, target.fixture("threads-gcc-O2")):
            shutil.copy(path, directory)
        nobody = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
        with target.running(*nobody, f"{directory}/threads-gcc-O2", cwd="/") as process:
            stacks = process.told()
            command = [*nobody, f"{directory}/{paths.STACKER.name}", "onephase", "-p", str(process.pid), "--format", "json"]
            done = subprocess.run(command, capture_output=True, text=True, cwd="/", timeout=program.RUN_S)
            assert (done.returncode, done.stderr) == (program.COMPLETE, ""), done
            report = program.json.loads(done.stdout)
            truth.compare_all(stacks, report, lines=False)
            assert report["capture"]["method"] == "ptrace"
            assert "not permitted" in report["capture"]["method_note"] and "root" in report["capture"]["method_note"]
            done = subprocess.run([*command, *BPF], capture_output=True, text=True, cwd="/", timeout=program.RUN_S)
            assert done.returncode == program.NOTHING and "not permitted" in done.stderr and done.stdout == "", done


@pytest.mark.parametrize("options", [("--method", "magic"), ("--method", "bpf", "--rolling"), ("--never-stop", "--rolling"),
                                     ("--never-stop", "--method", "ptrace")])
def test_options_that_make_no_sense(options):
    done = program.run("onephase", "-p", os.getpid(), *options)
    assert done.status == program.USAGE and done.out == "", done
    assert options[0] in done.err or options[-1] in done.err, done


# Pid namespaces.

def namespaced(*command):
    return ["unshare", "--pid", "--fork", "--mount-proc", *map(str, command)]


def test_target_in_a_pid_namespace(bpf):
    """Its threads have other ids there; ours are shown."""
    if os.geteuid() != 0:
        pytest.skip("needs root to make a pid namespace")
    with target.running(*namespaced(target.fixture("threads-gcc-O2"))) as outer:
        outer.lines_until("ready")
        inside, = (int(w) for w in pathlib.Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split())
        tids = sorted(int(t) for t in os.listdir(f"/proc/{inside}/task"))
        report = program.report(inside, *BPF)
        without_a_stop(report, len(tids))
        assert [t["tid"] for t in report["threads"]] == tids
        names = {t["thread_name"] for t in report["threads"]}
        assert "epoll" in names and all(t["end"] == "outermost frame" for t in report["threads"])
        target.kill_quietly(inside)


def test_both_in_a_pid_namespace(bpf):
    """The kernel's own ids are not those of Stacker's namespace."""
    if os.geteuid() != 0:
        pytest.skip("needs root to make a pid namespace")
    script = f"{target.fixture('threads-gcc-O2')} </dev/zero >out & while ! grep -q ready out; do :; done; " \
             f"{paths.STACKER} onephase -p $! --format json --method bpf; kill -KILL $!; wait 2>/dev/null"
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(namespaced("sh", "-c", script), capture_output=True, text=True, cwd=directory,
                              timeout=program.RUN_S)
        stacks = truth.parse((pathlib.Path(directory) / "out").read_text().splitlines())
    report = program.json.loads(done.stdout)
    without_a_stop(report)
    truth.compare_all(stacks, report)
    assert report["process_id"] < 100
