"""``T.gemm_scaled``: the product of narrow floats with a scale for each block along K.

The formats of the MX specification (OCP Microscaling Formats 1.0): MXFP8 and MXFP4 have a power of two
(``float8_e8m0fnu``) for 32 elements; NVFP4 has an unsigned ``float8_e4m3fn`` for 16 elements of ``float4_e2m1fn``.
"""

from __future__ import annotations

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.dtypes import DTYPES, DType
from tile_core.dtypes import dtype as to_dtype
from tile_core.errors.ops import BadElementType, GemmTypes, ScaleShape
from tile_core.ir import nodes
from tile_core.ir.attributes import BLOCK, TRANSPOSE_A, TRANSPOSE_B, TYPES, AttrDict
from tile_core.numerics.exprs import decode_expr, nibble_expr, scaled_expr
from tile_core.ops import operands
from tile_core.ops.base import OpCall, TileOp, View
from tile_core.ops.copy import convert
from tile_core.ops.gemm import GemmWarpPolicy, accumulated, arguments, fitting, matrix, matrix_extents
from tile_core.values.value import Region, Scalar, Tile

#: Types of A and B.
ELEMENTS = tuple(name for name, d in DTYPES.items() if d.is_narrow and d.has_zero)
#: Types of scales.
SCALES = ("float8_e8m0fnu", "float8_e4m3fn")
_TOTALS = ("float32", "float16", "bfloat16")


def gemm_scaled(
    A: Tile,
    A_scale: Tile,
    B: Tile,
    B_scale: Tile,
    C: Tile,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: Scalar = False,
    *,
    A_format: str | None = None,
    B_format: str | None = None,
    variant: str | None = None,
    **hints: object,
) -> None:
    """Multiply tiles with block scales: ``C += (A * A_scale) @ (B * B_scale)``.

    Parameters
    ----------
    A
        Tile of shape (M, K), or (K, M) with ``transpose_A``, of 8-bit floats, ``float4_e2m1fn``, or ``A_format``.
    A_scale
        Tile of shape (M, K / block), or (K / block, M) with ``transpose_A``, of ``float8_e8m0fnu`` or
        ``float8_e4m3fn``: element (i, b) multiplies the elements b * block to (b + 1) * block - 1 of row i of A.
    B
        Tile of shape (K, N), or (N, K) with ``transpose_B``, of such a type.
    B_scale
        Tile of shape (K / block, N), or (N, K / block) with ``transpose_B``, of the type and the block of ``A_scale``.
    C
        Accumulator tile of shape (M, N) of ``float32``, ``float16`` or ``bfloat16``.
    policy, clear_accum, variant
        As for ``T.gemm``.
    A_format, B_format
        The type of elements that ``uint8`` holds. Two of ``float4_e2m1fn`` share a byte along the last dimension, the
        first in its low half.

    Raises
    ------
    ScaleShape
        If the scales have no such shape, or blocks of different length, or K is no multiple of a block.
    BadElementType, GemmTypes, GemmShape, NotATile, RuntimeExtent
        If element types or shapes do not fit.

    Notes
    -----
    A scale is a magnitude: its sign does not count. A NaN scale makes the results of its row or column NaN.
    Accumulators are ``float32`` or wider, added in any order. The product of two scales is exact, beyond ``float32``.

    Examples
    --------
    >>> x, s = T.alloc_shared((64, 64), "float8_e4m3fn"), T.alloc_shared((64, 2), "float8_e8m0fnu")
    >>> T.copy(A, x)
    >>> T.fill(s, 0.5)
    >>> T.gemm_scaled(x, s, x, s, F, transpose_B=True)  # a scale for 32 elements
    """
    turned, fixed = {"A": transpose_A, "B": transpose_B}, {"k_pack": 1, "wg_wait": 0}
    attrs = arguments("gemm_scaled", turned, policy=policy, variant=variant, hints=hints, **fixed)
    tiles = {"A": A, "A_scale": A_scale, "B": B, "B_scale": B_scale, "C": C}
    _emit(tiles, (A_format, B_format), (bool(transpose_A), bool(transpose_B)), clear_accum, attrs)


