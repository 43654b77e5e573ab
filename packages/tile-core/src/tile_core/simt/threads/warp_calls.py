"""Warp operations as exchanges between lanes of a group, with masks of existing lanes.

After this pass a program has three calls: ``tile.shuffle(mask, value, lane)`` with the attributes ``mode`` (``idx``,
``up``, ``down`` or ``bfly``) and ``width`` on ``uint32`` values, and ``tile.vote(mask, condition)`` with the attribute
``mode`` (``ballot``, ``any`` or ``all``), and where the target has such instructions ``tile.group_reduce(mask, value)``
with the attribute ``kind``. Masks and ballots have one bit per lane: they are ``uint32``, or ``uint64``
where a group has 64 threads. They are hoisted out of expressions, before the statement:
all lanes of a group execute them together, also where only one side of a choice needs the result. The mask names every
thread of the block that is in the group, so the last group may be partial. A program in which only some threads
of a group reach an operation is outside the language.
"""

from __future__ import annotations

from typing import Any

from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Array, Call, Expr, Mutator, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.errors.lowering import ShuffleTooWide
from tile_core.ir import nodes
from tile_core.ir.attributes import KIND, MODE, WIDTH
from tile_core.ir.visit import HoistingRewriter, collect
from tile_core.ir.warp import GROUP_REDUCE, REDUCTIONS, SHUFFLES, VOTES, WARP_CALLS, warp_call
from tile_core.numerics.ordered import from_ordered, ordered
from tile_core.ops.copy import convert
from tile_core.ops.reduce import accumulator, combiner, neutral
from tile_core.simt.ops.combination import Combination, Lanes
from tile_core.simt.variant import Block


def lower_warp_calls(
    body: Stmt, block: Block, width: int, reductions: frozenset[tuple[str, str]] = frozenset()
) -> Stmt:
    """Lower shuffles, votes and lane numbers for groups of ``width`` threads.

    Parameters
    ----------
    body
        What one thread does.
    block
        The threads.
    width
        Threads of a group: a power of two up to 64.
    reductions
        What one instruction combines, see ``Capabilities.group_reductions``.

    Raises
    ------
    ShuffleTooWide
        If lanes of different groups would have to exchange values.
    """
    if not any(nodes.operator_name(c) in _OF_WARPS for c in collect(body, ir.Call)):
        return body
    return _LowerWarpCalls(block, width, reductions).stmt(body)


_OF_WARPS = frozenset({f"tile.{name}" for name in (*WARP_CALLS, "lane_index", "warp_index")})


class _HoistWarpCalls(HoistingRewriter):
    """Hoists warp operations before statements."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.where: Any = None
        self.names: dict[Var, Var] = {}

    # Statements

    def stmt(self, s: Stmt) -> Stmt:
        self.where = nodes.where_of(s) or self.where
        return super().stmt(s)

    def visit_While(self, s: Stmt) -> Stmt:
        """Compute the condition at the start of every iteration if it needs the other lanes."""
        condition = self.expr(s.condition)
        before, self.before = self.before, []
        body = self.body(s.body)
        if not before:
            same = condition.same_as(s.condition) and body.same_as(s.body)
            return s if same else tirx.While(condition, body, s.span)
        leave = tirx.IfThenElse(tirx.Not(condition), tirx.Break(), None, s.span)
        return tirx.While(nodes.const(True, "bool"), nodes.seq([*before, leave, body]), s.span)

    def expr(self, e: Expr) -> Expr:
        found = [c for c in collect(e, ir.Call) if nodes.is_tile_call(c)]
        if not found:
            return e
        for call in found:
            self.check(call)
        return structural.mutated(e, [(tirx.Let, self.let), (ir.Call, self.call), (tirx.Var, self.var)])

    def check(self, call: Call) -> None:
        name = str(call.op.name)[5:]
        width = int(nodes.as_int(call.args[2])) if name in SHUFFLES else 0
        if width > self.width:
            raise ShuffleTooWide(op=name, found=width, width=self.width, where=self.where or nodes.where_of(call))

    def var(self, v: Var, _: Mutator) -> Expr:
        return self.names.get(v, v)

    def let(self, e: Expr, mutator: Mutator) -> Expr:
        """Bind a name before the statement if an exchange may need it."""
        if not any(warp_call(c) for c in collect(e, ir.Call)):
            return mutator.default_mutate(e)
        self.names[e.var] = self.bound(mutator.mutate(e.value), str(e.var.name))
        return mutator.mutate(e.body)

    def call(self, e: Expr, mutator: Mutator) -> Expr:
        if not warp_call(e):
            return mutator.default_mutate(e)
        return self.exchange(e, [mutator.mutate(a) for a in e.args])

    def visit_Bind(self, s: Stmt) -> Stmt:
        """Bind an exchange that is the whole value directly to the user's name."""
        new = super().visit_Bind(s)
        last = self.before[-1] if self.before else None
        if not isinstance(last, tirx.Bind) or not last.var.same_as(new.value):
            return new
        self.before.pop()
        return tirx.Bind(new.var, last.value, new.span)

    def exchange(self, e: Expr, args: list[Expr]) -> Expr:
        """Return the result of a warp operation, and emit its statements before."""
        raise NotImplementedError

    def bound(self, value: Expr, name: str) -> Expr:
        """Return a name for a value, bound before the statement."""
        if isinstance(value, (tirx.IntImm, tirx.FloatImm)):
            return value
        var = nodes.fresh(name, nodes.dtype_of(value))
        self.before.append(tirx.Bind(var, value))
        return var


