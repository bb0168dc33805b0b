"""The stacks that gdb shows on the arm64 kernel, frame by frame. Of few cases; of all in the long form
(make test-arm64-gdb)."""
import re

import oracle
import program
import pytest
import results

DEPTH = 64
THREAD = re.compile(r"Thread .*\(LWP (\d+)\)")
FRAME = re.compile(r"#\d+ +0x([0-9a-f]+) (?:\[PAC\] )?in (.*?) \(")
SIGNAL = re.compile(r"#\d+ +<signal handler called>")
SIGNAL_FRAME = "<signal handler called>"
# A function that left by a tail call has no frame; gdb makes one up out of call sites.
TAIL_CALLING = {"__pthread_kill_internal", "epoll_wait", "do_futex_wait", "__new_sem_wait"}
CANNOT = {"vfork": "gdb waits for a vfork's parent for ever", "leader": "gdb refuses a leader that has ended"}


def read_frames(text):
    """{tid: [{pc, function}...]}. Frames at one pc are one function with what is inlined into it."""
    threads, frames = {}, None
    for line in text.splitlines():
        if thread := THREAD.match(line):
            frames = threads.setdefault(int(thread[1]), [])
        elif frames is not None and SIGNAL.match(line):
            frames.append({"pc": None, "function": SIGNAL_FRAME})
        elif frames is not None and (frame := FRAME.match(line)) and frame[2] not in TAIL_CALLING:
            frames.append({"pc": int(frame[1], 16), "function": None if frame[2] == "??" else frame[2]})
    return threads


@pytest.fixture(scope="module")
def gdb():
    return read_frames((results.TESTS / "out" / "gdb").read_text(errors="replace"))


def ours(thread):
    """As many frames as gdb was asked for, with a trampoline told as gdb does."""
    frames = []
    for frame in thread["frames"][:DEPTH]:
        if frame["function"] == "__kernel_rt_sigreturn":
            frame = {**frame, "pc": None, "function": SIGNAL_FRAME}
        frames.append(frame)
    return frames


def shown(frames):
    return "\n".join(f"  {f['pc'] or 0:#x} {f['function']}" for f in frames)


@pytest.mark.parametrize("name", results.BLOCKED)
def test_gdb(gdb, name):
    case = results.case(name)
    report = case.report(status=program.PARTIAL if name == "vfork" else program.COMPLETE)
    threads = [t for t in report["threads"] if t["registers"]]
    if case.how != "gdb" and not any(t["tid"] in gdb for t in threads):
        pytest.skip(CANNOT.get(name, "make test-arm64-gdb asks gdb about all"))
    for thread in threads:
        mine, theirs = ours(thread), gdb.get(thread["tid"], [])
        told = f"{program.shown(thread)}\ngdb:\n{shown(theirs)}"
        assert [f["pc"] and int(f["pc"], 16) for f in mine] == [f["pc"] for f in theirs], told
        for mine_at, theirs_at in zip(mine, theirs):
            assert oracle.same_name(mine_at["function"], theirs_at["function"], None, False), told
