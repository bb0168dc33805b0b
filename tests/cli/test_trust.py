"""Whose files and programs are believed when root runs with the environment of another user (sudo -E, su without -)."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import program  # noqa: E402
import target  # noqa: E402

NOBODY = 65534
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")


class Case:
    """A stripped program that runs, and a HOME of nobody's."""

    def __init__(self, place, start):
        self.place, self.home, self.stripped = place, place / "home", place / "program"
        shutil.copy(target.fixture("threads-stripped"), self.stripped)
        notes = subprocess.run(["readelf", "-n", self.stripped], capture_output=True, text=True, check=True).stdout
        self.build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)[1]
        self.home.mkdir()
        self.process = start(self.stripped)
        self.process.told()

    def keep(self, cache):
        """The debug file, as the client of debuginfod keeps it."""
        (cache / self.build_id).mkdir(parents=True)
        shutil.copy(target.fixture("threads-gcc-O2"), cache / self.build_id / "debuginfo")
        return cache / self.build_id / "debuginfo"

    def finder(self, directory, file=None):
        """A debuginfod-find that prints the path of `file`, and leaves `ran`."""
        directory.mkdir(exist_ok=True)
        script = directory / "debuginfod-find"
        script.write_text(f"#!/bin/sh\ntouch {self.place}/ran\n[ $2 = {self.build_id} ] && echo {file or '/none'}\n")
        script.chmod(0o755)
        return {"PATH": f"{directory}:{os.environ['PATH']}"}

    def give_away(self, *paths):
        for path in paths or [self.home, *self.home.rglob("*")]:
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)

    def run(self, *options, **env):
        """Whether names were found, and the report; programs ran or not."""
        given = {name: value for name, value in os.environ.items()
                 if name not in ("XDG_CACHE_HOME", "DEBUGINFOD_CACHE_PATH")}
        unset = [f"--unset={name}" for name in os.environ if name not in given]
        done = program.run(*unset, program.paths.STACKER.resolve(), "onephase", "--pid", self.process.pid, *options,
                           binary="env", env={"HOME": str(self.home), **env})
        assert done.status == program.COMPLETE, done
        return " in main " in done.out, done

    def ran(self):
        return (self.place / "ran").exists()


@pytest.fixture
def case(tmp_path, start):
    return Case(tmp_path, start)


def test_own_cache_of_the_client(case):
    case.keep(case.home / ".cache/debuginfod_client")
    assert case.run()[0]


def spoil_home(case, file):
    del file
    case.give_away()


def spoil_file(case, file):
    case.give_away(file)


def spoil_mode(case, file):
    del case
    file.parent.parent.chmod(0o777)


def spoil_link(case, file):
    del file
    (case.home / ".cache").rename(case.place / "elsewhere")
    (case.home / ".cache").symlink_to(case.place / "elsewhere")
    case.give_away(case.home / ".cache")


@pytest.mark.parametrize("spoil", [spoil_home, spoil_file, spoil_mode, spoil_link])
def test_cache_of_the_client_that_cannot_be_trusted(case, spoil):
    spoil(case, case.keep(case.home / ".cache/debuginfod_client"))
    found, done = case.run()
    assert not found and re.search(r"debuginfo refused: (.* belongs to another user|others may write to )", done.out), done


def test_own_cache_makes_nothing_elsewhere(case):
    """~/.cache leads to a directory of root's."""
    (case.place / "elsewhere").mkdir()
    (case.home / ".cache").symlink_to(case.place / "elsewhere")
    case.give_away()
    done = case.run("--verbose")[1]
    assert "no cache: " in done.err and "belongs to another user" in done.err, done
    assert not list((case.place / "elsewhere").iterdir())
    assert case.run()[1].err == ""


def test_command_runs(case):
    file = case.keep(case.place / "client")
    assert case.run("--debuginfod", **case.finder(case.place / "bin", file))[0] and case.ran()


@pytest.mark.parametrize("owner,mode,why", [(NOBODY, 0o755, "belongs to another user"), (0, 0o777, "others may write to"),
                                            (0, 0o775, "others may write to")])
def test_command_of_a_directory_of_others(case, owner, mode, why):
    env = case.finder(case.place / "bin")
    os.chown(case.place / "bin", owner, NOBODY)
    (case.place / "bin").chmod(mode)
    found, done = case.run("--debuginfod", **env)
    assert not found and not case.ran()
    assert f"debuginfod-find: {case.place}/bin/debuginfod-find is not run: " in done.out and why in done.out, done


def test_command_that_would_write_for_others(case):
    case.give_away()
    env = case.finder(case.place / "bin", case.keep(case.place / "client"))
    found, done = case.run("--debuginfod", **env)
    assert not found and not case.ran()
    assert f"it is not run: {case.home} belongs to another user (set DEBUGINFOD_CACHE_PATH)" in done.out, done
    assert case.run("--debuginfod", **env, DEBUGINFOD_CACHE_PATH=str(case.place / "client"))[0]


def test_command_brings_a_file_of_others(case):
    file = case.keep(case.place / "client")
    case.give_away(file)
    found, done = case.run("--debuginfod", **case.finder(case.place / "bin", file))
    assert not found and case.ran() and f"{file} belongs to another user" in done.out, done
