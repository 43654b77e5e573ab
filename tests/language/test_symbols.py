"""Every op with runtime sizes and corners: the suite's kernels with symbols."""

from __future__ import annotations

import os
import random
import zlib
from collections import defaultdict

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.testing.case import Unit
from tile_core.testing.run import Session
from tile_core.testing.symbolic import CORNERS, EXTENTS, twin
from tile_core.testing.tables import units

TARGETS = ("cpu", "cuda:sm_80", "cuda:sm_90a", "metal", "rocm:gfx942")
#: Ops whose kernels have no tensor of constant size, or are whole functions.
WITHOUT = frozenset({"kernels", "out_idx", "launches"})


def by_op() -> dict[str, list[Unit]]:
    """The legal units of each op."""
    found: dict[str, list[Unit]] = defaultdict(list)
    for unit in units():
        if not unit.illegal:
            found[unit.op].append(unit)
    return dict(found)


def drawn(number: int) -> tuple[str, Unit]:
    """Draw a target and a twin, uniformly over ops, different in each round of sweeps."""
    rng = random.Random(zlib.crc32(f"{os.environ['SWEEP_TURN']} {number}".encode()))
    every = by_op()
    while True:
        unit = rng.choice(every[rng.choice(sorted(every))])
        found = twin(unit, rng.choice(EXTENTS), rng.choice(sorted(CORNERS)))
        if found is not None:
            return rng.choice(TARGETS), found


@pytest.mark.sweep(4)
@pytest.mark.parametrize("number", range(200))
def test_kernels_with_symbols_are_right_or_refused(number: int) -> None:
    target, unit = drawn(number)
    session = Session(target, None if target == "cpu" else "emulator", seed=number)
    cases = unit.cases()
    session.select(cases)
    wrong = [outcome.detail for case in cases if (outcome := session.run(case)).kind == "wrong"]
    assert not wrong, f"on {target}:\n{wrong[0]}"


def test_every_op_has_kernels_with_symbols() -> None:
    for op, found in by_op().items():
        twins = (twin(unit, "mixed", "read") for unit in found)
        texts = (t.text() for t in twins if t is not None)
        assert op in WITHOUT or any('"int64")' in text and "zeros_[0]" in text for text in texts), op


def scattered(rows, corner, op):
    """Return a program whose two blocks add a tile, or take its maxima, at one corner each."""
    update = getattr(T, op)

    @T.prim_func
    def main(S: T.Tensor((8, 16), "float32"), first: T.Tensor((2,), "int32"), A: T.Tensor((rows, 16), "float32")):
        with T.Kernel(2, threads=64) as b:
            s = T.alloc_fragment((8, 16), "float32")
            T.copy(S, s)
            if corner == "read":
                update(A[first[b], 0], s)
            elif corner == "read and computed":
                update(A[first[b] * 2 - 9, 0], s)
            elif corner == "variable":
                row = T.alloc_var("int32", init=first[b])
                update(A[row, 0], s)
            elif corner == "constant":
                update(A[1, 0], s)
            else:
                update(A[b * 8, 0], s)

    return main


ROWS = {"constant": 40, "int32": T.dynamic("m"), "int64": T.dynamic("m", "int64")}
CORNER = {"read": (3, 37), "read and computed": (-3, 9), "variable": (3, 37), "constant": (1, 1), "block": (0, 8)}


def check_scattered(rows: str, corner: str, op: str, target: str) -> None:
    """Compare with NumPy: rows outside of the tensor are dropped."""
    more = {} if target == "cpu" else {"runtime": "emulator"}
    kernel = tile.compile(scattered(ROWS[rows], corner, op), target, **more)
    rng = np.random.default_rng(3)
    s = rng.integers(1, 9, (8, 16)).astype("float32")
    first = np.array([3, 37 if corner != "read and computed" else 9], "int32")
    a, wanted = np.full((2, 40, 16), 2, "float32")
    kernel(s, first, a)
    for row in CORNER[corner]:
        lines = [(r, r - row) for r in range(max(row, 0), min(row + 8, 40))]
        for r, line in lines:
            wanted[r] = wanted[r] + s[line] if op == "atomic_add" else np.maximum(wanted[r], s[line])
    np.testing.assert_array_equal(a, wanted)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("op", ["atomic_add", "atomic_max"])
@pytest.mark.parametrize("corner", CORNER)
@pytest.mark.parametrize("rows", ROWS)
def test_tile_atomics_at_any_corner(rows: str, corner: str, op: str, target: str) -> None:
    check_scattered(rows, corner, op, target)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("target", TARGETS)
def test_tile_atomics_at_a_corner_that_is_read(target: str) -> None:
    check_scattered("int64", "read and computed", "atomic_add", target)
