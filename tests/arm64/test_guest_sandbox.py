"""The sandbox on an arm64 kernel, which is older than most: Landlock of version 2 does not know truncation."""
import re

import results


def read(name):
    return (results.TESTS / "out" / name).read_text(encoding="utf-8")


def test_what_must_be_refused():
    """tests/unit/test_live_sandbox.c, run there."""
    assert read("sandbox.status") == "0\n", read("sandbox")
    assert re.search(r"PASSED +\] \d\d test", read("sandbox")), read("sandbox")


def test_what_it_says_of_the_kernel():
    said = read("version")
    version = int(re.search(r"Landlock version (\d+)", said)[1])
    by = dict(re.findall(r"^  (\S.*?)  +(\S.*)$", said, re.M))
    assert version >= 1 and by["files written"] == by["files read"] == "Landlock", said
    assert by["files cut short"] == ("seccomp, Landlock" if version >= 3 else "seccomp"), said
    assert by["signals to other processes"] == ("seccomp, Landlock" if version >= 6 else "seccomp"), said
