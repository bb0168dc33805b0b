"""What files and captures of others can make a run take, in memory and processor time, and whom the kernel is to end."""
import copy
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import paths  # noqa: E402
import program  # noqa: E402
import target  # noqa: E402

MEMORY = 512 << 20
PROCESSOR_S = 10

# The kernel counts in what the process was before its exec: a copy of who started it, which must be small.
START = """\
import os, sys
pid = os.fork()
if not pid:
    os.execv(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss << 10, usage.ru_utime + usage.ru_stime, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def within_limits(*arguments):
    """A run that stayed below both; its cost is no part of `err`."""
    done = program.run("-S", "-c", START, paths.STACKER, *arguments, binary=sys.executable)
    *lines, cost = done.err.splitlines()
    done.err = "\n".join(lines)
    memory, seconds = (float(number) for number in cost.split())
    if b"__asan_init" not in paths.STACKER.read_bytes():
        assert memory < MEMORY and seconds < PROCESSOR_S, (memory, seconds, done)
    return done


@pytest.fixture
def captured(start, tmp_path):
    process = start(target.fixture("threads-gcc-O2"))
    process.told()
    return program.capture(process.pid, tmp_path / "capture.json")


def symbolized(capture, path):
    path.write_text(json.dumps(capture))
    return within_limits("symbolize", "--no-cache", "--input", path)


def test_capture_with_one_module_many_times(captured, tmp_path):
    module, = [m for m in captured["modules"] if "libc.so" in m["path"]]
    done = symbolized({**captured, "modules": captured["modules"] + [module] * 60000}, tmp_path / "many.json")
    assert done.status == program.NOTHING and f"'{module['path']}' is there twice" in done.err, done


def test_capture_with_one_file_at_many_places(captured, tmp_path):
    """As if it had been replaced and loaded again each time; no frame needs any of them."""
    module, = [m for m in captured["modules"] if "libc.so" in m["path"]]
    row, = [m for m in captured["memory_maps"] if m["pathname"] == module["path"] and "x" in m["permissions"]]
    rows, modules = [], copy.copy(captured["modules"])
    for n in range(60000):
        place = {"start": hex((n + 1) << 16), "end": hex((n + 1) << 16 | 0x8000)}
        rows.append({**row, **place, "inode": n + 1, "module": len(modules)})
        modules.append({**module, **place})
    rows += [m for m in captured["memory_maps"] if int(m["start"], 16) > 60001 << 16]
    done = symbolized({**captured, "modules": modules, "memory_maps": rows}, tmp_path / "many.json")
    assert done.status == program.COMPLETE and " in main " in done.out, done


# Whom the kernel ends when memory runs out.

def score_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text(encoding="ascii"))


def test_kernel_ends_stacker_first(tmp_path):
    """Itself, the process set apart, and what that starts."""
    find, log, stripped = tmp_path / "debuginfod-find", tmp_path / "log", tmp_path / "program"
    shutil.copy(target.fixture("threads-stripped"), stripped)
    find.write_text("#!/bin/sh\nread -r n p <<X\n$(cut -d' ' -f1,4 /proc/$PPID/stat)\nX\n"
                    f"cat /proc/self/oom_score_adj /proc/$n/oom_score_adj /proc/$p/oom_score_adj >{log}\nexit 1\n")
    find.chmod(0o755)
    before = score_of("self")
    done = program.run("addr2line", "-e", stripped, "0x1000", "--debuginfod",
                       env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "DEBUGINFOD_CACHE_PATH": str(tmp_path / "none")})
    assert done.status == program.COMPLETE, done
    assert log.read_text(encoding="ascii").split() == ["1000"] * 3
    assert score_of("self") == before


def test_kernel_does_not_permit_it():
    """A /proc that cannot be written: not a word."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount")
    command = ("mount --bind /dev/full /proc/$$/oom_score_adj && "
               f"exec {paths.STACKER.resolve()} addr2line -f -e {target.fixture('threads-gcc-O2')} 0")
    done = subprocess.run(["unshare", "--mount", "sh", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout and done.stderr == ""