def _emit(
    tiles: dict[str, Tile], given: tuple[str | None, str | None], turned: tuple[bool, bool], clear_accum: Scalar,
    attrs: AttrDict,
) -> None:  # fmt: skip
    regions = [operands.as_region("gemm_scaled", role, x) for role, x in tiles.items()]
    formats = [_format(role, regions[n], name) for role, n, name in zip("AB", (0, 2), given, strict=True)]
    attrs[BLOCK] = _checked(regions, formats, not turned[0], turned[1])
    attrs[TYPES] = [str(d) for d in (formats[0], regions[1].dtype, formats[1], regions[3].dtype, regions[4].dtype)]
    for n in range(4):
        regions[n] = operands.apart("gemm_scaled", regions[n], regions[4], aligned=False)
    clear = operands.scalar(clear_accum, DTYPES["bool"])
    operands.emit("gemm_scaled", [*regions, clear], [regions[4]], attrs)


def _format(role: str, region: Region, given: str | None) -> DType:
    """Return the type of the elements of A or B."""
    found: DType = region.dtype
    if given is not None and (found == "uint8" or to_dtype(given) == found):
        found = to_dtype(given)
    elif given is not None:
        legal = f"uint8, or leave {role}_format out"
        raise BadElementType(op="gemm_scaled", role=f"with {role}_format={given}, {role}", found=found, legal=legal)
    if found not in ELEMENTS:
        legal = ", ".join(ELEMENTS) + (f", or uint8 with {role}_format=" if region.dtype == "uint8" else "")
        raise BadElementType(op="gemm_scaled", role=role, found=found, legal=legal)
    return found


def is_packed(storage: str, dtype: str) -> bool:
    """Whether a tile of a storage type holds two elements in a byte."""
    return storage == "uint8" and DTYPES[dtype].is_packed


def _checked(regions: list[Region], formats: list[DType], a_along: bool, b_along: bool) -> int:
    """Return the length of a block if types and shapes fit."""
    a, a_scale, b, b_scale, c = regions
    for role, region, legal in (("A_scale", a_scale, SCALES), ("B_scale", b_scale, (str(a_scale.dtype),))):
        if region.dtype not in legal:
            raise BadElementType(op="gemm_scaled", role=role, found=region.dtype, legal=", ".join(legal))
    if c.dtype not in _TOTALS:
        wanted = f"use an accumulator of type {', '.join(_TOTALS)}"
        raise GemmTypes(op="gemm_scaled", a=formats[0], b=formats[1], c=c.dtype, legal=wanted)
    extents = []
    for role, region, dtype in (("A", a, formats[0]), ("B", b, formats[1]), ("C", c, c.dtype)):
        operands.static_shape("gemm_scaled", role, region)
        rows, columns = matrix_extents("gemm_scaled", region)
        extents.append((rows, columns * 2 if is_packed(region.dtype, dtype) else columns))
    m, n, k = fitting("gemm_scaled", extents, not a_along, b_along)
    return _block((a_scale, b_scale), (m, n), k, (a_along, b_along))


