"""Refuse, before lowering, what a target lacks entirely: too many threads, or names of other targets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Stmt
from tile_core.errors.lowering import RoundingUnsupported, TooManyThreads, VariantMissing
from tile_core.ir import nodes
from tile_core.ir.visit import collect

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.ir.program import Program
    from tile_core.lowering.variant import Variant

__all__ = ["check_target"]


def check_target(body: Stmt, program: Program, variants: Sequence[Variant], ctx: Context) -> None:
    """Refuse a program that uses features that the target lacks.

    Raises
    ------
    TooManyThreads
        A block has more threads than the target's blocks.
    VariantMissing
        A name of the language that belongs to another target.
    RoundingUnsupported
        A rounding that the target's instructions do not have.
    """
    most = ctx.capabilities.max_threads
    threads = math.prod(_threads(body))
    if threads > most:
        raise TooManyThreads(
            kernel=program.name, found=threads, limit=most, target=ctx.target.text, where=program.where
        )
    for statement in collect(body, tirx.Evaluate):
        call = statement.value
        if isinstance(call, ir.Call) and call.attrs is not None and nodes.REQUIRES in call.attrs:
            wanted = str(call.attrs[nodes.REQUIRES])
            op = nodes.operator_name(call).removeprefix("tile.")
            if not any(v.name.startswith(wanted) for v in variants):
                advice = f"{wanted} belongs to another target: use the language's own op"
                known = ", ".join(sorted(v.name for v in variants if v.op == op))
                facts = {"target": ctx.target.text, "found": wanted, "op": op, "known": known, "hint": advice}
                raise VariantMissing(where=nodes.where_of(statement), **facts)

    for call in collect(body, ir.Call):
        name = nodes.operator_name(call)
        if name.startswith("ieee_"):
            op, mode, _ = name.rsplit("_", 2)
            modes = ctx.capabilities.roundings
            if mode not in modes:
                facts = {"op": op, "target": ctx.target.text, "found": mode, "known": ", ".join(sorted(modes))}
                raise RoundingUnsupported(where=program.where, **facts)


def _threads(body: Stmt) -> list[int]:
    for loop in collect(body, tirx.For):
        found = (loop.annotations or {}).get(nodes.THREADS)
        if found is not None:
            return [int(nodes.as_int(t)) for t in found]
    return [1]
