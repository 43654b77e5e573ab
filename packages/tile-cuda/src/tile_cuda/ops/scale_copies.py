"""Scale tiles that ``tcgen05.cp`` copies to tensor memory: layout and instructions.

An instruction copies 512 bytes: 16 to each of 32 lanes, which are four scales along K of rows r, r + 32, r + 64 and
r + 96, and again to the lanes of the other warps. So a tile is made of such blocks, those of 128 rows one after
another, then those of the next four scales: CUTLASS's ``Sm1xxBlockScaledBasicChunk``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import prod

from tile_core.compat.types import Expr
from tile_core.ir import attributes, calls, nodes
from tile_core.layout import DigitLayout, LayoutMap
from tile_core.ops.base import OpCall, View, completion
from tile_core.ops.gemm import matrix
from tile_core.simt.variant import SimtCall
from tile_cuda.ops.scale_words import PER_WORD

_LINES, _ROWS, _BYTES = 128, 32, 512
"""Rows of a block, lanes of a warp, and bytes of a block."""
#: Bytes from one group of eight lanes to the next, a descriptor field.
_STRIDE = 128


def scale_layout(call: OpCall, role: int) -> LayoutMap | None:
    """Return the layout for copies of scales of A (0) or B (1), or ``None``.

    Signs of ``float8_e4m3fn`` do not count, and only threads can take them away. Nor can a tile be copied that is not
    whole blocks, or if the product arrives at a barrier of the program: until then the program may write it again.
    """
    view: View = call.args[1 + 2 * role]
    turned = bool(call.attrs[attributes.TRANSPOSE_A]) if role == 0 else not call.attrs[attributes.TRANSPOSE_B]
    shape = tuple(nodes.shape_of(view.buffer))
    if view.dtype != "float8_e8m0fnu" or turned or completion(call) is not None or len(shape) < 2:
        return None
    whole = view.extents[-2:] == shape[-2:] and all(nodes.as_int(m) == 0 for m in view.mins[-2:])
    if not whole or view.matrix_dims() != (len(shape) - 2, len(shape) - 1):
        return None
    return _layout(shape) if shape[-2] % _LINES == 0 and shape[-1] % PER_WORD == 0 else None


def is_copied(call: SimtCall, role: int) -> bool:
    """Whether the scales of A (0) or B (1) have the layout of copies."""
    wanted, given = scale_layout(call, role), call.placement.layouts.get(call.args[1 + 2 * role].buffer)
    return wanted is not None and given is not None and _same(given, wanted)


def copies(call: SimtCall, role: int, until: str) -> Iterator[tuple[int, list[Expr]]]:
    """Yield the column and the source operands of each copy of scales."""
    view: View = call.args[1 + 2 * role]
    lines, count = view.extents[-2:]
    for word in range(count // PER_WORD):
        for block in range(lines // _LINES):
            at = matrix(view, False, nodes.int_const(block * _LINES), nodes.int_const(word * PER_WORD))
            source = calls.address(view.buffer, at, "r", calls.ASYNC_PROXY, until, align=_STRIDE)
            column = (word * lines + block * _LINES) // _ROWS
            yield column, [source, *map(nodes.int_const, (0, _STRIDE, 0, 0))]


@cache
def _layout(shape: tuple[int, ...]) -> LayoutMap:
    *rest, lines, count = shape
    blocks = lines // _LINES
    rows = ((blocks, _BYTES), (_LINES // _ROWS, PER_WORD), (_ROWS, _BYTES // _ROWS))
    digits = [(prod(rest), lines * count), *rows, (count // PER_WORD, blocks * _BYTES), (PER_WORD, 1)]
    return DigitLayout(shape, [(extent, stride, "memory") for extent, stride in digits], note="blocks of scales")


@cache
def _same(given: LayoutMap, wanted: LayoutMap) -> bool:
    if "memory" not in given.axes or given.replicas != 1 or tuple(given.shape) != tuple(wanted.shape):
        return False
    return list(given.tables()["memory"]) == list(wanted.tables()["memory"])
