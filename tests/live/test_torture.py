"""Torture, in short form: a working victim that checks itself is captured again and again while
signals, stops, thread churn and execs go on, and while stacker itself is killed.

STACKER_TORTURE=N makes everything N times longer. STACKER_SEED=S repeats a run.
"""
import json
import os
import random
import signal
import subprocess
import time

import paths
import program
import pytest
import target
import truth
import wants

LONGER = int(os.environ.get("STACKER_TORTURE", "1"))
SEED = int(os.environ.get("STACKER_SEED", str(time.time_ns() % 1000000)))
CAPTURE_S = 15
VICTIMS = ["victim", "victim-musl-static"]
OUTCOMES = (program.COMPLETE, program.PARTIAL)


@pytest.fixture
def dice():
    print(f"STACKER_SEED={SEED}")
    return random.Random(SEED)


def capture_once(pid, *options, outcomes=OUTCOMES):
    """A capture to JSON: in bounded time a clear outcome, and what is said is coherent."""
    done = program.run("capture", "--pid", pid, "--output", "-", "--quiet", *options, timeout=CAPTURE_S)
    assert done.status in outcomes, done
    if done.status not in OUTCOMES:
        assert done.out == "" and len(done.err.splitlines()) == 1, done
        return None
    report = json.loads(done.out)
    tids = [t["tid"] for t in report["threads"]]
    assert len(set(tids)) == len(tids) and report["capture"]["threads_found"] == len(tids)
    left_out = [t for t in report["threads"] if t["left_out"]]
    assert (done.status == program.PARTIAL) == bool(left_out), left_out
    return report


def passes(process):
    """The victim runs on, and its own check of itself is passed."""
    process.await_unharmed()
    rest, status = process.finish()
    assert status == 0 and rest and rest[-1].startswith("passed "), (rest, process.lines)
    return dict(zip(rest[-1].split()[1::2], map(int, rest[-1].split()[2::2])))


@pytest.mark.parametrize("name", VICTIMS)
def test_signal_storm(start, name, method):
    """Numbered real-time signals: each comes once and in order, whatever a capture interrupts."""
    count = 20000 * LONGER
    process = start(name, "storm", str(count))
    process.lines_until("ready")
    captures = 0
    while captures < 30 * LONGER:
        report = capture_once(process.pid, *method)
        assert len(report["threads"]) == 5
        captures += 1
    process.lines_until("through", 60 * LONGER)
    assert passes(process)["signals"] == count


def test_stops_and_continues(start, dice, method):
    """SIGSTOP and SIGCONT at any moment of a capture: none is lost, and the last one counts."""
    process = start("victim", "idle")
    process.lines_until("ready")
    tids = process.tids()
    for _ in range(20 * LONGER):
        running = subprocess.Popen([paths.STACKER, "capture", "-p", str(process.pid), "-o", "/dev/null", "-q", *method])
        for _ in range(dice.randrange(1, 8)):
            last = dice.choice((signal.SIGSTOP, signal.SIGCONT))
            process.signal(last)
            for _ in range(dice.randrange(20000)):
                pass
        assert running.wait(program.RUN_S) in OUTCOMES
        if last == signal.SIGSTOP:
            for tid in tids:
                process.await_state(tid, "T")
        else:
            target.await_that(process.is_unharmed, 10, lambda: "running again")
    process.signal(signal.SIGCONT)
    passes(process)


@pytest.mark.parametrize("name", VICTIMS)
def test_thread_churn(start, name, method):
    """Threads come and go all the time: the lasting ones are there, each with a stack that ends."""
    process = start(name, "churn")
    process.lines_until("ready")
    lasting = None
    for _ in range(25 * LONGER):
        report = capture_once(process.pid, *method)
        tids = {t["tid"] for t in report["threads"]}
        lasting = tids if lasting is None else lasting & tids
        assert all(t["stack_trace"] and t["end"] for t in report["threads"] if not t["left_out"])
    assert len(lasting) >= 6, "the main thread, four workers and the one that makes threads"
    assert passes(process)["churned"] > 0


