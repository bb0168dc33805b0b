"""Captures of one architecture on the other: the same frames as at home."""
import shutil
import subprocess

import paths
import program
import pytest
import results
import wants
from results import BLOCKED, BUSY, CASES

REPORTED = [name for name in BLOCKED if CASES[name].how in ("report", "gdb")]
PARTIAL = {"vfork"}


def plain(report):
    """What must be the same however a report was made, and whenever."""
    return [(t["tid"], t["thread_name"], t["state"], t["end"], t["end_detail"], t["folded_frames"],
             t["folded_before"], t["frames"])
            for t in report["threads"]]


def registers_of(report):
    return [t["registers"] for t in report["threads"]]


def status_of(name):
    return program.PARTIAL if name in PARTIAL else program.COMPLETE


@pytest.mark.parametrize("name", REPORTED)
def test_report_made_there_is_the_same(name):
    """Unwound and symbolized on arm64; captured there and symbolized here, with and without stacks."""
    case, status = results.case(name), status_of(name)
    there = plain(case.made_there("report", status))
    assert plain(case.report("stacks", status)) == there
    assert plain(case.report("capture", status)) == there


@pytest.mark.parametrize("name", BLOCKED)
def test_unwound_again(name):
    """From the registers and the bytes of the stacks, on the other architecture: as it was there."""
    case, status = results.case(name), status_of(name)
    again, recorded = case.report("stacks", status), case.report_of_recorded(status)
    assert plain(again) == plain(recorded)
    assert registers_of(again) == registers_of(recorded)


def test_build_ids_are_checked(tmp_path):
    """Another program at the place of the one that was captured."""
    case = results.case("threads-pac-O2")
    (tmp_path / "tests" / "bin").mkdir(parents=True)
    for name in ("lib", "usr"):
        (tmp_path / name).symlink_to((results.TESTS / "sysroot" / name).resolve())
    shutil.copy(results.TESTS / "tests" / "bin" / "threads-O2", tmp_path / "tests" / "bin" / "threads-pac-O2")
    done = program.run("symbolize", "--input", case.folder / "stacks.json", "--sysroot", tmp_path)
    assert done.status == program.PARTIAL and "build-id" in done.out + done.err, done


def test_names_need_the_sysroot(tmp_path):
    """Without it, this machine's files of the same names are of another architecture: refused."""
    case = results.case("threads-pac-O2")
    done = program.run("symbolize", "--input", case.folder / "stacks.json", "--sysroot", tmp_path)
    assert done.status == program.PARTIAL and "in_pause" not in done.out, done


@pytest.mark.parametrize("name", ["threads-gcc-O2", "inlines-cpp-gcc-O2", "signals-gcc-O2"])
@pytest.mark.parametrize("how", [(), ("--with-stacks",)])
def test_capture_of_here_symbolized_by_the_arm64_binary(start, tmp_path, name, how):
    if paths.ARCH_NAME != "amd64":
        pytest.skip("for an x86_64 machine")
    emulator = wants.tool("qemu-aarch64-static", "qemu-aarch64")
    process = start(name)
    process.told()
    path = tmp_path / "capture.json"
    program.capture(process.pid, path, *how)
    done = subprocess.run([emulator, paths.STACKER_OTHER, "symbolize", "--input", path, "--format", "json"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == program.COMPLETE, done
    assert plain(program.json.loads(done.stdout)) == plain(program.symbolized(path))


@pytest.mark.parametrize("name", BUSY[:1])
def test_registers_are_there_by_name(name):
    for report in results.case(name).reports():
        registers = report["threads"][0]["registers"]
        assert list(registers) == [f"X{n}" for n in range(31)] + ["SP", "PC", "PSTATE"]
        assert registers["PC"] == report["threads"][0]["frames"][0]["pc"]
