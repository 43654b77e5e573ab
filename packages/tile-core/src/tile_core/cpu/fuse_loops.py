"""Fuse loops over the same elements, so that tiles are used from registers or L1.

Each op and each ``T.Parallel`` of a program is a loop over a whole tile. A row of a norm is written and read again by
one loop after the other, from a cache that it may fill. Iterations of a parallel loop may run in any order: the
producers of an iteration's elements can run right before it, one for each iteration, or a whole step of a reduction;
the users of its elements right after it. The indices of all accesses to memory that one of both loops writes show the
pairs.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence

from tile_core.analysis.affine import linear_form
from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.structural import identity
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.cpu.read_again import read_again
from tile_core.cpu.vectorize import has_vector_form, lanes_of
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import (
    StmtRewriter,
    bodies_of,
    collect,
    map_expr,
    renamed,
    replace_for,
    role,
    statements,
    substitute,
    uses_var,
)
from tile_core.passes.float_rules import PREFIX
from tile_core.records import dataclass
from tile_core.simt.memory.alignment import view_roots

__all__ = ["counts", "ends_of", "fuse_loops", "is_plain"]

_STATEMENTS = (tirx.BufferStore, tirx.Bind, tirx.AllocBuffer)
#: Calls that are values: they neither write memory nor stop.
_VALUES = (
    "reinterpret",
    "if_then_else",
    "call_llvm_pure_intrin",
    "fma",
    "sqrt",
    "abs",
    "fabs",
    "floor",
    "ceil",
    "trunc",
)


#: Statements between a loop and the user of its elements, at most.
_MOST_BETWEEN = 32


def fuse_loops(body: Stmt, vector_bits: int) -> Stmt:
    """Return the body with parallel loops fused into the later loops that use their elements.

    Parameters
    ----------
    body
        A program before vectorization.
    vector_bits
        Width of the processor's vectors. Loops that have vectors keep them.
    """
    if not vector_bits:
        return body
    roots = view_roots(body)
    return _DropStores(roots).stmt(_FuseLoops(roots, vector_bits).stmt(_ReadAgain(roots).stmt(body)))


@dataclass(frozen=True)
class _LoopAccess:
    buffer: BufferVar
    indices: tuple[Expr, ...]
    writes: bool


class _FuseLoops(StmtRewriter):
    def __init__(self, roots: Mapping[BufferVar, BufferVar], vector_bits: int) -> None:
        self.roots = roots
        self.vector_bits = vector_bits
        #: Statements, whose identities stay their own, and their accesses; ``None`` for more than stores of values.
        self.accesses: dict[int, tuple[Stmt, list[_LoopAccess] | None]] = {}

    def visit_SeqStmt(self, s: Stmt) -> Stmt:
        rest = list(statements(s))
        at = 0
        while at < len(rest):
            found = self.user(rest, at)
            if found is None:
                at += 1
            else:
                index, fused = found
                rest[index : index + 1] = fused
                del rest[at]
        if len(rest) == len(s.seq) and all(a.same_as(b) for a, b in zip(rest, s.seq, strict=True)):
            return super().visit_SeqStmt(s)
        return nodes.seq([self.stmt(x) for x in rest])

    def user(self, rest: Sequence[Stmt], at: int) -> tuple[int, list[Stmt]] | None:
        """Return the index of the first user of a loop's elements, and the fused statements."""
        first = rest[at]
        mine = self.accessed(first) if _is_loop(first) else None
        if mine is None:
            return None
        for index in range(at + 1, min(len(rest), at + 1 + _MOST_BETWEEN)):
            others = self.accessed(rest[index])
            if others is None:
                return None
            pairs = self.conflicts(mine, others)
            if pairs:
                fused = None if pairs[0] is None else self.fused(first, rest[index], pairs)
                return None if fused is None else (index, fused)
        return None

    def accessed(self, s: Stmt) -> list[_LoopAccess] | None:
        """Return the accesses of a statement that only computes and stores values."""
        key = identity(s)
        if key not in self.accesses:
            self.accesses[key] = s, _accesses(s) if is_plain(s) else None
        return self.accesses[key][1]

    def conflicts(
        self, mine: Sequence[_LoopAccess], others: Sequence[_LoopAccess]
    ) -> list[tuple[_LoopAccess, _LoopAccess] | None]:
        """Return the pairs of accesses whose order counts.

        ``None`` alone if one buffer has two names.
        """
        found: list[tuple[_LoopAccess, _LoopAccess] | None] = []
        for one in mine:
            for other in others:
                if not (one.writes or other.writes) or not self.root(one.buffer).same_as(self.root(other.buffer)):
                    continue
                if not one.buffer.same_as(other.buffer) or DTYPES[nodes.element_type(one.buffer)].bits < 8:
                    return [None]
                found.append((one, other))
        return found

    def root(self, buffer: BufferVar) -> BufferVar:
        return self.roots.get(buffer, buffer)

    def fused(
        self, first: Stmt, second: Stmt, pairs: Sequence[tuple[_LoopAccess, _LoopAccess] | None]
    ) -> list[Stmt] | None:
        """Return the fused loop, and a loop of the iterations that are left."""
        if not _is_loop(second) or "parallel" not in (role(first), role(second)):
            return None
        widths = {_width(first, second, pair) for pair in pairs if pair is not None}
        width = widths.pop() if len(widths) == 1 else None
        trips, count = int(nodes.as_int(second.extent)), int(nodes.as_int(first.extent))
        least = count // 2 + 1 if collect(first.body, tirx.For) else 1  # the other rows become a loop of their own
        if width is None or not least <= trips * width <= count:
            return None
        fused = self.one_by_one(first, second) if width == 1 else self.in_steps(first, second, width)
        left = count - trips * width
        if fused is None or not left:
            return None if fused is None else [fused]
        var = nodes.fresh(first.loop_var.name)
        body = substitute(first.body, {first.loop_var: var + trips * width})
        return [fused, renamed(replace_for(first, body, loop_var=var, extent=nodes.int_const(left)))]

    def one_by_one(self, first: Stmt, second: Stmt) -> Stmt | None:
        kept = second if role(first) == "parallel" else first  # the one whose iterations have an order, if any
        parts = [substitute(s.body, {s.loop_var: kept.loop_var}) for s in (first, second)]
        fused = replace_for(kept, nodes.seq(parts), extent=second.extent)
        if collect(first.body, tirx.For):
            # Rows stay rows: a loop of single numbers keeps its own vectors.
            return fused if collect(second.body, tirx.For) else None
        if not all(role(loop) == "parallel" and has_vector_form(loop) for loop in (first, second, fused)):
            return None
        return fused if lanes_of(first, self.vector_bits) == lanes_of(second, self.vector_bits) else None

    def in_steps(self, first: Stmt, second: Stmt, width: int) -> Stmt | None:
        if role(first) != "parallel" or not (
            collect(first.body, tirx.For) or width % lanes_of(first, self.vector_bits) == 0
        ):
            return None
        var = nodes.fresh(first.loop_var.name)
        body = substitute(first.body, {first.loop_var: second.loop_var * width + var})
        step = replace_for(first, body, loop_var=var, extent=nodes.int_const(width))
        return replace_for(second, nodes.seq([step, second.body]))


