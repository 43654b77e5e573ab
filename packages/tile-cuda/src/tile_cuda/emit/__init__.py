"""CUDA C++ from per-thread programs."""

from tile_cuda.emit.kernel import TextOptions, emit_kernel

__all__ = ["TextOptions", "emit_kernel"]
