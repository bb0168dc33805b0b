"""Stacks of the fixtures against other tracers: gdb, function by function, and eu-stack."""
import contextlib
import json

import oracle
import paths
import program
import pytest
import target
from test_builds import BUILDS, INLINES, LANGUAGES

SITUATIONS = [
    ("realign-gcc-O0",), ("realign-gcc-O2",), ("realign-clang-O2",), ("noreturn-gcc-O2",), ("noreturn-clang-O2",),
    ("signals-gcc-O2", "nested"), ("signals-gcc-O2", "altstack"), ("signals-gcc-O0", "altstack-outer"),
    ("signals-gcc-O2", "first"), ("signals-gcc-O2", "blocked"), ("nocfi", "moves"), ("jit",), ("remap",),
    ("coroutine",),
]
COMMANDS = [(name,) for name in BUILDS + INLINES + [name for name, _ in LANGUAGES]] + SITUATIONS
# Where an oracle is wrong, as the fixture itself tells; test_situations.py has the truth.
GDB_CANNOT = {("jit",), ("coroutine",)}  # takes what lies above generated code's frame for a frame
# Ends at a register that is saved in a register; believes a search table of nonsense.
EU_STACK_CANNOT = {("nocfi", "moves"), ("threads-table-wrong",)}
AT_ONCE = 12


@pytest.fixture(scope="module")
def seen():
    """{command: (report, gdb's frames, eu-stack's)}; what did not come so far is not there."""
    results = {}
    for at in range(0, len(COMMANDS), AT_ONCE):
        with contextlib.ExitStack() as stack:
            reports, processes = {}, {}
            for command in COMMANDS[at:at + AT_ONCE]:
                path = paths.FIXTURES / command[0]
                if path.exists():
                    process = stack.enter_context(target.running(path, *command[1:]))
                    process.told()
                    done = program.run("onephase", "--pid", process.pid, "--format", "json")
                    if done.status == program.COMPLETE:
                        reports[command], processes[command] = json.loads(done.out), process
            frames = oracle.gdb(*(p.pid for p in processes.values()))
            for command, process in processes.items():
                results[command] = reports[command], frames, oracle.eu_stack(process.pid)
    return results


def result(seen, command):
    target.fixture(command[0])  # skips, or fails because it is not built
    assert command in seen, "stacker gave no complete report"
    return seen[command]


@pytest.mark.parametrize("command", [c for c in COMMANDS if c not in GDB_CANNOT], ids=" ".join)
def test_gdb(seen, command):
    report, frames, _ = result(seen, command)
    found = oracle.differences(report, frames, rust=command[0].startswith("rusty"))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("command", [c for c in COMMANDS if c not in EU_STACK_CANNOT], ids=" ".join)
def test_eu_stack(seen, command):
    report, _, pcs = result(seen, command)
    found = oracle.differences_from_eu_stack(report, pcs)
    assert not found, "\n".join(found)
