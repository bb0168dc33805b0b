"""Situations of debug information in which symbolizers have been wrong, each made here."""
import re
import shutil
import subprocess

import oracle
import program
import pytest
import target
import truth
import wants


def command(*words, cwd=None):
    subprocess.run([str(word) for word in words], cwd=cwd, check=True, capture_output=True, text=True)


def text_section(path):
    out = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    start, size = re.search(r" \.text +PROGBITS +([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+)", out).groups()
    return range(int(start, 16), int(start, 16) + int(size, 16))


def symbol_address(path, name):
    out = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    return next(int(row.split()[0], 16) for row in out.splitlines() if row.split()[1:] in (["T", name], ["t", name]))


def answers(path, addresses, *options):
    """[function, file:line] of each address, with all inlined levels."""
    done = program.run("addr2line", "-afi", "-e", path, *options, input="".join(f"{a:#x}\n" for a in addresses))
    assert done.status == program.COMPLETE, done
    found = []
    for line in done.out.splitlines():
        if line.startswith("0x"):
            found.append([])
        else:
            found[-1].append(line)
    return found


# Code that the linker dropped leaves its debug information behind, at addresses that mean nothing: 0, 1, -1, -2.

COLLECTED = """\
volatile int sink;
static inline __attribute__((always_inline)) void inlined(int x)
{
	sink = x * 3;
}
void dropped_first(int x) { inlined(x); sink++; }
void kept(int x)
{
	inlined(x); /* line 9 */
	sink--;
}
void dropped_last(int x) { inlined(x + 1); sink++; }
int main(int argc, char **argv)
{
	(void)argv;
	kept(argc);
	return sink;
}
"""
LINKERS = {"bfd": "ld.bfd", "gold": "ld.gold", "lld": "ld.lld", "mold": "mold"}


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("version", [4, 5])
def test_dropped_functions(tmp_path, compiler, linker, version):
    wants.tools(compiler, LINKERS[linker])
    (tmp_path / "prog.c").write_text(COLLECTED)
    command(compiler, f"-gdwarf-{version}", "-O1", "-fno-inline-functions", "-ffunction-sections",
            "-Wl,--gc-sections", f"-fuse-ld={linker}", "prog.c", "-o", "prog", cwd=tmp_path)
    path = tmp_path / "prog"
    text = text_section(path)
    with pytest.raises(StopIteration):
        symbol_address(path, "dropped_first")
    for address, lines in zip(text, answers(path, text)):
        assert not any(name.startswith("dropped") for name in lines[0::2]), (hex(address), lines)
    nowhere = [*range(0x80), *range(2**64 - 0x80, 2**64)]
    assert all(lines == ["??", "??:0"] for lines in answers(path, nowhere))
    kept = symbol_address(path, "kept")
    levels = answers(path, range(kept, kept + 12))
    assert any(names[0::2] == ["inlined", "kept"] and names[3].endswith("prog.c:9") for names in levels), levels


# A function of which debug information knows everything but the name.

def test_function_without_a_name(tmp_path):
    wants.tools("gcc")
    (tmp_path / "prog.c").write_text(COLLECTED)
    command("gcc", "-g", "-O1", "-dA", "-S", "prog.c", cwd=tmp_path)
    lines = (tmp_path / "prog.s").read_text().splitlines()
    edited, function = [], False
    for line in lines:
        if "(TAG:" in line or "DW_TAG_" in line and ".uleb128" in line:
            function = "DW_TAG_subprogram" in line
        if function and re.search(r"\.uleb128 0x3\s.*\(DW_AT_name\)", line):
            line = line.replace("0x3", "0x2f00", 1)  # an attribute that means nothing to anybody
        edited.append(line)
    assert edited != lines
    (tmp_path / "prog.s").write_text("\n".join(edited) + "\n")
    command("gcc", "prog.s", "-o", "prog", cwd=tmp_path)
    kept = symbol_address(tmp_path / "prog", "kept")
    found, = answers(tmp_path / "prog", [kept])
    assert found[-2] == "kept" and re.search(r"prog\.c:\d+$", found[-1]), found


# What several files have in common, in a file of its own (dwz).

def test_supplementary_file(start, tmp_path):
    """Without it names come from the symbol table, lines are kept, and the report says what is missing."""
    wants.tools("dwz")
    for name in ("first", "second"):
        shutil.copy(target.fixture("inlines-dwarf4"), tmp_path / name)
    command("dwz", "-m", "common", "first", "second", cwd=tmp_path)
    process = start(tmp_path / "first")
    stacks = process.told()
    truth.compare_all(stacks, program.report(process.pid))
    (tmp_path / "common").unlink()
    report = program.report(process.pid)
    assert any("supplementary file common not found" in note for note in report["notes"]), report["notes"]
    for thread in report["threads"]:
        frames = [f for f in thread["frames"] if program.module_name(f) == "first"]
        real = [f for f in frames if not f["inlined"]]
        assert real and all(f["function"] for f in real), program.shown(thread)
        assert any(f["line"] for f in frames), program.shown(thread)


