"""Points into compressed debug information, kept from one run to the next (src/dwarf/points.h): whatever is asked
after whatever, and whatever happens to the file that keeps them, the answers are those without a cache."""
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import paths  # noqa: E402
import program  # noqa: E402

UNITS, STRUCTS, MEMBERS, FUNCTIONS = 40, 1500, 24, 12
SETTLED_S = 0.1  # CACHE_SETTLED_NS
HEAD, WINDOW = 32, 32 << 10
ENOUGH = 16 << 20  # POINTS_INFO_MIN


def source(unit, dice):
    """Large in debug information, and no two members of a name."""
    yield "extern volatile int sink;"
    for n in range(STRUCTS):
        members = " ".join(f"int m{dice.randrange(1 << 48):x};" for _ in range(MEMBERS))
        yield f"struct s{unit}_{n} {{ {members} }};"
    for n in range(FUNCTIONS):
        name = f"{unit:02}_{n:02}"
        yield f"static inline __attribute__((always_inline)) int in_{name}(int x) {{ return x * {n + 2} + sink; }}"
        yield f"__attribute__((noinline)) int out_{name}(int x) {{ sink = x; return in_{name}(x) + in_{name}(sink); }}"


class Build:
    def __init__(self, place):
        dice = random.Random(1)
        for unit in range(UNITS):
            (place / f"u{unit}.c").write_text("\n".join(source(unit, dice)) + "\n")
        (place / "main.c").write_text("volatile int sink;\nint main(void) { return 0; }\n")
        command = ["gcc", "-g", "-O1", "-fno-eliminate-unused-debug-types", "-c"]
        halves = [subprocess.Popen([*command, *(f"u{n}.c" for n in range(half, UNITS, 2))], cwd=place) for half in (0, 1)]
        assert [process.wait() for process in halves] == [0, 0]
        objects = [f"u{n}.o" for n in range(UNITS)]
        self.file = place / "big"
        subprocess.run(["gcc", "-gz=zlib", "-Wl,--build-id", "-o", self.file, "main.c", *objects], cwd=place, check=True)
        names = subprocess.run(["nm", self.file], check=True, capture_output=True, text=True).stdout
        starts = re.findall(r"^([0-9a-f]+) T out_(\d+)_", names, re.M)
        self.units = {}
        for at, unit in starts:
            self.units.setdefault(int(unit), []).extend(hex(int(at, 16) + off) for off in range(0, 12, 3))
        assert len(self.units) == UNITS
        while time.time() - os.stat(self.file).st_ctime < 2 * SETTLED_S:
            time.sleep(SETTLED_S / 2)
        self.true = {}

    def of(self, *units):
        return [address for unit in units for address in self.units[unit]]

    def answer(self, addresses):
        """Without a cache."""
        if not self.true:
            asked = self.of(*self.units)
            lines = program.run("addr2line", "-f", "-i", "-a", "--no-cache", "-e", self.file, input="\n".join(asked) + "\n").out
            answers = re.split(r"^(?=0x)", lines, flags=re.M)[1:]
            self.true = dict(zip(asked, answers, strict=True))
            assert all("out_" in answer for answer in answers)
        return "".join(self.true[address] for address in addresses)


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    made = Build(tmp_path_factory.mktemp("points"))
    headers = subprocess.run(["readelf", "-W", "--debug-dump=info", "--dwarf-depth=1", made.file], check=True, capture_output=True, text=True).stdout
    assert int(re.findall(r"Compilation Unit @ offset (?:0x)?([0-9a-f]+)", headers)[-1], 16) > ENOUGH
    return made


class Cache:
    def __init__(self, build, place):
        self.build, self.place = build, place
        self.env = {"XDG_CACHE_HOME": os.fspath(place)}

    def points(self):
        """The one file of points, or None."""
        files = [path for path in (self.place / "stacker").iterdir() if path.read_bytes()[:8] == b"stackerP"]
        assert len(files) <= 1
        return files[0] if files else None

    def ask(self, *units):
        """Asks, by points where they are known, but by no answer that was kept."""
        for path in (self.place / "stacker").glob("*"):
            if path.read_bytes()[:8] == b"stackerC":
                path.unlink()
        addresses = self.build.of(*units)
        done = program.run("addr2line", "-f", "-i", "-a", "-e", self.build.file, input="\n".join(addresses) + "\n", env=self.env)
        assert done.status == program.COMPLETE and done.err == "", done
        assert done.out == self.build.answer(addresses)


