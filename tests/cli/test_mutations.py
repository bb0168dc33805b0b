"""Damaged copies of real programs, debug files and captures through the whole program: never a signal,
never long or large, always an exit status that is documented and, when it is not 0, a readable message.

STACKER_MUTATIONS=N makes N copies of each (default 300), STACKER_SEED=S others (default 1).
"""
import os
import pathlib
import random
import re
import subprocess
import tempfile
import threading

import paths
import program
import pytest
import target

COPIES = int(os.environ.get("STACKER_MUTATIONS", "300"))
SEED = int(os.environ.get("STACKER_SEED", "1"))
LIMIT_S, LIMIT_MB = 10, 1024
STATUSES = (program.COMPLETE, program.NOTHING, program.USAGE, program.PARTIAL)
TELLING = bytes([0, 1, 0x7F, 0x80, 0xFF])


def mutated(data, dice):
    """Some bytes changed, or the end cut off, or a stretch of one file put into another place."""
    data = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 8, 40))):
        at = dice.randrange(len(data))
        kind = dice.randrange(5)
        if kind == 0:
            data[at] ^= 1 << dice.randrange(8)
        elif kind == 1:
            data[at] = dice.choice(TELLING)
        elif kind == 2:
            data[at:at + 8] = bytes([dice.choice(TELLING)]) * len(data[at:at + 8])
        elif kind == 3:
            other = dice.randrange(len(data))
            stretch = data[other:other + dice.randrange(1, 64)]
            data[at:at + len(stretch)] = stretch
        elif dice.random() < 0.2:
            del data[max(at, 1):]
    return bytes(data)


def check(*arguments):
    """One run within the limits; returns its status and what it wrote to stdout."""
    with tempfile.TemporaryFile() as out_file, tempfile.TemporaryFile() as err_file:
        process = subprocess.Popen([paths.STACKER, *map(str, arguments)], stdout=out_file, stderr=err_file)
        watch = threading.Timer(LIMIT_S, process.kill)
        watch.start()
        _, status, usage = os.wait4(process.pid, 0)
        watch.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        out, err = (file.seek(0) or file.read() for file in (out_file, err_file))
    words = f"SEED {SEED}: {arguments} -> {process.returncode}, {usage.ru_maxrss // 1024} MB\n{err[-2000:]!r}"
    assert process.returncode in STATUSES, words
    assert usage.ru_maxrss < LIMIT_MB * 1024 or b"AddressSanitizer" in paths.STACKER.read_bytes(), words
    assert process.returncode in (program.COMPLETE, program.PARTIAL) or err.startswith(b"stacker: "), words
    assert all(byte >= 0x20 or byte == 0x0A for byte in err), words
    assert b"ERROR: " not in err and b"runtime error" not in err, words
    return process.returncode, out


def addresses_of(path):
    """Of functions, and some that are none."""
    out = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    starts = [int(line.split()[0], 16) for line in out.splitlines() if line.split()[1] in "tT"]
    return [f"{start + 4:#x}" for start in starts][:60] + ["0x0", "0xffffffffffffffff"]


@pytest.fixture
def dice():
    print(f"STACKER_SEED={SEED}")
    return random.Random(SEED)


def compressed(path, out, how):
    subprocess.run(["objcopy", f"--compress-debug-sections={how}", path, out], check=True)
    return out


@pytest.mark.parametrize("form", ["inlines-cpp-gcc-O2", "inlines-clang-O2", "inlines-dwarf4", "zlib", "zlib-gnu"])
def test_programs(tmp_path, dice, form):
    plain = target.fixture("inlines-cpp-gcc-O2" if form.startswith("zlib") else form)
    source = compressed(plain, tmp_path / "compressed", form) if form.startswith("zlib") else pathlib.Path(plain)
    data, addresses, copy = source.read_bytes(), addresses_of(plain), tmp_path / "copy"
    told = 0
    for _ in range(COPIES):
        copy.write_bytes(mutated(data, dice))
        status, _ = check("addr2line", "-afiCe", copy, *addresses)
        told += status == program.COMPLETE
    assert told > COPIES / 4, "mutations that spoil every copy test little"


def test_debug_files(tmp_path, dice):
    """The program is whole, its separate debug file is not. It is found by the build-id: a link's CRC
    would refuse every damaged copy before it is read."""
    plain, stripped = target.fixture("inlines-cpp-gcc-O2"), tmp_path / "prog"
    notes = subprocess.run(["readelf", "-n", plain], capture_output=True, text=True, check=True).stdout
    build_id = re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)
    debug = tmp_path / "debug/.build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    debug.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", plain, debug], check=True)
    subprocess.run(["objcopy", "--strip-debug", plain, stripped], check=True)
    data, addresses, told = debug.read_bytes(), addresses_of(plain), 0
    for _ in range(COPIES):
        debug.write_bytes(mutated(data, dice))
        status, out = check("addr2line", "-fe", stripped, "--debug-dir", tmp_path / "debug", *addresses)
        assert status == program.COMPLETE and len(out.splitlines()) == 2 * len(addresses)
        told += b"inlines.cpp:" in out
    assert told > COPIES / 4, "mutations that spoil every copy test little"


def test_captures(tmp_path, start, dice):
    process = start("threads-gcc-O2")
    process.told()
    program.capture(process.pid, tmp_path / "whole.json", "--with-stacks")
    data, copy = (tmp_path / "whole.json").read_bytes(), tmp_path / "copy.json"
    told = 0
    for _ in range(COPIES):
        copy.write_bytes(mutated(data, dice))
        status, _ = check("symbolize", "-q", "-i", copy)
        told += status in (program.COMPLETE, program.PARTIAL)
    assert told > COPIES / 20
