#!/usr/bin/python3
"""Functions, inline chains and lines of random function addresses: stacker addr2line and its peers.

    bench/symbolize.py STACKER [--runs N] [--addresses 1,30,...] [--limit S] [--place DIR] [--json FILE]

The debug files of a libjvm and of the C library, from the packages this machine's package sources
offer, compressed as they come and decompressed; then two runs of Stacker with a cache between them. Tools take turns; medians. What takes longer than
the limit is cut, and what was slow once (a quarter of it) is not measured again.
"""
import argparse
import json
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

import measure

# The first package of each row that is offered.
PACKAGES = [["openjdk-17-dbg", "openjdk-21-dbg", "openjdk-25-dbg"], ["libc6-dbg"]]
WHAT = ("wall", "cpu", "memory")


class Unavailable(Exception):
    pass


def quietly(*command, cwd=None):
    done = subprocess.run([str(word) for word in command], cwd=cwd, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"{command[0]}: {(done.stdout.strip().splitlines() or ['failed'])[-1]}")
    return done.stdout


def unpacked(name, place):
    """The largest debug file of a package: the one worth measuring."""
    root = place / name
    if not root.is_dir():
        part = place / f"{name}.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        quietly("apt-get", "-qq", "download", name, cwd=part)
        quietly("dpkg-deb", "-x", next(part.glob("*.deb")), part)
        part.rename(root)
    files = [path for path in root.rglob("*.debug") if path.is_file() and not path.is_symlink()]
    if not files:
        raise Unavailable(f"{name}: no debug files in it")
    return max(files, key=lambda path: path.stat().st_size)


def debug_file(names, place):
    why = []
    for name in names:
        try:
            return name, unpacked(name, place)
        except Unavailable as reason:
            why.append(str(reason))
    raise Unavailable("; ".join(why))


def plain_file(path, place):
    plain = place / f"{path.stem}.plain"
    if not plain.exists():
        part = plain.with_suffix(".part")
        quietly("objcopy", "--decompress-debug-sections", path, part)
        part.rename(plain)
    return plain


def function_addresses(path, count, which=0):
    """So many random addresses of functions; others for another `which`."""
    functions = set()
    for line in quietly("readelf", "-sW", path).splitlines():
        words = line.split()
        if len(words) >= 8 and words[3] in ("FUNC", "IFUNC") and words[6] != "UND" and int(words[2], 0):
            functions.add((int(words[1], 16), int(words[2], 0)))
    dice = random.Random(count + which)
    chosen = dice.choices(sorted(functions), k=count)
    return "".join(f"{start + dice.randrange(size):#x}\n" for start, size in chosen)


def newest(name):
    """The newest of a program whose packages put their version behind the name; or None."""
    names = [f"{name}-{n}" for n in range(40, 13, -1)] + [name]
    return next((found for found in names if shutil.which(found)), None)


def tools(options):
    yield "stacker addr2line", lambda file: [options.stacker, "addr2line", "-f", "-i", "-e", file]
    gimli = options.place / "gimli-addr2line"
    if gimli.exists():
        yield gimli.name, lambda file: [gimli, file]
    llvm = newest("llvm-symbolizer")
    if llvm:
        # Else it reads the compressed file of the same build-id, where the package is installed.
        yield llvm, lambda file: [llvm, "--no-demangle", "--debug-file-directory=/nonexistent", f"--obj={file}"]
    for name in ("addr2line", "eu-addr2line"):
        if shutil.which(name):
            yield name, lambda file, name=name: [name, "-f", "-i", "-e", file]


def version(name, command):
    """gimli's program has none; the packages it was built of have."""
    if not name.startswith("gimli"):
        return measure.version(command("x")[0])
    packages = sorted(pathlib.Path("/usr/share/cargo/registry").glob("addr2line-*"))
    return f"gimli's {packages[-1].name}" if packages else name


def measured(file, addresses, options):
    """{tool: [Run, ...]}; one run alone for what was cut or slow."""
    results, done = {}, set()
    for _ in range(options.runs):
        for name, command in tools(options):
            if name in done:
                continue
            with open(addresses, encoding="ascii") as stdin:
                run = measure.Run(command(file), limit_s=options.limit, stdin=stdin)
            results.setdefault(name, []).append(run)
            if run.status is None or run.wall > options.limit / 4:
                done.add(name)
    return results


def figures(runs):
    return {what: round(statistics.median(getattr(run, what) for run in runs), 4) for what in WHAT}


