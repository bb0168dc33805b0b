"""What tests ask of the machine. Every tool is installed by `make setup-programs` (scripts/install-packages): with
CI set a test fails for want of one, elsewhere it is skipped. What set-up cannot change (the kernel, the
architecture, the user) is a plain skip."""
import os
import pathlib
import re
import shutil

import paths
import pytest

# Packages whose installation would start a service are unpacked there (scripts/unpack-package).
UNPACKED = paths.TOP / "build" / "deps" / "unpacked"
# Older ones have faults of their own, which are mended in it.
SYMBOLIZER_VERSION_MIN = 16


def lack(what):
    """Ends the test, which cannot run for want of this."""
    if os.environ.get("CI"):
        pytest.fail(f"for want of {what}: with CI set, set-up must have installed it", pytrace=False)
    pytest.skip(f"for want of {what}")


def tool(*names, more_places=()):
    """The path of the first of these commands that is here."""
    places = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", *map(str, more_places)])
    for name in names:
        if path := shutil.which(name, path=places):
            return path
    return lack(" or ".join(names))


def tools(*names):
    """The test needs all of these commands."""
    for name in names:
        tool(name)


def symbolizer():
    """The path of the newest llvm-symbolizer that serves: distributions have several, by their versions."""
    found = {}
    for path in pathlib.Path("/usr/bin").glob("llvm-symbolizer-*"):
        if version := re.fullmatch(r"llvm-symbolizer-(\d+)", path.name):
            found[int(version[1])] = path
    if not found or max(found) < SYMBOLIZER_VERSION_MIN:
        lack(f"llvm-symbolizer-{SYMBOLIZER_VERSION_MIN} or newer")
    return os.fspath(found[max(found)])


def bpf(why_not):
    """The test needs the capture without a stop; program.why_no_bpf() says why it cannot be had."""
    if why_not and "built without BPF" in why_not:
        lack(f"what the BPF program is made with ({why_not})")
    if why_not:
        pytest.skip(why_not)


def sanitized():
    """The build of stacker with sanitizers."""
    if not paths.STACKER_SAN.exists():
        lack(f"{paths.STACKER_SAN} (make san)")
    return paths.STACKER_SAN
