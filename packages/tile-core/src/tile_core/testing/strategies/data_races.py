"""Programs whose blocks may race on data-dependent elements.

The reference must report a race; programs without one must be right on every target.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tile_core.compat.types import Array
from tile_core.testing.case import Data, Launch, Part, Unit, output, tensor
from tile_core.testing.data import stored
from tile_core.testing.strategies.draws import Draw

#: Statements of a block, whether blocks that have one number race, and whether blocks do that read another's element.
_FORMS: tuple[tuple[str, bool, str], ...] = (
    ("B[R[bx]] = A[bx]", True, "store"),
    ("r = R[bx]\nB[r] = A[bx]", True, "store"),
    ("v = T.alloc_var('int32')\nv = R[bx]\nif A[bx] > -100:\n    B[v] = A[bx]", True, "store"),
    ("T.copy(A[bx:bx + 1], B[R[bx]:R[bx] + 1])", True, "store"),
    ("s = T.alloc_shared((1,), '{dtype}')\ns[0] = A[bx]\nT.copy(s, B[R[bx]])", True, "store"),
    ("for i in T.Parallel(1):\n    B[R[bx] + i] = A[bx]", True, "store"),
    ("B[R[bx]] += A[bx]", True, "add"),
    ("T.atomic_add(B[R[bx]], A[bx])", False, "add"),
    ("B[R[bx]] = 3", False, "constant"),
    ("T.fill(B[R[bx]:R[bx] + 1], 3)", False, "constant"),
)


@st.composite
def data_races(draw: Draw) -> Unit:
    """Draw a program of blocks with numbers that are data, all different or not."""
    n = draw(st.sampled_from((2, 3, 5, 8, 13)))
    dtype = draw(st.sampled_from(("float32", "int32", "float16", "int8", "float64", "bfloat16")))
    body, racing, what = draw(
        st.sampled_from([f for f in _FORMS if "atomic" not in f[0] or dtype in ("float32", "int32")])
    )
    numbers = np.array(draw(st.permutations(range(n))), np.int32)
    if draw(st.booleans()):
        one, other = draw(st.permutations(range(n)))[:2]
        numbers[one] = numbers[other]
    a = np.arange(1, n + 1)  # of no two blocks the same
    given = {"A": stored(a, dtype), "R": numbers, "B": stored(np.zeros(n), dtype)}
    meets = len(set(numbers.tolist())) < n
    part = Part((), body.format(dtype=dtype), lambda d: {"B": _wanted(what, a, numbers)})
    return Unit(
        "fuzz",
        f"data-races-{draw(st.integers(0, 10**6))}",
        (tensor("A", dtype, n), tensor("R", "int32", n), output("B", dtype, n)),
        parts={"": part},
        launches={"": Launch(lambda rng: _fresh(given))},
        grid=str(n),
        threads=draw(st.sampled_from((1, 32, 64))),
        needs=frozenset({f"atomic:add:{dtype}"}) if "atomic" in body else frozenset(),
        reported=("K445",) if racing and meets else (),
    )


def _fresh(given: Data) -> Data:
    return {name: x.copy() for name, x in given.items()}


def _wanted(what: str, a: Array, numbers: Array) -> Array:
    b = np.zeros(len(a))
    if what == "add":
        np.add.at(b, numbers, a)
    else:
        b[numbers] = 3 if what == "constant" else a
    return b
