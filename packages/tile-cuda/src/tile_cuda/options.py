"""Options of the CUDA backend, passed to the build of a kernel in the attributes of its launch facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

PREFIX = "cuda."

MOST_REGISTERS = 255
"""Registers that one thread can have."""

BULK_COPIES = ("never", "always")
"""Whether copies are bulk copies of boxes."""

WGMMA = ("never", "auto", "always")
"""Whether products run on the matrix instructions of warpgroups."""

TCGEN05 = ("never", "always")
"""Whether products have their sums in tensor memory."""

FEWEST_REGISTERS = 16
"""The assembler takes no lower bound than this."""


@dataclass(frozen=True)
class CudaOptions:
    """How the CUDA backend compiles.

    Parameters
    ----------
    fast_math
        Let functions and divisions of float32 be approximate, and flush subnormal numbers to zero.
    max_registers
        Registers of a thread at most; fewer let more blocks run at a time, and spill. ``None`` leaves it to the
        assembler.
    line_info
        Keep for profilers and debuggers which instruction comes from which line of the text.
    opt
        How much the assembler optimises, from 0 to 3.
    fmad
        Allow fusing a multiplication and an addition, with one rounding. ``fast_math`` includes it.
    bulk_copies
        ``"always"``: copies between global and shared memory, and updates of global memory by tiles in shared memory,
        are bulk copies of boxes, which one thread issues, where the target has them and the copy is legal as one;
        ``explain`` says why one is not. ``"never"``: none is.
    wgmma
        ``"always"``: products run on the matrix instructions of warpgroups where the target has them and the product is
        legal on them; ``explain`` says why one is not. ``"auto"``: where they are estimated to be faster too
        (`tile_cuda.ops.warpgroup_cost`), which is the default. ``"never"``: only those that ask for it.
    tcgen05
        ``"always"``: products of whole blocks of 128 threads have their sums in tensor memory where the target has it
        and the product is legal there; ``explain`` says why one is not. ``"never"``: only those that ask for it, which
        is the default as long as no device has run them.
    fast_accum
        Let sums of products of 8-bit floats keep 14 significant bits, as `wgmma` has them (recorded on an H200), and
        not those of the accumulator: `wgmma` multiplies 8-bit floats only with it, unless the call asks for `wgmma`.
    """

    fast_math: bool = False
    max_registers: int | None = None
    line_info: bool = False
    opt: int = 3
    fmad: bool = False
    bulk_copies: str = "never"
    wgmma: str = "auto"
    tcgen05: str = "never"
    fast_accum: bool = False

    def __post_init__(self) -> None:
        for name in ("fast_math", "line_info", "fmad", "fast_accum"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} is True or False")
        if self.bulk_copies not in BULK_COPIES:
            raise ValueError(f"bulk_copies is {' or '.join(map(repr, BULK_COPIES))}")
        if self.wgmma not in WGMMA:
            raise ValueError(f"wgmma is one of {', '.join(map(repr, WGMMA))}")
        if self.tcgen05 not in TCGEN05:
            raise ValueError(f"tcgen05 is {' or '.join(map(repr, TCGEN05))}")
        if not _is_int(self.opt) or not 0 <= self.opt <= 3:
            raise ValueError("opt is 0, 1, 2 or 3")
        registers = self.max_registers
        if registers is not None and (not _is_int(registers) or not FEWEST_REGISTERS <= registers <= MOST_REGISTERS):
            raise ValueError(f"max_registers is None or a number from {FEWEST_REGISTERS} to {MOST_REGISTERS}")

    def attributes(self) -> dict[str, bool | int | str]:
        """Return what `from_attributes` reads, for ``LaunchFacts.attributes``: the fields that are not at default."""
        default = CudaOptions()
        changed = {f.name: getattr(self, f.name) for f in fields(self)}
        return {PREFIX + name: value for name, value in changed.items() if value != getattr(default, name)}

    @staticmethod
    def from_attributes(attributes: Mapping[str, object]) -> CudaOptions:
        """Return the options from the attributes of launch facts; other attributes are ignored."""
        own = {f.name: attributes[PREFIX + f.name] for f in fields(CudaOptions) if PREFIX + f.name in attributes}
        return CudaOptions(**own)  # type: ignore[arg-type]


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
