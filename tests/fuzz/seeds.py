#!/usr/bin/python3
"""First inputs for the fuzz entries, made by the machine's own compilers: seeds.py DIRECTORY

Writes DIRECTORY/ENTRY/NAME. What a tool is missing for is left out.
"""
import hashlib
import lzma
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = r"""
namespace shapes {
struct Base { virtual ~Base() {} virtual int area(int scale) const = 0; };
template <int N> struct Square : Base {
	int area(int scale) const override { return N * N * scale; }
};
inline int twice(int x) { return x > 3 ? x * 2 : x; }
static int sum(const Base &b, int n)
{
	int s = 0;
	for (int i = 0; i < n; i++)
		s += twice(b.area(i));
	return s;
}
}
extern "C" int entry(int n)
{
	shapes::Square<7> square;
	auto again = [&](int k) { return shapes::sum(square, k) + shapes::twice(n); };
	return again(n) + again(n + 1);
}
void operator delete(void *, unsigned long) {}
namespace __cxxabiv1 { struct __class_type_info { virtual void a(); }; }
"""
SECTIONS = ["info", "abbrev", "str", "line", "line_str", "str_offsets", "addr", "ranges", "rnglists", "aranges", "cu_index"]
FLAGS = {
    "dwarf2": ["-gdwarf-2", "-gstrict-dwarf"],
    "dwarf3": ["-gdwarf-3"],
    "dwarf4": ["-gdwarf-4"],
    "dwarf5": ["-gdwarf-5"],
    "dwarf5-64": ["-gdwarf-5", "-gdwarf64"],
    "types": ["-gdwarf-5", "-fdebug-types-section"],
    "lines": ["-g1"],
    "split4": ["-gdwarf-4", "-gsplit-dwarf"],
    "split5": ["-gdwarf-5", "-gsplit-dwarf"],
}


def sections_of(data):
    """{name: contents} of a little-endian ELF64 file."""
    table, = struct.unpack_from("<Q", data, 40)
    entry, count, names_index = struct.unpack_from("<HHH", data, 58)
    headers = [struct.unpack_from("<IIQQQQ", data, table + entry * i) for i in range(count)]
    names = headers[names_index]
    found = {}
    for name, kind, _, _, off, size in headers:
        at = names[4] + name
        found[data[at:data.index(b"\0", at)].decode()] = b"" if kind == 8 else data[off:off + size]
    return found


def dwarf_input(found, companion):
    """As fuzz_dwarf.c takes it: sections of a file, and of its .dwo, package or dwz file."""
    parts = [found.get(f".debug_{name}", b"")[:0xffff] for name in SECTIONS]
    parts += [companion.get(f".debug_{name}.dwo", companion.get(f".debug_{name}", b""))[:0xffff] for name in SECTIONS]
    return b"".join(struct.pack("<H", len(p)) for p in parts) + b"".join(parts)


class Seeds:
    def __init__(self, out):
        self.out = pathlib.Path(out)

    def put(self, entry, name, data):
        directory = self.out / entry
        directory.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(data)


def compile_all(seeds, place):
    (place / "seed.cpp").write_text(SOURCE)
    for compiler in ("g++", "clang++"):
        for name, flags in FLAGS.items():
            path = place / f"{compiler}-{name}.so"
            done = subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-nostdlib", "-fno-rtti", "-Wl,--build-id", *flags,
                                   "-o", path, "seed.cpp"], cwd=place, stderr=subprocess.DEVNULL, check=False)
            if done.returncode == 0:
                built(seeds, place, path)
            for left in (*place.glob("*.dwo"), *place.glob("*.dwp")):
                left.unlink()


def built(seeds, place, path):
    data = path.read_bytes()
    found = sections_of(data)
    seeds.put("elf", path.name, data)
    companions = [sections_of(dwo.read_bytes()) for dwo in place.glob("*.dwo")]
    if companions and shutil.which("dwp"):
        subprocess.run(["dwp", "-e", path, "-o", place / "package.dwp"], cwd=place, stderr=subprocess.DEVNULL, check=False)
        companions += [sections_of(dwp.read_bytes()) for dwp in place.glob("*.dwp")]
    for n, companion in enumerate(companions or [{}]):
        seeds.put("dwarf", f"{path.name}.{n}", dwarf_input(found, companion))
    if ".eh_frame" in found:
        seeds.put("cfi", path.name, bytes(1 + 64 + 128) + found[".eh_frame"])
        seeds.put("cfi", path.name + ".hdr", bytes([2]) + bytes(64 + 128) + found[".eh_frame_hdr"] + found[".eh_frame"])
    for how in ("zlib", "zlib-gnu"):
        small = place / "compressed"
        if subprocess.run(["objcopy", f"--compress-debug-sections={how}", path, small], check=False).returncode == 0:
            seeds.put("elf", f"{path.name}.{how}", small.read_bytes())
    names = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.split()
    for name in names:
        if name.startswith("_Z"):
            seeds.put("demangle", hashlib.sha1(name.encode()).hexdigest()[:12], name.encode())


def names(seeds):
    for n, name in enumerate([
            "_RNvC6_123foo3bar", "_RINvNtC3std3mem8align_ofjdE", "_RNCINkXs25_NgCsbmNqQUJIY6D_4core5sliceINyB9_4IterhENuNgNoBb_4iter8iterator8Iterator9rpositionNCNgNpB9_6memchr7memrchrs_0E0Bb_",
            "_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE", "_D3std5stdio4File6__ctorMFNfAyaxAaZSQBiQBgQBf", "_D4test1xFAxAyaHlZv",
            "_ZNSt6vectorIiSaIiEE17_M_realloc_insertIJiEEEvN9__gnu_cxx17__normal_iteratorIPiS1_EEDpOT_", "_ZZ4mainENKUlvE_clEv"]):
        seeds.put("demangle", f"other{n}", name.encode())