def code_is_of_the_maps(report):
    """No mixture of two programs: every thread is where there is code."""
    ranges = [(int(m["start"], 16), int(m["end"], 16)) for m in report["memory_maps"] if "x" in m["permissions"]]
    for thread in report["threads"]:
        for pc in (int(pc, 16) for pc in thread["stack_trace"] or []):
            assert any(start <= pc < end for start, end in ranges), (hex(pc), thread)


def changes_its_auxv(start, *arguments):
    process = start("auxv", *arguments)
    if process.line() == "refused":
        pytest.skip("this kernel lets no process change its auxiliary vector")
    return process


def test_auxiliary_vector_that_changes(start, method):
    """That is no exec: traced like any other."""
    process = changes_its_auxv(start)
    for _ in range(20 * LONGER):
        report = capture_once(process.pid, *method)
        assert len(report["threads"]) == 2
        code_is_of_the_maps(report)
    process.await_unharmed()
    rest, status = process.finish()
    assert status == 0 and rest == ["passed"]


def test_exec_with_an_auxiliary_vector_that_changes(start, method):
    """But an exec is, though another process still has the memory of before."""
    process = changes_its_auxv(start, str(400 * LONGER))
    pictures = 0
    for _ in range(40 * LONGER):
        report = capture_once(process.pid, *method, outcomes=(*OUTCOMES, program.NOTHING))
        if report:
            pictures += 1
            code_is_of_the_maps(report)
    assert pictures > 0
    process.await_unharmed()
    rest, status = process.finish()
    assert status == 0 and rest == ["passed"]


def test_exec_storm(start, method):
    """The program starts itself anew all the time, also from a thread that is not the main one: the
    old picture, the new one or a clear line; never a mixture, and the victim gets to its end."""
    count = 400 * LONGER
    process = start("victim", "exec", str(count))
    process.lines_until("ready")
    pictures = 0
    for _ in range(60 * LONGER):
        report = capture_once(process.pid, *method, outcomes=(*OUTCOMES, program.NOTHING))
        if report:
            pictures += 1
            assert report["executable_path"].endswith("/victim")
            code_is_of_the_maps(report)
    assert pictures > 0
    passes(process)


@pytest.mark.parametrize("options", [("--method", "bpf"), ("--method", "ptrace"), ("--method", "ptrace", "--no-realtime"), ("--rolling",)])
def test_stacker_killed(start, dice, options, bpf_here):
    """SIGKILL to stacker at any moment: the kernel lets the victim go."""
    if "bpf" in options:
        wants.bpf(bpf_here)
    process = start("victim", "idle")
    process.lines_until("ready")
    for _ in range(25 * LONGER):
        running = subprocess.Popen([paths.STACKER, "capture", "-p", str(process.pid), "-o", "/dev/null", "-q", *options])
        for _ in range(dice.randrange(100000)):
            pass
        running.kill()
        assert running.wait(program.RUN_S) in (*OUTCOMES, -signal.SIGKILL)
        process.await_unharmed()
    passes(process)


def test_two_at_once(start, method):
    """Two stackers on one victim: each has a picture or says who is there already."""
    process = start("victim", "idle")
    process.lines_until("ready")
    for _ in range(10 * LONGER):
        running = [subprocess.Popen([paths.STACKER, "capture", "-p", str(process.pid), "-o", "-", "-q", *method],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(2)]
        for one in running:
            _, err = one.communicate(timeout=program.RUN_S)
            assert one.returncode in (*OUTCOMES, program.NOTHING)
            if one.returncode == program.NOTHING:
                assert "traced" in err or "process" in err, err
    passes(process)


def test_same_picture_every_time(start, method):
    """Fifty reports of a program that stands still are the same."""
    process = start("threads-gcc-O2")
    stacks = process.told()
    first, states = None, {tid: process.state(tid) for tid in process.tids()}
    for _ in range(30 * LONGER):
        for tid, state in states.items():  # who was stopped has gone back into its call
            process.await_state(tid, state)
        report = capture_once(process.pid, *method)
        picture = [(t["tid"], t["stack_trace"], t["end"]) for t in report["threads"]]
        first = first or picture
        assert picture == first
    truth.compare_all(stacks, program.report(process.pid))
