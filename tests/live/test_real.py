"""Real programs of the distribution: every stack is whole or says why it ends, and nothing in it is junk."""
import os
import re
import signal
import socket
import subprocess
import time

import program
import target
import truth
import wants

START_S = 60
# None of these programs recurses deeper: more would be a walk that repeats itself.
FRAMES_MAX = 300
# What may stand at the outer end of a stack, besides the C library's own functions: a thread's
# start function where the file has no symbols.
NEEDS_A_DETAIL = {"no unwind information", "no module at this address", "damaged unwind information",
                  "return address is not code", "unreadable memory", "outside the captured stack", "no progress"}


def executable_map_at(report, pc):
    for m in report["memory_maps"]:
        if int(m["start"], 16) <= pc < int(m["end"], 16):
            return m if "x" in m["permissions"] else None
    return None


def check_frames(report, thread):
    """Each frame is code: of a known module, or in executable memory that is no file (JIT)."""
    for index, frame in enumerate(thread["frames"]):
        pc = int(frame["pc"], 16)
        where = executable_map_at(report, pc) or executable_map_at(report, pc - 1)
        assert where, f"{frame} is not code\n{program.shown(thread)}"
        assert frame["module"] or where["pathname"] in ("", "[anon]") or where["pathname"].startswith("[anon:"), \
            f"frame {index} has no module\n{program.shown(thread)}"
    assert len(thread["frames"]) < FRAMES_MAX and thread["folded_frames"] == 0, program.shown(thread)


def is_complete(thread):
    last = thread["frames"][-1] if thread["frames"] else None
    return bool(last and thread["end"] == "outermost frame" and
                (last["function"] in truth.ENDS or (last["function"] is None and program.module_name(last))))


def check(process, pid=None, all_complete=True):
    """Every thread of the process. Returns how many stacks there were and how many are whole."""
    pid = pid or process.pid
    report = program.report(pid, status=(program.COMPLETE,))
    whole = 0
    assert report["threads"]
    for thread in report["threads"]:
        assert thread["frames"], program.shown(thread)
        check_frames(report, thread)
        whole += is_complete(thread)
        if not is_complete(thread):
            assert not all_complete, program.shown(thread)
            assert thread["end"] in NEEDS_A_DETAIL and thread["end_detail"], program.shown(thread)
    return len(report["threads"]), whole


