"""tile: a tile-level kernel language whose kernels run on every target, right or refused.

    import tile_core as tile
    import tile_core.language as T

Everything here is resolved when it is first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_LAZY = {
    "Kernel": "tile_core.runtime.kernel:Kernel",
    "Layout": "tile_core.layout:Layout",
    "PassConfigKey": "tile_core.compat.dialects:PassConfigKey",
    "TileError": "tile_core.errors:TileError",
    "autotune": "tile_core.tuning:autotune",
    "compile": "tile_core.compiler:compile",
    "disable_cache": "tile_core.runtime.memo:disable_cache",
    "errors": "tile_core.errors:",
    "explain": "tile_core.reports:explain",
    "find_nan": "tile_core.debugging.snapshots:find_nan",
    "jit": "tile_core.decorators:jit",
    "language": "tile_core.language:",
    "layout": "tile_core.layout:",
    "load": "tile_core.runtime.export:load",
    "numerics": "tile_core.numerics:",
    "pack_weights": "tile_core.weights:pack_weights",
    "pointers": "tile_core.runtime.pointers:pointers",
    "sparse": "tile_core.sparse:",
    "targets": "tile_core.plugins.manager:targets",
    "tilings": "tile_core.tiling.api:tilings",
    "unpack_weights": "tile_core.weights:unpack_weights",
    "watch": "tile_core.debugging.snapshots:watch",
    "with_packed_weights": "tile_core.weights:with_packed_weights",
}

__all__ = ["__version__", *sorted(_LAZY)]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'tile_core' has no attribute {name!r}")
    module, _, attribute = _LAZY[name].partition(":")
    found = importlib.import_module(module)
    value = getattr(found, attribute) if attribute else found
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
