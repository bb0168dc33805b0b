"""Names of code made at run time, from the map that its compiler writes for perf."""
import os
import pathlib

import program
import target
import wants

SPIN = """
function spin(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i) * (i % 7); return s }
function outer() { return spin(3e6) }
for (let i = 0; i < 60; i++) outer();
console.log("ready");
for (;;) outer();
"""


def named(report):
    return [f["function"] for f in report["threads"][0]["frames"] if f["function"] and "spin" in f["function"]]


def test_javascript_functions_have_names_in_both_flows(tmp_path):
    with target.running(wants.tool("node"), "--perf-basic-prof", "-e", SPIN, cwd=tmp_path) as node:
        perf_map = pathlib.Path(f"/tmp/perf-{node.pid}.map")
        try:
            node.lines_until("ready")
            capture = tmp_path / "capture.json"
            # Between two calls of spin the main thread may be elsewhere: a bounded number of looks.
            for _ in range(20):
                if named(program.report(node.pid)):
                    break
            else:
                raise AssertionError("spin was never seen by name")
            for _ in range(20):
                if program.capture(node.pid, capture).get("code_names"):
                    break
            os.unlink(perf_map)  # the capture carries the names itself
            assert named(program.symbolized(capture))
            # Whoever is not the process's user nor root may not put words into its mouth.
            perf_map.write_text("0 ffffffffffffffff forged\n")
            os.chown(perf_map, 65534, 65534)
            frames = program.report(node.pid)["threads"][0]["frames"]
            assert not any(f["function"] == "forged" for f in frames)
        finally:
            perf_map.unlink(missing_ok=True)
