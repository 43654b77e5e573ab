"""Packing in front of a grid: where several blocks pack the same, and only where no block writes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.cpu import target as cpu_target
from tile_core.cpu.dots import products_of
from tile_core.cpu.isa import detect
from tile_core.cpu.runtime.host import HostAdapter
from tile_core.ir.visit import collect, role

#: With and without tile instructions.
TARGETS = ["cpu:sapphirerapids", "cpu:icelake-server"]
M, N, K, BLOCK = 64, 96, 128, 32
HERE = products_of(cpu_target._isa(detect().mcpu), "int8", "int8", "int32") is not None


def program(*, writes: bool = False, where: str = "all", columns: int = N) -> Any:
    """Return a product of int8 tensors.

    Parameters
    ----------
    writes
        Whether blocks write a column of A that no product reads.
    where
        The blocks that multiply: ``"all"``, those of the first ``"columns"`` or ``"rows"``, those ``"below"``.
    columns
        Columns of B, which blocks may reach beyond.
    """

    @T.prim_func
    def main(A: T.Tensor((M, K + 1), "int8"), B: T.Tensor((K, columns), "int8"), C: T.Tensor((M, columns), "int32")):
        with T.Kernel(T.ceildiv(columns, BLOCK), M // BLOCK, threads=128) as (bx, by):
            a = T.alloc_shared((BLOCK, K), "int8")
            b = T.alloc_shared((K, BLOCK), "int8")
            c = T.alloc_fragment((BLOCK, BLOCK), "int32")
            T.clear(c)
            if where == "all":
                T.copy(A[by * BLOCK, 0], a)
                T.copy(B[0, bx * BLOCK], b)
                T.gemm(a, b, c)
            else:
                chosen = {"columns": bx < 2, "rows": by < 1, "below": by <= bx}[where]
                if chosen:
                    T.copy(A[by * BLOCK, 0], a)
                    T.copy(B[0, bx * BLOCK], b)
                    T.gemm(a, b, c)
            T.copy(c, C[by * BLOCK, bx * BLOCK])
            if writes and bx == 0:
                for i in T.Parallel(BLOCK):
                    A[by * BLOCK + i, K] = 1

    return main


def grids(made: Any, target: str, patch: pytest.MonkeyPatch) -> int:
    """Return the number of launches on all cores in a program's code."""
    found: list[Any] = []
    patch.setattr(HostAdapter, "load", lambda self, artefact: found.append(artefact) or (lambda *args: None))
    tile.compile(made, target=target)
    return sum(role(loop) == "grid" for loop in collect(found[0].body, tirx.For))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({}, 3),
        ({"where": "columns"}, 3),
        ({"where": "rows"}, 3),
        ({"where": "below"}, 1),
        ({"columns": BLOCK}, 2),
    ],
)
def test_packing_in_front_of_the_grid(
    target: str, options: dict[str, Any], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One launch for each shared operand: A by blocks of several columns, B by those of several rows."""
    assert grids(program(**options), target, monkeypatch) == count


@pytest.mark.parametrize("target", TARGETS)
def test_tensors_that_blocks_write_are_packed_by_each_block(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert grids(program(writes=True), target, monkeypatch) == 2


@pytest.mark.skipif(not HERE, reason="no such instructions here")
@pytest.mark.parametrize("where", ["all", "columns", "rows", "below"])
@pytest.mark.parametrize("columns", [N, 73])
def test_results(where: str, columns: int) -> None:
    rng = np.random.default_rng()
    a, b = (rng.integers(-128, 128, shape, dtype="int8") for shape in ((M, K + 1), (K, columns)))
    c = np.full((M, columns), 77, "int32")
    tile.compile(program(where=where, columns=columns), target="cpu")(a, b, c)
    expected = a[:, :K].astype("int32") @ b.astype("int32")
    for by in range(M // BLOCK):
        for bx in range(-(-columns // BLOCK)):
            if not {"all": True, "columns": bx < 2, "rows": by < 1, "below": by <= bx}[where]:
                expected[by * BLOCK : (by + 1) * BLOCK, bx * BLOCK : (bx + 1) * BLOCK] = 0
    np.testing.assert_array_equal(c, expected)
