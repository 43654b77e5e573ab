"""How much an emulated launch may use."""

from __future__ import annotations

from dataclasses import replace

from tile_core.records import dataclass


@dataclass(frozen=True)
class RunLimits:
    """Limits of one run; exceeding one is reported, and never harms the calling process.

    Attributes
    ----------
    seconds
        Time that the kernel may run.
    memory_bytes
        Address space of the process that runs it, arrays and bookkeeping included.
    output_bytes
        Output that it may print; the rest is dropped.
    reports
        Different faults after which it is ended.
    stack_bytes
        Stack of each thread, a multiple of 4096.
    """

    seconds: float = 60.0
    memory_bytes: int = 16 << 30
    output_bytes: int = 1 << 20
    reports: int = 16
    stack_bytes: int = 256 << 10

    def holding(self, size: int) -> RunLimits:
        """Return limits with 4 GiB of address space beside ``size`` bytes of arrays."""
        return replace(self, memory_bytes=max(self.memory_bytes, size + (4 << 30)))