def unharmed(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        text = file.read()
    assert re.search(r"^State:\t[RSD]", text, re.MULTILINE) and "TracerPid:\t0" in text


PYTHON = """
import socket, sqlite3, subprocess, threading, time, zlib
def recurse(n, f):
    return f() if n == 0 else recurse(n - 1, f)
lock = threading.Lock(); lock.acquire()
server = socket.socket(); server.bind(('127.0.0.1', 0)); server.listen()
for f in (lock.acquire, lambda: time.sleep(1000), server.accept, threading.Event().wait):
    threading.Thread(target=recurse, args=(30, f), daemon=True).start()
def compute():
    data = bytes(range(256)) * 4000
    db = sqlite3.connect(':memory:')
    while True:
        zlib.compress(data); sorted(range(10000), key=lambda n: -n)
        db.execute("with recursive c(n) as (select 1 union all select n + 1 from c where n < 9999) select sum(n) from c").fetchall()
threading.Thread(target=compute, daemon=True).start()
print('ready', flush=True)
threading.Event().wait()
"""


def test_python():
    with target.running("/usr/bin/python3", "-c", PYTHON) as process:
        process.lines_until("ready")
        for _ in range(5):
            assert check(process)[0] == 6
        assert process.is_unharmed()


def redis_say(path, *commands):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(START_S)
        client.connect(path)
        for command in commands:
            client.sendall(command.encode() + b"\r\n")
            if not client.recv(65536):
                raise AssertionError("redis closed the connection")


def test_redis(tmp_path):
    path = str(tmp_path / "redis.sock")
    # The server is the same program as redis-check-rdb, by its name; that one comes without a service.
    server = wants.tool("redis-server", "redis-check-rdb")
    with target.running("redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no",
                        "--dir", tmp_path, executable=server) as process:
        while "eady to accept connections" not in process.line(START_S):
            pass
        for _ in range(3):
            assert check(process)[0] >= 4
            redis_say(path, "SET a b", "GET a")
        assert process.is_unharmed()


NGINX = """
pid {0}/nginx.pid;
error_log stderr;
worker_processes 2;
events {{ worker_connections 16; }}
http {{
	access_log off;
	client_body_temp_path {0}; proxy_temp_path {0}; fastcgi_temp_path {0}; uwsgi_temp_path {0}; scgi_temp_path {0};
	server {{ listen unix:{0}/nginx.sock; location / {{ return 200 "hello"; }} }}
}}
"""


def http_ask(path):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(START_S)
        client.connect(path)
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        answer = b""
        while got := client.recv(65536):
            answer += got
    assert answer.endswith(b"hello"), answer


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def test_nginx(tmp_path):
    program_path = wants.tool("nginx", more_places=[wants.UNPACKED / "nginx/usr/sbin"])
    (tmp_path / "nginx.conf").write_text(NGINX.format(tmp_path))
    with target.running(program_path, "-p", tmp_path, "-e", "stderr", "-c", tmp_path / "nginx.conf", "-g", "daemon off;",
                        stderr=subprocess.DEVNULL) as process:
        target.await_that(lambda: (tmp_path / "nginx.sock").exists() and len(children(process.pid)) == 2, START_S,
                          lambda: "nginx and its workers")
        workers = children(process.pid)
        try:
            http_ask(str(tmp_path / "nginx.sock"))
            for pid in [process.pid, *workers]:
                check(process, pid)
                unharmed(pid)
            http_ask(str(tmp_path / "nginx.sock"))
        finally:
            for pid in workers:
                target.kill_quietly(pid)


JAVA = """
public class Waits {
	static long recurse(int n) throws Exception {
		if (n > 0)
			return recurse(n - 1) + 1;
		Thread.sleep(100000000);
		return 0;
	}
	static volatile long sink;
	static void compute() { for (long n = 1;; n++) sink += n * n ^ sink >> 3; }
	public static void main(String[] arguments) throws Exception {
		for (int i = 0; i < 3; i++)
			new Thread(() -> { try { recurse(50); } catch (Exception e) { } }).start();
		new Thread(Waits::compute).start();
		System.out.println("ready");
		synchronized (Waits.class) { Waits.class.wait(); }
	}
}
"""


def test_java(tmp_path):
    """Threads of the VM are whole. In Java's own frames (generated code, no unwind information) a
    stack may end, with the reason said."""
    java = wants.tool("java")
    wants.tool("javac")
    (tmp_path / "Waits.java").write_text(JAVA)
    with target.running(java, "-Xshare:auto", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", tmp_path / "Waits.java") as process:
        process.lines_until("ready", START_S)
        for _ in range(2):
            found, whole = check(process, all_complete=False)
            print(f"java: {whole} of {found} stacks are whole")
            assert found >= 10 and whole >= found - 6
        assert process.is_unharmed()


NODE = """
const { Worker, isMainThread } = require('worker_threads');
function spin(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) | 0; return s; }
if (isMainThread) {
	new Worker(__filename).on('online', () => { console.log('ready'); });
	setInterval(() => spin(100000), 5);
} else {
	setInterval(() => spin(1000000), 1);
}
"""


def test_node(tmp_path):
    node = wants.tool("node")
    (tmp_path / "program.js").write_text(NODE)
    with target.running(node, tmp_path / "program.js") as process:
        process.lines_until("ready", START_S)
        for _ in range(4):
            found, whole = check(process, all_complete=False)
            print(f"node: {whole} of {found} stacks are whole")
            assert found >= 7 and whole >= found - 2
        assert process.is_unharmed()


def test_shell_pipeline():
    """Small programs as they are found everywhere: a shell, sleep, cat."""
    with target.running("/bin/sh", "-c", "echo ready; sleep 1000 | cat; true", start_new_session=True) as process:
        process.lines_until("ready")
        target.await_that(lambda: len(children(process.pid)) == 2, START_S, lambda: "the pipeline")
        pids = [process.pid, *children(process.pid)]
        deadline = time.monotonic() + START_S
        while any(os.readlink(f"/proc/{p}/exe") == os.readlink(f"/proc/{process.pid}/exe") for p in pids[1:]):
            assert time.monotonic() < deadline
        for pid in pids:
            target.await_that(lambda p=pid: open(f"/proc/{p}/stat").read().rsplit(")", 1)[1].split()[0] == "S", START_S,
                              lambda: "asleep")
            assert check(process, pid) == (1, 1)
            unharmed(pid)
        for pid in pids[1:]:
            target.kill_quietly(pid, signal.SIGKILL)
