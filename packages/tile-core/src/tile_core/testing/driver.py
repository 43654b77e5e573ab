"""Lines that run a failing kernel on its data, below the kernel's text."""

from __future__ import annotations

import numpy as np

from tile_core.compat.types import Array
from tile_core.dtypes import DTYPES
from tile_core.testing.case import Data, Param, Unit
from tile_core.testing.data import poisoned

#: Elements of all arrays together that are still printed.
_MOST = 2000


def driver(unit: Unit, launch: str, target: str) -> str:
    """Return Python lines that call ``main`` on a launch's data and print the outputs.

    Large data are abbreviated.
    """
    lines = [
        "",
        "# --- runs it:",
        "import numpy as np, ml_dtypes",
        *(f"main = tile.with_packed_weights(main, {name!r})" for name in unit.packed),
        f"kernel = tile.compile(main, target={target!r})",
    ]
    data = unit.launches[launch].data(np.random.default_rng(0))
    params = [*unit.params, *(p for part in unit.parts.values() for p in part.params)]
    arrays = {p.name: _array(p, data) for p in params if not p.of}
    if sum(getattr(a, "size", 1) for a in arrays.values()) > _MOST:
        return "\n".join(lines)
    lines += [f"{name} = {_text(array)}" for name, array in arrays.items()]
    lines += [f"{name} = tile.pack_weights({name})" for name in unit.packed]
    lines += [f"{p.name} = tile.pointers([{', '.join(p.of)}])" for p in params if p.of]
    lines.append(f"kernel({', '.join(p.name for p in params)})")
    lines += [f"print({p.name})" for p in params if p.out]
    return "\n".join(lines)


def _array(p: Param, data: Data) -> Array:
    if p.name in data:
        return data[p.name]
    sizes = {k: v for k, v in data.items() if isinstance(v, int)}
    shape = tuple(d if isinstance(d, int) else int(eval(d, {"__builtins__": {}}, sizes)) for d in p.shape or ())
    return poisoned(shape, p.dtype)


def _text(x: Array) -> str:
    if not isinstance(x, np.ndarray):
        return f"float({str(x)!r})" if isinstance(x, float) else repr(x)
    kind = str(x.dtype)
    if kind not in DTYPES or kind in ("bool",) or hasattr(np, kind):
        plain = x.dtype.kind != "f" or bool(np.isfinite(x).all())
        if plain:
            return f"np.array({x.tolist()}, {kind!r}).reshape({x.shape})"
    raw = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
    view = f"ml_dtypes.{kind}" if not hasattr(np, kind) else repr(kind)
    return f"np.array({raw.tolist()}, 'uint8').view({view}).reshape({x.shape})"
