"""The Metal backend of tile: MSL for Apple GPUs, launched through MLX or ``torch.mps``.

Nothing here is imported by kernels: ``tile.compile(program, "metal")`` finds the package by its entry point. Importing
it, and producing text, needs no Mac.
"""

__version__ = "0.1.0"

__all__: list[str] = []
