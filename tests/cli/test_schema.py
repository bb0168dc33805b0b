"""Captures and JSON reports against docs/capture.schema.json."""
import contextlib
import copy
import json
import pathlib
import subprocess
import sys

import jsonschema
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import paths  # noqa: E402
import program  # noqa: E402

SCHEMA = json.loads((paths.TOP / "docs" / "capture.schema.json").read_text())
GOLDEN = paths.TOP / "tests" / "golden"

# Threads that wait in different places, one of them with a name that is not UTF-8.
VICTIM = """
import ctypes, threading, time
def named():
    ctypes.CDLL(None).prctl(15, b"caf\\xe9 \\x1b[m", 0, 0, 0)
    ready.set()
    time.sleep(1000)
ready = threading.Event()
threading.Thread(target=named, daemon=True).start()
threading.Thread(target=threading.Event().wait, daemon=True).start()
ready.wait()
print("ready", flush=True)
time.sleep(1000)
"""


def complaint(document):
    """What is wrong with the document, in one line, or None."""
    # Of the two alternatives the one that the document says it is: its errors are readable.
    kind = document.get("format", "").removeprefix("stacker-")
    if kind not in ("capture", "report"):
        return f"format {document.get('format')}"
    schema = {"$ref": f"#/definitions/{kind}", "definitions": SCHEMA["definitions"]}
    for each in jsonschema.Draft7Validator(schema).iter_errors(document):
        return f"{'.'.join(map(str, each.absolute_path))}: {each.message[:300]}"
    return None


def parsed(text):
    """Strict: no member twice, no NaN."""
    def members(pairs):
        assert len(dict(pairs)) == len(pairs), [k for k, _ in pairs]
        return dict(pairs)

    def constant(word):
        raise AssertionError(word)

    return json.loads(text, object_pairs_hook=members, parse_constant=constant)


@pytest.fixture(scope="module")
def pid():
    with contextlib.ExitStack() as stack:
        victim = stack.enter_context(
            subprocess.Popen([sys.executable, "-c", VICTIM], stdout=subprocess.PIPE))
        stack.callback(victim.kill)
        assert victim.stdout.readline() == b"ready\n"
        yield victim.pid


def stdout_of(*arguments):
    done = program.run(*arguments, text=False)
    assert done.status in (program.COMPLETE, program.PARTIAL), done
    return done.out.decode("utf-8")  # strict


def test_schema_is_a_schema():
    jsonschema.Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("options", [[], ["--with-stacks"]])
def test_capture(pid, options):
    document = parsed(stdout_of("capture", "--pid", pid, "--output", "-", *options))
    assert complaint(document) is None
    jsonschema.validate(document, SCHEMA)
    assert len(document["threads"]) == 3
    assert "caf\\xe9 \x1b[m" in [t["thread_name"] for t in document["threads"]]
    assert all(t["stack_trace"] for t in document["threads"])
    assert "vdso" in document
    assert all(bool(t.get("stack_memory")) == bool(options) for t in document["threads"])


@pytest.mark.parametrize("options", [[], ["--no-maps"], ["--no-registers"]])
def test_onephase_report(pid, options):
    document = parsed(stdout_of("onephase", "--pid", pid, "--format", "json", *options))
    assert complaint(document) is None
    jsonschema.validate(document, SCHEMA)
    assert ("memory_maps" in document) == ("--no-maps" not in options)
    assert all(("registers" in t) == ("--no-registers" not in options) for t in document["threads"])


@pytest.mark.parametrize("options", [[], ["--with-stacks"]])
def test_symbolize_report(pid, tmp_path, options):
    path = tmp_path / "capture.json"
    stdout_of("capture", "--pid", pid, "--output", path, *options)
    document = parsed(stdout_of("symbolize", "--input", path, "--format", "json"))
    assert complaint(document) is None
    capture = parsed(path.read_text())
    same = set(capture) - {"format", "threads", "vdso"}
    assert {k: capture[k] for k in same} == {k: document[k] for k in same}


# Captures of elsewhere are below: they need not be as Stacker writes them.
OWN_FILES = [path for path in sorted(GOLDEN.glob("*.json")) if path.name != "elsewhere.capture.json"]


@pytest.mark.parametrize("path", OWN_FILES, ids=lambda p: p.name)
def test_golden_files(path):
    assert complaint(parsed(path.read_text())) is None


WRONG = [
    (["version"], 2), (["architecture"], "mips"), (["process_id"], 0), (["timestamp"], "yesterday"),
    (["capture", "method"], "magic"), (["capture", "stopped_ns"], -1),
    (["memory_maps", 0, "start"], 4194304), (["memory_maps", 0, "start"], "0x0400000"),
    (["memory_maps", 0, "permissions"], "rwx"), (["memory_maps", 0, "extra"], 1),
    (["modules", 0, "build_id"], "XYZ"), (["modules", 0, "load_bias"], 0),
    (["threads", 0, "tid"], "1"), (["threads", 0, "stack_trace", 0], 1),
    (["threads", 0, "registers", "RAX"], "0xXYZ"), (["threads", 0, "end"], "tired"),
    (["threads", 0, "frames"], []), (["threads", 1, "frame_runs", 0, "kind"], "maybe"),
]


