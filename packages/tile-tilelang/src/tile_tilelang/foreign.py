"""Statements below the language, by their meaning: reductions over threads, shuffles, functions in CUDA's C++.

No text reaches a compiler: a function in C++ is executed while tracing, so that the program runs on every target.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import Any

import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.ir import nodes
from tile_core.values.builder import Builder, current
from tile_core.values.value import Value, constant_of
from tile_tilelang import cxx
from tile_tilelang.cxx_values import Outside
from tile_tilelang.errors import BadCall, NotInLanguage
from tile_tilelang.instructions import ElementPointer
from tile_tilelang.vectors import Vector, VectorType, reinterpreted
from tile_tilelang.words import refusal

__all__ = [
    "attr",
    "call_extern",
    "comm_reducer",
    "evaluate",
    "import_source",
    "reinterpret",
    "tvm_thread_allreduce",
    "tvm_warp_shuffle",
    "tvm_warp_shuffle_down",
    "tvm_warp_shuffle_up",
]


#: Program -> its functions in C++ -> the text that they were imported with.
_imported: weakref.WeakKeyDictionary[Builder, dict[str, str]] = weakref.WeakKeyDictionary()


def import_source(source: str | None = None) -> None:
    """Note the functions of a text for `call_extern` in the same program.

    Raises
    ------
    NotInLanguage
        For a function that another text of the program has.
    """
    texts, text = _imported.setdefault(current("T.import_source"), {}), source or ""
    for name in cxx.names(text):
        if texts.setdefault(name, text) != text:
            reason, instead = f"another text of the program has a function {name}", "import one of them"
            raise NotInLanguage(name="import_source", reason=reason, instead=instead)


def call_extern(*arguments: Any, dtype: Any = None) -> None:
    """Execute an imported function: ``T.call_extern(name, T.access_ptr(packed), T.access_ptr(unpacked), N)``.

    Raises
    ------
    NotInLanguage
        For a function that was not imported, or that is outside of the subset of `tile_tilelang.cxx`.
    """
    name, *operands = arguments[1:] if len(arguments) > 1 and isinstance(arguments[1], str) else arguments
    reason, instead = refusal("call_extern") or ("", "")
    texts = _imported.get(current("T.call_extern"), {})
    if name in texts and all(isinstance(p, (ElementPointer, int)) for p in operands):
        try:
            return cxx.call(texts[name], name, operands)
        except Outside as error:
            reason = f"its text has {error}"
    raise NotInLanguage(name=f'call_extern("{name}")', reason=reason, instead=instead)


def comm_reducer(combine: Callable[[Any, Any], Any], identity: Any, *hints: Any) -> Callable[[Any, Any], Any]:
    """Return the function that combines two values, for `attr`."""
    return combine


_ATTRIBUTES = frozenset({"reduce_scope"})
#: The trace and the function of the last ``T.attr(..., "reduce_scope", ...)``.
_combine: list[tuple[Any, Callable[[Any, Any], Any]]] = []


class _Noted:
    """A block whose attribute was noted."""

    def __enter__(self) -> None:
        """Begin it."""

    def __exit__(self, *error: object) -> None:
        """End it."""


def attr(node: Any, attr_key: str, value: Any) -> _Noted:
    """Note the function of a reduction over threads, for `tvm_thread_allreduce`.

    Raises
    ------
    NotInLanguage
        For another attribute.
    """
    if attr_key not in _ATTRIBUTES:
        reason, instead = refusal("attr") or ("", "")
        raise NotInLanguage(name=f'attr(..., "{attr_key}")', reason=reason, instead=instead)
    _combine[:] = [(current("T.attr"), node)]
    return _Noted()


def reinterpret(value: Any, dtype: Any) -> Any:
    """Return the bits of a value as another type; an address, for `attr`, unchanged."""
    if dtype == "handle":
        return value
    is_vector = isinstance(value, Vector) or isinstance(dtype, VectorType)
    return reinterpreted(value, dtype) if is_vector else T.reinterpret(value, dtype)


def evaluate(value: Any) -> None:
    """Accept a call that has been executed."""


def tvm_thread_allreduce(size: Any, value: Any, condition: Any, result: Any, *axes: Any, dtype: Any = None) -> None:
    """Combine a value of all threads along axes of the block, for each of them.

    Parameters
    ----------
    size
        1: values of one statement.
    condition
        True: all threads take part.
    result
        The element that is written, ``R[0]``.
    axes
        Indices of threads, ``T.get_thread_binding(1)``.

    Raises
    ------
    BadCall
        For other operands.
    """
    threads = (*(current("T.tvm_thread_allreduce").threads or ()), 1, 1, 1)[:3]
    along = [found for axis in axes if (found := _axis(axis)) is not None]
    target = getattr(result, "element", None)
    builder, combine = _combine[-1] if _combine else (None, None)
    for name, given, right, expected in (
        (
            "the function",
            "missing",
            builder is current("T.tvm_thread_allreduce"),
            'that of T.attr(..., "reduce_scope")',
        ),
        ("size", size, constant_of(size) == 1, "1"),
        ("condition", condition, constant_of(condition) == 1, "True"),
        ("result", result, target is not None, "an element"),
        ("axes", axes, bool(along) and len(along) == len(axes), "indices of threads"),
    ):
        if not right:
            raise BadCall(
                function="T.tvm_thread_allreduce", name=name, found=str(given), expected=expected,
                instead="write T.reduce_sum of a fragment",
            )  # fmt: skip
    assert target is not None, "it was required"
    _all_reduced(value, target[0], tuple(target[1]), T.get_thread_bindings(), threads, along, combine)


def _axis(index: Any) -> int | None:
    """Return the axis of the block that an index of a thread counts."""
    if not isinstance(index, Value):
        return None
    names = [s for scope in current("T").scope.ancestors() for s in scope.flat() if type(s) is tirx.Bind]
    expr = index.expr
    while (bind := next((s for s in names if s.var.same_as(expr)), None)) is not None:
        expr = bind.value
    return nodes.as_int(expr.args[0]) if nodes.is_tile_call(expr, "thread_index") else None


@T.macro
def _all_reduced(value: Any, to: Any, at: Any, ids: Any, threads: Any, along: Any, combine: Any) -> None:
    shared = T.alloc_shared(threads, value.dtype)
    found = T.alloc_var(value.dtype)
    shared[ids[0], ids[1], ids[2]] = value
    T.sync_threads()
    found[0] = shared[_other(ids, threads, along, 0)]
    for k in T.serial(1, math.prod(threads[a] for a in along)):
        found[0] = combine(found[0], shared[_other(ids, threads, along, k)])
    T.sync_threads()
    to[at] = found[0]


def _other(ids: Any, threads: Any, along: Any, position: Any) -> tuple[Any, ...]:
    """Return the indices of a thread along some axes."""
    indices = list(ids)
    for axis in along:
        indices[axis], position = position % threads[axis], position // threads[axis]
    return tuple(indices)


def tvm_warp_shuffle(mask: Any, value: Any, lane: Any, width: Any, warp_size: Any = None) -> Any:
    """Return the value of another lane, by ``T.shfl_sync``."""
    return T.shfl_sync(value, lane, width)


def tvm_warp_shuffle_up(mask: Any, value: Any, delta: Any, width: Any, warp_size: Any = None) -> Any:
    """Return the value of a lower lane, by ``T.shfl_up``."""
    return T.shfl_up(value, delta, width)


def tvm_warp_shuffle_down(mask: Any, value: Any, delta: Any, width: Any, warp_size: Any = None) -> Any:
    """Return the value of a higher lane, by ``T.shfl_down``."""
    return T.shfl_down(value, delta, width)
