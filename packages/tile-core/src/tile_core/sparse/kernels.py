"""The compressor as a tile kernel, for matrices that are worth compiling for."""

# Parameters of kernels are annotated with shapes, which type checkers do not support.
# mypy: ignore-errors
# ruff: noqa: ANN202

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import tile_core.language as T
from tile_core.compat.types import Array
from tile_core.dtypes import DTYPES, DType
from tile_core.sparse.format import GROUPS, group_code, zero_mask

if TYPE_CHECKING:
    from tile_core.ir.program import Program
    from tile_core.runtime.kernel import Kernel
    from tile_core.values.buffer import Buffer
    from tile_core.values.value import Value


#: Elements from which the kernel pays for loading the compiler, and for its own call once that is loaded.
COLD_ELEMENTS, WARM_ELEMENTS = 1 << 22, 1 << 17
_BLOCK = 4096
_THREADS, _DEVICE_BYTES = 256, 16


def worth_it(elements: int) -> bool:
    """Whether the kernel compresses a matrix of this size faster than NumPy."""
    return elements >= (WARM_ELEMENTS if "tvm" in sys.modules else COLD_ELEMENTS)


def compress_flat(dense: Array, operand: DType, values: Array, stream: Array) -> None:
    """Compress contiguous whole groups; arguments and results are those of ``blocks.BlockCompressor``.

    Parameters
    ----------
    dense, values, stream
        Contiguous vectors: unsigned bits, half the elements, and bytes of two groups each.
    """
    group = GROUPS[operand]
    kernel = compressor(operand.bits, group, int(zero_mask(operand)))
    word, kept = f"uint{operand.bits * group}", f"uint{operand.bits * group // 2}"
    kernel(dense.view(word), values.view(kept), stream)


@functools.cache
def compressor(bits: int, group: int, lane_mask: int) -> Kernel:
    """Return the compiled kernel for operands of ``bits`` whose zeros have no bit of ``lane_mask``."""
    import tile_core as tile

    return tile.compile(program(bits, group, lane_mask), target="cpu")


