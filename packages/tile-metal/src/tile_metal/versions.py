"""First versions of macOS, GPU, MLX and torch with each feature, with sources.

Everything of this package that compares versions reads it: targets, launches, ``tile doctor``, the self-test.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import sys
from collections.abc import Iterator

from tile_core.records import dataclass

Version = tuple[int, ...]

SYSTEM, MACS, PHONES = "macOS", "GPU of a Mac", "GPU of a phone"
"""Products besides libraries. The version of a GPU is its generation: 13 for the M1, and one more for each after it."""

MATRICES = "simdgroup matrices"
TENSORS = "operands in cooperative tensors"
MATH_MODE = "a math mode for each kernel"
DTYPES_IN_NAMES = "element types in names of kernels"
SOURCES_IN_NAMES = "source texts in names of libraries"


@dataclass(frozen=True)
class VersionRow:
    """From a version on, a product has something.

    Attributes
    ----------
    product
        `SYSTEM`, `MACS`, `PHONES`, ``"mlx"`` or ``"torch"``.
    first
        The first version; that of a GPU is its generation.
    what
        What it has. ``"MSL 4.0"``: a system compiles it, a library requests it where the system has it.
    source
        Where this is written.
    """

    product: str
    first: Version
    what: str
    source: str


ROWS = (
    VersionRow(SYSTEM, (14,), "MSL 3.1", "Metal Shading Language Specification 3.1, `bfloat`"),
    VersionRow(SYSTEM, (15,), "MSL 3.2", "Metal Shading Language Specification 3.2; MLX 0.32.1, metal/device.cpp"),
    VersionRow(SYSTEM, (26,), "MSL 4.0", "Metal Shading Language Specification 4; MLX 0.32.1, metal/device.cpp"),
    VersionRow(SYSTEM, (27,), "MSL 4.1", "MLX 0.32.1, metal/device.cpp; tinygrad, pull request 17900"),
    VersionRow(
        SYSTEM, (26, 2), TENSORS,
        "MPPTensorOpsMatMul2d.h of SDK 26.1 has destinations only; MLX 0.32.1, is_nax_available in metal/device.cpp; "
        "PyTorch, pull request 195302",
    ),
    VersionRow(MACS, (13,), MATRICES, "Metal Feature Set Tables, Apple7"),
    VersionRow(PHONES, (13,), MATRICES, "Metal Feature Set Tables, Apple7"),
    VersionRow(
        MACS, (17,), TENSORS,
        "MLX 0.32.1, is_nax_available in metal/device.cpp; PyTorch, pull request 182256: before, other lanes hold them",
    ),
    VersionRow(PHONES, (18,), TENSORS, "MLX 0.32.1, is_nax_available in metal/device.cpp"),
    VersionRow("mlx", (0, 29), "MSL 3.2", "MLX 0.29.0, metal/device.cpp"),
    VersionRow("mlx", (0, 29, 4), "MSL 4.0", "MLX 0.29.4, metal/device.cpp"),
    VersionRow("mlx", (0, 32, 1), "MSL 4.1", "MLX, commit e190d0459 (pull request 4052)"),
    VersionRow("mlx", (0, 32), MATH_MODE, "MLX, commit 51bef6fc2 (pull request 3728)"),
    VersionRow("mlx", (0, 32), DTYPES_IN_NAMES, "MLX, commit 87c3cf9fc (pull request 3662)"),
    VersionRow("mlx", (0, 32, 1), SOURCES_IN_NAMES, "MLX, commit 697828f24 (pull request 3833)"),
    VersionRow("torch", (2, 7), "MSL 3.1", "PyTorch 2.7, torch.mps.compile_shader; mps/OperationUtils.mm"),
    VersionRow("torch", (2, 11), "MSL 4.0", "PyTorch, pull request 172230 of January 2026"),
)  # fmt: skip


@dataclass(frozen=True)
class Machine:
    """The known properties of a machine.

    Attributes
    ----------
    system
        Version of macOS.
    generation
        Of its GPU; 0 if unknown.
    phone
        Whether the GPU is that of a phone's chip, which a Mac may have too.
    """

    system: Version
    generation: int = 0
    phone: bool = False

    def has(self, what: str) -> bool:
        """Return whether system and GPU have a feature, as far as the table covers them.

        A GPU of unknown generation is taken for the oldest of Apple's own for Macs.
        """
        gpu = PHONES if self.phone else MACS
        versions = {SYSTEM: self.system, gpu: (self.generation,) if self.generation else first(gpu, MATRICES)}
        rows = [r for r in ROWS if r.what == what and r.product in versions]
        return all(versions[r.product] >= r.first for r in rows)

    def __str__(self) -> str:
        kind = "a phone's GPU" if self.phone else "a GPU"
        gpu = f"{kind} of generation {self.generation}" if self.generation else "a GPU of unknown generation"
        return f"macOS {shown(self.system)} and {gpu}"


def first(product: str, what: str) -> Version:
    """Return the first version of a product that has a feature of the table."""
    return next(r.first for r in ROWS if (r.product, r.what) == (product, what))


def has(product: str, version: Version, what: str) -> bool:
    """Whether a version of a product has something."""
    return version >= first(product, what)


def language_of(product: str, version: Version) -> Version:
    """Return the newest MSL version that a system compiles, or a library requests.

    It is ``()`` if there is none.
    """
    return max((language for row, language in _languages(product) if version >= row.first), default=())


def compiled_language(library: str, version: Version, system: Version) -> Version:
    """Return the version of MSL that a library compiles texts as on a system."""
    return min(language_of(library, version), language_of(SYSTEM, system))


def version_of(text: str) -> Version:
    """Return the numbers at the start of a version's text: ``(0, 32, 1)`` of ``"0.32.1.dev2026+a1"``."""
    found = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, found[0].split("."))) if found else ()


