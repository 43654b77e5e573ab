"""Decode calls of tile ops, view their operands, and define the ``TileOp`` record.

A tile op has three parts, all in its own file: the *signature* (the function that users call, which checks its
arguments and emits one call), the *effects* (which operands it reads and writes) and the *meaning* (plain loops over
scalars). The meaning is the definition of the op: the CPU backend executes it where it has nothing faster, and every
other lowering is tested against it. Meanings access memory freely; the guard pass adds the out-of-range rule.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from typing import Any

from tile_core.compat import structural
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Operand, Span, Stmt
from tile_core.dtypes import DTYPES
from tile_core.errors import Where
from tile_core.ir import nodes
from tile_core.ir.attributes import CALLED, COMPLETES, KIND, Attrs
from tile_core.records import dataclass

#: Position of the barrier that counts a copy's bytes, behind the copy's own operands, by the name of the op.
COUNTED = {"copy": 2, "gather": 3}
#: Position of the barrier whose arrival signals that a product is complete, behind the product's own operands, by
#: the name of the op. Its calls have the attribute ``COMPLETES``.
COMPLETED = {"gemm": 4, "gemm_sp": 5, "gemm_scaled": 6}


@dataclass(frozen=True)
class View:
    """A region operand as an array of its own, with index 0 at its corner.

    Attributes
    ----------
    buffer
        The tirx buffer.
    mins, extents
        Corner and extents, one per dimension of the buffer; extents of tile operands are ints.
    """

    buffer: BufferVar
    mins: tuple[Expr, ...]
    extents: tuple[int, ...]

    @classmethod
    def of(cls, region: Expr) -> View:
        """Decode a tirx region."""
        ranges = structural.items(region.region)
        mins = tuple([nodes.as_int(r.min) for r in ranges])
        return cls(region.source, mins, tuple([nodes.as_int(r.extent) for r in ranges]))

    @property
    def dtype(self) -> str:
        """Element type of the buffer."""
        return nodes.element_type(self.buffer)

    @property
    def scope(self) -> str:
        """Storage scope of the buffer."""
        return nodes.scope_of(self.buffer)

    @property
    def name(self) -> str:
        """Name of the buffer."""
        return str(self.buffer.name)

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole buffer."""
        return list(self.extents) == nodes.shape_of(self.buffer) and all(nodes.as_int(m) == 0 for m in self.mins)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents that are not 1, or ``(1,)`` when all are: the shape that ops compare."""
        kept = tuple(e for e in self.extents if e != 1)
        return kept or (1,)

    def matrix_dims(self) -> tuple[int, int]:
        """Return a matrix operand's two dimensions: the last two, or the only non-unit ones."""
        long = [d for d, e in enumerate(self.extents) if e != 1]
        last = len(self.extents) - 1
        if not long or long[0] >= last - 1:
            return last - 1, last
        return (long[0], long[1]) if len(long) == 2 else (long[0], last)

    def at(self, indices: Sequence[Expr]) -> list[Expr]:
        """Return buffer indices for one index per dimension of the buffer."""
        return [_plus(m, i) for m, i in zip(self.mins, indices, strict=True)]

    def spread(self, indices: Sequence[Expr]) -> list[Expr]:
        """Return buffer indices for one index per dimension of ``shape``."""
        if not self.extents:
            return []
        wide = [d for d, e in enumerate(self.extents) if e != 1] or [len(self.extents) - 1]
        full: list[Expr] = [0] * len(self.extents)
        for d, i in zip(wide, indices, strict=True):
            full[d] = i
        return self.at(full)

    def load(self, indices: Sequence[Expr]) -> Expr:
        """Load the element at an index per dimension of the buffer."""
        return nodes.load(self.buffer, self.at(indices))

    def store(self, value: Expr, indices: Sequence[Expr]) -> Stmt:
        """Store to the element at an index per dimension of the buffer."""
        return nodes.store(self.buffer, value, self.at(indices))


