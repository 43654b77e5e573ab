"""Interrupts during compilation, and during a kernel that does not end."""

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import tvm_ffi
from tile_core.errors.launch import DeviceAssertFailed

pytestmark = pytest.mark.sweep(2)

HEAD = """
import faulthandler, os, random, signal, sys, threading, time
faulthandler.dump_traceback_later(100, exit=True)  # prints where it hangs
signal.signal(signal.SIGINT, signal.default_int_handler)  # processes in the background ignore it
import numpy as np
import tile_core as tile, tile_core.language as T


def make(n):
    @T.prim_func
    def kernel(A: T.Tensor((n, n), "float32"), B: T.Tensor((n, n), "float32")):
        with T.Kernel(T.ceildiv(n, 32), T.ceildiv(n, 32)) as (bx, by):
            a = T.alloc_shared((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], a)
            for i, j in T.Parallel(32, 32):
                a[i, j] = T.exp(a[i, j]) + 1
            T.copy(a, B[by * 32, bx * 32])
    return kernel


@T.prim_func
def endless(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "int32")):
    with T.Kernel(1) as bx:
        while A[0] == 0:
            B[0] = B[0] + 1
"""

COMPILING = """
tile.compile(make(33), "cpu")
begin = time.perf_counter()
tile.compile(make(34), "cpu")
took = time.perf_counter() - begin
signal.signal(signal.SIGALRM, signal.default_int_handler)
chance = random.Random(5)
for n in range(40):
    try:
        signal.setitimer(signal.ITIMER_REAL, chance.random() * took + 1e-3)
        tile.compile(make(35 + n), "cpu")
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        pass
a = np.ones((33, 33), "float32")
b = np.zeros_like(a)
tile.compile(make(33), "cpu")(a, b)
assert np.allclose(b, np.exp(a) + 1)
"""

RUNNING = """
kernel = tile.compile(endless, "cpu")
stopped, ended = np.zeros(4, "int32"), np.ones(4, "int32")
def other(number, frame):
    sys.exit(3)


signal.signal(signal.SIGUSR1, other)
for sent, expected in ((signal.SIGINT, KeyboardInterrupt), (signal.SIGUSR1, SystemExit)):
    try:  # around the timer too: on a busy machine it rings before the launch
        threading.Timer(0.2, os.kill, (os.getpid(), sent)).start()
        kernel(stopped, np.zeros(4, "int32"))
    except expected:
        pass
    kernel(ended, np.zeros(4, "int32"))
stopped[0] = 1
kernel(stopped, np.zeros(4, "int32"))
# The process ends although the code of another launch goes on.
try:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    kernel(np.zeros(4, "int32"), np.zeros(4, "int32"))
except KeyboardInterrupt:
    pass
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system sends no signals")
@pytest.mark.parametrize("program", [COMPILING, RUNNING], ids=["compiling", "running"])
def test_interrupts(program, tmp_path):
    script = tmp_path / "interrupted.py"
    script.write_text(HEAD + textwrap.dedent(program) + "\nprint('done')\n")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_they_pass_through_the_ffi(kind):
    def callback():
        raise kind

    with pytest.raises(kind):
        tvm_ffi.convert(callback)()


def test_a_kernel_that_may_not_end_is_like_others():
    @T.prim_func
    def kernel(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            T.device_assert(A[0] >= 0, "negative")
            n = T.alloc_var("int32", init=A[0])
            while n > 0:
                B[0] = B[0] + 1
                n = n - 1

    built = tile.compile(kernel, "cpu")
    found = []

    def count(n):
        b = np.zeros(4, "int32")
        built(np.array([n, 0, 0, 0], "int32"), b)
        found.append(int(b[0]))

    count(3)
    thread = threading.Thread(target=count, args=(5,))
    thread.start()
    thread.join()
    with pytest.raises(DeviceAssertFailed):
        count(-1)
    count(2)
    assert found == [3, 5, 2]
