"""Go: stacks as its own traceback tells them, on goroutines' stacks and on those of threads, with and
without symbols, through C and back. Judged by what the program says of itself, and by gdb."""
import time

import oracle
import paths
import program
import pytest
import target
import truth
import wants
from goroutines import INNER, check_any, check_goroutine, check_thread, go_name, own_frames

NAMES = ["go-plain", "go-stripped", "go-cgo", "go-cgo-stripped"]
LOOKS = 12
# For what comes by chance; nearly always within these looks.
PATIENCE_S = 60


@pytest.fixture(params=["shipped", "sanitizers"])
def binary(request):
    return paths.STACKER if request.param == "shipped" else wants.sanitized()


@pytest.mark.parametrize("name", NAMES)
def test_as_go_tells_it(start, name, binary):
    process = start(name)
    stacks = truth.parse(process.lines_until("ready"))
    assert len(stacks) == (8 if "cgo" in name else 6)
    for stack in stacks:
        if stack.name in ("receives", "selects", "reads", "waits"):
            process.await_state(stack.tid, "S")
    # Whoever spins has been told of before it does so.
    def report_when_there():
        report = program.report(process.pid, binary=binary)
        there = {t["tid"]: [go_name(f) for f in t["frames"]][:1] for t in report["threads"]}
        spinning = [s.tid for s in stacks if s.name in ("computes", "switches", "leaves", "called")]
        return report if all(there[tid] == ["main.spin"] for tid in spinning) else None
    found = []
    target.await_that(lambda: found.append(report_when_there()) or found[-1], 30, lambda: "all goroutines in place")
    report = found[-1]
    for stack in stacks:
        thread = program.thread_of(report, stack.tid)
        check_any(thread)
        if stack.name in ("receives", "selects", "leaves"):
            check_thread(stack, thread)
        else:
            check_goroutine(stack, thread)
    for thread in report["threads"]:
        check_any(thread)
    assert process.is_unharmed()


@pytest.mark.parametrize("name", NAMES)
def test_random_moments(start, name):
    """While garbage is made and collected: allocation, collection and scheduling, on all kinds of stacks."""
    process = start(name, "litter")
    process.lines_until("ready")
    seen, looks, end = set(), 0, time.monotonic() + PATIENCE_S
    while looks < LOOKS or (not {"main.litter", "runtime.mstart"} <= seen and time.monotonic() < end):
        looks += 1
        for thread in program.report(process.pid)["threads"]:
            check_any(thread)
            seen.update(go_name(f) for f in thread["frames"])
    assert "main.litter" in seen and "runtime.mstart" in seen, looks
    assert process.is_unharmed()


def test_two_phases(start, tmp_path):
    """A capture with stacks has the goroutine's too."""
    process = start("go-stripped")
    stacks = truth.parse(process.lines_until("ready"))
    tid, = [s.tid for s in stacks if s.name == "switches"]
    program.capture(process.pid, tmp_path / "capture.json", "--with-stacks")
    names = [go_name(f) for f in program.thread_of(program.symbolized(tmp_path / "capture.json"), tid)["frames"]]
    assert names[-1] == "runtime.goexit" and "main.switches" in names


def test_gdb(start):
    """gdb, which has debug information to go by, shows the same as far as it is right: it follows no
    change of stacks, and reads on where there is nothing."""
    process = start("go-plain")
    stacks = truth.parse(process.lines_until("ready"))
    report, frames = program.report(process.pid), oracle.gdb(process.pid)
    for stack in stacks:
        thread = program.thread_of(report, stack.tid)
        ours = [(f["pc"], go_name(f)) for f in own_frames(thread)]
        theirs = [(hex(f["pc"]), (f["function"] or "?").removesuffix(".abi0")) for f in frames[stack.tid] if not f["inlined"]]
        switch = next((i for i, (_, n) in enumerate(ours) if n in ("runtime.systemstack", "runtime.mcall")), len(ours) - 1)
        first = 1 if stack.name in INNER or stack.name == "leaves" else 0  # what spins goes on
        assert [(int(pc, 16), n) for pc, n in ours[first:switch + 1]] == \
            [(int(pc, 16), n) for pc, n in theirs[first:switch + 1]], program.shown(thread)
