"""How much memory a report takes: what one module's debug information needs, not that of all together."""
import json
import os
import pathlib
import random
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import paths  # noqa: E402
import program  # noqa: E402

LIBRARIES = 3
# What has to be read of each one, and to be in memory for it; more than anything else that a run needs.
SIZE = 8 << 20
SYMBOL_SIZE = 24

LIBRARY = """\
typedef void then(int);
volatile int sink_N;
static inline __attribute__((always_inline)) void in_N(then *next) { next(N); sink_N++; }
__attribute__((noinline)) void out_N(then *next) { in_N(next); sink_N++; }
"""
STRINGS = 'asm(".pushsection .debug_str,\\"MS\\",@progbits,1\\n.incbin \\"strings_N\\"\\n.popsection");\n'
SYMBOLS = 'asm(".include \\"symbols\\"");\n'
PROGRAM = """\
#include <stdio.h>
#include <unistd.h>
typedef void then(int);
void out_0(then *), out_1(then *), out_2(then *);
static void wait_here(int n) { (void)n; puts("ready"); fflush(stdout); pause(); }
static void second(int n) { (void)n; out_2(wait_here); }
static void first(int n) { (void)n; out_1(second); }
int main(void) { out_0(first); return 0; }
"""
NAMES = [f"{what}_{n}" for n in reversed(range(LIBRARIES)) for what in ("in", "out")]


def build(place, large):
    (place / "symbols").write_text("".join(f".set s{n}, {n}\n" for n in range(SIZE // SYMBOL_SIZE)))
    for n in range(LIBRARIES):
        (place / f"strings_{n}").write_bytes(random.Random(n).randbytes(SIZE // 2).hex().encode() + b"\0")
        (place / f"lib{n}.c").write_text((LIBRARY + large).replace("_N", f"_{n}").replace("(N)", f"({n})"))
        subprocess.run(["gcc", "-g", "-O1", "-shared", "-fPIC", "-gz=zlib", "-Wl,--build-id", "-o", f"lib{n}.so",
                        f"lib{n}.c"], cwd=place, check=True)
    (place / "prog.c").write_text(PROGRAM)
    libraries = [f"-l:lib{n}.so" for n in range(LIBRARIES)]
    subprocess.run(["gcc", "-O1", "-o", "prog", "prog.c", "-L.", *libraries, "-Wl,-rpath,$ORIGIN"], cwd=place, check=True)


def with_modules(captured, wanted):
    """The same capture, with frames of no other modules."""
    spans = [(int(m["start"], 16), int(m["end"], 16)) for m in captured["modules"]
             if os.path.basename(m["path"]) in wanted]
    thread, = captured["threads"]
    kept = [pc for pc in thread["stack_trace"] if any(start <= int(pc, 16) < end for start, end in spans)]
    return {**captured, "threads": [{**thread, "stack_trace": kept}]}


# The kernel counts in what the process was before its exec: a copy of who started it, which must be small.
START = """\
import os, sys
pid = os.fork()
if not pid:
    os.execv(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss << 10, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def report_and_peak(path):
    """The report, and the bytes that making it took."""
    done = program.run("-S", "-c", START, paths.STACKER, "symbolize", "--no-cache", "--input", path, "--format", "json",
                       binary=sys.executable)
    assert done.status == program.COMPLETE, done
    return json.loads(done.out), int(done.err.splitlines()[-1])


@pytest.mark.parametrize("large", [STRINGS, SYMBOLS], ids=["decompressed", "mapped"])
def test_one_module_at_a_time(start, tmp_path, large):
    build(tmp_path, large)
    process = start(tmp_path / "prog")
    process.lines_until("ready")
    captured = program.capture(process.pid, tmp_path / "capture.json", "--quiet")
    peaks = []
    for count in (1, LIBRARIES):
        path = tmp_path / f"{count}.json"
        path.write_text(json.dumps(with_modules(captured, [f"lib{n}.so" for n in range(count)])))
        report, peak = report_and_peak(path)
        names = program.functions(report["threads"][0])
        assert names == NAMES[-2 * count:], report
        peaks.append(peak)
    if b"__asan_init" in paths.STACKER.read_bytes():
        pytest.skip("the peak: the sanitizer keeps what is given back, for a while")
    assert peaks[0] > SIZE
    assert peaks[1] < peaks[0] + SIZE // 2, peaks