@pytest.mark.parametrize("way, value", WRONG, ids=lambda x: str(x))
def test_schema_refuses(way, value):
    document = parsed((GOLDEN / "x86_64.capture.json").read_text())
    assert complaint(document) is None
    at = changed = copy.deepcopy(document)
    for step in way[:-1]:
        at = at[step]
    at[way[-1]] = value
    assert complaint(changed) is not None


def test_schema_wants_every_member():
    document = parsed((GOLDEN / "x86_64.capture.json").read_text())

    def places(node, way=()):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(node, dict) and key not in ("frame_runs", "stack_memory", "vdso") \
                    and way[-1:] not in (("file_base_addresses",), ("registers",)):
                yield way, key
            if isinstance(value, (dict, list)):
                yield from places(value, (*way, key))

    for way, key in places(document):
        changed = copy.deepcopy(document)
        at = changed
        for step in way:
            at = at[step]
        del at[key]
        assert complaint(changed) is not None, (way, key)


# What docs/capture-format.md says about captures of elsewhere: the schema and the reader agree.

MINIMAL = {"architecture": "x86_64", "process_id": 1, "threads": [{"tid": 1}]}
THREAD = {"tid": 1, "stack_trace": [1]}
MAP = {"start": 4096, "end": 8192}

ALLOWED = [
    {}, {"architecture": "aarch64"}, {"process_id": "0x1"}, {"process_id": "17"}, {"unknown": [1]}, {"threads": []},
    {"format": "stacker-capture", "version": 1}, {"format": None}, {"modules": None, "memory_maps": None},
    {"memory_maps": [MAP]}, {"memory_maps": [{"start": "0x1000", "end": "8192", "permissions": "r-xp", "more": 1}]},
    {"threads": [{"tid": 1, "stack_trace": [1, 2**64 - 1, "0x10", "17"]}]},
    {"threads": [{"tid": 1, "stack_trace": [{"pc": 1, "kind": "exact"}, {"pc": "0x2", "found_by": "magic"}]}]},
    {"threads": [{"tid": 1, "registers": {"rip": 1, "RSP": "0x2"}}]}, {"threads": [THREAD, {"tid": 2, "end": "tired"}]},
    {"capture": {"method": "magic"}}, {"threads": [{"tid": 1, "stack_trace": None, "registers": None}]},
]
REFUSED = [
    {"architecture": "mips"}, {"architecture": None}, {"process_id": None}, {"process_id": -1}, {"process_id": 1.5},
    {"threads": None}, {"threads": {}}, {"threads": [{}]}, {"threads": [1]}, {"threads": [{"tid": "one"}]},
    {"format": "stacker-capture"}, {"format": "stacker-capture", "version": 2}, {"format": "other", "version": 1},
    {"memory_maps": [{"start": 4096}]}, {"memory_maps": {}}, {"modules": [{"build_id": "XYZ"}]},
    {"threads": [{"tid": 1, "stack_trace": [-1]}]}, {"capture": {"stopped_ns": -1}}, {"capture": []},
    {"capture": {"realtime": "yes"}}, {"code_names": [{"start": 1}]}, {"threads": [{"tid": 1, "thread_name": 1}]},
    {"threads": [{"tid": 1, "stack_trace": [{"kind": "exact"}]}]}, {"threads": [{"tid": 1, "stack_trace": "0x1"}]},
    {"threads": [{"tid": 1, "registers": [1]}]}, {"threads": [{"tid": 1, "registers": {"RIP": "0xXYZ"}}]},
    {"threads": [{"tid": 1, "stack_trace": [{"pc": 1, "kind": "maybe"}]}]},
]


def status_of(document, folder):
    path = folder / "elsewhere.json"
    path.write_text(json.dumps(document))
    return program.run("symbolize", "-i", path).status


@pytest.mark.parametrize("change", ALLOWED, ids=json.dumps)
def test_elsewhere_is_allowed_and_read(tmp_path, change):
    document = {**MINIMAL, **change}
    jsonschema.validate(document, SCHEMA)
    assert status_of(document, tmp_path) in (program.COMPLETE, program.PARTIAL)


@pytest.mark.parametrize("change", REFUSED, ids=json.dumps)
def test_elsewhere_is_refused_by_both(tmp_path, change):
    document = {**MINIMAL, **change}
    assert not jsonschema.Draft7Validator(SCHEMA).is_valid(document)
    assert status_of(document, tmp_path) == program.NOTHING


def test_golden_capture_of_elsewhere():
    jsonschema.validate(parsed((GOLDEN / "elsewhere.capture.json").read_text()), SCHEMA)
