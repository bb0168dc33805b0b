"""What files and captures of others can make a run take, in memory and processor time, and whom the kernel is to end."""
import copy
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import zlib

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


# Files that claim more than there is.

PROGRAM = "#include <unistd.h>\nint main(void) { write(1, \"ready\\n\", 6); return pause(); }\n"
GREAT = 4 << 30


class Sections:
    """The section headers of a program of our own, to be changed where it lies."""

    def __init__(self, path, *options):
        self.path = path
        subprocess.run(["gcc", "-x", "c", "-", "-O1", "-Wl,--build-id", "-gdwarf-5", "-o", path, *options],
                       input=PROGRAM, text=True, check=True)
        data = path.read_bytes()
        self.headers, = struct.unpack_from("<Q", data, 40)
        count, names = struct.unpack_from("<HH", data, 60)
        at, = struct.unpack_from("<Q", data, self.headers + names * 64 + 24)
        self.index = {}
        for n in range(count):
            name = at + struct.unpack_from("<I", data, self.headers + n * 64)[0]
            self.index[data[name:data.index(b"\0", name)].decode()] = n

    def move(self, name, size, contents=b"", flags=0):
        """To the end of the file, which grows by `size`, mostly a hole."""
        with open(self.path, "r+b") as file:
            offset = (file.seek(0, os.SEEK_END) + 4095) & ~4095
            header = self.headers + self.index[name] * 64
            file.seek(header + 8)
            before, = struct.unpack("<Q", file.read(8))
            file.seek(header + 8)
            file.write(struct.pack("<Q", before | flags))
            file.seek(header + 24)
            file.write(struct.pack("<QQ", offset, size))
            file.seek(offset)
            file.write(contents)
            file.truncate(offset + size)


SHF_COMPRESSED, ZLIB, ZSTD, PLAIN = 0x800, 1, 2, 3 << 30


def zeros_by_zlib():
    """Three thousand times the same block of a megabyte; the Adler-32 of n zeros is n mod 65521, and 1."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packer.compress(b"\0" * 65536)
    packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(b"\0" * (1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x78\xda" + block * (PLAIN >> 20) + b"\x03\x00" + struct.pack(">HH", PLAIN % 65521, 1)


def zeros_by_zstd():
    """Blocks of one repeated byte (RFC 8878, 3.1.1.2)."""
    size = 128 << 10
    block = struct.pack("<I", size << 3 | 1 << 1)[:3] + b"\0"
    last = struct.pack("<I", size << 3 | 1 << 1 | 1)[:3] + b"\0"
    return b"\x28\xb5\x2f\xfd\x00\x50" + block * (PLAIN // size - 1) + last


def bomb(kind, stream):
    return struct.pack("<IIQQ", kind, 0, PLAIN, 1) + stream


CLAIMS = {
    "aranges": lambda s: s.move(".debug_aranges", 1 << 40),
    "symtab": lambda s: s.move(".symtab", GREAT),
    "dynsym": lambda s: s.move(".dynsym", GREAT),
    "zlib": lambda s: s.move(".debug_str", 4 << 20, bomb(ZLIB, zeros_by_zlib()), SHF_COMPRESSED),
    "zstd": lambda s: s.move(".debug_str", 3 << 20, bomb(ZSTD, zeros_by_zstd()).ljust(3 << 20, b"x"), SHF_COMPRESSED),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_section_that_claims_much(start, tmp_path, claim):
    sections = Sections(tmp_path / "program")
    CLAIMS[claim](sections)
    assert sections.path.stat().st_blocks * 512 < 8 << 20
    process = start(sections.path)
    process.lines_until("ready")
    capture = tmp_path / "capture.json"
    within_limits("capture", "--pid", process.pid, "--output", capture)
    for arguments in (["onephase", "--pid", process.pid], ["symbolize", "--input", capture]):
        done = within_limits(*arguments, "--no-cache", "--format", "json")
        report = json.loads(done.out)
        notes = [note for note in report["notes"] if str(sections.path) in note]
        names = program.functions(report["threads"][0])
        assert "main" in names and (notes or claim == "dynsym"), done  # it is found without section headers, too
        lost = "_start" not in names or claim in ("zlib", "zstd")
        assert report["partial"] == lost and done.status == (program.PARTIAL if lost else program.COMPLETE), done


MAPS = """\
import mmap, os, sys, time
kept = [mmap.mmap(os.open(name, os.O_RDONLY), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
        for name in sys.argv[1:]]
print("ready", flush=True)
time.sleep(1000)
"""


def test_many_files_that_claim_sections(start, tmp_path):
    """Four million each, and no frame needs them."""
    data = bytearray(Sections(tmp_path / "program").path.read_bytes())
    count, at = 4 << 20, 1 << 20
    struct.pack_into("<Q", data, 40, at)
    struct.pack_into("<HHH", data, 58, 64, 0, 0)
    for n in range(20):
        with open(tmp_path / str(n), "wb") as file:
            file.write(data)
            file.seek(at + 32)
            file.write(struct.pack("<Q", count))
            file.truncate(at + 64 * count)
    process = start(pathlib.Path(sys.executable), "-c", MAPS, *(tmp_path / str(n) for n in range(20)))
    process.lines_until("ready")
    done = within_limits("onephase", "--pid", process.pid, "--no-cache")
    assert done.status == program.COMPLETE, done


# Perf maps: what names code that is in no file.

JIT = """\
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
int main(void)
{
	void *page = mmap((void *)0x700000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	memcpy(page, "\\xeb\\xfe", 2);
	puts("ready");
	fflush(stdout);
	((void (*)(void))page)();
}
"""


def perf_map_large(path):
    """One byte more than is read."""
    path.write_text("700000000 1000 made\n")
    os.truncate(path, (256 << 20) + 1)


def perf_map_long(path):
    with open(path, "w", encoding="ascii") as file:
        file.write("700000000 1000 made\n")
        for n in range(8):
            file.write("".join(f"{(n << 20) + i:x} 8 f{i}\n" for i in range(1 << 20)))


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="code of x86_64")
@pytest.mark.parametrize("write,why", [(perf_map_large, "its perf map is larger than 256 MiB"),
                                       (perf_map_long, "its perf map has more lines than there is room for")])
def test_perf_map(start, tmp_path, write, why):
    subprocess.run(["gcc", "-x", "c", "-", "-O1", "-o", tmp_path / "jit"], input=JIT, text=True, check=True)
    process = start(tmp_path / "jit")
    process.lines_until("ready")
    perf_map, capture = pathlib.Path(f"/tmp/perf-{process.pid}.map"), tmp_path / "capture.json"
    try:
        write(perf_map)
        taken = within_limits("capture", "--pid", process.pid, "--output", capture, "--quiet")
    finally:
        perf_map.unlink(missing_ok=True)
    assert taken.status == program.PARTIAL and why in taken.err, taken
    done = within_limits("symbolize", "--input", capture)
    assert done.status == program.PARTIAL and f"code made at run time has no names: {why}" in done.out, done
