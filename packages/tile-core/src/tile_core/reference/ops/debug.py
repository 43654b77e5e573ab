"""``T.print`` and ``T.device_assert``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tile_core.compat.types import Array, Operand
from tile_core.errors.launch import DeviceAssertFailed, asserted
from tile_core.ir import attributes, nodes
from tile_core.ops.base import OpCall, View
from tile_core.reference.elements import decode
from tile_core.reference.expressions import compile_expression
from tile_core.reference.ops.operands import RegionOperand
from tile_core.reference.state import State

if TYPE_CHECKING:
    from tile_core.reference.scope import CompileScope, Statement

__all__ = ["compile_debug"]


def compile_debug(call: OpCall, scope: CompileScope) -> Statement:
    """Return the function of a print, kept in the state, or of an assertion."""
    where, threads = scope.where, scope.threads
    count = int(call.attrs.get(attributes.LOCATED, 0))
    parts = [_operand(a, scope) for a in call.args]
    before = str(call.attrs.get(attributes.AT, ""))

    def located(state: State, lane: int) -> str:
        text = before.format(*(_text(part, dtype, state, lane) for part, dtype in parts[:count]))
        return f"{text}, thread {_thread(state, lane)}" if threads and text else text

    if call.name == "device_assert":
        condition, _ = parts[count]

        def check(state: State) -> None:
            active = state.active()
            bad = active[~np.broadcast_to(condition(state), state.count)[active]]
            if len(bad):
                at = located(state, int(bad[0]))
                raise DeviceAssertFailed(message=asserted(str(call.attrs[attributes.MESSAGE]), at), where=where)

        return check

    def show(state: State) -> None:
        for lane in map(int, state.active()):
            at = located(state, lane)
            text = str(call.attrs[attributes.FORMAT]).format(
                *(_text(p, dtype, state, lane) for p, dtype in parts[count:])
            )
            state.printed.append(f"{at}: {text}" if at else text)

    return show


def _operand(a: Operand, scope: CompileScope) -> tuple[Any, str]:
    return (
        (RegionOperand(a, scope), a.dtype) if isinstance(a, View) else (compile_expression(a, scope), nodes.dtype_of(a))
    )


def _thread(state: State, lane: int) -> int:
    """Return the thread of a lane, which may be one of its iterations."""
    lanes = state.lanes
    while lanes.parent is not None:
        lane, lanes = 0 if lanes.index is None else int(lanes.index[lane]), lanes.parent
    return lane


def _text(part: Any, dtype: str, state: State, lane: int) -> Array:
    if not isinstance(part, RegionOperand):
        return decode(np.broadcast_to(part(state), state.count)[lane], dtype)
    region = part.bound(state)
    if region is None:
        return f"<{dtype}>"
    return decode(region.read(), dtype).reshape(region.shape)
