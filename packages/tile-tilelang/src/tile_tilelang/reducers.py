"""Reducers with a seed, which is combined with the result once per epoch."""

from __future__ import annotations

import weakref
from typing import Any

import tile_core.language as T
from tile_core.values.builder import Builder, current
from tile_core.values.value import Value, cast
from tile_tilelang.errors import BadCall

__all__ = ["finalize_reducer", "reducer_init"]

_COMBINED = {
    "sum": lambda a, b: a + b, "max": T.max, "min": T.min, "bitand": T.bitwise_and, "bitor": T.bitwise_or,
    "bitxor": T.bitwise_xor,
}  # fmt: skip
#: Program -> reducer -> its seed in the present epoch.
_seeds: weakref.WeakKeyDictionary[Builder, dict[str, Any]] = weakref.WeakKeyDictionary()


def reducer_init(reducer: Any, init: Any = None) -> None:
    """Begin an epoch by ``T.reducer_init``; ``init`` is combined with its result once.

    Raises
    ------
    BadCall
        For a seed of another type than the reducer's.
    """
    T.reducer_init(reducer)
    seeds = _seeds.setdefault(current("T.reducer_init"), {})
    seeds.pop(str(reducer.var.name), None)
    if init is None:
        return
    if isinstance(init, Value) and init.dtype != reducer.dtype:
        expected, instead = str(reducer.dtype), "convert it with T.cast"
        raise BadCall(
            function="T.reducer_init", name="init", found=f"of type {init.dtype}, which does not match reducer",
            expected=expected, instead=instead,
        )  # fmt: skip
    held = T.alloc_var(reducer.dtype)
    held[0] = cast(init, reducer.dtype) if isinstance(init, Value) else init
    seeds[str(reducer.var.name)] = held


def finalize_reducer(reducer: Any, dst: Any = None, batch: int = 1) -> None:
    """End an epoch by ``T.finalize_reducer``, and combine the result with the seed."""
    name = str(getattr(getattr(reducer, "var", None), "name", ""))
    builder = current("T.finalize_reducer")
    seed = _seeds.get(builder, {}).pop(name, None)
    if seed is None:
        T.finalize_reducer(reducer, dst, batch)
        return
    T.finalize_reducer(reducer, batch=batch)
    seeded = T.alloc_fragment(reducer.shape, reducer.dtype)
    _seeded(reducer, seed, seeded, _COMBINED[builder.reducers[name]["op"]])
    T.copy(seeded, reducer)
    if dst is not None:
        T.copy(seeded, dst)


@T.macro
def _seeded(reducer: Any, seed: Any, result: Any, combine: Any) -> None:
    for indices in T.Parallel(*reducer.shape):
        result[indices] = combine(reducer[indices], seed[0])
