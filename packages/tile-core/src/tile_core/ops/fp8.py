"""``T.fp8_scaled_matmul``: a product of 8-bit floats with scales, made of other tile ops.

Every target that has ``copy``, ``gemm`` and parallel loops has it. The accumulator is ``float32``; scales are applied
to accumulators, never to the 8-bit values.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tile_core.compat.types import Expr, Stmt, Var
from tile_core.dtypes import DTYPES, DType
from tile_core.dtypes import dtype as to_dtype
from tile_core.errors.ops import Fp8Operand, ScaleShape
from tile_core.ir import attributes, nodes
from tile_core.numerics.exprs import scaled_expr
from tile_core.ops import operands
from tile_core.ops.copy import copy
from tile_core.ops.fill import fill
from tile_core.ops.gemm import gemm, matrix_extents, matrix_shape
from tile_core.ops.view import view
from tile_core.values.allocation import allocate
from tile_core.values.builder import current
from tile_core.values.value import Buffer, Index, Region, Tile, Value

#: Types of A and B.
FORMATS = tuple(name for name, d in DTYPES.items() if d.is_fp8)
#: Types of scales.
SCALES = ("float32", "float16", "bfloat16", "float8_e8m0fnu")
_OUTPUTS = ("float32", "float16", "bfloat16")
#: Columns of A that are staged at a time when an operand is in global memory.
_CHUNK = 64
#: Columns of the longest blocks of scales that are staged whole.
_WHOLE = 128
#: Up to this many blocks of scales the loop over them is unrolled.
_UNROLLED = 64


def fp8_scaled_matmul(
    A: Tile,
    A_scale: Tile | float,
    B: Tile,
    B_scale: Tile | float,
    C: Tile,
    transpose_B: bool = False,
    *,
    A_format: str | None = None,
    B_format: str | None = None,
) -> None:
    """Multiply scaled 8-bit floats: ``C[i,j] = sum_k A[i,k] * B[k,j] * sA * sB``.

    Parameters
    ----------
    A
        Tile of shape (M, K) of an 8-bit float type, in any scope; or of ``uint8`` with ``A_format``.
    A_scale
        One scale (a tile of one element), one per row (M), or one per row and block of K, of shape (M, K / block).
    B
        Tile of shape (K, N), or (N, K) with ``transpose_B``; or of ``uint8`` with ``B_format``.
    B_scale
        One scale, one per column (N), or one per block of K and column: (K / block, N), or (N, K / block) with
        ``transpose_B``.
    C
        Destination of shape (M, N) of ``float32``, ``float16`` or ``bfloat16``.
    A_format, B_format
        The 8-bit float type that ``uint8`` storage holds.

    Raises
    ------
    Fp8Operand
        If A, B or C has another element type, or a format is missing. Also a ``TypeError``.
    ScaleShape
        If a scale has none of the shapes above, or both have blocks of different length.
    GemmShape, NotATile, RuntimeExtent
        If shapes do not fit together.

    Notes
    -----
    Accumulators are ``float32``. A scale of 0, Inf or NaN acts as in ``float32``: 0 times a finite value is 0, 0 times
    Inf is NaN. The product of two scales of ``float8_e8m0fnu`` is exact. The result is rounded once to the type of C.

    Examples
    --------
    >>> T.fp8_scaled_matmul(codes, scale, codes, scale, B, A_format="float8_e4m3fn", B_format="float8_e5m2")
    """
    transpose_B = operands.flag("fp8_scaled_matmul", "transpose_B", transpose_B)
    a = _operand("A", A, A_format)
    b = _operand("B", B, B_format)
    c = operands.as_region("fp8_scaled_matmul", "C", C)
    if c.dtype not in _OUTPUTS:
        raise Fp8Operand(role="C", found=c.dtype, legal=", ".join(_OUTPUTS))
    m, n, k = matrix_shape("fp8_scaled_matmul", [a, b, c], False, transpose_B)
    a_scale = _Scale("A_scale", A_scale, m, k, rows_first=True)
    b_scale = _Scale("B_scale", B_scale, n, k, rows_first=bool(transpose_B))
    _multiply((a, b, c), (a_scale, b_scale), (m, n, k), transpose_B)


def _multiply(
    tiles: tuple[Region, Region, Region], scales: tuple[_Scale, _Scale], sizes: tuple[int, int, int], transpose_B: bool
) -> None:
    (a, b, c), (a_scale, b_scale), (m, n, k) = tiles, scales, sizes
    total = allocate("alloc_fragment", (m, n), "float32", "local.fragment", "fragment")
    block = _block(a_scale, b_scale, k)
    if block is None:
        _product(a, b, total, k, transpose_B, clear=True)
        _finish(total, a_scale, b_scale, c, m, n)
        return
    _blocked_product(a, b, total, scales, (*sizes, block), transpose_B)
    copy(total, c)


class _Scale:
    """A scale operand: what it multiplies, and how to read it."""

    def __init__(self, role: str, x: Tile | float, length: int, k: int, *, rows_first: bool) -> None:
        region = operands.as_region("fp8_scaled_matmul", role, x)
        self.role, self.region, self.rows_first = role, region, rows_first
        if region.dtype not in SCALES:
            raise Fp8Operand(role=role, found=region.dtype, legal=", ".join(SCALES))
        shape = operands.static_shape("fp8_scaled_matmul", role, region)
        self.block: int | None = None
        if shape == (1,):
            self.kind = "tensor"
        elif shape == (length,):
            self.kind = "row"
        else:
            # Extents of 1 are left out, so a single row of blocks is a vector.
            full = (length, *shape) if length == 1 and rows_first else (*shape, length) if length == 1 else shape
            blocks = full[1 if rows_first else 0] if len(full) == 2 else 0
            if len(full) != 2 or full[0 if rows_first else 1] != length or k % blocks:
                blocked = f"({length}, K / block)" if rows_first else f"(K / block, {length})"
                raise ScaleShape(
                    op="fp8_scaled_matmul", role=role, found=shape, legal=f"(1,), ({length},) or {blocked} with K = {k}"
                )
            self.kind, self.block = "block", k // blocks
        self.length = length

    def at(self, i: Expr, block: Expr = 0) -> Expr:
        """Return the scale of row (or column) ``i`` as a ``float32`` expression."""
        from tile_core.ops.base import View

        view = View.of(self.region.ir())
        if self.kind == "tensor":
            index: list[Index] = [nodes.int_const(0)]
        elif self.kind == "row":
            index = [i]
        else:
            index = [block] if self.length == 1 else [i, block] if self.rows_first else [block, i]
        return nodes.cast(nodes.load(view.buffer, view.spread(index)), "float32")


def _operand(role: str, x: Tile, fmt: str | None) -> Region:
    region = operands.as_region("fp8_scaled_matmul", role, x)
    dtype: DType = region.dtype
    if fmt is not None and dtype != "uint8" and to_dtype(fmt) != dtype:
        raise Fp8Operand(
            role=f"{role}_format={to_dtype(fmt)}, but {role}", found=dtype, legal=f"leave {role}_format out"
        )
    if dtype == "uint8" and fmt is not None:
        dtype = to_dtype(fmt)
        if dtype in FORMATS:
            seen = view(region.buffer, dtype=dtype)
            return Region(seen, region.mins, region.extents, region.kept)
    if dtype not in FORMATS:
        legal = ", ".join(FORMATS) + (f", or uint8 with {role}_format=" if dtype == "uint8" else "")
        raise Fp8Operand(role=role, found=dtype, legal=legal)
    return region


def _block(a: _Scale, b: _Scale, k: int) -> int | None:
    """Return the length of the blocks of K, or ``None`` if no scale has any."""
    lengths = {s.block for s in (a, b) if s.block is not None}
    if len(lengths) > 1:
        found = " and ".join(f"{s.role} with blocks of {s.block}" for s in (a, b))
        raise ScaleShape(
            op="fp8_scaled_matmul",
            role="A_scale and B_scale",
            found=found,
            legal=f"blocks of one length that divides K = {k}",
        )
    return next(iter(lengths), None)


def _product(a: Region, b: Region, total: Buffer, k: int, trans_b: bool, *, clear: bool) -> None:
    """Emit ``total (+)= a @ b``, staging operands of global memory in chunks of K."""
    if "global" not in (a.scope, b.scope):
        gemm(a, b, total, False, trans_b, clear_accum=clear)
        return
    width = min(_CHUNK, k)
    tiles = _tiles(a, b, trans_b, width)
    count = k // width
    if count == 1:
        _staged_product(tiles, (a, b), 0, width, total, trans_b, clear)
    else:
        if clear:
            fill(total, 0)
        with _loop(count, "pipelined") as index:
            _staged_product(tiles, (a, b), index * width, width, total, trans_b, False)
    rest = k - count * width
    if rest:
        _staged_product(_tiles(a, b, trans_b, rest), (a, b), count * width, rest, total, trans_b, False)


def _tiles(a: Region, b: Region, trans_b: bool, width: int) -> list[Buffer | None]:
    """Return the tiles for parts along K of the operands in global memory."""
    found: list[Buffer | None] = []
    for region in (_columns(a, 1, 0, width), _columns(b, 1 if trans_b else 0, 0, width)):
        shape = matrix_extents("fp8_scaled_matmul", region)
        is_staged = region.scope == "global"
        found.append(allocate("alloc_shared", shape, region.dtype, "shared", "shared") if is_staged else None)
    return found


def _staged_product(
    tiles: list[Buffer | None], operands_: tuple[Region, Region], start: Index, width: int, total: Buffer,
    trans_b: bool, clear: bool,
) -> None:  # fmt: skip
    """Emit the copies and the product of a part along K."""
    parts: list[Buffer | Region] = []
    for region, tile, which in zip(operands_, tiles, (1, 1 if trans_b else 0), strict=True):
        part = _columns(region, which, start, width)
        if tile is not None:
            copy(part, tile)
        parts.append(part if tile is None else tile)
    left, right = parts
    gemm(left, right, total, False, trans_b, clear_accum=clear)


def _columns(region: Region, which: int, start: Index, width: int) -> Region:
    """Return a part of a matrix along its rows (0) or columns (1)."""
    from tile_core.ops.base import View
    from tile_core.values.value import add_index

    dim = View.of(region.ir()).matrix_dims()[which]
    mins, extents = list(region.mins), list(region.extents)
    mins[dim], extents[dim] = add_index(mins[dim], start), width
    return Region(region.buffer, mins, extents)


def _blocked_product(
    a: Region, b: Region, total: Buffer, scales: tuple[_Scale, _Scale], sizes: tuple[int, int, int, int], trans_b: bool
) -> None:
    """Emit one product per block of K, each scaled before it is added."""
    m, n, k, block = sizes
    partial = allocate("alloc_fragment", (m, n), "float32", "local.fragment", "fragment")
    tiles = _tiles(a, b, trans_b, block) if block <= _WHOLE else None

    def step(at: Expr, start: Index, first: bool) -> None:
        if tiles is None:
            left, right = _columns(a, 1, start, block), _columns(b, 1 if trans_b else 0, start, block)
            _product(left, right, partial, block, trans_b, clear=True)
        else:
            _staged_product(tiles, (a, b), start, block, partial, trans_b, True)

        def add(i: Var, j: Expr) -> Stmt:
            term = _scaled(partial.var[i, j], scales, (scales[0].at(i, at), scales[1].at(j, at)))
            return nodes.store(total.var, term if first else total.var[i, j] + term, [i, j])

        _emit(nodes.nest([m, n], add, "parallel", span=current().span()))

    count = k // block
    if "global" in (a.scope, b.scope):
        fill(total, 0)
        with _loop(count, "serial" if tiles is None else "pipelined") as index:
            step(index.expr, index * block, False)
        return
    unrolled = min(count, _UNROLLED)
    for at in range(unrolled):
        step(nodes.int_const(at), at * block, at == 0)
    if unrolled < count:
        with _loop(count - unrolled, "serial") as index:
            index_after = index + unrolled
            step(index_after.expr, index_after * block, False)


def _finish(total: Buffer, a: _Scale, b: _Scale, c: Region, m: int, n: int) -> None:
    """Emit ``c = total * scales``, converted once."""

    def scale(i: Expr, j: Expr) -> Stmt:
        return nodes.store(total.var, _scaled(total.var[i, j], (a, b), (a.at(i), b.at(j))), [i, j])

    _emit(nodes.nest([m, n], scale, "parallel", span=current().span()))
    copy(total, c)


def _scaled(value: Expr, scales: tuple[_Scale, _Scale], found: tuple[Expr, Expr]) -> Expr:
    """Return a value times two scales; powers of two multiply exactly, others in ``float32``."""
    powers = all(scale.region.dtype.mantissa == 0 for scale in scales)
    return scaled_expr(value, *found) if powers else value * (found[0] * found[1])


def _emit(statement: Stmt) -> None:
    current().emit(statement)


@contextmanager
def _loop(extent: int, kind: str) -> Iterator[Value]:
    builder = current()
    var = nodes.fresh(builder.unique("block"))
    scope = builder.push("loop")
    yield Value(var, DTYPES["int32"])
    notes = {attributes.NUM_STAGES: 2} if kind == "pipelined" else None
    builder.emit(nodes.for_loop(var, extent, builder.pop(scope), kind, annotations=notes, span=builder.span()))
