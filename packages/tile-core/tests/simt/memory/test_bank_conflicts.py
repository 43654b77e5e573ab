"""Tiles that are read across their rows: which swizzle they get, counted by hand, and which keep the plain order."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core.language as T
from tile_core.simt.memory.bank_conflicts import spread_over_banks
from tile_core.target import Capabilities

from ..whole import planned


def transposed(rows, columns, dtype, threads=64, view=False):
    @T.prim_func
    def main(X: T.Tensor((rows, columns), dtype), Y: T.Tensor((columns, rows), dtype)):
        with T.Kernel(1, threads=threads):
            x = T.alloc_shared((rows, columns), dtype)
            if view:
                flat = T.view(x, (rows * columns,), dtype)
                flat[0] = T.cast(0, dtype)
            T.copy(X, x)
            for i, j in T.Parallel(columns, rows):
                Y[i, j] = x[j, i]

    return main


def found(program, banks=32):
    """Return the layouts by the name of their buffer."""
    plan = planned(program, last="vectorize")
    rings = {str(b.name) for b in plan.pipeline.versions}
    layouts = spread_over_banks(plan.body, plan.block, plan.placement.placement.layouts, banks, rings)
    return {str(b.name): layout for b, layout in layouts.items()}


def wavefronts(addresses, size, banks=32):
    """Return how often the busiest bank is asked by threads that access ``size`` bytes at these addresses."""
    words = {a // 4 + i for a in addresses for i in range(-(-size // 4))}
    return max(sum(1 for w in words if w % banks == bank) for bank in range(banks))


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(("rows", "columns", "dtype"), [
    (64, 64, "float16"), (64, 64, "float32"), (32, 32, "float32"), (128, 64, "float16"), (64, 128, "float16"),
    (64, 64, "int8"),
])  # fmt: skip
def test_columns_of_a_tile(rows, columns, dtype):
    layout = found(transposed(rows, columns, dtype))["x"]
    size = np.dtype(dtype).itemsize
    per = 16 // size
    each = rows // per  # threads along a column of the result, each with 16 bytes of it
    read = [(j * per, i) for i in range(max(32 // each, 1)) for j in range(min(each, 32))]  # by the first warp
    plain = wavefronts([(j * columns + i) * size for j, i in read], size)
    swizzled = wavefronts([layout(j, i) * size for j, i in read], size)
    assert swizzled * 2 <= plain
    assert sorted(layout.tables()["memory"]) == list(range(rows * columns))
    for row in range(rows):  # whole chunks stay together
        for at in range(0, columns, per):
            assert [layout(row, at + e) - layout(row, at) for e in range(per)] == list(range(per))
    assert "of the turns" in layout.note


def test_what_keeps_its_order():
    assert not found(transposed(64, 64, "float16", view=True))
    assert not found(transposed(33, 17, "float32"))  # rows of 17 words are spread as they are
    assert not found(transposed(5, 7, "float16"))

    @T.prim_func
    def by_rows(X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=64):
            x = T.alloc_shared((64, 64), "float32")
            T.copy(X, x)
            for i, j in T.Parallel(64, 64):
                Y[i, j] = x[63 - i, j]

    assert not found(by_rows)


def test_no_target_without_banks():
    plan = planned(transposed(64, 64, "float16"), last="layouts")
    assert not plan.placement.placement.layouts
    plan = planned(transposed(64, 64, "float16"), last="layouts", shared_banks=32)
    assert plan.placement.placement.layouts
    with pytest.raises(Exception, match="shared_banks"):
        Capabilities(shared_banks=24)


@pytest.mark.parametrize("rows", [32, 33, 48, 63])
def test_slots_keep_their_elements(rows):
    """A line of 128 bytes of two rows must not belong to two slots."""

    @T.prim_func
    def main(X: T.Tensor((rows, 192), "int8"), Y: T.Tensor((rows,), "float32")):
        with T.Kernel(1, threads=64):
            x = T.alloc_shared((rows, 64), "int8")
            y = T.alloc_fragment((rows,), "float32")
            T.clear(y)
            for o in T.Pipelined(3, num_stages=2):
                T.copy(X[0, o * 64], x)
                for i in T.Parallel(rows):
                    for j in T.serial(64):
                        y[i] += T.cast(x[i, j], "float32")
            T.copy(y, Y)

    layout = found(main).get("x_stages")
    assert (layout is None) == (rows % 16 != 0)  # no other slot is whole lines of a swizzle
    if layout is None:
        return
    at = np.array([[layout(slot, *i) for i in np.ndindex(rows, 64)] for slot in range(2)]).reshape(2, -1)
    assert at[0].max() < rows * 64 <= at[1].min()


@pytest.mark.parametrize(("rows", "slots"), [(32, 2), (35, 2), (9, 4), (48, 4)])
def test_slots_of_lines_keep_their_elements(rows, slots):
    """A tile of one dimension has slots, too: half a line of 128 bytes must not belong to the next."""

    @T.prim_func
    def main(X: T.Tensor((7, rows * 16), "int32"), Y: T.Tensor((rows,), "float32")):
        with T.Kernel(1, threads=64):
            x = T.alloc_shared((rows * 16,), "int32")
            y = T.alloc_fragment((rows,), "float32")
            T.clear(y)
            for o in T.Pipelined(7, num_stages=slots):
                T.copy(X[o, :], x)
                for i in T.Parallel(rows):
                    for j in T.serial(16):
                        y[i] += T.cast(x[i * 16 + j], "float32")
            T.copy(y, Y)

    layout = found(main).get("x_stages")
    assert (layout is None) == (rows % 16 != 0)
    if layout is not None:
        at = np.array([[layout(slot, i) for i in range(rows * 16)] for slot in range(slots)])
        assert at[0].max() < rows * 16 <= at[1].min()
