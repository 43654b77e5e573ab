"""Atomic updates, loads and stores of elements and tiles.

Every block of a launch may update the same memory; an atomic update happens as a whole. A scalar atomic inside a
``T.Parallel`` loop happens once per iteration; in a kernel that names its threads, once per thread; otherwise once per
block.
"""

from __future__ import annotations

from tile_core.compat.types import Expr, Stmt, Var
from tile_core.dtypes import DType
from tile_core.errors.ops import AlignmentRule, BadAttribute, BadElementType, NotAnElement, OutsideLaunch
from tile_core.ir import nodes
from tile_core.ir.attributes import KIND, ORDER, VECTOR_WIDTH, Attrs
from tile_core.ops import operands
from tile_core.ops.base import OpCall, TileOp, View
from tile_core.ops.copy import convert
from tile_core.ops.reduce import combiner
from tile_core.values import checks
from tile_core.values.value import Region, Scalar, Tile, Value

#: Updates of single bits.
BITS = ("and", "or", "xor")
#: How the new value follows from the old one: the reduction that does the same.
COMBINED_AS = {"add": "sum", **{kind: f"bit{kind}" for kind in BITS}}
ORDERS = ("relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst")
_LOAD_ORDERS = ("relaxed", "consume", "acquire", "seq_cst")
_STORE_ORDERS = ("relaxed", "release", "seq_cst")


def atomic_add(
    dst: Tile, value: Scalar | Tile, memory_order: str | None = None, return_prev: bool = False, **hints: object
) -> Value | None:
    """Add atomically: ``dst += value``.

    Parameters
    ----------
    dst
        An element, or a tile (then ``value`` is a tile of its shape, or a scalar for all elements).
    value
        Converted to the element type of ``dst``.
    memory_order
        One of ``relaxed consume acquire release acq_rel seq_cst`` (default ``relaxed``).
    return_prev
        Return the element's previous value (elements only).

    Raises
    ------
    NotAnElement, BadElementType, BadAttribute, ShapesDiffer
        If the operands do not fit.

    Examples
    --------
    >>> T.atomic_add(n[0], 1)
    """
    checks.hints("atomic_add", hints, ("use_tma", "annotations"))
    return _update("add", dst, value, memory_order, return_prev)


def atomic_max(
    dst: Tile, value: Scalar | Tile, memory_order: str | None = None, return_prev: bool = False
) -> Value | None:
    """Atomically replace ``dst`` by the larger of it and ``value``, ignoring NaN.

    See ``atomic_add``.
    """
    return _update("max", dst, value, memory_order, return_prev)


def atomic_min(
    dst: Tile, value: Scalar | Tile, memory_order: str | None = None, return_prev: bool = False
) -> Value | None:
    """Atomically replace ``dst`` by the smaller of it and ``value``, ignoring NaN.

    See ``atomic_add``.
    """
    return _update("min", dst, value, memory_order, return_prev)


def atomic_and(
    dst: Tile, value: Scalar | Tile, memory_order: str | None = None, return_prev: bool = False
) -> Value | None:
    """Atomically keep the bits of ``dst`` that ``value`` has too; of integers (see ``atomic_add``)."""
    return _update("and", dst, value, memory_order, return_prev)


def atomic_or(
    dst: Tile, value: Scalar | Tile, memory_order: str | None = None, return_prev: bool = False
) -> Value | None:
    """Atomically set the bits of ``dst`` that ``value`` has; of integers (see ``atomic_add``)."""
    return _update("or", dst, value, memory_order, return_prev)


def atomic_xor(
    dst: Tile, value: Scalar | Tile, memory_order: str | None = None, return_prev: bool = False
) -> Value | None:
    """Atomically turn the bits of ``dst`` that ``value`` has; of integers (see ``atomic_add``)."""
    return _update("xor", dst, value, memory_order, return_prev)


def atomic_addx2(dst: Tile, value: Tile, return_prev: bool = False) -> None:
    """Add two adjacent elements, each atomically: ``dst[..., i + l] += value[..., j + l]``.

    Examples
    --------
    >>> T.atomic_addx2(scale[0:2], v[0:2])
    """
    _update_vector(2, dst, value, return_prev)


def atomic_addx4(dst: Tile, value: Tile, return_prev: bool = False) -> None:
    """Add four adjacent elements (see ``atomic_addx2``).

    Examples
    --------
    >>> T.atomic_addx4(scale[0:4], v[0:4])
    """
    _update_vector(4, dst, value, return_prev)


