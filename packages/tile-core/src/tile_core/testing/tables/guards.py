"""Data-parallel loops under the program's own conditions: bounds, branches, masks, choices, several element types."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from tile_core.testing.case import EXACT, Data, Unit, one, output, scalar, tensor
from tile_core.testing.data import Array, numbers, values
from tile_core.testing.source import lines

#: Rows and columns: a multiple of vector widths, a multiple of 2, an odd one.
SIZES = ((5, 1000), (2, 1002), (3, 65))
#: A bound by name, and which of ``n`` columns it admits in row ``r`` (with the argument ``v`` and row lengths ``L``).
BOUNDS: dict[str, tuple[str, Callable[[Data, Array, Array], Array]]] = {
    "extent": ("r < m and c < n", lambda d, r, c: c >= 0),
    "constant": ("c < 48", lambda d, r, c: c < 48),
    "odd": ("c < 37", lambda d, r, c: c < 37),
    "argument": ("c < v", lambda d, r, c: c < d["v"]),
    "lengths": ("c < L[r]", lambda d, r, c: c < d["L"][r]),
    "window": ("c >= v - 40 and c < v", lambda d, r, c: (c >= d["v"] - 40) & (c < d["v"])),
    "triangle": ("c <= r + 8", lambda d, r, c: c <= r + 8),
    "mask": ("M[r, c] != 0", lambda d, r, c: d["M"][r, c] != 0),
    "mask-in-bounds": ("c < v and M[r, c] != 0", lambda d, r, c: (c < d["v"]) & (d["M"][r, c] != 0)),
    "groups": ("c // 8 % 2 == 0", lambda d, r, c: c // 8 % 2 == 0),
}
FORMS = {
    "if": """
        if {g}:
            t = T.cast(X[r, c], "float32")
            Y[r, c] = t * 2 + 1
    """,
    "else": """
        if {g}:
            Y[r, c] = T.cast(X[r, c], "float32") * 2 + 1
        else:
            Y[r, c] = -1
    """,
    "choice": """
        Y[r, c] = T.if_then_else({g}, T.cast(X[r, c], "float32") * 2 + 1, -1)
    """,
    "rest": """
        Y[r, c] = T.if_then_else({g}, -1, T.cast(X[r, c], "float32") * 2 + 1)
    """,
    "in-place": """
        if {g}:
            Y[r, c] = Y[r, c] * 0 + T.cast(X[r, c], "float32") * 2 + 1
    """,
}
#: Element types of the input and of the output.
PAIRS = (("float32", "float32"), ("float16", "float32"), ("int8", "float16"), ("bfloat16", "bfloat16"))


def units() -> list[Unit]:
    """Return the units of this table."""
    found = []
    for number, (bound, form) in enumerate(itertools.product(BOUNDS, FORMS)):
        source, target = PAIRS[number % len(PAIRS)]
        found.append(_unit(bound, form, source, target, (128, 32, 96)[number % 3]))
    return found


def _unit(bound: str, form: str, source: str, target: str, threads: int) -> Unit:
    condition, admits = BOUNDS[bound]
    body = "\n".join(
        ["for i, j in T.Parallel(2, 512):", "    r, c = by * 2 + i, bx * 512 + j"]
        + ["    " + line for line in lines(FORMS[form].format(g=condition)).splitlines()]
    )

    def data(rng: np.random.Generator, m: int, n: int) -> Data:
        return {
            "m": m, "n": n, "v": int(rng.integers(0, n + 2)), "X": numbers(rng, (m, n), source, -4, 4),
            "M": (rng.random((m, n)) < 0.95).astype(np.uint8), "L": rng.integers(-1, n + 2, m).astype(np.int32),
            "Y": numbers(rng, (m, n), target, -4, 4),
        }  # fmt: skip

    def want(d: Data) -> Array:
        x, y = values(d["X"], source), values(d["Y"], target)
        met = admits(d, *np.indices(x.shape))
        if form == "rest":
            met = ~met
        return np.where(met, x * 2 + 1, y if form in ("if", "in-place") else -1)

    params = [
        tensor("X", source, "m", "n"), tensor("M", "uint8", "m", "n"), tensor("L", "int32", "m"), scalar("v"),
        output("Y", target, "m", "n"),
    ]  # fmt: skip
    launches = {f"{m}x{n}": lambda rng, m=m, n=n: data(rng, m, n) for m, n in SIZES}  # type: ignore[misc]
    grid: dict[str, Any] = {"grid": "T.ceildiv(n, 512), T.ceildiv(m, 2)", "axes": "(bx, by)", "symbols": ("m", "n")}
    return one("parallel", f"guarded-{bound}-{form}", params, body, want, launches, EXACT, threads=threads, **grid)
