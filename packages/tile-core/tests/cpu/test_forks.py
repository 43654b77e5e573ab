"""Kernels on several cores in processes that fork after a launch: correct, without deadlock."""

import os
import subprocess
import sys
import textwrap

import pytest

HEAD = """
import multiprocessing, os, sys, threading, time, warnings
import numpy as np
import tile_core as tile, tile_core.language as T

warnings.simplefilter("ignore", DeprecationWarning)


@tile.jit(target="cpu")
def double(A):
    N = T.const("N")
    A: T.Tensor[(N,), "float32"]
    B = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, 1024)) as bx:
        for i in T.Parallel(1024):
            B[bx * 1024 + i] = A[bx * 1024 + i] * 2
    return B


A = np.arange(1 << 17, dtype="float32")


def right(more=0):
    return bool((double(A + more) == 2 * (A + more)).all())


def task_count():
    return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else -1


def child(body):
    pid = os.fork()
    if pid == 0:
        body()
        sys.exit(7)
    assert os.WEXITSTATUS(os.waitpid(pid, 0)[1]) == 7


def launches():
    if not right(1):
        sys.exit(1)


assert right()
"""

PROGRAMS = {
    "children": """
        def compiles():
            assert double(np.ones(5000, "float32")).tolist() == [2] * 5000

        def has_threads():
            launches()
            if task_count() == 1 and os.environ["TVM_NUM_THREADS"] != "1":
                sys.exit(1)

        child(launches)
        child(lambda: None)
        child(compiles)
        child(has_threads)
        assert right(2)
    """,
    "children of children": """
        def waits():
            time.sleep(1)
            child(lambda: None)
            launches()

        child(lambda: child(launches))
        child(lambda: (launches(), child(launches)))
        child(waits)
    """,
    "pools of processes": """
        from concurrent.futures import ProcessPoolExecutor

        context = multiprocessing.get_context("fork")
        one = context.Process(target=launches)
        one.start()
        one.join()
        assert one.exitcode == 0
        with context.Pool(2) as pool:
            assert all(pool.map(right, range(8)))
        with ProcessPoolExecutor(2, context) as pool:
            assert all(pool.map(right, range(8)))
    """,
    "threads": """
        def forks():
            child(launches)
            assert right(3)
            child(launches)

        def threads():
            found = []
            both = [threading.Thread(target=lambda: found.append(right(4))) for _ in range(2)]
            for one in both: one.start()
            for one in both: one.join()
            assert found == [True, True]
            launches()

        thread = threading.Thread(target=forks)
        thread.start()
        thread.join()
        child(threads)
    """,
}

LOADER = """
import torch

class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 16
    def __getitem__(self, i):
        assert right(i)
        return torch.from_numpy(double(A + i))

loader = torch.utils.data.DataLoader(Squares(), batch_size=4, num_workers=2, multiprocessing_context="fork")
for _ in range(2):
    assert torch.equal(torch.cat(list(loader)), torch.from_numpy(np.stack([2 * (A + i) for i in range(16)])))
"""

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    pytest.mark.sweep(8),
]


def run(body, tmp_path):
    script = tmp_path / "forks.py"
    script.write_text(HEAD + textwrap.dedent(body) + "\nassert right(9)\nprint('done')\n")
    try:
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=240)
    except subprocess.TimeoutExpired:
        pytest.fail("it never ends")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("done\n")


@pytest.mark.parametrize("program", PROGRAMS)
def test_forks(program, tmp_path):
    run(PROGRAMS[program], tmp_path)


def test_data_loader(tmp_path):
    pytest.importorskip("torch")
    run(LOADER, tmp_path)
