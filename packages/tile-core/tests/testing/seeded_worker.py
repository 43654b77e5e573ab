"""A worker of the watchdog's tests, with programs controlled by their seeds."""

from __future__ import annotations

import os
import subprocess
import sys
import time


def serve(pipe, target, runtime, seed, options):
    """Hang, die, and find wrong programs."""
    pipe.send(("ready",))
    while True:
        try:
            chunk = pipe.recv()
        except EOFError:
            return
        used = sum(os.times()[:4])
        pipe.send(("program", f"program {chunk.seed}", used))
        pipe.send(("build", used))
        if chunk.seed == 1:
            while True:
                pass
        if chunk.seed == 11:
            time.sleep(1000)
        if chunk.seed == 12:
            time.sleep(1.0)
        if chunk.seed == 13:
            code = "import time\nend = time.time() + 5\nwhile time.time() < end: pass"
            subprocess.run([sys.executable, "-c", code], check=False)
        if chunk.seed == 2:
            os._exit(11)
        pipe.send(("end", "build", 0.25, used))
        if chunk.seed == 3:
            pipe.send(("wrong", "output B: 1 of 2 elements are wrong", 0, False))
            continue
        if chunk.seed == 9:
            pipe.send(("wrong", "the launch failed: illegal address", 4, True))
            time.sleep(1000)
        pipe.send(("counted", "right", chunk.count))
        pipe.send(("done",))
