"""Refuse tensors that are too large for 32-bit indices.

A target addresses the elements of a tensor with integers of ``Capabilities.offset_bits``. If those have 64 bits, a
tensor may have more than 2**31 elements as long as each of its extents, and each index that the program computes of
sizes, block indices and induction variables, fits into 32. That is checked by ``check_reach``: for constant shapes at
compile time, for symbolic ones at launches with such arrays.

Where sizes are 64-bit symbols, an index may still come from 32-bit arithmetic: launches refuse extents beyond it.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tile_core.abi.signature import evaluate
from tile_core.analysis.ranges import RangedRewriter, sizes_of, whole
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.errors.launch import TooManyElements
from tile_core.ir import nodes
from tile_core.ir.grammar import MOST_THREADS, SYMBOL_HEADROOM
from tile_core.ir.program import dim_of
from tile_core.ir.visit import collect, role, walk
from tile_core.numerics.build import type_name

if TYPE_CHECKING:
    from tile_core.ir.program import Dim, Program

__all__ = ["check_reach", "narrow_extents"]

_LIMIT = 2**31 - 1
_ARITHMETIC = (tirx.Add, tirx.Sub, tirx.Mul)


def check_reach(program: Program, offset_bits: int, sizes: Mapping[str, int] | None = None) -> None:
    """Refuse tensors that are too large for the indices of a program.

    Parameters
    ----------
    program
        A program whose sizes are 32-bit integers.
    offset_bits
        Width of the integers with which the target addresses elements.
    sizes
        The values of symbols at a launch. By default tensors of symbolic shape are not checked.

    Raises
    ------
    TooManyElements
        Naming the tensor.
    """
    large = {}
    for param in program.params:
        if param.kind != "tensor":
            continue
        shape, strides = (_known(dims, sizes) for dims in (param.shape, param.strides))
        if shape is None or (strides is None and param.strides is not None):
            continue
        span = _span(shape, strides)
        if span <= _LIMIT:
            continue
        large[param.name] = span
        widest = max((*shape, *(strides or ())))
        if offset_bits == 32:
            raise _too_many(program, param.name, span)
        if widest > _LIMIT:
            what = "dimension" if widest in shape else "stride"
            raise _too_many(program, param.name, span, f": a {what} of {widest} needs 64-bit sizes")
        if param.name in program.layouts:
            raise _too_many(program, param.name, span, ": its layout is annotated")
    found = _overflow(program, sizes) if large else None
    if found is not None:
        name, span = max(large.items(), key=lambda item: item[1])
        raise _too_many(program, name, span, f": {found}")


def narrow_extents(program: Program) -> dict[str, tuple[tuple[Dim, str], ...]]:
    """Return, by parameter, 64-bit extents whose 32-bit indices may overflow, and these as text.

    Parameters
    ----------
    program
        A program with sizes of 64 bits.
    """
    search = _NarrowSearch(sizes_of(program.func.params))
    search.stmt(program.func.body)
    return {name: tuple(found.items()) for name, found in search.extents.items()}


def _known(dims: Sequence[Dim] | None, sizes: Mapping[str, int] | None) -> tuple[int, ...] | None:
    """Return extents or strides as integers, if all are known."""
    found = [d if isinstance(d, int) else evaluate(d, sizes or {}) for d in dims or ()]
    return None if dims is None or any(n is None for n in found) else tuple(n for n in found if n is not None)


def _span(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> int:
    if 0 in shape:
        return 0
    if strides is None:
        return math.prod(shape)
    return 1 + sum((n - 1) * abs(s) for n, s in zip(shape, strides, strict=True))


def _too_many(program: Program, name: str, span: int, reason: str = "") -> TooManyElements:
    error = TooManyElements(kernel=program.name, name=name, found=span, expected=_LIMIT, bits=32, reason=reason)
    error.at(program.where)
    return error


def _overflow(program: Program, sizes: Mapping[str, int] | None) -> str | None:
    """Return how 32-bit arithmetic on sizes, block indices and induction variables overflows, if it does."""
    search = _ReachSearch()
    for name, var in program.symbols.items():
        if sizes is not None and name in sizes:
            search.ranges.set(var, (sizes[name], sizes[name]))
    search.stmt(program.func.body)
    return search.found


class _ReachSearch(RangedRewriter):
    def __init__(self) -> None:
        super().__init__()
        for name in ("thread_index", "lane_index", "warp_index"):
            self.ranges.calls[f"tile.{name}"] = (0, MOST_THREADS - 1)
        self.found: str | None = None
        #: Variables whose values come from memory.
        self.data: set[Var] = set()
        self.blocks = 1

    def visit_For(self, s: Stmt) -> Stmt:
        outer = self.blocks
        if role(s) == "grid" and self.is_known(s.extent):
            most = max(1, self.ranges.of(s.extent)[1])
            self.blocks *= most
            _, other = self.ranges.calls.get("tile.block_index", (0, 0))
            self.ranges.calls["tile.block_index"] = (0, max(other, most - 1))
            if self.blocks > _LIMIT:
                self.found = f"its grid has {self.blocks} blocks"
        new = super().visit_For(s)
        self.blocks = outer
        return new

    def visit_Bind(self, s: Stmt) -> Stmt:
        if not self.is_known(s.value):
            self.data.add(s.var)
        return super().visit_Bind(s)

    def visit_DeclBuffer(self, s: Stmt) -> Stmt:
        extents = [n for n in structural.items(s.buffer.shape) if self.is_known(n)]
        if nodes.scope_of(s.buffer) == "global" and any(self.ranges.of(n)[1] > _LIMIT for n in extents):
            self.found = f"the view {s.buffer.name} has a dimension of more than {_LIMIT} elements"
        for n in extents:
            self.expr(n)
        return s

    def expr(self, e: Expr) -> Expr:
        walk(e, _ARITHMETIC, self.look)
        return e

    def look(self, e: Expr) -> None:
        if type_name(e) == "int32" and self.is_known(e) and self.ranges.of(e) == whole("int32"):
            self.found = f"{e} is computed in 32 bits"

    def is_known(self, e: Expr) -> bool:
        """Whether an integer depends on sizes, block indices and induction variables only."""
        return not collect(e, ir.TensorLoad) and all(
            self.ranges.knows(v) and v not in self.data for v in collect(e, tirx.Var)
        )


class _NarrowSearch(RangedRewriter):
    """Finds accesses of 64-bit extents by results of 32-bit arithmetic that may overflow."""

    def __init__(self, sizes: Iterable[Var]) -> None:
        super().__init__(sizes)
        for var in sizes:
            self.ranges.set(var, (0, whole(type_name(var))[1] - SYMBOL_HEADROOM))
        for name in ("thread_index", "lane_index", "warp_index"):
            self.ranges.calls[f"tile.{name}"] = (0, MOST_THREADS - 1)
        self.extents: dict[str, dict[Dim, str]] = defaultdict(dict)
        self.bases: dict[BufferVar, BufferVar] = {}
        #: Variables and scratch buffers whose values come from arithmetic that may overflow.
        self.narrow: set[Var] = set()

    def visit_DeclBuffer(self, s: Stmt) -> Stmt:
        for base in (v for v in collect(s.data, tirx.Var) if tirx.is_buffer_var(v)):
            self.bases[s.buffer] = self.bases.get(base, base)
        return s

    def visit_Bind(self, s: Stmt) -> Stmt:
        if self.may_overflow(s.value):
            self.narrow.add(s.var)
        return super().visit_Bind(s)

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        self.access(s.buffer, structural.items(s.indices))
        if nodes.scope_of(s.buffer) != "global" and self.may_overflow(s.value):
            self.narrow.add(s.buffer)
        return super().visit_BufferStore(s)

    def expr(self, e: Expr) -> Expr:
        for load in collect(e, ir.TensorLoad):
            self.access(load.source, structural.items(load.indices))
        for part in collect(e, ir.TensorRegion):
            for axis, r in enumerate(structural.items(part.region)):
                extent = nodes.as_int(r.extent)
                self.look(part.source, axis, r.min, extent if isinstance(extent, int) else 1)
        return e

    def access(self, buffer: BufferVar, indices: Sequence[Expr]) -> None:
        for axis, index in enumerate(indices):
            self.look(buffer, axis, index, 1)

    def look(self, buffer: BufferVar, axis: int, index: Expr, length: int) -> None:
        """Record the extent of an axis that limits an index; a view's tensor for views."""
        tensor: Any = self.bases.get(buffer, buffer)
        shape = structural.items(tensor.shape)
        if nodes.scope_of(tensor) != "global" or all(type_name(n) != "int64" for n in shape):
            return
        if tensor is buffer and type_name(shape[axis]) != "int64":
            return
        ends = self.ranges.of(index)[1] + length - 1 > _LIMIT
        if not self.may_overflow(index) and not (ends and collect(index, _ARITHMETIC) and type_name(index) == "int32"):
            return
        extent = dim_of(shape[axis]) if tensor is buffer else functools.reduce(_product, map(dim_of, shape))
        self.extents[str(tensor.name)].setdefault(extent, str(index))

    def may_overflow(self, e: Expr) -> bool:
        """Whether a value depends on 32-bit arithmetic that may overflow."""
        if any(v in self.narrow for v in collect(e, tirx.Var)):
            return True
        arithmetic = collect(e, _ARITHMETIC)
        return any(type_name(x) == "int32" and self.ranges.of(x) == whole("int32") for x in arithmetic)


def _product(a: Dim, b: Dim) -> Dim:
    return ("mul", a, b)
