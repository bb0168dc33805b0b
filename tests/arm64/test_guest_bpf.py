"""The capture without a stop on an arm64 kernel: the stacks that ptrace shows, thread by thread."""
import program
import pytest
import results

# A thread that a stop takes out of a system call is shown at the instruction that begins it again; one
# that is not stopped is behind it.
SVC_SIZE = 4


def frames_of(thread):
    return [(f["pc"], f["function"], f["line"], f["inlined"]) for f in thread["frames"]]


def without_innermost(frames, pc):
    """The frames from the first one on that is at another address: inlined ones are at the same."""
    return [f for f in frames if f[0] != pc]


@pytest.mark.parametrize("name", [n for n in results.BLOCKED if n != "vfork"])
def test_same_as_ptrace(name):
    case = results.case(name)
    by_bpf, by_ptrace = case.report("bpf"), case.report("stacks")
    facts = by_bpf["capture"]
    assert facts["method"] == "bpf" and facts["stopped_ns"] == facts["threads_stopped"] == 0, facts
    assert facts["threads_untouched"] == len(by_bpf["threads"]) and facts["one_instant"] is True, facts
    assert [t["tid"] for t in by_bpf["threads"]] == [t["tid"] for t in by_ptrace["threads"]]
    for one, other in zip(by_bpf["threads"], by_ptrace["threads"]):
        told = f"\n{program.shown(one)}\n{program.shown(other)}"
        mine, theirs = frames_of(one), frames_of(other)
        ahead = int(mine[0][0], 16) - int(theirs[0][0], 16)
        assert ahead in (0, SVC_SIZE), told
        assert without_innermost(mine, mine[0][0]) == without_innermost(theirs, theirs[0][0]), told
        assert (one["end"], one["state"]) == (other["end"], other["state"]), told


def test_parent_of_a_vfork():
    """In uninterruptible sleep: read like all others."""
    case = results.case("vfork")
    thread, = case.report("bpf")["threads"]
    names = program.functions(thread)
    assert thread["state"] == "D" and thread["end"] == "outermost frame", program.shown(thread)
    assert "starts_child" in names and "main" in names, names


def test_same_mask_of_signatures():
    """The kernel's, which it tells tracers only, is the processor's."""
    case = results.case("threads-pac-O2")
    by_bpf, by_ptrace = (case.made_there(name)["pointer_authentication_mask"] for name in ("bpf", "stacks"))
    assert by_bpf == by_ptrace


def test_running_ones_are_held_alone():
    """Of each busy case every second sample is by BPF; that their stacks are right test_stacks shows."""
    methods = {r["capture"]["method"] for name in results.BUSY for r in results.case(name).reports()}
    assert methods == {"bpf", "ptrace"}