def report(label, count, results):
    """Rows of the table; returns the same for the JSON file."""
    entries = []
    for name, runs in results.items():
        entries.append({"file": label, "addresses": count, "tool": name, "runs": len(runs),
                        "cut": any(run.status is None for run in runs), **figures(runs)})
    peers = [entry for entry in entries[1:] if not entry["cut"]]
    best = min(peers, key=lambda entry: entry["wall"], default=None)
    for entry in entries:
        sign = "> " if entry["cut"] else ""
        cells = [f"{sign}{entry['wall']:.3f}", f"{sign}{entry['cpu']:.3f}", f"{entry['memory']:.0f}"]
        ratios = "-"
        if entry is entries[0] and best:
            entry["fastest_peer"] = best["tool"]
            entry["ratios"] = {what: round(best[what] / entry[what], 2) for what in WHAT if entry[what]}
            ratios = (", ".join(f"{value:.1f}" for value in entry["ratios"].values()) +
                      f" ({best['tool']})")
        measure.row(label, count, entry["tool"], *cells, ratios)
    return entries


def measure_package(names, options, place):
    name, packed = debug_file(names, place)
    entries = []
    for form, file in (("plain", plain_file(packed, place)), ("compressed", packed)):
        for count in options.addresses:
            addresses = place / f"{name}.{count}"
            addresses.write_text(function_addresses(packed, count), encoding="ascii")
            quietly("cksum", file)  # now it is in the page cache
            results = measured(file, addresses, options)
            entries += report(f"{name}, {form}", count, results)
    return entries


def measure_again(name, packed, options):
    """A second run on the same build with other addresses, beside the first one: rows, and the same for the JSON file."""
    command = [options.stacker, "addr2line", "-f", "-i", "-e", packed]
    entries = []
    for count in options.addresses:
        runs = {"no cache": [], "first": [], "second": []}
        for turn in range(options.runs):
            with tempfile.TemporaryDirectory(dir=options.place) as cache:
                for what, environment in (("no cache", "/nonexistent/cache"), ("first", cache), ("second", cache)):
                    text = function_addresses(packed, count, 2 * turn + 1 + (what == "second"))
                    asked = options.place / "asked"
                    asked.write_text(text, encoding="ascii")
                    with open(asked, encoding="ascii") as stdin:
                        runs[what].append(measure.Run(command, limit_s=options.limit, stdin=stdin,
                                                      environment={"XDG_CACHE_HOME": environment}))
        times = [figures(runs[what]) for what in runs]
        ratios = [f"{times[1][what] / times[2][what]:.1f}" for what in ("wall", "cpu")]
        measure.row(name, count, *(f"{row['wall']:.3f} / {row['cpu']:.3f} / {row['memory']:.0f}" for row in times), ", ".join(ratios))
        entries.append({"file": name, "addresses": count, **dict(zip(runs, times))})
    return entries


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stacker")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--limit", type=int, default=60, help="seconds")
    parser.add_argument("--addresses", default="1,30,1000,20000",
                        type=lambda text: [int(word) for word in re.split("[, ]+", text)])
    parser.add_argument("--place", type=pathlib.Path, default=pathlib.Path("build/bench"))
    parser.add_argument("--json", type=pathlib.Path)
    return parser.parse_args()


def main():
    options = arguments()
    place = options.place = options.place.resolve()
    place.mkdir(parents=True, exist_ok=True)
    print(f"{measure.machine()}; " +
          "; ".join(version(*tool) for tool in tools(options)) + "\n")
    measure.head("debug file", "addresses", "tool", "wall s", "cpu s", "peak MB",
                 "fastest peer / stacker: wall, cpu, memory")
    entries = []
    for names in PACKAGES:
        try:
            entries += measure_package(names, options, place)
        except Unavailable as reason:
            print(f"skipped: {' or '.join(names)} cannot be had here: {reason}", flush=True)
    again = []
    print("\nThe same compressed files twice, with other addresses the second time (the cache is empty before): wall s / cpu s / MB\n")
    measure.head("debug file", "addresses", "no cache", "first run", "second run, other addresses", "first / second: wall, cpu")
    for names in PACKAGES:
        try:
            again += measure_again(*debug_file(names, place), options)
        except Unavailable:
            pass  # said above
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps({"machine": measure.machine(), "measured": entries, "again": again}, indent=1) + "\n",
                                encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
