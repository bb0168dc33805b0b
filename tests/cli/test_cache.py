"""The cache of answers: what a second run says is what the first one said, whatever happened in between;
and it is said without reading debug information again."""
import contextlib
import json
import os
import pathlib
import random
import re
import resource
import shutil
import struct
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import paths  # noqa: E402
import program  # noqa: E402
import target  # noqa: E402

FUNCTIONS = 60
# Debug information that takes a while: this much of its strings has to be decompressed.
STRINGS = 8 << 20
OTHER_USER = 65534
SETTLED_S = 0.1  # CACHE_SETTLED_NS
SETTLE_S = 10
HEAD, CHECKSUM_OFF = 40, 8


def source():
    for n in range(FUNCTIONS):
        yield f"static inline __attribute__((always_inline)) int in_{n:03}(int x) {{ return x * {n + 2} + sink; }}"
        yield f"__attribute__((noinline)) int out_{n:03}(int x) {{ sink = x; return in_{n:03}(x) + in_{n:03}(sink); }}"


def settle(*files):
    """Files that changed just now are not for the cache. Nobody can set the time of a change, so it has to pass here;
    what depends on it is tested with a clock that can be set (tests/unit/test_cache.c)."""
    def age():
        return time.time() - max(max(os.stat(path).st_ctime, os.stat(path).st_mtime) for path in files)
    target.await_that(lambda: age() > SETTLED_S, SETTLE_S, lambda: f"files to be {SETTLED_S} s old, not {age()}")


class Build:
    """A program with large compressed debug information, and its parts."""

    def __init__(self, place):
        letters = random.Random(1).randbytes(STRINGS // 2).hex()
        (place / "strings").write_bytes(letters.encode() + b"\0")
        (place / "big.c").write_text(
            "#include <stdio.h>\n#include <unistd.h>\nvolatile int sink;\n" + "\n".join(source()) +
            '\nint main(void) { puts("ready"); fflush(stdout); out_007(3); pause(); return out_000(1); }\n'
            'asm(".pushsection .debug_str,\\"MS\\",@progbits,1\\n.incbin \\"strings\\"\\n.popsection");\n')
        self.whole = place / "big"
        subprocess.run(["gcc", "-g", "-O1", "-gz=zlib", "-Wl,--build-id", "-o", self.whole, "big.c"], cwd=place, check=True)
        self.debug, self.stripped = place / "big.debug", place / "stripped"
        subprocess.run(["objcopy", "--only-keep-debug", self.whole, self.debug], check=True)
        subprocess.run(["objcopy", "--strip-all", self.whole, self.stripped], check=True)
        notes = subprocess.run(["readelf", "-nW", self.whole], check=True, capture_output=True, text=True).stdout
        self.build_id = re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)
        names = subprocess.run(["nm", self.whole], check=True, capture_output=True, text=True).stdout
        self.starts = [int(at, 16) for at in re.findall(r"^([0-9a-f]+) T out_", names, re.M)]
        self.addresses = [hex(start + off) for start in self.starts for off in range(12)]
        settle(self.whole, self.debug, self.stripped)


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    return Build(tmp_path_factory.mktemp("cached"))


class Cache:
    def __init__(self, place):
        self.env, self.path = {"XDG_CACHE_HOME": os.fspath(place)}, place / "stacker"

    def files(self):
        return sorted(self.path.iterdir())

    def ask(self, file, addresses, *options, status=program.COMPLETE):
        done = program.run("addr2line", "-f", "-i", "-a", "-e", file, *options, input="\n".join(addresses) + "\n", env=self.env)
        assert done.status == status and done.err == "", done
        return done.out

    def true(self, file, addresses, *options):
        return self.ask(file, addresses, "--no-cache", *options)

    def same(self, file, addresses, *options):
        """Asks, and gives the answer, which must be the one without a cache."""
        answer = self.ask(file, addresses, *options)
        assert answer == self.true(file, addresses, *options)
        return answer


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path)


def crc64(data):
    """CRC-64 (ECMA-182), as xz has it."""
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0xc96c5795d7870f42 if n & 1 else 0)
        table.append(n)
    crc = (1 << 64) - 1
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ (1 << 64) - 1