@pytest.fixture
def cache(build, tmp_path):
    return Cache(build, tmp_path)


def test_anything_after_anything(build, cache):
    dice = random.Random(3)
    cache.ask(4, UNITS - 1)
    kept = cache.points()
    before = kept.stat()
    assert before.st_mode & 0o7777 == 0o600
    for _ in range(25):
        cache.ask(*dice.sample(range(UNITS), dice.randrange(1, 6)))
    cache.ask(*range(UNITS))
    assert kept.stat().st_mtime_ns == before.st_mtime_ns


def test_further_and_further(build, cache):
    """A run knows of the section what it has come to see."""
    sizes = []
    for unit in (3, 11, 2, 19, 30, 12, 39, 0):
        cache.ask(unit)
        sizes.append(cache.points().stat().st_size)
    assert sizes == sorted(sizes) and sizes[1] > sizes[0] and sizes[2] == sizes[1] and sizes[-1] == sizes[-2] > sizes[3]


def processor_s(action):
    before = os.times()
    action()
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def test_less_work(build, cache):
    build.answer([])
    first = processor_s(lambda: cache.ask(UNITS - 1))
    again = min(processor_s(lambda unit=unit: cache.ask(unit)) for unit in (7, 17, 27))
    assert again < first / 2, (first, again)


def windows_of(data):
    return range(HEAD, HEAD + struct.unpack_from("<I", data, 20)[0] * WINDOW, WINDOW)


def wrong_windows(data):
    """They have no checksum: what is read with them has."""
    for at in windows_of(data):
        data[at:at + WINDOW] = bytes(WINDOW)
    return data


def exchanged_windows(data):
    places = list(windows_of(data))
    whole = [data[at:at + WINDOW] for at in places]
    for at, window in zip(places, whole[1:] + whole[:1]):
        data[at:at + WINDOW] = window
    return data


@pytest.mark.parametrize("damage", [
    lambda data: b"", lambda data: data[:HEAD], lambda data: data[:-1], lambda data: data + b"\0",
    lambda data: data[:-40] + b"\xff" + data[-39:], lambda data: bytes(len(data)), lambda data: b"\xff" * len(data),
    wrong_windows, exchanged_windows,
])
def test_damaged(build, cache, damage):
    cache.ask(2, UNITS - 1)
    kept = cache.points()
    good = kept.read_bytes()
    kept.write_bytes(damage(bytearray(good)))
    cache.ask(6, 20, 33)
    cache.ask(8, 21, UNITS - 1)  # it is gone, or was learned anew
    cache.ask(9, 22, 34)
    assert cache.points().read_bytes()[:HEAD][20:24] == good[20:24]


def test_not_for_another_build(build, cache, tmp_path):
    """The key is the file's, not the build-id's: an exchanged file has points of its own."""
    cache.ask(2, UNITS - 1)
    other = tmp_path / "other"
    data = bytearray(build.file.read_bytes())
    other.write_bytes(data)
    while time.time() - os.stat(other).st_ctime < 2 * SETTLED_S:
        time.sleep(SETTLED_S / 2)
    asked = build.of(5, 30)
    done = program.run("addr2line", "-f", "-i", "-a", "-e", other, input="\n".join(asked) + "\n", env=cache.env)
    assert done.out == build.answer(asked)
    files = [path for path in (tmp_path / "stacker").iterdir() if path.read_bytes()[:8] == b"stackerP"]
    assert len(files) == 2


def test_at_once(build, cache):
    """Some learn while others read."""
    command = [os.fspath(paths.STACKER), "addr2line", "-f", "-i", "-a", "-e", os.fspath(build.file)]
    asked = [build.of(unit, UNITS - 1 - unit) for unit in range(6)]
    running = [subprocess.Popen([*command, *addresses], env={**os.environ, **cache.env}, stdout=subprocess.PIPE, text=True) for addresses in asked]
    outputs = [process.communicate(timeout=program.RUN_S)[0] for process in running]
    for addresses, output in zip(asked, outputs):
        assert output == build.answer(addresses)
    assert not list((cache.place / "stacker").glob("*.new"))
    cache.ask(1, 20)
