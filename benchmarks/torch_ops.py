"""Host costs of an operator of torch that is a tile kernel, beside two operations of torch.

    python benchmarks/torch_ops.py [--seconds 2] [--json FILE]

Both sides compute ``x * x * w`` of 8 x 16 floats on the CPU. Demand: the operator takes at most 2.5 times as long as
torch's two operations, and with inputs that require gradients at most 4 times. It needs torch.

Where there is a CUDA device, and Triton, the operator is also measured beside a Triton kernel that allocates its
result: host time of a call, and time of an operation in a CUDA graph of 100. Demand: at most Triton's.
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
#: Operations in a CUDA graph.
_CAPTURED = 100


def operator() -> tile_torch.TorchOperator:
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

    rows = [
        _row("no gradients", both(lambda call, inputs: call(*inputs), plain), 2.5),
        _row("inputs require gradients", both(lambda call, inputs: call(*inputs), graded), 4.0),
        _row("the same under no_grad", both(without, graded), None),
        _row("forward and backward", both(lambda call, inputs: call(*inputs).sum().backward(), graded), None),
    ]
    return rows + (on_device(f, arguments.seconds) if torch.cuda.is_available() else [])


def on_device(f: tile_torch.TorchOperator, seconds: float) -> list[Row]:
    """Return rows of the operator beside a Triton kernel of the same result, and that as an operator."""
    import triton_sides

    x, w = torch.randn(8, 16, device="cuda"), torch.randn(16, device="cuda")
    graded = tuple(t.clone().requires_grad_() for t in (x, w))
    wrapped = triton_sides.square_operator()
    for call in (f, f.default, triton_sides.square, wrapped):
        torch.testing.assert_close(call(x, w), x * x * w)

    def row(name: str, one: Callable[[], object], other: Callable[[], object], count: int, most: float | None) -> Row:
        ours, theirs = (t / count * 1e6 for t in interleaved(_waiting(one), _waiting(other), seconds=seconds))
        return _row(name, (ours, theirs), most, "other us")

    def calls(call: Callable[..., object], inputs: Any = (x, w)) -> Callable[[], object]:
        return lambda: _repeated(lambda: call(*inputs))

    def theirs(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return x * x * w

    captured = [_captured(call, x, w).replay for call in (f, triton_sides.square, theirs)]
    return [
        row("CUDA: a call; other: Triton's launch", calls(f), calls(triton_sides.square), _CALLS, 1.0),
        row("CUDA: by the dispatcher; other: triton_op", calls(f.default), calls(wrapped), _CALLS, 1.0),
        row("CUDA: a call; other: torch", calls(f), calls(theirs), _CALLS, None),
        row("CUDA: inputs require gradients; other: torch", calls(f, graded), calls(theirs, graded), _CALLS, None),
        row("CUDA: in a graph; other: Triton's kernel", captured[0], captured[1], _CAPTURED, 1.0),
        row("CUDA: in a graph; other: torch", captured[0], captured[2], _CAPTURED, None),
    ]


def _captured(call: Callable[..., object], x: torch.Tensor, w: torch.Tensor) -> torch.cuda.CUDAGraph:
    """Return a CUDA graph of calls, each of which allocates its result."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(_CAPTURED):
            call(x, w)
    return graph


def _waiting(call: Callable[[], object]) -> Callable[[], object]:
    def run() -> None:
        call()
        torch.cuda.synchronize()

    return run


def _repeated(call: Callable[[], object]) -> None:
    for _ in range(_CALLS):
        call()


def _row(name: str, found: tuple[float, float], most: float | None, other: str = "torch us") -> Row:
    ours, theirs = found
    demand = None if most is None else at_most(ours / theirs, most)
    return {"call": name, "operator us": ours, other: theirs, "ratio": ours / theirs, "demand": demand}


def options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("--seconds", type=float, default=2.0, help="for each row")


if __name__ == "__main__":
    run("operators of torch", measure, options)
