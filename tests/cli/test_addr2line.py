"""stacker addr2line beside binutils' addr2line: the same bytes for the same options, on every
address of programs made here. Where they differ llvm-symbolizer is asked who is right.

Classes of difference that are known, and who is right:
  discriminators   binutils adds " (discriminator N)"; left out on purpose
  DWARF 5 file 0   binutils 2.40 takes the unit's own file for files that are named by index 0 or 1
  DW_FORM_addrx    binutils 2.40 loses inlined levels of clang's DWARF 5
  unnamed inlines  binutils names an inlined function without linkage name like its caller
"""
import os
import re
import shutil
import subprocess
import sys
import pathlib
import threading

import pytest
import wants

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import paths  # noqa: E402
import program  # noqa: E402

C_SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
static int helper(int x) { return x * 3 + rand(); }
static inline __attribute__((always_inline)) int wrapped(int x) { return helper(x) + 1; }
__attribute__((noinline)) int checked(int x)
{
	if (x < 0)
		abort();
	return wrapped(x) + wrapped(x + 1);
}
int main(int argc, char **argv)
{
	(void)argv;
	printf("%d\n", checked(argc));
	return 0;
}
"""
CXX_SOURCE = r"""
#include <algorithm>
#include <map>
#include <string>
#include <vector>
namespace { struct Hidden { int v; int get(int k) const { return v * k + rand(); } }; }
static __attribute__((noinline)) int sorted(std::vector<int> &v)
{
	std::sort(v.begin(), v.end(), [](int a, int b) { return a * rand() < b * rand(); });
	return v[0];
}
template <class T> struct Box { T t; __attribute__((noinline)) T twice() { return t + t; } };
struct Base { virtual ~Base() {} virtual int f(const std::string &s) = 0; };
struct Derived : Base {
	std::map<std::string, int> m;
	int f(const std::string &s) override { return m[s]++; }
};
int main(int argc, char **argv)
{
	std::vector<int> x;
	for (int i = 0; i < argc * 5; i++)
		x.push_back(i ^ 7);
	Box<std::string> box{argv[0]};
	Derived d;
	return sorted(x) + Hidden{argc}.get(3) + (int)box.twice().size() + d.f(argv[0]);
}
"""
LETTERS = ["-a", "-af", "-afi", "-afip", "-afipCs", "-aC", "-fs"]


def made(directory, compiler, *flags, source=None, name="prog"):
    """A program compiled in `directory`."""
    wants.tools(compiler.split()[0])
    cxx = "++" in compiler
    file = directory / ("prog.cpp" if cxx else "prog.c")
    file.write_text(source or (CXX_SOURCE if cxx else C_SOURCE))
    subprocess.run([*compiler.split(), *flags, file.name, "-o", name], cwd=directory, check=True)
    return directory / name


def code_addresses(path):
    """Every address of every executable section, and some outside."""
    out = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    found = [0, 0x10, 0x7FFFFFFF, 2**64 - 1]
    for line in out.splitlines():
        row = re.match(r"\s*\[\s*\d+\]\s+\S+\s+\S+\s+([0-9a-f]+)\s+[0-9a-f]+\s+([0-9a-f]+)\s+\S+\s+(\S*X)", line)
        if row:
            start, size = int(row[1], 16), int(row[2], 16)
            found += range(start, start + size)
    return found


def lines_of(addresses):
    return "".join(f"{a:x}\n" for a in addresses)


def ours(path, *options, text="", binary=None):
    done = program.run("addr2line", "-e", path, *options, input=text, binary=binary)
    assert done.status == program.COMPLETE, done
    return done.out


def binutils(path, *options, text=""):
    wants.tools("addr2line")
    done = subprocess.run(["addr2line", "-e", path, *options], input=text, capture_output=True, text=True, check=True)
    return re.sub(r" \(discriminator \d+\)", "", done.stdout)


def by_address(text):
    """The answers of -a, one list of lines each."""
    answers = []
    for line in text.splitlines():
        if line.startswith("0x"):
            answers.append([])
        answers[-1].append(line)
    return answers


# Byte for byte.

C_VARIANTS = {
    "O0": ["-g", "-O0"],
    "O2": ["-g", "-O2"],
    "dwarf4": ["-gdwarf-4", "-O2"],
    "dwarf3": ["-gdwarf-3", "-gstrict-dwarf", "-O2"],
    "dwarf2": ["-gdwarf-2", "-gstrict-dwarf", "-O1"],
    "g1": ["-g1", "-O2"],
    "no-debug": ["-O2"],
    "stripped": ["-O2", "-s"],
    "static": ["-g", "-O2", "-static-pie"],
    "no-pie": ["-g", "-O2", "-no-pie"],
    "zlib": ["-g", "-O2", "-gz=zlib"],
    "export": ["-g", "-O2", "-rdynamic"],
}


@pytest.mark.parametrize("variant", C_VARIANTS)
def test_c_is_equal(tmp_path, variant):
    path = made(tmp_path, "gcc", *C_VARIANTS[variant])
    addresses = code_addresses(path)
    if len(addresses) > 20000:  # static: a part of the C library, and all of ours
        addresses = addresses[:2000] + addresses[2000::997]
    text = lines_of(addresses)
    for letters in LETTERS:
        assert ours(path, letters, text=text) == binutils(path, letters, text=text), letters


def sides_with_us(path, address, levels):
    """Does llvm-symbolizer give the same functions and lines?"""
    out = subprocess.run([wants.symbolizer(), "--no-demangle", "-i", "-f=linkage", "-e", path, hex(address)],
                         capture_output=True, text=True, check=True).stdout
    theirs = [line for line in out.splitlines() if line]
    names, places = theirs[0::2], [re.sub(r":\d+$", "", place) for place in theirs[1::2]]
    our_places = [re.sub(r":\?$", ":0", place) for place in levels[1::2]]
    return our_places == places and levels[0:-2:2] == names[:-1]


@pytest.mark.parametrize("compiler", ["g++ -gdwarf-5", "g++ -gdwarf-4", "clang++ -gdwarf-5", "clang++ -gdwarf-4"])
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_cxx_is_equal_or_right(tmp_path, compiler, level):
    path = made(tmp_path, compiler, level)
    addresses = code_addresses(path)
    text = lines_of(addresses)
    pairs = list(zip(addresses, by_address(ours(path, "-afi", text=text)), by_address(binutils(path, "-afi", text=text))))
    assert len(pairs) == len(addresses)
    different = [(a, our, their) for a, our, their in pairs if our != their]
    wrong = [(hex(a), our, their) for a, our, their in different[:: len(different) // 40 + 1]
             if not sides_with_us(path, a, our[1:])]
    # What neither of them can settle: the name binutils gives to parts that were moved away.
    assert len(wrong) <= 1, wrong
    assert len(different) < len(addresses) / 4


def test_demangled_names_are_equal(tmp_path):
    path = made(tmp_path, "g++", "-g", "-O1")
    text = lines_of(code_addresses(path)[::7])
    plain = zip(by_address(ours(path, "-af", text=text)), by_address(binutils(path, "-af", text=text)))
    demangled = zip(by_address(ours(path, "-afC", text=text)), by_address(binutils(path, "-afC", text=text)))
    pairs = [(our, their) for same, (our, their) in zip([a == b for a, b in plain], demangled) if same]
    assert len(pairs) > 500
    assert [our for our, _ in pairs] == [their for _, their in pairs]
    assert any("(" in our[1] for our, _ in pairs)


# The command line.

@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return made(tmp_path_factory.mktemp("small"), "gcc", "-g", "-O2")


def address_of(path, name):
    out = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    return next(int(line.split()[0], 16) for line in out.splitlines() if line.split()[-1] == name)


def test_long_names_of_options(small):
    at = f"{address_of(small, 'checked'):#x}"
    done = program.run("addr2line", f"--exe={small}", "--addresses", "--functions", "--inlines", "--demangle",
                       "--pretty-print", "--basenames", at)
    assert done.out == ours(small, "-afiCps", at) == binutils(small, "-afiCps", at)
    assert re.fullmatch(r"0x[0-9a-f]{16}: checked at prog\.c:\d+\n", done.out)


@pytest.mark.parametrize("text", ["{:x}", "0x{:x}", "0X{:X}", "  {:x}", "000000{:x}", "{:x} trailing"])
def test_forms_of_addresses(small, text):
    line = text.format(address_of(small, "checked")) + "\n"
    assert ours(small, "-f", text=line) == binutils(small, "-f", text=line)
    assert ours(small, "-f", text=line).startswith("checked\n")


@pytest.mark.parametrize("text", ["main", "main+4", " main +0x4", "checked+010", "+4", "nosuch", "nosuch+4"])
def test_symbols_instead_of_addresses(small, text):
    assert ours(small, "-afp", text=text + "\n") == binutils(small, "-afp", text=text + "\n")


@pytest.mark.parametrize("text", ["nonsense", "", "-1", "ffffffffffffffffffff", "0x", "12 34", "\t"])
def test_what_is_no_address(small, text):
    assert ours(small, "-afp", text=text + "\n") == binutils(small, "-afp", text=text + "\n")


def test_arguments_stdin_and_order(small):
    addresses = code_addresses(small)[::-3] * 2
    text = lines_of(addresses)
    all_at_once = ours(small, "-afi", text=text)
    assert all_at_once == ours(small, "-afi", *[f"{a:x}" for a in addresses])
    assert all_at_once == "".join(ours(small, "-afi", text=lines_of([a])) for a in addresses[:5]) \
        + all_at_once[len("".join(by + "\n" for a in by_address(all_at_once)[:5] for by in a)):]
    assert ours(small, "-afi", text=text.rstrip("\n")) == all_at_once
    assert ours(small, "-afi", text="") == ""


def test_default_file(tmp_path):
    made(tmp_path, "gcc", "-g", name="a.out")
    at = f"{address_of(tmp_path / 'a.out', 'main'):x}"
    done = program.run("addr2line", "-f", at, cwd=tmp_path)
    assert done.out.startswith("main\n") and done.status == program.COMPLETE


def test_answers_line_by_line(small):
    """As a coprocess: each answer is there before the next question is asked."""
    process = subprocess.Popen([paths.STACKER, "addr2line", "-fe", small], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, bufsize=1)
    watch = threading.Timer(20, process.kill)
    watch.start()
    try:
        for name in ("checked", "main", "checked"):
            process.stdin.write(f"{address_of(small, name):x}\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"{name}\n"
            assert re.search(r"prog\.c:\d+$", process.stdout.readline().rstrip())
        facts = dict(line.split(":", 1) for line in open(f"/proc/{process.pid}/status", encoding="ascii"))
        assert facts["Seccomp"].strip() == "2" and facts["NoNewPrivs"].strip() == "1", "not in its sandbox"
        process.stdin.write("12")
        process.stdin.close()
        assert process.stdout.read() == "??\n??:0\n"
        assert process.wait() == program.COMPLETE
    finally:
        watch.cancel()
        process.kill()


def test_file_cut_while_it_is_read(tmp_path, small):
    """Its mapping has no bytes any more: answers without names, said, and never a bus error."""
    path = tmp_path / "prog"
    shutil.copy(small, path)
    main = f"{address_of(small, 'main'):x}\n"
    process = subprocess.Popen([paths.STACKER, "addr2line", "-fe", path], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)
    watch = threading.Timer(20, process.kill)
    watch.start()
    try:
        process.stdin.write("1\n")
        assert [process.stdout.readline() for _ in range(2)] == ["??\n", "??:0\n"]
        os.truncate(path, 64)
        out, err = process.communicate(main)
        assert process.returncode == program.PARTIAL, (out, err)
        assert len(out.splitlines()) == 2
        assert err == f"stacker: {path}: became shorter, or unreadable, while it was read\n"
    finally:
        watch.cancel()
        process.kill()


def test_much_input_in_odd_pieces(small):
    """More than one batch, with breaks inside lines."""
    addresses = code_addresses(small)
    text = lines_of((addresses * (1 + 120000 // len(addresses)))[:120000])
    process = subprocess.Popen([paths.STACKER, "addr2line", "-fe", small], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)

    def feed():
        for at in range(0, len(text), 70001):
            process.stdin.write(text[at:at + 70001])
            process.stdin.flush()
        process.stdin.close()

    feeder = threading.Thread(target=feed)
    feeder.start()
    out = process.stdout.read()
    feeder.join()
    assert process.wait() == program.COMPLETE
    assert out.count("\n") == 240000
    one = ours(small, "-f", text=lines_of(addresses))
    assert out.startswith(one + one)


@pytest.mark.parametrize("case", ["missing", "directory", "text", "empty", "device", "32-bit", "cut"])
def test_files_that_cannot_be_read(tmp_path, small, case):
    path = tmp_path / case
    if case == "directory":
        path.mkdir()
    elif case == "device":
        path.symlink_to("/dev/null")
    elif case == "text":
        path.write_text("#!/bin/sh\n")
    elif case == "empty":
        path.write_bytes(b"")
    elif case == "32-bit":
        path.write_bytes(b"\x7fELF\x01\x01\x01" + bytes(60))
    elif case == "cut":
        path.write_bytes(small.read_bytes()[:40])
    done = program.run("addr2line", "-e", path, "1000", timeout=20)
    assert done.status == program.NOTHING and done.out == ""
    assert done.err.startswith("stacker: ") and done.err.count("\n") == 1 and case in done.err


def section_begin(path, name):
    out = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    row = re.search(rf"\] {re.escape(name)} +\S+ +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)", out)
    return int(row[1], 16), int(row[2], 16)


@pytest.mark.parametrize("options", [["-j", ".text"], ["--section=.text", "-a"], ["-j", ".init", "-ap"], ["-aj.text", "-i"]])
def test_offsets_in_a_section(small, options):
    """Also just outside of it, where nothing is known."""
    begin, size = section_begin(small, ".init" if ".init" in options else ".text")
    text = lines_of([a - begin for a in code_addresses(small) if begin <= a < begin + size][::7] + [size, size + 16])
    assert ours(small, "-f", *options, text=text) == binutils(small, "-f", *options, text=text)


def test_no_such_section(small):
    done = program.run("addr2line", "-e", small, "-j", ".nosuch", "0")
    assert done.status == program.NOTHING and done.err.endswith("prog: has no section .nosuch\n"), done.err


def test_options_for_the_sake_of_binutils(small):
    """-b, -R, -r and styles of mangling change nothing; what is not so is refused."""
    text = lines_of(code_addresses(small)[:9])
    wanted = ours(small, "-fC", text=text)
    for options in (["-b", "elf64-x86-64"], ["--target=default"], ["-R"], ["-r"], ["--recurse-limit"], ["--demangle=auto"],
                    ["--demangle=gnu-v3"], ["--demangle=rust"]):
        assert ours(small, "-fC", *options, text=text) == wanted, options
    assert ours(small, "-f", "--demangle=none", text=text) == ours(small, "-f", text=text)
    for options, says in ((["-b", "srec"], "only 64-bit ELF"), (["--demangle=java"], "java is not known"), (["@file"], "@file: no options")):
        done = program.run("addr2line", "-e", small, *options)
        assert done.status == program.USAGE and says in done.err, done
    assert program.run("addr2line", "-v").out == program.run("--version").out
    assert program.run("addr2line", "-H").out == program.run("addr2line", "--help").out


def test_object_files_are_refused(tmp_path):
    """Their relocations are not applied: all units would seem to begin at 0."""
    source = tmp_path / "x.c"
    source.write_text(C_SOURCE)
    subprocess.run(["gcc", "-g", "-c", "-o", tmp_path / "x.o", source], check=True)
    done = program.run("addr2line", "-e", tmp_path / "x.o", "0")
    assert done.status == program.NOTHING and done.out == "" and "use the linked file" in done.err, done
    subprocess.run(["gcc", "-c", "-o", tmp_path / "plain.o", source], check=True)
    assert program.run("addr2line", "-e", tmp_path / "plain.o", "0").status == program.COMPLETE


def test_names_are_harmless_on_a_terminal(tmp_path):
    source = tmp_path / "evil\x1b[2J.c"
    source.write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", "-g", "-o", tmp_path / "evil", source], check=True)
    ours_end, theirs = os.openpty()
    try:
        assert program.run("addr2line", "-e", tmp_path / "evil", "main", stdout=theirs).status == program.COMPLETE
    finally:
        os.close(theirs)
    with os.fdopen(ours_end, "rb", buffering=0) as terminal:
        shown = terminal.read(4096)
    assert b"\x1b" not in shown and b"evil" in shown, shown
    assert "\x1b[2J" in ours(tmp_path / "evil", text="main\n")  # a pipe gets the bytes


def test_full_disk(small):
    with open("/dev/full", "w") as full:
        done = program.run("addr2line", "-e", small, "1000", stdout=full)
    assert done.status == program.NOTHING and "writing" in done.err


# Where the debugging information is.

def plain_answer(path):
    return ours(path, "-afi", text=lines_of(code_addresses(path)))


def build_id(path):
    out = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", out)[1]


@pytest.fixture
def split(tmp_path, small):
    """(stripped program, its debug file): the program has no link to it yet."""
    wants.tools("objcopy", "strip")
    path, debug = tmp_path / "prog", tmp_path / "away" / "prog.dbg"
    debug.parent.mkdir()
    subprocess.run(["objcopy", "--only-keep-debug", small, debug], check=True)
    subprocess.run(["strip", "-o", path, small], check=True)
    return path, debug


def test_debug_file_by_build_id(tmp_path, small, split):
    path, debug = split
    name = build_id(path)
    place = tmp_path / "dir" / ".build-id" / name[:2] / f"{name[2:]}.debug"
    place.parent.mkdir(parents=True)
    shutil.copy(debug, place)
    text = lines_of(code_addresses(path))
    assert ours(path, "-afi", "--debug-dir", tmp_path / "dir", text=text) == plain_answer(small)
    assert ours(path, "-afi", text=text) != plain_answer(small)


@pytest.mark.parametrize("where", ["prog.dbg", ".debug/prog.dbg"])
def test_debug_file_by_link(tmp_path, small, split, where):
    path, debug = split
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", path], check=True)
    (tmp_path / where).parent.mkdir(exist_ok=True)
    shutil.copy(debug, tmp_path / where)
    assert plain_answer(path) == plain_answer(small)
    # One byte more, and it is not the file that was linked to.
    (tmp_path / where).write_bytes(debug.read_bytes() + b"x")
    assert plain_answer(path) != plain_answer(small)


def test_other_build_id_is_refused(tmp_path, small, split):
    path, _ = split
    other = made(tmp_path, "gcc", "-g", "-O2", source=C_SOURCE.replace("* 3", "* 5"), name="other")
    name = build_id(path)
    assert build_id(other) != name
    place = tmp_path / "dir" / ".build-id" / name[:2] / f"{name[2:]}.debug"
    place.parent.mkdir(parents=True)
    shutil.copy(other, place)
    at = f"{address_of(small, 'checked'):x}"
    assert ours(path, "-f", "--debug-dir", tmp_path / "dir", at) == binutils(path, "-f", at)


@pytest.mark.parametrize("how", ["zlib-gabi", "zlib-gnu", "zstd"])
def test_compressed(tmp_path, small, how):
    wants.tools("objcopy")
    path = tmp_path / "prog"
    done = subprocess.run(["objcopy", f"--compress-debug-sections={how}", small, path], capture_output=True, text=True)
    if done.returncode:
        wants.lack(f"an objcopy that knows {how}: {done.stderr}")
    assert plain_answer(path) == plain_answer(small)


def test_embedded_symbols(tmp_path, small):
    """.gnu_debugdata as find-debuginfo makes it: the function symbols, packed with xz."""
    wants.tools("objcopy", "strip", "xz")
    mini, path = tmp_path / "mini", tmp_path / "prog"
    subprocess.run(["objcopy", "-S", "--remove-section=.comment", "--keep-symbol=checked", "--keep-symbol=main",
                    "--only-keep-debug", small, mini], check=True)
    subprocess.run(["xz", "-k", mini], check=True)
    subprocess.run(["strip", "-o", path, small], check=True)
    at = f"{address_of(small, 'checked'):x}"
    assert ours(path, "-f", at) == "??\n??:0\n" or "checked" not in ours(path, "-f", at)
    subprocess.run(["objcopy", "--add-section", f".gnu_debugdata={mini}.xz", path], check=True)
    assert ours(path, "-f", at) == "checked\n??:?\n"


# Damage: whatever a file holds, an answer comes and nothing else happens.

def test_every_part_damaged(tmp_path, small):
    binary = paths.STACKER_SAN if paths.STACKER_SAN.exists() else paths.STACKER
    good = small.read_bytes()
    addresses = code_addresses(small)[::40]
    text = lines_of(addresses)
    path = tmp_path / "prog"
    for i in range(60):
        at = 64 + i * (len(good) - 64) // 60
        if i % 2:
            path.write_bytes(good[:at])
        else:
            path.write_bytes(good[:at] + bytes([0xFF, 0x80, 0x01, 0x00][i // 2 % 4:][:1]) * 64 + good[at + 64:])
        done = program.run("addr2line", "-afi", "-e", path, input=text, binary=binary, timeout=60)
        assert done.status in (program.COMPLETE, program.NOTHING), done
        if done.status == program.COMPLETE:
            assert len(by_address(done.out)) == len(addresses)


# Go: names, files and lines of stripped programs, as its own tool tells them of full ones.

GO_SOURCE = """package main

