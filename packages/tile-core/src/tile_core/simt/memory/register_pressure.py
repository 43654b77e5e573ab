"""Register pressure: arrays that are live at the same time, and their registers."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import prod

from tile_core.compat.structural import attribute, identity, items
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Node, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.attributes import ACCESS
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.visit import bodies_of, collect, distinct
from tile_core.ops.base import View, is_op
from tile_core.ops.effects import effects
from tile_core.ops.registry import OPS
from tile_core.records import dataclass


@dataclass(frozen=True)
class RegisterPressure:
    """The most registers that arrays take at a time.

    Attributes
    ----------
    registers
        Their number, of 32 bits, in each thread.
    arrays
        The arrays that take them, each with its registers, largest first.
    """

    registers: int = 0
    arrays: tuple[tuple[BufferVar, int], ...] = ()


def registers_of(array: BufferVar) -> int:
    """Return the number of 32-bit registers that an array takes."""
    elements = prod(int(nodes.as_int(n)) for n in array.shape)
    return -(-elements * max(8, DTYPES[nodes.element_type(array)].bits) // 32)


def register_pressure(body: Stmt, scopes: Collection[str] = PRIVATE) -> RegisterPressure:
    """Return the largest register pressure of a thread's code.

    An array is live from a loop that writes all of it, or from its allocation, to its last access before the next such
    loop. It is an estimate: a condition around such a loop is taken to hold.

    Parameters
    ----------
    scopes
        Of the arrays that count: with ``local.fragment``, registers of all threads that hold a fragment's elements.
    """
    liveness = _Liveness(scopes)
    liveness.before(body, frozenset(), 1)
    found = sorted(((b, registers_of(b)) for b in liveness.most), key=lambda x: (-x[1], str(x[0].name)))
    return RegisterPressure(sum(n for _, n in found), tuple(found))


class _Liveness:
    """Finds the private arrays that are live before statements, and the largest set."""

    def __init__(self, scopes: Collection[str]) -> None:
        self.scopes = scopes
        self.most: frozenset[BufferVar] = frozenset()
        self.registers = 0
        self._sizes: dict[int, int] = {}
        #: One object for each array: sets compare other objects slowly.
        self._arrays: dict[int, BufferVar] = {}
        #: What statements access, by identity: loops are visited twice.
        self._known: dict[int, tuple[_Accessed, Stmt]] = {}

    def before(self, s: Stmt, live: frozenset[BufferVar], iterations: int) -> frozenset[BufferVar]:
        """Return the arrays that are live before a statement.

        Parameters
        ----------
        live
            The arrays that are live behind it.
        iterations
            Iterations of the loops around it that are known.
        """
        if type(s) is tirx.SeqStmt:
            for x in reversed(items(s.seq)):
                live = self.before(x, live, iterations)
            return live
        if type(s) is tirx.AllocBuffer:
            return live - self._own([s.buffer])
        if type(s) in (tirx.For, tirx.While):
            return self.loop(s, live, iterations)
        if type(s) is tirx.IfThenElse:
            inside = [self.before(x, live, iterations) for x in bodies_of(s)]
            return self.at(inside[0].union(*inside[1:]), self._own(_read(s.condition, self.scopes)))
        if type(s) is tirx.AttrStmt:
            return self.before(s.body, live, iterations)
        found = self._accessed(s)
        self.at(live, found.read | found.filled | found.stored)
        covered = frozenset(b for b in found.stored - found.read if prod(nodes.shape_of(b)) <= iterations)
        return (live - found.filled - covered) | (found.read - found.filled)

    def loop(self, s: Stmt, live: frozenset[BufferVar], iterations: int) -> frozenset[BufferVar]:
        extent = nodes.as_int(s.extent) if type(s) is tirx.For else None
        known = iterations * extent if isinstance(extent, int) and extent > 0 else 1
        behind = live | self._own(_read(s.condition, self.scopes) if type(s) is tirx.While else ())
        begin = self.before(s.body, behind, known)
        if not begin <= behind:  # what an iteration reads of the one before
            begin = self.before(s.body, behind | begin, known)
        return begin if isinstance(extent, int) and extent > 0 else begin | behind

    def at(self, live: frozenset[BufferVar], accessed: frozenset[BufferVar]) -> frozenset[BufferVar]:
        """Record and return the arrays that are live at a point."""
        found = live | accessed
        registers = 0
        for b in found:
            size = self._sizes.get(identity(b))
            if size is None:
                size = self._sizes[identity(b)] = registers_of(b)
            registers += size
        if registers > self.registers:
            self.most, self.registers = found, registers
        return found

    def _accessed(self, s: Stmt) -> _Accessed:
        known = self._known.get(identity(s))
        if known is None:
            found = _Accessed.of(s, self.scopes)
            own = _Accessed(self._own(found.read), self._own(found.filled), self._own(found.stored))
            known = self._known[identity(s)] = own, s
        return known[0]

    def _own(self, arrays: Iterable[BufferVar]) -> frozenset[BufferVar]:
        return frozenset([self._arrays.setdefault(identity(b), b) for b in arrays])


@dataclass(frozen=True)
class _Accessed:
    """Private arrays that a statement reads, fills by instructions, and stores to."""

    read: frozenset[BufferVar]
    filled: frozenset[BufferVar]
    stored: frozenset[BufferVar]

    @classmethod
    def of(cls, s: Stmt, scopes: Collection[str]) -> _Accessed:
        """Return the arrays of a statement."""
        if is_op(s) and str(s.value.op.name)[5:] in OPS:
            reads, writes = effects(s)
            read, written = _held(reads, scopes), _held(writes, scopes)
            whole = _held([v for v in writes if tuple(v.extents) == tuple(nodes.shape_of(v.buffer))], scopes)
            return cls(read | _read(s, scopes), whole - read, written - whole)
        private = type(s) is tirx.BufferStore and nodes.scope_of(s.buffer) in scopes
        calls = [c for c in collect(s, ir.Call) if nodes.is_tile_call(c, "address") and attribute(c, ACCESS) == "w"]
        filled = [b for c in calls for b in _read(c, scopes)]
        return cls(_read(s, scopes), frozenset(distinct(filled)), frozenset({s.buffer} if private else ()))


def _held(views: Iterable[View], scopes: Collection[str]) -> frozenset[BufferVar]:
    return frozenset(v.buffer for v in views if v.scope in scopes)


def _read(s: Node, scopes: Collection[str]) -> frozenset[BufferVar]:
    found = distinct([x.source for x in collect(s, ir.TensorLoad)])
    return frozenset(b for b in found if nodes.scope_of(b) in scopes)
