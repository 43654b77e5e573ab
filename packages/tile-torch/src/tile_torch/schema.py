"""Schemas of operators, from a program's signature or a function's annotations."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from tile_core.dtypes import dtype
from tile_torch.errors import BadOperatorName, BadResults, NoSchema

if TYPE_CHECKING:
    from tile_core.abi.signature import Param
    from tile_torch.launching import TorchKernel


def check_name(name: str) -> tuple[str, str]:
    """Return namespace and name of an operator.

    Raises
    ------
    BadOperatorName
        It is not of the form ``"namespace::name"``.
    """
    parts = name.split("::") if isinstance(name, str) else []
    reason = ""
    if len(parts) != 2:
        reason = "it is not of the form 'namespace::name'"
    elif not all(re.fullmatch(r"[A-Za-z_]\w*", part) for part in parts):
        reason = "both parts must be identifiers without a dot"
    elif any(keyword.iskeyword(part) for part in parts):
        reason = "a part is a keyword of Python"
    elif parts[0] in ("aten", "prim", "prims", "torch"):
        reason = f"the namespace {parts[0]!r} belongs to torch"
    if reason:
        near = re.sub(r"\W", "_", parts[-1]) if parts and parts[-1] else "f"
        raise BadOperatorName(name=name, reason=reason, near=near if near.isidentifier() else "f")
    return parts[0], parts[1]


def of_kernel(kernel: TorchKernel) -> str:
    """Return arguments and results of a program's operator: ``"(Tensor x, Tensor(a0!) y) -> Tensor"``."""
    signature = kernel.signature
    inputs = [_argument(signature.params[i], n) for n, i in enumerate(signature.inputs)]
    results = ["Tensor"] * len(signature.results)
    return f"({', '.join(inputs)}) -> {results[0] if len(results) == 1 else '(' + ', '.join(results) + ')'}"


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


def _argument(param: Param, number: int) -> str:
    if param.kind == "tensor":
        return f"Tensor(a{number}!) {param.name}" if param.writes else f"Tensor {param.name}"
    kind = dtype(param.dtype)
    named = "bool" if kind.kind == "bool" else "SymInt" if kind.is_integer else "float"
    return f"{named} {param.name}"
