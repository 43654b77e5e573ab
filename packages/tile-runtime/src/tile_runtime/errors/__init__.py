"""The errors of loading and calling kernels; ``tile_core.errors`` describes the families."""

from tile_runtime.errors.base import InternalError, KernelError, SetupError, TileError, UnsupportedError, Where

__all__ = ["InternalError", "KernelError", "SetupError", "TileError", "UnsupportedError", "Where"]
