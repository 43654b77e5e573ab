"""The adapter for functions in this process: arrays go through tvm-ffi without copies."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from tile_core.abi.adapter import HOST_DEVICE, RuntimeAdapter
from tile_core.compat.types import Expr
from tile_core.cpu.attributes import CALLS_BACK, CODED

if TYPE_CHECKING:
    from tile_core.abi.kernel_text import KernelText
    from tile_core.cpu.isa import Isa
    from tile_core.target import Target

_TRIES = 6
_COPIED, _SIDE = 64 << 20, 1024


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
        from tile_core.cpu.micro_tiles import tile_features
        from tile_core.cpu.processors import missing_here
        from tile_core.cpu.runtime.forks import parallel
        from tile_core.cpu.target import isa_of
        from tile_core.ir.visit import collect
        from tile_runtime.cpu.interrupts import interruptible
        from tile_runtime.cpu.processor import lacking

        isa = isa_of(self.target)
        if missing := [*missing_here(isa), *lacking(tile_features(artefact.body))]:
            return self.refusing(missing)
        self._try(artefact, isa)
        module = build(artefact, isa)
        entry: Callable[..., object] = module[ENTRY]
        machine_code: Any = entry
        if any(loop.kind == tirx.ForKind.PARALLEL for loop in collect(artefact.body, tirx.For)):
            entry = parallel(entry)
        coded = artefact.attrs.get(CODED)
        if coded:
            from tile_runtime.cpu.scalars import with_codes

            entry = with_codes(entry, {int(str(i)): str(d) for i, d in coded.items()})
        if artefact.attrs.get(CALLS_BACK):
            from tile_core.cpu.debug import with_failures

            entry = with_failures(entry)
        launch: Any = interruptible(entry) if collect(artefact.body, tirx.While) else entry
        if launch is not machine_code:
            launch.machine_code = machine_code
        return launch

    def machine_code(self, launch: Callable[..., object]) -> object:
        """Return a launch's function of tvm-ffi."""
        from tile_core.cpu.runtime.forks import expect_any_thread

        expect_any_thread()
        return getattr(launch, "machine_code", launch)

    def exported(self, artefact: Expr, symbols: Mapping[str, Any]) -> KernelText | None:
        """Return the lowered function as a shared library.

        ``None`` if it calls functions of this process.
        """
        from tile_core.cpu.library import library_text
        from tile_core.cpu.target import isa_of

        if artefact.attrs.get(CALLS_BACK):
            return None
        isa = isa_of(self.target)
        self._try(artefact, isa)
        return library_text(artefact, isa, symbols, self.target.text)

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

    def peaks(self) -> Mapping[str, float]:
        """Measure the rates of NumPy: products of 1024 x 1024, and a copy."""
        return _measured_peaks()

    def synchronize(self) -> None:
        """Nothing to wait for: a call returns when its blocks are done."""

    def _try(self, artefact: Expr, isa: Isa) -> None:
        """Compile in another process first, for a processor whose code may end the process."""
        from tile_core.cpu.processors import is_swept

        if not is_swept(isa.mcpu):
            from tile_core.cpu.trial import try_to_compile

            try_to_compile(artefact, isa, self.target.text)


@functools.cache
def _measured_peaks() -> Mapping[str, float]:
    import numpy as np

    def best(run: Callable[[], object]) -> float:
        times = []
        for _ in range(_TRIES):
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        return min(times)

    target, source = np.zeros(_COPIED, np.uint8), np.ones(_COPIED, np.uint8)
    peaks = {"bytes": 2 * _COPIED / best(lambda: np.copyto(target, source))}
    for kind in ("float32", "float64"):
        a = np.ones((_SIDE, _SIDE), kind)
        peaks[kind] = 2 * _SIDE**3 / best(lambda a=a: a @ a)  # type: ignore[misc]
    return peaks
