"""Operators of torch for the kernels of a package; torch is imported here only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tile_runtime.abi.signature import Equation, Param, evaluate, solve
from tile_runtime.dtypes import DTYPES
from tile_runtime.types import Torch, TorchTensor

#: Types of arguments in a schema, by the kind of an element type.
_SCALARS = {"bool": "bool", "int": "int", "uint": "int", "float": "float"}
#: Libraries live as long as their operators.
_libraries: dict[str, Any] = {}


def register(namespace: str, kernels: Iterable[Any]) -> None:
    """Register operators of ``PackagedKernel``, once.

    Kernels that take pointers have no operator.
    """
    import torch

    if namespace in _libraries:
        return
    library = _libraries[namespace] = torch.library.Library(namespace, "FRAGMENT")
    for kernel in kernels:
        if any(p.kind == "pointer" for p in kernel.signature.params):
            continue
        library.define(f"{kernel.name}{_schema(kernel)}")
        for key in ("CPU", "CUDA", "MPS"):
            library.impl(kernel.name, kernel, key)
        torch.library.register_fake(f"{namespace}::{kernel.name}", _fake(kernel, torch), lib=library)


def _schema(kernel: Any) -> str:
    signature = kernel.signature
    inputs = ", ".join(_argument(signature.params[i], i) for i in signature.inputs)
    outputs = ["Tensor"] * len(signature.results)
    return f"({inputs}) -> {outputs[0] if len(outputs) == 1 else '(' + ', '.join(outputs) + ')'}"


def _argument(param: Param, position: int) -> str:
    if param.kind == "tensor":
        return f"Tensor(a{position}!) {param.name}" if param.writes else f"Tensor {param.name}"
    return f"{_SCALARS[DTYPES[param.dtype].kind]} {param.name}"


def _fake(kernel: Any, torch: Torch) -> Any:
    def fake(*args: Any) -> TorchTensor:
        shapes = tuple(tuple(a.shape) if isinstance(a, torch.Tensor) else None for a in args)
        build = kernel.build_of(shapes)
        # The call itself raises the refusal of a shape.
        signature = kernel.signature if build is None else build.signature
        inputs = [signature.params[i] for i in signature.inputs]
        equations = [
            Equation(dim, size, p.name)
            for p, shape in zip(inputs, shapes, strict=True) if shape is not None
            for dim, size in zip(p.shape, shape, strict=False)
        ]  # fmt: skip
        equations += [Equation(p.name, a, p.name) for p, a in zip(inputs, args, strict=True) if isinstance(a, int)]
        values = solve(equations).values
        device = next((a.device for a in args if isinstance(a, torch.Tensor)), None)
        made = tuple(
            torch.empty([evaluate(dim, values) for dim in p.shape], dtype=DTYPES[p.dtype].as_torch(), device=device)
            for p in (signature.params[i] for i in signature.results)
        )
        return made[0] if len(made) == 1 else made or None

    return fake
