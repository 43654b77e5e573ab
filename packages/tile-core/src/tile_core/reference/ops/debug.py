"""``T.print`` and ``T.device_assert``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tile_core.compat.types import Array
from tile_core.errors.launch import DeviceAssertFailed
from tile_core.ir import nodes
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
    where = scope.where
    if call.name == "device_assert":
        condition = compile_expression(call.args[0], scope)

        def check(state: State) -> None:
            holds = np.broadcast_to(condition(state), state.count)
            if not holds[state.active()].all():
                raise DeviceAssertFailed(message=str(call.attrs["message"]), where=where)

        return check
    parts = [
        (RegionOperand(a, scope), a.dtype) if isinstance(a, View) else (compile_expression(a, scope), nodes.dtype_of(a))
        for a in call.args
    ]

    def show(state: State) -> None:
        for lane in state.active():
            texts = [_text(part, dtype, state, int(lane)) for part, dtype in parts]
            state.printed.append(str(call.attrs["format"]).format(*texts))

    return show


def _text(part: Any, dtype: str, state: State, lane: int) -> Array:
    if not isinstance(part, RegionOperand):
        return decode(np.broadcast_to(part(state), state.count)[lane], dtype)
    region = part.bound(state)
    if region is None:
        return f"<{dtype}>"
    return decode(region.read(), dtype).reshape(region.shape)
