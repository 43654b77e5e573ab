"""Reductions of a tile along one dimension, and ``T.finalize_reducer``."""

from __future__ import annotations

from collections.abc import Mapping

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BinaryNode, Expr, Stmt, Var
from tile_core.dtypes import DTYPES, DType
from tile_core.errors.ops import BadAttribute, BadDestination, BadDim, BadElementType
from tile_core.ir import nodes
from tile_core.ir.attributes import CLEAR, DIM, HINTS, KIND, NAN_PROPAGATE, Attrs
from tile_core.ops import operands
from tile_core.ops.base import OpCall, TileOp
from tile_core.ops.copy import convert
from tile_core.values import checks
from tile_core.values.value import Region, Tile

KINDS = ("sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor", "prod", "any", "all")

#: Kinds that combine something else than the elements: their combination. Signs are dropped, or truth values taken.
_COMBINED_AS = {"abssum": "sum", "absmax": "max", "any": "bitor", "all": "bitand"}
#: Kinds of truth values.
_TRUTHS = ("any", "all")


def reduce_sum(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, **hints: object) -> None:
    """Sum a tile along a dimension: ``out[i] = sum_k buffer[i, k]``; ``clear=False`` adds to ``out``.

    Parameters
    ----------
    buffer
        Source tile, any scope and width.
    out
        Destination without the dimension, or with extent 1 there.
    dim
        The dimension to reduce; negative ones count from the end.
    clear
        Start from the neutral element instead of from ``out``.

    Raises
    ------
    BadDim, BadDestination, BadElementType, NotATile, RuntimeExtent
        If operands and dimension do not fit together.

    Notes
    -----
    The order of additions is not specified; ``float16`` and ``bfloat16`` accumulate in ``float32``, integers wrap.

    Examples
    --------
    >>> T.reduce_sum(F, v, dim=1)
    """
    _emit("sum", buffer, out, dim, clear, False, hints)


def reduce_max(
    buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, nan_propagate: bool = False, **hints: object
) -> None:
    """Largest element along a dimension; NaN is left out, or wins with ``nan_propagate`` (see ``reduce_sum``)."""
    _emit("max", buffer, out, dim, clear, nan_propagate, hints)


def reduce_min(
    buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, nan_propagate: bool = False, **hints: object
) -> None:
    """Smallest element along a dimension; NaN is left out, or wins with ``nan_propagate`` (see ``reduce_sum``)."""
    _emit("min", buffer, out, dim, clear, nan_propagate, hints)


def reduce_abssum(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, **hints: object) -> None:
    """Sum of absolute values along a dimension (see ``reduce_sum``)."""
    _emit("abssum", buffer, out, dim, clear, False, hints)


def reduce_absmax(
    buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, nan_propagate: bool = False, **hints: object
) -> None:
    """Largest absolute value along a dimension (see ``reduce_max``)."""
    _emit("absmax", buffer, out, dim, clear, nan_propagate, hints)


def reduce_bitand(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, **hints: object) -> None:
    """Bitwise and along a dimension of integers or bools (see ``reduce_sum``).

    Examples
    --------
    >>> T.reduce_bitand(n, n[0:1])
    """
    _emit("bitand", buffer, out, dim, clear, False, hints)


def reduce_bitor(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, **hints: object) -> None:
    """Bitwise or along a dimension of integers or bools (see ``reduce_sum``).

    Examples
    --------
    >>> T.reduce_bitor(n, n[0:1])
    """
    _emit("bitor", buffer, out, dim, clear, False, hints)


def reduce_bitxor(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, **hints: object) -> None:
    """Bitwise exclusive or along a dimension of integers or bools (see ``reduce_sum``).

    Examples
    --------
    >>> T.reduce_bitxor(n, n[0:1])
    """
    _emit("bitxor", buffer, out, dim, clear, False, hints)


def reduce_prod(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, **hints: object) -> None:
    """Product along a dimension, of no particular order; accumulates as ``reduce_sum`` does, which see.

    Examples
    --------
    >>> T.reduce_prod(F, v, dim=1)
    """
    _emit("prod", buffer, out, dim, clear, False, hints)


def reduce_any(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, **hints: object) -> None:
    """Whether any element along a dimension is non-zero: bool, or 1 and 0 of integers.

    A NaN is not zero, and -0 is zero. With ``clear=False`` the destination takes part, as one more element.

    Examples
    --------
    >>> T.reduce_any(F, n, dim=1)
    """
    _emit("any", buffer, out, dim, clear, False, hints)


def reduce_all(buffer: Tile, out: Tile, dim: int = -1, clear: bool = True, **hints: object) -> None:
    """Whether all elements along a dimension are non-zero: bool, or 1 and 0 of integers.

    See ``reduce_any``.
    """
    _emit("all", buffer, out, dim, clear, False, hints)


