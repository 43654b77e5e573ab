"""Matrices inside tirx buffers, and the few expression helpers that code generation for them needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BinaryNode, BufferVar, Expr, ForKind, Stmt, Var
from tile_core.records import dataclass


@dataclass(frozen=True)
class Tile2D:
    """A matrix seen inside a tirx buffer.

    Attributes
    ----------
    buffer
        The tirx buffer.
    lead
        Indices of the dimensions of the buffer before that of the rows.
    row0, col0
        Offsets (ints or expressions) into the dimension of the rows and the last one.
    transposed
        Logical element ``(i, j)`` lives at ``buffer[*lead, row0 + j, *between, col0 + i]``, not ``[*lead, row0 + i,
        *between, col0 + j]``.
    dtype
        TVM dtype of the buffer's elements.
    load
        Replaces reading: ``load(i, j)`` returns the value of element ``(i, j)``, of any dtype that a Cast accepts.
    between
        Indices of the dimensions between that of the rows and the last one.
    """

    buffer: BufferVar
    lead: tuple[Expr, ...]
    row0: Expr
    col0: Expr
    transposed: bool
    dtype: str
    load: BinaryNode | None = None
    between: tuple[Expr, ...] = ()

    def at(self, i: Expr, j: Expr) -> list[Expr]:
        """Full index list of logical element ``(i, j)``."""
        row, col = (j, i) if self.transposed else (i, j)
        return [*self.lead, plus(self.row0, row), *self.between, plus(self.col0, col)]

    def read(self, i: Expr, j: Expr) -> Expr:
        """Value of logical element ``(i, j)``: through ``load`` if there is one."""
        return tirx.BufferLoad(self.buffer, self.at(i, j)) if self.load is None else self.load(i, j)

    def flipped(self) -> Tile2D:
        """The same memory seen as the transposed matrix."""
        load = self.load
        swapped = None if load is None else lambda i, j: load(j, i)
        return replace(self, transposed=not self.transposed, load=swapped)

    def window(self, i0: Expr, j0: Expr) -> Tile2D:
        """The part of the matrix that begins at logical element ``(i0, j0)``."""
        row, col = (j0, i0) if self.transposed else (i0, j0)
        load = self.load
        moved = None if load is None else lambda i, j: load(plus(i0, i), plus(j0, j))
        return replace(self, row0=plus(self.row0, row), col0=plus(self.col0, col), load=moved)


def plus(x: Expr, y: Expr) -> Expr:
    """``x + y`` of ints or int32 expressions, without adding zeros."""
    if isinstance(x, int) and isinstance(y, int):
        return x + y
    if isinstance(x, int):
        x, y = y, x
    return x if isinstance(y, int) and y == 0 else x + y


def times(x: Expr, factor: int) -> Expr:
    """``x * factor`` of an int or int32 expression, without multiplying by one."""
    return x if factor == 1 else x * factor


def ramp(start: Expr, lanes: int) -> Expr:
    """Index of ``lanes`` consecutive elements from ``start``; the scalar index itself for one lane."""
    if lanes == 1:
        return start
    start = tirx.IntImm("int32", start) if isinstance(start, int) else start
    return tirx.Ramp(start, tirx.IntImm(element_dtype(start), 1), lanes)


def splat(value: Expr, lanes: int) -> Expr:
    """``value`` in every lane."""
    return value if lanes == 1 else tirx.Broadcast(value, lanes)


def vector_dtype(dtype: str, lanes: int) -> str:
    """TVM's name of a vector type."""
    return dtype if lanes == 1 else f"{dtype}x{lanes}"


def cast(value: Expr, source: str, target: str, lanes: int = 1) -> Expr:
    """``value`` of element dtype ``source`` converted to ``target``."""
    return value if source == target else tirx.Cast(vector_dtype(target, lanes), value)


def zero(dtype: str) -> Expr:
    """The scalar zero of a dtype."""
    return tirx.FloatImm(dtype, 0.0) if dtype.startswith(("float", "bfloat")) else tirx.IntImm(dtype, 0)


def prefetch(buffer: BufferVar, indices: list[Expr], *, writes: bool = False, near: bool = True) -> Stmt:
    """Return a prefetch of an element's cache line, to write it, or into L2 only."""
    address = tirx.address_of(tirx.BufferLoad(buffer, indices))
    kind, locality, data = (tirx.IntImm("int32", x) for x in (int(writes), 3 if near else 2, 1))
    return tirx.Evaluate(tirx.call_intrin("void", "tirx.prefetch", address, kind, locality, data))


def sequence(*statements: Stmt) -> Stmt:
    """One statement that runs all of them in order."""
    return statements[0] if len(statements) == 1 else tirx.SeqStmt(list(statements))


def loop(name: str, extent: int, body: Callable[[Var], Stmt], kind: ForKind = None) -> Stmt:
    """Return a loop over ``range(extent)`` of ``body(index)``, or the body alone if ``extent`` is 1."""
    if extent == 1:
        return body(0)
    index = tirx.Var(name, "int32")
    return tirx.For(index, 0, extent, tirx.ForKind.SERIAL if kind is None else kind, body(index))


def element_dtype(value: Expr) -> str:
    """The dtype of a scalar expression."""
    return str(value.ty)


def bits_of(dtype: str) -> int:
    """Width of one element of a plain scalar dtype, in bits."""
    return int(dtype.lstrip("abcdefghijklmnopqrstuvwxyz"))
