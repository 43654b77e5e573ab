"""Reducers with a seed, which is combined with the result once per epoch."""

from __future__ import annotations

import weakref
from typing import Any

import tile_core.language as T
from tile_core.records import dataclass
from tile_core.values.builder import Builder, Scope, current
from tile_core.values.value import Value, cast
from tile_tilelang.errors import BadCall

__all__ = ["finalize_reducer", "reducer_init"]

_COMBINED = {
    "sum": lambda a, b: a + b, "max": T.max, "min": T.min, "bitand": T.bitwise_and, "bitor": T.bitwise_or,
    "bitxor": T.bitwise_xor,
}  # fmt: skip


@dataclass
class Epochs:
    """The epochs of a reducer in the order of tracing.

    Attributes
    ----------
    scope
        The block of statements that began the present epoch; none between epochs.
    seed
        The seed of the present epoch.
    is_seeded
        Whether an epoch had a seed.
    is_apart
        Whether an epoch ended in another block than it began in, so that control flow decides which one it is.
    """

    scope: Scope | None = None
    seed: Any = None
    is_seeded: bool = False
    is_apart: bool = False

    def check(self, function: str) -> None:
        """Refuse seeds of a reducer whose epochs end in other blocks."""
        if self.is_seeded and self.is_apart:
            raise BadCall(
                function=function, name="reducer", found="begun and finalized in different blocks, and has a seed",
                expected="T.reducer_init in front of T.finalize_reducer in one block of statements",
                instead="move both into one block, or combine the seed with the result",
            )  # fmt: skip


#: Program -> reducer -> its epochs.
_epochs: weakref.WeakKeyDictionary[Builder, dict[str, Epochs]] = weakref.WeakKeyDictionary()


def reducer_init(reducer: Any, init: Any = None) -> None:
    """Begin an epoch by ``T.reducer_init``; ``init`` is combined with its result once.

    Raises
    ------
    BadCall
        For a seed of another type than the reducer's, or a reducer that is finalized in another block of statements.
    """
    T.reducer_init(reducer)
    builder = current("T.reducer_init")
    epochs = _epochs.setdefault(builder, {}).setdefault(str(reducer.var.name), Epochs())
    epochs.scope, epochs.seed = builder.scope, None
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
    epochs.seed, epochs.is_seeded = held, True
    epochs.check("T.reducer_init")


def finalize_reducer(reducer: Any, dst: Any = None, batch: int = 1) -> None:
    """End an epoch by ``T.finalize_reducer``, and combine the result with the seed.

    Raises
    ------
    BadCall
        For a seeded reducer whose epoch began in another block of statements.
    """
    name = str(getattr(getattr(reducer, "var", None), "name", ""))
    builder = current("T.finalize_reducer")
    epochs = _epochs.setdefault(builder, {}).setdefault(name, Epochs())
    epochs.is_apart |= epochs.scope is not builder.scope
    epochs.check("T.finalize_reducer")
    seed, epochs.scope, epochs.seed = epochs.seed, None, None
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
