"""The adapter for functions in this process: arrays go through tvm-ffi without copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tile_core.abi.adapter import HOST_DEVICE, RuntimeAdapter
from tile_core.compat.types import Expr

if TYPE_CHECKING:
    from tile_core.target import Target


class HostAdapter(RuntimeAdapter):
    """Calls compiled functions on host memory."""

    name = "host"
    devices = frozenset({HOST_DEVICE})
    convention = "packed"

    def __init__(self, target: Target) -> None:
        self.target = target

    def load(self, artefact: Expr) -> Callable[..., object]:
        """Build the lowered function and return its entry, which takes arrays and numbers."""
        from tile_core.compat.tvm import tirx
        from tile_core.cpu.build import ENTRY, build
        from tile_core.cpu.runtime.forks import parallel
        from tile_core.cpu.runtime.interrupts import interruptible
        from tile_core.cpu.target import isa_of
        from tile_core.ir.visit import collect

        module = build(artefact, isa_of(self.target))
        entry: Callable[..., object] = module[ENTRY]
        if any(loop.kind == tirx.ForKind.PARALLEL for loop in collect(artefact.body, tirx.For)):
            entry = parallel(entry)
        coded = artefact.attrs.get("tile.coded")
        if coded:
            from tile_core.cpu.runtime.scalars import with_codes

            entry = with_codes(entry, {int(str(i)): str(d) for i, d in coded.items()})
        if artefact.attrs.get("tile.calls_back"):
            from tile_core.cpu.debug import with_failures

            entry = with_failures(entry)
        return interruptible(entry) if collect(artefact.body, tirx.While) else entry

    def build_steps(self, artefact: Expr) -> list[tuple[str, float]]:
        """Build the lowered function once more, with a clock."""
        from tile_core.cpu.build import build
        from tile_core.cpu.target import isa_of

        steps: list[tuple[str, float]] = []
        build(artefact, isa_of(self.target), steps)
        return steps

    def synchronize(self) -> None:
        """Nothing to wait for: a call returns when its blocks are done."""
