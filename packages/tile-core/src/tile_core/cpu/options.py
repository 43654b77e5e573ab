"""Choices of the CPU backend."""

from __future__ import annotations

from tile_core.records import dataclass


@dataclass(frozen=True)
class CpuOptions:
    """How the CPU backend compiles.

    Parameters
    ----------
    parallel
        Run the blocks of a launch on all cores; otherwise one after another.
    generic
        Use the reference meaning of every op, without vectors and packed kernels: slow, for tests of the fast paths.
    poison
        Fill scratch memory with NaN and large integers where it is allocated, to expose results that depend on
        uninitialized memory.
    races
        Report blocks that race where data decide (K445). Implies ``generic``, and calls Python for each access of a
        tensor that the kernel writes: slow, for tests.
    fmad
        Allow contraction of a float product and sum into one operation that rounds once.
    """

    parallel: bool = True
    generic: bool = False
    poison: bool = False
    fmad: bool = False
    races: bool = False

    def __post_init__(self) -> None:
        for name in ("parallel", "generic", "poison", "fmad", "races"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} is True or False")
        if self.races:
            object.__setattr__(self, "generic", True)
