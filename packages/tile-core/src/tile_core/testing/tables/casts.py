"""Conversions: every element type to every other, through shared memory and a fragment.

Sources of up to 16 bits are tested with all their codes, wider ones with random bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_core.dtypes import DTYPES
from tile_core.testing.case import Data, Launch, Part, Unit, output, tensor
from tile_core.testing.data import TYPES, Array, castable, stored, values

#: Targets that one kernel has at a time.
_PER_UNIT = 4
#: Rows of a block at most: tiles of more would not fit the shared memory of every target.
_BLOCK = 9


def units() -> list[Unit]:
    """Return the units of this table."""
    return [_unit(s, TYPES[i : i + _PER_UNIT]) for s in TYPES for i in range(0, len(TYPES), _PER_UNIT)]


def _unit(source: str, targets: tuple[str, ...]) -> Unit:
    shape = (64, 1026) if DTYPES[source].bits == 16 else (9, 34)
    tile = (min(shape[0], _BLOCK), shape[1])
    body = f'''
        s = T.alloc_shared({tile}, "{source}")
        T.copy(A[bx * {tile[0]}, 0], s)
    '''
    parts = {t: Part((output(f"B_{t}", t, *shape),), _body(tile, t), _want(source, shape)) for t in targets}
    launches = {}
    for name, chosen in _groups(source, targets).items():
        launches[name] = Launch(lambda rng, c=chosen: _data(rng, shape, source, c), frozenset(chosen))  # type: ignore[misc]
    return Unit("cast", f"{source}-{targets[0]}", (tensor("A", source, *shape),), body, parts, launches,
                grid=str(-(-shape[0] // tile[0])))  # fmt: skip


def _body(tile: tuple[int, ...], target: str) -> str:
    return f'''
        f_{target} = T.alloc_fragment({tile}, "{target}")
        T.copy(s, f_{target})
        T.copy(f_{target}, B_{target}[bx * {tile[0]}, 0])
    '''


def _groups(source: str, targets: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Targets that the same data suits."""
    if not DTYPES[source].is_float:
        return {"": targets}
    by_kind: dict[str, tuple[str, ...]] = {}
    for t in targets:
        kind = "integers" if DTYPES[t].is_integer else "numbers" if DTYPES[t].is_packed else "codes"
        by_kind[kind] = (*by_kind.get(kind, ()), t)
    return by_kind


def _data(rng: np.random.Generator, shape: tuple[int, ...], source: str, targets: tuple[str, ...]) -> Data:
    array = castable(rng, shape, source, targets)
    if DTYPES[source].is_float and any(DTYPES[t].is_float and not DTYPES[t].has_nan for t in targets):
        # The result of a NaN keeps nothing but a sign.
        wide = values(array, source, shape)
        array = stored(np.where(np.isnan(wide), 1.0, wide), source)
    return {"A": array}


def _want(source: str, shape: tuple[int, ...]) -> Any:
    def want(d: Data) -> Array:
        return values(d["A"], source, shape)

    return want
