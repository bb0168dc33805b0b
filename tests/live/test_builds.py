"""One program, built by every compiler, linker and layout: its stacks are what it tells itself."""
import json
import platform
import re
import shutil
import subprocess

import program
import pytest
import target
import truth
import wants

# C++'s and Rust's runtimes stand between a program's functions and the C library's.
CPP = r"^(void |int )?std::|^\(|^\?$|lambda|^(__invoke|_M_invoke|operator\(\))"
RUST = r"std::|core::|alloc::|^main$|__rust_|^\?$"

THREADS = [
    "gcc-O0", "gcc-O1", "gcc-O2", "gcc-O3-lto", "gcc-Os", "g++", "clang-O0", "clang-O2", "frame-pointer",
    "no-frame-pointer", "static", "static-pie", "no-pie", "cf-protection", "lld", "lld-no-pie",
    "lld-no-rosegment", "lld-separate-code", "lld-static-pie", "mold", "mold-no-pie", "mold-noseparate-code",
    "mold-static-pie", "gold", "gold-no-table", "gold-no-pie", "noseparate-code", "large-pages", "now", "lazy",
    "dwarf4", "compressed", "no-table", "debug-frame", "debug-frame-compressed", "table-omit", "table-wrong",
    "no-program-header", "no-build-id", "other-build-id", "debuglink", "debug-frame-debuglink",
]
BUILDS = [f"threads-{name}" for name in THREADS]
INLINES = ["inlines-gcc-O0", "inlines-gcc-O2", "inlines-clang-O2", "inlines-lto", "inlines-dwarf4"]
LANGUAGES = [
    ("inlines-cpp-gcc-O0", CPP), ("inlines-cpp-gcc-O2", CPP), ("inlines-cpp-clang-O2", CPP),
    ("rusty-debug", RUST), ("rusty-v0", RUST), ("rusty-legacy", RUST),
]
# The distribution's musl has no unwind information at all: its code tells.
MUSL = ["threads-musl-static", "threads-musl-static-pie"]


@pytest.mark.parametrize("name", BUILDS)
def test_build(start, name):
    process = start(name)
    stacks = process.told()
    truth.compare_all(stacks, program.report(process.pid))
    assert len(stacks) == 11
    assert process.is_unharmed()


@pytest.mark.parametrize("name", INLINES)
def test_inlined(start, name):
    process = start(name)
    stacks = process.told()
    assert "inlined" in {call.kind for stack in stacks for call in stack.calls}
    truth.compare_all(stacks, program.report(process.pid))


@pytest.mark.parametrize("name,runtime", LANGUAGES)
def test_language(start, name, runtime):
    process = start(name)
    stacks = process.told()
    truth.compare_all(stacks, program.report(process.pid), between=runtime)


@pytest.mark.parametrize("name", ["threads-stripped", "threads-no-sections"])
def test_stripped(start, name):
    """No names, but the same frames: asked for by module and offset in the file that has them."""
    process = start(name)
    stacks = process.told()
    report = program.report(process.pid)
    named = target.fixture("threads-gcc-O2")
    for stack in stacks:
        thread = program.thread_of(report, stack.tid)
        own = [f for f in thread["frames"] if program.module_name(f) == name]
        assert all(f["function"] in (None, "_start") and f["line"] is None for f in own), program.shown(thread)
        asked = [hex(int(f["offset"], 16) - 1) for f in own if f["function"] is None]
        out = subprocess.run(["addr2line", "-f", "-e", named, *asked], capture_output=True, text=True).stdout
        names = [n for n in out.splitlines()[::2] if n != "_start"]
        assert names == [c.function for c in stack.calls], program.shown(thread)
        assert thread["end"] == "outermost frame"


def test_no_unwind_information_with_frame_pointers(start):
    """No names of lines either (-g0): the functions are known, and each found by frame pointers."""
    process = start("threads-nocfi-fp")
    stacks = process.told()
    report = program.report(process.pid)
    truth.compare_all(stacks, report, lines=False)
    blocked = [program.thread_of(report, s.tid) for s in stacks
               if s.mode == "blocked" and any(c.function == "inner" for c in s.calls)]
    ways = [f["found_by"] for thread in blocked for f in thread["frames"] if f["function"] == "inner"]
    assert ways == ["fp"] * len(blocked) and len(blocked) > 5


