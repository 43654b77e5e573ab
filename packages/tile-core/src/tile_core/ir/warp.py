"""Warp operations: their names, as used by every pass and target.

Each is one call ``tile.<name>(...)``: a shuffle of (value, lane or amount, width; 0 for the whole warp), a vote of
(condition), a reduction of (value).
"""

from __future__ import annotations

from tile_core.compat.types import Call
from tile_core.ir import nodes

WARP = 32
"""Threads of a warp in the language, where the target has none of its own (see ``Capabilities.execution_width``)."""

SHUFFLES = {"shfl_sync": "idx", "shfl_xor": "bfly", "shfl_up": "up", "shfl_down": "down"}
"""How each shuffle selects its source lane: by index, by XOR, or by a distance below or above."""

VOTES = {"ballot": "ballot", "any_sync": "any", "all_sync": "all"}
"""The result of each vote on the conditions of all lanes."""

REDUCTIONS = {f"warp_reduce_{kind}": kind for kind in ("sum", "max", "min", "bitand", "bitor")}
"""How each reduction combines the values of all lanes."""

GROUP_REDUCE = "group_reduce"
"""The call ``tile.group_reduce(mask, value)`` of one instruction, with the attribute ``kind``: what passes leave of a
reduction on a target that has it (``Capabilities.group_reductions``)."""

WARP_CALLS = frozenset({*SHUFFLES, *VOTES, *REDUCTIONS})
"""All of them."""

UNIFORM_CALLS = frozenset({*VOTES, *REDUCTIONS})
"""Those whose result is the same in all lanes."""


def warp_call(e: Call) -> str:
    """Return the name of an expression's warp operation; empty if it is not one."""
    name = nodes.operator_name(e)
    return name[5:] if name.startswith("tile.") and name[5:] in WARP_CALLS else ""
