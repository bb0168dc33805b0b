"""Go on arm64: goroutines' stacks to their end, and threads' to where they left one."""
import program
import pytest
import results
from goroutines import check_any, check_goroutine, check_thread, go_name, own_frames

# The runtime takes the frame pointer of the stack it goes to: the goroutine is not found again.
SWITCHES = {"runtime.systemstack", "runtime.asmcgocall"}
SPINNING = {"computes", "switches", "leaves"}


def names_of(thread):
    return [go_name(f) for f in own_frames(thread)]


def check_end(thread):
    """As on x86_64, or at a change of stacks, which is said."""
    if names_of(thread)[-1] not in SWITCHES:
        check_any(thread)
        return
    assert thread["end"] == "no unwind information", program.shown(thread)
    assert "goroutine" in thread["end_detail"], program.shown(thread)
    check_any({**thread, "frames": [*thread["frames"], {"function": "runtime.goexit", "inlined": False, "module": None}],
               "end": "outermost frame"})


def check(stack, thread):
    check_end(thread)
    if stack.name == "switches":
        assert names_of(thread) == ["main.spin", "main.switches.func1", "runtime.systemstack"], program.shown(thread)
    elif stack.name in ("receives", "selects", "leaves"):
        check_thread(stack, thread)
    else:
        check_goroutine(stack, thread)


@pytest.mark.parametrize("name", ["go-plain", "go-stripped"])
def test_as_go_tells_it(name):
    """Whoever spins may not be there yet in the first looks."""
    case = results.case(name)
    stacks, reports = case.told(), case.reports()
    assert len(stacks) == 6
    seen = set()
    for report in reports:
        for stack in stacks:
            thread = program.thread_of(report, stack.tid)
            if stack.name not in SPINNING or names_of(thread)[0] == "main.spin":
                check(stack, thread)
                seen.add(stack.name)
        for thread in report["threads"]:
            check_end(thread)
    assert seen == {s.name for s in stacks}


@pytest.mark.parametrize("name", ["go-litter", "go-litter-stripped"])
def test_random_moments(name):
    seen = set()
    for report in results.case(name).reports():
        for thread in report["threads"]:
            check_end(thread)
            seen.update(names_of(thread))
    assert "runtime.mstart" in seen, seen