def forge(path, old, new):
    """Another answer in the cache's file, which is whole: shows who gives it."""
    data = bytearray(path.read_bytes().replace(old, new))
    struct.pack_into("<Q", data, CHECKSUM_OFF, crc64(data[CHECKSUM_OFF + 8:]))
    path.write_bytes(data)


def test_second_run(build, cache):
    first = cache.same(build.whole, build.addresses)
    assert "out_042" in first and "in_042" in first
    (kept,) = cache.files()
    assert kept.name.startswith(build.build_id + "-") and kept.stat().st_mode & 0o7777 == 0o600
    assert cache.path.stat().st_mode & 0o7777 == 0o700
    before = kept.stat()
    assert cache.same(build.whole, build.addresses) == first
    assert cache.same(build.whole, build.addresses[5:90]) in first
    assert kept.stat().st_mtime_ns == before.st_mtime_ns


def test_who_answers(build, cache):
    """A name that is in the cache only."""
    asked = build.addresses[:12]
    cache.same(build.whole, asked)
    forge(*cache.files(), b"out_000\0", b"forged!\0")
    assert "forged!" in cache.ask(build.whole, asked) and "forged!" not in cache.true(build.whole, asked)
    # What it does not know is asked for, and kept with the rest.
    both = cache.ask(build.whole, asked + build.addresses[24:36])
    assert "forged!" in both and "out_002" in both
    forge(*cache.files(), b"out_002\0", b"another\0")
    assert "another" in cache.ask(build.whole, build.addresses[24:36])


def test_debug_information_is_not_read(build, cache):
    def processor_s():
        before = os.times()
        cache.ask(build.whole, build.addresses)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    first = processor_s()
    again = min(processor_s() for _ in range(3))
    assert again < first / 2, (first, again)


@pytest.mark.parametrize("damage", [
    lambda data: b"",
    lambda data: data[:HEAD],
    lambda data: data[:-1],
    lambda data: data + b"\0",
    lambda data: data.replace(b"out_000\0", b"forged!\0"),
    lambda data: data[:16] + b"\x09" + data[17:],
    lambda data: bytes(len(data)),
    lambda data: b"\xff" * len(data),
])
def test_damaged(build, cache, damage):
    first = cache.same(build.whole, build.addresses)
    (kept,) = cache.files()
    good = kept.read_bytes()
    kept.write_bytes(damage(good))
    assert cache.ask(build.whole, build.addresses) == first
    assert kept.read_bytes() == good


def test_options_that_change_names(build, cache):
    cache.same(build.whole, build.addresses)
    cache.same(build.whole, build.addresses, "-C")
    assert len(cache.files()) == 2
    cache.same(build.whole, build.addresses, "-s")  # only printing
    assert len(cache.files()) == 2


def test_no_cache(build, cache):
    assert cache.true(build.whole, build.addresses) and not cache.path.exists()
    cache.ask(build.whole, build.addresses)
    forge(*cache.files(), b"out_000\0", b"forged!\0")
    assert "forged!" not in cache.true(build.whole, build.addresses)


def test_debug_file_comes_and_goes(build, cache, tmp_path):
    """Stripped and whole files, and all debug files, have one build-id."""
    place = tmp_path / "debug" / ".build-id" / build.build_id[:2] / f"{build.build_id[2:]}.debug"
    place.parent.mkdir(parents=True)
    given = ("--debug-dir", tmp_path / "debug")
    nothing = cache.same(build.stripped, build.addresses, *given)
    assert "in_042" not in nothing
    shutil.copy(build.debug, place)
    assert "in_042" in cache.same(build.stripped, build.addresses, *given)  # it is there just now
    settle(place)
    full = cache.same(build.stripped, build.addresses, *given)
    forge(*cache.files(), b"out_000\0", b"forged!\0")
    assert "forged!" in cache.ask(build.stripped, build.addresses, *given)
    place.unlink()
    assert cache.same(build.stripped, build.addresses, *given) == nothing
    subprocess.run(["objcopy", "--remove-section=.debug_line", build.debug, place], check=True)
    settle(place)
    other = cache.same(build.stripped, build.addresses, *given)
    assert "out_042" in other and other != full
    shutil.copy(build.debug, place)
    settle(place)
    assert cache.same(build.stripped, build.addresses, *given) == full
    assert cache.same(build.whole, build.addresses) == full


