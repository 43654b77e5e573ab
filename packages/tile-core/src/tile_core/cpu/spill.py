"""Spill bound values to scratch memory, which LLVM promotes back to registers.

TVM's code generator passes the value of every ``Let`` to its analyzer, which puts it wherever the name occurs and
walks the result as a tree. Where a select uses a name several times, three nested exponentials take half a
minute. It does not look into memory.
"""

from __future__ import annotations

from tile_core.compat import structural
from tile_core.compat.tvm import tirx, tvm_ffi
from tile_core.compat.types import BufferVar, Expr, Mutator, Stmt, Var
from tile_core.cpu.packing import registers
from tile_core.cpu.tile2d import ramp
from tile_core.ir import nodes
from tile_core.ir.visit import HoistingRewriter, StmtRewriter, collect
from tile_core.numerics.build import cast, constant, lanes_of, type_name

#: Names in the values of a vector's name, those of its own names counted too, above which it goes through memory.
_MOST_NAMES = 256


def spill(body: Stmt) -> Stmt:
    """Return the statement without ``Let``, except in the conditions of ``while``."""
    return _Spill().stmt(body) if collect(body, tirx.Let) else body


def spill_bindings(body: Stmt) -> Stmt:
    """Return the statement without ``Bind`` of scalars; short vectors of numbers keep theirs.

    Of ``x = x * x + y``, over and over, the last value has two to the power of the number of steps.
    """
    return _SpillBindings().stmt(body) if collect(body, tirx.Bind) else body


class _SpillBindings(StmtRewriter):
    def __init__(self) -> None:
        self.names: dict[Var, Expr] = {}
        self.sizes: dict[Var, int] = {}

    def expr(self, e: Expr) -> Expr:
        return structural.mapped(e, tirx.Var, lambda v: self.names.get(v, v)) if self.names else e

    def visit_Bind(self, s: Stmt) -> Stmt:
        value, kind = self.expr(s.value), type_name(s.value)
        size = sum(self.sizes.get(v, 1) for v in collect(value, tirx.Var))
        is_short = lanes_of(value) > 1 and size <= _MOST_NAMES and not _holds_bools(value)
        if is_short or not kind.startswith(("float", "int", "uint", "bool")):
            self.sizes[s.var] = size
            return tirx.Bind(s.var, value, s.span)
        allocation, buffer = registers(lanes_of(value), _stored_as(kind), s.var.name)
        store, self.names[s.var] = _through(buffer, value)
        return nodes.seq([allocation, store])


class _Spill(HoistingRewriter):
    def expr(self, e: Expr) -> Expr:
        if not collect(e, tirx.Let):
            return e
        names: dict[Var, Var] = {}

        def let(x: Expr, mutator: Mutator) -> Expr:
            if x.var not in names:
                names[x.var] = self.stored(x.var, mutator.mutate(x.value))
            return mutator.mutate(x.body)

        return tvm_ffi.structural_mutate(e, [(tirx.Let, let), (tirx.Var, lambda v, _: names.get(v, v))])

    def stored(self, var: Var, value: Expr) -> Expr:
        """Store a value to a buffer of its own and return its load."""
        shape, kind = (lanes_of(value),), _stored_as(type_name(value))
        buffer = tirx.decl_buffer(shape, kind, var.name, scope="local", layout=None, data_alignment=64)
        store, read = _through(buffer, value)
        self.before += [tirx.AllocBuffer(buffer), store]
        return read


def _holds_bools(value: Expr) -> bool:
    """Whether the analyzer may fail over a vector, as for bounds of a comparison.

    They are constants, which have no lanes for it.
    """
    return type_name(value) == "bool" or any(type_name(c.value) == "bool" for c in collect(value, tirx.Cast))


def _stored_as(kind: str) -> str:
    # Vectors of bools have no memory form: lanes would share bytes.
    return "int8" if kind == "bool" else kind


def _through(buffer: BufferVar, value: Expr) -> tuple[Stmt, Expr]:
    """Return the store of a value, and the expression that stands for it afterwards."""
    lanes = lanes_of(value)
    at = [ramp(0, lanes) if lanes > 1 else nodes.int_const(0)]
    load = tirx.BufferLoad(buffer, at)
    if type_name(value) != "bool":
        return tirx.BufferStore(buffer, value, at), load
    zero = constant(0, "int8", value)
    return tirx.BufferStore(buffer, cast("int8", value), at), tirx.NE(load, zero)
