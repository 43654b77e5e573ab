"""Kernels of tile in JAX: ``import tile_jax``.

``op`` makes an operator of a program. It works under ``jax.jit``, ``jax.vmap`` and ``jax.grad``. ``export`` and
``deserialize`` are those of ``jax.export`` for functions that call operators.
"""

from __future__ import annotations

import importlib
from typing import Any

from tile_runtime.operators import need_library

__version__ = "0.1.0"

need_library("tile_jax", "jax", needed=(0, 8), more=" jax-tvm-ffi")

_LAZY = {"JaxOperator": "operator", "deserialize": "exporting", "export": "exporting", "op": "operator"}

__all__ = ["__version__", *sorted(_LAZY)]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'tile_jax' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"tile_jax.{_LAZY[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
