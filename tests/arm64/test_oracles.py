"""Files of arm64 read on this machine: the C library's call frame information as readelf reads it, its
code against that, and its debug information as llvm-symbolizer and binutils' addr2line read it."""
import re
import subprocess
import sys

import paths
import pytest
import results
import wants

SYSROOT = results.TESTS / "sysroot" if results.TESTS else None
PROGRAMS = results.TESTS / "oracles" if results.TESTS else None
LIBRARIES = ["lib/aarch64-linux-gnu/libc.so.6", "usr/lib/aarch64-linux-gnu/libstdc++.so.6"]
ADDRESSES = 20000
# Of the instructions that call frame information is about: how many the code must tell, and may tell
# otherwise. All that is told otherwise is where the return address is, in a frame of the same size.
TOLD_PERCENT, WRONG_PERCENT = 80, 0.1


def run(*arguments):
    return subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("how", [(), ("--lookup",)])
def test_rows(library, how):
    done = run(sys.executable, paths.TOP / "tests/oracle/compare_rows.py", *how, PROGRAMS / "rows", SYSROOT / library)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"total: (\d+) rows", done.stdout)[1]) > 20000


@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_told_by_code(library):
    done = run(PROGRAMS / "code_rows", SYSROOT / library)
    *differences, numbers = done.stdout.splitlines()
    same, loaded, none, other, different = map(int, re.findall(r"\d+", numbers))
    every = same + loaded + none + other + different
    assert same > every * TOLD_PERCENT / 100, numbers
    assert different < every * WRONG_PERCENT / 100, numbers
    assert all(ours == theirs for ours, theirs in re.findall(r"CFA sp(\S+), not (\S+)", "\n".join(differences)))


@pytest.mark.parametrize("find", [wants.symbolizer, lambda: wants.tool("aarch64-linux-gnu-addr2line")],
                         ids=["llvm", "binutils"])
def test_symbols(find):
    debug_file, = (SYSROOT / "usr/lib/debug/.build-id").glob(build_id_path(SYSROOT / LIBRARIES[0]))
    done = run(sys.executable, paths.TOP / "tests/oracle/compare_symbolizer.py", "--stacker", paths.STACKER,
               "--oracle", find(), "--count", ADDRESSES, debug_file)
    assert done.returncode == 0, done.stdout + done.stderr


def build_id_path(path):
    text = run("readelf", "-nW", path).stdout
    build_id = re.search(r"Build ID: ([0-9a-f]+)", text)[1]
    return f"{build_id[:2]}/{build_id[2:]}.debug"
