"""``Linear4bit``: a linear layer with a weight of four bits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tile_torch.modules import common
from tile_torch.modules.programs import four_bit_product, type_name
from tile_torch.operator import op


def _linear(x: Tensor, weight: Tensor, scale: Tensor, group: int) -> Tensor:
    n, k = weight.shape[0], x.shape[1]
    return four_bit_product(int(n), int(k), int(group), type_name(x.dtype))(x, weight, scale)


def _gradient(gradient: Tensor, weight: Tensor, scale: Tensor, group: int, k: int) -> Tensor:
    return common.input_gradient(gradient, unpack(weight, scale, group, k))


linear = op("tile_torch::linear_4bit", _linear)
gradient = op("tile_torch::linear_4bit_gradient", _gradient)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, weight, scale, ctx.group = inputs
    ctx.kind, ctx.k = x.dtype, x.shape[1]
    ctx.save_for_backward(weight, scale)


def _backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
    return gradient(g, *ctx.saved_tensors, ctx.group, ctx.k).to(ctx.kind), None, None, None


linear.register_backward(_backward, setup_context=_setup)


def quantize(weight: Tensor, group: int, dtype: Any) -> tuple[Tensor, Tensor]:
    """Return packed integers from -8 to 7, low halves first, and their scales.

    Parameters
    ----------
    weight
        A matrix (N, K) of finite values.
    group
        The number of adjacent elements of K with one scale; the last group may be shorter.
    dtype
        Type of the scales.

    Returns
    -------
    tuple
        ``uint8`` of (N, K / 2) and scales of (N, K / group), rounded up.
    """
    n, k = weight.shape
    groups = torch.nn.functional.pad(weight.detach().float(), (0, -k % group)).view(n, -1, group)
    largest = groups.gather(-1, groups.abs().argmax(-1, keepdim=True)).squeeze(-1)
    # The largest magnitude becomes -8, which has no counterpart.
    scale = (largest / -8).to(dtype)
    divisor = torch.where(scale == 0, torch.ones_like(scale), scale).float().unsqueeze(-1)
    codes = (groups / divisor).round().clamp(-8, 7).to(torch.int32).view(n, -1)[:, :k]
    nibbles = torch.nn.functional.pad(codes & 15, (0, k % 2)).view(n, -1, 2)
    return (nibbles[..., 0] | nibbles[..., 1] << 4).to(torch.uint8), scale


def unpack(weight: Tensor, scale: Tensor, group: int, k: int) -> Tensor:
    """Return the weight (N, K) in the type of its scales."""
    n = weight.shape[0]
    codes = torch.stack([weight & 15, weight >> 4], dim=-1).view(n, -1)[:, :k].to(torch.int8)
    values = torch.where(codes > 7, codes - 16, codes).to(scale.dtype)
    return values * scale.repeat_interleave(group, dim=1)[:, :k]


class Linear4bit(common.ConvertedLinear):
    """Multiply by four-bit integers, scaled in groups along K, and add a bias.

    The weight is fixed. Products have operands of ``dtype`` and are added in float32.

    Parameters
    ----------
    in_features, out_features, bias, device
        As for ``torch.nn.Linear``; any extents. The weight is zero until a state is loaded.
    group
        The number of adjacent elements of K with one scale.
    dtype
        Type of scales and operands, ``torch.float16`` or ``torch.bfloat16``.

    Raises
    ------
    BadLayer
        For other arguments.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = torch.float16,
        group: int = 64,
    ) -> None:
        super().__init__(in_features, out_features, bias, device, dtype)
        common.check_count("Linear4bit", "group", group)
        self.group = group
        packed = torch.zeros(out_features, -(-in_features // 2), dtype=torch.uint8, device=device)
        self.register_buffer("weight", packed)
        self.register_buffer("scale", torch.zeros(out_features, -(-in_features // group), dtype=dtype, device=device))

    @classmethod
    def from_linear(cls, linear: torch.nn.Linear, dtype: Any = torch.float16, group: int = 64) -> Linear4bit:
        """Return a layer with the converted weight of another one."""
        made: Linear4bit = cls._converted(linear, dtype, group)
        return made

    def dequantize(self) -> Tensor:
        """Return the weight as products use it."""
        return unpack(self.weight, self.scale, self.group, self.in_features)

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x @ weight.T + bias`` in the type of ``x``."""
        given = common.rows("Linear4bit", x, self.in_features).to(self.dtype)
        return common.shaped(linear(given, self.weight, self.scale, self.group), self.bias, x)

    def extra_repr(self) -> str:
        """Return the arguments that ``repr`` shows."""
        return f"{super().extra_repr()}, group={self.group}"

    def _convert(self, weight: Tensor) -> None:
        self.weight, self.scale = quantize(weight, self.group, self.dtype)
