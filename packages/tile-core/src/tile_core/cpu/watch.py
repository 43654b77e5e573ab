"""Races between blocks, found while a kernel runs on the CPU (the option ``races``).

Blocks run one after another. Before each access of a tensor that its launch writes, the kernel calls a function of this
process, which compares it with the accesses of earlier blocks: two blocks race if one writes an element that the other
one reads or writes, unless both accesses are atomic, or both store the same value. A block that has read atomically may
have waited for others, so its later accesses are not compared.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import reduce
from typing import Any

from tile_core.analysis.accesses import Access
from tile_core.analysis.flow import Flow
from tile_core.analysis.point import Point, is_grid
from tile_core.compat.tvm import tirx, tvm_ffi
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.cpu.debug import failed, packed, wide
from tile_core.errors.base import Where
from tile_core.errors.execution import BlockRace
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import annotation, with_bodies
from tile_core.passes.check_blocks import is_atomic

__all__ = ["watch"]

_LAUNCH, _BLOCK, _ACCESS, _WAIT = (f"tile.cpu.watch_{name}" for name in ("launch", "block", "access", "wait"))


def watch(body: Stmt) -> Stmt:
    """Return a program that reports accesses of its tensors, after its tile ops are lowered."""
    _register()
    flow = Flow(body)
    written = {a.buffer for a in flow.accesses if a.write and nodes.scope_of(a.buffer) == "global"}
    return nodes.seq([_Watched(flow, written).point(p) for p in flow.top])


class _Watched:
    def __init__(self, flow: Flow, written: set[BufferVar]) -> None:
        self.flow, self.written = flow, written
        self.axes: dict[int, Var] = {}

    def point(self, p: Point) -> Stmt:
        """Return the statement of a point, after the reports of its own accesses."""
        before = self._reports(p)
        if is_grid(p):
            if not self.axes:
                before.insert(0, tirx.Evaluate(packed(_LAUNCH)))
            self.axes[int(annotation(p.stmt, attributes.AXIS))] = p.stmt.loop_var
        parts = [[self.point(x) for x in part] for part in p.parts]
        if p.kind == "while":
            parts[0] = [*before, *parts[0]]
        if is_grid(p):
            if not any(is_grid(x) for x in p.parts[0]):
                at = [nodes.cast(self.axes[k], "int64") for k in sorted(self.axes)]
                parts[0].insert(0, tirx.Evaluate(packed(_BLOCK, *at)))
            self.axes.pop(int(annotation(p.stmt, attributes.AXIS)))
        return nodes.seq([*before, with_bodies(p.stmt, [nodes.seq(part) for part in parts])])

    def _reports(self, p: Point) -> list[Stmt]:
        if isinstance(p.stmt, tirx.Bind) and nodes.is_tile_call(p.stmt.value, "per_thread"):
            return [tirx.Evaluate(packed(_WAIT))]  # an atomic access returns a value
        found = [a for a in self.flow.accesses_at(p) if a.how == "element" and a.buffer in self.written]
        atomic = is_atomic(p)
        changed = {a.buffer for a in found if a.write} if atomic else set()
        return [self._report(a, p, atomic) for a in found if a.write or a.buffer not in changed]

    def _report(self, a: Access, p: Point, atomic: bool) -> Stmt:
        where = nodes.where_of(p.stmt) or Where("", 0)
        zero = nodes.int_const(0, "int64")
        kind, old, new = "read", zero, zero
        if a.write:
            kind = "update" if atomic else "write"
            old, new = (zero, zero) if atomic else (wide(nodes.load(a.buffer, a.indices)), wide(a.value))
        at = [nodes.cast(i, "int64") for i in a.indices]
        facts = (str(a.buffer.name), where.file, nodes.int_const(where.line), kind, old, new, _offset(a.buffer, at))
        conditions = [c if holds else tirx.Not(c) for c, holds in a.conditions[len(p.conditions) :]]
        for i, extent in zip(at, a.buffer.shape, strict=True):
            conditions += [tirx.GE(i, zero), tirx.LT(i, nodes.cast(extent, "int64"))]
        report = tirx.Evaluate(packed(_ACCESS, *facts, *at), getattr(p.stmt, "span", None))
        return tirx.IfThenElse(reduce(tirx.And, conditions), report, None) if conditions else report


def _offset(buffer: BufferVar, at: Sequence[Expr]) -> Expr:
    """Return the identity of an element: its offset by the strides, or by the shape."""
    strides = list(buffer.ty.strides or ())
    offset: Expr = nodes.int_const(0, "int64")
    for d, (i, extent) in enumerate(zip(at, buffer.shape, strict=True)):
        scale = nodes.cast(strides[d] if strides else extent, "int64")
        offset = tirx.Add(offset, tirx.Mul(i, scale)) if strides else tirx.Add(tirx.Mul(offset, scale), i)
    return offset


#: By the kind of an access, the kinds of earlier accesses of other blocks that it races with.
_CONFLICTS = {"read": ("write", "update"), "write": ("write", "update", "read"), "update": ("write", "read")}
_WORDS = {"read": "read", "write": "written", "update": "updated atomically"}
#: Instead of a block: several.
_SEVERAL = ("other blocks",)


class _Seen(threading.local):
    """The accesses of this thread's launch, by tensor, offset and kind, with their owners."""

    def __init__(self) -> None:
        self.launch()

    def launch(self) -> None:
        self.by: dict[tuple[str, int, str], tuple[Any, ...]] = {}
        self.block(())

    def block(self, at: tuple[int, ...]) -> None:
        self.now, self.waited = at, False
        self.own: set[tuple[str, int]] = set()

    def access(
        self, name: str, where: Where, kind: str, same: bool, offset: int, at: tuple[int, ...]
    ) -> BlockRace | None:
        """Remember an access; return the race that it is part of, if any."""
        if kind == "read" and (name, offset) in self.own:
            return None
        for other in _CONFLICTS[kind]:
            by = self.by.get((name, offset, other))
            if by is None or by == self.now or self.waited or (same and kind == other == "write"):
                continue
            return BlockRace(
                buffer=name, index=list(at), action=_WORDS[kind], block=_block(self.now), other=_WORDS[other],
                before=_block(by), where=where,
            )  # fmt: skip
        if kind == "write":
            self.own.add((name, offset))
        key = (name, offset, kind)
        self.by[key] = self.now if self.by.get(key, self.now) == self.now else _SEVERAL
        return None


_seen = _Seen()


def _access(name: str, file: str, line: int, kind: str, old: float, new: float, offset: int, *at: int) -> None:
    same = old == new or (old != old and new != new)
    where = Where(str(file), int(line))
    race = _seen.access(str(name), where, str(kind), same, int(offset), tuple(map(int, at)))
    if race is not None:
        failed(race)


def _wait() -> None:
    _seen.waited = True


def _block(at: tuple[Any, ...]) -> str:
    if at == _SEVERAL:
        return at[0]
    return f"block {at[0]}" if len(at) == 1 else f"block ({', '.join(map(str, at))})"


def _register() -> None:
    functions = (
        (_LAUNCH, lambda: _seen.launch()), (_BLOCK, lambda *at: _seen.block(tuple(map(int, at)))),
        (_ACCESS, _access), (_WAIT, _wait),
    )  # fmt: skip
    for name, function in functions:
        tvm_ffi.register_global_func(name, function, override=True)