def reduce(buffer: Tile, out: Tile, kind: str, dim: int = -1, clear: bool = True, nan_propagate: bool = False) -> None:
    """Reduce with the kind given by name (``"sum"``, ``"max"``, …; see ``reduce_sum``).

    Examples
    --------
    >>> T.reduce(F, v, "max", dim=1)
    """
    if not isinstance(kind, str) or kind not in KINDS:
        raise BadAttribute(op="reduce", name="kind", found=operands.named(kind), legal=", ".join(KINDS))
    _emit(kind, buffer, out, dim, clear, nan_propagate, {})


def axis(op: str, region: Region, dim: int) -> int:
    """Return ``dim`` as a non-negative dimension of ``region.shape``.

    Raises
    ------
    BadDim
        If there is no such dimension.
    """
    rank = len(region.shape)
    if not isinstance(dim, int) or isinstance(dim, bool) or not -rank <= dim < rank:
        raise BadDim(op=op, found=dim, rank=rank, low=-rank, high=rank - 1)
    return dim % rank


def _emit(kind: str, src: Tile, dst: Tile, dim: int, clear: bool, nan: bool, hints: Mapping[str, object]) -> None:
    op = f"reduce_{kind}"
    flags: Attrs = {CLEAR: operands.flag(op, "clear", clear), NAN_PROPAGATE: operands.flag(op, "nan_propagate", nan)}
    known = checks.hints(op, hints, ("batch", "annotations"))
    source, out = operands.as_region(op, "src", src), operands.as_region(op, "dst", dst)
    check_types(op, kind, source.dtype, out.dtype)
    operands.static_shape(op, "src", source)
    found = operands.static_shape(op, "dst", out)
    at = axis(op, source, dim)
    shape = tuple(source.shape)
    expected = (*shape[:at], *shape[at + 1 :])
    if found != (tuple(e for e in expected if e != 1) or (1,)):
        keep = (*shape[:at], 1, *shape[at + 1 :])
        raise BadDestination(op=op, found=out.shape, src=shape, dim=dim, expected=expected or (1,), keep=keep)
    source = operands.apart(op, source, out, aligned=False)
    operands.emit("reduce", [source, out], [out], {KIND: kind, DIM: source.kept[at], **flags, HINTS: known})


def check_types(op: str, kind: str, src: DType, dst: DType) -> None:
    """Refuse element types that a kind does not reduce.

    Raises
    ------
    BadElementType
        With the legal ones.
    """
    if kind.startswith("bit"):
        for role, d in (("src", src), ("dst", dst)):
            if d.is_float:
                raise BadElementType(op=op, role=role, found=d, legal="integers and bool")
    if kind in _TRUTHS:
        if dst.is_float:
            raise BadElementType(op=op, role="dst", found=dst, legal="bool and integers: the results are truth values")
        return
    if src.is_float and not dst.is_float:
        raise BadElementType(op=op, role="dst", found=dst, legal="floating-point types, since src is one")
    if dst.is_narrow and kind not in ("max", "min", "absmax"):
        raise BadElementType(op=op, role="dst", found=dst, legal="types of 16 bits or more; max and min take all")
    if dst.is_reduced and not (kind in ("max", "min", "absmax") and operands.holds(dst, src)):
        legal = f"{dst.container}, which T.copy rounds to {dst}; max and min of types that {dst} holds take it"
        raise BadElementType(op=op, role="dst", found=dst, legal=legal)
    if dst == "bool" and kind in ("sum", "abssum", "prod"):
        raise BadElementType(op=op, role="dst", found=dst, legal="integers or floats")


def accumulator(dst: str) -> str:
    """Return the type in which a reduction into ``dst`` accumulates."""
    return "float32" if dst in ("float16", "bfloat16") or DTYPES[dst].is_narrow else dst


def neutral(kind: str, dtype: str) -> Expr:
    """Return the neutral element."""
    d = DTYPES[dtype]
    if kind in ("sum", "abssum", "bitor", "bitxor", "absmax", "any"):
        return nodes.zero(dtype)
    if kind in ("prod", "all"):
        return nodes.const(1, dtype)
    if kind == "bitand":
        return nodes.const(1 if d == "bool" else -1 if d.kind == "int" else 2**d.bits - 1, dtype)
    sign = -1 if kind == "max" else 1
    if d.is_float:
        return nodes.const(sign * float("inf"), dtype)
    if d == "bool":
        return nodes.const(kind == "min", dtype)
    low, high = (0, 2**d.bits - 1) if d.kind == "uint" else (-(2 ** (d.bits - 1)), 2 ** (d.bits - 1) - 1)
    return nodes.const(low if kind == "max" else high, dtype)