def texts(seeds):
    maps = pathlib.Path("/proc/self/maps").read_bytes()
    seeds.put("maps", "self", maps)
    seeds.put("maps", "odd", b"1000-2000 r-xp 00000000 fd:01 77  /a b\\012c (deleted)\n2000-3000 ---s 00001000 00:00 0 \n")
    seeds.put("perfmap", "jit", b"7f0000001000 40 LazyCompile:~f /a.js:1\n0x7f0000002000 0x10 x\n10 1 y z\n")
    for path in (HERE.parent / "golden").glob("*.capture.json"):
        seeds.put("capture", path.name, path.read_bytes())


def compressed(seeds):
    plain = SOURCE.encode() * 4
    packed = zlib.compress(plain)
    seeds.put("compress", "zlib", b"\0" + struct.pack("<IIQQ", 1, 0, len(plain), 1) + packed)
    seeds.put("compress", "zdebug", b"\1" + b"ZLIB" + struct.pack(">Q", len(plain)) + packed)
    seeds.put("compress", "xz", b"\2" + lzma.compress(plain))
    done = subprocess.run(["zstd", "-q", "-c"], input=plain, capture_output=True, check=True)
    seeds.put("compress", "zstd", b"\0" + struct.pack("<IIQQ", 2, 0, len(plain), 1) + done.stdout)


def expressions(seeds):
    words = struct.pack("<16Q", *range(0, 16 * 24, 24))
    for n, code in enumerate([b"\x77\x08\x06", b"\x76\x78\x06\x23\x10", b"\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22",
                              b"\x30\x12\x31\x22\x12\x3a\x2d\x28\xf7\xff", b"\x92\x07\x08\x94\x04\x13\x97", b"\x03" + bytes(8) + b"\x2f\x00\x00"]):
        seeds.put("expression", f"expression{n}", words + code)


def go_table(seeds):
    """Go 1.20's layout with two functions in one file (runtime/symtab.go)."""
    names_, files, lines = b"\0main.main\0main.f\0", b"/src/a.go\0", b"\0\x14\x40\x02\x40\0\0"
    units = struct.pack("<I", 0)
    function_offset = 3 * 8 + 4
    funcs = struct.pack("<IIIIII", 0, 24 + 4, 0x40, 24 + 4 + 44, 0x80, 0)[:28]
    funcs = struct.pack("<II", 0, function_offset) + struct.pack("<II", 0x40, function_offset + 44) + struct.pack("<I", 0x80) + bytes(8)

    def function(entry, name):
        return struct.pack("<IiiIIIIIIBBBB", entry, name, 0, 0, 0, 1, 1, 0, 1, 0, 0, 0, 0)[:44].ljust(44, b"\0")
    pieces, at = [], 8 + 8 * 8
    offsets = []
    for piece in (names_, units, files, lines, funcs + function(0, 1) + function(0x40, 11)):
        offsets.append(at)
        pieces.append(piece)
        at += len(piece)
    head = struct.pack("<IBBBB", 0xfffffff1, 0, 0, 1, 8) + struct.pack("<8Q", 2, 1, 0, *offsets)
    seeds.put("gopclntab", "go120", head + b"".join(pieces))
    seeds.put("gopclntab", "go118", struct.pack("<I", 0xfffffff0) + head[4:24] + struct.pack("<Q", 0x401000) + head[32:] + b"".join(pieces))


def cache_files(seeds):
    """src/symbol/cache_image.h; the entry itself makes the checksum."""
    strings, key = b"\0f\0/src/a.c\0", b"key"
    frames = [(0x1000, 1, 3, 7, 2, 1), (0x1010, 1, 0, 0, 0, 2), (0x1008, 1, 3, 9, 0, 2)]
    addresses = [(0x1000, 0, 2), (0x1004, 0, 0), (0x1008, 2, 1)]
    head = b"stackerC" + struct.pack("<QIIIIII", 0, 1, 1, len(key), len(addresses), len(frames), len(strings))
    seeds.put("cache", "small", head + key + b"".join(struct.pack("<QII", *row) for row in addresses) +
              b"".join(struct.pack("<QIIIII", *row) for row in frames) + strings)


def points_files(seeds):
    """src/symbol/points_image.h, without the windows; the entry itself makes the checksum."""
    points = b"".join(struct.pack("<QQII", *row) for row in ((100000, 80001, 1, 0), (200000, 160007, 2, 1)))
    checks = b"".join(struct.pack("<QI", *row) for row in ((5000, 7), (150000, 8)))
    info = struct.pack("<IIIQQQ", 0, 2, 2, 50000, 1000000, 190000) + points + checks
    line = struct.pack("<IIIQQQ", 3, 1, 0, 20000, 40000, 40000) + struct.pack("<QQII", 32768, 8, 1, 1)
    tables = b"key" + info + line
    seeds.put("points", "small", b"stackerP" + struct.pack("<QIIII", 0, 1, 2, len(tables), 3) + tables)


def walks(seeds):
    code = bytes.fromhex("5548 89e5 5389d8 4883ec18 e8 10000000 4883c418 5b5dc3 90 c3".replace(" ", ""))
    for choice in range(4):
        body = bytes([choice]) + struct.pack("<H", len(code)) + code
        body += b"".join(struct.pack("<H", 4 * n) for n in range(40)) + bytes(range(0, 240, 3)) * 4
        seeds.put("walk", f"walk{choice}", body)


def main():
    seeds = Seeds(sys.argv[1])
    with tempfile.TemporaryDirectory() as place:
        compile_all(seeds, pathlib.Path(place))
    for make in (names, texts, compressed, expressions, go_table, cache_files, points_files, walks):
        make(seeds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
