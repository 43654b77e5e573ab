"""Large tensors of torch without their elements, where no kernel is launched.

Results of functions get the shapes and types that torch gives them on its device ``meta``, in memory of zeros that
takes no space until it is written. Small tensors are computed: scripts take shapes, offsets and decisions from them.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

#: Elements of a tensor that is not computed.
_LARGE = 1 << 20
#: ``MAP_NORESERVE`` of Linux, which Python 3.11 does not name.
_NO_RESERVE = 0x4000 if sys.platform == "linux" else 0
#: Functions that make a tensor of a shape.
_MAKERS = frozenset({"full", "ones", "rand", "randint", "randn", "zeros"})


def result_of(func: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Return the result of a function of torch; of large ones its shape alone."""
    import torch

    name = getattr(func, "__name__", "")
    tensors = [t for t in _leaves((*args, *named.values())) if isinstance(t, torch.Tensor)]
    makes = name in _MAKERS and not tensors
    if name in ("__get__", "__set__") or not (makes or any(t.numel() >= _LARGE for t in tensors)):
        return func(*args, **named)
    if "out" in named:
        return named["out"]
    shadows: dict[int, Any] = {id(t): t.detach().to("meta").requires_grad_(t.requires_grad) for t in tensors}
    given = {k: v for k, v in named.items() if k != "generator"} | ({"device": "meta"} if makes else {})
    try:
        found = func(*_mapped(args, shadows), **{k: _mapped(v, shadows) for k, v in given.items()})
    except Exception:  # its shape depends on elements, or elements leave torch
        return func(*args, **named)
    storages = {s.untyped_storage()._cdata for s in shadows.values()}
    leaves = list(_leaves([found]))
    first = shadows.get(id(args[0])) if args else None
    if name == "__setitem__" or (first is not None and found is first and name.endswith("_")):
        same = all(_fact(first, n) == _fact(args[0], n) for n in ("shape", "stride", "requires_grad"))
        if not same or name == "requires_grad_":
            return func(*args, **named)
        return None if name == "__setitem__" else args[0]
    views = not all(isinstance(x, torch.Tensor) and x.is_meta for x in leaves) or any(
        x.untyped_storage()._cdata in storages for x in leaves
    )
    if views or (makes and found.numel() < _LARGE):
        return func(*args, **named)
    made = {id(x): _zeros(x, tensors if x.requires_grad else []) for x in leaves}
    return (made[id(found)] if len(leaves) == 1 and found is leaves[0] else _mapped(found, made)) if leaves else found


def _fact(tensor: Any, name: str) -> Any:
    found = getattr(tensor, name)
    return found() if callable(found) else found


def _zeros(like: Any, operands: Sequence[Any]) -> Any:
    """Return zeros of a tensor's shape and type, whose gradients are zeros, too."""
    import torch

    def made(shape: Sequence[int], strides: Sequence[int], dtype: Any) -> Any:
        count = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if all(shape) else 0
        size = max(1, count * dtype.itemsize)
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
        storage = torch.frombuffer(memory, dtype=torch.uint8).untyped_storage()
        return torch.empty(0, dtype=dtype).set_(storage, 0, shape, strides)  # not a view, which may not be written

    class Uncomputed(torch.autograd.Function):  # type: ignore[misc]
        """Zeros that depend on operands."""

        @staticmethod
        def forward(ctx: Any, *tensors: Any) -> Any:
            ctx.kinds = [(t.shape, t.stride(), t.dtype) for t in tensors]
            return made(like.shape, like.stride(), like.dtype)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            return tuple(made(*kind) if kind[-1].is_floating_point else None for kind in ctx.kinds)

    return Uncomputed.apply(*operands) if operands else made(like.shape, like.stride(), like.dtype)


def _leaves(values: Any) -> Any:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _leaves(value)
        else:
            yield value


def _mapped(value: Any, to: Mapping[int, Any]) -> Any:
    """Return a nest of lists and tuples with other values for some."""
    if isinstance(value, (list, tuple)):
        items = [_mapped(v, to) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return to.get(id(value), value)
