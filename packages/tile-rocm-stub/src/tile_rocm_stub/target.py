"""The targets ``rocm:gfxNNN``: one record per architecture, each of them a row of one table.

Sources: "AMD Instinct MI300 CDNA3 Instruction Set Architecture" and "AMD Instinct CDNA4 Instruction Set Architecture",
chapters "Matrix Arithmetic Instructions" and "Data Share Operations"; LLVM's "User Guide for AMDGPU Backend".
"""

from __future__ import annotations

from tile_core.records import dataclass
from tile_core.target import Capabilities, Fact, Target, every_atomic, split_target
from tile_rocm_stub.errors import UnknownArchitecture

KIND = "rocm"

OLDEST = "gfx942"
"""The default of ``rocm``: without a runtime there is no device to query."""

# Facts that code of this backend queries with ``capabilities.fact(...)``.
FP8: Fact[str] = Fact("fp8", str)
"""The 8-bit floats that instructions read as ``fp8`` and ``bf8``: ``"fnuz"`` or ``"fn"``."""
XF32: Fact[bool] = Fact("xf32", bool)
"""``v_mfma_f32_16x16x8_xf32``, whose operands have 10 bits of mantissa."""

_TABLE = """
         KiB  fp8   xf32
gfx942   64   fnuz  x
gfx950   160  fn    .
"""

WAVE = 64
"""Lanes of a wavefront."""

LANE_REGISTERS, SIMD_UNITS = 512, 4
"""Vector registers of a SIMD unit for each lane, half of them for accumulators, and SIMD units of a compute unit (AMD
Instinct MI300 Instruction Set Architecture, "VGPRs")."""

_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_FLOATS = ("float16", "bfloat16", "float32", "float64")
NATIVE = frozenset({"bool", "float32", "float64", *_INTEGERS})
"""Element types with arithmetic of their own; 16-bit floats are stored and converted, and computed with in float32."""
ATOMIC = (*_INTEGERS, *_FLOATS)
"""Element types that atomics update."""


@dataclass(frozen=True)
class Record:
    """One row of the table.

    Attributes
    ----------
    arch
        Its name, for example ``"gfx942"``.
    shared_bytes
        Local data share (LDS) of a block.
    fp8
        Which 8-bit floats its instructions read.
    xf32
        Whether it has the matrix instruction for floats of 10 bits of mantissa.
    """

    arch: str
    shared_bytes: int
    fp8: str
    xf32: bool


def parse_target(text: str) -> Target | None:
    """Return the target that a text names.

    Raises
    ------
    UnknownArchitecture
        Naming the ones that are known.
    """
    parts = split_target(text)
    return make_target(parts.arch or OLDEST) if parts.kind == KIND else None


def make_target(arch: str) -> Target:
    """Return the target of an architecture of the table.

    Raises
    ------
    UnknownArchitecture
        Naming the ones that are known.
    """
    if arch not in RECORDS:
        raise UnknownArchitecture(found=arch, known=", ".join(f"{KIND}:{name}" for name in RECORDS))
    record = RECORDS[arch]
    return Target(
        text=f"{KIND}:{arch}",
        kind=KIND,
        backend="rocm",
        arch=arch,
        capabilities=Capabilities(
            execution_width=WAVE,
            offset_bits=64,
            max_threads=1024,
            shared_bytes=record.shared_bytes,
            thread_registers=LANE_REGISTERS,
            block_registers=LANE_REGISTERS * WAVE * SIMD_UNITS,
            vector_bytes=(1, 2, 4, 8, 16),
            native_dtypes=NATIVE,
            atomics=every_atomic(_INTEGERS, _FLOATS),
            extra=FP8.value(record.fp8) | XF32.value(record.xf32),
        ),
    )


def _rows() -> dict[str, Record]:
    rows = {}
    for line in _TABLE.strip().splitlines()[1:]:
        arch, kib, fp8, xf32 = line.split()
        rows[arch] = Record(arch, int(kib) * 1024, fp8, xf32 == "x")
    return rows


RECORDS = _rows()
