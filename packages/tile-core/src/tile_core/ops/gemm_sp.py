"""``T.gemm_sp``: the product of a 2:4 sparse tile with a dense tile.

A row of A is stored as the values that a mask keeps and the mask itself as metadata: each nibble of E describes one
group along K. For types of up to 16 bits a group is 4 elements, with 2 kept, at indices ``nibble & 3`` and
``nibble >> 2``. For 32-bit types a group is 2 elements, with 1 kept, at index ``(nibble & 3) >> 1``: sparse
hardware indexes 16-bit halves.
"""

from __future__ import annotations

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.dtypes import DTYPES, DType
from tile_core.errors.ops import BadElementType, SparseShape
from tile_core.ir import nodes
from tile_core.ir.attributes import GROUP, TRANSPOSED, TYPES
from tile_core.ops import operands
from tile_core.ops.base import OpCall, TileOp, View
from tile_core.ops.copy import convert
from tile_core.ops.gemm import GemmWarpPolicy, accumulated, accumulator, arguments, check_types, matrix, matrix_extents
from tile_core.values.value import Region, Scalar, Tile

#: Nibbles of a word of metadata that keep elements 0 and 1, for groups whose kept values are zero.
EMPTY = 0x44444444
#: Element types of A that groups divide; the check of products refuses some of them.
ELEMENTS = tuple(n for n, d in DTYPES.items() if not d.is_packed and n != "float64" and d.bits in (8, 16, 32))
#: Element types that hold metadata.
METADATA = ("int8", "int16", "int32", "uint8", "uint16", "uint32")


def gemm_sp(
    A_sparse: Tile,
    E: Tile,
    B: Tile,
    C: Tile,
    transpose_A: bool = False,
    transpose_E: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: Scalar = False,
    k_pack: int = 1,
    wg_wait: int = 0,
    *,
    variant: str | None = None,
    **hints: object,
) -> None:
    """Multiply a 2:4 sparse tile by a dense one: ``C += decompress(A_sparse, E) @ B``.

    Parameters
    ----------
    A_sparse
        Kept values, of shape (M, K / 2), or (K / 2, M) with ``transpose_A``.
    E
        Metadata of ``int8``, ``int16`` or ``int32`` (signed or not), of shape (M, K / e), or (K / e, M) with
        ``transpose_E``, where one element describes ``e`` elements of K: ``bits / 4`` groups of 4 elements (of 2 for
        32-bit types), lowest group in the lowest nibble. ``T.annotate_layout`` gives the positions of elements if not
        in row-major order.
    B
        Dense tile of shape (K, N), or (N, K) with ``transpose_B``.
    C
        Accumulator tile of shape (M, N).
    policy, clear_accum, k_pack, wg_wait, variant
        As for ``T.gemm``.

    Raises
    ------
    SparseShape, BadElementType, GemmTypes, NotATile, RuntimeExtent
        If shapes or element types do not fit together.

    Examples
    --------
    >>> T.gemm_sp(values, meta, H, F)
    """
    attrs = arguments(
        "gemm_sp", {"A": transpose_A, "E": transpose_E, "B": transpose_B}, policy=policy, k_pack=k_pack,
        wg_wait=wg_wait, variant=variant, hints=hints,
    )  # fmt: skip
    roles = ("A_sparse", "E", "B", "C")
    regions = [operands.as_region("gemm_sp", r, x) for r, x in zip(roles, (A_sparse, E, B, C), strict=True)]
    a, e, b, c = regions
    check_types("gemm_sp", a.dtype, b.dtype, c.dtype)
    if a.dtype not in ELEMENTS:
        legal = "types of 8, 16 and 32 bits other than float64"
        raise BadElementType(op="gemm_sp", role="A_sparse", found=a.dtype, legal=legal)
    if e.dtype not in METADATA:
        raise BadElementType(op="gemm_sp", role="E", found=e.dtype, legal=", ".join(METADATA))
    sparse_shape(regions, bool(transpose_A), bool(transpose_E), bool(transpose_B))
    attrs |= {GROUP: group_of(a.dtype), TYPES: [str(r.dtype) for r in regions]}
    clear = operands.scalar(clear_accum, DTYPES["bool"])
    operands.emit("gemm_sp", [*regions, clear], [c], attrs)


def group_of(dtype: DType) -> int:
    """Return the elements of K that one nibble of metadata describes."""
    return 2 if dtype.bits == 32 else 4


def e_factor(dtype: DType, metadata: DType) -> int:
    """Return the elements of K that one element of metadata describes."""
    return metadata.bits // 4 * group_of(dtype)


