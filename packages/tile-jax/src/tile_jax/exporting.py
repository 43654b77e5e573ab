"""``export`` and ``deserialize``: those of ``jax.export``, for functions that call operators."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import jax.export

from tile_jax import handlers
from tile_jax.errors import NotDefined
from tile_jax.launching import WIDE, base_of
from tile_jax.operator import known
from tile_jax.primitive import is_present

Exported = Any  # jax.export.Exported, which has no types that a checker could see


def export(
    function: Any, *, platforms: Sequence[str] | None = None, disabled_checks: Sequence[Any] = ()
) -> Callable[..., Exported]:
    """Return ``jax.export.export`` of a function that calls operators.

    Parameters
    ----------
    function
        The result of ``jax.jit``.
    platforms, disabled_checks
        As for ``jax.export.export``, which refuses calls whose meaning may change: an operator's name stands for its
        program, which the process that loads the function defines again.
    """
    names = [name + version for name in known() for version in ("", WIDE)]
    calls = [jax.export.DisabledSafetyCheck.custom_call(name) for name in names]
    return jax.export.export(function, platforms=platforms, disabled_checks=[*calls, *disabled_checks])


def deserialize(data: bytes | bytearray) -> Exported:
    """Return an exported function whose operators this process has defined.

    Raises
    ------
    NotDefined
        It calls other operators.
    """
    exported = jax.export.deserialize(bytearray(data))
    names = dict.fromkeys(re.findall(r'custom_call @"(\w+::[^"]+)"', exported.mlir_module()))
    operators = known()
    missing = [name for name in names if base_of(name) not in operators]
    if missing:
        raise NotDefined(found=", ".join(missing), first=missing[0])
    for name in names:
        for platform in filter(is_present, exported.platforms):
            handlers.register(operators[base_of(name)].kernel, platform, wide=name != base_of(name))
    return exported