def _plus(a: Expr, b: Expr) -> Expr:
    if isinstance(a, int) and a == 0:
        return b
    if nodes.as_int(b) == 0 and not isinstance(nodes.as_int(b), bool):
        return a
    return a + b


@dataclass(frozen=True)
class OpCall:
    """A decoded tile call.

    Attributes
    ----------
    name
        Op name without the ``tile.`` prefix.
    args
        ``View`` for region operands, tirx expressions for others.
    attrs
        Compile-time arguments.
    where, span
        The user's line.
    """

    name: str
    args: tuple[Operand, ...]
    attrs: Attrs = field(default_factory=dict)
    where: Where | None = None
    span: Span | None = None

    @functools.cached_property
    def decided(self) -> dict[Hashable, Any]:
        """Decisions that follow from the call alone, by kind: many passes need them."""
        return {}

    @property
    def written(self) -> str:
        """The name that the user called, such as ``T.reduce_sum`` or a variant's name."""
        if CALLED in self.attrs:
            return str(self.attrs[CALLED][0])
        kind = str(self.attrs.get(KIND, ""))
        names = {"reduce": f"reduce_{kind}", "scan": f"cum{kind}", "atomic": f"atomic_{kind}"}
        return f"T.{names.get(self.name, self.name)}"

    @staticmethod
    @functools.lru_cache(maxsize=512)
    def decode(stmt: Stmt) -> OpCall:
        """Decode ``Evaluate(tile call)``, with a cache for statements that most passes decode."""
        call = stmt.value
        args = tuple(View.of(a) if hasattr(a, "region") else a for a in structural.items(call.args))
        where, span = nodes.where_of(stmt), getattr(stmt, "span", None)
        return OpCall(str(call.op.name)[5:], args, structural.entries(call.attrs), where, span)


Meaning = Callable[[OpCall], Stmt]


def accumulates_floats(call: OpCall) -> bool:
    """Whether a call accumulates floats, so that its result depends on the order."""
    kind = str(call.attrs.get(KIND, "sum"))
    exact = kind in ("max", "min", "absmax", "bitand", "bitor", "bitxor", "any", "all")
    return not exact and any(isinstance(a, View) and DTYPES[a.dtype].is_float for a in call.args)


def completion(call: OpCall) -> View | None:
    """Return the barrier that a product signals on completion, if there is one."""
    found = call.args[COMPLETED[call.name]] if COMPLETES in call.attrs else None
    assert found is None or isinstance(found, View)
    return found


@dataclass(frozen=True)
class TileOp:
    """The record of one op.

    Attributes
    ----------
    name
        Op name.
    reads, writes
        Positions of the operands that the op reads and writes.
    meaning
        From a call to a statement of plain loops.
    slots
        Positions of the operands that may be one slot of a pipelined buffer: the op identifies their dimensions from
        the end, by extents other than 1, or by an attribute holding a dimension's number, which is adjusted.
    per_thread
        Whether each thread executes the op for itself, even if the call does not name a thread.
    accumulates
        Whether the op combines many elements into one, see ``accumulates_floats``.
    """

    name: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    meaning: Meaning
    slots: tuple[int, ...] = ()
    per_thread: bool = False
    accumulates: bool = False

    def views(self, call: OpCall, positions: Sequence[int]) -> list[View]:
        """Return the region operands at ``positions``."""
        return [call.args[p] for p in positions if p < len(call.args) and isinstance(call.args[p], View)]


def is_op(stmt: Stmt) -> bool:
    """Whether a statement is a tile call."""
    return type(stmt) is tirx.Evaluate and nodes.is_tile_call(stmt.value)


def with_attributes(stmt: Stmt, attrs: Attrs, args: Sequence[Expr] | None = None) -> Stmt:
    """Return the statement of a tile op with more attributes, and optionally other operands."""
    call, old = stmt.value, OpCall.decode(stmt).attrs
    operands = list(call.args) if args is None else list(args)
    return tirx.Evaluate(type(call)(call.op, operands, attrs={**old, **attrs}, ret_ty=call.ty), stmt.span)
