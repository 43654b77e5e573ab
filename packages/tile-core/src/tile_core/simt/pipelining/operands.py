"""Operands that products read directly from global memory, without a copy to shared memory.

Shared memory is faster if many threads read an element that one of them loaded, or if it transposes a tile. If the
lanes of an instruction read runs of a row, and few groups of lanes read the same elements, the caches are as fast, and
a loop without copies needs no barrier. The target decides for which operands this holds. A product reads tiles in
global memory with the semantics of the copy: elements outside the tensor are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import StmtRewriter, replace_for, role
from tile_core.ops.base import OpCall, View, is_op
from tile_core.records import dataclass
from tile_core.simt.pipelining.dependences import Analysis, Candidate, top_level, uses

_PRODUCTS = {"gemm": 2, "gemm_sp": 3}
"""Products, and how many operands they have."""


@dataclass(frozen=True)
class Operand:
    """An operand of a product that a pipelined loop copies from global memory.

    Attributes
    ----------
    call, position
        The product, and the position of the operand.
    source
        Where it is copied from.
    loop
        The loop.
    """

    call: OpCall
    position: int
    source: View
    loop: Stmt


Reads = Callable[[Operand], bool]
"""Whether a product reads an operand as well from global memory."""


def read_operands_directly(body: Stmt, reads: Reads, kept: Collection[str]) -> Stmt:
    """Return a program without the copies of pipelined loops whose tiles are only such operands.

    Parameters
    ----------
    body
        A program whose tile ops are calls.
    reads
        The target's decision.
    kept
        Names of tensors and buffers with a layout or a value outside of their own: copies from and to them remain.
    """
    rewriter = _DirectReads(body, reads, kept)
    new = rewriter.stmt(body)
    return _WithoutAllocations(rewriter.dropped).stmt(new) if rewriter.dropped else body


class _DirectReads(StmtRewriter):
    def __init__(self, body: Stmt, reads: Reads, kept: Collection[str]) -> None:
        self.analysis, self.reads, self.kept = Analysis(body), reads, kept
        self.dropped: set[Any] = set()

    def visit_For(self, s: Stmt) -> Stmt:
        new = super().visit_For(s)
        if role(s) != "pipelined":
            return new
        found = [c for c in self.analysis.candidates(s) if self.is_operand(c, top_level(s.body), s)]
        if not found:
            return new
        body: list[Any] = top_level(new.body)
        for candidate in found:
            self.dropped.add(candidate.buffer)
            body = [x for x in (_reading(x, candidate) for x in body) if x is not None]
        return replace_for(new, nodes.seq(body))

    def is_operand(self, candidate: Candidate, body: list[Stmt], loop: Stmt) -> bool:
        """Whether a whole tile is only an operand of products that read global memory directly."""
        src, dst = candidate.call.args[:2]
        if (
            candidate.reason
            or candidate.call.name != "copy"
            or candidate.call.attrs.get(attributes.ROUND)
            or src.dtype != dst.dtype
        ):
            return False
        if any(v.name in self.kept for v in (src, dst)) or not self.analysis.only_in(dst.buffer, [loop]):
            return False
        long = [e for e in src.extents if e != 1]
        if not dst.is_whole or len(dst.extents) != 2 or list(src.extents[-2:]) != list(dst.extents) or len(long) > 2:
            return False
        users = [s for i, s in enumerate(body) if i != candidate.position and uses(s, dst.buffer)]
        return bool(users) and all(self.is_product(s, candidate, loop) for s in users)

    def is_product(self, s: Stmt, copy: Candidate, loop: Stmt) -> bool:
        """Whether a statement is a product that can read the copy's source directly.

        The read from global memory is as fast as from shared memory.
        """
        source, tile = copy.call.args[:2]
        call = OpCall.decode(s) if is_op(s) else None
        if call is None or call.name not in _PRODUCTS:
            return False
        found = [i for i, a in enumerate(call.args) if isinstance(a, View) and a.buffer.same_as(tile.buffer)]
        return all(
            i < _PRODUCTS[call.name] and call.args[i].is_whole and self.reads(Operand(call, i, source, loop))
            for i in found
        )


class _WithoutAllocations(StmtRewriter):
    def __init__(self, dropped: set[Any]) -> None:
        self.dropped = dropped

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        return nodes.seq([]) if s.buffer in self.dropped else s


def _reading(s: Any, copy: Candidate) -> Any:
    """Redirect reads from a copy's tile to its source, and drop the copy."""
    src, tile = copy.call.args[:2]
    if not is_op(s) or not uses(s, tile.buffer):
        return s
    if nodes.is_tile_call(s.value, "copy"):
        return None

    def operand(a: Expr) -> Expr:
        if not hasattr(a, "region") or not a.source.same_as(tile.buffer):
            return a
        return nodes.region(src.buffer, src.mins, src.extents)

    call = s.value
    return tirx.Evaluate(type(call)(call.op, [operand(a) for a in call.args], attrs=call.attrs, ret_ty=call.ty), s.span)
