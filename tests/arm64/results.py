"""The results of the virtual machine, case by case (tests/arm64/guest/run says what is there)."""
import json
import os
import pathlib
import re

import pytest
import truth

FOLDER = os.environ.get("ARM64_RESULTS")
HERE = pathlib.Path(__file__).parent
SAMPLES = 6

# aarch64's clone is called thread_start behind the system call.
truth.OUTERMOST |= {"thread_start"}
truth.ENDS |= {"thread_start"}


class Case:
    def __init__(self, name, how, program):
        self.name, self.how, self.program = name, how, program

    @property
    def folder(self):
        return pathlib.Path(FOLDER) / self.name

    def require(self):
        """Skips when the case could not be built here."""
        if not self.folder.exists():
            pytest.skip(f"{self.program} cannot be built on this machine")
        return self

    def text(self, name):
        return (self.folder / name).read_text(errors="replace")

    def told(self):
        lines = self.text("told").splitlines()
        assert lines and lines[-1] == "ready", lines
        return truth.parse(lines)

    def result(self, name, status=0):
        """A capture or a report, for which stacker's exit status was as it should be."""
        said = int(self.text(f"{name}.status")), self.text(f"{name}.err")
        assert said[0] == status, f"exit status {said[0]}: {said[1]}"
        return json.loads(self.text(f"{name}.json"))

    def reports(self):
        names = [f"report-{n + 1}" for n in range(SAMPLES)] if self.how == "busy" else ["report"]
        return [self.result(name) for name in names]


def read_cases():
    rows = [line.split() for line in (HERE / "cases").read_text().splitlines()]
    return {r[0]: Case(*r[:3]) for r in rows if r and r[0] != "#"}


CASES = read_cases()


def named(pattern, how="blocked"):
    """Names of the cases that match the whole pattern."""
    return [c.name for c in CASES.values() if c.how == how and re.fullmatch(pattern, c.name)]


def case(name):
    return CASES[name].require()
