"""Merge iterations of a loop over k that multiplies tensors read in place.

A step of 32 reads and writes its accumulators for few products. Operands that are packed from tensors have no tiles
that limit a step.
"""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.cpu.attributes import INSIDE
from tile_core.cpu.dots import TILES, products_of
from tile_core.cpu.isa import Isa
from tile_core.cpu.micro_dots import depth_of
from tile_core.cpu.micro_tiles import tile_depth
from tile_core.ir import nodes
from tile_core.ir.attributes import TRANSPOSE_A, TRANSPOSE_B
from tile_core.ir.visit import StmtRewriter, collect, replace_for, substitute
from tile_core.ops.base import OpCall, View, is_op
from tile_core.ops.gemm import accumulator

__all__ = ["inside_of", "merge_steps", "uses"]


def merge_steps(body: Stmt, isa: Isa | None) -> Stmt:
    """Return the program with fewer and deeper products.

    Parameters
    ----------
    body
        A program.
    isa
        The processor, whose dot products determine the depth.
    """
    return body if isa is None else _MergeSteps(isa).stmt(body)


def inside_of(s: Stmt) -> str:
    """Return the operands that a product reads from tensors; empty for other statements."""
    return str(s.value.attrs.get(INSIDE, "")) if is_op(s) and str(s.value.op.name) == "tile.gemm" else ""


def uses(e: Expr, var: Var) -> bool:
    """Whether an expression has a variable."""
    return any(v.same_as(var) for v in collect(e, tirx.Var))


class _MergeSteps(StmtRewriter):
    def __init__(self, isa: Isa) -> None:
        self.isa = isa

    def visit_For(self, s: Stmt) -> Stmt:
        return self.merged(super().visit_For(s))

    def merged(self, s: Stmt) -> Stmt:
        count, body = nodes.as_int(s.extent), s.body
        if not isinstance(count, int) or count < 2 or nodes.as_int(s.min) != 0:
            return s
        if isinstance(body, tirx.IfThenElse) and inside_of(body.then_case) == "AB":
            if body.else_case is None or uses(body.condition, s.loop_var):
                return s
            fast = self.merged(replace_for(s, body.then_case))
            own = tirx.Var(s.loop_var.name, nodes.dtype_of(s.loop_var))
            slow = replace_for(s, substitute(body.else_case, {s.loop_var: own}), loop_var=own)
            return tirx.IfThenElse(body.condition, fast, slow, body.span)
        steps = self.steps(body, s.loop_var) if inside_of(body) == "AB" else 1
        if steps < 2:
            return s
        steps = min(steps, count)
        new, rest = [], count % steps
        if count // steps > 1:
            deep = _deeper(body, s.loop_var, s.loop_var * steps, steps)
            new.append(replace_for(s, deep, extent=nodes.int_const(count // steps, nodes.dtype_of(s.loop_var))))
        else:
            new.append(_deeper(body, s.loop_var, nodes.int_const(0, nodes.dtype_of(s.loop_var)), steps))
        if rest:
            start = nodes.int_const(count - rest, nodes.dtype_of(s.loop_var))
            new.append(_deeper(body, s.loop_var, start, rest))
        return nodes.seq(new)

    def steps(self, product: Stmt, var: Var) -> int:
        """Return the iterations of one product: one if their operands are not adjacent."""
        call = OpCall.decode(product)
        a, b, c, clear = call.args
        products = products_of(self.isa, a.dtype, b.dtype, c.dtype)
        # Narrow results are rounded after each step.
        exact = products is not None and accumulator(c.dtype) == c.dtype
        if products is None or not exact or nodes.as_int(clear) != 0 or any(uses(m, var) for m in _exprs(c.mins)):
            return 1
        for view, axis in zip((a, b), _depths(call), strict=True):
            others = [m for d, m in enumerate(view.mins) if d != axis]
            if any(uses(m, var) for m in _exprs(others)) or not _advances(view.mins[axis], var, view.extents[axis]):
                return 1
        if products.dot in TILES:
            return tile_depth(c.extents[-2]) * products.dot.group // a.extents[_depths(call)[0]]
        along = not bool(call.attrs[TRANSPOSE_A]) and bool(call.attrs[TRANSPOSE_B])
        return depth_of(c.extents[-2], along) * products.dot.group // a.extents[_depths(call)[0]]


def _depths(call: OpCall) -> tuple[int, int]:
    """Return the dimensions of A and B along k."""
    a, b = call.args[:2]
    turned = bool(call.attrs[TRANSPOSE_A]), bool(call.attrs[TRANSPOSE_B])
    return a.matrix_dims()[0 if turned[0] else 1], b.matrix_dims()[1 if turned[1] else 0]


def _advances(low: Expr, var: Var, step: int) -> bool:
    if isinstance(low, int):
        return False
    after = substitute(low, {var: var + nodes.int_const(1, nodes.dtype_of(var))})
    return bool(Analyzer().can_prove(tirx.EQ(after - low, nodes.int_const(step, nodes.dtype_of(low)))))


def _deeper(product: Stmt, var: Var, start: Expr, steps: int) -> Stmt:
    """Return one product for some iterations from ``start``."""
    call = product.value
    args = list(call.args)
    for at, axis in enumerate(_depths(OpCall.decode(product))):
        view = View.of(args[at])
        extents = list(view.extents)
        extents[axis] *= steps
        mins = [m if isinstance(m, int) else substitute(m, {var: start}) for m in view.mins]
        args[at] = nodes.region(view.buffer, mins, extents)
    return tirx.Evaluate(nodes.tile_call("gemm", args, dict(call.attrs)), product.span)


def _exprs(values: Sequence[Expr]) -> list[Expr]:
    return [v for v in values if not isinstance(v, int)]
