"""Emitted kernels of a zoo, as plans before they are printed, for tests of the proof of their barriers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tile_core.emit.tail
from tile_core.abi.kernel_text import KernelText
from tile_core.context import Context
from tile_core.errors.lowering import UnprovenBarriers
from tile_core.passes.spine import Plan
from tile_core.plugins.contexts import make_context
from tile_core.simt.barrier_proof.check import check_emitted
from tile_core.simt.barrier_proof.instructions import AsyncInstructions

from . import launch
from .suite import Zoo


class Emitted:
    """The kernel of a zoo's entry, and its runs under the emulator.

    Parameters
    ----------
    zoo, name, target
        The entry, and one of the zoo's targets, by default the first.
    emit
        Prints a plan.
    """

    def __init__(self, zoo: Zoo, name: str, emit: Callable[[Plan, Context], KernelText], target: str = "") -> None:
        self.zoo, self.case, self.target, self.emit = zoo, zoo.case_of(name), target or zoo.targets[0], emit
        self.context = make_context(self.target, zoo.options)
        found: list[Any] = []

        def kept(plan: Plan, instructions: AsyncInstructions) -> str:
            found.append((plan, instructions))
            return ""

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tile_core.emit.tail, "check_emitted", kept)
            launch.text_for(self.case, self.context)
        self.plan, self.instructions = found[-1]

    def uncovered(self) -> str:
        """Return the reason why the proof does not cover the kernel; empty if it does."""
        return check_emitted(self.plan, self.instructions)

    def refusal(self, body: Any) -> str:
        """Return the message with which the proof refuses another body; empty if it accepts it."""
        try:
            assert not check_emitted(self.plan.replace(body=body), self.instructions)
        except UnprovenBarriers as error:
            return str(error)
        return ""

    def misbehaves(self, body: Any) -> str:
        """Return the mistake that the emulator finds in another body; empty if there is none."""
        text = self.emit(self.plan.replace(body=body), self.context)
        for how in self.zoo.orders:
            result = self.zoo.run(self.case, text, self.target, **how)
            if result.reports:
                return str(result.reports[0])
            if wrong := launch.wrong(self.case, text, result):
                return str(wrong[0])
        return ""