def test_damaged_debug_information_is_not_kept(build, cache, tmp_path):
    cut = tmp_path / "cut"
    subprocess.run(["objcopy", "--decompress-debug-sections", build.whole, cut], check=True)
    headers = subprocess.run(["readelf", "-SW", cut], check=True, capture_output=True, text=True).stdout
    off, size = (int(n, 16) for n in re.search(r"\.debug_info +PROGBITS +\w+ (\w+) (\w+)", headers).groups())
    data = bytearray(cut.read_bytes())
    data[off + size // 2:off + size] = b"\xff" * (size - size // 2)
    cut.write_bytes(data)
    subprocess.run(["objcopy", "--compress-debug-sections=zlib", cut], check=True)  # or it is too cheap to be kept
    settle(cut)
    for _ in range(2):
        assert "out_" in cache.same(cut, build.addresses)
    assert cache.files() == []
    cache.same(build.whole, build.addresses)
    assert len(cache.files()) == 1


def test_missing_companion_is_not_kept(cache, tmp_path):
    """Nor one that is there: nothing ties a .dwo to the build-id."""
    (tmp_path / "a.c").write_text("\n".join(f"int f{n}(int x) {{ return x * {n}; }}" for n in range(3000)) + "\nint main(void) { return f1(2); }\n")
    for name, how in (("plain", "-gno-split-dwarf"), ("split", "-gsplit-dwarf")):
        subprocess.run(["gcc", "-g", how, "-Wl,--build-id", "-o", name, "a.c"], cwd=tmp_path, check=True)
    settle(tmp_path / "plain", tmp_path / "split")
    addresses = [hex(n) for n in range(0x1000, 0x9000, 3)]
    for _ in range(2):
        cache.same(tmp_path / "split", addresses)
    for dwo in tmp_path.glob("*.dwo"):
        dwo.unlink()
    for _ in range(2):
        cache.same(tmp_path / "split", addresses)
    assert cache.files() == []
    cache.same(tmp_path / "plain", addresses)
    assert len(cache.files()) == 1  # so it was not for want of work


def test_many_at_once(build, cache):
    """Eight runs of overlapping halves: all are right, and the file is whole."""
    dice = random.Random(7)
    asked = [dice.sample(build.addresses, len(build.addresses) // 2) for _ in range(8)]
    true = {address: cache.true(build.whole, [address]) for address in build.addresses[::97]}
    command = [os.fspath(paths.STACKER), "addr2line", "-f", "-i", "-a", "-e", os.fspath(build.whole)]
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(subprocess.Popen([*command, *addresses], env={**os.environ, **cache.env},
                                                        stdout=subprocess.PIPE, text=True)) for addresses in asked]
        outputs = [process.communicate(timeout=program.RUN_S)[0] for process in running]
        assert [process.returncode for process in running] == [program.COMPLETE] * 8
    for addresses, output in zip(asked, outputs):
        assert output == cache.true(build.whole, addresses)
        assert all(true[address] in output for address in addresses if address in true)
    (kept,) = cache.files()
    assert kept.stat().st_size > HEAD
    cache.same(build.whole, build.addresses)


def spoil_file(path):
    path.write_text("not a directory")


def spoil_link(path):
    (path.parent / "elsewhere").mkdir()
    path.symlink_to(path.parent / "elsewhere")


def spoil_mode(path):
    path.mkdir()
    path.chmod(0o777)


def spoil_owner(path):
    if os.geteuid() != 0:
        pytest.skip("needs another user")
    path.mkdir(0o700)
    os.chown(path, OTHER_USER, OTHER_USER)


@pytest.mark.parametrize("spoil", [spoil_file, spoil_link, spoil_mode, spoil_owner])
def test_directory_that_cannot_be_trusted(build, cache, spoil):
    spoil(cache.path)
    for _ in range(2):
        cache.same(build.whole, build.addresses)
    assert not cache.path.is_dir() or cache.files() == []
    done = program.run("cache", env=cache.env)
    assert done.status == program.NOTHING and os.fspath(cache.path) in done.err


def test_directory_that_cannot_be_written(build, cache, tmp_path):
    cache.ask(build.whole, build.addresses[:12])
    forge(*cache.files(), b"out_000\0", b"forged!\0")
    if os.geteuid() == 0:
        # Root may write anywhere but where the sandbox does not let it: it lets it here, so let the file grow no more.
        limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8, 8))}
    else:
        cache.path.chmod(0o500)
        limit = {}
    done = program.run("addr2line", "-f", "-e", build.whole, *build.addresses[:48], env=cache.env, **limit)
    assert done.status == program.COMPLETE and done.err == "" and "forged!" in done.out and "out_003" in done.out
    assert len(cache.files()) == 1
    cache.path.chmod(0o700)


