"""Checks and gradients that the layers share."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from tile_torch.errors import BadLayer
from tile_torch.modules.programs import product, type_name

Tensor = Any  # torch.Tensor, which has no types that a checker could see

COMPUTED = (torch.float16, torch.bfloat16)
"""Element types of the products' operands."""


def check_count(layer: str, name: str, found: object) -> None:
    """Refuse a value that is not a positive integer."""
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        expected, advice = "a positive integer", f"pass {name}=64, or another"
        raise BadLayer(layer=layer, name=name, found=found, expected=expected, advice=advice)


class ConvertedLinear(torch.nn.Module):
    """Base of layers with a converted weight: extents, element type and bias.

    Parameters
    ----------
    in_features, out_features, device
        As for ``torch.nn.Linear``; any extents.
    dtype
        The element type, one of ``DTYPES``.
    bias
        Whether there is a bias, which is zero until a state is loaded.

    Raises
    ------
    BadLayer
        For other arguments.
    """

    DTYPES: ClassVar[tuple[Any, ...]] = COMPUTED
    INPUTS: ClassVar[str] = "inputs may be float32: they are converted"

    def __init__(self, in_features: int, out_features: int, bias: bool, device: Any, dtype: Any) -> None:
        super().__init__()
        layer = type(self).__name__
        check_count(layer, "in_features", in_features)
        check_count(layer, "out_features", out_features)
        if dtype not in self.DTYPES:
            expected = " or ".join(map(str, self.DTYPES))
            raise BadLayer(layer=layer, name="dtype", found=dtype, expected=expected, advice=self.INPUTS)
        self.in_features, self.out_features, self.dtype = in_features, out_features, dtype
        self.bias: Any = torch.nn.Parameter(torch.zeros(out_features, device=device)) if bias else None

    @classmethod
    def _converted(cls, linear: torch.nn.Linear, *options: Any) -> Any:
        """Return a layer with the converted weight and the bias of another one."""
        if not isinstance(linear, torch.nn.Linear):
            raise BadLayer(
                layer=f"{cls.__name__}.from_linear", name="linear", found=type(linear).__name__,
                expected="a torch.nn.Linear",
                advice="pass one, or call the layer's class with in_features and out_features",
            )  # fmt: skip
        bias, device = linear.bias, linear.weight.device
        made: Any = cls(linear.in_features, linear.out_features, bias is not None, device, *options)
        with torch.no_grad():
            made._convert(linear.weight)
            if bias is not None:
                made.bias.copy_(bias)
        return made

    def extra_repr(self) -> str:
        """Return the arguments that ``repr`` shows."""
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}, dtype={self.dtype}"


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