def sparse_shape(regions: list[Region], trans_a: bool, trans_e: bool, trans_b: bool) -> tuple[int, int, int]:
    """Check that the operands fit together and return (M, N, K).

    Raises
    ------
    SparseShape
        Naming the extent that does not fit, and the one that would.
    """
    for role, region in zip(("A_sparse", "E", "B", "C"), regions, strict=True):
        operands.static_shape("gemm_sp", role, region)
    (am, ah), (em, ek), (bn, bk), (m, n) = (
        reversed(matrix_extents("gemm_sp", r)) if swap else matrix_extents("gemm_sp", r)
        for r, swap in zip(regions, (trans_a, trans_e, not trans_b, False), strict=True)
    )
    factor = e_factor(regions[0].dtype, regions[1].dtype)
    rules = (
        ("K of B must be twice the stored columns of A_sparse", bk, 2 * ah),
        (f"columns of E, each of which describes {factor} elements of K = {2 * ah},", ek * factor, 2 * ah),
        ("M of E must be M of A_sparse", em, am),
        ("M of C must be M of A_sparse", m, am),
        ("N of C must be N of B", n, bn),
    )
    for rule, found, expected in rules:
        if found != expected:
            raise SparseShape(rule=rule, found=found, expected=expected, fix=_fix(2 * ah, factor, am))
    return m, n, bk


def _fix(k: int, factor: int, m: int) -> str:
    if k % factor:
        low = k // factor * factor
        near = f"{low} or {low + factor}" if low else str(factor)
        return f"choose K as a multiple of {factor} (nearest: {near}), or metadata of fewer bits"
    return f"for M={m}, K={k}: A_sparse ({m}, {k // 2}), E ({m}, {k // factor}), B ({k}, N), C ({m}, N)"


def nibble(e: View, transposed: bool, i: Expr, group: Expr) -> Expr:
    """Return the metadata of one group of row ``i`` as an ``int32`` expression."""
    bits = DTYPES[e.dtype].bits
    per = bits // 4
    word = nodes.load(e.buffer, matrix(e, transposed, i, tirx.floordiv(group, per)))
    shifted = tirx.shift_right(nodes.cast(word, "int32"), tirx.floormod(group, per) * 4)
    return tirx.bitwise_and(shifted, nodes.int_const(15))


def kept(group: int, code: Expr) -> list[Expr]:
    """Return the indices within a group that its metadata keeps."""
    first = tirx.bitwise_and(code, nodes.int_const(3))
    if group == 2:
        return [tirx.shift_right(first, nodes.int_const(1))]
    return [first, tirx.bitwise_and(tirx.shift_right(code, nodes.int_const(2)), nodes.int_const(3))]


def increasing(word: Expr) -> Expr:
    """Return metadata whose empty nibbles keep elements 0 and 1.

    A nibble is zero where a tail was padded, and where a compressor found nothing to keep; the kept values are zero
    there. The behaviour of the instructions is undefined if indices do not increase. The second of two increasing
    indices, in the upper half of the nibble, is never zero: its bits show whether a nibble is empty.
    """
    third = nodes.const(EMPTY, "uint32")  # bits of nibbles; where it is set in the word, it stays set
    upper = tirx.bitwise_and(tirx.shift_right(word, nodes.const(1, "uint32")), third)
    return tirx.bitwise_or(word, tirx.bitwise_xor(upper, third))


def meaning(call: OpCall) -> Stmt:
    """Return the reference semantics.

    C[i, j] = (clear ? 0 : C[i, j]) + the sum over groups g and kept indices x of A_sparse * B[group * g + x, j].
    """
    a, e, b, c, clear = call.args
    trans_a, trans_e, trans_b = (bool(call.attrs[TRANSPOSED[r]]) for r in "AEB")
    group = int(call.attrs[GROUP])
    stored = a.extents[a.matrix_dims()[0 if trans_a else 1]]
    per_group = 2 if group == 4 else 1
    acc = accumulator(c.dtype)

    def terms(total: BufferVar, i: Var, j: Var, g: Var) -> Stmt:
        code = nodes.fresh("code")
        steps = [tirx.Bind(code, nibble(e, trans_e, i, g))]
        for slot, index in enumerate(kept(group, code)):
            x = convert(nodes.load(a.buffer, matrix(a, trans_a, i, g * per_group + slot)), acc)
            y = convert(nodes.load(b.buffer, matrix(b, trans_b, g * group + index, j)), acc)
            steps.append(nodes.store(total, total[0] + x * y, [0]))
        return nodes.seq(steps)

    return accumulated(call, c, clear, ("g", stored // per_group), terms)


OP = TileOp("gemm_sp", reads=(0, 1, 2, 3), writes=(3,), meaning=meaning, slots=(0, 1, 2), accumulates=True)
