"""Launches of kernels on NVIDIA devices, through the driver, without a compiler.

Users import nothing of it: ``tile_runtime.load`` and wheels of kernels find the package by its entry point.
"""

__version__ = "0.1.0"

__all__: list[str] = []
