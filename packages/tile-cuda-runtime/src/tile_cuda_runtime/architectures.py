"""Architectures: one table of compute capabilities, shared memory and features.

Every feature is a column of its own. Nothing follows from a larger number: sm_120 is a later chip than sm_100 and has
neither its tensor memory nor its shared memory. Sources: the tables of compute capabilities in the CUDA C++ Programming
Guide, and the "Target ISA notes" of the PTX ISA; the tests assemble an instruction for every column.
"""

from __future__ import annotations

import re

from tile_cuda_runtime.errors import UnknownArchitecture
from tile_runtime.records import dataclass

KIND = "cuda"

FALLBACK = "sm_80"
"""The meaning of ``cuda`` alone without a device: the oldest architecture, whose code all later ones can run."""

#: Attribute of a launch that may begin before the one before it has ended: its blocks wait themselves.
DEPENDENT = "dependent"


GRID_LIMITS = (2**31 - 1, 65535, 65535)
"""Blocks along x, y and z, the same on all architectures."""

EMBEDDED = frozenset({72, 87})
"""Compute capabilities, times ten, of embedded modules, whose machine code is not that of other devices."""

FEATURES = (
    "cp_async", "mbarrier", "fp8_mma", "fp8_sparse_units", "block_scaled_mma", "fp4_convert", "stmatrix", "clusters",
    "transactions", "tma", "gather4", "gather4_cluster", "scatter4", "setmaxnreg", "wgmma", "tcgen05",
    "bf16_arithmetic", "bf16_atomics", "vector_atomics",
)  # fmt: skip
"""Names of the features, which `tile_cuda.target` describes."""

# KiB: maximum (opt-in) shared memory of a block. Then one column per feature, in the order of FEATURES.
_TABLE = """
          KiB  cp_async  mbarrier  fp8_mma  fp8_sp  scaled  fp4  stmat  cluster  trans  tma  g4  g4c  s4  setmax  wgmma  tc05  bf16  atom  vatom
sm_80     163  x         x         .        .       .       .    .      .        .      .    .   .    .   .       .      .     .     .     .
sm_86      99  x         x         .        .       .       .    .      .        .      .    .   .    .   .       .      .     .     .     .
sm_87     163  x         x         .        .       .       .    .      .        .      .    .   .    .   .       .      .     .     .     .
sm_89      99  x         x         x        x       .       .    .      .        .      .    .   .    .   .       .      .     .     .     .
sm_90     227  x         x         x        .       .       .    x      x        x      x    .   .    .   .       .      .     x     x     x
sm_90a    227  x         x         x        .       .       .    x      x        x      x    .   .    .   x       x      .     x     x     x
sm_100    227  x         x         x        .       .       .    x      x        x      x    x   .    .   .       .      .     x     x     x
sm_100a   227  x         x         x        .       .       x    x      x        x      x    x   x    x   x       .      x     x     x     x
sm_103a   227  x         x         x        .       .       x    x      x        x      x    x   x    x   x       .      x     x     x     x
sm_110a   227  x         x         x        .       .       x    x      x        x      x    x   x    x   x       .      x     x     x     x
sm_120     99  x         x         x        x       .       .    x      x        x      x    x   .    .   .       .      .     x     x     x
sm_120a    99  x         x         x        x       x       x    x      x        x      x    x   .    .   x       .      .     x     x     x
"""  # noqa: E501 - a row is read as a line


@dataclass(frozen=True)
class Architecture:
    """One row of the table.

    Attributes
    ----------
    arch
        Its name, for example ``"sm_90a"``.
    compute
        Compute capability.
    forward
        Whether its text also runs on devices of a higher compute capability.
    shared_bytes
        Maximum (opt-in) shared memory of a block.
    features
        Names of the facts that hold.
    """

    arch: str
    compute: tuple[int, int]
    forward: bool
    shared_bytes: int
    features: frozenset[str]

    @property
    def text(self) -> str:
        """The target's text."""
        return f"{KIND}:{self.arch}"


def record_of(arch: str) -> Architecture:
    """Return the row of an architecture.

    Raises
    ------
    UnknownArchitecture
        Naming the nearest one that is known.
    """
    if arch not in RECORDS:
        raise UnknownArchitecture(found=arch, near=nearest(arch), known=", ".join(RECORDS))
    return RECORDS[arch]


def arch_for(compute: tuple[int, int]) -> str:
    """Return the architecture that makes best use of a device of this compute capability.

    Its own one, with its suffix if it has one; for a device that has no row here, the nearest older architecture whose
    text runs on it.
    """
    exact = [r.arch for r in RECORDS.values() if r.compute == compute]
    if exact:
        return exact[-1]
    older = [r for r in RECORDS.values() if r.forward and r.compute <= compute]
    related = [r for r in older if r.compute[0] == compute[0]]
    # For another generation, only the features of the oldest architecture are known to exist.
    return related[-1].arch if related else FALLBACK


def runs_on(arch: str, compute: tuple[int, int]) -> bool:
    """Whether text of an architecture, after being built for it, runs on this compute capability."""
    record = record_of(arch)
    return record.compute <= compute if record.forward else record.compute == compute


def code_runs_on(arch: str, other: str) -> bool:
    """Whether machine code for an architecture runs on devices of another one.

    Within a major compute capability it runs on all later minor ones, unless its name has a suffix, or one of the two
    is of an embedded module (CUDA C++ Programming Guide, "Binary Compatibility").
    """
    own, found = _NAME.fullmatch(arch), _NAME.fullmatch(other)
    if arch == other or own is None or found is None:
        return arch == other
    number, device = int(own[1]), int(found[1])
    embedded = EMBEDDED & {number, device}
    return not own[2] and not embedded and number // 10 == device // 10 and number <= device


def nearest(arch: str) -> str:
    """Return the known architecture that was most likely meant."""
    found = re.search(r"(\d+)([a-z]*)$", arch.strip().lower())
    if found is None:
        return FALLBACK
    number, suffix = int(found[1]), found[2]

    def distance(name: str) -> tuple[int, bool]:
        own = _NAME.fullmatch(name)
        assert own is not None
        return abs(int(own[1]) - number), own[2] != suffix[:1]

    return min(RECORDS, key=distance)


_NAME = re.compile(r"sm_(\d+)([a-z]?)")


def _rows() -> dict[str, Architecture]:
    rows = {}
    for line in _TABLE.strip().splitlines()[1:]:
        arch, kib, *marks = line.split()
        parts = _NAME.fullmatch(arch)
        assert parts is not None
        number = int(parts[1])
        held = frozenset(name for name, mark in zip(FEATURES, marks, strict=True) if mark == "x")
        rows[arch] = Architecture(arch, (number // 10, number % 10), not parts[2], int(kib) * 1024, held)
    return rows


RECORDS = _rows()
