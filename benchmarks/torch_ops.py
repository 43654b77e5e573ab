"""Host costs of an operator of torch that is a tile kernel, beside two operations of torch.

    python benchmarks/torch_ops.py [--seconds 2] [--json FILE]

Both sides compute ``x * x * w`` of 8 x 16 floats on the CPU. Demand: the operator takes at most 2.5 times as long as
torch's two operations, and with inputs that require gradients at most 4 times. It needs torch.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch
from sides import Row, at_most, interleaved, run

import tile_core.language as T
import tile_torch

_CALLS = 200


def operator() -> tile_torch.Operator:
    """Return the operator with its gradient."""
    m, N, block = T.dynamic("m"), 16, 32

    @T.prim_func
    def square(X: T.Tensor((m, N), "float32"), w: T.Tensor((N,), "float32"), Y: T.Tensor((m, N), "float32")):
        with T.Kernel(T.ceildiv(m, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                Y[bx * block + i, j] = X[bx * block + i, j] * X[bx * block + i, j] * w[j]

    @T.prim_func
    def square_gradient(
        G: T.Tensor((m, N), "float32"),
        X: T.Tensor((m, N), "float32"),
        w: T.Tensor((N,), "float32"),
        DX: T.Tensor((m, N), "float32"),
        DW: T.Tensor((m, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(m, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                DX[bx * block + i, j] = G[bx * block + i, j] * X[bx * block + i, j] * w[j] * 2.0
                DW[bx * block + i, j] = G[bx * block + i, j] * X[bx * block + i, j] * X[bx * block + i, j]

    forward, gradient = (tile_torch.op(f"tile_benchmarks::{p.name}", p) for p in (square, square_gradient))

    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        dx, dw = gradient(g.contiguous(), *ctx.saved_tensors)
        return dx, dw.sum(0)

    forward.register_backward(backward)
    return forward


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return a row for each way of a call."""
    f = operator()
    plain = torch.randn(8, 16), torch.randn(16)
    graded = tuple(t.clone().requires_grad_() for t in plain)

    def theirs(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return x * x * w

    torch.testing.assert_close(f(*plain), theirs(*plain))

    def both(change: Callable[[Any, Any], Any], inputs: tuple[torch.Tensor, ...]) -> tuple[float, float]:
        sides = [lambda call=call: _repeated(lambda: change(call, inputs)) for call in (f, theirs)]
        ours, others = interleaved(*sides, seconds=arguments.seconds)
        return ours / _CALLS * 1e6, others / _CALLS * 1e6

    def without(call: Any, inputs: Any) -> Any:
        with torch.no_grad():
            return call(*inputs)

    return [
        _row("no gradients", both(lambda call, inputs: call(*inputs), plain), 2.5),
        _row("inputs require gradients", both(lambda call, inputs: call(*inputs), graded), 4.0),
        _row("the same under no_grad", both(without, graded), None),
        _row("forward and backward", both(lambda call, inputs: call(*inputs).sum().backward(), graded), None),
    ]


def _repeated(call: Callable[[], object]) -> None:
    for _ in range(_CALLS):
        call()


def _row(name: str, found: tuple[float, float], most: float | None) -> Row:
    ours, theirs = found
    demand = None if most is None else at_most(ours / theirs, most)
    return {"call": name, "operator us": ours, "torch us": theirs, "ratio": ours / theirs, "demand": demand}


def options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("--seconds", type=float, default=2.0, help="for each row")


if __name__ == "__main__":
    run("operators of torch", measure, options)
