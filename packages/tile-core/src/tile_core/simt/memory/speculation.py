"""Speculative loads: loads under a condition that a vector access may always make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from tile_core.analysis.proofs import Proofs
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import collect, distinct
from tile_core.records import dataclass


@dataclass(frozen=True)
class Known:
    """The ranges of variables that the code of a thread does not define.

    Attributes
    ----------
    extents
        The number of values, from 0 on.
    sizes
        Variables that are not negative.
    """

    extents: Mapping[Var, int]
    sizes: Sequence[Var] = ()


class Speculation:
    """Facts at one point of the code of a thread.

    A load may be made in any case if its element is in the buffer and nothing in the kernel writes the buffer: it has
    no effect then, and no other thread's write races with it.

    Parameters
    ----------
    body
        The code.
    known
        The ranges of its other variables.
    """

    def __init__(self, body: Stmt, known: Known) -> None:
        self.known = known
        self.facts: list[Stmt] = []
        self.conditions: list[Expr] = []
        self.proofs: Proofs | None = None
        #: The buffer that a view belongs to.
        self.roots: dict[BufferVar, BufferVar] = {}
        views = collect(body, tirx.DeclBuffer)
        named = [v for c in collect(body, ir.Call) if nodes.is_tile_call(c) for v in collect(c, tirx.Var)]
        stored = [s.buffer for s in collect(body, tirx.BufferStore)]
        written = {v for v in distinct([*stored, *named]) if tirx.is_buffer_var(v)}
        for d in views:  # in the order of the code: a view of a view comes behind it
            for base in collect(d.data, tirx.Var):
                self.roots[d.buffer] = self.roots.get(base, base)
        self.written = {self.roots.get(b, b) for b in written}
        # Of an address from a table no buffer is known.
        self.allowed = not any(not tirx.is_buffer_var(v) for d in views for v in collect(d.data, tirx.Var))

    def record(self, s: Stmt) -> None:
        """Record the range of a loop's variable, or the value of a binding."""
        self.facts.append(s)

    @contextmanager
    def under(self, *conditions: Expr) -> Iterator[None]:
        """Assume conditions in a scope."""
        count = len(self.conditions)
        self.conditions += [c for c in conditions if not collect(c, ir.TensorLoad)]
        yield
        del self.conditions[count:]

    def allows(self, buffer: BufferVar, start: Sequence[Expr], count: int) -> bool:
        """Whether ``count`` adjacent elements may be loaded although a condition may not hold."""
        if not self.allowed or nodes.scope_of(buffer) != "global":
            return False
        if self.roots.get(buffer, buffer) in self.written:
            return False
        proofs = self._proofs()
        with ExitStack() as scope:
            for c in self.conditions:
                scope.enter_context(proofs.under(c, None))
            for dim, (index, extent) in enumerate(zip(start, nodes.shape_of(buffer), strict=True)):
                kind = nodes.dtype_of(index)
                last = index + nodes.int_const(count - 1, kind) if dim == len(start) - 1 else index
                if collect(index, ir.TensorLoad) or nodes.dtype_of(nodes.int_const(0, kind) + extent) != kind:
                    return False
                if proofs.bound(index)[0] < 0 and not proofs.holds(index >= nodes.int_const(0, kind)):
                    return False
                if not proofs.holds(last < extent):
                    return False
        return True

    def _proofs(self) -> Proofs:
        """Return the facts so far as proofs."""
        if self.proofs is None:
            self.proofs = Proofs()
            for var in self.known.sizes:
                self.proofs.size(var)
            for var, extent in self.known.extents.items():
                self.proofs.ranges.set(var, (0, extent - 1))
                self.proofs.analyzer.bind(var, ir.Range.from_min_extent(0, extent))
        for s in self.facts:
            if isinstance(s, tirx.For):
                self.proofs.loop(s)
            else:
                self.proofs.value(s)
        self.facts.clear()
        return self.proofs
