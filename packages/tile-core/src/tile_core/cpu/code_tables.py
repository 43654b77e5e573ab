"""Tables of functions of 4-bit integers: loops over weights look their elements up.

A dequantized weight depends on its code, and otherwise only on the scale of its group. Where a loop stores such 16-bit
elements, each run of a group computes the elements of all 16 codes; a permutation of a vector then reads the table.
"""

from __future__ import annotations

import functools
from collections import Counter
from math import prod

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.cpu.nibble_loads import nibble_bytes
from tile_core.cpu.packing import registers
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect, map_expr, role, substitute, uses_var
from tile_core.numerics.build import cast, constant, lanes_of, type_name

__all__ = ["is_table", "looked_up", "tabulate_codes"]

_CODES = 16
#: The least run for which a table pays, and the most that one table serves.
_LEAST, _MOST = 64, 1024


def tabulate_codes(body: Stmt) -> Stmt:
    """Return the body with tables in loops over elements of 4-bit integers."""
    return _TabulateCodes(Counter(collect(body, tirx.Var)), collect(body, ir.TensorLoad)).stmt(body)


def looked_up(e: Expr) -> Expr:
    """Return a vector load from a table as a permutation of its elements."""
    if not is_table(e.source) or len(e.indices) != 1 or type_name(e) not in ("uint16", "float16"):
        return e
    index, lanes = e.indices[0], lanes_of(e.indices[0])
    if lanes not in (_CODES, 2 * _CODES) or isinstance(index, (tirx.Ramp, tirx.Broadcast)):
        return e
    words = f"uint16x{lanes}"
    table = tirx.BufferLoad(e.source, [tirx.Ramp(nodes.int_const(0), nodes.int_const(1), _CODES)])
    table = tirx.reinterpret(f"uint16x{_CODES}", table)
    if lanes > _CODES:
        table = tirx.Shuffle([table, table], [nodes.int_const(i) for i in range(lanes)])
    name = f"llvm.x86.avx512.permvar.hi.{16 * lanes}"
    codes = _code_words(index)
    codes = cast("uint16", index) if codes is None else tirx.reinterpret(words, codes)
    return tirx.reinterpret(f"{type_name(e)}x{lanes}", tirx.call_llvm_pure_intrin(words, name, table, codes))


def is_table(buffer: BufferVar) -> bool:
    """Whether a buffer may be a table."""
    return nodes.shape_of(buffer) == [_CODES] and nodes.scope_of(buffer) == "local"


def _code_words(index: Expr) -> Expr | None:
    """Return words of two codes of bytes; their upper bits mean nothing."""
    if not isinstance(index, tirx.BitwiseAnd):
        return None
    code, mask = index.a, index.b
    if not isinstance(mask, tirx.Broadcast) or nodes.as_int(mask.value) != _CODES - 1:
        return None
    read = nibble_bytes(code.value) if isinstance(code, tirx.Cast) and isinstance(code.value, ir.Call) else None
    if read is None:
        return None
    wide = cast("uint32", read)
    return wide | (wide << constant(12, "uint32", wide))


class _TabulateCodes(StmtRewriter):
    def __init__(self, uses: Counter[Var], loads: list[Expr]) -> None:
        self.uses = uses
        self.loads = Counter(e.source for e in loads)
        self.analyzer = Analyzer()
        #: Tiles whose elements are read from a tensor instead.
        self.dropped: set[BufferVar] = set()

    def visit_SeqStmt(self, s: Stmt) -> Stmt:
        parts: list[Stmt] = list(s.seq)
        made: list[Stmt | None] = [self.stmt(x) for x in parts]
        for at, copy in enumerate(parts):
            store = self.copied(copy)
            user = next((i for i, x in enumerate(parts) if i > at and store and uses_var(x, store.buffer)), None)
            if store is None or user is None:
                continue
            new = made[user]
            if new is None or new.same_as(parts[user]) or _size(parts[user]) != _size(copy):
                continue
            made[user] = map_expr(new, functools.partial(_moved, store), ir.TensorLoad)
            made[at] = None
            self.dropped.add(store.buffer)
        return nodes.seq([x for x in made if x is not None and not self.is_dropped(x)])

    def is_dropped(self, s: Stmt) -> bool:
        """Whether a statement allocates a tile that nothing uses."""
        return type(s) is tirx.AllocBuffer and s.buffer in self.dropped

    def copied(self, s: Stmt) -> Stmt | None:
        """Return the store of a loop that copies 4-bit elements of a tensor.

        ``None`` unless all elements are in bounds, and the tile has one reader.
        """
        loops = []
        while type(s) is tirx.For and role(s) == "parallel":
            loops.append(s)
            s = s.body
        if not loops or not isinstance(s, tirx.BufferStore) or not isinstance(s.value, ir.TensorLoad):
            return None
        tile, source = s.buffer, s.value.source
        first = all(nodes.as_int(x.min) == 0 for x in loops)
        whole = first and [nodes.as_int(x.extent) for x in loops] == [n for n in nodes.shape_of(tile) if n != 1]
        varying = [i for i in s.indices if not isinstance(nodes.as_int(i), int)]
        if not whole or not all(i.same_as(x.loop_var) for i, x in zip(varying, loops, strict=False)):
            return None
        if len(varying) != len(loops) or nodes.dtype_of(s.value) not in ("int4", "uint4"):
            return None
        # Its allocation, this store and one load; a tensor that is only read.
        if self.uses[tile] != 3 or self.loads[tile] != 1 or self.uses[source] != self.loads[source]:
            return None
        return s if self.is_inside(s.value, loops) else None

    def is_inside(self, load: Expr, loops: list[Stmt]) -> bool:
        """Whether all elements that loops load are in a tensor."""
        for x in loops:
            self.analyzer.bind(x.loop_var, ir.Range.from_min_extent(x.min, x.extent), True)
        return all(map(self.is_below, load.indices, load.source.shape))

    def is_below(self, index: Expr, extent: Expr) -> bool:
        """Whether an index is provably in bounds.

        Extents may be symbols of 64 bits where indices have 32.
        """
        kind = nodes.dtype_of(index)
        if nodes.dtype_of(extent) != kind:
            known = nodes.as_int(extent)
            extent = nodes.int_const(known, kind) if isinstance(known, int) else nodes.cast(extent, "int64")
            index = index if isinstance(known, int) else nodes.cast(index, "int64")
        inside = (tirx.GE(index, nodes.int_const(0, nodes.dtype_of(index))), tirx.LT(index, extent))
        return all(map(self.analyzer.can_prove, inside))

    def visit_For(self, s: Stmt) -> Stmt:
        self.analyzer.bind(s.loop_var, ir.Range.from_min_extent(s.min, s.extent), True)
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


def _size(nest: Stmt) -> int:
    """Return how many iterations nested loops have; 0 if it is unknown."""
    extents = [nodes.as_int(x.extent) for x in collect(nest, tirx.For)]
    return prod(e if isinstance(e, int) else 0 for e in extents)


def _moved(store: Stmt, e: Expr) -> Expr:
    """Return the element of a tensor in place of its copy."""
    if not e.source.same_as(store.buffer):
        return e
    pairs = [(i, at) for i, at in zip(store.indices, e.indices, strict=True) if isinstance(i, tirx.Var)]
    return substitute(store.value, {i: nodes.cast(at, nodes.dtype_of(i)) for i, at in pairs})


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
