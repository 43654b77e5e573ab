"""Tables of functions of 4-bit integers: loops over weights look their elements up.

A dequantized weight depends on its code, and otherwise only on the scale of its group. Where a loop stores such 16-bit
elements, each run of a group computes the elements of all 16 codes; a permutation of a vector then reads the table.
"""

from __future__ import annotations

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.cpu.packing import registers
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect, map_expr, role, substitute, uses_var
from tile_core.numerics.build import cast, lanes_of, type_name

__all__ = ["looked_up", "tabulate_codes"]

_CODES = 16
#: The least run for which a table pays, and the most that one table serves.
_LEAST, _MOST = 64, 1024


def tabulate_codes(body: Stmt) -> Stmt:
    """Return the body with tables in loops over elements of 4-bit integers."""
    return _TabulateCodes().stmt(body)


def looked_up(e: Expr) -> Expr:
    """Return a vector load from a table as a permutation of its elements."""
    if nodes.shape_of(e.source) != [_CODES] or nodes.scope_of(e.source) != "local" or len(e.indices) != 1:
        return e
    index = e.indices[0]
    if lanes_of(index) != _CODES or isinstance(index, (tirx.Ramp, tirx.Broadcast)):
        return e
    vector, words = f"{type_name(e)}x{_CODES}", f"uint16x{_CODES}"
    if type_name(e) not in ("uint16", "float16"):
        return e
    table = tirx.BufferLoad(e.source, [tirx.Ramp(nodes.int_const(0), nodes.int_const(1), _CODES)])
    codes = (tirx.reinterpret(words, table), cast("uint16", index))
    return tirx.reinterpret(vector, tirx.call_llvm_pure_intrin(words, "llvm.x86.avx512.permvar.hi.256", *codes))


class _TabulateCodes(StmtRewriter):
    def visit_For(self, s: Stmt) -> Stmt:
        store, extent = s.body, nodes.as_int(s.extent)
        if role(s) != "parallel" or not isinstance(store, tirx.BufferStore) or not isinstance(extent, int):
            return super().visit_For(s)
        if nodes.element_type(store.buffer) not in ("bfloat16", "float16"):
            return s
        loads = [e for e in collect(store.value, ir.TensorLoad) if nodes.dtype_of(e) in ("int4", "uint4")]
        loads = [e for e in loads if uses_var(e, s.loop_var)]
        if len(loads) != 1:
            return s
        sizes = (n for n in range(min(extent, _MOST), _LEAST - 1, -1) if extent % n == 0)
        return next((new for n in sizes if (new := _tabulated(s, loads[0], n)) is not None), s)


def _tabulated(s: Stmt, load: Expr, size: int) -> Stmt | None:
    """Return a loop with a table for each ``size`` iterations.

    ``None`` if elements depend on more of the iteration than their codes.
    """
    dtype = nodes.dtype_of(s.loop_var)
    run, lane, code = nodes.fresh("run", dtype), nodes.fresh(s.loop_var.name, dtype), nodes.fresh("code")
    own = tirx.Cast(nodes.dtype_of(load), code)
    element = map_expr(s.body.value, lambda e: own if e.same_as(load) else e, ir.TensorLoad)
    at = s.min + run * nodes.int_const(size, dtype)
    analyzer = Analyzer()
    analyzer.bind(lane, ir.Range.from_min_extent(nodes.int_const(0, dtype), nodes.int_const(size, dtype)), True)

    def uniform(e: Expr) -> Expr:
        indices = [analyzer.simplify(i) for i in e.indices]
        return tirx.BufferLoad(e.source, indices, e.span)

    element = map_expr(substitute(element, {s.loop_var: at + lane}), uniform, ir.TensorLoad)
    if uses_var(element, lane):
        return None
    allocation, table = registers(_CODES, nodes.element_type(s.body.buffer), "table")
    fill = nodes.for_loop(code, _CODES, tirx.BufferStore(table, element, [code]), "parallel", span=s.span)
    index = cast("int32", load) & nodes.int_const(_CODES - 1)
    found = tirx.BufferStore(s.body.buffer, tirx.BufferLoad(table, [index]), s.body.indices, s.body.span)
    look = nodes.for_loop(lane, size, substitute(found, {s.loop_var: at + lane}), "parallel", span=s.span)
    steps = nodes.seq([allocation, fill, look])
    return nodes.for_loop(run, nodes.int_const(int(nodes.as_int(s.extent)) // size, dtype), steps, span=s.span)