class _ReadAgain(StmtRewriter):
    """Rewrites the blocks of a grid, whose statements are those around all loops."""

    def __init__(self, roots: Mapping[BufferVar, BufferVar]) -> None:
        self.viewed = {v for pair in roots.items() for v in pair}

    def visit_For(self, s: Stmt) -> Stmt:
        if role(s) != "grid":
            return s
        return replace_for(s, nodes.seq(read_again(list(statements(s.body)), self.viewed, is_plain)))


class _DropStores(StmtRewriter):
    """Names the values of scratch that only statements of the same iteration use.

    Values that nothing uses are not computed.
    """

    def __init__(self, roots: Mapping[BufferVar, BufferVar]) -> None:
        self.viewed = {v for pair in roots.items() for v in pair}

    def visit_For(self, s: Stmt) -> Stmt:
        if role(s) != "grid":
            return s
        parts = list(statements(s.body))
        own = {x.buffer for x in parts if type(x) is tirx.AllocBuffer} - self.viewed
        live, kept = set[Var](), list[Stmt]()
        for part in reversed(parts):
            left = self.named(part, own - live, []) if type(part) is tirx.For and is_plain(part) else part
            if left is not None:
                kept.append(left)
                live.update(() if type(left) is tirx.AllocBuffer else collect(left, tirx.Var))
        return replace_for(s, nodes.seq(kept[::-1]))

    def named(self, loop: Stmt, scratch: set[BufferVar], outer: list[Var]) -> Stmt | None:
        """Return a loop without stores to scratch; ``None`` if it stores nothing else."""
        nest = [*outer, loop.loop_var]
        body = list(statements(loop.body))
        if any(type(s) is tirx.For for s in body):
            own = {b for b in scratch if len(body) == 1 or all(_reads_own(s, b) for s in body if uses_var(s, b))}
            inner = [self.named(s, own, nest) if type(s) is tirx.For else s for s in body]
            left = [s for s in inner if s is not None]
            return replace_for(loop, nodes.seq(left)) if left else None
        for at, s in reversed(list(enumerate(body))):
            if isinstance(s, tirx.BufferStore) and s.buffer in scratch and _is_of_an_iteration(body, at, nest):
                value = tirx.Var(s.buffer.name, s.value.ty)
                reads = functools.partial(_read, s.buffer, value)
                after = [map_expr(x, reads, ir.TensorLoad) for x in body[at + 1 :]]
                is_used = any(not x.same_as(y) for x, y in zip(after, body[at + 1 :], strict=True))
                body[at:] = [tirx.Bind(value, s.value), *after] if is_used else after
        return replace_for(loop, nodes.seq(body)) if collect(nodes.seq(body), tirx.BufferStore) else None


