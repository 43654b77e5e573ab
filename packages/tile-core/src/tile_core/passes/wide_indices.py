"""Widens indices with factors so large that TVM's 32-bit analyses of them overflow."""

from __future__ import annotations

from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Mutator, Stmt
from tile_core.ir import nodes
from tile_core.ir.visit import collect

#: The least factor for which an index is computed in 64 bits.
LARGE = 1 << 20
_LINEAR = (tirx.Add, tirx.Sub, tirx.Mul)


def widen_indices(body: Stmt) -> Stmt:
    """Return the statement with 64-bit indices where a 32-bit factor reaches ``LARGE``."""

    def load(e: Expr, mutator: Mutator) -> Expr:
        new = mutator.default_mutate(e)
        indices = [_widened(i) for i in new.indices]
        same = all(a.same_as(b) for a, b in zip(indices, new.indices, strict=True))
        return new if same else nodes.load(new.source, indices, new.span)

    def store(s: Stmt, mutator: Mutator) -> Stmt:
        new = mutator.default_mutate(s)
        indices = [_widened(i) for i in new.indices]
        same = all(a.same_as(b) for a, b in zip(indices, new.indices, strict=True))
        return new if same else tirx.BufferStore(new.buffer, new.value, indices, new.span)

    if not any(_is_large(m) for m in collect(body, tirx.Mul)):
        return body
    return structural.mutated(body, [(ir.TensorLoad, load), (tirx.BufferStore, store)])


def _is_large(m: Expr) -> bool:
    if nodes.dtype_of(m) != "int32":
        return False
    return any(isinstance(x, tirx.IntImm) and abs(int(x.value)) >= LARGE for x in (m.a, m.b))


def _widened(index: Expr) -> Expr:
    return wide_index(index) if any(_is_large(m) for m in collect(index, tirx.Mul)) else index


def wide_index(e: Expr) -> Expr:
    """Return a 32-bit index computed in 64 bits."""
    if isinstance(e, tirx.IntImm):
        return tirx.IntImm("int64", int(e.value))
    if isinstance(e, _LINEAR) and nodes.dtype_of(e) == "int32":
        return type(e)(wide_index(e.a), wide_index(e.b), e.span)
    return e if nodes.dtype_of(e) == "int64" else tirx.Cast("int64", e)
