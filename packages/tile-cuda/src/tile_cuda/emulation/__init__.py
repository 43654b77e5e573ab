"""The model with which emitted CUDA C++ text runs on a host: what the emulator is told about the language.

The text is compiled as it is, with headers that stand for the language and its library (``headers/cuda_*.h``). Only
two things are rewritten: ``asm`` statements become calls of models of the PTX instructions (``headers/ptx_*.h``), and
declarations of shared memory become pointers into the block's.

What the models do not reproduce: last bits of float sums in matrix products on architectures other than sm_90 (the
rule is in ``ptx_mma.h``), errors of approximate functions, reorderings of memory accesses (memory is sequentially
consistent; what no barrier, fence, acquire or release orders is reported as a race), and C++ conversions of floats
that do not fit the integer type, which the device saturates.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tile_core.emit.dialect import Dialect, Limits
from tile_cuda.emulation.asm import refusal, translate
from tile_cuda.emulation.opcodes import Arch, finder
from tile_cuda.target import WARP

if TYPE_CHECKING:
    from tile_core.target import Target

HEADERS = Path(__file__).parent / "headers"


def dialect(target: Target) -> Dialect:
    """Return the dialect of a target.

    Parameters
    ----------
    target
        Its ``arch`` says which PTX instructions exist; its capabilities say what a block may use.

    Returns
    -------
    Dialect
        What ``tile_emulator.run`` needs.
    """
    capabilities = target.capabilities
    return dialect_of(Arch.of(target.arch), Limits(capabilities.max_threads, capabilities.shared_bytes))


def dialect_of(arch: Arch, limits: Limits | None = None) -> Dialect:
    """Return the dialect of an architecture, for blocks within limits."""
    find = finder(arch)

    def prepare(text: str) -> str:
        return shared_memory(translate(text, find))

    headers = (HEADERS / "cuda_all.h",)
    flags = (f"-D__CUDA_ARCH__={arch.number * 10}", "-D__CUDACC__=1", "-fno-math-errno")
    return Dialect(f"CUDA C++ for {arch}", headers, WARP, prepare, limits=limits or Limits(), flags=flags)


_SLAB = re.compile(
    r"\bextern\s+__shared__\s+(?:(?:__align__|alignas)\s*\(\s*(?P<align>\d+)\s*\)\s*)?"
    r"(?P<type>[A-Za-z_][\w ]*?)\s+(?P<name>\w+)\s*\[\s*\]\s*;"
)  # fmt: skip
SLAB_ALIGNMENT = 1024  # that of the emulated block's shared memory


def shared_memory(text: str) -> str:
    """Make the shared memory of the launch a pointer, and give shared arrays of the text their own storage."""

    def pointer(found: re.Match[str]) -> str:
        lines = "\n" * found[0].count("\n")
        if int(found["align"] or 1) > SLAB_ALIGNMENT:
            return refusal(f"shared memory aligned to {found['align']} bytes") + lines
        return f"{found['type']}* const {found['name']} = ({found['type']}*)simt::block->shared;{lines}"

    return re.sub(r"\b__shared__\b", "SIMT_SHARED", _SLAB.sub(pointer, text))
