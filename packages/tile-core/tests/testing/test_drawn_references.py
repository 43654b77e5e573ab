"""The reference in plain Python at the limits of 64-bit integers, against integers of Python."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile_core.testing.case import output, tensor
from tile_core.testing.plain import run

LIMITS = {"uint64": (0, 1, 2**63 - 1, 2**63, 2**64 - 1), "int64": (-(2**63), -1, 0, 1, 2**63 - 1)}
FOLDS = {
    "max": max, "min": min, "sum": int.__add__, "prod": int.__mul__, "bitand": int.__and__, "bitor": int.__or__,
    "bitxor": int.__xor__, "any": lambda a, b: int(bool(a or b)), "all": lambda a, b: int(bool(a and b)),
}  # fmt: skip
KERNEL = """
@T.prim_func
def main(A: T.Tensor((N, 1), "int64"), B: T.Tensor((N, 1), "int64")):
    with T.Kernel(1) as bx:
        T.CALL
"""


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("name", [*(f"reduce_{kind}" for kind in FOLDS), "cumsum", "cummax", "cumprod"])
@given(data=st.data())
@pytest.mark.sweep(0.25)
def test_reductions_and_scans_of_64_bit_integers(name, dtype, data):
    column = data.draw(st.lists(st.sampled_from(LIMITS[dtype]), min_size=2, max_size=5))
    kind = name.removeprefix("reduce_").removeprefix("cum")
    scan, reverse = name.startswith("cum"), data.draw(st.booleans())
    if scan and reverse:
        call = f"{name}(A, B, dim=0, reverse=True)"
    else:
        call = f"{name}(A, B{'' if scan else '[0, :]'}, dim=0)"
    params = [tensor("A", dtype, len(column), 1), output("B", dtype, len(column), 1)]
    found = run(KERNEL.replace("CALL", call), params, {"A": np.array(column, dtype).reshape(-1, 1)})["B"].reshape(-1)
    found = found.tolist()
    if scan and reverse:
        column, found = column[::-1], found[::-1]
    states = [int(np.array(s & 2**64 - 1, np.uint64).astype(dtype)) for s in accumulate(column, FOLDS[kind])]
    if scan:
        assert found == states
    else:
        assert found[0] == {"all": int(all(column)), "any": int(any(column))}.get(kind, states[-1])
