"""Names of DLPack's device types, as people and array libraries write them.

A table, not a question to TVM's library of DLPack: calls of exported kernels name devices on machines without TVM.
"""

from __future__ import annotations

#: ``DLDeviceType`` of dlpack.h, in lower case.
_NAMES = {
    1: "cpu",
    2: "cuda",
    3: "cuda_host",
    4: "opencl",
    7: "vulkan",
    8: "metal",
    9: "vpi",
    10: "rocm",
    11: "rocm_host",
    12: "ext_dev",
    13: "cuda_managed",
    14: "oneapi",
    15: "webgpu",
    16: "hexagon",
    17: "maia",
    18: "trn",
}


def device_name(kind: int, index: int | None = None) -> str:
    """Return the name of a DLPack device: its kind, and its number if given.

    A type without a name is shown by its number.
    """
    if kind not in _NAMES:
        name = f"DLPack device type {kind}"
        return name if index is None else f"{name}, number {index}"
    return _NAMES[kind] if index is None else f"{_NAMES[kind]}:{index}"