def shown(version: Version) -> str:
    """Return a version as a text; ``"of unknown version"`` without numbers."""
    return ".".join(map(str, version)) or "of unknown version"


def page() -> str:
    """Return the table for docs/metal.md."""
    lines = ["| product | from | has | source |", "| --- | --- | --- | --- |"]
    lines += [f"| {r.product} | {shown(r.first)} | {r.what} | {r.source} |" for r in ROWS]
    return "\n".join(lines) + "\n"


def system_version() -> Version:
    """Return the version of this machine's macOS, ``()`` on other systems.

    A Python built for an older SDK reports macOS 16 for 26 and later (CPython, issue 135675); then the kernel's version
    decides, which is one less than the system's from 26 on.
    """
    if sys.platform != "darwin":
        return ()
    reported = version_of(platform.mac_ver()[0])[:2]
    kernel = version_of(os.uname().release)
    return (kernel[0] + 1, kernel[1]) if reported[:1] == (16,) and kernel[:1] >= (25,) else reported


def machine_of(architecture: str, system: Version) -> Machine:
    """Return the machine of a GPU's architecture as MLX names it, for example ``applegpu_g17s``."""
    found = re.search(r"_g(\d+)([a-z]?)", architecture)
    return Machine(system, int(found[1]), found[2] == "p") if found else Machine(system)


def machine_with(chip: str, system: Version) -> Machine:
    """Return the machine of a chip's name, for example ``Apple M5 Max``.

    A virtual machine's GPU is unknown.
    """
    found = re.fullmatch(r"Apple ([MA])(\d+)(?: (?:Pro|Max|Ultra))?", chip.strip())
    if found is None:
        return Machine(system)
    phone = found[1] == "A"
    return Machine(system, int(found[2]) + (-1 if phone else 12), phone)


def chip() -> str:
    """Return the name of this machine's chip; empty unless it is Apple's."""
    if sys.platform != "darwin":
        return ""
    size, name = ctypes.c_size_t(128), ctypes.create_string_buffer(128)
    if ctypes.CDLL(None).sysctlbyname(b"machdep.cpu.brand_string", name, ctypes.byref(size), None, 0):
        return ""
    return name.value.decode("ascii", "replace")


def _languages(product: str) -> Iterator[tuple[VersionRow, Version]]:
    for row in ROWS:
        if row.product == product and row.what.startswith("MSL "):
            yield row, version_of(row.what.removeprefix("MSL "))
