"""Names of DLPack's device types, as people and array libraries write them."""

from __future__ import annotations


def device_name(kind: int, index: int | None = None) -> str:
    """Return the name of a DLPack device: its kind, and its number where one is given.

    A type that DLPack's library has no name for is shown by its number.
    """
    from tile_core.compat.tvm import tvm_ffi

    try:
        name = str(tvm_ffi.Device(kind, 0)).rpartition(":")[0]
    except (KeyError, ValueError):
        name = f"DLPack device type {kind}"
        return name if index is None else f"{name}, number {index}"
    return name if index is None else f"{name}:{index}"
