"""Comparisons among lanes of a warp, and block-wide votes by ballots, barriers and atomics."""

from __future__ import annotations

import math

from tile_core.compat.tvm import tirx
from tile_core.dtypes import DTYPES
from tile_core.errors.naming import naming
from tile_core.language.integers import popcount
from tile_core.language.threads import (
    all_sync,
    ballot,
    get_lane_idx,
    get_thread_binding,
    register,
    shfl_sync,
    sync_threads,
    thread_builder,
)
from tile_core.ops.atomic import atomic_add
from tile_core.trace.choices import Select
from tile_core.values import scalar
from tile_core.values.allocation import allocate
from tile_core.values.buffer import Buffer, store
from tile_core.values.builder import Builder
from tile_core.values.conversions import reinterpret
from tile_core.values.value import Scalar, Value, as_value

_MASK, _BOOL, _INT32 = DTYPES["uint64"], DTYPES["bool"], DTYPES["int32"]


def activemask() -> Value:
    """Return a ``uint64`` with bit ``i`` set if lane ``i`` exists.

    A block's last warp may have fewer lanes.
    """
    return ballot(True)


def match_any_sync(value: Scalar) -> Value:
    """Return the ``uint64`` mask of the warp's lanes with the same bits of ``value``.

    Parameters
    ----------
    value
        A scalar of 8 to 64 bits. Of floats, the two zeros differ, and a NaN equals one of the same bits.
    """
    builder, bits = _bits("match_any_sync", value)
    same = _bound(builder, activemask())
    for n in range(bits.dtype.bits):
        mine = _bound(builder, (bits >> n & 1) != 0)
        others = _bound(builder, ballot(mine))
        same = _bound(builder, same & Select(mine, others, ~others))
    return same


def match_all_sync(value: Scalar) -> Value:
    """Return ``activemask()`` if ``value`` is equal in all lanes, else 0; as ``uint64``."""
    builder, bits = _bits("match_all_sync", value)
    first = _bound(builder, shfl_sync(bits, 0))
    alike = _bound(builder, all_sync(bits == first))
    return Select(alike, _bound(builder, activemask()), as_value(0, _MASK))


def syncthreads_count(condition: Scalar) -> Value:
    """Wait for the block, and count the threads whose condition holds, as ``int32``.

    What was written before it is visible after it, as with ``sync_threads``; all threads must reach it.
    """
    return _count("syncthreads_count", condition)


def syncthreads_or(condition: Scalar) -> Value:
    """Wait for the block; return whether the condition holds in any thread.

    See ``syncthreads_count``.
    """
    return _count("syncthreads_or", condition) > 0


def syncthreads_and(condition: Scalar) -> Value:
    """Wait for the block; return whether the condition holds in all threads.

    See ``syncthreads_count``.
    """
    threads = thread_builder("syncthreads_and").threads
    assert threads is not None
    return _count("syncthreads_and", condition) == math.prod(threads)


def _count(name: str, condition: Scalar) -> Value:
    builder = thread_builder(name)
    with naming(name):
        votes = _bound(builder, scalar.cast(popcount(ballot(condition)), _INT32))
    builder.hints = []
    total = allocate("alloc_shared", (1,), "int32", "shared", "votes")
    sync_threads()  # all threads have read the count of the previous iteration
    _where(builder, _thread(builder) == 0, total, None)
    sync_threads()
    _where(builder, get_lane_idx() == 0, total, votes)
    sync_threads()
    return _bound(builder, as_value(total[0]))


def _where(builder: Builder, condition: Value, total: Buffer, votes: Value | None) -> None:
    """Set the count to 0, or add votes to it, where a condition holds."""
    span = builder.span()
    scope = builder.push("branch")
    if votes is None:
        store(total, 0, 0)
    else:
        atomic_add(total[0], votes)
    builder.emit(tirx.IfThenElse(condition.expr, builder.pop(scope), None, span))


def _thread(builder: Builder) -> Value:
    """Return the number of this thread in its block."""
    x, y, z = builder.threads or (1, 1, 1)
    number = get_thread_binding(0)
    number = number if y == 1 else number + get_thread_binding(1) * x
    return number if z == 1 else number + get_thread_binding(2) * (x * y)


def _bits(name: str, value: Scalar) -> tuple[Builder, Value]:
    x = register(name, value)
    builder = thread_builder(name)
    return builder, _bound(builder, reinterpret(x, f"uint{x.dtype.bits}"))


def _bound(builder: Builder, x: Value) -> Value:
    """Bind a value to a name, because its memory may change and votes happen once."""
    return Value(builder.bind("w", x.expr), x.dtype)
