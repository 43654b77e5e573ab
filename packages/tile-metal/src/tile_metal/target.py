"""The targets ``metal`` and ``metal:metal4``: one record per family of devices, each of them a row of one table.

``metal`` is what every Apple GPU since the M1 has (family Apple7) with MSL 3.1, that is macOS 14; ``metal:metal4`` adds
the tensor operations of MSL 4.0, that is macOS 26, which only run fast on GPUs with matrix units of their own (the M5).
Sources: Metal Feature Set Tables; Metal Shading Language Specification, "Data Types", "Metal Performance Primitives".
"""

from __future__ import annotations

import platform
import re
import sys
from dataclasses import dataclass

from tile_core.target import ABSENT, Capabilities, Fact, Target, split_target
from tile_metal.errors import UnknownFamily

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

FEATURES: tuple[Fact[bool], ...] = (SIMDGROUP_MATRIX, TENSOR_OPS)

_TABLE = """
         MSL   macOS  simdgroup_matrix  tensor_ops
metal3   3.1   14     x                 .
metal4   4.0   26     x                 x
"""

SIMD = 32
"""Lanes of a simdgroup."""
SHARED_BYTES = 32768
"""Threadgroup memory of a threadgroup, on all of these devices."""
MOST_THREADS = 1024
"""Maximum threads of a threadgroup; a pipeline may allow fewer, which the runtime checks before a launch."""


@dataclass(frozen=True)
class Record:
    """One row of the table.

    Attributes
    ----------
    family
        Its name, for example ``"metal4"``.
    language
        The version of MSL.
    macos
        The first macOS that has it.
    features
        Names of the facts that hold.
    """

    family: str
    language: tuple[int, int]
    macos: int
    features: frozenset[str]


def parse_target(text: str) -> Target | None:
    """Return the target that a text names; ``metal`` alone is this machine's, the baseline where there is none.

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

    The tensor operations are only chosen for GPUs that have units for them: generation 17 (M5) or later.
    """
    if sys.platform != "darwin" or platform.machine() != "arm64":
        return None
    major = int((platform.mac_ver()[0] or "0").partition(".")[0])
    if major < RECORDS[BASELINE].macos:
        return None
    newest = major >= RECORDS["metal4"].macos and _generation() >= 17
    return make_target("metal4" if newest else BASELINE)


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
            max_threads=MOST_THREADS,
            shared_bytes=SHARED_BYTES,
            code_operations=40_000,
            vector_bytes=(1, 2, 4, 8, 16),
            # 16-bit floats are stored and converted; their arithmetic is that of float32, rounded once.
            native_dtypes=frozenset({"bool", "float32", *_INTEGERS}),
            atomics=frozenset((op, d) for op in ("add", "max", "min") for d in (*_SMALL, *_FLOATS)),
            extra=facts | LANGUAGE.value(record.language) | ABSENT.value(_ABSENT),
        ),
    )


def _generation() -> int:
    """Return the generation in the GPU's name as MLX tells it (``applegpu_g17s``), or 0."""
    try:
        import mlx.core as mx

        found = re.search(r"_g(\d+)", str(mx.device_info().get("architecture", "")))
    except (ImportError, AttributeError, RuntimeError):
        return 0
    return int(found[1]) if found else 0


def _rows() -> dict[str, Record]:
    rows = {}
    for line in _TABLE.strip().splitlines()[1:]:
        family, language, macos, *marks = line.split()
        major, _, minor = language.partition(".")
        held = frozenset(fact.name for fact, mark in zip(FEATURES, marks, strict=True) if mark == "x")
        rows[family] = Record(family, (int(major), int(minor)), int(macos), held)
    return rows


RECORDS = _rows()

_SMALL = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32))
_INTEGERS = (*_SMALL, "int64", "uint64")
_FLOATS = ("float16", "bfloat16", "float32")
#: MSL has no double, no way to print or to stop a kernel from any Metal 3 device.
_ABSENT = ("float64",)
