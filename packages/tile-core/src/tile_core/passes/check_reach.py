"""Refuse tensors of constant shape that are too large for 32-bit indices.

A target addresses the elements of a tensor with integers of ``Capabilities.offset_bits``. If those have 64 bits, a
tensor may have more than 2**31 elements as long as each of its extents, and each index that the program computes, fits
into 32.

Where sizes are 64-bit symbols, an index may still come from 32-bit arithmetic: launches refuse extents beyond it.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tile_core.analysis.ranges import RangedRewriter, sizes_of, whole
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.errors.launch import TooManyElements
from tile_core.ir import nodes
from tile_core.ir.grammar import MOST_THREADS, SYMBOL_HEADROOM
from tile_core.ir.program import dim_of
from tile_core.ir.visit import collect, walk
from tile_core.numerics.build import type_name

if TYPE_CHECKING:
    from tile_core.ir.program import Dim, Program

__all__ = ["check_reach", "narrow_extents"]

_LIMIT = 2**31 - 1
_ARITHMETIC = (tirx.Add, tirx.Sub, tirx.Mul)


def check_reach(program: Program, offset_bits: int) -> None:
    """Refuse tensors of constant shape that are too large for the indices of a program.

    Parameters
    ----------
    program
        A program whose sizes are 32-bit integers.
    offset_bits
        Width of the integers with which the target addresses elements.

    Raises
    ------
    TooManyElements
        Naming the tensor.
    """
    large = {}
    for param in program.params:
        given = (*param.shape, *(param.strides or ()))
        dims = [d for d in given if isinstance(d, int)]
        if param.kind != "tensor" or len(dims) < len(given):
            continue
        span = _span(param.shape, param.strides)
        if span <= _LIMIT:
            continue
        large[param.name] = span
        if offset_bits == 32 or max(dims) > _LIMIT or param.name in program.layouts:
            raise _too_many(program, param.name, span)
    if large and _overflows(program.func.body):
        raise _too_many(program, *max(large.items(), key=lambda item: item[1]))


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


def _span(shape: tuple[Any, ...], strides: tuple[Any, ...] | None) -> int:
    if 0 in shape:
        return 0
    if strides is None:
        return math.prod(shape)
    return 1 + sum((n - 1) * abs(s) for n, s in zip(shape, strides, strict=True))


def _too_many(program: Program, name: str, span: int) -> TooManyElements:
    error = TooManyElements(kernel=program.name, name=name, found=span, expected=_LIMIT, bits=32)
    error.at(program.where)
    return error


def _overflows(body: Stmt) -> bool:
    """Whether 32-bit arithmetic on block indices and induction variables overflows."""
    search = _ReachSearch()
    search.stmt(body)
    return search.found


class _ReachSearch(RangedRewriter):
    def __init__(self) -> None:
        super().__init__()
        self.found = False

    def expr(self, e: Expr) -> Expr:
        walk(e, _ARITHMETIC, self.look)
        return e

    def look(self, e: Expr) -> None:
        known = all(v in self.ranges.variables for v in collect(e, tirx.Var))
        if known and type_name(e) == "int32" and self.ranges.of(e) == whole("int32"):
            self.found = True


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
