"""Rates of devices: the one table that all estimates read.

Figures of Hopper are measured, on H100 of 700 W and H200 (``benchmarks/results``, ``tests/records``). The others are
NVIDIA's: data sheets of A100, A40, Jetson AGX Orin, L40S, B200, B300, Jetson Thor and RTX PRO 6000, a tenth less
memory rate than there, and multiplications as rate of the data sheet, divided by multiprocessors and clock. Such
figures rank kernels; the times are rough.
"""

from __future__ import annotations

from tile_core.records import dataclass

SHARED_BYTES = 128
"""That a multiprocessor reads from shared memory in a cycle: measured on Hopper, documented for all."""
LINE, SECTOR = 128, 32
"""Bytes of a line of the L2 cache, and of the part that is loaded at least (CUDA C++ Programming Guide)."""
LAUNCH = 3.0
"""Microseconds of one more launch, measured on Hopper."""
_MMA_SYNC = {"fp8": 512.0, "sparse": 1024.0}
_MMA_SYNC_OF_FLOATS = 1228.8
"""16-bit multiplications of a multiprocessor per cycle on ``mma.sync`` where other instructions are faster.

Measured on Hopper relative to libraries on ``wgmma``: dense float16 reached 0.57 to 0.59, 2:4 sparse float16 0.52,
8-bit floats, which ``mma.sync`` converts to float16 first, 0.22. Assumed for other types, and on Blackwell.
"""


@dataclass(frozen=True)
class Machine:
    """Rates of a device, per multiprocessor and cycle unless stated otherwise.

    Attributes
    ----------
    processors
        Multiprocessors of the largest device of an architecture.
    threads
        Threads that a multiprocessor runs at a time (CUDA C++ Programming Guide, "Compute Capabilities"). An H100
        reserves local memory for this number of threads: 73 GB for 270 KB of each.
    clock
        Cycles of a microsecond, under a load that keeps the matrix units busy.
    matrix
        Multiplications of 16-bit elements on the fastest instructions; twice the rate for 8 bits and for 2:4 sparse.
    power
        The part of them that its power allows.
    line
        Cycles of a line of the L2 cache to shared memory.
    memory
        Bytes of a microsecond from and to device memory, all multiprocessors together.
    result
        Cycles of the beginning of a tile and of storing its results, for 32,768 of them.
    measured
        Whether the figures are measured.
    """

    processors: int
    threads: int
    clock: float
    matrix: float
    power: float
    line: float
    memory: float
    result: float
    measured: bool = False

    def mma_sync(self, kind: str) -> float:
        """Return the multiplications of 16-bit elements on ``mma.sync``, by the kind of product."""
        return self.matrix if self.matrix <= 1024 else _MMA_SYNC.get(kind, _MMA_SYNC_OF_FLOATS)


_MACHINES = {
    "sm_80": Machine(108, 2048, 1400, 1024, 1.0, 2.06, 1.4e6, 5500),
    "sm_86": Machine(84, 1536, 1740, 512, 1.0, 2.06, 0.63e6, 5500),
    "sm_87": Machine(16, 1536, 1300, 1024, 1.0, 2.06, 0.18e6, 5500),
    "sm_89": Machine(142, 1536, 2520, 512, 1.0, 2.06, 0.78e6, 5500),
    "sm_90": Machine(132, 2048, 1550, 2048, 0.92, 2.13, 2.9e6, 3900, measured=True),
    "sm_100": Machine(148, 2048, 1800, 4096, 0.9, 1.7, 7.0e6, 5500),
    "sm_103": Machine(160, 2048, 1900, 4096, 0.9, 1.7, 7.0e6, 5500),
    "sm_110": Machine(20, 1536, 1570, 4096, 0.9, 1.7, 0.25e6, 5500),
    "sm_120": Machine(188, 1536, 2600, 512, 1.0, 2.06, 1.6e6, 5500),
}


def machine_of(arch: str) -> Machine:
    """Return the rates of an architecture, for example of ``"sm_90a"``."""
    return _MACHINES[arch.rstrip("a")]


def peaks_of(arch: str) -> dict[str, float]:
    """Return bytes and operations of products per second, see ``RuntimeAdapter.peaks``."""
    machine = machine_of(arch)
    words = 2e6 * machine.matrix * machine.clock * machine.processors
    bytes_ = ("int8", "uint8", *(("float8_e4m3fn", "float8_e5m2") if int(arch.rstrip("a")[3:]) >= 89 else ()))
    rates = {"float16": words, "bfloat16": words, **dict.fromkeys(bytes_, 2 * words)}
    return {"bytes": 1e6 * machine.memory, **rates, **{f"{kind} 2:4": 2 * rate for kind, rate in rates.items()}}
