"""What a program can notice: which blocking system calls return EINTR because of a capture."""
import pathlib
import platform
import random
import re
import signal
import subprocess

import paths
import program
import pytest
import target

CAPTURES = 25

INTERRUPTED_ON_AARCH64 = ["epoll_wait", "epoll_pwait", "epoll_pwait2", "semop", "sigwaitinfo", "io_getevents",
                          "io_uring_enter"]

MANUAL = pathlib.Path(__file__).parents[2] / "docs" / "stacker.1"


def manual_table():
    """What the manual promises: `.\\" measured: NAME goes on|EINTR|early` lines beside its text."""
    rows = re.findall(r'^\.\\" measured: (\S+) (goes on|EINTR|early.*)$', MANUAL.read_text(), re.M)
    assert len(rows) > 20
    table = dict(rows)
    if platform.machine() == "aarch64":
        table.update(dict.fromkeys(INTERRUPTED_ON_AARCH64, "EINTR"))
    return table


def told(lines):
    """By name: what became of the call; with a row for each that this kernel has."""
    rows = [line.split(None, 2) for line in lines]
    return {name: effect if int(count) else "goes on" for name, count, effect in rows}


def seen_after(name, *options):
    with target.running(target.fixture(name)) as blocked:
        assert blocked.line() == "ready"
        for _ in range(CAPTURES):
            assert program.run("onephase", "--pid", blocked.pid, *options).status == program.COMPLETE
        lines, status = blocked.finish()
        assert status == 0, lines
        return told(lines)


def test_the_manuals_table_is_what_happens():
    seen = {name: effect for fixture in ("blocking", "halfway")
            for name, effect in seen_after(fixture, "--method", "ptrace").items()}
    unknown_here = {"io_uring_enter", "io_uring_enter_timeout"} - set(seen)
    assert seen == {name: effect for name, effect in manual_table().items() if name not in unknown_here}


def test_each_signal_still_interrupts_once():
    """A call that we let begin again must return EINTR when a handler did run."""
    with target.running(target.fixture("blocking"), "signals") as blocked:
        assert blocked.line() == "ready"
        for _ in range(CAPTURES):
            assert program.run("onephase", "--pid", blocked.pid, "--method", "ptrace").status == program.COMPLETE
        lines, status = blocked.finish()
        assert status == 0, lines
        assert int(lines[0].removeprefix("done ")) > CAPTURES


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stacker_ended_in_the_middle(number):
    """Who ends stacker at any moment, also while threads are held, does not interrupt the program's calls."""
    dice = random.Random(int(number))
    with target.running(target.fixture("blocking")) as blocked:
        assert blocked.line() == "ready"
        for _ in range(CAPTURES):
            running = subprocess.Popen([paths.STACKER, "capture", "-p", str(blocked.pid), "-o", "/dev/null", "-q",
                                        "--method", "ptrace"], stderr=subprocess.DEVNULL)
            for _ in range(dice.randrange(120000)):
                pass
            running.send_signal(number)
            running.wait(program.RUN_S)
        lines, status = blocked.finish()
    assert status == 0, lines
    interrupted = {name for name, effect in told(lines).items() if effect != "goes on"}
    assert not interrupted & {name for name, what in manual_table().items() if what == "goes on"}
