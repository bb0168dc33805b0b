"""Stacks at every single instruction of a scenario: prologues, epilogues, PLT stubs, the vDSO, vfork.

The program steps itself by the trap flag and waits in its signal handler, so that each stack is
[system call, handler, signal frame, the instruction stepped, ..., scenario, main, outermost].
"""
import bisect
import os
import platform
import subprocess

import program
import pytest
import target

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the trap flag is x86's")

# The first call through a lazy stub goes on in the dynamic linker, for thousands of instructions: the
# other scenarios are bound before.
CASES = [
    ("steps-lazy", "plt", 16, False), ("steps-lazy", "plt", 30, True), ("steps-now", "plt", 30, True),
    ("steps-ibt", "plt", 16, False), ("steps-lazy", "chain", 150, True), ("steps-O0", "chain", 150, True),
    ("steps-now", "vdso", 60, True), ("steps-now", "vfork", 10, True),
]
CHAINS = {
    "main": [["main"]],
    "chain_saves": [["chain_saves", "scenario_chain", "main"]],
    "chain_variable": [["chain_variable", "scenario_chain", "main"]],
    "chain_leaf": [["chain_leaf", "chain_saves", "scenario_chain", "main"],
                   ["chain_leaf", "chain_variable", "scenario_chain", "main"]],
}


class Functions:
    """The functions of the stepped program, by address in the process."""

    def __init__(self, path):
        done = subprocess.run(["nm", "-n", "--defined-only", path], capture_output=True, text=True, check=True)
        rows = [line.split() for line in done.stdout.splitlines()]
        self.rows = [(int(r[0], 16), r[2]) for r in rows if r[1] in "tT"]

    def at(self, ea):
        index = bisect.bisect_right([start for start, _ in self.rows], ea) - 1
        return self.rows[index][1] if index >= 0 else None


def module_at(capture, va):
    return next((m for m in capture["modules"] if int(m["start"], 16) <= va < int(m["end"], 16)), None)


def stack_of(capture, functions):
    """[(pc, module's name, function if it is the program's own)]; callers are looked up before pc."""
    rows = []
    for index, text in enumerate(capture["threads"][0]["stack_trace"]):
        pc = int(text, 16)
        module = module_at(capture, pc)
        name = os.path.basename(module["path"]) if module else None
        after_signal = rows and rows[-1][2] == "(signal)"
        if name and name.startswith("libc.so") and index == SIGNAL_FRAME:
            rows.append((pc, name, "(signal)"))
        elif module and module["executable"]:
            exact = index == 0 or after_signal
            rows.append((pc, name, functions.at(pc - int(module["load_bias"], 16) - (not exact))))
        else:
            rows.append((pc, name, None))
    return rows


# read, on_step, then the trampoline.
SIGNAL_FRAME = 2


def check_step(capture, rip, functions, scenario):
    rows = stack_of(capture, functions)
    shown = "\n".join(f"{pc:#x} {module} {function}" for pc, module, function in rows)
    inner = rows[SIGNAL_FRAME + 1:]
    assert rows[1][2] == "on_step" and inner[0][0] == rip, shown
    assert capture["threads"][0]["end"] == "outermost frame" and rows[-1][2] == "_start", shown
    own = [function for _, _, function in inner if function]
    assert own.pop() == "_start" and own[-1] == "main", shown
    if inner[0][2] in CHAINS:
        assert own in CHAINS[inner[0][2]], shown
    elif inner[0][2] and not inner[0][2].startswith("scenario_"):
        # a stub of the procedure linkage table, which has no name: nm's is the one before it
        assert own[1:] in ([f"scenario_{scenario}", "main"], ["main"]), shown
    else:
        assert own in ([f"scenario_{scenario}", "main"], ["main"]), shown
        assert len(inner) <= 20, shown
    return inner[0]


@pytest.mark.parametrize("name,scenario,steps,bound", CASES)
def test_every_instruction(start, tmp_path, name, scenario, steps, bound):
    env = {**os.environ, **({"LD_BIND_NOW": "1"} if bound else {})}
    process = start(name, scenario, "0", env=env)
    functions = Functions(target.fixture(name))
    places = []
    while len(places) < steps:
        line = process.line()
        if line == "done":
            break
        process.await_state(process.pid, "S")
        capture = program.capture(process.pid, tmp_path / "capture.json")
        places.append(check_step(capture, int(line.split()[2], 16), functions, scenario))
        process.say("s")
    modules = {module for _, module, _ in places}
    assert len(places) >= 10 and name in modules
    if scenario == "vdso":
        assert "[vdso]" in modules
    if scenario == "plt" and bound:
        assert "libsteps.so" in modules
    if scenario == "chain":
        assert {function for _, _, function in places} >= {"chain_leaf", "chain_saves", "scenario_chain"}
