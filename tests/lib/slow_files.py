"""A file system that stops answering when it is told to (linux/fuse.h, spoken by hand: no library).

As a program: slow_files.py MOUNT_POINT DIRECTORY. It shows the files of DIRECTORY, flat. Commands come on stdin, a
line each, and are answered with "ok": "stall OPEN READ" (requests of these kinds are taken and not answered: who
waits for them cannot be killed), "go" (all is answered, late ones too), "direct on" and "direct off" (files are
opened for direct reading). In a test: the fixture `slow_files` of tests/live/test_waits.py.
"""
import ctypes
import os
import select
import stat
import struct
import sys

OPS = {1: "LOOKUP", 2: "FORGET", 3: "GETATTR", 4: "SETATTR", 14: "OPEN", 15: "READ", 16: "WRITE", 17: "STATFS",
       18: "RELEASE", 20: "FSYNC", 25: "FLUSH", 26: "INIT", 27: "OPENDIR", 28: "READDIR", 29: "RELEASEDIR",
       34: "ACCESS", 36: "INTERRUPT", 38: "DESTROY", 42: "BATCH_FORGET"}
SILENT = {"FORGET", "INTERRUPT", "BATCH_FORGET"}
ENOENT, ENOSYS = 2, 38
HEADER = struct.Struct("<IIQQIIIHH")
DIRECT_IO = 1


class Files:
    def __init__(self, device, directory):
        self.device, self.directory = device, directory
        self.names = {1: "."}  # node id -> name
        self.stalled, self.late, self.direct = set(), [], False

    def path(self, node):
        return os.path.join(self.directory, self.names[node])

    def attributes(self, node):
        st = os.stat(self.path(node))
        mode = st.st_mode if not stat.S_ISDIR(st.st_mode) else stat.S_IFDIR | 0o755
        return struct.pack("<6Q10I", node, st.st_size, st.st_blocks, int(st.st_atime), int(st.st_mtime), int(st.st_ctime),
                           0, 0, 0, mode, 1, st.st_uid, st.st_gid, 0, 4096, 0)

    def lookup(self, _, body):
        name = body.rstrip(b"\0").decode()
        if not os.path.exists(os.path.join(self.directory, name)):
            return ENOENT
        node = next((n for n, known in self.names.items() if known == name), len(self.names) + 1)
        self.names[node] = name
        return struct.pack("<QQQQII", node, 0, 0, 0, 0, 0) + self.attributes(node)

    def getattr(self, node, _):
        return struct.pack("<QII", 0, 0, 0) + self.attributes(node)

    def open(self, node, body):
        fd = os.open(self.path(node), struct.unpack_from("<I", body)[0] & (os.O_ACCMODE | os.O_TRUNC))
        return struct.pack("<QII", fd, DIRECT_IO if self.direct else 0, 0)

    @staticmethod
    def opendir(*_):
        return struct.pack("<QII", 0, 0, 0)

    @staticmethod
    def read(_, body):
        fd, offset, size = struct.unpack_from("<QQI", body)
        return os.pread(fd, size, offset)

    @staticmethod
    def write(_, body):
        fd, offset, size = struct.unpack_from("<QQI", body)
        return struct.pack("<II", os.pwrite(fd, body[40:40 + size], offset), 0)

    @staticmethod
    def release(_, body):
        os.close(struct.unpack_from("<Q", body)[0])
        return b""

    @staticmethod
    def statfs(*_):
        return struct.pack("<5Q4I", 1 << 20, 1 << 19, 1 << 19, 100, 50, 4096, 255, 4096, 0) + bytes(24)

    @staticmethod
    def init(_, body):
        _, minor, readahead, _ = struct.unpack_from("<4I", body)
        return struct.pack("<4IHHIIHHI28x", 7, min(minor, 31), readahead, 0, 16, 12, 1 << 16, 1, 0, 0, 0)

    @staticmethod
    def nothing(*_):
        return b""

    releasedir = readdir = flush = fsync = access = destroy = nothing

    def answer(self, unique, operation, node, body):
        try:
            done = getattr(self, operation.lower(), lambda *_: ENOSYS)(node, body)
        except OSError as error:
            done = error.errno
        error, data = (-done, b"") if isinstance(done, int) else (0, done)
        try:
            os.write(self.device, struct.pack("<IiQ", 16 + len(data), error, unique) + data)
        except OSError:
            pass  # who asked was interrupted

    def take(self):
        request = os.read(self.device, 1 << 20)
        _, code, unique, node, *_ = HEADER.unpack_from(request)
        operation = OPS.get(code, "?")
        job = unique, operation, node, request[HEADER.size:]
        if operation in SILENT:
            return
        if operation in self.stalled:
            self.late.append(job)
            print("stalled", operation, flush=True)
        else:
            self.answer(*job)

    def obey(self, word, *more):
        if word == "stall":
            self.stalled = set(more)
        elif word == "go":
            self.stalled, late, self.late = set(), self.late, []
            for job in late:
                self.answer(*job)
        elif word == "direct":
            self.direct = more[0] == "on"
        print("ok", flush=True)


def main(mount_point, directory):
    device = os.open("/dev/fuse", os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(b"slow", os.fsencode(mount_point), b"fuse", 0, options) != 0:
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    files = Files(device, directory)
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([device, sys.stdin], [], [])
        if device in ready:
            files.take()
        if sys.stdin in ready:
            line = sys.stdin.readline()
            if not line:
                break
            files.obey(*line.split())
    libc.umount2(os.fsencode(mount_point), 2)  # MNT_DETACH


if __name__ == "__main__":
    main(*sys.argv[1:])
