"""Choices of the CPU backend."""

from __future__ import annotations

from tile_core.numerics.levels import NumericsOptions, merged_levels
from tile_core.records import dataclass
from tile_core.renamed_options import renamed_options


@renamed_options(**merged_levels("fmad"))
@dataclass(frozen=True)
class CpuOptions(NumericsOptions):
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
    numerics
        Level of numerics, see ``NumericsOptions``; ``"fast"`` is ``"standard"`` here.
    """

    parallel: bool = True
    generic: bool = False
    poison: bool = False
    races: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("parallel", "generic", "poison", "races"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} is True or False")
        if self.races:
            object.__setattr__(self, "generic", True)
