"""NVTX ranges by the package ``nvtx``, or by torch."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from collections.abc import Callable

__all__ = ["range_functions"]


def range_functions(name: str) -> tuple[Callable[[], object], Callable[[], object]] | None:
    """Return the functions that begin and end a range; ``None`` if nothing makes ranges.

    Parameters
    ----------
    name
        Of the range: in the domain ``tile`` of the package ``nvtx``, else with the prefix ``tile::``.
    """
    with contextlib.suppress(ImportError):
        nvtx = importlib.import_module("nvtx")
        return functools.partial(nvtx.push_range, name, domain="tile"), functools.partial(nvtx.pop_range, domain="tile")
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(getattr(torch, "_C", None), "_nvtx"):
        return None
    functions = torch.cuda.nvtx
    return functools.partial(functions.range_push, f"tile::{name}"), functions.range_pop
