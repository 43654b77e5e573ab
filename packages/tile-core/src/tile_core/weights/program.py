"""A program whose parameter of 4-bit elements is in packed order."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.errors.language import NotPackable
from tile_core.errors.locations import placed
from tile_core.ir import nodes
from tile_core.ir.attributes import SAFE_VALUES
from tile_core.ir.program import ParamInfo, Program
from tile_core.ir.visit import collect, map_expr
from tile_core.numerics.exprs import int4_expr
from tile_core.runtime.settings import program_of
from tile_core.simt.memory.element_units import UseUnits, ends_of, units_of
from tile_core.weights.order import GROUP, WORD, word_and_shift

__all__ = ["with_packed_weights"]


@placed
def with_packed_weights(program: Program, *names: str) -> Program:
    """Return a program whose weights of 4 bits are in the order of ``tile.pack_weights``.

    Such a parameter is an array of ``uint32`` with an eighth of the elements along its last axis. The program's text
    and its results stay as they are.

    Parameters
    ----------
    program
        What ``@T.prim_func`` returned.
    names
        Parameters of the types ``int4``, ``uint4`` or ``float4_e2m1fn``, whose last extent is a constant multiple of
        32. Copies of them fill shared tiles in multiples of 32; elements are read in expressions.

    Raises
    ------
    NotPackable
        A parameter is declared or used in another way.
    BadSetting
        ``program`` is something else.
    """
    program = program_of("tile.with_packed_weights", program)
    for name in names:
        program = _packed(program, name)
    return program


def _packed(program: Program, name: str) -> Program:
    at = next((n for n, p in enumerate(program.params) if p.name == name), None)
    if at is None:
        known = ", ".join(p.name for p in program.params)
        raise _refused(program, name, "it has no such parameter", f"name one of {known}")
    info, old = program.params[at], program.func.params[at]
    _check(program, info)
    tiles = _tiles_of(program.func.body, old)
    buffers = {b: units_of(b, WORD, "uint32") for b in (old, *tiles)}
    rewriter = _UseWords(buffers)
    body = rewriter.stmt(program.func.body)
    left = next((b for b in buffers if b in rewriter.refused or b in set(collect(body, tirx.Var))), None)
    if left is not None:
        raise _refused(program, name, *_reason(old, left, tiles))
    own = next((str(b.name) for b in buffers if str(b.name) in _annotated(program)), None)
    if own is not None:
        reason = f"{own} has a layout or values outside of its own"
        raise _refused(program, name, reason, "leave it out of T.annotate_layout and T.annotate_safe_value")
    params = [buffers[old] if v.same_as(old) else v for v in program.func.params]
    func = tirx.PrimFunc(params, body, program.func.ret_type, program.func.attrs, program.func.span)
    shape = (*info.shape[:-1], int(info.shape[-1]) // WORD)  # type: ignore[arg-type]
    changed = dataclasses.replace(info, dtype="uint32", shape=shape)
    infos = tuple(changed if n == at else p for n, p in enumerate(program.params))
    return dataclasses.replace(program, func=func, params=infos)


def _check(program: Program, info: ParamInfo) -> None:
    """Refuse parameters that are no contiguous tensors of 4-bit elements in whole groups."""
    if info.kind != "tensor" or not DTYPES[info.dtype].is_packed:
        found = f"it is a {info.kind} of {info.dtype}"
        raise _refused(
            program, info.name, found, "int4, uint4 and float4_e2m1fn are packed; declare it as one of these"
        )
    last = info.shape[-1] if info.shape else 1
    if not isinstance(last, int) or last % GROUP:
        near = f"; the nearest is {max(1, round(last / GROUP)) * GROUP}" if isinstance(last, int) else ""
        found = f"its last extent is {last}"
        raise _refused(program, info.name, found, f"declare a constant multiple of {GROUP}{near}")
    if info.strides is not None:
        raise _refused(program, info.name, "it has strides of its own", "declare it as T.Tensor")


def _tiles_of(body: Stmt, weights: BufferVar) -> list[BufferVar]:
    """Return the tiles that copies fill with a tensor's elements."""
    found: dict[Var, None] = {}
    for s in collect(body, tirx.Evaluate):
        ends = ends_of(s)
        if len(ends) == 2 and ends[0].buffer.same_as(weights) and ends[1].dtype == ends[0].dtype:
            found[ends[1].buffer] = None
    return [b for b in found if nodes.scope_of(b) == "shared"]


def _annotated(program: Program) -> frozenset[str]:
    """Return the names of buffers with a layout, or with values outside."""
    launches = (program.attrs, *program.launches)
    return frozenset(map(str, (*program.layouts, *(b for x in launches for b in x.get(SAFE_VALUES) or ()))))


def _reason(weights: BufferVar, left: Var, tiles: list[BufferVar]) -> tuple[str, str]:
    of = f"the tile {left.name}" if any(left.same_as(t) for t in tiles) else str(weights.name)
    return (
        f"a statement does not read {of} by elements, or copies parts of groups of {GROUP} elements",
        f"copy multiples of {GROUP} elements of a row, from a multiple, to a shared tile of the same type, and convert "
        "its elements in T.Parallel",
    )


def _refused(program: Program, name: str, reason: str, fix: str) -> NotPackable:
    return NotPackable(name=name, kernel=program.name, reason=reason, fix=fix, where=program.where)


class _UseWords(UseUnits):
    def __init__(self, buffers: Mapping[Var, BufferVar]) -> None:
        super().__init__(buffers, WORD, GROUP, ())

    def expr(self, e: Expr) -> Expr:
        return map_expr(map_expr(e, self.converted, tirx.Cast), self.element, ir.TensorLoad)

    def converted(self, e: Expr) -> Expr:
        """Return the conversion of an element."""
        load = e.value
        if type(load) is not ir.TensorLoad or load.source not in self.buffers:
            return e
        kind = nodes.element_type(load.source)
        return nodes.cast(
            self.element(load) if DTYPES[kind].is_float else int4_expr(self.code(load), kind), nodes.dtype_of(e)
        )

    def element(self, load: Expr) -> Expr:
        """Return an element, which is a part of a word."""
        if load.source not in self.buffers:
            return load
        kind, code = nodes.element_type(load.source), self.code(load)
        return tirx.reinterpret(kind, nodes.cast(code, "uint8")) if DTYPES[kind].is_float else nodes.cast(code, kind)

    def code(self, load: Expr) -> Expr:
        """Return the four bits of an element as ``uint32``."""
        *rows, last = load.indices
        word, shift = word_and_shift(last)
        bits = nodes.load(self.buffers[load.source], [*rows, word], load.span)
        return (bits >> nodes.cast(shift, "uint32")) & nodes.int_const(15, "uint32")
