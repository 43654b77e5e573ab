"""``Linear24``: a linear layer whose weight is 2:4 sparse."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tile_core import sparse
from tile_torch.errors import BadLayer
from tile_torch.modules import common
from tile_torch.modules.programs import sparse_product, type_name
from tile_torch.operator import op

_WORD = 16  # elements of K that one word of metadata describes


def _compress(weight: Tensor) -> tuple[Tensor, Tensor]:
    # Without a check, which would wait for a device: the mask has two of every four.
    values, metadata = sparse.compress(weight.contiguous(), meta_dtype="int16", check=False)
    return values, metadata


def _compressed_shapes(weight: Tensor) -> tuple[Tensor, Tensor]:
    n, k = weight.shape
    return weight.new_empty(n, k // 2), weight.new_empty(n, k // _WORD, dtype=torch.int16)


def _linear(x: Tensor, values: Tensor, metadata: Tensor) -> Tensor:
    return sparse_product(int(values.shape[0]), int(x.shape[1]), type_name(x.dtype))(x, values, metadata)


def _train(x: Tensor, weight: Tensor, values: Tensor, metadata: Tensor) -> Tensor:
    return _linear(x, values, metadata)


def _input_gradient(gradient: Tensor, weight: Tensor) -> Tensor:
    return common.input_gradient(gradient, weight)


def _weight_gradient(gradient: Tensor, x: Tensor) -> Tensor:
    return common.weight_gradient(gradient, x)


compress = op("tile_torch::compress24", _compress, fake=_compressed_shapes)
linear = op("tile_torch::linear24", _linear)
train = op("tile_torch::train24", _train)
input_gradient = op("tile_torch::input_gradient", _input_gradient)
weight_gradient = op("tile_torch::weight_gradient", _weight_gradient)


def _linear_backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    x, values, metadata = ctx.saved_tensors
    dense = decompress(values, metadata)[:, : x.shape[1]]
    return input_gradient(gradient, dense).to(x.dtype), None, None


def _train_backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    x, weight = ctx.saved_tensors
    dx = input_gradient(gradient, weight).to(x.dtype) if ctx.needs_input_grad[0] else None
    return dx, weight_gradient(gradient, x).to(weight.dtype), None, None


linear.register_backward(_linear_backward)
train.register_backward(_train_backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs[:2]))


def mask24(weight: Tensor) -> Tensor:
    """Return a mask of the two largest, or first, magnitudes of every four."""
    n, k = weight.shape
    groups = torch.nn.functional.pad(weight.detach().abs(), (0, -k % 4), value=-1.0).view(n, -1, 4)
    kept = groups.sort(dim=-1, descending=True, stable=True).indices[..., :2]
    return torch.zeros_like(groups, dtype=torch.bool).scatter_(-1, kept, True).view(n, -1)[:, :k].contiguous()


def decompress(values: Tensor, metadata: Tensor) -> Tensor:
    """Return the dense matrix of values and metadata, on any device."""
    n, words = metadata.shape
    shifts = torch.arange(0, _WORD, 4, device=metadata.device)
    codes = ((metadata.to(torch.int32).unsqueeze(-1) >> shifts) & 15).view(n, words * 4, 1)
    positions = torch.cat([codes & 3, codes >> 2], dim=-1).long()
    dense = values.new_zeros(n, words * 4, 4)
    return dense.scatter_add_(-1, positions, values.view(n, words * 4, 2)).view(n, -1)


class Linear24(common.ConvertedLinear):
    """Multiply by a weight that is 2:4 sparse along K, and add a bias.

    While it is trained, ``weight`` is a dense parameter in float32, of which ``mask`` keeps two of every four;
    gradients of pruned weights are zero. ``freeze`` leaves the compressed values and metadata only.

    Parameters
    ----------
    in_features, out_features, bias, device
        As for ``torch.nn.Linear``; any extents.
    dtype
        Type of the operands of products, ``torch.float16`` or ``torch.bfloat16``. Products are added in float32, and
        results have the type of the input.

    Raises
    ------
    BadLayer
        For other arguments.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = torch.float16
    ) -> None:
        super().__init__(in_features, out_features, False, device, dtype)  # its bias follows the weight
        dense = torch.nn.Linear(in_features, out_features, bias, device, torch.float32)
        self.mask: Any
        self.weight: Any
        self.weight, self.bias = dense.weight, dense.bias
        self.register_buffer("mask", mask24(dense.weight))
        self.register_buffer("values", None)
        self.register_buffer("metadata", None)
        self.refresh()

    @classmethod
    def from_linear(cls, linear: torch.nn.Linear, dtype: Any = torch.float16) -> Linear24:
        """Return a layer with the pruned weight of a dense one."""
        made: Linear24 = cls._converted(linear, dtype)
        return made

    @property
    def is_frozen(self) -> bool:
        """Whether the layer has compressed weights only."""
        return self.weight is None

    def refresh(self) -> Linear24:
        """Choose the kept weights anew, and set the others to zero; return the layer."""
        if self.is_frozen:
            raise BadLayer(
                layer="Linear24", name="refresh()", found="called on a frozen layer", expected="a dense weight",
                advice="refresh before freeze()",
            )  # fmt: skip
        with torch.no_grad():
            self.mask.copy_(mask24(self.weight))
            self.weight.mul_(self.mask)
        return self

    def freeze(self) -> Linear24:
        """Keep the compressed weight only, which gives the same results; return the layer."""
        if not self.is_frozen:
            with torch.no_grad():
                self.values, self.metadata = self._compressed(self.weight * self.mask)
            self.weight = self.mask = None
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x @ weight.T + bias`` in the type of ``x``."""
        given = common.rows("Linear24", x, self.in_features).to(self.dtype)
        if self.is_frozen:
            return common.shaped(linear(given, self.values, self.metadata), self.bias, x)
        weight = (self.weight * self.mask).to(self.dtype)
        return common.shaped(train(given, weight, *self._compressed(weight.detach())), self.bias, x)

    def extra_repr(self) -> str:
        """Return the arguments that ``repr`` shows."""
        return super().extra_repr() + (", frozen" if self.is_frozen else "")

    def _convert(self, weight: Tensor) -> None:
        self.weight.copy_(weight)
        self.refresh()

    def _compressed(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        padded = torch.nn.functional.pad(weight.to(self.dtype), (0, -self.in_features % _WORD))
        values, metadata = compress(padded)
        return values, metadata

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Load the state of a frozen or of a dense layer, and become one."""
        values = state.get(f"{prefix}values")
        if values is not None and not self.is_frozen:
            device = self.weight.device
            self.weight = self.mask = None
            self.values, self.metadata = (
                torch.empty_like(state[prefix + name], device=device) for name in ("values", "metadata")
            )
        elif values is None and f"{prefix}weight" in state and self.is_frozen:
            device = self.values.device
            self.weight = torch.nn.Parameter(torch.empty_like(state[f"{prefix}weight"], device=device))
            self.mask = torch.empty_like(state[f"{prefix}mask"], device=device)
            self.values = self.metadata = None
        super()._load_from_state_dict(state, prefix, *rest)
