"""Memory-bound kernels on an NVIDIA GPU against torch, both sides in one run.

    python benchmarks/cuda_ops.py [NAME ...] [--size 4096] [--export FOLDER | --artefacts FOLDER] [--json FILE]

float32, square matrices. Rates count each input and each output once.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cuda_sides import Candidate, Side, compare, device_of, export, fault, kernels, options, poisoned
from sides import Row, example, run

import tile_core.language as T


def row_sums(size: int, block: int) -> Any:
    """Return the program of a block of rows per block of threads."""

    @T.prim_func
    def reduce(X: T.Tensor((size, size), "float32"), Y: T.Tensor((size,), "float32")) -> None:
        with T.Kernel(T.ceildiv(size, block), threads=128) as bx:
            x = T.alloc_fragment((block, size), "float32")
            total = T.alloc_fragment((block,), "float32")
            T.copy(X[bx * block, 0], x)
            T.reduce_sum(x, total, dim=1)
            T.copy(total, Y[bx * block])

    return reduce


def copied(size: int, block: int) -> Any:
    """Return the program that copies through registers."""

    @T.prim_func
    def copy(X: T.Tensor((size, size), "float32"), Y: T.Tensor((size, size), "float32")) -> None:
        with T.Kernel(T.ceildiv(size, 1024), T.ceildiv(size, block), threads=256) as (bx, by):
            x = T.alloc_fragment((block, 1024), "float32")
            T.copy(X[by * block, bx * 1024], x)
            T.copy(x, Y[by * block, bx * 1024])

    return copy


def softmax(size: int, block: int) -> Any:
    """Return the program of examples/softmax.py."""
    return example("softmax").softmax(size, size, block_M=block)


def rms_norm(size: int, block: int) -> Any:
    """Return the program of examples/rms_norm.py."""
    return example("rms_norm").rms_norm(size, size, block_M=block)


@dataclass(frozen=True)
class Op:
    """An op to measure.

    Attributes
    ----------
    program
        Of a size and the rows of a block.
    blocks
        Rows of a block to try.
    torch
        The same in torch: of torch, the input and the weights, into the output.
    exact
        What it should be, in float64; of torch, the input and the weights.
    matrices
        Matrices that it reads and writes.
    bound
        How far an element may be off, as a part of the largest value.
    """

    program: Callable[[int, int], Any]
    blocks: tuple[int, ...]
    torch: Callable[[Any, Any, Any, Any], Any]
    exact: Callable[[Any, Any, Any], Any]
    matrices: int = 2
    bound: float = 1e-5
    weights: bool = False
    vector: bool = False


OPS = {
    "copy": Op(copied, (1, 2, 4, 8), lambda t, x, w, y: y.copy_(x), lambda t, x, w: x, bound=0.0),
    "reduce": Op(
        row_sums, (1, 2, 4), lambda t, x, w, y: t.sum(x, 1, out=y), lambda t, x, w: x.sum(1), matrices=1, vector=True,
    ),
    "softmax": Op(
        softmax, (1, 2, 4), lambda t, x, w, y: t.softmax(x, 1), lambda t, x, w: t.softmax(x, 1),
    ),
    "rms_norm": Op(
        rms_norm, (1, 2, 4), lambda t, x, w, y: t.nn.functional.rms_norm(x, (x.shape[1],), w, 1e-6),
        lambda t, x, w: x / (x.square().mean(1, keepdim=True) + 1e-6).sqrt() * w, weights=True,
    ),
}  # fmt: skip


def candidates(name: str, size: int) -> list[Candidate]:
    """Return the kernels of an op."""
    op = OPS[name]
    return [Candidate(f"{name}_{size}_rows{b}", functools.partial(op.program, size, b)) for b in op.blocks]


def one(torch: Any, arguments: argparse.Namespace, name: str) -> list[Row]:
    """Return the rows of one op."""
    op, size = OPS[name], arguments.size
    x, w = torch.randn(size, size, device="cuda"), torch.randn(size, device="cuda")
    y = poisoned(torch, (size,) if op.vector else (size, size), torch.float32)
    expected = op.exact(torch, x.double(), w.double())
    bound = torch.full_like(expected, op.bound * float(expected.abs().max()))
    ours: list[tuple[str, Side]] = []
    for label, kernel in kernels(arguments, candidates(name, size)):
        inputs = (x, w, y) if op.weights else (x, y)
        y.fill_(float("nan"))
        kernel(*inputs)
        wrong = fault(torch, y, expected, bound)
        if wrong:
            print(f"WRONG: {label}: {wrong}")
        else:
            ours.append((label, functools.partial(kernel, *inputs)))
    others: list[tuple[str, Side]] = [(f"torch {name}", functools.partial(op.torch, torch, x, w, y))]
    return compare(torch, ours, others, arguments.seconds, op.matrices * 4.0 * size * size, "TB/s")


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per kernel of ours and of torch."""
    names = arguments.ops or list(OPS)
    if arguments.export is not None:
        return [row for name in names for row in export(arguments, candidates(name, arguments.size))]
    import torch

    print(device_of(torch))
    return [row for name in names for row in one(torch, arguments, name)]


def own_options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("ops", nargs="*", choices=[*OPS, []], help="all by default")
    options(parser)


if __name__ == "__main__":
    run("float32 kernels on a GPU", measure, own_options)