class _LowerWarpCalls(_HoistWarpCalls):
    """Replaces warp operations by shuffles and votes."""

    def __init__(self, block: Block, width: int, reductions: frozenset[tuple[str, str]]) -> None:
        super().__init__(width)
        self.block = block
        self.lanes_of_all = Lanes(width, frozenset() if block.count % width else reductions)

    def call(self, e: Expr, mutator: Mutator) -> Expr:
        if nodes.is_tile_call(e, "lane_index"):
            return tirx.floormod(self.block.thread, nodes.int_const(self.width))
        if nodes.is_tile_call(e, "warp_index"):
            return tirx.floordiv(self.block.thread, nodes.int_const(self.width))
        return super().call(e, mutator)

    def exchange(self, e: Expr, args: list[Expr]) -> Expr:
        name = str(e.op.name)[5:]
        if name in SHUFFLES:
            return self.shuffle(name, self.bound(args[0], "mine"), args[1], int(nodes.as_int(args[2])))
        if name in REDUCTIONS:
            return self.reduce(REDUCTIONS[name], args[0])
        return self.vote(name, args[0])

    # Which lanes

    def mask(self) -> Expr:
        """Return the lanes of the thread's group that exist, as bits."""
        count, width = self.block.count, self.width
        whole, rest = count // width * width, count % width
        full, last = nodes.const(2**width - 1, self.bits), nodes.const(2**rest - 1, self.bits)
        if not rest:
            return full
        return tirx.Select(self.block.thread < whole, full, last) if whole else last

    @property
    def bits(self) -> str:
        """The type of a number with one bit per lane."""
        return "uint64" if self.width > 32 else "uint32"

    def shuffle(self, name: str, value: Var, amount: Array, width: int) -> Array:
        """Return the value of another lane; the caller's for missing or out-of-segment lanes."""
        segment = width or self.width
        known = nodes.as_int(amount)
        whole = self.block.count % segment == 0
        near = isinstance(known, int) and 0 <= known < segment
        if (name == "shfl_sync" and whole) or (near and (whole or name == "shfl_up")):
            return self.exchanged(SHUFFLES[name], value, amount, segment)
        thread = self.block.thread
        lane, position = tirx.floormod(thread, self.width), tirx.floormod(thread, segment)
        if name == "shfl_sync":
            source = tirx.floormod(amount, segment)
        elif name == "shfl_xor":
            source = tirx.bitwise_xor(position, amount)
        else:
            source = position - amount if name == "shfl_up" else position + amount
        source = self.bound(source, "source")
        inside = [source >= 0, source < segment, *([] if whole else [thread - position + source < self.block.count])]
        chosen = self.bound(tirx.Select(tirx.all(*inside), lane - position + source, lane), "lane")
        return self.exchanged("idx", value, chosen, self.width)

    def exchanged(self, mode: str, value: Var, lane: Expr, width: int) -> Var:
        """Shuffle the one or two words of a value."""
        dtype = nodes.dtype_of(value)
        lane = nodes.cast(lane, "int32")
        found = [
            nodes.tile_call("shuffle", [self.mask(), word, lane], {MODE: mode, WIDTH: width}, ret="uint32")
            for word in to_words(value)
        ]
        if len(found) > 1:
            found = [self.bound(word, "theirs") for word in found]
        return self.bound(from_words(found, dtype), "theirs")

    # Votes and reductions

    def vote(self, name: str, condition: Expr) -> Expr:
        mode = VOTES[name]
        ret = self.bits if mode == "ballot" else "bool"
        found = self.bound(nodes.tile_call("vote", [self.mask(), condition], {MODE: mode}, ret=ret), mode)
        return nodes.cast(found, "uint64") if mode == "ballot" else found

    def reduce(self, kind: str, value: Expr) -> Array:
        """Combine the operands of the group's lanes that exist."""
        dtype = nodes.dtype_of(value)
        wide = accumulator(dtype)
        combine = combiner(kind, wide, False)
        total = convert(value, wide)
        if DTYPES[dtype].is_float and kind != "sum":
            total = combine(neutral(kind, wide), total)  # a NaN is left out even if all are
        total = self.bound(total, "total")
        native = Combination(kind, wide)
        if native.is_native(self.lanes_of_all):
            return convert(self.by_instruction(native, total), dtype)
        whole = self.block.count % self.width == 0
        step = self.width // 2
        while step:
            other = self.shuffle("shfl_xor" if whole else "shfl_down", total, nodes.int_const(step), 0)
            joined = combine(total, other)
            if not whole:
                exists = tirx.floormod(self.block.thread, self.width) + step < self.lanes()
                joined = tirx.Select(exists, joined, total)
            total = self.bound(joined, "total")
            step //= 2
        if not whole:
            total = self.exchanged("idx", total, nodes.int_const(0), self.width)
        return convert(total, dtype)

    def by_instruction(self, combination: Combination, value: Var) -> Expr:
        """Combine by the target's instruction; a float that is ordered goes through an integer."""
        word = combination.word
        given = value if word == combination.dtype else ordered(value)
        call = nodes.tile_call(GROUP_REDUCE, [self.mask(), given], {KIND: combination.kind}, ret=word)
        found = self.bound(call, "found")
        return found if word == combination.dtype else from_ordered(found)

    def lanes(self) -> Expr:
        """Return the number of lanes in the thread's group that exist."""
        first = tirx.floordiv(self.block.thread, self.width) * self.width
        return tirx.min(nodes.int_const(self.width), nodes.int_const(self.block.count) - first)


