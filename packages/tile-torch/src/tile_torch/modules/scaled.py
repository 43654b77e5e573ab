"""``ScaledLinear``: a linear layer whose weight and inputs are scaled 8-bit floats."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tile_torch.modules import common
from tile_torch.modules.programs import scaled_product, type_name
from tile_torch.operator import op


def _linear(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    codes, scales = quantize(x, weight.dtype)
    n, k = weight.shape
    return scaled_product(int(n), int(k), type_name(weight.dtype))(codes, scales, weight, scale)


def _gradient(gradient: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    # In bfloat16, which has the exponents of any gradient and all values of the weight.
    return common.input_gradient(gradient * scale, weight.to(torch.bfloat16))


linear = op("tile_torch::scaled_linear", _linear)
gradient = op("tile_torch::scaled_linear_gradient", _gradient)


def _backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
    x, weight, scale = ctx.saved_tensors
    return gradient(g, weight, scale).to(x.dtype), None, None


linear.register_backward(_backward)


def quantize(x: Tensor, dtype: Any = torch.float8_e4m3fn) -> tuple[Tensor, Tensor]:
    """Return a matrix as 8-bit floats and a scale for each row.

    Parameters
    ----------
    x
        A matrix of finite values.
    dtype
        The format; the largest magnitude of each row becomes its largest value.
    """
    largest = x.abs().amax(dim=-1).float() if x.shape[-1] else x.new_zeros(x.shape[:-1], dtype=torch.float32)
    limit = torch.finfo(dtype).max
    scale = torch.where(largest > 0, largest / limit, torch.ones_like(largest))
    return (x.float() / scale.unsqueeze(-1)).clamp(-limit, limit).to(dtype), scale


class ScaledLinear(common.ConvertedLinear):
    """Multiply 8-bit floats, scaled by rows, and add a bias.

    The weight is fixed. Inputs are converted at each call; their gradient is that of the product, as if the conversion
    of the input were exact.

    Parameters
    ----------
    in_features, out_features, bias, device
        As for ``torch.nn.Linear``; any extents. The weight is zero until a state is loaded.
    dtype
        ``torch.float8_e4m3fn`` or ``torch.float8_e5m2``.

    Raises
    ------
    BadLayer
        For other arguments.
    """

    DTYPES = (torch.float8_e4m3fn, torch.float8_e5m2)
    INPUTS = "inputs may have any float type: they are converted"

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = torch.float8_e4m3fn,
    ) -> None:
        super().__init__(in_features, out_features, bias, device, dtype)
        self.register_buffer("weight", torch.zeros(out_features, in_features, device=device).to(dtype))
        self.register_buffer("scale", torch.ones(out_features, device=device))

    @classmethod
    def from_linear(cls, linear: torch.nn.Linear, dtype: Any = torch.float8_e4m3fn) -> ScaledLinear:
        """Return a layer with the converted weight of another one."""
        made: ScaledLinear = cls._converted(linear, dtype)
        return made

    def dequantize(self) -> Tensor:
        """Return the weight in float32."""
        return self.weight.float() * self.scale.unsqueeze(-1)

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x @ weight.T + bias`` in the type of ``x``."""
        given = common.rows("ScaledLinear", x, self.in_features)
        return common.shaped(linear(given, self.weight, self.scale), self.bias, x)

    def _convert(self, weight: Tensor) -> None:
        self.weight, self.scale = quantize(weight, self.dtype)
