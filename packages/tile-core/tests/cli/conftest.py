"""Running the command line in this process."""

from __future__ import annotations

import dataclasses
import textwrap

import pytest

from tile_core.cli.app import run


@dataclasses.dataclass
class Result:
    status: int
    out: str
    err: str


@pytest.fixture
def tile(capfd, monkeypatch):
    """Run a command line; the texts are those of a pipe."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(*arguments):
        status = run([str(a) for a in arguments])
        captured = capfd.readouterr()
        return Result(status, captured.out, captured.err)

    return call


@pytest.fixture
def kernel_file(tmp_path, monkeypatch):
    """Write a Python file and return its path; the path of imports is restored."""
    import sys

    monkeypatch.setattr(sys, "path", [*sys.path])

    def write(text, name="kernel_file.py"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return write


SCALE = """
    import tile_core.language as T


    def scale(N, factor=2.0, block: int = 16):
        m = T.dynamic("m")

        @T.prim_func
        def scaled(A: T.Tensor((m, N), "float32"), B: T.Tensor((m, N), "float32"), s: T.float32):
            with T.Kernel(T.ceildiv(m, block), threads=32) as bx:
                A_s = T.alloc_shared((block, N), "float32")
                T.copy(A[bx * block, 0], A_s)
                for i, j in T.Parallel(block, N):
                    B[bx * block + i, j] = A_s[i, j] * s * factor

        return scaled
"""


@pytest.fixture
def scale(kernel_file):
    return kernel_file(SCALE)
