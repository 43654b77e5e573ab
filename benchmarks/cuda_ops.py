"""Memory-bound kernels on an NVIDIA GPU beside an equal-sized copy and torch.

All sides are in one run.

    python benchmarks/cuda_ops.py [NAME ...] [--size 8192] [--dtype float16] [--export FOLDER | --artefacts FOLDER]

Square matrices. Rates count each input and each output once; ratios are to torch's copy of the same number of bytes.
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
from tile_core import sparse
from tile_core.dtypes import DTYPES
from tile_core.sparse.format import GROUPS, zero_mask
from tile_core.sparse.kernels import device_program

Sizes = tuple[int, ...]


def copied(size: int, dtype: str, block: int) -> Any:
    """Return the program that copies through registers."""

    @T.prim_func
    def copy(X: T.Tensor((size, size), dtype), Y: T.Tensor((size, size), dtype)) -> None:
        with T.Kernel(T.ceildiv(size, 1024), T.ceildiv(size, block), threads=256) as (bx, by):
            x = T.alloc_fragment((block, 1024), dtype)
            T.copy(X[by * block, bx * 1024], x)
            T.copy(x, Y[by * block, bx * 1024])

    return copy


def transposed(size: int, dtype: str, rows: int, columns: int, threads: int) -> Any:
    """Return the program that exchanges rows and columns of a tile in shared memory."""

    @T.prim_func
    def transpose(X: T.Tensor((size, size), dtype), Y: T.Tensor((size, size), dtype)) -> None:
        with T.Kernel(T.ceildiv(size, columns), T.ceildiv(size, rows), threads=threads) as (bx, by):
            x = T.alloc_shared((rows, columns), dtype)
            T.copy(X[by * rows, bx * columns], x)
            for i, j in T.Parallel(columns, rows):
                Y[bx * columns + i, by * rows + j] = x[j, i]

    return transpose


def gathered(size: int, dtype: str, block: int, threads: int) -> Any:
    """Return the program that copies rows by their numbers."""

    @T.prim_func
    def gather(X: T.Tensor((size, size), dtype), rows: T.Tensor((size,), "int32"), Y: T.Tensor((size, size), dtype)):
        with T.Kernel(T.ceildiv(size, block), threads=threads) as bx:
            for i, j in T.Parallel(block, size):
                Y[bx * block + i, j] = X[rows[bx * block + i], j]

    return gather


def gathered_tiles(size: int, dtype: str, rows: int, columns: int) -> Any:
    """Return the program that gathers row parts into a shared tile (mixture of experts)."""

    @T.prim_func
    def gather(X: T.Tensor((size, size), dtype), numbers: T.Tensor((size,), "int32"), Y: T.Tensor((size, size), dtype)):
        with T.Kernel(T.ceildiv(size, columns), T.ceildiv(size, rows), threads=256) as (bx, by):
            mine = T.alloc_shared((rows,), "int32")
            x = T.alloc_shared((rows, columns), dtype)
            T.copy(numbers[by * rows], mine)
            T.gather(X[0, bx * columns], mine, x)
            T.copy(x, Y[by * rows, bx * columns])

    return gather


def row_totals(size: int, dtype: str, block: int) -> Any:
    """Return the program of row reductions."""

    @T.prim_func
    def reduce(X: T.Tensor((size, size), dtype), Y: T.Tensor((size,), "float32")) -> None:
        with T.Kernel(T.ceildiv(size, block), threads=256) as bx:
            x = T.alloc_fragment((block, size), "float32")
            total = T.alloc_fragment((block,), "float32")
            T.copy(X[bx * block, 0], x)
            T.reduce_sum(x, total, dim=1)
            T.copy(total, Y[bx * block])

    return reduce


def layer_norm(size: int, dtype: str, block: int) -> Any:
    """Return the program of layer normalisation, with a weight per column."""

    @T.prim_func
    def norm(X: T.Tensor((size, size), dtype), W: T.Tensor((size,), dtype), Y: T.Tensor((size, size), dtype)) -> None:
        with T.Kernel(T.ceildiv(size, block), threads=256) as bx:
            x = T.alloc_fragment((block, size), "float32")
            total = T.alloc_fragment((block,), "float32")
            squares = T.alloc_reducer((block,), "float32", "sum")
            T.copy(X[bx * block, 0], x)
            T.reduce_sum(x, total, dim=1)
            x -= (total / size)[:, None]
            for i, j in T.Parallel(block, size):
                squares[i] += x[i, j] * x[i, j]
            T.finalize_reducer(squares)
            x[...] = x * T.rsqrt(squares / size + 1e-6)[:, None] * T.cast(W, "float32")
            T.copy(x, Y[bx * block, 0])

    return norm


def softmax(size: int, dtype: str, block: int, threads: int) -> Any:
    """Return the program of examples/softmax.py."""
    return example("softmax").softmax(size, size, dtype, block_M=block, threads=threads)


def rms_norm(size: int, dtype: str, block: int) -> Any:
    """Return the program of examples/rms_norm.py."""
    return example("rms_norm").rms_norm(size, size, dtype, block_M=block)


def compressed(size: int, dtype: str, checked: int) -> Any:
    """Return the program behind ``tile_core.sparse.compress`` on a device."""
    kind = DTYPES[dtype]
    return device_program((size, size), dtype, "int16", GROUPS[kind], int(zero_mask(kind)), bool(checked))


@dataclass(frozen=True)
class Op:
    """An op to measure.

    Attributes
    ----------
    program
        Of a size, an element type and a configuration.
    configurations
        What to try: rows of a block, or its tile, and threads.
    inputs
        Of torch, a size and an element type: the arguments in front of the output.
    torch
        The same in torch, of torch and the inputs; ``None`` if it has no such function.
    exact
        What it should be, in float64, of torch and the inputs.
    moved
        Bytes that it reads and writes, in bytes of a matrix.
    bound
        How far an element may be off, as a part of the largest value, beside the rounding of the result.
    vector
        Whether the result is a float32 vector.
    """

    program: Callable[..., Any]
    configurations: tuple[Sizes, ...]
    inputs: Callable[[Any, int, Any], tuple[Any, ...]]
    torch: Callable[..., Any] | None
    exact: Callable[..., Any]
    moved: float = 2.0
    bound: float = 1e-5
    vector: bool = False


def _matrix(torch: Any, size: int, dtype: Any) -> tuple[Any, ...]:
    return (torch.randn(size, size, device="cuda").to(dtype),)


def _weighted(torch: Any, size: int, dtype: Any) -> tuple[Any, ...]:
    return (*_matrix(torch, size, dtype), torch.randn(size, device="cuda").to(dtype))


def _numbered(torch: Any, size: int, dtype: Any) -> tuple[Any, ...]:
    return (*_matrix(torch, size, dtype), torch.randperm(size, device="cuda").int())


def _sparse(torch: Any, size: int, dtype: Any) -> tuple[Any, ...]:
    (x,) = _matrix(torch, size, dtype)
    group = 4 if x.element_size() < 4 else 2
    kept = torch.rand(x.shape[0], x.shape[1] // group, group, device="cuda").argsort(2) < group // 2
    return (torch.where(kept.reshape(x.shape), x, torch.zeros_like(x)),)


def _layer_norm(t: Any, x: Any, w: Any) -> Any:
    return t.nn.functional.layer_norm(x, (x.shape[1],), w, None, 1e-6)


def _rms_norm(t: Any, x: Any, w: Any) -> Any:
    return t.nn.functional.rms_norm(x, (x.shape[1],), w, 1e-6)


_ROWS = ((1,), (2,), (4,))
_SOFTMAX = ((1, 1024), (2, 1024), (1, 256), (1, 512), (2, 512), (1, 128))
OPS = {
    "copy": Op(copied, ((2,), (4,), (8,)), _matrix, lambda t, x: x.clone(), lambda t, x: x, bound=0.0),
    "transpose": Op(
        transposed, ((64, 64, 256), (128, 64, 256), (64, 128, 256), (128, 128, 256), (32, 32, 64)), _matrix,
        lambda t, x: x.t().contiguous(), lambda t, x: x.t(), bound=0.0,
    ),
    "gather": Op(
        gathered, ((1, 256), (2, 256), (4, 256), (1, 512)), _numbered, lambda t, x, r: t.index_select(x, 0, r),
        lambda t, x, r: x[r.long()], bound=0.0,
    ),
    "gather_tiles": Op(
        gathered_tiles, ((16, 512), (32, 256), (4, 2048)), _numbered, lambda t, x, r: t.index_select(x, 0, r),
        lambda t, x, r: x[r.long()], bound=0.0,
    ),
    "reduce": Op(
        row_totals, _ROWS, _matrix, lambda t, x: t.sum(x, 1, dtype=t.float32), lambda t, x: x.sum(1), moved=1.0,
        vector=True,
    ),
    "softmax": Op(softmax, _SOFTMAX, _matrix, lambda t, x: t.softmax(x, 1), lambda t, x: t.softmax(x, 1)),
    "rms_norm": Op(rms_norm, _ROWS[:2], _weighted, _rms_norm, _rms_norm),
    "layer_norm": Op(layer_norm, _ROWS[:2], _weighted, _layer_norm, _layer_norm),
    "compress": Op(compressed, ((0,), (1,)), _sparse, None, lambda t, x: x, moved=1.5625, bound=0.0),
}  # fmt: skip


def candidates(name: str, size: int, dtype: str) -> list[Candidate]:
    """Return the kernels of an op."""
    op = OPS[name]
    return [
        Candidate(f"{name}_{size}_{dtype}_{'x'.join(map(str, c))}", functools.partial(op.program, size, dtype, *c))
        for c in op.configurations
    ]


def one(torch: Any, arguments: argparse.Namespace, name: str) -> list[Row]:
    """Return the rows of one op."""
    op, size, dtype = OPS[name], arguments.size, getattr(torch, arguments.dtype)
    inputs = op.inputs(torch, size, dtype)
    exact = op.exact(torch, *(x.double() if x.is_floating_point() else x for x in inputs))
    rounding = 0.0 if op.vector or not op.bound else torch.finfo(dtype).eps * exact.abs()
    bound = torch.full_like(exact, op.bound * float(exact.abs().max())) + rounding
    ours: list[tuple[str, Side]] = []
    for label, kernel in kernels(arguments, candidates(name, size, arguments.dtype)):
        if name == "compress":
            outputs, found = _compression(torch, size, dtype, label)
        else:
            kind = torch.float32 if op.vector else dtype
            y = poisoned(torch, (size,) if op.vector else (size, size), kind)
            outputs, found = (y,), functools.partial(lambda y: y, y)
        kernel(*inputs, *outputs)
        wrong = fault(torch, found(), exact, bound)
        if wrong:
            print(f"WRONG: {label}: {wrong}")
        else:
            ours.append((label, functools.partial(kernel, *inputs, *outputs)))
    moved = op.moved * inputs[0].element_size() * size * size
    source = torch.empty(int(moved) // 2, dtype=torch.uint8, device="cuda").random_()
    others: list[tuple[str, Side]] = [
        ("copy of the same bytes", functools.partial(torch.empty_like(source).copy_, source))
    ]
    if op.torch is not None:
        others.append((f"torch {name}", functools.partial(op.torch, torch, *inputs)))
    return compare(torch, ours, others, arguments.seconds, moved, "TB/s")


def _compression(torch: Any, size: int, dtype: Any, label: str) -> tuple[tuple[Any, ...], Callable[[], Any]]:
    """Return the outputs of a compressor, and what undoes it on the host."""
    group = 2 if dtype == torch.float32 else 4
    values = poisoned(torch, (size, size // 2), dtype)
    codes = poisoned(torch, (size, size // (4 * group)), torch.int16)
    bad = poisoned(torch, (1,), torch.int32)

    def undone() -> Any:
        return sparse.decompress(values.cpu(), codes.cpu()).to("cuda")

    return ((values, codes, bad) if label.endswith("_1") else (values, codes)), undone


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per kernel of ours and of torch."""
    names = arguments.ops or list(OPS)
    if arguments.export is not None:
        return [r for name in names for r in export(arguments, candidates(name, arguments.size, arguments.dtype))]
    import torch

    print(device_of(torch))
    return [row for name in names for row in one(torch, arguments, name)]


def own_options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("ops", nargs="*", choices=[*OPS, []], help="all by default")
    parser.add_argument("--dtype", choices=("float16", "bfloat16", "float32"), default="float16")
    options(parser)
    parser.set_defaults(size=8192)


if __name__ == "__main__":
    run("memory-bound kernels on a GPU", measure, own_options)