def to_words(value: Var) -> list[Call]:
    """Return a scalar's bits as ``uint32`` words, the low one first."""
    dtype = nodes.dtype_of(value)
    bits = DTYPES[dtype].bits
    if dtype == "bool":
        return [tirx.Cast("uint32", value)]
    whole = value if dtype == f"uint{bits}" else tirx.reinterpret(f"uint{bits}", value)
    if bits <= 32:
        return [nodes.cast(whole, "uint32")]
    high = tirx.shift_right(whole, nodes.const(32, "uint64"))
    return [nodes.cast(tirx.bitwise_and(whole, nodes.const(2**32 - 1, "uint64")), "uint32"), nodes.cast(high, "uint32")]


def from_words(words: list[Call], dtype: str) -> Call:
    """Return the scalar with these words; the inverse of ``to_words``."""
    bits = DTYPES[dtype].bits
    if dtype == "bool":
        return tirx.NE(words[0], nodes.zero("uint32"))
    whole = nodes.cast(words[0], f"uint{bits}")
    if bits == 64:
        high = tirx.shift_left(nodes.cast(words[1], "uint64"), nodes.const(32, "uint64"))
        whole = tirx.bitwise_or(whole, high)
    return whole if dtype == f"uint{bits}" else tirx.reinterpret(dtype, whole)
