"""Tests are skipped for want of a tool, and with CI set fail; each skip is told with its reason."""
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
TESTS = """
import pytest
import wants

def test_wants():
    wants.tool("no-such-command", "nor-this-one")

@pytest.mark.parametrize("number", [1, 2])
def test_kernel(number):
    pytest.skip("not of this kernel")

def test_passes():
    assert wants.tool("no-such-command", "sh").endswith("/sh")
"""


def outcome(tmp_path, **environment):
    """Runs TESTS: exit status and what was said."""
    (tmp_path / "test_it.py").write_text(TESTS)
    env = {k: v for k, v in os.environ.items() if k != "CI" and not k.startswith("PYTEST_")}
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "skips", "-p", "no:cacheprovider", "test_it.py"],
                          cwd=tmp_path, env={**env, "PYTHONPATH": str(HERE), **environment}, capture_output=True,
                          text=True, timeout=60)
    return done.returncode, done.stdout


def test_skipped_for_want_of_a_tool(tmp_path):
    status, said = outcome(tmp_path)
    assert status == 0 and "1 passed, 3 skipped" in said, said
    assert "skipped: 3\n" in said, said
    assert "     2  not of this kernel (test_it.py)\n" in said, said
    assert "     1  for want of no-such-command or nor-this-one (test_it.py)\n" in said, said


def test_fails_in_ci_for_want_of_a_tool(tmp_path):
    status, said = outcome(tmp_path, CI="1")
    assert status == 1 and "1 failed, 1 passed, 2 skipped" in said, said
    assert "for want of no-such-command or nor-this-one: with CI set" in said, said
    assert "     2  not of this kernel (test_it.py)\n" in said, said


@pytest.mark.parametrize("status", [0, 1])
def test_an_empty_ci_is_none(tmp_path, status):
    """As make has it: $(if $(CI),...)."""
    assert outcome(tmp_path, CI="1" if status else "")[0] == status
