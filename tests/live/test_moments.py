"""Programs at random moments beside eu-stack and gdb: the short form of `make oracle-live`."""
import subprocess

import paths

COMPARE = paths.TOP / "tests" / "oracle" / "compare_live.py"
RUN_S = 120


def test_random_moments():
    command = ["/usr/bin/python3", COMPARE, paths.STACKER, "--only", "python3,gzip", "--samples", "8", "--gdb-every", "8"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
