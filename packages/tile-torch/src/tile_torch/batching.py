"""Rules of ``torch.vmap``: fold a batch into rows, or launch once for each example."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from tile_runtime.errors.operators import BadBatch
from tile_runtime.operators import leading_params

if TYPE_CHECKING:
    from tile_torch.launching import TorchKernel

Apply = Callable[..., Any]


def check_batch(operator: str, kernel: TorchKernel | None, symbol: str) -> frozenset[int]:
    """Return the numbers of the arguments that begin with a symbol.

    Raises
    ------
    BadBatch
        The symbol is not the first extent of all tensors that have it and of all results.
    """
    if kernel is None:
        reason, advice = "names a symbol, and a function has none", "give it a rule with register_vmap(rule)"
        raise BadBatch(operator=operator, found=symbol, reason=reason, advice=advice)
    found = leading_params(operator, kernel.signature, kernel.signature.results, symbol)
    return frozenset(n for n, i in enumerate(kernel.signature.inputs) if i in found)


def fold(apply: Apply, leading: frozenset[int], size: int, dims: Sequence[int | None], args: Sequence[Any]) -> Any:
    """Apply an operator once, with the batch folded into the first axis of its tensors.

    Parameters
    ----------
    apply
        The operator.
    leading
        The arguments whose first axis takes the batch; no other one is batched.
    size, dims, args
        As ``torch.vmap`` gives them.
    """
    passed = []
    rows = 0
    for number, (value, axis) in enumerate(zip(args, dims, strict=True)):
        if number in leading:
            whole = value.movedim(axis, 0) if axis is not None else value.expand(size, *value.shape)
            rows = whole.shape[1]
            value = whole.reshape(size * rows, *whole.shape[2:]).contiguous()
        passed.append(value)
    found = apply(*passed)
    results = found if isinstance(found, tuple) else (found,)
    split = tuple(r.reshape(size, rows, *r.shape[1:]) for r in results)
    return (split, (0,) * len(split)) if isinstance(found, tuple) else (split[0], 0)


def loop(apply: Apply, size: int, dims: Sequence[int | None], args: Sequence[Any]) -> Any:
    """Apply an operator to each example, and stack the results."""

    def example(n: int) -> Any:
        chosen = (a if d is None else a.select(d, n).contiguous() for a, d in zip(args, dims, strict=True))
        return apply(*chosen)

    if size == 0:
        empty = (a if d is None else a.new_zeros(a.movedim(d, 0).shape[1:]) for a, d in zip(args, dims, strict=True))
        found = [apply(*empty)]
    else:
        found = [example(n) for n in range(size)]
    if isinstance(found[0], tuple):
        stacked = tuple(torch.stack(parts)[:size] for parts in zip(*found, strict=True))
        return stacked, (0,) * len(stacked)
    return torch.stack(found)[:size], 0
