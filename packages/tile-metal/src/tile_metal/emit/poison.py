"""Poison for results of tensor operations whose lanes hold other elements than assumed.

A kernel checks once which elements its lanes hold (``matrices.lanes_name``). If they are others, accumulators become
NaN or the smallest integer: once behind the outermost statement in which only products read them.
"""

from __future__ import annotations

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Call, Stmt
from tile_core.ir import attributes, nodes
from tile_core.ir.calls import address, execute
from tile_core.ir.visit import StmtRewriter, collect
from tile_metal.emit.matrices import is_tensor_product, poison_name

__all__ = ["poison_unknown_lanes"]


def poison_unknown_lanes(body: Stmt) -> Stmt:
    """Return the statement with a poison behind the products of tensor operations."""
    return _PoisonOnce(body).stmt(body) if _products(body) else body


class _PoisonOnce(StmtRewriter):
    def __init__(self, body: Stmt) -> None:
        self.aliased = {v for s in collect(body, tirx.DeclBuffer) for v in collect(s.data, tirx.Var)}
        self.outside: set[tuple[BufferVar, str]] = set()

    def stmt(self, s: Stmt) -> Stmt:
        """Rewrite a statement, and poison the accumulators that nothing in it reads but products."""
        products = _products(s)
        if not products:
            return s
        own = {(_target(c), str(c.attrs[attributes.NAME])): c for c in products}
        mine = [key for key in own if key not in self.outside and self._is_last(key[0], s, products)]
        outer, self.outside = self.outside, self.outside.union(mine)
        new = super().stmt(s)
        self.outside = outer
        return nodes.seq([new, *(_poison(*key) for key in mine)]) if mine else new

    def _is_last(self, array: BufferVar, s: Stmt, products: list[Call]) -> bool:
        """Whether all of a statement's accesses of an array but stores are its products' accumulators."""
        if isinstance(s, tirx.Evaluate):
            return True
        reads = sum(x.source.same_as(array) for x in collect(s, ir.TensorLoad))
        declared = any(a.buffer.same_as(array) for a in collect(s, tirx.AllocBuffer))
        return not declared and array not in self.aliased and reads == sum(_target(c).same_as(array) for c in products)


def _products(s: Stmt) -> list[Call]:
    calls = (c for c in collect(s, ir.Call) if nodes.is_tile_call(c, "instruction"))
    return [c for c in calls if is_tensor_product(str(c.attrs[attributes.NAME]))]


def _target(call: Call) -> BufferVar:
    """Return the array with the accumulators of a product."""
    return call.args[0].args[0].source


def _poison(array: BufferVar, product: str) -> Stmt:
    count = nodes.shape_of(array)[0]
    return execute(poison_name(product), [address(array, [0], "rw"), count])