# prelink moves a library and leaves its debug file as it was.

def test_library_that_was_moved(tmp_path):
    wants.tools("gcc", "objcopy", "strip")
    (tmp_path / "prog.c").write_text(COLLECTED)
    command("gcc", "-g", "-O1", "-shared", "-fPIC", "prog.c", "-o", "lib.so", cwd=tmp_path)
    build_id = re.search(r"Build ID: ([0-9a-f]+)", subprocess.run(
        ["readelf", "-n", tmp_path / "lib.so"], capture_output=True, text=True, check=True).stdout)[1]
    debug = tmp_path / "debug" / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    debug.parent.mkdir(parents=True)
    command("objcopy", "--only-keep-debug", "lib.so", debug, cwd=tmp_path)
    command("strip", "-o", "stripped.so", "lib.so", cwd=tmp_path)
    command("objcopy", "--change-addresses=0x3000000", "stripped.so", "moved.so", cwd=tmp_path)
    kept = symbol_address(tmp_path / "lib.so", "kept")
    there, = answers(tmp_path / "lib.so", [kept])
    assert there[-2] == "kept"
    assert answers(tmp_path / "moved.so", [kept + 0x3000000], "--debug-dir", tmp_path / "debug") == [there]
    assert answers(tmp_path / "stripped.so", [kept], "--debug-dir", tmp_path / "debug") == [there]


# Go compresses its debug information by itself.

def test_compressed_by_go(tmp_path):
    path = target.fixture("go-plain")
    sections = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    assert re.search(r"\.z?debug_info .* C |\.zdebug_info", sections), sections
    command("objcopy", "--decompress-debug-sections", path, tmp_path / "plain")
    addresses = list(text_section(path))[::997]
    ours = answers(path, addresses)
    assert ours == answers(tmp_path / "plain", addresses)
    assert sum(lines[0] != "??" and not lines[1].endswith(":0") for lines in ours) > len(ours) * 0.9


# Functions without linkage name: what they belong to is told by the place of their entries alone.

SCOPES = """\
#include <stdio.h>
#include <unistd.h>
#define INLINED __attribute__((always_inline)) inline
namespace shop
{
template <typename T> struct Box {
	T value;
	template <typename F> INLINED void wait(F f) { f(); value++; }
};
}
namespace
{
struct Quiet {
	INLINED void rest() { puts("ready"); fflush(stdout); pause(); }
};
}
int main()
{
	Quiet quiet;
	shop::Box<int> box{1};

	box.wait([&] { quiet.rest(); });
	return box.value;
}
"""


@pytest.fixture(params=["g++ -gdwarf-5", "g++ -gdwarf-4", "clang++ -gdwarf-5"])
def scopes(request, tmp_path):
    path = tmp_path / "scopes"
    (tmp_path / "scopes.cpp").write_text(SCOPES)
    command(*request.param.split(), "-O2", "-o", path, "scopes.cpp", cwd=tmp_path)
    process = subprocess.Popen([path], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def scope_of(name):
    """The namespaces and classes before the function's own name, which is all that is compared: compilers and gdb
    write templates, parameters and unnamed things each in their own way."""
    for one, other in (("(anonymous namespace)", "{}"), ("operator()", "call"), ("<lambda()>", "")):
        name = name.replace(one, other)
    while name != (name := re.sub(r"<[^<>]*>|\([^()]*\)", "", name)):
        pass
    return name.split()[-1] if name else name


def test_inlined_methods_keep_their_class(scopes):
    frames = program.report(scopes.pid)["threads"][0]["frames"]
    ours = [frame["function"] for frame in frames if frame["inlined"]]
    assert [scope_of(name) for name in ours[0::2]] == ["{}::Quiet::rest", "shop::Box::wait"], ours
    assert re.search(r"(\(anonymous struct\)|main::.*)::operator\(\)", ours[1]), ours
    theirs = [frame["function"] for frame in oracle.gdb(scopes.pid)[scopes.pid] if frame["inlined"]]
    assert [scope_of(name) for name in theirs[0::2]] == [scope_of(name) for name in ours[0::2]]


def test_addr2line_keeps_short_names(scopes):
    """As binutils and llvm-symbolizer write them."""
    frames = program.report(scopes.pid)["threads"][0]["frames"]
    inlined = next(frame for frame in frames if frame["inlined"])
    names = answers(inlined["module"], [int(inlined["offset"], 16) - 1])[0][0::2]
    assert names[0] == "rest" or names[0].startswith("_ZN12_GLOBAL__N_15Quiet4rest"), names
    assert not any("::" in re.sub("<.*", "", name) for name in names), names
