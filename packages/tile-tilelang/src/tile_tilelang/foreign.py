"""Statements below the language, by their meaning: reductions over threads, shuffles, functions in CUDA's C++.

A foreign function is known by the digest of its text, and only those of libraries that programs copy are: they unpack
integers and floats of a few bits. No text reaches a compiler, so that the program runs on every target.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable
from typing import Any

import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.ir import nodes
from tile_core.records import dataclass
from tile_core.values.builder import current
from tile_core.values.value import Value, constant_of
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


@dataclass(frozen=True)
class Unpacker:
    """A function of packed elements, unpacked ones and ``N``, their number.

    Attributes
    ----------
    fields
        The bits of each element of a group, the most significant first, counted from the group's lowest.
    count
        The default of ``N``.
    each
        Elements that ``N`` counts by.
    bias
        What an integer is less than its bits; ``None`` for floats of 4 bits.
    """

    fields: tuple[tuple[int, ...], ...]
    count: int
    each: int = 1
    bias: int | None = 0

    def value(self, word: Callable[[int, int], Any], element: int) -> Any:
        """Return the bits of an element as ``int32``; ``word`` reads adjacent ones."""
        group, inside = divmod(element, len(self.fields))
        size, found = len(self.fields) * len(self.fields[0]), 0
        positions, code = self.fields[inside], None
        while found < len(positions):
            run = 1
            while found + run < len(positions) and positions[found + run] == positions[found] - run:
                run += 1
            part = word(group * size + positions[found + run - 1], run) << (len(positions) - found - run)
            code, found = part if code is None else code | part, found + run
        return code


def _interleaved(bits: int, width: int) -> tuple[tuple[int, ...], ...]:
    """Return the fields of a word whose neighbours lie ``width`` bits apart."""
    lanes = 32 // width
    starts = [width * (e % lanes) + bits * (e // lanes) for e in range(32 // bits)]
    return tuple(tuple(range(s + bits - 1, s - 1, -1)) for s in starts)


def _twiddled() -> tuple[tuple[int, ...], ...]:
    """Return the fields of eight floats; two bytes, the first above, hold four."""
    bits = ((15, 8, 7, 6), (12, 5, 4, 3), (9, 2, 1, 0), (14, 11, 10, 13))
    halves = (tuple(tuple((p - 8 if p > 7 else p + 8) + 16 * half for p in one) for one in bits) for half in (0, 1))
    return tuple(one for half in halves for one in half)


_F16, _I8_2, _I8_4 = _interleaved(4, 16), _interleaved(2, 8), _interleaved(4, 8)
_TWIDDLED = {"decode_fp4_to_bf16_twiddling": Unpacker(_twiddled(), 8, 8, None)}
_BYTES = tuple(tuple(8 * (e % 4) + 4 * (e // 4) + bit for bit in (3, 2, 1, 0)) for e in range(8))
#: Digest of a text without comments and spaces -> its functions.
KNOWN: dict[str, dict[str, Unpacker]] = {
    "c52ba3cb762d9517": _TWIDDLED,
    "eec30daed67d15b2": _TWIDDLED,
    "e564c96df19a02d5": {"decode_fp4_to_bf16": Unpacker(_BYTES, 8, 8, None)},
    "731a0bb9301c78bd": {"decode_i4u_to_f16": Unpacker(_F16, 8), "decode_i4s_to_f16": Unpacker(_F16, 8, bias=8)},
    "cfaa15b3ecf14e92": {"decode_i2u_to_i8s": Unpacker(_I8_2, 16), "decode_i2s_to_i8s": Unpacker(_I8_2, 16, bias=2)},
    "ece83aeebf7f0e63": {"decode_i4u_to_i8s": Unpacker(_I8_4, 16), "decode_i4s_to_i8s": Unpacker(_I8_4, 16, bias=7)},
}
#: Names of the texts that were imported; ``None`` for functions of others.
_imported: dict[str, Unpacker | None] = {}


def digest(source: str) -> str:
    """Return the digest of a text, which spaces and comments do not change."""
    code = re.sub(r"//[^\n]*|/\*.*?\*/", "", source, flags=re.S)
    return hashlib.sha256("".join(code.split()).encode()).hexdigest()[:16]


def import_source(source: str | None = None) -> None:
    """Note the functions of a text for `call_extern`."""
    for name in re.findall(r"__device__\s+(?:inline\s+)?\w+\s+(\w+)\s*\(", source or ""):
        _imported[name] = KNOWN.get(digest(source or ""), {}).get(name)


def call_extern(*arguments: Any, dtype: Any = None) -> None:
    """Unpack by a known function: ``T.call_extern(name, T.access_ptr(packed), T.access_ptr(unpacked), N)``.

    Raises
    ------
    NotInLanguage
        For other functions.
    """
    name, *operands = arguments[1:] if len(arguments) > 1 and isinstance(arguments[1], str) else arguments
    known = _imported.get(name)
    if known is None or len(operands) < 2 or not all(isinstance(p, ElementPointer) for p in operands[:2]):
        reason, instead = refusal("call_extern") or ("", "")
        raise NotInLanguage(name=f'call_extern("{name}")', reason=reason, instead=instead)
    packed, unpacked = operands[:2]
    width = packed.buffer.dtype.bits

    def word(first: int, bits: int) -> Any:
        element: Any = packed.buffer[packed.row(first // width)]
        return (T.cast(element, "int32") >> (first % width)) & ((1 << bits) - 1)

    to = unpacked.buffer.dtype
    for element in range((operands[2] if len(operands) > 2 else known.count) * known.each):
        code = known.value(word, element)
        if known.bias is None:
            exponent, doubled = (code >> 1) & 3, code & 1
            doubled = T.if_then_else(exponent == 0, doubled, (doubled + 2) << T.max(exponent - 1, 0))
            size = T.cast(doubled, to) * T.cast(0.5, to)
            value = T.if_then_else(code > 7, -size, size)
        else:
            value = T.cast(code - known.bias, to)
        unpacked.buffer[unpacked.row(element)] = value


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
