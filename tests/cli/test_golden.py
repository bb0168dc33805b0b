"""Captures of tests/golden through `stacker symbolize`, against the reports kept beside them.

After a change that is meant to be: STACKER_GOLDEN=write, run, and look at the difference.
"""
import json
import os
import pathlib
import re
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import paths  # noqa: E402
import program  # noqa: E402

GOLDEN = paths.TOP / "tests" / "golden"
NAMES = sorted(p.name.removesuffix(".capture.json") for p in GOLDEN.glob("*.capture.json"))
# The files of the golden processes exist nowhere, so names and lines are missing.
STATUS = {"aarch64": program.COMPLETE}


def symbolized(name, form):
    done = program.run("symbolize", "--input", f"tests/golden/{name}.capture.json", "--format", form,
                       cwd=paths.TOP)
    assert done.status == STATUS.get(name, program.PARTIAL), done
    return re.sub(r"\AStacker v\S+", "Stacker vX", done.out)


def check(path, text):
    if os.environ.get("STACKER_GOLDEN") == "write":
        path.write_text(text)
    return path.read_text()


def test_there_are_golden_captures():
    assert {"x86_64", "aarch64", "hostile", "elsewhere"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_text(name):
    text = symbolized(name, "text")
    assert text == check(GOLDEN / f"{name}.symbolize.txt", text)


@pytest.mark.parametrize("name", NAMES)
def test_json(name):
    text = symbolized(name, "json")
    assert json.loads(text) == json.loads(check(GOLDEN / f"{name}.symbolize.json", text))


@pytest.mark.parametrize("name", NAMES)
def test_report_is_the_same_each_time(name):
    assert symbolized(name, "json") == symbolized(name, "json")


def test_missing_threads_make_it_partial(tmp_path):
    """A capture whose table had no room for all new threads: the report says so, and so does the status."""
    whole = (GOLDEN / "aarch64.capture.json").read_text()
    path = tmp_path / "missing.json"
    path.write_text(whole.replace('"threads_missing":false', '"threads_missing":true'))
    done = program.run("symbolize", "--input", path, "--format", "json")
    report = program.json.loads(done.out)
    assert done.status == program.PARTIAL and report["partial"] is True and report["capture"]["threads_missing"] is True, done
    text = program.run("symbolize", "--input", path)
    assert text.status == program.PARTIAL and "\nMore new threads than there was room for: some are missing\n" in text.out, text
