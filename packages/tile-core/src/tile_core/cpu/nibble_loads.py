"""Vector loads of packed elements: each loaded byte goes to two lanes.

An element ``i`` of a packed row is a nibble of byte ``i // 2``, chosen by ``i % 2``. Vectors of such an index are loads
of one byte per lane, unless the first lane is known to be even: then the bytes of a vector are contiguous and the
shifts are constants. ``halve`` rewrites both indices to expose this, before loops become vectors; ``load_pairs`` makes
the loads, after.
"""

from __future__ import annotations

from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import Call, Expr, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import map_expr, uses_var
from tile_core.numerics.build import as_type, cast, constant, lanes_of, type_name
from tile_core.numerics.exprs import int4_expr

_NIBBLE = f"{nodes.FLOAT_PREFIX}nibble_"


def nibble(byte: Expr, parity: Expr, dtype: str) -> Call:
    """Return a call for the element in a byte, by its parity."""
    storage = "int8" if dtype == "int4" else "uint8"
    return ir.Call(nodes.register_scalar_op(f"{_NIBBLE}{dtype}"), [byte, parity], ret_ty=as_type(storage, byte))


def nibble_bytes(e: Expr) -> Expr | None:
    """Return the consecutive bytes of such a call in lanes, else ``None``."""
    if not nodes.operator_name(e).startswith(_NIBBLE):
        return None
    pairs = e.args[0]
    if not isinstance(pairs, tirx.Shuffle) or len(pairs.vectors) != 2:
        return None
    if not tvm_ffi.structural_equal(*pairs.vectors, map_free_vars=False):
        return None
    whole = [nodes.as_int(i) for i in pairs.indices] == [lane // 2 for lane in range(lanes_of(e))]
    return pairs.vectors[0] if whole else None


def lower_nibbles(body: Stmt) -> Stmt:
    """Return the statement with arithmetic in place of these calls."""

    def lowered(e: Call) -> Expr:
        name = nodes.operator_name(e)
        if not name.startswith(_NIBBLE):
            return e
        byte, parity = e.args
        code = (byte >> (cast("uint8", parity) * constant(4, "uint8", byte))) & constant(15, "uint8", byte)
        return int4_expr(code, name.removeprefix(_NIBBLE), in_bytes=True)

    return map_expr(body, lowered, ir.Call)


def halve(body: Stmt, lane: Var) -> Stmt:
    """Return the body with an even ``base`` taken out of ``(base + lane) // 2``."""

    def quotient(e: Expr) -> Expr:
        base = _even_base(e, lane)
        if base is None:
            return e
        half = tirx.FloorDiv(lane, nodes.int_const(2, nodes.dtype_of(lane)))
        return half if nodes.as_int(base) == 0 else _half_of(base) + cast(nodes.dtype_of(base), half)

    def remainder(e: Expr) -> Expr:
        if _even_base(e, lane) is None:
            return e
        return cast(nodes.dtype_of(e), tirx.FloorMod(lane, nodes.int_const(2, nodes.dtype_of(lane))))

    body = structural.mapped(body, tirx.FloorMod, remainder)
    return structural.mapped(body, tirx.FloorDiv, quotient)


def load_pairs(e: Expr) -> Expr:
    """Return a vector load that reads each byte twice as one of half the size."""
    if len(e.indices) != 1 or lanes_of(e.indices[0]) < 2:
        return e
    start, lanes = _pairs_from(e.indices[0]), lanes_of(e.indices[0])
    if start is None:
        return e
    if lanes == 2:
        return tirx.Broadcast(tirx.BufferLoad(e.source, [start], e.span), 2)
    one = nodes.int_const(1, nodes.dtype_of(start))
    loaded = tirx.BufferLoad(e.source, [tirx.Ramp(start, one, lanes // 2)], e.span)
    # TVM takes no more indices than there are lanes.
    return tirx.Shuffle([loaded, loaded], [nodes.int_const(i // 2) for i in range(lanes)])


def _even_base(e: Expr, lane: Var) -> Expr | None:
    """Return an even ``base`` of ``(base + lane) // 2`` or ``% 2``, if any."""
    if nodes.as_int(e.b) != 2 or not uses_var(e.a, lane):
        return None
    rest: list[Expr] = []
    found = 0
    terms = [e.a]
    while terms:
        term = terms.pop()
        if isinstance(term, tirx.Add):
            terms += [term.a, term.b]
        elif term.same_as(lane):
            found += 1
        elif uses_var(term, lane) or not _is_even(term):
            return None
        else:
            rest.append(term)
    if found != 1:
        return None
    base: Expr = nodes.int_const(0, nodes.dtype_of(e.a))
    for term in rest:
        base = term if nodes.as_int(base) == 0 else base + term
    return base


def _is_even(e: Expr) -> bool:
    value = nodes.as_int(e)
    if isinstance(value, int):
        return value % 2 == 0
    if isinstance(e, (tirx.Add, tirx.Sub)):
        return _is_even(e.a) and _is_even(e.b)
    if isinstance(e, tirx.Mul):
        return _is_even(e.a) or _is_even(e.b)
    return isinstance(e, tirx.Cast) and nodes.dtype_of(e.value).startswith("int") and _is_even(e.value)


def _half_of(e: Expr) -> Expr:
    value = nodes.as_int(e)
    kind = nodes.dtype_of(e)
    return nodes.int_const(value // 2, kind) if isinstance(value, int) else tirx.FloorDiv(e, nodes.int_const(2, kind))


def _pairs_from(index: Expr) -> Expr | None:
    """Return ``start`` of an index ``start + ramp(0, 1) // 2``, else ``None``."""
    if isinstance(index, tirx.Cast):
        start = _pairs_from(index.value)
        return None if start is None else cast(type_name(index), start)
    if isinstance(index, tirx.Add):
        for part, other in ((index.a, index.b), (index.b, index.a)):
            start = _pairs_from(part) if isinstance(other, tirx.Broadcast) else None
            if start is not None:
                return other.value if nodes.as_int(start) == 0 else start + other.value
        return None
    if not isinstance(index, tirx.FloorDiv) or not isinstance(index.a, tirx.Ramp):
        return None
    by = index.b.value if isinstance(index.b, tirx.Broadcast) else None
    ramp = index.a
    if nodes.as_int(by) != 2 or nodes.as_int(ramp.base) != 0 or nodes.as_int(ramp.stride) != 1:
        return None
    return nodes.int_const(0, nodes.dtype_of(ramp.base)) if lanes_of(index) % 2 == 0 else None
