"""Others who trace the process: one who lets go soon is waited for, one who stays is named; and the tracer of
stacker itself is refused, since each would wait for the other."""
import re
import subprocess
import sys
import threading
import time

import paths
import program
import pytest
import target

HOLD_S = 0.03
AT_ONCE, ROUNDS = 4, 15

# Seizes each thread that is named, says so, and lets go when its stdin ends: by its own end.
HOLDER = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
for tid in sys.argv[1:]:
    assert libc.ptrace(0x4206, int(tid), None, None) == 0, ctypes.get_errno()
print("ready", flush=True)
sys.stdin.read()
"""


def holder(*tids):
    return target.running(sys.executable, "-c", HOLDER, *map(str, tids))


def test_one_who_lets_go_is_waited_for(start):
    process = start("many", "3")
    process.told()
    with holder(*process.tids()) as other:
        assert other.line() == "ready"
        timer = threading.Timer(HOLD_S, other.process.stdin.close)
        timer.start()
        seen = program.report(process.pid, "--method", "ptrace", "--timeout", 10_000)
        timer.join()
    assert len(seen["threads"]) == 4, seen
    assert process.is_unharmed()


def test_one_who_stays_is_named(start):
    process = start("many", "3")
    process.told()
    with holder(*process.tids()) as other:
        assert other.line() == "ready"
        begin = time.monotonic()
        done = program.run("onephase", "--pid", process.pid, "--method", "ptrace")
        assert time.monotonic() - begin < 1
        assert done.status == program.NOTHING, done
        assert re.search(rf"already traced by process {other.pid} \(python3[^)]*\)", done.err), done


def test_several_at_once(start):
    """Each of them sees all threads, since the others hold them for a moment only."""
    process = start("many", "20")
    process.told()
    command = [paths.STACKER, "onephase", "-p", str(process.pid), "--method", "ptrace", "--timeout", "20000"]
    for _ in range(ROUNDS):
        runs = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                for _ in range(AT_ONCE)]
        for run in runs:
            _, err = run.communicate(timeout=program.RUN_S)
            assert run.returncode == program.COMPLETE, err
    process.await_unharmed()


def under_strace(*options, tmp_path):
    """Stacker asks for its own tracer."""
    script = f'exec "{paths.STACKER}" onephase --pid $PPID {" ".join(options)}'
    return subprocess.run(["strace", "-f", "-qq", "-o", tmp_path / "trace", "sh", "-c", script], capture_output=True,
                          text=True, timeout=program.RUN_S)


@pytest.mark.parametrize("options", [(), ("--method", "ptrace")])
def test_its_own_tracer(options, tmp_path):
    done = under_strace(*options, tmp_path=tmp_path)
    assert done.returncode == program.NOTHING and done.stdout == "", done
    assert re.fullmatch(r"stacker: process \d+ \(strace\) traces this stacker.*\n", done.stderr), done


def test_its_own_tracer_without_a_stop(tmp_path):
    """What never stops a thread waits for nobody."""
    done = under_strace("--never-stop", tmp_path=tmp_path)
    if "cannot be read without a stop" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode in (program.COMPLETE, program.PARTIAL), done
    assert "strace" in done.stdout
