"""A process ends cleanly whatever its daemon threads do with tile."""

import os
import subprocess
import sys

import pytest

HEAD = """
import atexit, itertools, sys, threading, time
import numpy as np
started, stop = threading.Event(), threading.Event()
if sys.argv[1:]:  # a handler that runs after tile's own
    atexit.register(lambda: (stop.set(), [t.join() for t in threads]))
import tile_core as tile, tile_core.language as T

def make(n):
    @T.prim_func
    def add(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(2, threads=32) as bx:
            for i in T.serial(bx * n // 2, (bx + 1) * n // 2):
                B[i] = A[i] + 1
    return add

def counted():
    n = T.dynamic("n")
    @T.prim_func
    def count(A: T.Tensor((n,), "int32")):
        with T.Kernel(2) as bx:
            while A[bx] < 100_000:
                A[bx] = A[bx] + 1
    return count

@tile.jit
def eager(A: T.Tensor((64,), "float32")):
    B = T.empty((64,), "float32")
    with T.Kernel(1):
        for i in T.Parallel(64):
            B[i] = A[i] * 2
    return B

kernel, a, b = tile.compile(make(64), "cpu"), np.zeros(64, "float32"), np.zeros(64, "float32")
loops, c = tile.compile(counted(), "cpu"), np.zeros(64, "int32")
sizes = itertools.count(8)
"""
TAIL = """
def work():
    while not stop.is_set():
        {work}
        started.set()

threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
for t in threads:
    t.start()
started.wait()
time.sleep({delay})
print("end")
"""
WORK = {
    "launches": "kernel(a, b)",
    "long launches": "loops(c); c[:] = 0",
    "eager calls": "eager(a)",
    "measurements": "kernel.bench(a, b, warmup=0, repeat=3)",
    "verifications": "kernel.verify(a, np.zeros_like(a))",  # which it fills: of each thread its own
    "compilations": "tile.compile(make(next(sizes)), 'cpu')",
    "traces": "make(next(sizes))",
}


ENDLESS = """
@T.prim_func
def forever(A: T.Tensor((64,), "int32")):
    with T.Kernel(1) as bx:
        while A[0] == 0:
            A[1] = A[1] + 1
forever = tile.compile(forever, "cpu")
"""


def end(folder, text, *arguments):
    """Run a script and return how it ended."""
    script = folder / "script.py"
    script.write_text(text)
    command = [sys.executable, script, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=100, env={**os.environ, "TVM_NUM_THREADS": "1"}
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("work", WORK)
def test_daemon_threads_do_not_abort_the_exit(work, tmp_path):
    joined = ["joined"] if work in ("launches", "compilations") else []
    assert end(tmp_path, HEAD + TAIL.format(work=WORK[work], delay=0.05), *joined) == (0, "end\n", "")


@pytest.mark.sweep(0.25)
def test_a_kernel_that_never_returns_does_not_hold_the_exit(tmp_path):
    text = HEAD + ENDLESS + TAIL.format(work="started.set(); forever(c)", delay=0.05)
    assert end(tmp_path, text) == (0, "end\n", "")


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this interpreter does not unwind daemon threads")
def test_processes_abort_without_the_gate(tmp_path):
    undone = "import tile_runtime.compat.exits as exits; exits.leave_at_exit = lambda: None\n"
    text = undone + HEAD + TAIL.format(work=WORK["launches"], delay=0.05)
    assert any(end(tmp_path, text)[0] for _ in range(5))