def atomic_load(src: Tile, memory_order: str | None = None) -> Value:
    """Load an element atomically.

    Parameters
    ----------
    src
        An element.
    memory_order
        One of ``relaxed consume acquire seq_cst`` (default ``relaxed``, which every target has). A load that waits for
        data of another block needs ``acquire``.

    Raises
    ------
    NotAnElement, BadElementType, BadAttribute
        If the operands do not fit.

    Examples
    --------
    >>> first = T.atomic_load(n[0], memory_order="relaxed")
    """
    order = _check_order("atomic_load", memory_order, _LOAD_ORDERS)
    region = _element("atomic_load", src)
    return _bind("atomic_load", region, [], {ORDER: order}, [])


def atomic_store(dst: Tile, value: Scalar, memory_order: str | None = None) -> None:
    """Store an element atomically.

    Parameters
    ----------
    dst
        An element.
    value
        Converted to the element type of ``dst``.
    memory_order
        One of ``relaxed release seq_cst`` (default ``relaxed``, which every target has). A store that makes
        earlier writes visible to another block needs ``release``.

    Raises
    ------
    NotAnElement, BadElementType, BadAttribute
        If the operands do not fit.

    Examples
    --------
    >>> T.atomic_store(n[0], 1, memory_order="relaxed")
    """
    order = _check_order("atomic_store", memory_order, _STORE_ORDERS)
    region = _element("atomic_store", dst)
    value = operands.scalar(value, region.dtype)
    operands.emit("atomic_store", [region, value], [region], {ORDER: order})


def _update(kind: str, dst: Tile, value: Scalar | Tile, order: str | None, return_prev: bool) -> Value | None:
    op = f"atomic_{kind}"
    order = _check_order(op, order, ORDERS)
    return_prev = operands.flag(op, "return_prev", return_prev)
    region = operands.as_region(op, "dst", dst)
    check_types(op, kind, region.dtype)
    attrs: Attrs = {KIND: kind, ORDER: order}
    tile = _tile_operand(value)
    if tile is not None:
        region, source = _tiles(op, dst, region, value)
        if source is not None:
            operands.same_shape(op, ("dst", "value"), region, source)
            if return_prev:
                raise NotAnElement(op=f"{op}(return_prev=True)", found="a tile")
            operands.emit("atomic_tile", [region, operands.apart(op, source, region)], [region], attrs)
            return None
        if not isinstance(value, Value):
            part = operands.as_region(op, "value", value)
            value = part.buffer[tuple(part.mins)]
    shape = operands.static_shape(op, "dst", region)
    scalar = operands.scalar(value, region.dtype)
    if shape != (1,):
        if return_prev:
            raise NotAnElement(op=f"{op}(return_prev=True)", found="a tile")
        operands.emit("atomic_fill", [region, scalar], [region], attrs)
        return None
    if return_prev:
        return _bind("atomic", region, [scalar], attrs, [region])
    operands.emit("atomic", [region, scalar], [region], attrs)
    return None


def _tiles(op: str, dst: Tile, region: Region, value: Scalar | Tile) -> tuple[Region, Region | None]:
    """Return both sides as tiles: an element beside a tile is its corner."""
    if isinstance(value, Value):
        if operands.static_shape(op, "dst", region) == (1,):
            return region, None
        return region, operands.as_region(op, "value", value, like=region)
    source = operands.as_region(op, "value", value)
    size = operands.static_shape(op, "value", source)
    if isinstance(dst, Value):
        return operands.as_region(op, "dst", dst, like=source), source
    if size == (1,) and operands.static_shape(op, "dst", region) != (1,):
        return region, None
    return region, source


def _tile_operand(value: Scalar | Tile) -> Tile | None:
    from tile_core.values.value import Buffer

    if isinstance(value, Region) or (isinstance(value, Buffer) and value.scope != "local.var"):
        return value
    if isinstance(value, Value) and value.element is not None and value.element[0].scope != "local.var":
        return value
    return None


def _update_vector(width: int, dst: Tile, value: Tile, return_prev: bool) -> None:
    op = f"atomic_addx{width}"
    if operands.flag(op, "return_prev", return_prev):
        raise BadAttribute(op=op, name="return_prev", found=True, legal="False; use T.atomic_add per element")
    regions = []
    for role, x in (("dst", dst), ("value", value)):
        region = operands.as_region(op, role, x)
        if not region.mins:
            raise BadAttribute(
                op=op, name=role, found=region.buffer.name, legal="an element of a buffer with dimensions"
            )
        if region.is_empty:
            return  # an empty tile
        last = region.mins[-1]
        if isinstance(last, int) and last % width and role == "dst":
            raise AlignmentRule(op=op, found=last, width=width)
        regions.append(Region(region.buffer, region.mins, [*([1] * (len(region.mins) - 1)), width]))
    check_types(op, "add", regions[0].dtype)
    operands.emit("atomic_tile", regions, [regions[0]], {KIND: "add", ORDER: "relaxed", VECTOR_WIDTH: width})


