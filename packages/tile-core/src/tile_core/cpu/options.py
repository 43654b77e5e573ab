"""Choices of the CPU backend."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CpuOptions:
    """How the CPU backend compiles.

    Parameters
    ----------
    parallel
        Run the blocks of a launch on all cores; otherwise one after the other.
    generic
        Use the plain meaning of every op, without vectors and packed kernels: slow, for tests of the fast ways.
    poison
        Fill scratch memory with NaN and large integers where it is allocated: a result that depends on what nobody has
        written then shows it.
    fmad
        A product and a sum of floats may become one operation that rounds once.
    """

    parallel: bool = True
    generic: bool = False
    poison: bool = False
    fmad: bool = False

    def __post_init__(self) -> None:
        for name in ("parallel", "generic", "poison", "fmad"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} is True or False")
