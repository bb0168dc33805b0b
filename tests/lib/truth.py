"""What a fixture says about its own stacks (tests/fixtures/truth.h), and whether a report agrees."""
import os
import re

import program

# What stands between a program's own functions and the end of its stack; by C library. Names that
# need debug information may be missing: a frame of the C library without a name passes there.
OUTERMOST = {
    "start_thread", "clone", "clone3", "__clone", "__clone3", "__clone_internal", "start", "start_c",
    "_start", "_start_c", "__libc_start_call_main", "__libc_start_main", "__libc_start_main_impl",
    "__libc_start_main@@GLIBC_2.34", "libc_start_main_stage2", "__pthread_start", "__start_context",
}
ENDS = {"clone", "clone3", "__clone", "__clone3", "_start", "_start_c", "__start_context", "start_c"}
SIGNAL_FRAMES = {"__restore_rt", "__restore", "__kernel_rt_sigreturn", "restore_rt"}


class Call:
    def __init__(self, function, line, kind, file):
        self.function, self.line, self.kind, self.file = function, line, kind, file

    def __repr__(self):
        return f"{self.function} {self.file}:{self.line} {self.kind}"


class Stack:
    def __init__(self, tid, mode, name, calls):
        self.tid, self.mode, self.name, self.calls = tid, mode, name, calls

    def __repr__(self):
        return "\n".join([f"told by {self.tid} {self.name} ({self.mode})", *(f"  {c}" for c in self.calls)])


def parse(lines):
    stacks, calls, head = [], None, None
    for line in lines:
        if line.startswith("stack "):
            _, tid, mode, name = line.split(" ", 3)
            head, calls = (int(tid), mode, name), []
        elif line == "end" and calls is not None:
            stacks.append(Stack(*head, calls))
            calls = None
        elif calls is not None:
            function, number, kind, file = line.split("\t")
            calls.append(Call(function, int(number), kind, file))
    return stacks


def is_named(frame, function):
    """C++ names come with parameters, Rust's with their path; both with the parts in between; C names
    with what the compiler made of the function."""
    if not frame["function"]:
        return False
    return bool(re.search(r"(^| |::|>::)" + re.escape(function) + r"(\.cold|\.constprop\.\d+)?($|\(|::<|::h[0-9a-f]{16}$)", frame["function"]))


def is_signal_frame(frame):
    return frame["function"] in SIGNAL_FRAMES or frame["found_by"] == "signal"


def matches(frame, call, lines):
    if call.kind == "any":
        return not lines or not call.line or frame["line"] == call.line
    if call.kind == "signal":
        return is_signal_frame(frame)
    if not is_named(frame, call.function) or frame["inlined"] != (call.kind == "inlined"):
        return False
    if not lines or not call.line:
        return True
    return frame["line"] == call.line and os.path.basename(frame["file"] or "") == call.file


def library_end(frames, at, call, told):
    """Frames of libraries: up to the next call that is told."""
    while at < len(frames) and not matches(frames[at], call, False):
        assert not any(c.kind == "real" and is_named(frames[at], c.function) for c in told)
        at += 1
    return at


def compare(stack, thread, lines=True, complete=True, between=None):
    """Fails unless the thread's frames are [library] + the calls that are told + the outermost ones.

    lines: files and lines too. complete: the stack must end at its outermost frame. between: a
    pattern of frames that may stand before the outermost ones (a C++ or Rust runtime).
    """
    told = f"\n{stack}\n{program.shown(thread)}"
    frames, calls = thread["frames"], stack.calls
    # fixtures tell only what is printable ASCII of their name
    if "?" not in stack.name:
        assert thread["thread_name"] == stack.name, told
    starts = [i for i, f in enumerate(frames) if matches(f, calls[0], lines and stack.mode == "blocked")]
    assert starts, f"no frame is {calls[0]}" + told
    assert starts[0] <= 8, "much stands before the first call" + told
    if stack.mode == "blocked" and calls[0].kind == "real":
        assert starts[0] >= 1, "not in a system call" + told
    at = starts[0]
    for number, call in enumerate(calls):
        if call.kind == "library":
            at = library_end(frames, at, calls[number + 1], calls)
            continue
        assert at < len(frames), f"ends before {call}" + told
        assert matches(frames[at], call, lines and (number > 0 or stack.mode == "blocked")), \
            f"frame {at} is not {call}" + told
        at += 1
    if complete:
        check_outermost(thread, at, between, told)


def check_outermost(thread, at, between, told=""):
    frames = thread["frames"]
    while between and at < len(frames) and re.search(between, frames[at]["function"] or "?"):
        at += 1
    for frame in frames[at:]:
        in_libc = re.match(r"(libc|libpthread|ld-)", program.module_name(frame) or "")
        assert frame["function"] in OUTERMOST or (not frame["function"] and in_libc), \
            f"{frame['function']} is no outermost function" + told
    assert frames[-1]["function"] in ENDS or not frames[-1]["function"], "does not end at the outermost" + told
    assert len(frames) - at <= 4, "too many outermost frames" + told
    assert thread["end"] == "outermost frame", told
    assert thread["folded_frames"] == 0 or at, told


def compare_all(stacks, report, **how):
    """Every thread told is there and agrees, and there is no other."""
    assert sorted(s.tid for s in stacks) == sorted(t["tid"] for t in report["threads"])
    for stack in stacks:
        compare(stack, program.thread_of(report, stack.tid), **how)
