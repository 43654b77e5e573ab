"""The NVIDIA backend of tile: text for sm_80 to sm_120, built with NVRTC.

Nothing here is imported by kernels: ``tile.compile(program, "cuda:sm_90a")`` finds the package by its entry point.
Importing it, and producing text, needs no driver, no device and no toolchain.
"""

__version__ = "0.1.0"

__all__: list[str] = []