def _read(buffer: BufferVar, value: Var, e: Expr) -> Expr:
    return value if e.source.same_as(buffer) else e


def _reads_own(s: Stmt, buffer: BufferVar) -> bool:
    """Whether iterations of a loop read only elements of a buffer that they stored before."""
    if type(s) is not tirx.For:
        return False
    users = [x for x in statements(s.body) if uses_var(x, buffer)]
    if any(type(x) is tirx.For for x in users):
        return all(_reads_own(x, buffer) for x in users)
    first = users[0] if users else None
    if not isinstance(first, tirx.BufferStore) or not first.buffer.same_as(buffer):
        return False
    return not uses_var(first.value, buffer) and _is_of_an_iteration(users, 0, [])


def _is_of_an_iteration(body: Sequence[Stmt], at: int, nest: Sequence[Var]) -> bool:
    """Whether all accesses to a stored element's buffer are those of its own iteration."""
    s = body[at]
    same = [x for x in collect(nodes.seq(list(body)), ir.TensorLoad) if x.source.same_as(s.buffer)]
    stores = [x for x in collect(nodes.seq(list(body)), tirx.BufferStore) if x.buffer.same_as(s.buffer)]
    apart = [a - b for x in same for a, b in zip(x.indices, s.indices, strict=True)]
    if len(stores) > 1 or any(nodes.as_int(Analyzer().simplify(d)) != 0 for d in apart):
        return False
    if not any(uses_var(x, s.buffer) for x in (s.value, *body[:at])) and not collect(list(s.indices), ir.TensorLoad):
        return True
    forms = [linear_form(i, list(nest)) for i in s.indices]
    units = {f.steps for f in forms if f is not None}
    return all(tuple(int(v is w) for w in nest) in units for v in nest)


def _is_loop(s: Stmt) -> bool:
    return type(s) is tirx.For and role(s) in ("parallel", "serial") and counts(s)


def counts(loop: Stmt) -> bool:
    """Whether a loop runs from 0 to a constant."""
    return nodes.as_int(loop.min) == 0 and isinstance(nodes.as_int(loop.extent), int) and loop.step is None


def is_plain(s: Stmt) -> bool:
    """Whether a statement only computes values and stores them to buffers that it names."""
    for x in statements(s):
        inside = bodies_of(x) if type(x) in (tirx.For, tirx.IfThenElse) else []
        if not inside and not isinstance(x, _STATEMENTS):
            return False
        if not all(map(is_plain, inside)):
            return False
    return all(map(_is_value, collect(s, ir.Call)))


def _is_value(call: Expr) -> bool:
    name = nodes.operator_name(call)
    return name in _VALUES or name.startswith((PREFIX, nodes.WRAPPING_PREFIX))


def _accesses(s: Stmt) -> list[_LoopAccess]:
    stores = [_LoopAccess(x.buffer, tuple(x.indices), True) for x in collect(s, tirx.BufferStore)]
    return [*stores, *(_LoopAccess(x.source, tuple(x.indices), False) for x in collect(s, ir.TensorLoad))]


def _width(first: Stmt, second: Stmt, pair: tuple[_LoopAccess, _LoopAccess]) -> int | None:
    """Return how many iterations of the first loop belong to one of the second."""
    inner = {loop.loop_var: loop for loop in collect(second.body, tirx.For)}
    own = _defined(first.body)
    others = _defined(second.body) - set(inner)
    for mine, theirs in zip(pair[0].indices, pair[1].indices, strict=True):
        one = linear_form(mine, [first.loop_var])
        other = linear_form(theirs, [second.loop_var, *inner])
        if (
            nodes.dtype_of(mine) != nodes.dtype_of(theirs)
            or one is None
            or other is None
            or one.steps != (1,)
            or own.intersection(collect(one.rest, tirx.Var))
        ):
            continue
        width, *steps = other.steps
        if width < 1 or others.intersection(collect(other.rest, tirx.Var)):
            continue
        ends = list(ends_of(steps, list(inner.values())))
        start = nodes.as_int(Analyzer().simplify(other.rest - one.rest))
        if not isinstance(start, int) or None in ends:
            continue
        low, high = start + sum(e[0] for e in ends if e), start + sum(e[1] for e in ends if e)
        if low >= 0 and high < width:
            return width
    return None


def _defined(s: Stmt) -> set[Var]:
    loops = {x.loop_var for x in collect(s, tirx.For)}
    return loops | {x.var for x in collect(s, (tirx.Bind, tirx.Let))}


def ends_of(steps: Sequence[int], loops: Sequence[Stmt]) -> Iterator[tuple[int, int] | None]:
    """Yield the range that each loop adds to an index; ``None`` for an unknown one."""
    for step, loop in zip(steps, loops, strict=True):
        start, extent = nodes.as_int(loop.min), nodes.as_int(loop.extent)
        if not step:
            yield 0, 0
        elif not isinstance(start, int) or not isinstance(extent, int) or loop.step is not None:
            yield None
        else:
            ends = sorted((step * start, step * (start + max(extent, 1) - 1)))
            yield ends[0], ends[1]