def own_ways(report, name):
    return {f["found_by"] for t in report["threads"] for f in t["frames"][1:]
            if program.module_name(f) == name and f["function"] in ("inner", "middle", "outer")}


def test_call_frames_in_a_debug_file(start, tmp_path):
    """.debug_frame is only in the separate debug file, wherever that is; without it the code tells."""
    name = "threads-debug-frame-debuglink"
    program_file, debug_file = tmp_path / "moved" / name, f"{name}.debug"
    program_file.parent.mkdir()
    shutil.copy(target.fixture(name), program_file)
    process = start(program_file)
    stacks = process.told()
    without = program.report(process.pid)
    assert "debug_frame" not in own_ways(without, name)
    (tmp_path / "debug").mkdir()
    shutil.copy(target.fixture(debug_file), tmp_path / "debug" / debug_file)
    there = ("--debug-dir", tmp_path / "debug")
    report = program.report(process.pid, *there)
    truth.compare_all(stacks, report)
    assert own_ways(report, name) == {"debug_frame"}
    program.capture(process.pid, tmp_path / "capture.json", "--with-stacks")
    again = program.symbolized(tmp_path / "capture.json", *there)
    truth.compare_all(stacks, again)
    assert own_ways(again, name) == {"debug_frame"}
    program.capture(process.pid, tmp_path / "capture.json", *there)
    assert own_ways(program.symbolized(tmp_path / "capture.json", *there), name) == {"debug_frame"}


def check_true_prefix(stack, thread):
    """Nothing invented: of the calls that are told as many as there are frames, and a reason."""
    told = [c.function for c in stack.calls]
    ours = [f["function"] for f in thread["frames"]]
    known = [f for f in ours if f in told]
    assert known == told[:len(known)], f"{stack}\n{program.shown(thread)}"
    first = ours.index(known[0]) if known else len(ours)
    after = ours[first + len(known):]
    assert not after or len(known) == len(told), f"{stack}\n{program.shown(thread)}"
    assert all(f in truth.OUTERMOST for f in after), f"{stack}\n{program.shown(thread)}"
    pairs = [(f["pc"], i) for i, f in enumerate(thread["frames"]) if not f["inlined"]]
    assert len({pc for pc, _ in pairs}) == len(pairs), f"repeats\n{program.shown(thread)}"
    assert all(f["module"] for f in thread["frames"]), program.shown(thread)
    if len(known) < len(told):
        assert thread["end"] == "no unwind information", f"{stack}\n{program.shown(thread)}"
        assert re.search(r"\+0x[0-9a-f]+", thread["end_detail"]), program.shown(thread)


def test_no_unwind_information_at_all(start):
    """Neither tables nor frame pointers: what is shown is true, and where and why it ends is said."""
    process = start("threads-nocfi-nofp")
    stacks = process.told()
    report = program.report(process.pid)
    for stack in stacks:
        thread = program.thread_of(report, stack.tid)
        assert stack.calls[0].function in program.functions(thread), program.shown(thread)
        check_true_prefix(stack, thread)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="not known of other compilers")
def test_the_code_tells(start):
    """The same: what the code does until it returns leads to the end of every stack."""
    process = start("threads-nocfi-nofp")
    stacks = process.told()
    report = program.report(process.pid)
    truth.compare_all(stacks, report, lines=False)
    assert own_ways(report, "threads-nocfi-nofp") == {"scan"}


@pytest.mark.parametrize("name", MUSL)
def test_musl_without_junk(start, name):
    process = start(name)
    stacks = process.told()
    report = program.report(process.pid)
    for stack in stacks:
        check_true_prefix(stack, program.thread_of(report, stack.tid))


@pytest.mark.parametrize("name", MUSL)
def test_musl(start, name):
    process = start(name)
    stacks = process.told()
    truth.compare_all(stacks, program.report(process.pid))


def plain(report):
    """What must be the same however a report was made."""
    return [(t["tid"], t["thread_name"], t["end"], t["folded_frames"],
             [{k: f[k] for k in ("pc", "function", "file", "line", "inlined", "module", "offset", "found_by")}
              for f in t["frames"]])
            for t in report["threads"]]


@pytest.mark.parametrize("name", ["threads-gcc-O2", "threads-static", "inlines-gcc-O2", "inlines-cpp-gcc-O2",
                                  "threads-debug-frame", "threads-debuglink", "threads-stripped"])
