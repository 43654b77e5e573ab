"""Explicit threads and warps: indices, barriers, shuffles, votes.

A warp is a group of threads that the target executes together; its size depends on the target. On a target without
threads these are refused, or a block's threads run one after another between barriers.
"""

from __future__ import annotations

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr
from tile_core.dtypes import DTYPES, DType
from tile_core.errors.language import BadArgument, OutsideKernel
from tile_core.ir import calls, nodes
from tile_core.trace.conditions import as_condition
from tile_core.values.builder import Builder, current
from tile_core.values.checks import python_int, shown, truth
from tile_core.values.value import Scalar, Value, as_value, cast, constant_of

INT32 = DTYPES["int32"]


def get_thread_binding(dim: int = 0) -> Value:
    """Return this thread's index in its block along an axis (0, 1, 2), as ``int32``."""
    _axis("get_thread_binding", dim)
    return _call("thread_index", [nodes.int_const(dim)], INT32)


def get_thread_bindings() -> tuple[Value, Value, Value]:
    """Return the three indices of this thread in its block."""
    return get_thread_binding(0), get_thread_binding(1), get_thread_binding(2)


def get_block_binding(dim: int = 0) -> Value:
    """Return this block's index in the grid along an axis (0, 1, 2), as ``int32``."""
    _axis("get_block_binding", dim)
    return _call("block_index", [nodes.int_const(dim)], INT32)


def get_block_bindings() -> tuple[Value, Value, Value]:
    """Return the three indices of this block in the grid."""
    return get_block_binding(0), get_block_binding(1), get_block_binding(2)


def get_lane_idx() -> Value:
    """Return the index of this thread in its warp."""
    return _call("lane_index", [], INT32)


def get_warp_idx() -> Value:
    """Return the index of this thread's warp in the block."""
    return _call("warp_index", [], INT32)


def sync_threads(barrier_id: int | None = None, arrive_count: int | None = None) -> None:
    """Wait for all threads of the block; writes before the barrier are visible after it.

    Parameters
    ----------
    barrier_id
        Number of a barrier of a part of the block, from 1 on: the threads that execute it wait for each other only.
        Threads of one number are always the same ones. Without it all threads of the block wait.
    arrive_count
        How many threads that are, with ``barrier_id``.

    Raises
    ------
    BadArgument
        For other numbers, or one without the other.
    """
    if barrier_id is None and arrive_count is None:
        _emit("sync_threads")
        return
    builder = thread_builder("sync_threads")
    for name, value, least in (("barrier_id", barrier_id, 1), ("arrive_count", arrive_count, 1)):
        number = python_int(value)
        if number is None or number < least:
            raise BadArgument(
                function="sync_threads", name=name, found=shown(value), expected="a positive number",
                instead="pass both the barrier and the number of threads, or neither",
            )  # fmt: skip
    part = calls.sync_part(int(barrier_id or 0), int(arrive_count or 0))
    builder.emit(tirx.Evaluate(part.value, builder.span()))


def sync_warp() -> None:
    """Wait for all threads of the warp."""
    _emit("sync_warp")


def shfl_sync(value: Scalar, lane: Scalar, width: int | None = None) -> Value:
    """Return ``value`` of another lane.

    Parameters
    ----------
    value
        A scalar of 8 to 64 bits.
    lane
        Lane that is read, from 0; taken modulo ``width``.
    width
        Lanes that exchange with each other: a power of two, or ``None`` for the whole warp.
    """
    return _shuffle("shfl_sync", value, lane, width)


def shfl_xor(value: Scalar, mask: Scalar, width: int | None = None) -> Value:
    """Return ``value`` of the lane whose index differs by XOR with ``mask``."""
    return _shuffle("shfl_xor", value, mask, width)


def shfl_up(value: Scalar, delta: Scalar, width: int | None = None) -> Value:
    """Return ``value`` of the lane ``delta`` below; the lowest lanes keep their own."""
    return _shuffle("shfl_up", value, delta, width)


def shfl_down(value: Scalar, delta: Scalar, width: int | None = None) -> Value:
    """Return ``value`` of the lane ``delta`` above; the highest lanes keep their own."""
    return _shuffle("shfl_down", value, delta, width)