def test_no_home(build):
    env = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    done = subprocess.run([paths.STACKER, "addr2line", "-e", build.whole, build.addresses[0]], env=env, check=True, capture_output=True)
    assert done.stdout and not done.stderr
    done = subprocess.run([paths.STACKER, "cache"], env=env, check=False, capture_output=True, text=True)
    assert done.returncode == program.NOTHING and "HOME" in done.stderr


def test_under_home(build, tmp_path):
    env = {"HOME": os.fspath(tmp_path), "XDG_CACHE_HOME": ""}
    done = program.run("addr2line", "-f", "-e", build.whole, *build.addresses, env=env)
    assert done.status == program.COMPLETE
    assert len(list((tmp_path / ".cache" / "stacker").iterdir())) == 1


def test_command(build, cache):
    done = program.run("cache", env=cache.env)
    assert done.status == program.COMPLETE and done.out == f"{cache.path}: 0 files, 0 bytes\n" and not cache.path.exists()
    cache.ask(build.whole, build.addresses)
    (kept,) = cache.files()
    (cache.path / "NOTES").write_text("somebody's")
    size = kept.stat().st_size
    assert program.run("cache", env=cache.env).out == f"{cache.path}: 1 file, {size} bytes\n"
    done = program.run("cache", "--clear", env=cache.env)
    assert done.status == program.COMPLETE and done.out == f"{cache.path}: removed 1 file, {size} bytes\n"
    assert [path.name for path in cache.files()] == ["NOTES"]
    assert program.run("cache", "all", env=cache.env).status == program.USAGE


def test_reports(build, cache, start, tmp_path):
    """onephase and symbolize keep answers too, also when they write to a file; notes stay the same."""
    process = start(build.whole)
    process.line()
    pid, path = process.pid, tmp_path / "capture.json"
    program.capture(pid, path)
    asked = ("--input", path, "--verbose", "--no-maps")
    true = program.run("symbolize", *asked, "--no-cache", env=cache.env)
    first = program.run("symbolize", *asked, env=cache.env)
    kept = [file for file in cache.files() if file.name.startswith(build.build_id)]
    assert len(kept) == 1 and first.out == true.out and first.err == true.err == "", first
    assert program.run("symbolize", *asked, env=cache.env).out == true.out
    forge(kept[0], b"main\0", b"niam\0")
    assert " niam at " in program.run("symbolize", *asked, env=cache.env).out
    out = tmp_path / "report.json"
    done = program.run("onephase", "--pid", pid, "--format", "json", "--output", out, env=cache.env)
    assert done.status == program.COMPLETE, done
    assert "niam" in program.functions(program.thread_of(json.loads(out.read_text()), pid))


def test_notes(build, cache, start, tmp_path):
    """What a report says about missing debug information is said from the cache too."""
    stripped = tmp_path / "prog"
    shutil.copy(build.stripped, stripped)
    settle(stripped)
    process = start(stripped)
    process.line()
    runs = [program.run("onephase", "--pid", process.pid, "--verbose", "--format", "json", *more, env=cache.env)
            for more in ((), (), ("--no-cache",))]
    notes = [json.loads(done.out)["notes"] for done in runs]
    assert notes[0] == notes[1] == notes[2] and any("no debug information" in note for note in notes[0]), notes


def test_why_not(build, cache, tmp_path, start):
    spoil_file(cache.path)
    path = tmp_path / "capture.json"
    process = start(build.whole)
    process.line()
    program.capture(process.pid, path)
    done = program.run("symbolize", "--input", path, "--verbose", env=cache.env)
    assert done.status == program.COMPLETE and done.err.startswith("stacker: no cache: ")