def combiner(kind: str, dtype: str, nan_propagate: bool) -> BinaryNode:
    """Return the function that combines an accumulator with a value that ``element`` returned."""
    from tile_core.numerics.extremes import extreme

    boolean = dtype == "bool"
    table: dict[str, BinaryNode] = {
        "sum": lambda a, b: a + b,
        "prod": lambda a, b: a * b,
        "max": lambda a, b: tirx.Or(a, b) if boolean else extreme("max", a, b, nan_propagate),
        "min": lambda a, b: tirx.And(a, b) if boolean else extreme("min", a, b, nan_propagate),
        "bitand": lambda a, b: tirx.And(a, b) if boolean else tirx.bitwise_and(a, b),
        "bitor": lambda a, b: tirx.Or(a, b) if boolean else tirx.bitwise_or(a, b),
        "bitxor": lambda a, b: tirx.NE(a, b) if boolean else tirx.bitwise_xor(a, b),
    }
    return table[combined_as(kind)]


def combined_as(kind: str) -> str:
    """Return the kind that combines what ``element`` returned for this one."""
    return _COMBINED_AS.get(kind, kind)


def absorber(kind: str, dtype: str) -> BinaryNode | None:
    """Return the short update of an accumulator, for kinds that have one; else ``None``.

    The accumulator starts at an infinity and so never becomes NaN, and every comparison with a NaN is false: a NaN is
    left out without a test for it.
    """
    from tile_core.numerics.build import absolute_bits, bind, bits_of, constant, equal, float_of, select, type_name
    from tile_runtime.numerics.formats import IEEE

    if kind == "absmax" and dtype in IEEE:
        return lambda total, x: select(x > total, x, total)
    if kind not in ("max", "min") or dtype not in IEEE:
        return None

    def absorb(x: Var, bits: Var, most: Var) -> Expr:
        # One instruction of vector units, but for zeros: where +0 is among the operands of a maximum, it has no sign.
        sign = constant(1 << (IEEE[dtype].bits - 1), type_name(bits), x)
        if kind == "max":
            return float_of(select(equal(bits, constant(0, type_name(bits), x)), absolute_bits(most), most))
        return float_of(select(equal(bits, sign), most | sign, most))

    def extreme(total: Var, x: Var) -> Expr:
        most = bits_of(select(x > total if kind == "max" else x < total, x, total))
        return bind(bits_of(x), lambda bits: bind(most, lambda m: absorb(x, bits, m)))

    return lambda total, x: bind(total, lambda t: bind(x, lambda y: extreme(t, y)))


def element(kind: str, value: Expr, dtype: str) -> Expr:
    """Return an element as reduced: converted, as a truth value, or without sign."""
    if kind in _TRUTHS:
        return convert(convert(value, "bool"), dtype)
    value = convert(value, dtype)
    return tirx.abs(value) if kind.startswith("abs") and not dtype.startswith(("uint", "bool")) else value


def before(kind: str, value: Expr, dtype: str) -> Expr:
    """Return the old value of a destination, which is one more operand without ``clear``."""
    return element(kind, value, dtype) if kind in _TRUTHS else convert(value, dtype)


def meaning(call: OpCall) -> Stmt:
    """Return the reference semantics.

    acc = neutral; for every k: acc = combine(acc, src[.., k, ..]); dst = acc, or combine(dst, acc).
    """
    src, dst = call.args
    kind, dim = str(call.attrs[KIND]), int(call.attrs[DIM])
    acc = accumulator(dst.dtype)
    combine = combiner(kind, acc, bool(call.attrs[NAN_PROPAGATE]))
    total, allocate = nodes.alloc([1], acc, "acc", "local")
    outer = [d for d, e in enumerate(src.extents) if e != 1 and d != dim]

    def body(*indices: Expr) -> Stmt:
        k = nodes.fresh("k")
        full: list[Expr] = [0] * len(src.extents)
        for d, i in zip(outer, indices, strict=False):
            full[d] = i
        full[dim] = k
        to = dst.spread(indices)
        first = neutral(kind, acc) if call.attrs[CLEAR] else before(kind, nodes.load(dst.buffer, to), acc)
        step = nodes.store(total, combine(total[0], element(kind, src.load(full), acc)), [0])
        return nodes.seq([
            allocate,
            nodes.store(total, first, [0]),
            nodes.for_loop(k, src.extents[dim], step),
            nodes.store(dst.buffer, convert(total[0], dst.dtype), to, call.span),
        ])  # fmt: skip

    return nodes.nest([src.extents[d] for d in outer] or [1], body, "parallel", span=call.span)


def _nothing(call: OpCall) -> Stmt:
    """Nothing: without threads the partial result is the result."""
    return nodes.seq([])


OP = TileOp("reduce", reads=(0, 1), writes=(1,), meaning=meaning, slots=(0,), accumulates=True)
FINALIZE = TileOp("finalize_reducer", reads=(0,), writes=(0,), meaning=_nothing)
