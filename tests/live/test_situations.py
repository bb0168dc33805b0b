"""Situations that tracers get wrong: signals, bad calls, recursion, odd frames, odd code."""
import os
import pathlib
import re
import subprocess

import paths
import program
import pytest
import target
import truth

SIGNALS = ["signals-gcc-O0", "signals-gcc-O2"]
HOW = ["nested", "altstack", "altstack-outer", "first", "null", "wild", "data", "blocked"]


def check(start, name, *arguments, threads=1, **how):
    process = start(name, *arguments)
    stacks = process.told()
    report = program.report(process.pid)
    assert len(report["threads"]) == threads
    for stack in stacks:
        truth.compare(stack, program.thread_of(report, stack.tid), **how)
    return report


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", SIGNALS)
def test_signal(start, name, how):
    report = check(start, name, how, threads=2 if how == "blocked" else 1)
    frames = report["threads"][0]["frames"]
    at = [i for i, f in enumerate(frames) if truth.is_signal_frame(f)]
    assert len(at) == (2 if how in ("nested", "altstack", "altstack-outer") else 1)
    bad = {"null": 0, "wild": 0x123}
    if how in bad:
        assert int(frames[at[0] + 1]["pc"], 16) == bad[how] and frames[at[0] + 1]["function"] is None
    if how == "first":  # the pc is the function's own first byte: the one before is another's
        assert frames[at[0] + 1]["function_offset"] == 0


