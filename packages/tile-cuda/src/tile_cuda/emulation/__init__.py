"""The emulator's model of CUDA C++, by which emitted text runs on a host.

The text is compiled as it is, with headers that stand for the language and its library (``headers/cuda_*.h``). Only
two things are rewritten: ``asm`` statements become calls of models of the PTX instructions (``headers/ptx_*.h``), and
declarations of shared memory become pointers into the block's.

Not modelled: im2col copies, and ``.cta_group`` of copies; last bits of float accumulators in
matrix products on architectures other than sm_90 (the rule is in ``ptx_mma.h``), of those of warpgroups
(``ptx_wgmma.h``), and of ``tcgen05``, whose models no device has recorded (``ptx_tcgen05.h``); base offsets in matrix
descriptors; errors of approximate functions; reorderings of memory accesses (memory is sequentially consistent; what no
barrier, fence, acquire or release orders is reported as a race); fences of ``tcgen05``; and C++ conversions of floats
that do not fit the integer type, which the device saturates.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tile_core.emit.dialect import Dialect, Limits, plain_call
from tile_cuda.emulation.asm import refusal, translate
from tile_cuda.emulation.opcodes import TENSOR_MEMORY, Arch, finder
from tile_cuda.emulation.tensor_map import opaque
from tile_cuda.target import WARP

if TYPE_CHECKING:
    from tile_core.abi.kernel_text import LaunchFacts
    from tile_core.target import Target

HEADERS = Path(__file__).parent / "headers"


def dialect(target: Target) -> Dialect:
    """Return the dialect of a target.

    Parameters
    ----------
    target
        Its ``arch`` determines the PTX instructions; its capabilities limit the resources of a block.

    Returns
    -------
    Dialect
        What ``tile_emulator.run`` needs.
    """
    arch, capabilities = Arch.of(target.arch), target.capabilities
    return dialect_of(arch, Limits(capabilities.max_threads, capabilities.shared_bytes, max_cluster_of(arch)))


def dialect_of(arch: Arch, limits: Limits | None = None) -> Dialect:
    """Return the dialect of an architecture, for blocks within limits."""
    find = finder(arch)

    def prepare(text: str) -> str:
        return with_clusters(shared_memory(translate(text, find)))

    headers: tuple[Path, ...] = (HEADERS / "cuda_all.h",)
    if arch in TENSOR_MEMORY:
        headers += (HEADERS / "ptx_tcgen05_scaled.h",)
    flags = (f"-D__CUDA_ARCH__={arch.number * 10}", "-D__CUDACC__=1", "-fno-math-errno")
    limits = limits or Limits(max_cluster=max_cluster_of(arch))
    name = f"CUDA C++ for {arch}"
    return Dialect(name, headers, WARP, prepare, call, opaque, limits=limits, proxies=True, flags=flags)


def max_cluster_of(arch: Arch) -> int:
    """Return the portable cluster size of an architecture (CUDA C++ Programming Guide)."""
    return 8 if arch.number >= 90 else 1


_CLUSTERS = re.compile(r"\b__cluster_dims__\s*\((?P<dims>[^()]*)\)")
_SLAB = re.compile(
    r"\bextern\s+__shared__\s+(?:(?:__align__|alignas)\s*\(\s*(?P<align>\d+)\s*\)\s*)?"
    r"(?P<type>[A-Za-z_][\w ]*?)\s+(?P<name>\w+)\s*\[\s*\]\s*;"
)  # fmt: skip
SLAB_ALIGNMENT = 1024  # that of the emulated block's shared memory


def with_clusters(text: str) -> str:
    """Append the clusters of the launch, read from the kernel's head, to the text."""
    found = _CLUSTERS.search(text)
    dims = f"cluster_of({found['dims']})" if found else "{}"
    return f"{text}\nconst simt::Dim3 ptx::cluster_dims = {dims};"


def call(facts: LaunchFacts) -> str:
    """Return the call of a kernel, which first compares its clusters with the head."""
    x, y, z = facts.cluster
    return f"ptx::require_clusters({x}, {y}, {z}); {plain_call(facts)}"


def shared_memory(text: str) -> str:
    """Make the launch's shared memory a pointer, and give shared arrays their storage."""

    def pointer(found: re.Match[str]) -> str:
        lines = "\n" * found[0].count("\n")
        if int(found["align"] or 1) > SLAB_ALIGNMENT:
            return refusal(f"shared memory aligned to {found['align']} bytes") + lines
        return f"{found['type']}* const {found['name']} = ({found['type']}*)simt::block->shared;{lines}"

    return re.sub(r"\b__shared__\b", "SIMT_SHARED", _SLAB.sub(pointer, text))
