"""The grid of a launch as one parallel loop over its blocks."""

from __future__ import annotations

import math

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import StmtRewriter, annotation, collect, renamed, role, substitute

#: Stores that one thread makes in the time that it takes to share them.
_LITTLE = 4096


def fuse_grid(body: Stmt, parallel: bool) -> Stmt:
    """Return the body with the axes of its grid fused, the first axis fastest.

    Parameters
    ----------
    body
        A program.
    parallel
        Run blocks on all cores. Blocks of a program with atomic updates run in order, which makes each update whole
        and the result the same in every run.
    """
    return _Fuse(parallel).stmt(body)


def threads_of(body: Stmt) -> tuple[int, int, int]:
    """Return the block's threads along its three axes; ones if the program launches nothing."""
    for loop in collect(body, tirx.For):
        if role(loop) == "grid":
            threads = annotation(loop, attributes.THREADS)
            if threads is not None:
                x, y, z = (int(nodes.as_int(t)) for t in threads)
                return x, y, z
    return 1, 1, 1


def stores_in(s: Stmt) -> float:
    """Return an upper bound on a statement's stores per execution; infinite if unknown."""
    if isinstance(s, tirx.SeqStmt):
        return sum(stores_in(x) for x in s.seq)
    if isinstance(s, tirx.For):
        extent = nodes.as_int(s.extent)
        return extent * stores_in(s.body) if isinstance(extent, int) else math.inf
    if isinstance(s, tirx.IfThenElse):
        return max(stores_in(s.then_case), 0 if s.else_case is None else stores_in(s.else_case))
    if isinstance(s, (tirx.Bind, tirx.AllocBuffer, tirx.DeclBuffer)):
        return 0
    if isinstance(s, tirx.Evaluate) and nodes.operator_name(s.value) == "prefetch":
        return 0
    return 1 if isinstance(s, tirx.BufferStore) else math.inf


def _count(extent: Expr, dtype: str) -> Expr:
    """Return an extent as a number of blocks, 0 if negative; constants stay constants."""
    size = nodes.as_int(extent)
    if isinstance(size, int):
        return nodes.int_const(max(size, 0), dtype)
    return tirx.Max(nodes.cast(extent, dtype), nodes.int_const(0, dtype))


def _times(a: Expr, b: Expr) -> Expr:
    x, y = nodes.as_int(a), nodes.as_int(b)
    if isinstance(x, int) and isinstance(y, int):
        return nodes.int_const(x * y, nodes.dtype_of(a))
    return b if x == 1 else a if y == 1 else tirx.Mul(a, b)


class _Fuse(StmtRewriter):
    def __init__(self, parallel: bool) -> None:
        self.parallel = parallel

    def visit_For(self, s: Stmt) -> Stmt:
        if role(s) != "grid":
            return super().visit_For(s)
        axes = []
        while isinstance(s, tirx.For) and role(s) == "grid":
            axes.append(s)
            s = s.body
        return _fused(axes, s, self.parallel)


def _fused(axes: list[Stmt], body: Stmt, parallel: bool) -> Stmt:
    extents = [nodes.as_int(a.extent) for a in axes]
    if any(isinstance(e, int) and e <= 0 for e in extents):
        return nodes.seq([])
    static = all(isinstance(e, int) for e in extents)
    wide = not static or math.prod(extents) >= 2**31
    dtype = "int64" if wide else "int32"
    index = nodes.fresh("block", dtype)
    total: Expr = nodes.int_const(1, dtype)
    values = {}
    for axis in reversed(axes):
        extent = _count(axis.extent, dtype)
        digit = index if nodes.as_int(total) == 1 else tirx.FloorDiv(index, total)
        if axis is not axes[0]:  # the slowest axis takes the quotient
            digit = tirx.FloorMod(digit, extent)
        values[axis.loop_var] = nodes.cast(digit, nodes.dtype_of(axis.loop_var))
        total = _times(total, extent)
    binds = []
    mapping = {}
    for axis in axes:
        fresh = nodes.fresh(axis.loop_var.name, nodes.dtype_of(axis.loop_var))
        binds.append(tirx.Bind(fresh, values[axis.loop_var]))
        mapping[axis.loop_var] = fresh
    inner = nodes.seq([*binds, substitute(body, mapping)])
    little = _few(stores_in(body))
    span = axes[0].span
    serial = nodes.for_loop(index, total, inner, "grid", kind=tirx.ForKind.SERIAL, span=span)
    if not parallel or (static and math.prod(extents) < little):
        return serial
    loop = nodes.for_loop(index, total, inner, "grid", kind=tirx.ForKind.PARALLEL, span=span)
    if static or little <= 2:
        return loop
    return tirx.IfThenElse(tirx.LT(total, nodes.int_const(little, dtype)), renamed(serial), loop, span)


def _few(stores: float) -> int:
    """Return the number of blocks from which work is shared.

    Waking other threads takes some microseconds.
    """
    return 2 if math.isinf(stores) else max(2, math.ceil(_LITTLE / max(stores, 1)))