def cpu_seconds(tid):
    fields = pathlib.Path(f"/proc/{tid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_the_demo_grinds_for_ever(tmp_path):
    """What README shows of demo/sample.c is there however late one looks."""
    sample = tmp_path / "sample"
    subprocess.run(["gcc", "-O2", "-g", "-pthread", "-o", sample, paths.TOP / "demo/sample.c"], check=True)
    with target.running(sample) as process:
        process.lines_until("ready")
        grinder = next(tid for tid in process.tids() if pathlib.Path(f"/proc/{tid}/comm").read_text() == "grinder\n")
        # 1.5 s of processor time: more than grind() takes for a sack, so it is called again.
        target.await_that(lambda: cpu_seconds(grinder) > 1.5, 60, lambda: "the grinder grinds")
        names = [f["function"] for f in program.thread_of(program.report(process.pid), grinder)["frames"]]
        assert names[:4] in (["crush", "grind", "fill_sacks", "grinder"], ["grind", "fill_sacks", "grinder", "start_thread"]), names


@pytest.mark.parametrize("name", ["noreturn-gcc-O2", "noreturn-clang-O2"])
def test_call_that_is_the_last_instruction(start, name):
    check(start, name)


@pytest.mark.parametrize("name", ["realign-gcc-O0", "realign-gcc-O2", "realign-clang-O2"])
def test_realigned_stack(start, name):
    check(start, name)


def test_recursion(start):
    """100,000 frames: both ends are kept, and what was folded is counted. Nothing is lost."""
    process = start("recursion", "100000")
    stacks = process.told()
    report = program.report(process.pid)
    assert len(stacks) == 0 and len(report["threads"]) == 2 or stacks
    for thread in report["threads"]:
        names = program.functions(thread)
        recursing = names.count("recurse")
        assert recursing + thread["folded_frames"] == 100001, program.shown(thread)[-600:]
        assert recursing > 100 and thread["folded_frames"] > 90000
        assert names[0] == "pause" or names[1] == "recurse" or names[0] is None
        fold = thread["folded_before"]
        assert names[fold - 1] == names[fold] == "recurse"
        assert thread["end"] == "outermost frame"
        assert names[-1] in truth.ENDS | {None}
        outer = names[names.index("recurse") + recursing:]
        assert outer[0] == ("main" if thread["tid"] == process.pid else "thread_main")
    text = program.run("onephase", "--pid", process.pid).out
    assert re.search(r"9\d,?\d{3} (more )?frames", text), text[-3000:]
    before, left_out, after = re.search(r"#(\d+): .*\n  \[(\d+) frames .*\n  #(\d+): ", text).groups()
    assert int(after) == int(before) + int(left_out) + 1


def test_recursion_limit(start):
    """--max-frames ends a stack, and the report says that it did."""
    process = start("recursion", "1000")
    process.told()
    report = program.report(process.pid, "--max-frames", "100", status=(0, 3))
    for thread in report["threads"]:
        assert len(thread["frames"]) + thread["folded_frames"] == 100
        assert thread["end"] == "frame limit"


def test_stack_limit(start):
    """A stack that is cut says so, and which option widens it."""
    process = start("recursion", "20000")
    process.told()
    report = program.report(process.pid, "--stack-limit", "65536", status=(3,))
    for thread in report["threads"]:
        assert thread["end"] == "outside the captured stack", program.shown(thread)[-400:]
        assert "--stack-limit" in thread["end_detail"]
        assert thread["stack_missing"] > 0
    assert report["capture"]["stack_bytes_missing"] > 0


@pytest.mark.parametrize("how", ["fp", "moves"])
def test_assembler(start, how):
    report = check(start, "nocfi", how)
    ways = {f["function"]: f["found_by"] for f in report["threads"][0]["frames"]}
    assert ways["calls"] == {"fp": "fp", "moves": "cfi"}[how]


def test_assembler_that_nobody_can_unwind(start):
    """Neither CFI nor frame pointer: the frame is shown, nothing is invented, the reason is said."""
    process = start("nocfi", "nofp")
    stack, = process.told()
    thread, = program.report(process.pid)["threads"]
    names = program.functions(thread)
    at = names.index("asm_without_frame_pointer")
    assert names[at - 2:at] == ["blocked", "called_by_asm"]
    rest = [n for n in names[at + 1:]]
    true_rest = [c.function for c in stack.calls[3:]]
    assert rest[:len(true_rest)] == true_rest[:len(rest)], program.shown(thread)
    if not rest:
        assert thread["end"] == "no unwind information" and "nocfi+0x" in thread["end_detail"]


def test_leaf_without_frame(start):
    """Busy in an assembler function that has neither CFI nor a frame. Its caller is found when the
    code before the return address shows the call; here it is through a pointer, so nothing is
    proven: what is shown must still be true."""
    process = start("nocfi", "leaf")
    process.told()
    thread, = program.report(process.pid)["threads"]
    names = program.functions(thread)
    true_names = ["asm_leaf", "calls_leaf", "main"]
    assert names[:3] == true_names[:len(names)], program.shown(thread)
    if len(names) < 3:
        assert thread["end"] == "no unwind information", program.shown(thread)


def test_empty_call_frame_information(start):
    """An FDE without instructions of its own is still what holds; the frame pointer is not asked."""
    process = start("nocfi", "empty")
    process.told()
    thread, = program.report(process.pid)["threads"]
    names = program.functions(thread)
    assert names[:3] == ["asm_empty_fde", "calls_leaf", "main"], program.shown(thread)
    truth.check_outermost(thread, 3, None)


def test_cold_partition(start):
    """Away from the rest of its function, under its name, and with the right caller."""
    report = check(start, "cold")
    frames = {f["function"].split(".")[0]: f for f in report["threads"][0]["frames"]}
    symbols = subprocess.run(["nm", target.fixture("cold")], capture_output=True, text=True, check=True).stdout
    cold, = [int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" parted.cold")]
    assert 0 < int(frames["parted"]["offset"], 16) - cold < 256


@pytest.mark.parametrize("name", ["far", "far-no-pie"])
def test_two_code_segments(start, name):
    check(start, name)


def test_first_function_without_unwind_information(start):
    report = check(start, "own-start", complete=False)
    frames = report["threads"][0]["frames"]
    assert frames[-1]["function"] == "_start" and report["threads"][0]["end"] == "outermost frame"


def test_coroutine(start):
    """A makecontext stack ends where makecontext made it begin, without junk."""
    process = start("coroutine")
    stack, = process.told()
    thread, = program.report(process.pid)["threads"]
    truth.compare(stack, thread)


def test_jit(start):
    """Code in anonymous memory: a frame without module and name, and its caller after it."""
    report = check(start, "jit")
    frames = report["threads"][0]["frames"]
    nameless = [i for i, f in enumerate(frames) if f["module"] is None]
    assert len(nameless) == 1 and frames[nameless[0] + 1]["found_by"] == "fp"


def test_text_remapped_to_anonymous_memory(start):
    check(start, "remap")
