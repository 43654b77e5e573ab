"""Blocks with data-dependent accesses: races are reported, other programs right on every target."""

from __future__ import annotations

import numpy as np

from tile_core.testing.case import Data, Unit, one, output, tensor
from tile_core.testing.data import Array

_N = 11
_APART = np.array([3, 7, 0, 10, 1, 9, 4, 2, 8, 5, 6], np.int32)
_MEETING = np.array([3, 7, 0, 10, 1, 9, 7, 2, 8, 5, 6], np.int32)
#: Name -> statements, and whether they race where two blocks have one number.
_BODIES = {
    "store": ("B[R[bx]] = A[bx]", True),
    "update": ("B[R[bx]] += A[bx]", True),
    "tile": ("s = T.alloc_shared((1,), 'float32')\ns[0] = A[bx]\nT.copy(s, B[R[bx]])", True),
    "read": ("B[bx] = A[bx] + 0 * B[R[bx]]", True),
    "row": ("r = T.alloc_shared((1,), 'int32')\nr[0] = R[bx]\nT.scatter(A[bx:bx + 1], B, r)", True),
    "atomic": ("T.atomic_add(B[R[bx]], A[bx])", False),
    "constant": ("B[R[bx]] = 5", False),
    "fill": ("T.fill(B[R[bx]:R[bx] + 1], 5)", False),
}


def units() -> list[Unit]:
    """Return the units of this table."""
    found = []
    for name, (body, racing) in _BODIES.items():
        for numbers in (_APART, _MEETING):
            meets = numbers is _MEETING
            if name == "read":  # reading another block's element races whether two meet or not
                numbers = numbers if meets else np.arange(_N, dtype=np.int32)
            found.append(_unit(name, body, numbers, meets, racing and meets))
    return found


def _unit(name: str, body: str, numbers: Array, meets: bool, races: bool) -> Unit:
    def data(rng: np.random.Generator) -> Data:
        return {"A": np.arange(1, _N + 1, dtype=np.float32), "R": numbers.copy(), "B": np.zeros(_N, np.float32)}

    return one(
        "data-races", f"{name}-{'meeting' if meets else 'apart'}",
        [tensor("A", "float32", _N), tensor("R", "int32", _N), output("B", "float32", _N)], body, None, {"": data},
        grid=str(_N), threads=32, reported=("K445",) if races else (),
        needs=frozenset({"atomic:add:float32"}) if name == "atomic" else frozenset(),
    )  # fmt: skip
