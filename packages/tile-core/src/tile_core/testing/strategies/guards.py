"""Loops with the program's own conditions: bounds, masks, branches, choices, over several element types."""

from __future__ import annotations

import textwrap

import numpy as np
from hypothesis import strategies as st

from tile_core.testing.case import Unit, output, scalar, tensor
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import randoms, themed

#: Widths of a tensor: multiples of vector widths, and odd ones.
_WIDTHS = (8, 16, 24, 32, 40, 48, 64, 72, 1, 5, 13, 31, 36, 61, 63, 65, 66)
_TYPES = ("float32", "float16", "bfloat16", "int8", "int32", "uint8", "int16", "float64")
#: Conditions that are monotone in the column, whose bounds are extents, constants, arguments or elements.
_BOUNDS = (
    "c < n", "c < n", "r < m and c < n", "c < {k}", "c < v", "c <= {k}", "{k} > c", "not c >= n", "c < L[r]",
    "c >= {low} and c < {k}", "c < n and r < v", "c <= r + {low}", "c < {k} or c < v", "2 * c + 1 < n",
    "c - {low} >= 0",
)  # fmt: skip
#: Other conditions.
_MASKS = (
    "M[r, c] > 0", "c < n and M[r, c] != 0", "j % 3 != 1", "c == {k}", "(c // 8) % 2 == 0", "M[r, c] > 0 and c < {k}",
    "(i + j) % 4 < 2 or c < {k}", "A[r, c] > 0", "L[r] > {low}",
)  # fmt: skip
_FORMS = (
    """
    if {g}:
        B[r, c] = {x}
    """,
    """
    if {g}:
        t = {x}
        B[r, c] = t + t
    """,
    """
    if {g}:
        B[r, c] = {x}
    else:
        B[r, c] = {y}
    """,
    "B[r, c] = T.if_then_else({g}, {x}, {y})",
    "B[r, c] = T.Select({g}, {x}, {y})",
    """
    if {g}:
        B[r, c] = B[r, c] + {x}
    """,
    """
    if {g}:
        if {h}:
            B[r, c] = {x}
        C[r, c] = T.cast(c, C.dtype)
    """,
    """
    if {g}:
        B[r, c] = {x}
    if {h}:
        C[r, c] = T.cast(r, C.dtype)
    """,
    # One element by two names that are equal at the launch only: the order of the stores decides.
    """
    B[r, c] = {y}
    if {g}:
        B[r + zero, c] = {x}
        B[r, c] = T.cast(1, B.dtype)
    """,
    """
    B[r + zero, c] = T.cast(2, B.dtype)
    B[r, c] = {y}
    if {g}:
        B[r + zero, c] = T.cast(1, B.dtype)
    """,
    """
    B[r, c] = {y}
    C[r, c] = T.if_then_else({g}, T.cast({x}, C.dtype), T.if_then_else({h}, T.cast({y}, C.dtype), T.cast(1, C.dtype)))
    """,
)  # fmt: skip


@st.composite
def guards(draw: Draw) -> Unit:
    """Draw a loop over tiles whose rows and columns are guarded by conditions."""
    rows, cols = draw(st.sampled_from((1, 2, 4))), draw(st.sampled_from((16, 32, 64, 64, 48)))
    m, n = draw(st.integers(1, 6)), draw(st.sampled_from(_WIDTHS))
    source, target, other = (draw(st.sampled_from(_TYPES)) for _ in range(3))
    mask, group = draw(st.sampled_from(("int8", "int32", "float16"))), draw(st.sampled_from((1, 4, 8, 64)))
    symbolic = draw(st.booleans())
    body = _body(draw, rows, cols, group, target)
    for name, value in () if symbolic else (("m", m), ("n", n)):
        body = textwrap.dedent(f"{name} = {value}\n") + body
    shape: tuple[int | str, int | str] = ("m", "n") if symbolic else (m, n)
    params = [
        tensor("A", source, m, 2 * n), tensor("M", mask, *shape), tensor("S", target, m, -(-n // group)),
        tensor("L", "int32", m), scalar("v"), scalar("zero"), output("B", target, *shape), output("C", other, *shape),
    ]  # fmt: skip
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    most = draw(st.sampled_from((0.5, 0.9, 1.1)))  # the share of elements whose mask is set
    data = {
        "A": randoms(draw, (m, 2 * n), source, 0, 4), "S": randoms(draw, (m, -(-n // group)), target, 0, 3),
        "M": (rng.random((m, n)) < most).astype(mask), "L": rng.integers(-2, n + 3, m).astype(np.int32),
        "v": draw(st.integers(-2, n + 3)), "zero": 0, "B": randoms(draw, (m, n), target, 0, 4),
        "C": randoms(draw, (m, n), other, 0, 4), **({"m": m, "n": n} if symbolic else {}),
    }  # fmt: skip
    grid = f"{-(-n // cols)}, {-(-m // rows)}"
    threads = draw(st.sampled_from((1, 32, 64)))
    symbols = ("m", "n") if symbolic else ()
    return themed(
        "guards", draw, params, body, {"": data}, grid=grid, axes="(bx, by)", threads=threads, symbols=symbols
    )


def _body(draw: Draw, rows: int, cols: int, group: int, target: str) -> str:
    def condition() -> str:
        among = draw(st.sampled_from((_BOUNDS, _BOUNDS, _MASKS)))
        form = draw(st.sampled_from(among))
        return str(form).format(
            k=draw(st.sampled_from((8, 16, 24, 32, 17, 30, 61))), low=draw(st.sampled_from((0, 3, 8)))
        )

    a = draw(st.sampled_from(("A[r, c]", "A[r, n + c]", "A[r, c]", "A[r, 2 * c]", "A[r, 2 * n - 1 - c]")))
    x = f"T.cast({a}, {target!r})" + draw(st.sampled_from(("", f" * S[r, c // {group}]", " + B[r, c]")))
    y = draw(st.sampled_from((f"T.cast(3, {target!r})", "B[r, c]", f"T.cast(A[r, c], {target!r})")))
    form = textwrap.dedent(draw(st.sampled_from(_FORMS))).strip()
    inner = form.format(g=condition(), h=condition(), x=x, y=y)
    lines = [f"for i, j in T.Parallel({rows}, {cols}):", f"    r, c = by * {rows} + i, bx * {cols} + j"]
    return "\n".join([*lines, textwrap.indent(inner, "    ")])
