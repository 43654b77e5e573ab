"""Loops over adjacent 16-bit floats, of which targets may compute two by one instruction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tile_core.testing.case import Data, Unit, one, output, tensor
from tile_core.testing.data import Array, anything, stored, values

#: Operations of float32 whose results are rounded once; no level of numerics fuses any of them.
FORMS: dict[str, Callable[[Array, Array], Any]] = {
    "{x} + {y}": np.add,
    "{x} - {y}": np.subtract,
    "{x} * {y}": np.multiply,
    "-{x}": lambda x, y: -x,
    "T.abs({y})": lambda x, y: np.abs(y),
    "T.if_then_else({x} < {y}, {x}, -{y})": lambda x, y: np.where(x < y, x, -y),
    "T.Select({x} != {y}, {y}, {x})": lambda x, y: np.where(x != y, y, x),
    "T.if_then_else(i % 3 == 1, {x} - {y}, {y})": lambda x, y: np.where(np.arange(x.size) % 3 == 1, x - y, y),
    "T.cast(T.cast({x}, 'float32') * 1.5, '{t}')": lambda x, y: x * np.float32(1.5),
}


def units() -> list[Unit]:
    """Return the units of this table."""
    cases = ((83, "global"), (256, "global"), (256, "fragment"))  # 83 elements have no vectors
    return [_unit(n, dtype, scope) for dtype in ("float16", "bfloat16") for n, scope in cases]


def _unit(n: int, dtype: str, scope: str) -> Unit:
    x = "x[i]" if scope == "fragment" else "X[i]"
    body = [f"x = T.alloc_fragment(({n},), '{dtype}')", "T.copy(X, x)"] if scope == "fragment" else []
    body.append(f"for i in T.Parallel({n}):")
    body += [f"    Out[{k}, i] = {form.format(x=x, y='Y[i]', t=dtype)}" for k, form in enumerate(FORMS)]

    def want(d: Data) -> Array:
        pair = [values(d[name], dtype) for name in "XY"]
        with np.errstate(all="ignore"):
            return np.stack([stored(function(*pair).astype(np.float32), dtype) for function in FORMS.values()])

    params = [tensor("X", dtype, n), tensor("Y", dtype, n), output("Out", dtype, len(FORMS), n)]
    launch = {"": lambda rng: {name: anything(rng, (n,), dtype) for name in "XY"}}
    return one("parallel", f"pairs-{dtype}-{n}-{scope}", params, "\n".join(body), want, launch, threads=32)
