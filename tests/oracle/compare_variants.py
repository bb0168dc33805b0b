#!/usr/bin/python3
"""Builds the small program in every variant of debug information and compares each with
llvm-symbolizer (compare_symbolizer.py). A variant whose tools are not installed is said and left
out; one that should build and does not is a failure.
"""

import fnmatch
import os
import shutil
import subprocess
import sys
import tempfile

import compare_symbolizer

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "program")
GC = "-ffunction-sections -fdata-sections -Wl,--gc-sections"

# What llvm-symbolizer cannot read is compared with its answers for the file before the change.
KEEP = "cp {} {}.oracle"

# name, compiler, flags for compiling and linking, commands afterwards ({} is the program's path),
# tools that must be there.
VARIANTS = []


def variant(name, compiler, flags, after=(), needs=()):
    VARIANTS.append((name, compiler, flags, tuple(after), tuple(needs)))


def variants_define():
    for compiler in ("gcc", "clang"):
        for version in (2, 3, 4, 5):
            variant(f"{compiler} dwarf {version}", compiler, f"-O2 -gdwarf-{version}")
        for version in (4, 5):
            variant(f"{compiler} dwarf {version} 64-bit", compiler,
                    f"-O2 -gdwarf-{version} -gdwarf64")
            variant(f"{compiler} split {version}", compiler, f"-O2 -gdwarf-{version} -gsplit-dwarf")
            variant(f"{compiler} split {version} package", compiler,
                    f"-O2 -gdwarf-{version} -gsplit-dwarf",
                    ["llvm-dwp -e {} -o {}.dwp", "rm -f *.dwo"], ["llvm-dwp"])
            variant(f"{compiler} type units {version}", compiler,
                    f"-O2 -gdwarf-{version} -fdebug-types-section")
            for linker in ("bfd", "gold", "lld", "mold"):
                tool = {"bfd": "ld.bfd", "gold": "ld.gold", "lld": "ld.lld", "mold": "mold"}[linker]
                variant(f"{compiler} gc-sections {linker} {version}", compiler,
                        f"-O2 -gdwarf-{version} {GC} -fuse-ld={linker}", (), [tool])
        for level in ("-O0", "-Og", "-Os", "-O3"):
            variant(f"{compiler} {level}", compiler, f"{level} -g")
        variant(f"{compiler} -g1", compiler, "-O2 -g1")
        variant(f"{compiler} static-pie", compiler, "-O2 -g -static-pie")
        variant(f"{compiler} no-pie", compiler, "-O2 -g -no-pie")
        variant(f"{compiler} lto", compiler, "-O2 -g -flto" +
                (" -fuse-ld=lld" if compiler == "clang" else ""))
        for kind in ("zlib", "zlib-gnu", "zstd"):
            variant(f"{compiler} {kind}", compiler, "-O2 -g",
                    [KEEP, "objcopy --compress-debug-sections=" + kind + " {}"])
        variant(f"{compiler} dwz", compiler, "-O2 -g -gdwarf-4", ["dwz {}"], ["dwz"])
        variant(f"{compiler} dwz common file", compiler, "-O2 -gdwarf-4",
                [KEEP, "cp {} {}.second", "dwz -m common.debug {} {}.second"], ["dwz"])
    variant("gcc dwz 5", "gcc", "-O2 -gdwarf-5", ["dwz {}"], ["dwz"])
    variant("gcc dwz 5 common file", "gcc", "-O2 -gdwarf-5",
            [KEEP, "cp {} {}.second", "dwz -5 -m common.debug {} {}.second"], ["dwz"])
    variant("gcc dwp 4", "gcc", "-O2 -gdwarf-4 -gsplit-dwarf",
            ["dwp -e {} -o {}.dwp", "rm -f *.dwo"], ["dwp"])
    variant("gcc nested functions", "gcc", "-O2 -g -DNESTED")
    variant("gcc partitions", "gcc", "-O3 -g -freorder-blocks-and-partition")
    variant("clang gmlt", "clang", "-O2 -gline-tables-only")
    variant("clang thin lto", "clang", "-O2 -g -flto=thin -fuse-ld=lld")
    variant("clang split inlining", "clang", "-O2 -g -gsplit-dwarf -fsplit-dwarf-inlining")
    variant("clang split missing", "clang", "-O2 -g -gsplit-dwarf", ["rm -f *.dwo"])
    variant("gcc split missing", "gcc", "-O2 -g -gsplit-dwarf", ["rm -f *.dwo"])
    variant("clang aranges", "clang", "-O2 -g -gdwarf-aranges")


def run(command, directory):
    subprocess.run(command, shell=True, cwd=directory, check=True, capture_output=True, text=True)


def build(directory, compiler, flags, after):
    """The program's path. Objects are kept where split DWARF expects its .dwo files."""
    path = os.path.join(directory, "program")
    cxx = {"gcc": "g++", "clang": "clang++"}[compiler]
    sources = [("main", "cpp", cxx), ("shapes", "cpp", cxx), ("plain", "c", compiler),
               ("assembled", "S", compiler)]
    for name, suffix, tool in sources:
        run(f"{tool} {flags} -c -o {name}.o {PROGRAM}/{name}.{suffix}", directory)
    objects = " ".join(f"{name}.o" for name, _, _ in sources)
    run(f"{cxx} {flags} -o {path} {objects}", directory)
    for command in after:
        run(command.replace("{}", path), directory)
    return path


def try_variant(options, name, compiler, flags, after, needs):
    missing = [tool for tool in (compiler, *needs) if not shutil.which(tool)]
    if missing:
        print(f"{name}: left out, not installed: {' '.join(missing)}")
        return True
    with tempfile.TemporaryDirectory() as directory:
        try:
            path = build(directory, compiler, flags, after)
        except subprocess.CalledProcessError as e:
            print(f"{name}: cannot be built: {e.cmd}: {e.stderr.strip().splitlines()[-1:]}")
            return False
        options.label = name
        options.oracle_file = path + ".oracle" if os.path.exists(path + ".oracle") else None
        return compare_symbolizer.compare(path, options)


def main():
    parser = compare_symbolizer.options_parser()
    parser.add_argument("pattern", nargs="?", default="*", help="only variants of such a name")
    parser.set_defaults(count=2000)
    options = parser.parse_args()
    print(f"oracle: {compare_symbolizer.oracle_version(options.oracle)}")
    variants_define()
    met = [try_variant(options, *each) for each in VARIANTS
           if fnmatch.fnmatch(each[0], options.pattern)]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
