"""Metadata with rows along K in shared memory: no bank conflicts among four rows."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
from tile_cuda.ops.boxes import LINE, Panel

from .test_gemm_wgmma import TARGET
from .test_metadata_prefetch import F16, check, program

pytestmark = pytest.mark.sweep(6)

ALWAYS = {"wgmma": "always", "tma": "always"}


@pytest.mark.parametrize(("rows", "columns", "swizzle"), [
    (4, 128, 128), (4, 256, 128), (8, 64, 128), (4, 64, 64), (12, 128, 128), (4, 192, 128), (16, 256, 128),
])  # fmt: skip
def test_a_box_begins_at_its_offset(rows, columns, swizzle):
    """Return the element at the first byte of a box that begins within the pattern."""
    panel = Panel((rows, columns), (rows, columns), 2, swizzle, across=True)
    if rows * columns * 2 % panel.align:
        assert not panel.is_legal
        return
    assert panel.is_legal
    memory = np.asarray(panel.layout.tables()["memory"]).reshape(rows, columns)
    size = panel.box[0] * panel.box[1]
    begins = [int(memory[tuple(panel.indices(corner))]) for corner in panel.corners()]
    assert begins == [n * size for n in range(len(begins))]
    assert all(2 * at % LINE == 0 for at in begins)
    for corner, at in zip(panel.corners(), begins, strict=True):
        part = memory[corner[0] : corner[0] + panel.box[0], corner[1] : corner[1] + panel.box[1]]
        assert sorted(part.reshape(-1)) == list(range(at, at + size))


@pytest.mark.parametrize(("m", "k"), [(128, 64), (256, 64), (64, 64), (128, 128), (64, 128)])
def test_lanes_that_read_at_once_share_no_bank(m, k):
    """Read row ``t``, column ``g`` by lane ``4 g + t``, without bank conflicts."""
    kernel = tile.compile(program(m, 64, 8 * k, k, tiles=(m, 64), threads=m if m > 128 else 128, turned=True), TARGET,
                          options=ALWAYS)  # fmt: skip
    swizzle = 128 if m * k // 8 % 1024 == 0 else 64
    assert "T.copy(E[at, by * bm], E_s)" in str(kernel.explain())
    assert f"rows of {swizzle} bytes" in str(kernel.explain())
    layout = Panel((k // 16, m), (k // 16, m), 2, swizzle, across=True).layout
    memory = np.asarray(layout.tables()["memory"]).reshape(k // 16, m) * 2
    for first in range(0, m, 8):
        for block in range(0, k // 16, 4):
            words = {int(memory[block + t, first + g]) // 4 for g in range(8) for t in range(4)}
            assert len({word % 32 for word in words}) == len(words)


@pytest.mark.parametrize("persistent", ["always", "never"])
@pytest.mark.parametrize(("m", "n", "k", "tiles", "threads", "bk", "types"), [
    (128, 64, 640, (128, 64), 256, 64, F16), (200, 72, 320, (128, 64), 256, 64, F16),
    (64, 64, 192, (64, 64), 128, 64, ("bfloat16", "float32")), (264, 64, 384, (256, 64), 256, 128, ("int8", "int32")),
    (128, 64, 512, (64, 64), 128, 256, ("int8", "int32")),
])  # fmt: skip
def test_numbers(m, n, k, tiles, threads, bk, types, persistent):
    made = program(m, n, k, bk, types, tiles=tiles, threads=threads, stages=3, turned=True)
    kernel = tile.compile(made, TARGET, runtime="emulator", options={**ALWAYS, "persistent": persistent})
    check(kernel, m, n, k, types, turned=True)
