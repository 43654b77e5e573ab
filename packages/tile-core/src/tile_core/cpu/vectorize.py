"""Vector loops: the innermost data-parallel loop of a nest runs in lanes.

Iterations of these loops are independent by the language's rule, so vectorisation needs no proof, only a body that has
a vector form: stores with stride 1 in the loop variable, bindings, and loads of any stride. The remainder of an extent
that is not a multiple of the vector runs in halving vectors (15 = 8 + 4 + 2 + 1).
"""

from __future__ import annotations

from tile_core.analysis.affine import linear_form
from tile_core.compat.structural import identity
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Call, Expr, Stmt, Var
from tile_core.cpu.code_tables import is_table
from tile_core.cpu.guarded_vectors import decided
from tile_core.cpu.nibble_loads import halve
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.attributes import ROLE
from tile_core.ir.visit import StmtRewriter, collect, renamed, replace_for, role, statements, substitute, uses_var
from tile_core.simt.memory.alignment import factor

_PARALLEL = ("parallel", "vectorized")
#: Vectors that an iteration of a copy moves. LLVM makes calls of ``memcpy`` from loops that move one; for the rows of a
#: tile such a call costs more than the copy where the library uses string instructions.
_COPIED = 4


def vectorize(body: Stmt, vector_bits: int) -> Stmt:
    """Return the body with its innermost parallel loops vectorized to ``vector_bits``; 0 vectorizes none."""
    return _VectorizeLoops(vector_bits).stmt(body)


class _VectorizeLoops(StmtRewriter):
    def __init__(self, vector_bits: int) -> None:
        self.vector_bits = vector_bits
        self.divisors: dict[Var, int] = {}

    def visit_For(self, s: Stmt) -> Stmt:
        if role(s) not in _PARALLEL:
            return super().visit_For(s)
        if s.kind == tirx.ForKind.VECTORIZED:
            # The user's T.vectorized: TVM's own vectoriser takes the width as it is, and not every body or width.
            s = replace_for(s, s.body, kind=tirx.ForKind.SERIAL)
        if collect(s.body, tirx.For):
            return super().visit_For(s)
        extent = nodes.as_int(s.extent)
        if not self.vector_bits or not isinstance(extent, int) or extent < 2:
            return s
        if not has_vector_form(s):
            return self.guarded(s, extent, lanes_of(s, self.vector_bits))
        return _split(s, extent, lanes_of(s, self.vector_bits))

    def guarded(self, s: Stmt, extent: int, lanes: int) -> Stmt:
        """Return a loop whose vectors run in lanes where their conditions hold."""
        trips = extent // lanes
        if not trips:
            return s
        inner, outer = nodes.fresh(f"{s.loop_var.name}_v"), nodes.fresh(f"{s.loop_var.name}_o")
        first = s.min + outer * lanes
        body = substitute(s.body, {s.loop_var: first + inner})
        one = decided(nodes.for_loop(inner, lanes, body, span=s.span), lanes, self.divisors, has_vector_form)
        if one is None:
            return s
        vectors = nodes.for_loop(outer, trips, _InLanes().stmt(one), span=s.span)
        if trips * lanes == extent:
            return vectors
        rest = replace_for(s, s.body, min=s.min + trips * lanes, extent=nodes.int_const(extent - trips * lanes))
        return nodes.seq([vectors, renamed(rest)])

    def visit_Bind(self, s: Stmt) -> Stmt:
        """Record the divisor of a variable."""
        if nodes.dtype_of(s.var).startswith("int"):
            self.divisors[s.var] = factor(s.value, self.divisors)
        return s


