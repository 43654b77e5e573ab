"""``tile new``: a kernel with its test and its benchmark, to start from."""

from __future__ import annotations

import keyword
from pathlib import Path
from typing import Annotated

import typer

from tile_core.cli.console import Verbose, console
from tile_core.errors.cli import CannotWrite, FileExists
from tile_core.runtime.files import write_named

_KERNEL = '''\
"""NAME: B = A * factor, for any number of rows."""

import tile_core as tile
import tile_core.language as T


@tile.jit(out_idx=-1)
def NAME(N: int, factor: float = 2.0, block: int = 16, dtype: str = "float32"):
    M = T.dynamic("M")

    @T.prim_func
    def kernel(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            rows = T.alloc_fragment((block, N), dtype)
            T.copy(A[bx * block, 0], rows)
            for i, j in T.Parallel(block, N):
                rows[i, j] = rows[i, j] * factor
            T.copy(rows, B[bx * block, 0])

    return kernel
'''

_TEST = '''\
"""Tests of NAME: `pytest test_NAME.py`."""

import numpy as np
import pytest
from NAME import NAME

import tile_core as tile


@pytest.mark.parametrize("rows", [1, 16, 37])
def test_equals_numpy(rows):
    kernel = tile.compile(NAME.program(64), "cpu", out_idx=-1)
    a = np.random.default_rng(0).standard_normal((rows, 64), dtype="float32")
    kernel.verify(a, reference=lambda a: a * 2)
'''

_BENCH = '''\
"""Benchmark of NAME: `python bench_NAME.py`; `tile bench NAME.py:NAME --arg N=1024` shows rates, too."""

import numpy as np
from NAME import NAME

import tile_core as tile


def main():
    a = np.ones((4096, 1024), "float32")
    for block in (8, 16, 32):
        kernel = tile.compile(NAME.program(1024, block=block), "cpu", out_idx=-1)
        print(f"block={block}: {kernel.bench(a)}")


if __name__ == "__main__":
    main()
'''


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the kernel and of its file.")],
    folder: Annotated[Path, typer.Option(help="Where the files are written.")] = Path(),
    verbose: Verbose = False,
) -> None:
    """Write a kernel, its test and its benchmark, which run as they are."""
    if not name.isidentifier() or keyword.iskeyword(name):
        raise typer.BadParameter(f"{name!r} is not a name in Python")
    texts = {f"{name}.py": _KERNEL, f"test_{name}.py": _TEST, f"bench_{name}.py": _BENCH}
    for file in texts:
        if (folder / file).exists():
            raise FileExists(file=folder / file)
    try:
        for file, text in texts.items():
            write_named(folder / file, text.replace("NAME", name))
    except OSError as error:
        raise CannotWrite(file=folder, reason=error.strerror or str(error)) from error
    out = console()
    out.print(f"wrote {', '.join(str(folder / file) for file in texts)}", markup=False, soft_wrap=True)
    kernel = f"{folder / name}.py:{name}"
    out.print(f"next: tile verify {kernel} --arg N=64", markup=False, soft_wrap=True)
    out.print(f"      tile bench {kernel} --arg N=1024 --arg M=4096", markup=False, soft_wrap=True)