def program(bits: int, group: int, lane_mask: int) -> Program:
    """Return the compressor of groups of 4 (2 for 32 bits) as a tile program.

    A group is one integer.
    """
    n = T.dynamic("n")
    word, kept = f"uint{bits * group}", f"uint{bits * group // 2}"
    slots, code = _slots(bits, group, lane_mask), _code(group)

    @T.prim_func
    def compress(A: T.Tensor((n,), word), V: T.Tensor((n,), kept), E: T.Tensor((T.ceildiv(n, 2),), "uint8")):
        with T.Kernel(T.ceildiv(n, _BLOCK), threads=128) as bx:
            nibbles = T.alloc_shared((_BLOCK,), "uint8")
            pairs = T.view(nibbles, (_BLOCK // 2,), "uint16")
            for i in T.Parallel(_BLOCK):
                value, flags = slots(A[bx * _BLOCK + i])
                V[bx * _BLOCK + i] = T.cast(value, kept)
                nibbles[i] = code(flags)
            for i in T.Parallel(_BLOCK // 2):
                low, high = pairs[i] & 15, pairs[i] >> 8
                # An illegal group has code 0, and makes the whole byte 0.
                E[bx * (_BLOCK // 2) + i] = T.Select(
                    (low != 0) & (high != 0), T.cast(low | high << 4, "uint8"), T.uint8(0)
                )

    return compress


def device_program(
    shape: tuple[int, int], element: str, meta: str, group: int, lane_mask: int, checked: bool
) -> Program:
    """Return the device compressor: a thread takes 16 bytes and stores half with codes.

    Parameters
    ----------
    shape
        Of the matrix; its rows fill whole bytes of metadata.
    element, meta
        Types of its elements and of the metadata.
    group, lane_mask
        As for ``program``.
    checked
        Whether there is another output, one number: 0 unless a group has more non-zeros than slots.
    """
    M, K = shape
    bits = DTYPES[element].bits
    per = _DEVICE_BYTES * 8 // (bits * group)
    while M * K // group % per:
        per //= 2
    n = M * K // (group * per)
    E_shape = (M, K * 4 // (group * DTYPES[meta].bits))
    chunk = _chunk(n, per, bits, group, lane_mask)

    if checked:

        @T.prim_func
        def compress_and_check(
            A: T.Tensor((M, K), element),
            V: T.Tensor((M, K // 2), element),
            E: T.Tensor(E_shape, meta),
            bad: T.Tensor((1,), "int32"),
        ):
            with T.Kernel(1, threads=1):
                bad[0] = 0
            with T.Kernel(T.ceildiv(n, _THREADS), threads=_THREADS) as bx:
                chunk(bx * _THREADS, A, V, E, bad)

        return compress_and_check

    @T.prim_func
    def compress(A: T.Tensor((M, K), element), V: T.Tensor((M, K // 2), element), E: T.Tensor(E_shape, meta)):
        with T.Kernel(T.ceildiv(n, _THREADS), threads=_THREADS) as bx:
            chunk(bx * _THREADS, A, V, E, None)

    return compress


def _chunk(n: int, per: int, bits: int, group: int, lane_mask: int) -> Callable[..., None]:
    """Return a block's work: ``per`` groups per thread, from ``first`` of ``n``."""
    word, kept = f"uint{bits * group}", f"uint{bits * group // 2}"
    slots, code = _slots(bits, group, lane_mask), _code(group)

    @T.macro
    def chunk(first: Value, A: Buffer, V: Buffer, E: Buffer, bad: Buffer | None) -> None:
        words, halves = T.view(A, (n, per), word), T.view(V, (n, per), kept)
        codes = T.view(E, (n, per // 2), "uint8")
        given = T.alloc_fragment((_THREADS, per), word)
        found = T.alloc_fragment((_THREADS, per), kept)
        nibbles = T.alloc_fragment((_THREADS, per), "uint8")
        T.copy(words[first, 0], given)
        for i, j in T.Parallel(_THREADS, per):
            value, flags = slots(given[i, j])
            found[i, j] = T.cast(value, kept)
            nibbles[i, j] = code(flags)
        T.copy(found, halves[first, 0])
        for i, j in T.Parallel(_THREADS, per // 2):
            low, high = nibbles[i, 2 * j], nibbles[i, 2 * j + 1]
            codes[first + i, j] = low | high << 4
            if bad is not None:  # noqa: SIM102 - one is decided now, the other by the device
                if (first + i < n) & ((low == 0) | (high == 0)):
                    T.atomic_max(bad[0], 1)

    return chunk


def _code(group: int) -> Callable[[Value], Value]:
    """Return the function from a non-zero mask to a metadata nibble; 0 if illegal.

    The 16 nibbles are one 64-bit constant.
    """
    codes = sum(group_code(flags, group) << 4 * flags for flags in range(1 << group))
    return lambda flags: T.cast((T.uint64(codes) >> (T.cast(flags, "uint64") * 4)) & 15, "uint8")


def _slots(bits: int, group: int, lane_mask: int) -> Callable[[Value], tuple[Value, Value]]:
    """Return the function from a group to its kept values and non-zero mask.

    A group is one integer ``low | high << width``. With no more than two non-zeros, slots follow from shifts: ``low``
    moves down if lane 0 is zero, lane 2 goes to slot 0 if lanes 0 and 1 are zero, lane 3 always goes to slot 1.
    """
    full = (1 << bits) - 1

    def lane(x: Value, at: int) -> Value:
        """1 if lane ``at`` of ``x`` holds something else than zero."""
        return T.Select((x & (lane_mask << bits * at)) != 0, T.uint32(1), T.uint32(0))

    def without_zeros(x: Value, first: Value, second: Value) -> Value:
        """The two lanes of ``x`` with +0.0 for every zero."""
        return x & (
            T.Select(first != 0, T.uint32(full), T.uint32(0))
            | T.Select(second != 0, T.uint32(full << bits), T.uint32(0))
        )

    def slots_of_four(x: Value) -> tuple[Value, Value]:
        half = 2 * bits
        low, high = T.cast(x & ((1 << half) - 1), "uint32"), T.cast(x >> half, "uint32")
        flags = [lane(low, 0), lane(low, 1), lane(high, 0), lane(high, 1)]
        low, high = without_zeros(low, flags[0], flags[1]), without_zeros(high, flags[2], flags[3])
        moved = T.Select(flags[0] != 0, low, low >> bits)
        third = T.Select(flags[0] + flags[1] != 0, (high & full) << bits, high & full)
        return moved | third | (high & (full << bits)), flags[0] + flags[1] * 2 + flags[2] * 4 + flags[3] * 8

    def slots_of_two(x: Value) -> tuple[Value, Value]:
        low, high = T.cast(x & full, "uint32"), T.cast(x >> bits, "uint32")
        first, second = lane(low, 0), lane(high, 0)
        chosen = T.Select(first != 0, low, T.uint32(0)) | T.Select(second != 0, high, T.uint32(0))
        return chosen, first + second * 2

    return slots_of_four if group == 4 else slots_of_two
