"""Runs inside gdb: the frames of every thread of every inferior as one line of JSON.

Frames that gdb infers from tail calls are left away: they are not on the stack any more.
"""
import json

import gdb

FRAMES_MAX = 400

gdb.execute("set pagination off")
gdb.execute("set backtrace past-main on")
gdb.execute("set backtrace past-entry on")
gdb.execute(f"set backtrace limit {FRAMES_MAX}")
threads = {}
for inferior in gdb.inferiors():
    for thread in inferior.threads():
        thread.switch()
        frames, frame = [], gdb.newest_frame()
        while frame is not None and len(frames) < FRAMES_MAX:
            if frame.type() != gdb.TAILCALL_FRAME:
                frames.append({"pc": frame.pc(), "function": frame.name(),
                               "inlined": frame.type() == gdb.INLINE_FRAME, "line": frame.find_sal().line})
            try:
                frame = frame.older()
            except gdb.error:
                break
        threads[thread.ptid[1]] = frames
print("\nFRAMES " + json.dumps(threads), flush=True)
