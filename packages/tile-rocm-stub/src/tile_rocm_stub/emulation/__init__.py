"""Model of HIP with which the emulator runs emitted text on a host.

The text is compiled as it is, with headers that stand for clang's builtins (``headers/rocm_*.h``). Three things are
rewritten: functions of two ``_Float16`` are those of ``headers/rocm_floats.h``, other vectors of that type, which not
every host compiler has, become vectors of codes, and the declaration of shared memory becomes a pointer into the
block's.

What the models do not reproduce: the order in which matrix instructions add up floats (here every sum is exact and
rounded once), reorderings of memory accesses (memory is sequentially consistent; what no barrier, fence, acquire or
release orders is reported as a race), and C++ conversions of floats that do not fit the integer type.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tile_core.emit.dialect import Dialect, Limits
from tile_rocm_stub.emit.printer import HipPrinter
from tile_rocm_stub.target import FP8, WAVE

if TYPE_CHECKING:
    from tile_core.target import Target

HEADERS = Path(__file__).parent / "headers"
_PACKED = re.compile(
    r"^(typedef _Float16 f16x2 |static __device__ inline unsigned \w+_f16x2\().*\n", re.MULTILINE
)  # fmt: skip
_SLAB = "unsigned char* const smem = simt::block->shared;"


def dialect(target: Target) -> Dialect:
    """Return the dialect of a target: its 8-bit floats, and what a block may use."""
    capabilities = target.capabilities
    return Dialect(
        f"HIP for {target.arch}",
        headers=(HEADERS / "rocm.h",),
        warp=WAVE,
        prepare=_prepared,
        limits=Limits(capabilities.max_threads, capabilities.shared_bytes),
        flags=(f"-DROCM_FNUZ={int(capabilities.fact(FP8) == 'fnuz')}",),
    )


def _prepared(text: str) -> str:
    text = _PACKED.sub("", text)
    return text.replace(HipPrinter.slab, _SLAB).replace("typedef _Float16 ", "typedef short ")
