"""The tests of the whole program. STACKER names the binary (default: dist/, this architecture)."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "lib"))

import paths  # noqa: E402
import pytest  # noqa: E402
import target  # noqa: E402


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
