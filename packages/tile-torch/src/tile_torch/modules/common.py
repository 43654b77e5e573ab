"""Checks and gradients that the layers share."""

from __future__ import annotations

from typing import Any

import torch

from tile_torch.errors import BadLayer
from tile_torch.modules.programs import product, type_name

Tensor = Any  # torch.Tensor, which has no types that a checker could see

COMPUTED = (torch.float16, torch.bfloat16)
"""Element types of the products' operands."""


def check_features(layer: str, in_features: object, out_features: object) -> None:
    """Refuse extents that are not positive integers."""
    for name, found in (("in_features", in_features), ("out_features", out_features)):
        if not isinstance(found, int) or isinstance(found, bool) or found < 1:
            raise BadLayer(
                layer=layer, name=name, found=found, expected="a positive integer", advice=f"pass {name}=64, or another"
            )


def check_type(layer: str, dtype: Any) -> None:
    """Refuse element types that the products do not have."""
    if dtype not in COMPUTED:
        expected = " or ".join(map(str, COMPUTED))
        raise BadLayer(
            layer=layer,
            name="dtype",
            found=dtype,
            expected=expected,
            advice="inputs may be float32: they are converted",
        )


def check_linear(layer: str, linear: object) -> None:
    """Refuse what is not a linear layer of torch."""
    if not isinstance(linear, torch.nn.Linear):
        raise BadLayer(
            layer=layer, name="linear", found=type(linear).__name__, expected="a torch.nn.Linear",
            advice="pass one, or call the layer's class with in_features and out_features",
        )  # fmt: skip


def rows(layer: str, x: Tensor, in_features: int) -> Tensor:
    """Return an input as contiguous rows.

    Raises
    ------
    BadLayer
        Its last extent is another one.
    """
    if not x.ndim or x.shape[-1] != in_features:
        raise BadLayer(
            layer=layer, name="input", found=f"of shape {tuple(x.shape)}", expected=f"a last extent of {in_features}",
            advice=f"pass a tensor of shape (..., {in_features})",
        )  # fmt: skip
    return x.reshape(-1, in_features).contiguous()


def input_gradient(gradient: Tensor, weight: Tensor) -> Tensor:
    """Return ``gradient @ weight`` in the gradient's type; operands have that of the weight."""
    N, K = weight.shape
    run = product(None, int(K), int(N), type_name(weight.dtype), False, False)
    return run(gradient.to(weight.dtype).contiguous(), weight.contiguous())


def weight_gradient(gradient: Tensor, x: Tensor) -> Tensor:
    """Return ``gradient.T @ x`` in float32; operands have the type of ``x``."""
    N, K = gradient.shape[1], x.shape[1]
    run = product(int(N), int(K), None, type_name(x.dtype), True, False)
    return run(gradient.to(x.dtype).contiguous(), x.contiguous())


def shaped(y: Tensor, bias: Tensor | None, like: Tensor) -> Tensor:
    """Return rows in the shape and the type of an input, with the bias."""
    y = y if bias is None else y + bias
    return y.reshape(*like.shape[:-1], y.shape[-1]).to(like.dtype)
