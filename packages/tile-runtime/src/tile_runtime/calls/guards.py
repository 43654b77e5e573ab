"""Torch's guard of many tensors: every property of a call's form in one C++ call."""

from __future__ import annotations

import functools
import sys
from typing import Any

from tile_runtime.types import Torch, TorchTensor


def tensor_guards() -> Any:
    """Return torch's guard of many tensors, if this torch has a sufficient one."""
    torch: Torch = sys.modules.get("torch")
    return None if torch is None else tested_guards(torch)


@functools.lru_cache(maxsize=1)
def tested_guards(torch: Torch) -> Any:
    """Return the class if it distinguishes all of these tensors."""
    try:
        guards = sys.modules["torch._C._dynamo.guards"].TensorGuards
        with torch.inference_mode(False):
            right, wrong = _examples(torch)
            check = guards(right, dynamic_dims_sizes=None, dynamic_dims_strides=None).check
            return guards if check(right) and check(right.clone()) and not any(map(check, wrong)) else None
    except (KeyError, AttributeError, TypeError, RuntimeError, ValueError, ImportError):
        return None


def _examples(torch: Torch) -> tuple[TorchTensor, list[TorchTensor]]:
    """Return a tensor, and arguments that each differ from it in one property."""
    right, device = torch.zeros((2, 3), device="cpu"), "cpu"
    return right, [
        torch.nn.Parameter(right.clone(), requires_grad=False),
        torch.zeros((2, 3), dtype=torch.int32, device=device),
        torch.zeros((2, 3, 1), device=device),
        torch.zeros((3, 3), device=device),
        torch.zeros((3, 2), device=device).t(),
        torch.zeros((2, 3), requires_grad=True, device=device),
        torch._neg_view(right),
        right.to_sparse(),
        torch.zeros((2, 3), device="meta"),
        1,
    ]
