"""What came out of the virtual machine, case by case (tests/arm64/guest/run says what is there)."""
import functools
import json
import os
import pathlib

import program
import truth
import wants

HERE = pathlib.Path(__file__).parent
TESTS = pathlib.Path(os.environ["ARM64_TESTS"])
SAMPLES = 4

# aarch64's clone is called thread_start behind the system call, and its first context __startcontext.
truth.OUTERMOST |= {"thread_start", "__startcontext"}
truth.ENDS |= {"thread_start", "__startcontext", "libc_start_main_stage2"}  # musl's, which _start jumps to


class Case:
    def __init__(self, name, how, program_name):
        self.name, self.how, self.program = name, how, program_name

    @property
    def folder(self):
        return TESTS / "out" / self.name

    def require(self):
        """Ends the test when the case could not be built here."""
        if not self.folder.exists():
            wants.lack(f"what {self.program} is made with")
        return self

    def text(self, name):
        path = self.folder / name
        return path.read_text(errors="replace") if path.exists() else ""

    def told(self):
        lines = self.text("told").splitlines()
        assert lines and lines[-1] == "ready", lines
        return truth.parse(lines)

    def made_there(self, name, status=program.COMPLETE):
        """A capture or a report that stacker made in the virtual machine, with this exit status."""
        said = self.text(f"{name}.err")
        assert int(self.text(f"{name}.status")) == status, said
        return json.loads(self.text(f"{name}.json"))

    def report(self, name="stacks", status=program.COMPLETE):
        """The report that this machine makes of a capture from there. Of one with stacks, these are
        unwound again."""
        self.made_there(name, status)
        return symbolized(self.folder / f"{name}.json", status)

    def report_of_recorded(self, status=program.COMPLETE):
        """The same as if that capture had no stacks: with the addresses that were recorded there."""
        capture = self.made_there("stacks", status)
        for thread in capture["threads"]:
            thread.pop("stack_memory", None)
        path = self.folder / "recorded.json"
        path.write_text(json.dumps(capture))
        return symbolized(path, status)

    def reports(self):
        """Of a busy one."""
        return [self.report(f"stacks-{n + 1}") for n in range(SAMPLES)]


@functools.lru_cache(maxsize=None)
def symbolized(path, status):
    return program.symbolized(path, "--sysroot", TESTS / "sysroot", status=status)


def read_cases():
    rows = [line.split() for line in (HERE / "cases").read_text().splitlines()]
    return {r[0]: Case(*r[:3]) for r in rows if r and r[0] != "#"}


CASES = read_cases()
BLOCKED = [c.name for c in CASES.values() if c.how not in ("busy", "running")]
BUSY = [c.name for c in CASES.values() if c.how == "busy"]


def case(name):
    return CASES[name].require()