def _block(scales: tuple[Region, Region], lines: tuple[int, int], k: int, along: tuple[bool, bool]) -> int:
    """Return the length of a block.

    Parameters
    ----------
    scales
        Those of A and of B.
    lines
        Rows of A and columns of B.
    along
        Whether the last dimension of the scales is that of blocks.

    Raises
    ------
    ScaleShape
        If there is none.
    """
    found = []
    for role, region, length, last in zip(("A_scale", "B_scale"), scales, lines, along, strict=True):
        operands.static_shape("gemm_scaled", role, region)
        shape = matrix_extents("gemm_scaled", region)
        mine, blocks = shape if last else shape[::-1]
        if mine != length or k % blocks:
            legal = f"({length}, K / block)" if last else f"(K / block, {length})"
            least = next(b for b in range(min(blocks, k), 0, -1) if k % b == 0)
            near = (length, least) if last else (least, length)
            raise ScaleShape(op="gemm_scaled", role=role, found=shape, legal=f"{legal} with K = {k}, such as {near}")
        found.append(k // blocks)
    if found[0] != found[1]:
        both = f"blocks of {found[0]} and of {found[1]}"
        legal = f"blocks of one length, such as {found[0]} elements of K = {k} for both"
        raise ScaleShape(op="gemm_scaled", role="A_scale and B_scale", found=both, legal=legal)
    return found[0]


def element(view: View, turned: bool, dtype: str, line: Expr, k: Expr) -> Expr:
    """Return an element of A, or of B with ``turned`` exchanged, as ``float32``."""
    if view.dtype != "uint8":
        return convert(nodes.load(view.buffer, matrix(view, turned, line, k)), "float32")
    if not DTYPES[dtype].is_packed:
        return decode_expr(nodes.load(view.buffer, matrix(view, turned, line, k)), dtype)
    two = nodes.int_const(2)
    coordinates = (tirx.floordiv(line, two), k) if turned else (line, tirx.floordiv(k, two))
    return decode_expr(
        nibble_expr(nodes.load(view.buffer, matrix(view, turned, *coordinates)), line if turned else k), dtype
    )


def scale_of(view: View, turned: bool, line: Expr, block: Expr) -> Expr:
    """Return a scale as ``float32``: its magnitude."""
    value = nodes.cast(nodes.load(view.buffer, matrix(view, turned, line, block)), "float32")
    if view.dtype == "float8_e8m0fnu":
        return value
    return tirx.if_then_else(value < nodes.zero("float32"), -value, value)


def scaled(value: Expr, scales: tuple[Expr, Expr], dtype: str) -> Expr:
    """Return a ``float32`` times two scales, which overflows only if the result does."""
    if dtype == "float8_e8m0fnu":
        return scaled_expr(value, *scales)
    return value * (scales[0] * scales[1])


def meaning(call: OpCall) -> Stmt:
    """Return the reference semantics.

    C[i, j] = (clear ? 0 : C[i, j]) + the sum over blocks b of (the sum of A * B in b) * A_scale * B_scale.
    """
    a, a_scale, b, b_scale, c, clear = call.args[:6]
    trans_a, trans_b, block = (int(call.attrs[n]) for n in (TRANSPOSE_A, TRANSPOSE_B, BLOCK))
    a_type, b_type = str(call.attrs[TYPES][0]), str(call.attrs[TYPES][2])
    extent = a.extents[a.matrix_dims()[0 if trans_a else 1]]
    extent *= 2 if is_packed(a.dtype, a_type) and not trans_a else 1
    part, new_part = nodes.alloc([1], "float32", "part", "local")

    def term(i: Var, j: Var, k: Expr) -> Stmt:
        x = element(a, bool(trans_a), a_type, i, k)
        y = element(b, not trans_b, b_type, j, k)
        return nodes.store(part, part[0] + x * y, [0])

    def one_block(total: BufferVar, i: Var, j: Var, at: Var) -> Stmt:
        k = nodes.fresh("k")
        scales = scale_of(a_scale, bool(trans_a), i, at), scale_of(b_scale, not trans_b, j, at)
        return nodes.seq([
            nodes.store(part, nodes.zero("float32"), [0]),
            nodes.for_loop(k, block, term(i, j, at * block + k)),
            nodes.store(total, total[0] + scaled(part[0], scales, a_scale.dtype), [0]),
        ])  # fmt: skip

    return accumulated(call, c, clear, ("block", extent // block), one_block, [new_part])


OP = TileOp("gemm_scaled", reads=(0, 1, 2, 3, 4), writes=(4,), meaning=meaning, slots=(0, 1, 2, 3), accumulates=True)
