"""The life of processes and threads around a capture, and what it leaves behind."""
import json
import os
import re
import signal
import subprocess

import program
import pytest
import target
import truth
import wants


def test_leader_has_ended(start):
    """The main thread is a zombie: the others are traced all the same."""
    process = start("leader")
    stacks = process.told()
    report = program.report(process.pid, status=(program.COMPLETE, program.PARTIAL))
    for stack in stacks:
        truth.compare(stack, program.thread_of(report, stack.tid))
    others = [t for t in report["threads"] if t["tid"] not in {s.tid for s in stacks}]
    assert [(t["tid"], t["state"]) for t in others] in ([], [(process.pid, "Z")])
    assert report["process_id"] == process.pid


@pytest.mark.parametrize("count", [1000])
def test_many_threads(start, count):
    process = start("many", str(count))
    stacks = process.told()
    report = program.report(process.pid)
    truth.compare_all(stacks, report)
    assert report["capture"]["threads_found"] == count + 1


def test_busy_threads(start):
    """Threads that compute: found somewhere in their function, with their callers exact."""
    process = start("busy", "3")
    stacks = process.told()
    for _ in range(5):
        report = program.report(process.pid)
        for stack in stacks:
            thread = program.thread_of(report, stack.tid)
            if stack.mode == "busy":
                names = program.functions(thread)
                assert names[:2] == ["compute", "thread_main"] or names[:3] == ["mix", "compute", "thread_main"], \
                    program.shown(thread)
                truth.check_outermost(thread, names.index("thread_main") + 1, None)
            else:
                truth.compare(stack, thread)
    assert process.is_unharmed()


