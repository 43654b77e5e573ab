"""The runtime ``cuda`` of the compiler: it launches, and compiles texts beforehand."""

from __future__ import annotations

from typing import Any

from tile_core.abi.adapter import Built
from tile_core.abi.kernel_text import KernelText
from tile_cuda import build
from tile_cuda.machine import peaks_of
from tile_cuda.occupancy import blocks_that_fit
from tile_cuda_runtime.architectures import record_of
from tile_cuda_runtime.driver import DriverAdapter

CUBIN = "cubin"


class CudaAdapter(DriverAdapter):
    """Launches on NVIDIA devices, and builds machine code with NVRTC."""

    def toolchain(self) -> str:
        """Return the version of NVRTC."""
        return build.toolchain()

    def build(self, artefact: Any) -> Built | None:
        """Compile a text for the target's architecture."""
        if not isinstance(artefact, KernelText):
            return None
        made = build.build(artefact, self.arch)
        shared = artefact.facts.shared_bytes + made.shared_bytes
        fit = blocks_that_fit(record_of(self.arch), artefact.facts.threads, made.registers, shared)
        return Built(self.name, CUBIN, made.data, made.arch, made.facts() | fit)

    def peaks(self) -> dict[str, float]:
        """Return the rates of the architecture's largest device."""
        return peaks_of(self.arch)
