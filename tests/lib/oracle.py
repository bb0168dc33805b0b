"""Other tracers as oracles: gdb (frame by frame, inlined ones too) and eu-stack."""
import json
import os
import pathlib
import re
import subprocess

import program
import wants

ORACLE_S = 120
HERE = pathlib.Path(__file__).parent


def gdb(*pids):
    """{tid: [{pc, function, inlined, line}...]} of live processes. One gdb for many: it reads the
    C library's debug information once."""
    wants.tool("gdb")
    attach = []
    for number, pid in enumerate(pids, 1):
        if number > 1:
            attach += ["-ex", "add-inferior -no-connection", "-ex", f"inferior {number}"]
        attach += ["-ex", f"attach {pid}"]
    done = subprocess.run(
        ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off",
         *attach, "-x", HERE / "gdb_frames.py"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ORACLE_S, errors="replace")
    found = [line for line in done.stdout.splitlines() if line.startswith("FRAMES ")]
    assert found, done.stdout[-4000:] + done.stderr[-4000:]
    return {int(tid): frames for tid, frames in json.loads(found[0][7:]).items()}


def eu_stack(pid):
    """{tid: [pc...]}: only the frames that are on the stack."""
    wants.tool("eu-stack")
    done = subprocess.run(["eu-stack", "-p", str(pid)], capture_output=True, text=True, timeout=ORACLE_S)
    threads, frames = {}, None
    for line in done.stdout.splitlines():
        if line.startswith("TID "):
            frames = threads.setdefault(int(line[4:].rstrip(":")), [])
        elif line.startswith("#"):
            frames.append(int(line.split()[1], 16))
    return threads


# Names: the same function is written in more than one way.

_symbols = {}
_plain = {}


def debug_file(path):
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=False).stdout
    build_id = re.search(r"Build ID: ([0-9a-f]{3,})", notes)
    return f"/usr/lib/debug/.build-id/{build_id[1][:2]}/{build_id[1][2:]}.debug" if build_id else path


def symbols(path):
    """{name: addresses} of a file and its debug file: one function may have several names."""
    if path not in _symbols:
        known = _symbols[path] = {}
        for command in (["nm", "-D", path], ["nm", path], ["nm", debug_file(path)]):
            done = subprocess.run([*command, "--defined-only"], capture_output=True, text=True, check=False)
            for row in map(str.split, done.stdout.splitlines()):
                if len(row) == 3:
                    known.setdefault(row[2].split("@")[0], set()).add(row[0])
    return _symbols[path]


RUST_ESCAPES = {"LT": "<", "GT": ">", "RF": "&", "LP": "(", "RP": ")", "C": ",", "BP": "*", "SP": "@"}


def plain(name):
    """As a demangler gives it: eu-stack leaves some names as they are, or half so."""
    if name not in _plain:
        text = re.sub(r"\.llvm\.\d+$", "", name.split("@@")[0])
        if text.startswith(("_Z", "_R")):
            text = subprocess.run(["c++filt", text], capture_output=True, text=True, check=False).stdout.strip()
        text = re.sub(r"\$(LT|GT|RF|LP|RP|C|BP|SP)\$", lambda m: RUST_ESCAPES[m[1]], text)
        text = re.sub(r"\$u([0-9a-f]{2})\$", lambda m: chr(int(m[1], 16)), text)
        _plain[name] = re.sub(r"(?<![\w.])_(?=[<{])", "", text).replace("..", "::")
    return _plain[name]


def without_nested(text, opening, closing):
    depth, plain = 0, ""
    for letter in text:
        depth += letter == opening
        if depth <= 0:
            plain += letter
        depth -= letter == closing and depth > 0
    return plain


def bare(name):
    """A C or C++ name without parameters, template arguments, return type, clones and prefixes."""
    name = re.sub(r"( \[clone [^\]]*\])+$", "", name)
    name = re.sub(r"std::([io]+stream)\b", r"std::basic_\1", name)  # an abbreviation of the C++ ABI
    name = name.replace("(anonymous namespace)", "{anonymous}").replace("operator()", "operator-call")
    name = name.replace("->", "").replace("operator<", "operator-less").replace("operator>", "operator-more")
    name = re.sub(r"<lambda\(.*?\)>|\{lambda\(.*?\)#\d+\}", "lambda", name)
    name = without_nested(without_nested(name, "<", ">"), "(", ")")
    name = re.sub(r" const$", "", name.strip()).split(" ")[-1]
    name = re.sub(r"\.(constprop|isra|part|cold|lto_priv|llvm)\.?.*$", "", name.split("@")[0])
    return re.sub(r"_impl$", "", re.sub(r"^(__GI_|__libc_|_+)+", "", name))


def rust_bare(name):
    """Of a Rust path only the last part that names something: impls and closures differ."""
    name = re.sub(r"::h[0-9a-f]{16}$", "", name)
    plain = without_nested(name.replace("->", "").replace("::<", "<"), "<", ">").replace("{{vtable.shim}}", "")
    parts = [re.sub(r"[{}#0-9]|_env\$|:?vtable|shim:?", "", p) for p in plain.split("::")]
    return [p for p in parts if p][-1:]


def same_name(ours, theirs, module, rust):
    if not ours and (theirs or "").endswith("@plt"):
        return True  # gdb makes up names for the stubs of the procedure linkage table
    if not ours or not theirs or theirs == "??":
        return not theirs or theirs == "??"  # more than gdb knows is no difference
    if ours == theirs or bare(ours) == bare(theirs) or (rust and rust_bare(ours) == rust_bare(theirs)):
        return True
    if bare(ours).endswith("::" + bare(theirs)):
        return True  # a lambda of gdb's has no scope
    if bare(theirs).endswith("::" + bare(ours)) or theirs.endswith("::" + ours):
        return True  # no linkage name: shown as llvm-symbolizer shows it, without its scope
    known = symbols(module) if module and os.path.exists(module) else {}
    return not known.get(ours.split("@")[0], set()).isdisjoint(known.get(theirs.split("@")[0], set()))


def differences(report, frames_by_tid, rust=False):
    """What a report says otherwise than gdb, as lines; empty when the stacks are equal: the same
    program counters, at each the same number of frames, each with the same function."""
    found = []
    for thread in report["threads"]:
        theirs = frames_by_tid.get(thread["tid"])
        if theirs is None:
            found.append(f"gdb has no thread {thread['tid']}")
        elif [int(f["pc"], 16) for f in thread["frames"]] != [f["pc"] for f in theirs]:
            found.append(f"{program.shown(thread)}\ngdb:\n" + "\n".join(
                f"  {f['pc']:#x} {f['function']}{' [inlined]' if f['inlined'] else ''}" for f in theirs))
        else:
            found += [f"{thread['thread_name']}: {our['pc']} {our['function']} inlined {our['inlined']}, "
                      f"gdb: {their['function']} inlined {their['inlined']}"
                      for our, their in zip(thread["frames"], theirs)
                      if not same_name(our["function"], their["function"], our["module"], rust)
                      or our["inlined"] != their["inlined"]]
    return found


def differences_from_eu_stack(report, pcs_by_tid):
    found = []
    for thread in report["threads"]:
        ours = [int(f["pc"], 16) for f in thread["frames"] if not f["inlined"]]
        theirs = pcs_by_tid.get(thread["tid"], [])
        if ours != theirs:
            found.append(f"{program.shown(thread)}\neu-stack: {[hex(pc) for pc in theirs]}")
    return found
