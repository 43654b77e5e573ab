"""Refuse tensors of constant shape that are too large for 32-bit indices, before anything is built.

A target addresses the elements of a tensor with integers of ``Capabilities.offset_bits``. If those have 64 bits, a
tensor may have more than 2**31 elements as long as each of its extents, and each index that the program computes, fits
into 32.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tile_core.analysis.ranges import RangedRewriter, whole
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.errors.launch import TooManyElements
from tile_core.ir.visit import collect, walk
from tile_core.numerics.build import type_name

if TYPE_CHECKING:
    from tile_core.ir.program import Program

__all__ = ["check_reach"]

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
