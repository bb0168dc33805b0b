"""Every program's stacks on an arm64 kernel are what it tells itself."""
import base64
import os
import re

import program
import pytest
import results
import truth

CPP = r"^(void |int )?std::|^\(|^\?$|lambda|^(__invoke|_M_invoke|operator\(\))"


def named(pattern, among=None):
    """Names of the cases that match the whole pattern."""
    return [n for n in (among or results.BLOCKED) if re.fullmatch(pattern, n)]


# Without unwind information there is none of lines either.
NO_LINES = named(r"threads-nocfi-.*")
# Their C library has no unwind information.
MUSL = named(r".*musl.*")
THREADS = [n for n in named(r"threads-.*") if n not in MUSL]
CPP_CASES = named(r"inlines-cpp.*")
SIGNALS = [n for n in named(r"(nested|altstack|null|wild|data|interrupted).*") if n not in MUSL]
ASSEMBLED = named(r"(high-|tagged-)?(record|cfa|return)(-pac)?|(entry|room)(-nocfi|-pac)?")


@pytest.mark.parametrize("name", THREADS)
def test_threads(name):
    """Eleven threads, each blocked in another way, in every kind of build."""
    case = results.case(name)
    stacks, report = case.told(), case.report()
    assert len(stacks) == 11
    truth.compare_all(stacks, report, lines=name not in NO_LINES)


# The system call in which each of these threads waits; of the C library's choice on arm64.
CALLS = {"sleeper": "clock_nanosleep", "epoll": "epoll_pwait", "pipe-reader": "read", "poll": "ppoll",
         "pausing": "ppoll", "receiver": "recvfrom"}


@pytest.mark.parametrize("how", ["stacks", "bpf"])
@pytest.mark.parametrize("name", ["threads-pac-O2", "threads-static", "threads-musl"])
def test_system_calls(name, how):
    """Which the registers of a stopped thread do not tell: asked before the stop."""
    case = results.case(name)
    told = {t["thread_name"]: t["syscall_name"] for t in case.report(how)["threads"]}
    musl = {"sleeper": "nanosleep"} if name in MUSL else {}
    assert told.pop(case.program[:15]) == "ppoll", told
    assert told == {name: {**CALLS, **musl}.get(name, "futex") for name in told} and len(told) == 10


@pytest.mark.parametrize("name", CPP_CASES + named("inlines-(O2|pac)"))
def test_names(name):
    case = results.case(name)
    truth.compare_all(case.told(), case.report(), between=CPP if name in CPP_CASES else None)


@pytest.mark.parametrize("name", SIGNALS)
def test_signals(name):
    case = results.case(name)
    stacks, report = case.told(), case.report()
    for stack in stacks:
        truth.compare(stack, program.thread_of(report, stack.tid))


@pytest.mark.parametrize("name", ASSEMBLED)
def test_assembled(name):
    case = results.case(name)
    truth.compare_all(case.told(), case.report())


@pytest.mark.parametrize("name", ["many", "noreturn", "coroutine", "jit"])
def test_situation(name):
    case = results.case(name)
    truth.compare_all(case.told(), case.report())


@pytest.mark.parametrize("name", named("(leaf|vdso)-?.*", results.BUSY))
def test_leaf(name):
    """Interrupted anywhere in a function that keeps its return address in LR."""
    case = results.case(name)
    stacks = case.told()
    for report in case.reports():
        truth.compare_all(stacks, report, lines=not name.endswith("nocfi"))


def test_vdso_is_seen():
    names = {program.module_name(r["threads"][0]["frames"][0])
             for name in ("vdso", "vdso-pac") for r in results.case(name).reports()}
    assert "[vdso]" in names, names


def test_deep_recursion_is_folded():
    case = results.case("recursion")
    report = case.report()
    for stack in case.told():
        thread = program.thread_of(report, stack.tid)
        names = program.functions(thread)
        assert thread["end"] == "outermost frame", thread["end_detail"]
        assert thread["folded_frames"] + names.count("recurse") == 100001
        inner = names.index("recurse")
        outer = len(names) - names[::-1].index("recurse")
        assert inner <= 2 and set(names[inner:outer]) == {"recurse"}
        assert names[outer] == stack.calls[-1].function


def test_vfork_parent_is_reported_and_not_held():
    case = results.case("vfork")
    report = case.report(status=program.PARTIAL)
    thread, = report["threads"]
    assert thread["state"] == "D" and thread["left_out"] and thread["registers"] is None
    assert thread["wait_channel"] != "" and thread["syscall_name"] == "clone", thread


def test_vfork_child():
    child = results.Case("vfork-child", "blocked", "vfork").require()
    truth.compare_all(child.told(), child.report())


def test_leader_has_ended():
    case = results.case("leader")
    report = case.report()
    for stack in case.told():
        truth.compare(stack, program.thread_of(report, stack.tid))


@pytest.mark.parametrize("name", results.BLOCKED)
def test_target_is_left_as_it_was(name):
    rows = [line.split() for line in results.case(name).text("after").splitlines()]
    assert rows
    for key, value in rows:
        assert value == "0" if key == "TracerPid:" else value[0] in "SDZ", rows


def test_signatures_are_stripped():
    """The kernel's mask is known, the stacks hold signed addresses, the reports hold none."""
    case = results.case("threads-pac-O2")
    capture = case.made_there("stacks")
    if not capture["pointer_authentication_mask"] and "VM_CPU" in os.environ:
        pytest.skip("this processor has no pointer authentication")
    mask = int(capture["pointer_authentication_mask"], 16)
    pcs = [int(f if isinstance(f, str) else f["pc"], 16) for t in capture["threads"] for f in t["stack_trace"]]
    assert pcs and not any(pc & (mask | 0xff << 56) for pc in pcs)
    assert signed_words(capture, pcs, mask) > 20


def signed_words(capture, pcs, mask):
    found = 0
    for thread in capture["threads"]:
        for piece in thread["stack_memory"]:
            raw = base64.b64decode(piece["bytes"])
            words = [int.from_bytes(raw[i:i + 8], "little") for i in range(0, len(raw) - 7, 8)]
            found += sum(1 for w in words if w & mask and w & ~mask & (1 << 56) - 1 in pcs)
    return found


@pytest.mark.parametrize("name", MUSL)
def test_musl(name):
    """Its functions are known by their code only, up to those that end a thread."""
    case = results.case(name)
    stacks, report = case.told(), case.report()
    for stack in stacks:
        truth.compare(stack, program.thread_of(report, stack.tid))
