"""Kernels of tile in JAX: ``import tile_jax``.

``op`` makes an operator of a program. It works under ``jax.jit``, ``jax.vmap`` and ``jax.grad``. ``export`` and
``deserialize`` are those of ``jax.export`` for functions that call operators.
"""

from __future__ import annotations

import importlib
from typing import Any

from tile_jax.errors import JaxNotFound

__version__ = "0.1.0"

_NEEDED = (0, 8)

try:
    import jax
except ImportError as _error:
    raise JaxNotFound(needed=">={}.{}".format(*_NEEDED), found="no jax") from _error
if tuple(int(_n) for _n in jax.__version__.split(".")[:2]) < _NEEDED:
    raise JaxNotFound(needed=">={}.{}".format(*_NEEDED), found=jax.__version__)

_LAZY = {"Operator": "operator", "deserialize": "exporting", "export": "exporting", "op": "operator"}

__all__ = ["__version__", *sorted(_LAZY)]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'tile_jax' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"tile_jax.{_LAZY[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
