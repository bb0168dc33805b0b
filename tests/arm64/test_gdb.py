"""The stacks that gdb shows on the arm64 kernel, frame by frame. Of few cases; of all in the long form
(make test-arm64-gdb)."""
import re

import oracle
import program
import pytest
import results

DEPTH = 64
INLINED_MAX = 4
THREAD = re.compile(r"Thread .*\((?:LWP|process) (\d+)")
FRAME = re.compile(r"#\d+ +0x([0-9a-f]+) (?:\[PAC\] )?in (.*?) \(")
SIGNAL = re.compile(r"#\d+ +<signal handler called>")
SIGNAL_FRAME = "<signal handler called>"
# A function that left by a tail call has no frame; gdb makes one up out of call sites.
TAIL_CALLING = {"__pthread_kill_internal", "epoll_wait", "do_futex_wait", "__new_sem_wait"}
# Where the programs themselves say otherwise than gdb 13 does.
CANNOT = [
    ("vfork", "gdb waits for a vfork's parent for ever"),
    ("leader", "gdb refuses a leader that has ended"),
    (".*musl.*", "gdb repeats or loses frames of code without call frame information"),
    ("threads-nocfi-.*|jit|high-record", "gdb repeats or loses frames of code without call frame information"),
    ("tagged-.*", "gdb takes tags for a part of addresses"),
    ("data", "gdb names functions after data"),
]


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


def theirs_of(gdb, tid, mine):
    """What was asked for may end within a frame's inlined functions."""
    frames = gdb.get(tid, [])
    return frames, mine[:len(frames)] if len(frames) >= DEPTH - INLINED_MAX else mine


# The long form asks it about all.
ALL = (results.TESTS / "tests" / "all-by-gdb").exists()
ASKED = [name for name in results.BLOCKED if (ALL or results.CASES[name].how == "gdb") and
         not any(re.fullmatch(pattern, name) for pattern, _ in CANNOT)]


@pytest.mark.parametrize("name", ASKED)
def test_gdb(gdb, name):
    for thread in results.case(name).report()["threads"]:
        theirs, mine = theirs_of(gdb, thread["tid"], ours(thread))
        told = f"{program.shown(thread)}\ngdb:\n{shown(theirs)}"
        assert [f["pc"] and int(f["pc"], 16) for f in mine] == [f["pc"] for f in theirs], told
        for mine_at, theirs_at in zip(mine, theirs):
            assert oracle.same_name(mine_at["function"], theirs_at["function"], None, False), told
