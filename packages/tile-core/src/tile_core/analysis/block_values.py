"""Value numbers of what blocks store: equal for blocks that provably compute the same value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tile_core.analysis.accesses import Access
from tile_core.analysis.flow import Flow
from tile_core.analysis.index_evaluation import Unknown
from tile_core.analysis.iteration_space import Touched
from tile_core.analysis.point import Point
from tile_core.analysis.value_numbering import Fingerprint, apart, element_number, mixed, number_of
from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import Array, BufferVar, Expr, Node, Var
from tile_core.ir import nodes
from tile_core.ir.visit import collect

#: Of a value that may differ between any two blocks.
_ANY = None
_Needs = frozenset[Var] | None


class BlockValues:
    """Dependences of a launch's values: on block indices, and on memory that the launch writes.

    Parameters
    ----------
    flow
        The flow of a block.
    blocks
        The block indices.
    written
        The tensors that the launch writes.
    """

    def __init__(self, flow: Flow, blocks: Sequence[Var], written: frozenset[BufferVar]) -> None:
        self.flow, self.blocks, self.written = flow, frozenset(blocks), written
        self._names: dict[Var, _Needs] = {}
        self._scratch: dict[BufferVar, _Needs] = {}
        self._filled: dict[BufferVar, Expr] = {}
        points = [p for p in flow.points if flow.accesses_at(p)]
        stores = [(p, [flow.root(a.buffer) for a in flow.accesses_at(p) if a.write]) for p in points]
        changed = True
        while changed:
            changed = False
            self._names.clear()
            for p, roots in stores:
                for root in roots:
                    old = self._scratch.get(root, frozenset())
                    new = _union(old, self._point(p))
                    if new != old:
                        self._scratch[root], changed = new, True

    def of(self, access: Access, touched: Touched) -> Array:
        """Return the numbers of a store's values, in the order of ``touched.element``."""
        kept = touched.kept
        count = len(touched.element)
        blocks = np.zeros(kept.shape, np.int64)
        blocks[kept] = touched.iteration

        def element(load: Expr, env: Mapping[Var, Array]) -> Array:
            at = [fingerprint.of(i) for i in load.indices]
            root = self.flow.root(load.source)
            if nodes.scope_of(root) == "global" and root not in self.written:
                return mixed("element", element_number(load.source, np.int64(0)), *at)
            one = self._one(root)
            if one is not None:
                return fingerprint.of(one)
            needs = self._scratch.get(root, frozenset()) if nodes.scope_of(root) != "global" else _ANY
            if needs is _ANY:
                return apart(blocks)
            # What scratch memory holds may differ between iterations of the loops around the store.
            loops = {loop.loop_var for loop in access.loops}
            parts = [number_of(env[v]) for v in sorted(needs | loops, key=str) if v in env]
            return mixed("scratch", element_number(load.source, np.int64(0)), *at, *parts)

        fingerprint = Fingerprint(touched.env, self.flow.binds, element)
        try:
            value: Any = fingerprint.of(access.value)
        except Unknown:
            value = apart(blocks)
        return np.broadcast_to(value, kept.shape)[kept].reshape(count)

    def _one(self, root: BufferVar) -> Expr:
        """Return the value of all elements of a scratch buffer if only one is stored."""
        if root not in self._filled:
            stored = [a for a in self.flow.accesses if a.write and self.flow.root(a.buffer) == root]
            values = [_stored(a) for a in stored]
            one = values[0] if values else None
            same = one is not None and all(v is not None and tvm_ffi.structural_equal(v, one) for v in values)
            loops = {p.stmt.loop_var for a in stored for p in a.point.loops if p.kind == "for"}
            fixed = same and not (loops | set(self.flow.binds)) & set(collect(one, tirx.Var))
            loads = collect(one, ir.TensorLoad) if fixed else []
            tensors = all(nodes.scope_of(x.source) == "global" and x.source not in self.written for x in loads)
            self._filled[root] = one if fixed and tensors else None
        return self._filled[root]

    def _point(self, p: Point) -> _Needs:
        """Return the dependences of the values that a point stores."""
        found = self._all(p.own)
        for x in p.path:
            found = _union(found, self._all([] if x.kind == "mark" else x.own))
        return found

    def _all(self, parts: Sequence[Node]) -> _Needs:
        found: _Needs = frozenset()
        for part in parts:
            for var in collect(part, tirx.Var):
                found = _union(found, self._buffer(var) if tirx.is_buffer_var(var) else self._name(var))
        return found

    def _buffer(self, buffer: BufferVar) -> _Needs:
        root = self.flow.root(buffer)
        if nodes.scope_of(root) == "global":
            return _ANY if root in self.written else frozenset()
        return self._scratch.get(root, frozenset())

    def _name(self, v: Var) -> _Needs:
        if v in self.blocks:
            return frozenset((v,))
        value = self.flow.binds.get(v)
        if value is None:
            return frozenset()
        if v not in self._names:
            self._names[v] = frozenset()
            self._names[v] = self._all([value])
        return self._names[v]


def _stored(access: Access) -> Expr:
    """Return the value that a store or fill writes; nothing for other statements."""
    call = access.call
    return access.value if call is None or not nodes.is_tile_call(call, "fill") else call.args[1]


def _union(a: _Needs, b: _Needs) -> _Needs:
    return _ANY if a is _ANY or b is _ANY else a | b
