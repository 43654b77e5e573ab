"""Refuse warp operations in control flow that may diverge within a warp.

All lanes of a warp must reach such an operation together: otherwise a device deadlocks, or the result is
undefined. Branches that only differ between warps (``if T.get_warp_idx() == 0``, ``if tid < 64``) are legal.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tile_core.analysis.index_evaluation import Unknown, evaluate
from tile_core.analysis.uniformity import VARYING_CALLS, Varying
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Array, Call, Expr, Node, Stmt, Var
from tile_core.errors.ops import DivergentWarp
from tile_core.ir import attributes, nodes
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.visit import StmtRewriter, annotation, collect, map_expr, role
from tile_core.ir.warp import UNIFORM_CALLS, WARP_CALLS

#: Operations that all lanes of a warp must reach together.
_CONVERGENT = WARP_CALLS | {"sync_warp"}
_AXES = 3


def check_warps(body: Stmt, width: int) -> None:
    """Check all warp operations of a program.

    Parameters
    ----------
    body
        The program.
    width
        Lanes of a warp.

    Raises
    ------
    DivergentWarp
        Naming the operation.
    """
    if _operations(body):
        _Launches(width).stmt(body)


class _Launches(StmtRewriter):
    def __init__(self, width: int) -> None:
        self.width = width

    def visit_For(self, s: Stmt) -> Stmt:
        threads = annotation(s, attributes.THREADS)
        if threads is None:
            return super().visit_For(s)
        sizes = [nodes.as_int(t) for t in threads]
        if all(isinstance(t, int) for t in sizes):
            _CheckLanes(LaneVarying(s.body, [*sizes, 1, 1][:_AXES], self.width)).check()
        return s


class LaneVarying(Varying):
    """The variables and private buffers that may differ between the lanes of a warp.

    Parameters
    ----------
    body
        The block's program.
    threads
        Threads of the block along x, y and z; lanes count x fastest.
    width
        Lanes of a warp.
    """

    def __init__(self, body: Stmt, threads: list[int], width: int) -> None:
        number = np.arange(int(np.prod(threads)), dtype=np.int64)
        self.count, self.width = len(number), width
        x, y = threads[:2]
        self.coordinates = {
            f"thread_index{i}": v for i, v in enumerate((number % x, number // x % y, number // (x * y)))
        }
        self.coordinates.update(lane_index=number % width, warp_index=number // width)
        self.names: dict[str, Var] = {name: nodes.fresh(name) for name in self.coordinates}
        self.env: dict[Var, Array] = {self.names[name]: value for name, value in self.coordinates.items()}
        for bind in collect(body, tirx.Bind):
            value = self.value(bind.value)
            if value is not None:
                self.env[bind.var] = value
        super().__init__(body)

    def expr(self, e: Expr) -> bool:
        """Whether an expression may differ between the lanes of a warp."""
        return super().expr(e) and not self._same(e)

    def _same(self, e: Expr) -> bool:
        """Whether an expression is provably the same in all lanes."""
        value = self.value(e)
        if value is not None:
            whole = np.broadcast_to(value, (self.count,))
            return all(len(set(whole[at : at + self.width].tolist())) == 1 for at in range(0, self.count, self.width))
        if isinstance(e, tirx.Var):
            return e not in self.vars and e not in self.env
        if isinstance(e, ir.TensorLoad):
            kept = nodes.scope_of(e.source) not in PRIVATE or e.source not in self.buffers
            return kept and all(self._same(i) for i in e.indices)
        if isinstance(e, ir.Call):
            name = str(e.op.name)[5:] if nodes.is_tile_call(e) else ""
            return name in UNIFORM_CALLS or (name not in VARYING_CALLS and all(self._same(a) for a in e.args))
        return all(self._same(part) for part in _parts(e)) and (bool(_parts(e)) or not super().expr(e))

    def value(self, e: Expr) -> Array | None:
        """Return all threads' values of an expression of thread indices, if known."""

        def known(call: Call) -> Expr:
            if not nodes.is_tile_call(call):
                return call
            name = str(call.op.name)[5:]
            return self.names.get(f"{name}{nodes.as_int(call.args[0])}" if name == "thread_index" else name, call)

        try:
            return evaluate(map_expr(e, known, ir.Call), self.env)
        except Unknown:
            return None


class _CheckLanes:
    def __init__(self, varying: LaneVarying) -> None:
        self.varying = varying

    def check(self) -> None:
        for p in self.varying.flow.walk(lambda p: p.kind != "for" or role(p.stmt) not in ("parallel", "vectorized")):
            # The condition of a loop is evaluated again by those that stay.
            apart = self.varying.divergent(p) or (p.kind == "while" and self.varying.loop(p.stmt))
            self.own(p.own, apart, p.stmt)

    def own(self, parts: list[Node], apart: bool, s: Stmt) -> None:
        """Check the expressions of a statement; parts may be evaluated conditionally."""
        for part in parts:
            found = _operations(part)
            if found and not apart:
                found = [call for evaluated in self.lazily(part) for call in _operations(evaluated)]
            if found:
                raise DivergentWarp(op=str(found[0].op.name)[5:], where=nodes.where_of(s))

    def lazily(self, e: Node) -> list[Expr]:
        """Return the expressions that some lanes may not evaluate."""
        out = [x.b for x in collect(e, (tirx.And, tirx.Or)) if self.varying.expr(x.a)]
        for call in collect(e, ir.Call):
            if nodes.operator_name(call) == "if_then_else" and self.varying.expr(call.args[0]):
                out += list(call.args[1:])
        return out


def _operations(node: Node) -> list[Call]:
    return [c for c in collect(node, ir.Call) if nodes.is_tile_call(c) and str(c.op.name)[5:] in _CONVERGENT]


_FIELDS: Mapping[str, tuple[str, ...]] = {
    "Cast": ("value",), "Not": ("a",), "Select": ("condition", "true_value", "false_value"),
    "Broadcast": ("value",), "Ramp": ("base", "stride"),
}  # fmt: skip


def _parts(e: Expr) -> list[Expr]:
    """Return the operands of an expression; none for a constant."""
    fields = _FIELDS.get(type(e).__name__, ("a", "b") if hasattr(e, "b") else ())
    return [getattr(e, name) for name in fields]
