"""Corners, bounds and rows that kernels compute or read, and symbols instead of constants."""

from __future__ import annotations

import textwrap

import numpy as np
from hypothesis import strategies as st

from tile_core.testing.case import Unit, output, scalar, tensor
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import randoms, themed
from tile_core.testing.symbolic import CORNERS, EXTENTS, twin

#: Integers of a kernel: constants, scalars, block numbers, elements that are read in place, variables.
_INTEGERS = ("1", "bx * 3", "R[bx]", "R[bx] * 2 - 1", "R[bx] + bx", "v", "v + bx * 2", "at", "at - R[0]")
#: Bounds of loops, from low to high.
_LOWS = ("0", "-1", "-3", "v", "R[1]", "i - 2", "v - i", "at")
_HIGHS = ("R[bx]", "v", "3", "R[i]", "i + 1", "at + 2", "m - 1")


@st.composite
def corners(draw: Draw) -> Unit:
    """Draw tile updates, thread loops and rows at integers computed or read by the kernel."""
    made: Unit = draw(st.sampled_from((_updates, _updates, _bounds, _bounds, _tables)))(draw)
    return made


def _given(draw: Draw, count: int) -> dict[str, object]:
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    return {"R": rng.integers(-3, 9, max(count, 8)).astype(np.int32), "v": draw(st.integers(-4, 9))}


def _updates(draw: Draw) -> Unit:
    dtype = draw(st.sampled_from(("int32", "float32", "int64", "uint32", "float16")))
    rows, cols, blocks = draw(st.integers(1, 8)), draw(st.sampled_from((1, 4, 8, 16))), draw(st.integers(1, 3))
    height, width = rows + draw(st.integers(1, 12)), cols + draw(st.integers(0, 3))
    op = draw(st.sampled_from(("add", "max", "min")))
    at, across = draw(st.sampled_from(_INTEGERS)), draw(st.sampled_from(("0", "0", "v", "R[0]")))
    scope = draw(st.sampled_from(("shared", "fragment")))
    value = draw(st.sampled_from(("s", "s", "2")))
    corner = f"B[{at}, {across}]" if value == "s" else f"B[{at} : {at} + {rows}, {across} : {across} + {cols}]"
    body = textwrap.dedent(f"""\
        s = T.alloc_{scope}(({rows}, {cols}), "{dtype}")
        at = T.alloc_var("int32", init=v)
        at = R[bx]
        T.copy(A, s)
        T.atomic_{op}({corner}, {value})""")
    data = _given(draw, blocks)
    data |= {"A": randoms(draw, (rows, cols), dtype, 0, 5), "B": randoms(draw, (height, width), dtype, 0, 5)}
    params = [tensor("A", dtype, rows, cols), tensor("R", "int32", len(data["R"])), scalar("v")]  # type: ignore[arg-type]
    params.append(output("B", dtype, height, width))
    needs = frozenset({f"atomic:{op}:{dtype}"})
    threads = draw(st.sampled_from((1, 32, 64)))
    return themed("updates", draw, params, body, {"": data}, grid=str(blocks), threads=threads, needs=needs)


def _bounds(draw: Draw) -> Unit:
    low, high = draw(st.sampled_from(_LOWS)), draw(st.sampled_from(_HIGHS))
    step = draw(st.sampled_from(("", "", ", 2")))
    used = draw(st.sampled_from(("A[bx * 4 + i, j]", "A[q, j]", "A[i, q]", "A[i + q, j]", "q", "A[R[i], j] * q")))
    body = textwrap.dedent(f"""\
        at = T.alloc_var("int32", init=v)
        for i, j in T.Parallel(4, 5):
            n = T.alloc_var("int32", init=0)
            for q in T.serial({low}, {high}{step}):
                n = n + {used}
            B[bx * 4 + i, j] = n""")
    m = draw(st.integers(1, 9))
    data = {**_given(draw, 8), "m": m, "A": randoms(draw, (m, 7), "int32", -9, 9)}
    params = [tensor("A", "int32", "m", 7), tensor("R", "int32", 8), scalar("v"), output("B", "int32", 8, 5)]
    return themed("bounds", draw, params, body, {"": data}, grid="2", threads=32, symbols=("m",))


def _tables(draw: Draw) -> Unit:
    rows, cols = draw(st.integers(1, 9)), draw(st.sampled_from((4, 7, 8)))
    order = np.random.default_rng(draw(st.integers(0, 10**6))).permutation(np.arange(-2, 12))[:rows].astype(np.int32)
    body = f's = T.alloc_shared(({rows}, {cols}), "int32")\n' + draw(
        st.sampled_from(("T.gather(A, R, s)\nT.copy(s, B[v, 0])", "T.copy(A[v, 0], s)\nT.scatter(s, B, R)"))
    )
    m = draw(st.integers(1, 9))
    data = {"m": m, "v": draw(st.integers(-2, 5)), "A": randoms(draw, (m, cols), "int32"), "R": order}
    data["B"] = randoms(draw, (m, cols), "int32")
    params = [tensor("A", "int32", "m", cols), tensor("R", "int32", rows), scalar("v"), output("B", "int32", "m", cols)]
    return themed("tables", draw, params, body, {"": data}, threads=32, symbols=("m",))


#: As it is, or with extents and corners of these kinds.
_FORMS = (None, *((extents, corner) for extents in EXTENTS for corner in CORNERS))


def with_symbols(unit: Unit) -> st.SearchStrategy[Unit]:
    """Return a strategy of a program and, in half of the draws, its twins."""
    forms = st.one_of(st.none(), st.sampled_from(_FORMS))
    return forms.map(lambda form: unit if form is None else twin(unit, *form) or unit)
