"""Names of operators, and schemas from a function's annotations."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Sequence
from typing import Any

import torch

from tile_runtime.errors.operators import BadResults
from tile_runtime.operators import bad_name, split_name
from tile_torch.errors import NoSchema


def check_name(name: str) -> tuple[str, str]:
    """Return namespace and name of an operator.

    Raises
    ------
    BadOperatorName
        It is not of the form ``"namespace::name"``, or torch cannot register it.
    """
    parts = split_name("tile_torch.op", name)
    if any(keyword.iskeyword(part) for part in parts):
        raise bad_name("tile_torch.op", name, "a part is a keyword of Python")
    if parts[0] in ("aten", "prim", "prims", "torch"):
        raise bad_name("tile_torch.op", name, f"the namespace {parts[0]!r} belongs to torch")
    return parts


def of_function(operator: str, function: Callable[..., Any], mutates: Sequence[str]) -> str:
    """Return arguments and results of an annotated function.

    Raises
    ------
    NoSchema
        Its annotations are missing, or of types that schemas lack.
    BadResults
        ``mutates`` names something else than its tensors.
    """
    import inspect

    known = list(inspect.signature(function).parameters)
    unknown = [name for name in mutates if name not in known]
    if unknown:
        raise BadResults(
            operator=operator, found=", ".join(unknown), what="written in place", reason="it has no such parameters",
            advice=f"name parameters of the function: {', '.join(known)}",
        )  # fmt: skip
    try:
        return str(torch.library.infer_schema(function, mutates_args=tuple(mutates)))
    except (ValueError, NameError, TypeError) as error:
        name = getattr(function, "__name__", repr(function))
        reason = str(error).splitlines()[0]
        raise NoSchema(operator=operator, function=name, reason=reason) from error