import (
	"fmt"
	"os"
	"sort"
)

type T struct{ n int }

//go:noinline
func (t *T) Method(x int) int {
	s := []int{x, t.n, 3}
	sort.Slice(s, func(i, j int) bool { return s[i] < s[j] })
	return s[0]
}

func main() {
	t := &T{len(os.Args)}
	fmt.Println(t.Method(4))
}
"""


@pytest.mark.parametrize("machine", ["amd64", "arm64"])
def test_stripped_go(tmp_path, machine):
    wants.tools("go")
    (tmp_path / "main.go").write_text(GO_SOURCE)
    env = {**os.environ, "GO111MODULE": "off", "GOARCH": machine, "CGO_ENABLED": "0",
           "GOCACHE": os.fspath(paths.TOP / "build" / "go-cache"), "GOFLAGS": ""}
    for name, flags in (("full", []), ("stripped", ["-ldflags=-s -w"])):
        subprocess.run(["go", "build", *flags, "-o", name, "main.go"], cwd=tmp_path, env=env, check=True)
    out = subprocess.run(["nm", tmp_path / "full"], capture_output=True, text=True, check=True).stdout
    starts = sorted(int(row[0], 16) for row in map(str.split, out.splitlines()) if len(row) > 2 and row[1] in "tT")
    text = lines_of(start + i % 32 // 4 * 4 for i, start in enumerate(starts))
    theirs = subprocess.run(["go", "tool", "addr2line", tmp_path / "full"], input=text, capture_output=True, text=True,
                            env=env, check=True).stdout.splitlines()
    pairs = list(zip(ours(tmp_path / "stripped", "-f", text=text).splitlines(), theirs))
    # Behind the last instruction of a function there is no line; Go's tool prints ":-1" there.
    unknown = {("??:?", ":-1"), ("??", "?"), ("??:0", "?:0")}
    different = [pair for pair in pairs if pair[0] != pair[1] and pair not in unknown]
    assert len(pairs) > 2000 and not different, different[:10]
