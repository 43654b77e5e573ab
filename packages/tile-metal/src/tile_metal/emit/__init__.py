"""MSL from per-thread programs."""

from tile_metal.emit.kernel import TextOptions, emit_kernel

__all__ = ["TextOptions", "emit_kernel"]
