"""Facts of the device that kernels run on, as ``tilelang.carver.arch.driver`` has them."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

from tile_tilelang.errors import NotOnHost
from tile_tilelang.host import every_target_name, target_of

__all__ = ["get_device_name", "get_num_sms", "get_shared_memory_per_block", "get_target_compute_version"]

_UNITS = {"bytes": 1, "kb": 1024, "mb": 1024**2}


def get_num_sms(device_id: int = 0) -> int:
    """Return how many blocks run side by side: multiprocessors of torch's device, else cores."""
    found = _properties(device_id)
    return int(found.multi_processor_count) if found else os.cpu_count() or 1


def get_device_name(device_id: int = 0) -> str | None:
    """Return the name of torch's device; ``None`` without one."""
    found = _properties(device_id)
    return str(found.name) if found else None


def get_shared_memory_per_block(device_id: int = 0, format: str = "bytes") -> int:
    """Return the shared memory of a block on torch's device, in ``"bytes"``, ``"kb"`` or ``"mb"``.

    Raises
    ------
    NotOnHost
        There is no such device.
    """
    found = _properties(device_id)
    if not found:
        instead = "`tile targets` lists the shared memory of each target"
        raise NotOnHost(name="get_shared_memory_per_block without a device", instead=instead)
    return int(found.shared_memory_per_block) // _UNITS[format]


def get_target_compute_version(target: Any = None) -> str:
    """Return the compute capability of a target, by default that of the script's kernels.

    Raises
    ------
    NotOnHost
        The target is not one of NVIDIA's.
    """
    text = str(target_of("auto" if target is None else target))
    found = re.search(r"sm_(\d+)(\d)", text if ":" in text else every_target_name())
    if not found:
        raise NotOnHost(name=f"get_target_compute_version of {text}", instead="give --target cuda:sm_90a")
    return f"{found[1]}.{found[2]}"


def _properties(device: int) -> Any:
    torch = sys.modules.get("torch")
    # Not torch.cuda.is_available, which is answered for scripts in host memory.
    if torch is None or not getattr(torch._C, "_cuda_getDeviceCount", int)():
        return None
    return torch.cuda.get_device_properties(device)
