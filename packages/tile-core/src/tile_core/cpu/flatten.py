"""Flatten buffers: every access by one offset into a one-dimensional buffer.

TVM's own pass is wrong for indices such as ``(127 - i) // 2``, which it rewrites to ``i // -2 + 63``, and takes
minutes where sizes are symbolic: it normalises each index as a map of iterators. Here an index expression stays
unchanged: an offset is the sum of indices times strides, with only constants folded.

Offsets are 64-bit where 32 bits may overflow: in a buffer of 2**31 elements or more, or of symbolic size, or where an
index is 64-bit already.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Call, Expr, Stmt
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect, map_expr, replace_for, substitute
from tile_core.numerics.build import cast, lanes_of

__all__ = ["flatten"]


def flatten(func: Expr) -> Expr:
    """Return a function whose loads and stores have one index.

    Parameters
    ----------
    func
        A function whose accesses lie inside their buffers. Its parameters are unchanged: the body sees each tensor
        through a view of one dimension.
    """
    flat: dict[BufferVar, BufferVar] = {}
    params = frozenset(p for p in func.params if tirx.is_buffer_var(p))
    views = []
    for p in filter(_needs, filter(tirx.is_buffer_var, func.params)):
        flat[p] = _one_dimensional(p, tirx.buffer_data(p))
        views.append(tirx.DeclBuffer(flat[p], data=tirx.buffer_data(p)))
    for s in collect(func.body, tirx.AllocBuffer):
        flat[s.buffer] = _one_dimensional(s.buffer) if _needs(s.buffer) else s.buffer
    for s in collect(func.body, tirx.DeclBuffer):
        flat[s.buffer] = _one_dimensional(
            s.buffer, _pointer(s.data, {v: b for v, b in flat.items() if v not in params})
        )
    if all(old.same_as(new) for old, new in flat.items()):
        return func
    return func.with_body(nodes.seq([*views, _FlattenBuffers(flat, params).stmt(func.body)]))


class _FlattenBuffers(StmtRewriter):
    def __init__(self, flat: dict[BufferVar, BufferVar], params: frozenset[BufferVar]) -> None:
        self.flat = flat
        # Tensors keep their names outside accesses: their views start at the same address.
        self.names = {old: new for old, new in flat.items() if old not in params and not old.same_as(new)}

    def expr(self, e: Expr) -> Expr:
        if isinstance(e, (tirx.IntImm, tirx.FloatImm, tirx.Var)):
            return e
        e = map_expr(e, self.load, ir.TensorLoad)
        if not any(isinstance(c.op, ir.Op) for c in collect(e, ir.Call)):
            return e
        return substitute(e, self.names)

    def load(self, e: Expr) -> Expr:
        new = self.flat.get(e.source)
        if new is None or new.same_as(e.source):
            return e
        return tirx.BufferLoad(new, [offset(e.source, list(e.indices))], e.span)

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        value, indices = self.expr(s.value), [self.expr(i) for i in s.indices]
        new = self.flat.get(s.buffer, s.buffer)
        at = indices if new.same_as(s.buffer) else [offset(s.buffer, indices)]
        return tirx.BufferStore(new, value, at, s.span)

    def visit_For(self, s: Stmt) -> Stmt:
        return replace_for(s, self.stmt(s.body), start=self.expr(s.min), extent=self.expr(s.extent))

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        new = self.flat[s.buffer]
        return s if new.same_as(s.buffer) else tirx.AllocBuffer(new, dict(s.annotations or {}))

    def visit_DeclBuffer(self, s: Stmt) -> Stmt:
        return tirx.DeclBuffer(self.flat[s.buffer], data=_pointer(s.data, self.names))


def offset(buffer: BufferVar, indices: Sequence[Expr]) -> Expr:
    """Return the linear position of an element in its buffer; a vector for vector indices."""
    wide = _is_wide(buffer) or any(nodes.dtype_of(i) == "int64" for i in indices)
    kind = "int64" if wide else "int32"
    start = buffer.ty.elem_offset
    total: Expr = nodes.int_const(0, kind) if start is None else _as(start, kind)
    step: Expr = nodes.int_const(0, kind)
    vectors: list[Expr] = []  # those that are not ramps
    lanes = max((lanes_of(i) for i in indices), default=1)
    for index, stride in zip(indices, _strides(buffer, kind), strict=True):
        if isinstance(index, tirx.Ramp):
            total = _plus(total, _times(_as(index.base, kind), stride))
            step = _plus(step, _times(_as(index.stride, kind), stride))
        elif isinstance(index, tirx.Broadcast):
            total = _plus(total, _times(_as(index.value, kind), stride))
        elif lanes_of(index) > 1:
            vectors.append(tirx.Mul(cast(kind, index), tirx.Broadcast(stride, lanes)))
        else:
            total = _plus(total, _times(_as(index, kind), stride))
    if lanes == 1:
        return total
    positions = tirx.Broadcast(total, lanes) if nodes.as_int(step) == 0 else tirx.Ramp(total, step, lanes)
    return functools.reduce(tirx.Add, vectors, positions)


def _needs(buffer: BufferVar) -> bool:
    start = nodes.as_int(buffer.ty.elem_offset)
    return len(buffer.shape) != 1 or bool(buffer.strides) or start not in (None, 0)


def _one_dimensional(buffer: BufferVar, data: Expr | None = None) -> BufferVar:
    sizes = nodes.shape_of(buffer)
    # The extent of a view of symbolic size is never used: accesses are in bounds.
    size = math.prod(sizes) if all(isinstance(n, int) for n in sizes) else 1
    extent = nodes.int_const(max(size, 1), "int64" if size >= 2**31 else "int32")
    return tirx.decl_buffer(
        (extent,),
        nodes.element_type(buffer),
        buffer.name,
        data=data,
        scope=buffer.scope(),
        layout=None,
        data_alignment=buffer.ty.data_alignment,
    )


def _pointer(data: Call, flat: dict[BufferVar, BufferVar]) -> Call:
    """Return the pointer of a view under its base's current name, and its type's scope."""
    bases = [v for v in collect(data, tirx.Var) if tirx.is_buffer_var(v)]
    return tirx.buffer_data(flat.get(bases[0], bases[0])) if len(bases) == 1 else data


def _is_wide(buffer: BufferVar) -> bool:
    sizes = nodes.shape_of(buffer)
    if not all(isinstance(n, int) for n in sizes):
        return True
    strides = [nodes.as_int(s) for s in buffer.strides or []]
    if not all(isinstance(s, int) for s in strides):
        return True
    if strides:
        return sum((n - 1) * abs(s) for n, s in zip(sizes, strides, strict=True)) >= 2**31
    return bool(math.prod(sizes) >= 2**31)


def _strides(buffer: BufferVar, kind: str) -> list[Expr]:
    given = list(buffer.strides or [])
    if given:
        return [_as(s, kind) for s in given]
    result = [nodes.int_const(1, kind)]
    for extent in reversed(list(buffer.shape)[1:]):
        result.insert(0, _times(_as(extent, kind), result[0]))
    return result if len(buffer.shape) else []


def _as(e: Expr, kind: str) -> Expr:
    if isinstance(e, tirx.IntImm):
        return nodes.int_const(int(e.value), kind)
    return nodes.cast(e, kind)


def _times(a: Expr, b: Expr) -> Expr:
    x, y = nodes.as_int(a), nodes.as_int(b)
    if isinstance(x, int) and isinstance(y, int):
        return nodes.int_const(x * y, nodes.dtype_of(a))
    if 0 in (x, y):
        return nodes.int_const(0, nodes.dtype_of(a))
    if y == 1:
        return a
    return b if x == 1 else tirx.Mul(a, b)


def _plus(a: Expr, b: Expr) -> Expr:
    x, y = nodes.as_int(a), nodes.as_int(b)
    if isinstance(x, int) and isinstance(y, int):
        return nodes.int_const(x + y, nodes.dtype_of(a))
    if y == 0:
        return a
    return b if x == 0 else tirx.Add(a, b)
