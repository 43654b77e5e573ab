"""Spill bound values to scratch memory, which LLVM turns back into registers.

TVM's code generator tells its analyzer the value of every ``Let``; the analyzer puts it wherever the name occurs and
walks the result as a tree. Where a select uses a name several times, three nested exponentials take half a
minute. It does not look into memory.
"""

from __future__ import annotations

from tile_core.compat import structural
from tile_core.compat.tvm import tirx, tvm_ffi
from tile_core.compat.types import Expr, Mutator, Stmt, Var
from tile_core.cpu.packing import registers
from tile_core.cpu.tile2d import ramp
from tile_core.ir import nodes
from tile_core.ir.visit import HoistingRewriter, StmtRewriter, collect
from tile_core.numerics.build import lanes_of, type_name

#: Names in the values of a vector's name, those of its own names counted too, above which it goes through memory.
_MOST_NAMES = 256


def spill(body: Stmt) -> Stmt:
    """Return the statement without ``Let``, except of bools and pointers and in the conditions of ``while``."""
    return _Spill().stmt(body) if collect(body, tirx.Let) else body


def spill_bindings(body: Stmt) -> Stmt:
    """Return the statement without ``Bind`` of numbers; vectors keep theirs while few names stand in their values.

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
        value, lanes = self.expr(s.value), lanes_of(s.value)
        size = sum(self.sizes.get(v, 1) for v in collect(value, tirx.Var))
        is_number = type_name(value).startswith(("float", "int", "uint"))
        if not is_number or (lanes > 1 and size <= _MOST_NAMES):
            self.sizes[s.var] = size
            return tirx.Bind(s.var, value, s.span)
        allocation, buffer = registers(lanes, type_name(value), s.var.name)
        at = [ramp(0, lanes) if lanes > 1 else nodes.int_const(0)]
        self.names[s.var] = tirx.BufferLoad(buffer, at)
        return nodes.seq([allocation, tirx.BufferStore(buffer, value, at)])


class _Spill(HoistingRewriter):
    def expr(self, e: Expr) -> Expr:
        if not collect(e, tirx.Let):
            return e
        names: dict[Var, Var] = {}

        def let(x: Expr, mutator: Mutator) -> Expr:
            if not type_name(x.value).startswith(("float", "int", "uint")):
                return mutator.default_mutate(x)
            if x.var not in names:
                names[x.var] = self.stored(x.var, mutator.mutate(x.value))
            return mutator.mutate(x.body)

        return tvm_ffi.structural_mutate(e, [(tirx.Let, let), (tirx.Var, lambda v, _: names.get(v, v))])

    def stored(self, var: Var, value: Expr) -> Expr:
        """Put a value into a buffer of its own and return a load of it."""
        lanes = lanes_of(value)
        buffer = tirx.decl_buffer((lanes,), type_name(value), var.name, scope="local", layout=None, data_alignment=64)
        at = [ramp(0, lanes) if lanes > 1 else nodes.int_const(0)]
        self.before += [tirx.AllocBuffer(buffer), tirx.BufferStore(buffer, value, at)]
        return tirx.BufferLoad(buffer, at)
