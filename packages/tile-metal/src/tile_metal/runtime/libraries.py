"""Libraries whose arrays are on a Metal device, imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

Find = Callable[[], Any]


class LibraryUnusable(Exception):
    """Why a library launches nothing here."""


def find_mlx() -> Any:
    """Return ``mlx.core``.

    Raises
    ------
    LibraryUnusable
        It is not installed, or sees no Metal device.
    """
    mx = _imported("mlx.core", "mlx")
    if not mx.metal.is_available():
        raise LibraryUnusable("mlx is installed, but sees no Metal device")
    return mx


def find_torch() -> Any:
    """Return ``torch``.

    Raises
    ------
    LibraryUnusable
        It is not installed, or has no device ``mps``.
    """
    torch = _imported("torch", "torch")
    mps = getattr(torch.backends, "mps", None)
    if mps is None or not mps.is_available():
        raise LibraryUnusable("torch is installed, but sees no device mps")
    return torch


FIND: Mapping[str, Find] = {"mlx": find_mlx, "torch": find_torch}
"""By name, in order of preference."""


def _imported(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] == package
        reason = "is not installed" if missing else f"cannot be imported: {error}"
        raise LibraryUnusable(f"{package} {reason}") from error