def _bind(op: str, region: Region, values: list[Value], attrs: Attrs, writes: list[Region]) -> Value:
    from tile_core.values.builder import current

    builder = current(f"T.{op}")
    if builder.threads is None:
        raise OutsideLaunch(op=op)
    builder.materialise([r.buffer.var for r in writes])
    args = [region.ir(), *(v.expr for v in values)]
    call = nodes.tile_call(
        op, args, operands.in_region(op, attrs, builder.level), ret=nodes.element_type(region.buffer.var)
    )
    return Value(builder.bind("prev", call), region.dtype)


def _element(op: str, x: object) -> Region:
    region = operands.as_region(op, "operand", x)
    if operands.static_shape(op, "operand", region) != (1,):
        raise NotAnElement(op=op, found=repr(region))
    check_types(op, "", region.dtype)
    return region


def check_types(op: str, kind: str, dtype: DType) -> None:
    """Refuse an element type that a kind of update, or another access, cannot take atomically.

    Raises
    ------
    BadElementType
        With the legal ones.
    """
    if not dtype.is_computed or dtype.bits < 8 or dtype == "bool":
        raise BadElementType(op=op, role="dst", found=dtype, legal="integers of 8 to 64 bits, floats of 16 to 64 bits")
    if kind in BITS and dtype.is_float:
        raise BadElementType(op=op, role="dst", found=dtype, legal="integers of 8 to 64 bits")


def _check_order(op: str, order: str | None, legal: tuple[str, ...]) -> str:
    if order is None:
        return "relaxed"
    if not isinstance(order, str) or order not in legal:
        raise BadAttribute(op=op, name="memory_order", found=operands.named(order), legal=", ".join(legal))
    return order


def combine(kind: str, dtype: str, old: Expr, value: Expr) -> Expr:
    """Return the new value of an element; 16-bit floats are combined in ``float32``."""
    wide = "float32" if dtype in ("float16", "bfloat16") else dtype
    function = combiner(COMBINED_AS.get(kind, kind), wide, False)
    return convert(function(nodes.cast(old, wide), nodes.cast(value, wide)), dtype)


def _element_meaning(call: OpCall) -> Stmt:
    """dst = combine(dst, value)."""
    dst, value = call.args
    at = dst.at([0] * len(dst.extents))
    return _step(call, dst, at, value)


def _tile_meaning(call: OpCall) -> Stmt:
    """For every index: dst = combine(dst, value of that index)."""
    dst, src = call.args

    def body(*indices: Var) -> Stmt:
        return _step(call, dst, dst.spread(indices), nodes.load(src.buffer, src.spread(indices)))

    return nodes.nest(dst.shape, body, "serial", span=call.span)


def _fill_meaning(call: OpCall) -> Stmt:
    """For every index: dst = combine(dst, value)."""
    dst, value = call.args
    return nodes.nest(dst.shape, lambda *i: _step(call, dst, dst.spread(i), value), "serial", span=call.span)


def _step(call: OpCall, dst: View, at: list[Expr], value: Expr) -> Stmt:
    old = nodes.load(dst.buffer, at)
    new = combine(str(call.attrs[KIND]), dst.dtype, old, convert(value, dst.dtype))
    return nodes.store(dst.buffer, new, at, call.span)


def _load_meaning(call: OpCall) -> Stmt:
    """Nothing besides the load itself, which becomes the result."""
    return nodes.seq([])


def _store_meaning(call: OpCall) -> Stmt:
    """dst = value."""
    dst, value = call.args
    return nodes.store(dst.buffer, convert(value, dst.dtype), dst.at([0] * len(dst.extents)), call.span)


OP = TileOp("atomic", reads=(0,), writes=(0,), meaning=_element_meaning, per_thread=True)
TILE = TileOp("atomic_tile", reads=(0, 1), writes=(0,), meaning=_tile_meaning, slots=(1,))
FILL = TileOp("atomic_fill", reads=(0,), writes=(0,), meaning=_fill_meaning, per_thread=True)
LOAD = TileOp("atomic_load", reads=(0,), writes=(), meaning=_load_meaning, per_thread=True)
STORE = TileOp("atomic_store", reads=(), writes=(0,), meaning=_store_meaning, per_thread=True)
