"""Emitted kernels of the zoo, as plans before they are printed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from zoo import launch
from zoo.suite import Zoo

import tile_core.emit.tail
from tile_core.plugins.contexts import make_context
from tile_cuda.text import emit_plan

from ..zoo.boxes_in_flight import BOXES_IN_FLIGHT
from ..zoo.bulk import BULK
from ..zoo.lanes import LANES
from ..zoo.multicast import CLUSTERS
from ..zoo.pairs import PAIRS
from ..zoo.persistent import PERSISTENT
from ..zoo.tensor_memory import ISSUED, SM_120, TENSOR
from ..zoo.warpgroups import WARPGROUPS

ZOOS = (BOXES_IN_FLIGHT, BULK, LANES, CLUSTERS, PAIRS, PERSISTENT, ISSUED, SM_120, TENSOR, WARPGROUPS)


class Emitted:
    """The kernel of a zoo's entry, and its runs under the emulator.

    Parameters
    ----------
    zoo, name, target
        The entry, and one of the zoo's targets.
    """

    def __init__(self, zoo: Zoo, name: str, target: str = "") -> None:
        self.zoo, self.case, self.target = zoo, zoo.case_of(name), target or zoo.targets[0]
        self.context = make_context(self.target, zoo.options)
        plans: list[Any] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tile_core.emit.tail, "check_emitted", lambda plan, known: plans.append(plan) or "")
            launch.text_for(self.case, self.context)
        self.plan = plans[-1]

    def misbehaves(self, body: Any) -> str:
        """Return the mistake that the emulator finds in another body; empty if there is none."""
        text = emit_plan(self.plan.replace(body=body), self.context)
        for how in self.zoo.orders:
            result = self.zoo.run(self.case, text, self.target, **how)
            if result.reports:
                return str(result.reports[0])
            if wrong := launch.wrong(self.case, text, result):
                return str(wrong[0])
        return ""


def entries() -> Iterator[tuple[Zoo, str, str]]:
    """Yield all entries with their targets."""
    for zoo in ZOOS:
        for entry in zoo.entries:
            for target in zoo.targets:
                yield zoo, entry.name, target
