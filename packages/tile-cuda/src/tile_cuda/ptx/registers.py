"""Registers that warpgroups give back and take: PTX ISA, "setmaxnreg"."""

from __future__ import annotations

from collections.abc import Iterator

from tile_cuda.ptx.instruction import Instruction

_ARCHS = "sm_90a sm_100a sm_103a sm_110a sm_120a"
_PREFIX = "setmaxnreg_"


def register_instructions() -> Iterator[Instruction]:
    """Yield the functions, one for each count."""
    for more in (False, True):
        for count in range(24, 257, 8):
            opcode = f"setmaxnreg.{'inc' if more else 'dec'}.sync.aligned.u32"
            yield Instruction(set_name(count, more), opcode, (), str(count), _ARCHS, volatile=True, memory=True)


def set_name(count: int, more: bool) -> str:
    """Return the function that sets a larger or smaller register count per thread."""
    return f"{_PREFIX}{'inc' if more else 'dec'}_sync_aligned_u32_{count}"


def is_set_name(name: str) -> bool:
    """Whether a function is one of these."""
    return name.startswith(_PREFIX)