HOG = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))
print("ready", flush=True)
end = time.monotonic() + 60
while time.monotonic() < end: pass
"""


def test_timeout_bounds_the_stop(start):
    """Threads that get no processor do not stop: however many there are, all are let go in time."""
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) < 2 or os.geteuid() != 0:
        pytest.skip("needs two processors and the right to take one of them")
    if program.METHOD:
        pytest.skip("chooses its method itself")
    process = start("busy", "100")
    process.told()
    for tid in os.listdir(f"/proc/{process.pid}/task"):
        os.sched_setaffinity(int(tid), processors[-1:])
    with target.running("/usr/bin/python3", "-c", HOG, str(processors[-1])) as hog:
        hog.lines_until("ready")
        for _ in range(10):  # now and then the kernel gives them a moment of the processor after all
            done = program.run("onephase", "-p", process.pid, "--method", "ptrace", "--timeout", "50", "--format", "json",
                               "--no-cache", preexec_fn=lambda: os.sched_setaffinity(0, processors[:1]))
            capture = json.loads(done.out)["capture"]
            if capture["threads_left_out"] > 50:
                break
    assert done.status == program.PARTIAL and capture["threads_left_out"] > 50, capture
    assert capture["stopped_ns"] < 200e6, capture
    assert process.is_unharmed()


def test_group_stopped(start):
    """kill -STOP: traced as it stands, twice, and still stopped after; it goes on with SIGCONT."""
    process = start("threads-gcc-O2")
    stacks = process.told()
    process.signal(signal.SIGSTOP)
    for stack in stacks:
        process.await_state(stack.tid, "T")
    for _ in range(2):
        report = program.report(process.pid)
        truth.compare_all(stacks, report)
        assert {t["state"] for t in report["threads"]} == {"T"}
        for stack in stacks:
            process.await_state(stack.tid, "T")
    process.signal(signal.SIGCONT)
    for stack in stacks:
        process.await_state(stack.tid, "S")
    truth.compare_all(stacks, program.report(process.pid))


def test_stop_during_many_captures(start):
    """Stopped and continued while captures run: at the end it is as the last signal says."""
    process = start("threads-gcc-O2")
    stacks = process.told()
    for number in range(10):
        capture = subprocess.Popen([program.paths.STACKER, "onephase", "-p", str(process.pid), "--format", "json"],
                                   stdout=subprocess.DEVNULL)
        process.signal(signal.SIGSTOP if number % 2 == 0 else signal.SIGCONT)
        assert capture.wait(program.RUN_S) in (program.COMPLETE, program.PARTIAL)
        for stack in stacks:
            process.await_state(stack.tid, "T" if number % 2 == 0 else "S")


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def test_vfork(start):
    """The child has its whole stack, which is the parent's. The parent cannot be stopped: that is
    said, in bounded time, and it is left as it was."""
    process = start("vfork")
    process.lines_until("ready")
    stack, = truth.parse(process.lines)
    child, = child_of(process.pid)
    try:
        target.await_that(lambda: process.state() == "D", 10, lambda: "the parent in vfork")
        assert stack.tid == child
        thread, = program.report(child)["threads"]
        truth.compare(stack, thread)
        done = program.run("onephase", "--pid", process.pid, "--format", "json", "--timeout", "300", timeout=10)
        if done.status == program.COMPLETE:  # a method that needs no stop
            report = program.json.loads(done.out)
            names = program.functions(report["threads"][0])
            assert names[0] in ("vfork", "__vfork", "__libc_vfork"), names
            assert names[1:3] == ["starts_child", "main"], names
        else:
            assert done.status == program.PARTIAL, done
            thread, = program.json.loads(done.out)["threads"]
            assert thread["frames"] == [] and thread["registers"] is None and thread["state"] == "D"
            assert thread["left_out"].startswith("did not stop in ") and thread["wait_channel"]
            assert thread["syscall_name"] in ("vfork", "clone")
        assert process.state() == "D" and process.state(process.pid) == "D"
    finally:
        target.kill_quietly(child)


def test_only_one_thread(start):
    """--tid: that thread and no other; a thread that is not there is an error."""
    process = start("threads-gcc-O2")
    stacks = process.told()
    chosen = [s for s in stacks if s.name == "epoll"][0]
    report = program.report(process.pid, "--tid", chosen.tid)
    thread, = report["threads"]
    truth.compare(chosen, thread)
    done = program.run("onephase", "--pid", process.pid, "--tid", "1")
    assert done.status == program.NOTHING and "no thread 1" in done.err, done


def test_rolling(start):
    """One thread at a time: the same stacks, and the report says how it was made."""
    process = start("threads-gcc-O2")
    stacks = process.told()
    report = program.report(process.pid, "--rolling")
    truth.compare_all(stacks, report)
    assert "rolling" in report["capture"]["method"]
    assert "rolling" in program.run("onephase", "-p", process.pid, "--rolling").out


def test_target_that_is_traced(start):
    """Somebody else traces it: said with pid and name."""
    process = start("threads-gcc-O2")
    process.told()
    tracer = subprocess.Popen(["gdb", "-nx", "-q", "-iex", "set debuginfod enabled off", "-p", str(process.pid),
                               "-ex", "echo attached\\n"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        for line in tracer.stdout:
            if "attached" in line:
                break
        done = program.run("onephase", "--pid", process.pid, "--method", "ptrace")
        assert done.status == program.NOTHING, done
        assert re.search(rf"already traced by process {tracer.pid} \(gdb\)", done.err), done
        assert len(done.err.splitlines()) == 1
    finally:
        tracer.kill()
        tracer.communicate(timeout=30)
    process.await_unharmed()
    program.report(process.pid)


def test_zombie():
    child = os.fork()
    if child == 0:
        os._exit(0)
    try:
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        done = program.run("onephase", "--pid", child)
        assert done.status == program.NOTHING, done
        assert re.search(rf"zombie: .* its parent, process {os.getpid()} \([^)]+\), to", done.err), done
    finally:
        os.waitpid(child, 0)


@pytest.mark.parametrize("name", ["maps", "status"])
def test_ends_while_it_is_looked_at(start, name):
    """What /proc says then of one of its files is made out as its end."""
    wants.tool("strace")
    process = start("threads-gcc-O2")
    process.told()
    done = subprocess.run(["strace", "-f", "-qq", "-o", os.devnull, "-P", f"/proc/{process.pid}/{name}",
                           "-e", "inject=read:error=ESRCH", program.paths.STACKER, "onephase", "-p", str(process.pid),
                           "--method", "ptrace"], capture_output=True, text=True, timeout=program.RUN_S)
    assert done.returncode == program.NOTHING and done.stdout == "", done
    assert done.stderr == f"stacker: process {process.pid} is gone\n", done


def test_ends_while_it_is_traced(start):
    """A target that is killed at any moment: a report or a clear line, never a crash or a hang."""
    for moment in range(12):
        process = start("busy", "3")
        process.told()
        capture = subprocess.Popen([program.paths.STACKER, "onephase", "-p", str(process.pid), "--format", "json"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        work(moment * 2000)
        process.end()
        out, err = capture.communicate(timeout=program.RUN_S)
        assert capture.returncode in (program.COMPLETE, program.NOTHING, program.PARTIAL), (capture.returncode, err)
        if capture.returncode == program.NOTHING:
            assert len(err.splitlines()) == 1 and out == "", err


def work(rounds):
    """Passes some time without sleeping: the moment differs, no outcome depends on it."""
    for _ in range(rounds):
        pass


def test_interrupted_stacker_lets_go(start):
    """SIGINT, SIGTERM, SIGHUP to stacker: it ends by that signal, the target runs on."""
    process = start("many", "300")
    process.told()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        capture = subprocess.Popen([program.paths.STACKER, "capture", "-p", str(process.pid), "-o", "/dev/null"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        work(20000)
        capture.send_signal(number)
        assert capture.wait(program.RUN_S) in (0, -number)
        process.await_unharmed()


def traced_calls(log, pid, *options):
    """[thread, what it did] of a report, in their order: priorities, what is written, ends; and its report."""
    wants.tool("strace")
    done = subprocess.run(["strace", "-f", "-o", log, "-e", "trace=sched_setscheduler,setpriority,write,writev", program.paths.STACKER,
                           "onephase", "-p", str(pid), "--format", "json", *options],
                          capture_output=True, text=True, timeout=program.RUN_S, check=True)
    rows = [line.split(None, 1) for line in log.read_text().splitlines()]
    return rows, json.loads(done.stdout)["capture"]["realtime"]


def raised(rows):
    """The threads that had the raised priority of the stop, whether or not it was the one that they asked for first."""
    stopping = {tid for tid, what in rows if "SCHED_FIFO" in what}
    return {tid for tid, what in rows if tid in stopping and re.match(r"(sched_setscheduler\(.*SCHED_FIFO|setpriority\(.*-20\)).* = 0", what)}


def test_realtime_is_given_back(start, tmp_path):
    """The stop is at a raised priority, where that is permitted, and the thread that has it ends with the stop: the rest
    of the work, and the report, have none of it (what they have ends by itself: base/urgency)."""
    process = start("threads-gcc-O2")
    process.told()
    rows, is_told = traced_calls(tmp_path / "log", process.pid, "--method", "ptrace")
    asked = [what for _, what in rows if "SCHED_FIFO" in what]
    assert asked and is_told == any(what.endswith(" = 0") for what in asked), rows
    assert raised(rows) or os.geteuid() != 0, rows
    ended = {tid: at for at, (tid, what) in enumerate(rows) if what.startswith("+++ exited")}
    written = [at for at, (_, what) in enumerate(rows) if re.match(r"writev?\(1,", what)]
    assert written and all(ended[tid] < written[0] for tid in raised(rows)), rows
    assert process.is_unharmed()


@pytest.mark.parametrize("method", ["auto", "ptrace"])
def test_no_realtime(start, tmp_path, method):
    """No priority is touched, neither for the stop nor for the rest of the work."""
    process = start("threads-gcc-O2")
    process.told()
    rows, is_told = traced_calls(tmp_path / "log", process.pid, "--method", method, "--no-realtime")
    assert not is_told and not any("sched_setscheduler" in what or "setpriority" in what for _, what in rows), rows


def test_thread_names_that_are_hostile():
    """A name with escapes, newlines and bytes that are not UTF-8 harms neither JSON nor a terminal."""
    code = ("import ctypes, sys, signal\n"
            "ctypes.CDLL(None).prctl(15, b'\\x1b[2J\\n\\xff\\\"x', 0, 0, 0)\n"
            "print('ready', flush=True)\nsignal.pause()\n")
    with target.running("/usr/bin/python3", "-c", code) as process:
        process.lines_until("ready")
        process.await_state(process.pid, "S")
        report = program.report(process.pid)
        assert "[2J" in report["threads"][0]["thread_name"]
        text = program.run("onephase", "-p", process.pid).out
        assert "\x1b" not in text and "[2J" in text
