"""The fuzzer's references at the limits of 64-bit integers, against integers of Python."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile_core.testing.sketch import Block, Sketch
from tile_core.testing.strategies import moves

LIMITS = {"uint64": (0, 1, 2**63 - 1, 2**63, 2**64 - 1), "int64": (-(2**63), -1, 0, 1, 2**63 - 1)}
FOLDS = {
    "max": max, "min": min, "cummax": max, "sum": int.__add__, "cumsum": int.__add__, "prod": int.__mul__,
    "cumprod": int.__mul__, "bitand": int.__and__, "bitor": int.__or__, "bitxor": int.__xor__,
    "any": lambda a, b: int(bool(a or b)), "all": lambda a, b: int(bool(a and b)),
}  # fmt: skip


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("move", [moves.reduction, moves.scan])
@given(data=st.data())
def test_reductions_and_scans_of_64_bit_integers(move, dtype, data):
    column = data.draw(st.lists(st.sampled_from(LIMITS[dtype]), min_size=2, max_size=5))
    sketch, block = Sketch(1, 1, 1), Block()
    tile = sketch.alloc((len(column), 1), dtype, "shared", float("inf"))
    move(data.draw, sketch, block)
    (line,) = block.lines or ("",)
    if "dim=0" not in line:
        return  # rows of one element, or a kind without this type
    fold = FOLDS[line.split("(")[0].removeprefix("T.").removeprefix("reduce_")]
    env = {tile.name: np.array(column, dtype).reshape(-1, 1)}
    block.run(env)
    found = env[line.split(", ")[1]].reshape(-1).tolist()
    if "reverse=True" in line:
        column, found = column[::-1], found[::-1]
    states = [int(np.array(s & 2**64 - 1, np.uint64).astype(dtype)) for s in accumulate(column, fold)]
    assert found == (states if "reverse" in line else [_last(line, column, states)])


def _last(line, column, states):
    return int(all(column)) if "all" in line else int(any(column)) if "any" in line else states[-1]
