"""Warnings about kernels without an effect, and about parameters that a kernel does not use."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from tile_core.abi.signature import Signature
from tile_core.compat.tvm import ir, tirx
from tile_core.ir.visit import collect
from tile_core.renamed_options import depth_of_caller

if TYPE_CHECKING:
    from tile_core.ir.program import Program

_SHOWING = frozenset({"tile.print", "tile.device_assert"})


class IdleKernel(UserWarning):
    """A kernel writes none of its parameters."""


class UnusedParameter(IdleKernel):
    """A kernel does not use one of its parameters."""


def warn_idle(program: Program, signature: Signature) -> None:
    """Warn about a kernel without an effect, and about parameters without a use."""
    where = f" ({program.where})" if program.where is not None else ""
    shown = any(getattr(call.op, "name", "") in _SHOWING for call in collect(program.func.body, ir.Call))
    if not shown and not any(p.writes for p in signature.params):
        text = "writes none of its parameters, so that a call has no effect: assign to an element, or T.copy to it"
        warnings.warn(IdleKernel(f"{program.name}{where} {text}"), stacklevel=depth_of_caller())
    for name in unused_parameters(program):
        text = f"does not use its parameter {name}: remove it, or name it _{name} if that is meant"
        warnings.warn(UnusedParameter(f"{program.name}{where} {text}"), stacklevel=depth_of_caller())


def unused_parameters(program: Program) -> list[str]:
    """Return the parameters that a kernel does not use, but for names such as ``_A``.

    A parameter whose size is a symbol is used.
    """
    used = {str(v.name) for v in tirx.analysis.undefined_vars(program.func.body, [])}
    params = zip(program.params, program.func.params, strict=True)
    unused = [p for p, v in params if str(v.name) not in used and all(isinstance(d, int) for d in p.shape)]
    return [p.name for p in unused if not p.name.startswith("_")]
