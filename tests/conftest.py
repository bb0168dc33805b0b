"""The tests of the whole program. STACKER names the binary (default: dist/, this architecture)."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "lib"))

import paths  # noqa: E402
import pytest  # noqa: E402
import program  # noqa: E402
import skips  # noqa: E402
import target  # noqa: E402
import wants  # noqa: E402

pytest_terminal_summary = skips.pytest_terminal_summary
# Those judge what came out of a virtual machine, and are run with it: make test-arm64.
collect_ignore = [] if "ARM64_TESTS" in os.environ else ["arm64"]


def pytest_report_header():
    return f"stacker: {paths.STACKER}"


def pytest_sessionstart():
    if not paths.STACKER.exists():
        pytest.exit(f"{paths.STACKER} is not built: make", returncode=2)


@pytest.fixture
def start():
    """Starts fixture programs, and ends them with the test: start("busy", "4")."""
    running = []

    def start_one(name, *arguments, **popen):
        path = target.fixture(name) if isinstance(name, str) else name
        running.append(target.Target([path, *arguments], **popen))
        return running[-1]

    yield start_one
    for process in running:
        process.end()


@pytest.fixture(scope="session")
def bpf_here():
    return program.why_no_bpf()


@pytest.fixture
def bpf(bpf_here):
    """For tests of the capture without a stop: skips them where it cannot be had."""
    wants.bpf(bpf_here)


@pytest.fixture(params=["bpf", "ptrace"])
def method(request, bpf_here):
    """For tests that must hold for both methods: the options that choose it."""
    if request.param == "bpf":
        wants.bpf(bpf_here)
    return "--method", request.param
