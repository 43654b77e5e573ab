"""An interpreter of what one thread does: threads run in any order between barriers, or all in lock step.

``lockstep`` gives the meaning of a program without barriers: all threads do a statement before any does the next one,
and read before any writes. ``scatter`` runs a program with barriers: between them the threads are interleaved at
random, access by access, or run one after the other. A barrier that not all threads reach at the same statement fails.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from tile_core.analysis.index_evaluation import _BINARY, _CALLS
from tile_core.compat.tvm import ir, tirx
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.simt.memory.arena import OFFSET
from tile_core.simt.memory.shared_layouts import base_of

ORDERS = ("up", "down", "random", "random", "random")


class _Leave(Exception):
    def __init__(self, kind: str) -> None:
        self.kind = kind


class Memory:
    """Shared bytes, and arrays outside."""

    def __init__(self, body: Any, outside: dict[Any, np.ndarray], seed: int) -> None:
        self.arrays = {b: a.copy() for b, a in outside.items()}
        self.outside = list(outside)
        rng = np.random.default_rng(seed)
        arena = np.frombuffer(rng.bytes(1 << 16), np.uint8).copy()
        for a in collect(body, tirx.AllocBuffer):
            if nodes.scope_of(a.buffer) == "shared":
                kind, shape = np.dtype(nodes.element_type(a.buffer)), tuple(int(n) for n in a.buffer.shape)
                offset = (a.annotations or {}).get(OFFSET)
                size = int(np.prod(shape)) * kind.itemsize
                data = arena[int(offset) : int(offset) + size] if offset is not None else arena[:size].copy()
                self.arrays[a.buffer] = data.view(kind).reshape(shape)
        for v in collect(body, tirx.DeclBuffer):
            base = self.arrays[base_of(v)]
            shape = tuple(int(n) for n in v.buffer.shape)
            self.arrays[v.buffer] = base.reshape(-1).view(np.dtype(nodes.element_type(v.buffer))).reshape(shape)

    def results(self) -> list[np.ndarray]:
        return [self.arrays[b] for b in self.outside]


class Thread:
    """One thread: its variables and private arrays; ``walk`` yields before each access and at each barrier."""

    def __init__(self, number: int, extents: tuple[int, int, int], thread: Any, memory: Memory) -> None:
        x, y, _ = extents
        self.at = (number % x, number // x % y, number // (x * y))
        self.vars: dict[Any, Any] = {} if thread is None else {thread: number}
        self.private: dict[Any, np.ndarray] = {}
        self.memory = memory

    def array(self, b: Any) -> np.ndarray:
        if nodes.scope_of(b) in ("local", "local.var"):
            if b not in self.private:
                self.private[b] = np.full([int(n) for n in b.shape], 77, np.dtype(nodes.element_type(b)))
            return self.private[b]
        return self.memory.arrays[b]

    def eval(self, e: Any) -> Any:
        kind = type(e).__name__
        if isinstance(e, tirx.IntImm):
            return int(e.value)
        if isinstance(e, tirx.Var):
            return self.vars[e]
        if kind == "And":
            return bool(self.eval(e.a)) and bool(self.eval(e.b))
        if kind in _BINARY:
            return _BINARY[kind](self.eval(e.a), self.eval(e.b))
        if isinstance(e, tirx.Not):
            return not self.eval(e.a)
        if isinstance(e, tirx.Cast):
            return self.eval(e.value)
        if kind in ("TensorLoad", "BufferLoad"):
            return int(self.array(e.source)[self.index(e)])
        assert isinstance(e, ir.Call), kind
        if nodes.is_tile_call(e, "thread_index"):
            return self.at[int(e.args[0])]
        return _CALLS[nodes.operator_name(e)](*(self.eval(a) for a in e.args))

    def index(self, e: Any) -> tuple[int, ...]:
        at = tuple(int(self.eval(i)) for i in e.indices)
        source = e.source if hasattr(e, "source") else e.buffer
        assert all(0 <= i < int(n) for i, n in zip(at, source.shape, strict=True)), (str(source.name), at)
        return at

    def walk(self, s: Any) -> Any:
        kind = type(s).__name__
        yield from getattr(self, f"do_{kind}")(s)

    def do_SeqStmt(self, s: Any) -> Any:
        for x in s.seq:
            yield from self.walk(x)

    def do_AttrStmt(self, s: Any) -> Any:
        yield from self.walk(s.body)

    def do_For(self, s: Any) -> Any:
        yield ("access", s)
        start, extent = self.eval(s.min), self.eval(s.extent)
        for k in range(extent):
            self.vars[s.loop_var] = start + k
            try:
                yield from self.walk(s.body)
            except _Leave as leave:
                if leave.kind == "Break":
                    break

    def do_While(self, s: Any) -> Any:
        for _ in range(1000):
            yield ("access", s)
            if not self.eval(s.condition):
                return
            try:
                yield from self.walk(s.body)
            except _Leave as leave:
                if leave.kind == "Break":
                    return
        raise AssertionError("a loop does not end")

    def do_IfThenElse(self, s: Any) -> Any:
        yield ("access", s)
        if self.eval(s.condition):
            yield from self.walk(s.then_case)
        elif s.else_case is not None:
            yield from self.walk(s.else_case)

    def do_Bind(self, s: Any) -> Any:
        yield ("access", s)
        self.vars[s.var] = self.eval(s.value)

    def do_BufferStore(self, s: Any) -> Any:
        yield ("access", s)
        value, at = self.eval(s.value), self.index(s)
        yield ("write", s)
        array = self.array(s.buffer)
        array[at] = np.asarray(value, np.int64).astype(array.dtype)

    def do_Evaluate(self, s: Any) -> Any:
        if nodes.is_tile_call(s.value, "sync_threads"):
            yield ("sync", s)
        elif nodes.is_tile_call(s.value, "move"):
            target, source = s.value.args
            yield ("access", s)
            count = int(s.value.attrs["bytes"]) // self.array(source.source).itemsize
            *row, first = self.index(source)
            held = self.array(source.source)[(*row, slice(first, first + count))].copy()
            yield ("write", s)
            *row, first = self.index(target)
            self.array(target.source)[(*row, slice(first, first + count))] = held
        elif nodes.is_tile_call(s.value, "instruction"):
            yield ("access", s)
            self.instruct(s.value)

    def instruct(self, call: Any) -> None:
        name = str(call.attrs["name"])
        if name == "atom_add":
            place = call.args[0].args[0]
            self.array(place.source)[self.index(place)] += self.eval(call.args[1])
        else:  # "sum": the whole of a shared array
            target, source = (a.args[0] for a in call.args)
            self.array(target.source)[self.index(target)] = self.array(source.source).sum()

    def do_AllocBuffer(self, s: Any) -> Any:
        yield from ()

    do_DeclBuffer = do_AllocBuffer

    def do_Break(self, s: Any) -> Any:
        yield from ()
        raise _Leave(type(s).__name__)

    do_Continue = do_Break


def scatter(body: Any, extents: tuple[int, int, int], thread: Any, outside: dict[Any, Any], seed: int) -> list[Any]:
    """Run the threads between barriers in an order that ``seed`` chooses; return the arrays outside."""
    rng = random.Random(seed)
    order = ORDERS[seed % len(ORDERS)]
    memory = Memory(body, outside, seed)
    count = int(np.prod(extents))
    running = {n: Thread(n, extents, thread, memory).walk(body) for n in range(count)}
    ready, waiting, done = list(running), {}, 0
    while ready or waiting:
        if not ready:
            assert not done, "some threads wait, others have ended"
            assert len({str(s) + str(id(s.value)) for s in waiting.values()}) == 1, "threads wait at different barriers"
            ready, waiting = list(waiting), {}
        pick = {"up": 0, "down": len(ready) - 1}.get(order, rng.randrange(len(ready)))
        n = ready[pick]
        event = next(running[n], None)
        if event is None:
            ready.pop(pick)
            done += 1
        elif event[0] == "sync":
            ready.pop(pick)
            waiting[n] = event[1]
    return memory.results()


def lockstep(body: Any, extents: tuple[int, int, int], thread: Any, outside: dict[Any, Any], seed: int) -> list[Any]:
    """Run the threads in lock step; return the arrays outside."""
    memory = Memory(body, outside, seed)
    count = int(np.prod(extents))
    threads = [Thread(n, extents, thread, memory) for n in range(count)]
    _together(body, threads)
    return memory.results()


def _together(s: Any, threads: list[Thread]) -> None:
    if not threads:
        return
    if isinstance(s, tirx.SeqStmt):
        for x in s.seq:
            _together(x, threads)
    elif isinstance(s, tirx.AttrStmt):
        _together(s.body, threads)
    elif isinstance(s, tirx.IfThenElse):
        taken = [bool(t.eval(s.condition)) for t in threads]
        _together(s.then_case, [t for t, c in zip(threads, taken, strict=True) if c])
        if s.else_case is not None:
            _together(s.else_case, [t for t, c in zip(threads, taken, strict=True) if not c])
    elif isinstance(s, tirx.For):
        bounds = [(t.eval(s.min), t.eval(s.extent)) for t in threads]
        for k in range(max(e for _, e in bounds)):
            for t, (start, _) in zip(threads, bounds, strict=True):
                t.vars[s.loop_var] = start + k
            _together(s.body, [t for t, (_, e) in zip(threads, bounds, strict=True) if k < e])
    elif isinstance(s, tirx.While):
        for _ in range(1000):
            threads = [t for t in threads if t.eval(s.condition)]
            if not threads:
                return
            _together(s.body, threads)
        raise AssertionError("a loop does not end")
    else:
        runs = [t.walk(s) for t in threads]
        while runs:
            runs = [r for r in runs if next(r, None) is not None]


def barriers(body: Any) -> int:
    """Return how many barriers a body holds."""
    return sum(nodes.is_tile_call(c, "sync_threads") for c in collect(body, ir.Call))
