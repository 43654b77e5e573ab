"""tile_runtime: load and call compiled kernels of tile, without the compiler.

    import tile_runtime

    kernel = tile_runtime.load("gemm.tile")

Everything here is resolved when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_LAZY = {
    "LoadedKernel": "tile_runtime.kernel",
    "TileError": "tile_runtime.errors",
    "load": "tile_runtime.files.loading",
    "open_package": "tile_runtime.package",
}

__all__ = ["__version__", *sorted(_LAZY)]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'tile_runtime' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
