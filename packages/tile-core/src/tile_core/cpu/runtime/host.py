"""The adapter for functions in this process: arrays go through tvm-ffi without copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

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
        """Build the lowered function and return its entry, which takes arrays and numbers.

        Raises
        ------
        CodeGenerationEnded
            LLVM ends the process that generates the code.
        """
        from tile_core.compat.tvm import tirx
        from tile_core.cpu.build import ENTRY, build
        from tile_core.cpu.processors import is_swept, missing_here
        from tile_core.cpu.runtime.forks import parallel
        from tile_core.cpu.runtime.interrupts import interruptible
        from tile_core.cpu.target import isa_of
        from tile_core.ir.visit import collect

        isa = isa_of(self.target)
        if missing := missing_here(isa.mcpu):
            return self.refusing(missing)
        if not is_swept(isa.mcpu):
            from tile_core.cpu.trial import try_to_compile

            try_to_compile(artefact, isa, self.target.text)
        module = build(artefact, isa)
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

    def refusing(self, missing: list[str]) -> Callable[..., object]:
        """Return a launch that names the instructions which this machine lacks."""
        from tile_core.cpu.isa import detect
        from tile_core.errors.setup import ProcessorLacksInstructions

        def launch(*values: object) -> NoReturn:
            names = ", ".join(missing)
            raise ProcessorLacksInstructions(
                kernel="the kernel", target=self.target.text, host=detect().mcpu, missing=names
            )

        return launch

    def build_steps(self, artefact: Expr) -> list[tuple[str, float]]:
        """Build the lowered function once more, with a clock."""
        from tile_core.cpu.build import build
        from tile_core.cpu.target import isa_of

        steps: list[tuple[str, float]] = []
        build(artefact, isa_of(self.target), steps)
        return steps

    def synchronize(self) -> None:
        """Nothing to wait for: a call returns when its blocks are done."""
