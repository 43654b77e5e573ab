"""Refuse, before lowering, what a target lacks entirely: element types, threads, names of other targets."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Stmt
from tile_core.dtypes import DTYPES
from tile_core.errors.lowering import (
    ClusterUnsupported,
    RoundingUnsupported,
    TooManyThreads,
    TypeUnsupported,
)
from tile_core.ir import nodes
from tile_core.ir.attributes import REQUIRES, THREADS
from tile_core.ir.program import cluster_of
from tile_core.ir.visit import collect
from tile_core.lowering.dispatch import missing
from tile_core.ops import copy_to_block
from tile_core.target import ABSENT

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.ir.program import Program
    from tile_core.lowering.variant import Variant

__all__ = ["check_target"]

_INNERMOST = (tirx.BufferStore, tirx.Bind, tirx.Evaluate)


def check_target(body: Stmt, program: Program, variants: Sequence[Variant], ctx: Context) -> None:
    """Refuse a program that uses features that the target lacks.

    Raises
    ------
    TypeUnsupported
        A parameter or tile of an element type that the target does not have.
    TooManyThreads
        A block has more threads than the target's blocks.
    VariantMissing
        A name of the language that belongs to another target.
    ClusterUnsupported
        A copy from block to block, where no blocks run together.
    RoundingUnsupported
        A rounding that the target's instructions do not have.
    """
    _check_types(body, program, ctx)
    most = ctx.capabilities.max_threads
    launch = _launch(body)
    threads = math.prod(int(nodes.as_int(t)) for t in launch.annotations[THREADS]) if launch is not None else 1
    if threads > most:
        facts = {"kernel": program.name, "found": threads, "limit": most, "target": ctx.target.text}
        raise TooManyThreads(**facts, where=nodes.where_of(launch) or program.where)
    for statement in collect(body, tirx.Evaluate):
        call = statement.value
        if nodes.is_tile_call(call, copy_to_block.NAME) and ctx.capabilities.max_cluster == 1:
            facts = {"kernel": program.name, "found": math.prod(cluster_of(program.attrs)), "target": ctx.target.text}
            fix = "exchange tiles by way of global memory, in two launches"
            raise ClusterUnsupported(**facts, limit="no clusters", fix=fix, where=nodes.where_of(statement))
        if isinstance(call, ir.Call) and call.attrs is not None and REQUIRES in call.attrs:
            wanted = str(call.attrs[REQUIRES])
            op = nodes.operator_name(call).removeprefix("tile.")
            if not any(v.name.startswith(wanted) for v in variants):
                known = sorted(v.name for v in variants if v.op == op)
                where = nodes.where_of(statement)
                raise missing(structural.entries(call.attrs), wanted, op, known, ctx.target.text, where)

    modes = ctx.capabilities.roundings
    for statement in [*collect(body, _INNERMOST), body]:
        for call in collect(statement, ir.Call):
            name = nodes.operator_name(call)
            if name.startswith("ieee_") and (mode := name.rsplit("_", 2)[1]) not in modes:
                facts = {"op": name.rsplit("_", 2)[0], "target": ctx.target.text, "found": mode}
                where = program.where if statement is body else nodes.where_of(statement)
                raise RoundingUnsupported(where=where, known=", ".join(sorted(modes)), **facts)


def _check_types(body: Stmt, program: Program, ctx: Context) -> None:
    absent = {str(name) for name in ctx.capabilities.fact(ABSENT)} & DTYPES.keys()
    if not absent:
        return
    held = [(p.name, p.dtype, program.where) for p in program.params]
    for alloc in collect(body, tirx.AllocBuffer):
        held.append((str(alloc.buffer.name), nodes.element_type(alloc.buffer), nodes.where_of(alloc)))
    for name, found, where in held:
        if found in absent:
            facts = {"kernel": program.name, "name": name, "found": found, "target": ctx.target.text}
            raise TypeUnsupported(**facts, hint=_instead(found, absent), where=where or program.where)


def _instead(found: str, absent: Collection[str]) -> str:
    """Return the advice of the widest type of the same kind that a target has."""
    kind = DTYPES[found].kind
    present = [d for name, d in DTYPES.items() if d.kind == kind and name not in absent]
    if not present:
        return "choose another target"
    return f"use {max(present, key=lambda d: d.bits)}, or choose another target"


def _launch(body: Stmt) -> Stmt | None:
    """Return the loop of the grid that carries the number of threads per block."""
    return next((loop for loop in collect(body, tirx.For) if THREADS in (loop.annotations or {})), None)