@pytest.mark.parametrize("how", [(), ("--with-stacks",)])
def test_two_phases_say_the_same(start, tmp_path, name, how):
    process = start(name)
    process.told()
    report = program.report(process.pid)
    program.capture(process.pid, tmp_path / "capture.json", *how)
    process.end()
    assert plain(program.symbolized(tmp_path / "capture.json")) == plain(report)
    assert plain(program.symbolized(tmp_path / "capture.json", "--executable", target.fixture(name))) == plain(report)


@pytest.mark.parametrize("how", ["nested", "altstack-outer", "blocked"])
def test_two_phases_of_signals(start, tmp_path, how):
    process = start("signals-gcc-O2", how)
    process.told()
    report = program.report(process.pid)
    program.capture(process.pid, tmp_path / "capture.json")
    process.end()
    assert plain(program.symbolized(tmp_path / "capture.json")) == plain(report)


VDSO_LOOKS = 30


def test_two_phases_in_the_vdso(start, tmp_path):
    """Its image is in the capture: it is no file, and another machine has another one. Only what it exports
    has a name."""
    process = start("leaf", "vdso")
    stack, = process.told()
    for _ in range(VDSO_LOOKS):
        program.capture(process.pid, tmp_path / "capture.json")
        thread, = program.symbolized(tmp_path / "capture.json")["threads"]
        truth.compare(stack, thread)
        names = [f["function"] or "" for f in thread["frames"] if f["module"] == "[vdso]"]
        if any("clock_gettime" in name for name in names):
            return
    assert False, program.shown(thread)


@pytest.mark.parametrize("name", ["threads-gcc-O2", "threads-debug-frame-compressed", "inlines-cpp-gcc-O2",
                                  "threads-table-omit", "threads-no-sections", "rusty-v0"])
def test_sanitizers_find_nothing(start, tmp_path, name):
    """The build with the address and undefined-behaviour sanitizers says the same."""
    process = start(name)
    process.told()
    report = program.report(process.pid)
    assert plain(program.report(process.pid, binary=wants.sanitized())) == plain(report)
    path = tmp_path / "capture.json"
    program.capture(process.pid, path, "--with-stacks", binary=wants.sanitized())
    assert plain(program.symbolized(path, binary=wants.sanitized())) == plain(report)


def test_text_report_has_the_same_frames(start):
    process = start("inlines-gcc-O2")
    process.told()
    report = program.report(process.pid)
    done = program.run("onephase", "--pid", process.pid)
    rows = re.findall(r"^ +#(\d+): (0x[0-9a-f]+) in (\S+)( \[inlined\])?", done.out, re.MULTILINE)
    frames = [f for t in report["threads"] for f in t["frames"]]
    assert [(int(pc, 16), bool(inlined)) for _, pc, _, inlined in rows] == \
        [(int(f["pc"], 16), f["inlined"]) for f in frames], done.out
    assert [name.split("+")[0] for _, _, name, _ in rows] == [f["function"] or "??" for f in frames], done.out


def test_registers(start):
    """The program counter and stack pointer are those of the innermost frame; all are there by name."""
    process = start("threads-gcc-O2")
    process.told()
    report = program.report(process.pid)
    pc_name, some = {"x86_64": ("RIP", ["RAX", "R15", "EFLAGS", "CS", "SS", "DS", "ES", "FS", "GS", "ORIG_RAX"]),
                     "aarch64": ("PC", ["X0", "X30", "SP", "PSTATE"])}[report["architecture"]]
    for thread in report["threads"]:
        registers = thread["registers"]
        assert int(registers[pc_name], 16) == int(thread["frames"][0]["pc"], 16)
        assert all(name in registers for name in some)


def test_json_is_json(start):
    process = start("threads-gcc-O2")
    process.told()
    done = program.run("onephase", "--pid", process.pid, "--format", "json", "--no-registers", "--no-maps",
                       "--method", "ptrace")
    report = json.loads(done.out)
    assert report["format"] == "stacker-report" and "memory_maps" not in report
    assert all("registers" not in t for t in report["threads"])
    capture = report["capture"]
    assert capture["threads_found"] == capture["threads_stopped"] == 11 and capture["threads_left_out"] == 0
    assert 0 < capture["held_median_ns"] <= capture["held_longest_ns"] <= capture["stopped_ns"]