def ballot(condition: Scalar) -> Value:
    """Return a ``uint64`` whose bit ``i`` is the condition of lane ``i``."""
    return _call("ballot", [_condition("ballot", condition)], DTYPES["uint64"])


def any_sync(condition: Scalar) -> Value:
    """Return whether the condition holds in some lane of the warp."""
    return _call("any_sync", [_condition("any_sync", condition)], DTYPES["bool"])


def all_sync(condition: Scalar) -> Value:
    """Return whether the condition holds in all lanes of the warp."""
    return _call("all_sync", [_condition("all_sync", condition)], DTYPES["bool"])


def warp_reduce_sum(value: Scalar) -> Value:
    """Return the sum over the lanes of the warp that exist, in every lane."""
    return _reduce("sum", value)


def warp_reduce_max(value: Scalar) -> Value:
    """Return the greatest value over the lanes of the warp that exist, in every lane."""
    return _reduce("max", value)


def warp_reduce_min(value: Scalar) -> Value:
    """Return the least value over the lanes of the warp that exist, in every lane."""
    return _reduce("min", value)


def warp_reduce_bitand(value: Scalar) -> Value:
    """Return the bitwise and over the lanes of the warp that exist, of integers."""
    return _reduce("bitand", value)


def warp_reduce_bitor(value: Scalar) -> Value:
    """Return the bitwise or over the lanes of the warp that exist, of integers."""
    return _reduce("bitor", value)


def _reduce(kind: str, value: Scalar) -> Value:
    x = register(f"warp_reduce_{kind}", value)
    if x.dtype.is_reduced:  # it does not hold the results of additions
        x = cast(x, DTYPES[x.dtype.container])
    if kind.startswith("bit") and not x.dtype.is_integer:
        raise BadArgument(
            function=f"warp_reduce_{kind}", name="value", found=f"a {x.dtype} value", expected="an integer",
            instead="use T.reinterpret to work on the bits of floats",
        )  # fmt: skip
    return _call(f"warp_reduce_{kind}", [x.expr], x.dtype)


def _shuffle(name: str, value: Scalar, lane: Scalar, width: int | None) -> Value:
    x = register(name, value)
    if width is not None:
        constant = constant_of(width)
        if constant is None or not 1 <= constant <= 1024 or constant & (constant - 1):
            raise BadArgument(
                function=name, name="width", found=shown(width), expected="a power of two", instead="leave it out"
            )
        width = constant
    index = as_value(lane)
    if not index.dtype.is_integer:
        raise BadArgument(
            function=name, name="lane", found=f"a {index.dtype} value", expected="an integer", instead="cast it"
        )
    return _call(name, [x.expr, cast(index, INT32).expr, nodes.int_const(width or 0)], x.dtype)


def register(name: str, value: Scalar) -> Value:
    """Return a value that lanes can exchange: of 8 to 64 bits."""
    x = as_value(value)
    if x.dtype.is_packed or x.dtype == "bool":
        raise BadArgument(
            function=name, name="value", found=f"a {x.dtype} value", expected="a type of 8 to 64 bits",
            instead="cast it to int32",
        )  # fmt: skip
    return x


def _condition(name: str, condition: Scalar) -> Expr:
    value = as_condition(condition)
    if value is None:
        value = as_value(truth(name, condition))
    return value.expr


def _axis(name: str, dim: object) -> None:
    if not isinstance(dim, int) or not 0 <= dim <= 2:
        raise BadArgument(function=name, name="dim", found=repr(dim), expected="0, 1 or 2", instead="use 0 for x")


def thread_builder(name: str) -> Builder:
    """Return the builder of the kernel around a name of ``T`` that threads execute.

    Raises
    ------
    OutsideKernel
        The call is outside a ``T.Kernel`` block.
    """
    builder = current(f"T.{name}")
    if builder.threads is None:
        raise OutsideKernel(what=f"T.{name}")
    return builder


def _call(name: str, args: list[Expr], dtype: DType) -> Value:
    thread_builder(name)
    return Value(nodes.tile_call(name, args, ret=dtype.container), dtype)


def _emit(name: str) -> None:
    builder = thread_builder(name)
    builder.emit(tirx.Evaluate(nodes.tile_call(name, []), builder.span()))