def lanes_of(loop: Stmt, vector_bits: int) -> int:
    """Return how many elements of the widest type of a loop's body fill a vector."""
    widths = [DTYPES[nodes.element_type(st.buffer)].bits for st in collect(loop.body, tirx.BufferStore)]
    nodes_of_body = collect(loop.body, (ir.TensorLoad, tirx.Cast))
    looks = [n for n in nodes_of_body if isinstance(n, ir.TensorLoad) and is_table(n.source)]
    inside = {identity(c) for look in looks for i in look.indices for c in collect(i, tirx.Cast)}
    for node in nodes_of_body:
        if identity(node) not in inside and uses_var(node, loop.loop_var):
            widths.append(DTYPES[nodes.dtype_of(node)].bits)
    return max(2, vector_bits // max([8, *widths]))


class _InLanes(StmtRewriter):
    """Makes vectors of the loops over lanes that have a vector form."""

    def visit_For(self, s: Stmt) -> Stmt:
        if not has_vector_form(s):
            return s
        return replace_for(s, halve(s.body, s.loop_var), kind=tirx.ForKind.VECTORIZED, annotations={ROLE: "vectorized"})


def _split(loop: Stmt, extent: int, lanes: int) -> Stmt:
    parts, start = [], 0
    for count in (_COPIED, 1) if _is_copy(loop) else (1,):
        trips = (extent - start) // (lanes * count)
        if trips:
            parts.append(_vectors(loop, start, trips, lanes, count))
            start += trips * lanes * count
    width = lanes
    while start < extent:
        width //= 2
        if extent - start < width:
            continue
        inner = nodes.fresh(f"{loop.loop_var.name}_v")
        lane = inner if width > 1 else nodes.int_const(0)
        body = substitute(loop.body, {loop.loop_var: loop.min + start + lane})
        body = halve(body, inner) if width > 1 else body
        parts.append(nodes.for_loop(inner, width, body, "vectorized", span=loop.span) if width > 1 else body)
        start += width
    return nodes.seq([renamed(p) for p in parts])


def _vectors(loop: Stmt, start: int, trips: int, lanes: int, count: int) -> Stmt:
    """Return a loop of ``trips`` iterations from ``start`` on, each of ``count`` vectors."""
    outer = nodes.fresh(f"{loop.loop_var.name}_o")
    first = loop.min + start + (outer * (lanes * count) if trips > 1 else 0)

    def vector(at: int) -> Stmt:
        inner = nodes.fresh(f"{loop.loop_var.name}_v")
        body = halve(substitute(loop.body, {loop.loop_var: first + at * lanes + inner}), inner)
        return nodes.for_loop(inner, lanes, body, "vectorized", span=loop.span)

    body = nodes.seq([vector(at) for at in range(count)])
    return body if trips == 1 else nodes.for_loop(outer, trips, body, span=loop.span)


def _is_copy(loop: Stmt) -> bool:
    """Whether a loop only moves elements."""
    s = loop.body
    return isinstance(s, tirx.BufferStore) and isinstance(s.value, ir.TensorLoad)


def has_vector_form(loop: Stmt) -> bool:
    """Whether a loop's iterations can run in the lanes of vectors."""
    v = loop.loop_var
    varying = _varying(loop)
    # TVM takes the lanes of a statement one by one where a call has no vector form, but not what is bound around it.
    if len(varying) > 1 and any(not _has_lanes(call) for call in collect(loop.body, ir.Call)):
        return False
    written = set()
    for s in statements(loop.body):
        if isinstance(s, tirx.Bind):
            if not _pure(s.value, varying):
                return False
        elif isinstance(s, tirx.BufferStore):
            if not _unit_stride(list(s.indices), v, varying) or not _pure(s.value, varying):
                return False
            if nodes.scope_of(s.buffer) == "local.var" or nodes.element_type(s.buffer) == "bool":
                return False
            written.add(s.buffer)
        else:
            return False
    return bool(written)


def _unit_stride(indices: list[Expr], v: Var, varying: set[Var]) -> bool:
    if not indices:
        return False  # the element of a tensor of rank 0
    if any(collect(i, ir.TensorLoad) or any(x in varying for x in collect(i, tirx.Var)) for i in indices[:-1]):
        return False
    if any(x in varying and not x.same_as(v) for x in collect(indices[-1], tirx.Var)):
        return False
    form = linear_form(indices[-1], [v])
    return form is not None and form.steps == (1,)


def _varying(loop: Stmt) -> set[Var]:
    """Return the loop's variable and those bound to values that depend on it."""
    found, size = {loop.loop_var}, 0
    bindings = collect(loop.body, (tirx.Bind, tirx.Let))
    while size != len(found):
        size = len(found)
        found |= {b.var for b in bindings if any(x in found for x in collect(b.value, tirx.Var))}
    return found


def _pure(value: Expr, varying: set[Var]) -> bool:
    for call in collect(value, ir.Call):
        name = nodes.operator_name(call)
        if not name or name in _IMPURE or (name.startswith("tile.") and not name.startswith(_HIDDEN)):
            return False
        if name == "if_then_else" and any(x in varying for x in collect(call.args[0], tirx.Var)):
            return False
    # Lanes of bool and of packed elements have no memory form here. Loops over bools need none: LLVM makes vectors of
    # them that are as fast as those of the same loops over bytes.
    types = [nodes.element_type(x.source) for x in collect(value, ir.TensorLoad)]
    return all(DTYPES[t].bits >= 8 and t != "bool" for t in types)


def _has_lanes(call: Call) -> bool:
    """Whether TVM vectorizes a call; operators that are not TVM's become arithmetic."""
    name = str(getattr(call.op, "name", ""))
    return not name.startswith("tirx.") or name in _LANES or bool(call.op.get_attr("TVectorizable"))


#: Functions that have a vector form although TVM does not mark them.
_LANES = ("tirx.reinterpret", "tirx.call_llvm_pure_intrin")
#: Arithmetic operators.
_HIDDEN = ("tile.float_", "tile.wrapping_")
_IMPURE = ("tvm_call_packed", "call_extern", "address_of")
