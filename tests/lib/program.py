"""Running stacker, and reading what it says."""
import json
import os
import pathlib
import re
import subprocess

import paths

COMPLETE, NOTHING, USAGE, PARTIAL = 0, 1, 2, 3
RUN_S = 60

# The sanitizers' own exit status is none of stacker's. Leak checking traces the program itself, which
# does not go together with being a tracer, or in a sandbox. For all that the tests start.
#
# The home's cache is neither filled by tests nor are they answered by it: none can be made in a directory that
# is missing. Tests of the cache name their own.
os.environ.update({"XDG_CACHE_HOME": "/nonexistent/cache", "ASAN_OPTIONS": "detect_leaks=0:exitcode=99", "UBSAN_OPTIONS": "print_stacktrace=1"})


# STACKER_METHOD=ptrace: captures that choose no method are made by this one.
METHOD = os.environ.get("STACKER_METHOD")
CHOOSING = {"--method", "--never-stop", "--rolling"}


class Run:
    def __init__(self, arguments, done):
        self.arguments, self.status = arguments, done.returncode
        self.out, self.err = done.stdout, done.stderr

    def __repr__(self):
        return f"{self.arguments}: exit status {self.status}\n{self.err}\n{(self.out or '')[-2000:]}"


def run(*arguments, binary=None, timeout=RUN_S, text=True, **more):
    """Runs stacker with these arguments; never raises for its exit status."""
    if METHOD and arguments[0] in ("capture", "onephase") and not CHOOSING & set(arguments):
        arguments += ("--method", METHOD)
    command = [os.fspath(binary or paths.STACKER), *(a if isinstance(a, bytes) else str(a) for a in arguments)]
    more.setdefault("stdout", subprocess.PIPE)
    more.setdefault("stderr", subprocess.PIPE)
    env = {**os.environ, **more.pop("env", {})}
    done = subprocess.run(command, timeout=timeout, text=text, env=env, errors="replace" if text else None, **more)
    return Run(command, done)


def report(pid, *options, status=COMPLETE, **more):
    """The JSON report of a live process."""
    done = run("onephase", "--pid", pid, "--format", "json", *options, **more)
    assert done.status in (status if isinstance(status, tuple) else (status,)), done
    return json.loads(done.out)


def capture(pid, path, *options, status=COMPLETE, **more):
    done = run("capture", "--pid", pid, "--output", path, *options, **more)
    assert done.status == status, done
    return json.loads(pathlib.Path(path).read_text())


def symbolized(path, *options, status=COMPLETE, **more):
    done = run("symbolize", "--input", path, "--format", "json", *options, **more)
    assert done.status == status, done
    return json.loads(done.out)


def bytes_of(text):
    """The bytes of a string in JSON: what is not UTF-8 is written \\xNN (docs/capture-format.md)."""
    return re.sub(rb"\\x([0-9a-f]{2})", lambda m: bytes([int(m.group(1), 16)]), text.encode())


# Why the capture without a stop may be out of reach where the tests run.
NO_BPF = re.compile(r"built without BPF|BPF is not permitted|has no BPF|no type information|need Linux 6\.1")


def why_no_bpf():
    """One line that says why threads cannot be read without a stop here; None when they can."""
    done = run("capture", "--pid", os.getpid(), "--method", "bpf", "--output", "/dev/null", "--quiet")
    if done.status in (COMPLETE, PARTIAL):
        return None
    assert done.status == NOTHING and NO_BPF.search(done.err), done
    return done.err.strip()


def thread_of(report, tid):
    found = [t for t in report["threads"] if t["tid"] == tid]
    assert len(found) == 1, f"thread {tid}: {[t['tid'] for t in report['threads']]}"
    return found[0]


def functions(thread):
    return [f["function"] for f in thread["frames"]]


def module_name(frame):
    return os.path.basename(frame["module"]) if frame["module"] else None


def shown(thread):
    """A stack as text, for messages."""
    rows = [f"  {f['pc']} {f['function']} {os.path.basename(f['file'] or '?')}:{f['line']}"
            f"{' [inlined]' if f['inlined'] else ''} ({module_name(f)}+{f['offset']}) {f['found_by']}"
            for f in thread["frames"]]
    return "\n".join([f"thread {thread['tid']} {thread['thread_name']} {thread['state']}", *rows,
                      f"  [{thread['end']}; {thread['end_detail']}; folded {thread['folded_frames']}]"])
