"""Operators of torch: schemas, fake results, and the operators of a package.

Torch is imported here only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tile_runtime.abi.signature import Equation, Param, Signature, evaluate, solve
from tile_runtime.dtypes import DTYPES
from tile_runtime.operators import stored_shape, stored_type
from tile_runtime.types import Torch, TorchTensor

#: Types of arguments in a schema, by the kind of an element type.
_SCALARS = {"bool": "bool", "int": "SymInt", "uint": "SymInt", "float": "float"}
KEYS = ("CPU", "CUDA", "MPS")
"""The dispatch keys of the devices that kernels run on."""
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
        library.define(f"{kernel.name}{schema_of(kernel.signature)}")
        for key in KEYS:
            library.impl(kernel.name, kernel, key)
        torch.library.register_fake(f"{namespace}::{kernel.name}", _fake(kernel, torch), lib=library)


def schema_of(signature: Signature) -> str:
    """Return arguments and results of an operator: ``"(Tensor x, Tensor(a1!) y) -> Tensor"``."""
    inputs = ", ".join(_argument(signature.params[i], n) for n, i in enumerate(signature.inputs))
    outputs = ["Tensor"] * len(signature.results)
    return f"({inputs}) -> {outputs[0] if len(outputs) == 1 else '(' + ', '.join(outputs) + ')'}"


def empty_results(signature: Signature, symbols: Mapping[str, int], device: object) -> Any:
    """Return the results of a call without content, as the call allocates them."""
    import torch

    made = tuple(
        torch.empty(
            stored_shape(p, [evaluate(dim, symbols) for dim in p.shape]), dtype=getattr(torch, stored_type(p)),
            device=device,
        )
        for p in (signature.params[i] for i in signature.results)
    )  # fmt: skip
    return made[0] if len(made) == 1 else made or None


def _argument(param: Param, number: int) -> str:
    if param.kind == "tensor":
        return f"Tensor(a{number}!) {param.name}" if param.writes else f"Tensor {param.name}"
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
        numbers = [(p, a) for p, a in zip(inputs, args, strict=True) if p.kind == "scalar"]
        equations += [Equation(p.name, a, p.name) for p, a in numbers if DTYPES[p.dtype].is_integer]
        device = next((a.device for a in args if isinstance(a, torch.Tensor)), None)
        return empty_results(signature, solve(equations).values, device)

    return fake
