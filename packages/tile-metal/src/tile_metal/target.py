"""The targets ``metal`` and ``metal:metal4``, one record per family of devices.

``metal`` is what every Apple GPU since the M1 has (family Apple7) with MSL 3.1, that is macOS 14; ``metal:metal4`` adds
the tensor operations of MSL 4.0 with operands in cooperative tensors, that is macOS 26.2, on GPUs with matrix units of
their own (the M5), because on others the lanes hold other elements. Both are facts of ``tile_metal.versions``.
Sources: Metal Feature Set Tables; Metal Shading Language Specification, "Data Types", "Metal Performance Primitives".
"""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from tile_core.records import dataclass
from tile_core.target import ABSENT, Capabilities, Fact, Target, every_atomic, split_target
from tile_metal import versions
from tile_metal.errors import UnknownFamily
from tile_metal.versions import Machine, Version

KIND = "metal"

BASELINE = "metal3"
"""The meaning of ``metal`` alone without a device: every other family can run its code."""

# Facts that code of this backend queries with ``capabilities.fact(...)``.
SIMDGROUP_MATRIX: Fact[bool] = Fact("simdgroup_matrix", bool)
"""``simdgroup_matrix`` of half, bfloat and float, 8 x 8."""
TENSOR_OPS: Fact[bool] = Fact("tensor_ops", bool)
"""``mpp::tensor_ops::matmul2d`` with cooperative tensors."""
LANGUAGE: Fact[tuple[int, int]] = Fact("language", tuple)
"""The version of MSL that the text needs."""

LIBRARIES = ("mlx", "torch")
"""Libraries that launch kernels, in order of preference."""

FEATURES: tuple[Fact[bool], ...] = (SIMDGROUP_MATRIX, TENSOR_OPS)

_TABLE = """
         MSL   simdgroup_matrix  tensor_ops
metal3   3.1   x                 .
metal4   4.0   x                 x
"""
NEEDS = {"simdgroup_matrix": versions.MATRICES, "tensor_ops": versions.TENSORS}
"""By fact, what a machine must have, as the table of versions calls it."""

SIMD = 32
"""Lanes of a simdgroup."""
SHARED_BYTES = 32768
"""Threadgroup memory of a threadgroup, on all of these devices."""
REGISTER_FILE_BYTES, THREAD_REGISTERS = 208 * 1024, 128
"""Registers of a core, and 32-bit registers that a thread can have (measured on M1, see metal-benchmarks)."""
MOST_THREADS = 1024
"""Maximum threads of a threadgroup; a pipeline may allow fewer, which the runtime checks before a launch."""


@dataclass(frozen=True)
class DeviceFamily:
    """One row of the table.

    Attributes
    ----------
    family
        Its name, for example ``"metal4"``.
    language
        The version of MSL.
    features
        Names of the facts that hold.
    """

    family: str
    language: tuple[int, int]
    features: frozenset[str]

    @property
    def needs(self) -> tuple[str, ...]:
        """Feature that a machine needs, as the table of versions names it."""
        return tuple(NEEDS[name] for name in sorted(self.features))

    def lacks(self, machine: Machine) -> str:
        """Return the missing feature with its first versions, or an empty string."""
        oldest = versions.first(versions.SYSTEM, f"MSL {versions.shown(self.language)}")
        if machine.system < oldest:
            return f"MSL {versions.shown(self.language)}, that is macOS {versions.shown(oldest)}"
        missing = next((what for what in self.needs if not machine.has(what)), "")
        if not missing:
            return ""
        rows = [f"{r.product} from {versions.shown(r.first)} on" for r in versions.ROWS if r.what == missing]
        return f"{missing}: {', '.join(rows)}"


def parse_target(text: str) -> Target | None:
    """Return the target of a text; ``metal`` alone is this machine's or the baseline.

    Raises
    ------
    UnknownFamily
        Naming the ones that are known.
    """
    parts = split_target(text)
    if parts.kind != KIND:
        return None
    if not parts.arch:
        return make_target(BASELINE)
    if parts.arch not in RECORDS:
        raise UnknownFamily(found=parts.arch, known=", ".join(f"{KIND}:{name}" for name in RECORDS))
    return make_target(parts.arch)


def detect() -> Target | None:
    """Return the target of this machine's GPU, or ``None`` where there is no Metal.

    It is the newest that runs rightly here, by the versions of the system, the GPU, and every library that is
    installed: nothing that a launch would refuse.
    """
    if sys.platform != "darwin" or platform.machine() != "arm64":
        return None
    system = versions.system_version()
    if not versions.language_of(versions.SYSTEM, system):
        return None
    machine = versions.machine_with(versions.chip(), system)
    libraries = [found for name in LIBRARIES if (found := _installed(name)) is not None]
    for family in reversed(RECORDS):
        record = RECORDS[family]
        compiled = [versions.compiled_language(name, number, system) for name, number in libraries]
        if not record.lacks(machine) and all(language >= record.language for language in compiled):
            return make_target(family)
    return make_target(BASELINE)


def make_target(family: str) -> Target:
    """Return the target of a family of the table."""
    record = RECORDS[family]
    facts: dict[str, object] = {fact.name: fact.name in record.features for fact in FEATURES}
    return Target(
        text=KIND if family == BASELINE else f"{KIND}:{family}",
        kind=KIND,
        backend="metal",
        arch=family,
        capabilities=Capabilities(
            execution_width=SIMD,
            offset_bits=64,
            max_threads=MOST_THREADS,
            shared_bytes=SHARED_BYTES,
            thread_registers=THREAD_REGISTERS,
            block_registers=REGISTER_FILE_BYTES // 4,
            code_operations=40_000,
            vector_bytes=(1, 2, 4, 8, 16),
            # 16-bit floats are stored and converted; their arithmetic is that of float32, rounded once.
            native_dtypes=frozenset({"bool", "float32", *_INTEGERS}),
            atomics=every_atomic(_SMALL, _FLOATS),
            group_reductions=_REDUCTIONS,
            loose_extremes=True,
            extra=facts | LANGUAGE.value(record.language) | ABSENT.value(_ABSENT),
        ),
    )


def _installed(library: str) -> tuple[str, Version] | None:
    try:
        return library, versions.version_of(version(library))
    except PackageNotFoundError:
        return None


def _rows() -> dict[str, DeviceFamily]:
    rows = {}
    for line in _TABLE.strip().splitlines()[1:]:
        family, language, *marks = line.split()
        major, _, minor = language.partition(".")
        held = frozenset(fact.name for fact, mark in zip(FEATURES, marks, strict=True) if mark == "x")
        rows[family] = DeviceFamily(family, (int(major), int(minor)), held)
    return rows


RECORDS = _rows()

_SMALL = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32))
_INTEGERS = (*_SMALL, "int64", "uint64")
_FLOATS = ("float16", "bfloat16", "float32")
#: MSL specification, "SIMD-Group Functions": add, max and min of types up to 32 bits, bits of integers.
_REDUCTIONS = frozenset(
    {("sum", "float32"), *((k, d) for k in ("sum", "max", "min", "bitand", "bitor") for d in ("int32", "uint32"))}
)
#: MSL has no double, no way to print or to stop a kernel from any Metal 3 device.
_ABSENT = ("float64",)
