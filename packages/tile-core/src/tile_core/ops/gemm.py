"""``T.gemm``: the dense matrix product of tiles."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.dtypes import DTYPES, DType
from tile_core.errors.ops import BadAttribute, GemmShape, GemmTypes
from tile_core.ir import attributes, nodes
from tile_core.ops import operands
from tile_core.ops.base import OpCall, TileOp, View
from tile_core.ops.copy import convert
from tile_core.values import checks
from tile_core.values.value import Region, Scalar, Tile


class GemmWarpPolicy(enum.IntEnum):
    """The partition of a product over warps: square, along rows, or along columns.

    Examples
    --------
    >>> T.gemm(H, H, F, policy=T.GemmWarpPolicy.FullRow)
    """

    Square = 0
    FullRow = 1
    FullCol = 2


def gemm(
    A: Tile,
    B: Tile,
    C: Tile,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: Scalar = False,
    k_pack: int = 1,
    wg_wait: int = 0,
    *,
    variant: str | None = None,
    **hints: object,
) -> None:
    """Multiply tiles: ``C += A @ B``, or ``C = A @ B`` with ``clear_accum``.

    Parameters
    ----------
    A
        Tile of shape (M, K), or (K, M) with ``transpose_A``.
    B
        Tile of shape (K, N), or (N, K) with ``transpose_B``.
    C
        Accumulator tile of shape (M, N) in a fragment or in shared memory.
    policy, k_pack, wg_wait
        Scheduling hints; they never change the result.
    clear_accum
        A bool or a runtime ``bool``: start from zero instead of ``C``.
    variant
        Name of the lowering variant to force.

    Raises
    ------
    GemmShape, GemmTypes, NotATile, RuntimeExtent
        If shapes or element types do not fit together.

    Notes
    -----
    Products and accumulators are computed in the element type of ``C`` or wider, in any order. Types: floats of any
    width (mixed too) into ``float16``, ``bfloat16``, ``float32`` or ``float64``; integers (signs mixed too) into
    integers of 32 or 64 bits, which wrap. ``float64`` inputs need a ``float64`` accumulator.

    Examples
    --------
    >>> T.gemm(H, H, F, transpose_B=True)
    """
    attrs = arguments(
        "gemm", {"A": transpose_A, "B": transpose_B}, policy=policy, k_pack=k_pack, wg_wait=wg_wait, variant=variant,
        hints=hints,
    )  # fmt: skip
    regions = [operands.as_region("gemm", r, x) for r, x in (("A", A), ("B", B), ("C", C))]
    check_types("gemm", *(r.dtype for r in regions))
    matrix_shape("gemm", regions, transpose_A, transpose_B)
    attrs[attributes.TYPES] = [str(r.dtype) for r in regions]
    regions[:2] = [operands.apart("gemm", r, regions[2], aligned=False) for r in regions[:2]]
    clear = operands.scalar(clear_accum, DTYPES["bool"])
    operands.emit("gemm", [*regions, clear], [regions[2]], attrs)


def arguments(
    op: str,
    transposes: Mapping[str, bool],
    *,
    policy: GemmWarpPolicy | int,
    k_pack: int,
    wg_wait: int,
    variant: str | None,
    hints: Mapping[str, object],
) -> attributes.AttrDict:
    """Return the compile-time arguments of a product as the attributes of its call.

    Raises
    ------
    BadAttribute
        If one is of the wrong type or out of range.
    """
    if variant is not None and not isinstance(variant, str):
        raise BadAttribute(op=op, name="variant", found=operands.named(variant), legal="the name of a variant")
    turned = {attributes.TRANSPOSED[r]: x for r, x in transposes.items()}
    attrs: attributes.AttrDict = {key: operands.flag(op, key, x) for key, x in turned.items()}
    attrs[attributes.POLICY] = operands.integer(op, "policy", policy, 0, max(GemmWarpPolicy))
    attrs[attributes.K_PACK] = operands.integer(op, "k_pack", k_pack, 1, 2)
    attrs[attributes.WG_WAIT] = operands.integer(op, "wg_wait", wg_wait, -1)
    attrs[attributes.HINTS] = checks.hints(op, hints, ("mbar", "annotations"))
    return attrs if variant is None else {**attrs, attributes.VARIANT: variant}


def check_types(op: str, a: DType, b: DType, c: DType) -> None:
    """Refuse element types that no product combines.

    Raises
    ------
    GemmTypes
        With the accumulators that would be legal.
    """
    if a.is_float and b.is_float:
        wide = "float64" in (a, b)
        legal = ["float64"] if wide else ["float32", "float16", "bfloat16", "float64"]
    elif a.is_integer and b.is_integer:
        bits = max(a.bits, b.bits)
        legal = [d for d in ("int32", "int64", "uint32", "uint64") if DTYPES[d].bits >= bits]
    else:
        remedy = "multiply floats by floats or integers by integers; cast one side while copying"
        raise GemmTypes(op=op, a=a, b=b, c=c, legal=remedy)
    if c not in legal or not (a.has_zero and b.has_zero):
        raise GemmTypes(op=op, a=a, b=b, c=c, legal=f"use an accumulator of type {', '.join(legal)}")


def matrix_shape(op: str, regions: list[Region], trans_a: bool, trans_b: bool) -> tuple[int, int, int]:
    """Check that A, B and C fit together and return (M, N, K)."""
    for role, r in zip("ABC", regions, strict=True):
        operands.static_shape(op, role, r)
    return fitting(op, [matrix_extents(op, r) for r in regions], trans_a, trans_b)


def fitting(op: str, extents: list[tuple[int, int]], trans_a: bool, trans_b: bool) -> tuple[int, int, int]:
    """Check that matrices of these rows and columns fit together and return (M, N, K).

    Raises
    ------
    GemmShape
        Naming the extent that does not fit.
    """
    (ar, ac), (br, bc), (m, n) = extents
    am, ak = (ac, ar) if trans_a else (ar, ac)
    bk, bn = (bc, br) if trans_b else (br, bc)
    for what, found, expected in (
        ("K of B against K of A", bk, ak),
        ("M of C against M of A", m, am),
        ("N of C against N of B", n, bn),
    ):
        if found != expected:
            want_a, want_b = ("(K, M)" if trans_a else "(M, K)"), ("(N, K)" if trans_b else "(K, N)")
            raise GemmShape(
                op=op, what=what, found=found, expected=expected, a=(ar, ac), b=(br, bc), c=(m, n),
                trans_a=bool(trans_a), trans_b=bool(trans_b), want_a=want_a, want_b=want_b, want_c="(M, N)",
            )  # fmt: skip
    return m, n, ak


def matrix_extents(op: str, region: Region) -> tuple[int, int]:
    """Return the rows and columns of a matrix operand.

    Raises
    ------
    BadAttribute
        If it is not one matrix.
    """
    view = View.of(region.ir())
    if len(view.extents) < 2:
        raise BadAttribute(op=op, name="operand", found=region.buffer.name, legal="tiles of at least two dimensions")
    rows, cols = view.matrix_dims()
    if any(e != 1 for d, e in enumerate(view.extents) if d not in (rows, cols)):
        raise BadAttribute(
            op=op, name="operand", found=region.buffer.name, legal="one matrix: slice batches to extent 1"
        )
    return view.extents[rows], view.extents[cols]


def matrix(view: View, transposed: bool, i: Expr, j: Expr) -> list[Expr]:
    """Return buffer indices of element (i, j) of a matrix operand."""
    rows, cols = view.matrix_dims()
    full: list[Expr] = [0] * len(view.extents)
    full[rows], full[cols] = (j, i) if transposed else (i, j)
    return view.at(full)


def meaning(call: OpCall) -> Stmt:
    """Return the reference semantics.

    C[i, j] = (clear ? 0 : C[i, j]) + the sum over k of A[i, k] * B[k, j].
    """
    a, b, c, clear = call.args[:4]
    trans_a, trans_b = bool(call.attrs[attributes.TRANSPOSE_A]), bool(call.attrs[attributes.TRANSPOSE_B])
    extent = a.extents[a.matrix_dims()[0 if trans_a else 1]]
    acc = accumulator(c.dtype)

    def term(total: BufferVar, i: Var, j: Var, k: Var) -> Stmt:
        x = convert(nodes.load(a.buffer, matrix(a, trans_a, i, k)), acc)
        y = convert(nodes.load(b.buffer, matrix(b, trans_b, k, j)), acc)
        return nodes.store(total, total[0] + x * y, [0])

    return accumulated(call, c, clear, ("k", extent), term)


def accumulator(dtype: str) -> str:
    """Return the element type in which the elements of a product are added up."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def accumulated(
    call: OpCall,
    c: View,
    clear: Expr,
    depth: tuple[str, Expr],
    terms: Callable[[BufferVar, Var, Var, Var], Stmt],
    scratch: Sequence[Stmt] = (),
) -> Stmt:
    """Return the loops that add to each element of C, or to zero.

    Parameters
    ----------
    depth
        Name and extent of the loop around ``terms``.
    terms
        From the total, an element's row and column, and the loop's variable to what adds to the total.
    scratch
        Allocations for ``terms``.
    """
    acc = accumulator(c.dtype)
    total, allocate = nodes.alloc([1], acc, "sum", "local")
    rows, cols = c.matrix_dims()

    def body(i: Var, j: Var) -> Stmt:
        at, k = matrix(c, False, i, j), nodes.fresh(depth[0])
        start = tirx.if_then_else(clear, nodes.zero(acc), nodes.cast(nodes.load(c.buffer, at), acc))
        return nodes.seq([
            allocate,
            *scratch,
            nodes.store(total, start, [0]),
            nodes.for_loop(k, depth[1], terms(total, i, j, k)),
            nodes.store(c.buffer, convert(total[0], c.dtype), at, call.span),
        ])  # fmt: skip

    return nodes.nest([c.extents[rows], c.extents[cols]], body, "parallel", span=call.span)


OP = TileOp("gemm", reads=(0, 1, 2), writes=(2,), meaning=meaning, slots=(0, 1), accumulates=True)
