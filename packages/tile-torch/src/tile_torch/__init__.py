"""Kernels of tile as operators of PyTorch: ``import tile_torch``.

``op`` makes an operator of a program or of a function that launches several, ``kernel`` a function of tensors for use
in such a function. ``Linear24``, ``ScaledLinear`` and ``Linear4bit`` are layers whose products are such operators.
"""

from __future__ import annotations

import importlib
from typing import Any

from tile_runtime.operators import need_library

__version__ = "0.1.0"

need_library("tile_torch", "torch", needed=(2, 13))

_LAZY = {
    "Linear24": "modules.sparse",
    "Linear4bit": "modules.four_bits",
    "ScaledLinear": "modules.scaled",
    "TorchKernel": "launching",
    "TorchOperator": "operator",
    "kernel": "launching",
    "op": "operator",
}

__all__ = ["__version__", *sorted(_LAZY)]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'tile_torch' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"tile_torch.{_LAZY[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
