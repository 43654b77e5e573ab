"""Small helpers of the host interface, and the translation of targets."""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tile_core.compat.dialects import PassConfigKey
from tile_core.runtime.memo import cache_enabled, disable_cache, enable_cache
from tile_core.target import Target
from tile_tilelang.errors import BadCall

__all__ = [
    "PassConfigKey",
    "apply_simplify",
    "cdiv",
    "disable_cache",
    "enable_cache",
    "every_target_name",
    "is_cache_enabled",
    "next_power_of_2",
    "runtime",
    "set_log_level",
    "simplify_prim_func",
    "target_of",
]

#: How TileLang and TVM name targets -> tile's name.
_KINDS = {"c": "cpu", "llvm": "cpu", "hip": "rocm", "cutedsl": "cuda"}

#: Set by ``python -m tile_tilelang --target --runtime``: those of every kernel of the script.
instead_of: list[tuple[str | None, str | None]] = []


def cdiv(a: int, b: int) -> int:
    """Return ``a / b``, rounded up."""
    return -(-a // b)


def next_power_of_2(n: int) -> int:
    """Return the least power of two that is at least ``n``, at least 1."""
    return 1 if n < 1 else 1 << (n - 1).bit_length()


def is_cache_enabled() -> bool:
    """Return whether kernels are kept."""
    return cache_enabled()


def set_log_level(level: object) -> None:
    """Accept a log level without effect: tile's messages are Python errors and warnings."""


def simplify_prim_func(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a factory as it is: every program is simplified when it is compiled."""
    return func


def apply_simplify(stmt: Any, inline_let: bool = False) -> Any:
    """Return a program as it is: every program is simplified when it is compiled."""
    return stmt


def every_target_name() -> str:
    """Return the target of the script's kernels: ``--target``, else this machine's best."""
    from tile_core.plugins.manager import installed

    return installed().resolve_target(target_of("auto")).text


def target_of(target: Any) -> str | Target:
    """Return tile's target for one of TileLang's.

    Parameters
    ----------
    target
        A name, with ``-arch=`` or ``-mcpu=`` for a device (``"cuda -arch=sm_90a"``); a mapping with ``kind`` and
        ``arch``; an object of TVM with a ``kind``; or a target of tile.

    Raises
    ------
    BadCall
        For anything else.
    """
    if instead_of and instead_of[-1][0]:
        return instead_of[-1][0]
    if target is None or isinstance(target, Target):
        return "auto" if target is None else target
    if hasattr(target, "kind"):
        attributes = getattr(target, "attrs", {})
        target = {"kind": getattr(target.kind, "name", target.kind), **dict(attributes)}
    if isinstance(target, Mapping):
        device = target.get("arch") or target.get("mcpu") or ""
        return _named(str(target.get("kind", "")), str(device))
    if not isinstance(target, str):
        expected, instead = "a name, a mapping or a target", 'write target="auto", "cpu", "cuda" or "cuda:sm_90a"'
        raise BadCall(function="jit", name="target", found=repr(target), expected=expected, instead=instead)
    kind, _, rest = target.partition(" ")
    found = re.search(r"-(?:arch|mcpu)=(\S+)", rest)
    return _named(kind, found[1] if found else "")


def __getattr__(name: str) -> Any:
    if name != "tvm":
        raise AttributeError(name)
    return importlib.import_module("tvm")  # while a script runs, as `tile_tilelang.tvm_names` has it


def _named(kind: str, device: str) -> str:
    name = _KINDS.get(kind, kind)
    return f"{name}:{device}" if device and name != "cpu" and ":" not in name else name


def runtime() -> str | None:
    """Return the runtime of every kernel of the script; ``None`` leaves it to their targets."""
    return instead_of[-1][1] if instead_of else None


@contextlib.contextmanager
def every_target(target: str | None, runtime: str | None = None) -> Iterator[None]:
    """Compile all kernels of a block for one target and runtime; ``None`` keeps theirs."""
    instead_of.append((target, runtime))
    try:
        yield
    finally:
        instead_of.pop()
