"""Kernels of tile as operators of PyTorch: ``import tile_torch``.

``op`` makes an operator of a program or of a function that launches several, ``kernel`` a function of tensors for use
in such a function. ``Linear24``, ``ScaledLinear`` and ``Linear4bit`` are layers whose products are such operators.
"""

from __future__ import annotations

import importlib
from typing import Any

from tile_torch.errors import TorchNotFound

__version__ = "0.1.0"

_NEEDED = (2, 13)

try:
    import torch
except ImportError as _error:
    raise TorchNotFound(needed=">={}.{}".format(*_NEEDED), found="no torch") from _error
if tuple(int(_n) for _n in torch.__version__.split(".")[:2]) < _NEEDED:
    raise TorchNotFound(needed=">={}.{}".format(*_NEEDED), found=torch.__version__)

_LAZY = {
    "Linear24": "modules.sparse",
    "Linear4bit": "modules.four_bits",
    "Operator": "operator",
    "ScaledLinear": "modules.scaled",
    "TorchKernel": "launching",
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
