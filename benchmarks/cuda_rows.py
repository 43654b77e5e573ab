"""Programs of rows with guards and odd widths (bfloat16) beside torch.compile.

    python benchmarks/cuda_rows.py [--rounds 12] [--only softmax] [--plan] [--json FILE]

SwiGLU and rotary embeddings have the programmer's own ``if c < N:``, with widths that leave rows unaligned; softmax,
masked softmax and RMSNorm keep a row in one block, up to rows that exceed its registers. Each program is checked
against float64 and timed with each of its block sizes beside torch.compile, all in one run, in an order that is drawn
anew for each round. ``--plan`` only compiles the kernels, without a device, and prints their registers.
"""

from __future__ import annotations

import argparse
import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cuda_sides import Side, device_of, fault, shuffled_medians
from sides import Row, run

import tile_core as tile
import tile_core.language as T

_BF16, _F32 = "bfloat16", "float32"


def swiglu(M: int, N: int, block: int) -> Any:
    """Return the program of silu(x) * y, x and y side by side in one tensor."""

    @T.prim_func
    def main(X: T.Tensor((M, 2 * N), _BF16), Y: T.Tensor((M, N), _BF16)) -> None:
        with T.Kernel(T.ceildiv(N, block), M, threads=256) as (bx, r):
            for j in T.Parallel(block):
                c = bx * block + j
                if c < N:
                    gate = T.cast(X[r, c], _F32)
                    Y[r, c] = T.cast(gate / (1 + T.exp(-gate)) * T.cast(X[r, N + c], _F32), _BF16)

    return main


def rope(M: int, N: int, block: int) -> Any:
    """Return the program of rotary embeddings: halves of a row are the two coordinates."""

    @T.prim_func
    def main(
        X: T.Tensor((M, 2 * N), _BF16), Cos: T.Tensor((M, N), _F32), Sin: T.Tensor((M, N), _F32),
        Y: T.Tensor((M, 2 * N), _BF16),
    ) -> None:  # fmt: skip
        with T.Kernel(T.ceildiv(N, block), M, threads=256) as (bx, r):
            for j in T.Parallel(block):
                c = bx * block + j
                if c < N:
                    a, b = T.cast(X[r, c], _F32), T.cast(X[r, N + c], _F32)
                    Y[r, c] = T.cast(a * Cos[r, c] - b * Sin[r, c], _BF16)
                    Y[r, N + c] = T.cast(b * Cos[r, c] + a * Sin[r, c], _BF16)

    return main


def softmax(M: int, N: int, threads: int, masked: bool = False) -> Any:
    """Return the program of softmax over rows; ``masked`` rows end at ``L[r]``."""

    @T.prim_func
    def main(X: T.Tensor((M, N), _BF16), L: T.Tensor((M,), "int32"), Y: T.Tensor((M, N), _BF16)) -> None:
        with T.Kernel(M, threads=threads) as r:
            x = T.alloc_fragment((1, N), _F32)
            most, total = T.alloc_fragment((1,), _F32), T.alloc_fragment((1,), _F32)
            T.copy(X[r : r + 1, :], x)
            if masked:
                for i, j in T.Parallel(1, N):
                    x[i, j] = T.if_then_else(j < L[r], x[i, j], -T.infinity(_F32))
            T.reduce_max(x, most, dim=1)
            for i, j in T.Parallel(1, N):
                x[i, j] = T.exp(x[i, j] - most[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(1, N):
                Y[r + i, j] = T.cast(x[i, j] / total[i], _BF16)

    return main


def rms_norm(M: int, N: int, threads: int) -> Any:
    """Return the program of RMSNorm over rows."""

    @T.prim_func
    def main(X: T.Tensor((M, N), _BF16), W: T.Tensor((N,), _BF16), Y: T.Tensor((M, N), _BF16)) -> None:
        with T.Kernel(M, threads=threads) as r:
            x, square = T.alloc_fragment((1, N), _F32), T.alloc_fragment((1, N), _F32)
            total = T.alloc_fragment((1,), _F32)
            T.copy(X[r : r + 1, :], x)
            for i, j in T.Parallel(1, N):
                square[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(square, total, dim=1)
            for i, j in T.Parallel(1, N):
                Y[r + i, j] = T.cast(x[i, j] * T.rsqrt(total[i] / N + 1e-6) * T.cast(W[j], _F32), _BF16)

    return main


@dataclass(frozen=True)
class Program:
    """A program: its factory, widths, block sizes or threads, and formula.

    Attributes
    ----------
    inputs
        Makes the inputs behind X.
    formula
        The result in the type of its arguments, by PyTorch.
    doubled
        Whether X has twice ``width`` columns.
    """

    make: Callable[[int, int, int], Any]
    widths: tuple[int, ...]
    sizes: tuple[int, ...]
    inputs: Callable[[Any, int, int], list[Any]]
    formula: Callable[..., Any]
    doubled: bool = False


def _lengths(torch: Any, m: int, n: int) -> list[Any]:
    return [torch.randint(1, n + 1, (m,), device="cuda", dtype=torch.int32)]


def _angles(torch: Any, m: int, n: int) -> list[Any]:
    angle = torch.rand(m, n, device="cuda") * 6
    return [angle.cos(), angle.sin()]


def _swiglu(torch: Any, x: Any) -> Any:
    gate, up = x.chunk(2, -1)
    return torch.nn.functional.silu(gate) * up


def _rope(torch: Any, x: Any, cos: Any, sin: Any) -> Any:
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def _masked(torch: Any, x: Any, lengths: Any) -> Any:
    columns = torch.arange(x.shape[1], device=x.device)
    return x.masked_fill(columns >= lengths[:, None], float("-inf")).softmax(-1)


def _rms(torch: Any, x: Any, w: Any) -> Any:
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w


PROGRAMS: Mapping[str, Program] = {
    "SwiGLU": Program(swiglu, (14336, 14338, 4093, 1000), (1024, 2048), lambda *_: [], _swiglu, doubled=True),
    "RoPE": Program(rope, (2048, 2047, 64), (256, 1024), _angles, _rope, doubled=True),
    "softmax": Program(
        softmax, (4096, 4093, 16384, 131072), (256, 1024), _lengths, lambda torch, x, _: x.softmax(-1)
    ),
    "masked softmax": Program(
        functools.partial(softmax, masked=True), (4096, 4093, 16384), (256, 1024), _lengths, _masked
    ),
    "RMSNorm": Program(
        rms_norm, (4096, 4093, 16384, 131072), (256, 1024),
        lambda torch, m, n: [torch.randn(n, device="cuda", dtype=torch.bfloat16)], _rms,
    ),
}  # fmt: skip


def rows_of(width: int) -> int:
    """Return the rows of a tensor: about 2**26 elements, at most 8,192 rows."""
    return max(64, min(8192, 2**26 // width))


def planned(name: str, width: int, size: int) -> Row:
    """Return the registers of a kernel without a device."""
    kernel = tile.compile(PROGRAMS[name].make(rows_of(width), width, size), target="cuda:sm_90a")
    facts = re.findall(r"^ *(registers|spill bytes) +([\d,]+)$", kernel.explain(), re.MULTILINE)
    return {"program": name, "width": width, "size": size, **dict(facts)}


def sides_of(torch: Any, name: str, width: int) -> dict[tuple[str, int, int], Side]:
    """Return the checked kernels of a program, and torch.compile under size 0."""
    program, m = PROGRAMS[name], rows_of(width)
    x = torch.randn(m, width * (1 + program.doubled), device="cuda", dtype=torch.bfloat16)
    more = program.inputs(torch, m, width)
    formula = functools.partial(program.formula, torch)
    exact = formula(x.double(), *(a.double() if a.is_floating_point() else a for a in more))
    found: dict[tuple[str, int, int], Side] = {}
    for size in program.sizes:
        kernel, y = tile.compile(program.make(m, width, size), target="cuda"), torch.full_like(exact, float("nan"))
        y = y.to(torch.bfloat16)
        given = (x, y) if name == "SwiGLU" else (x, *more, y)
        kernel(*given)
        wrong = fault(torch, y, exact, 2.0**-7 * exact.abs() + 1e-6)
        if wrong:
            print(f"WRONG: {name} {width} with {size}: {wrong}", flush=True)
            continue
        found[name, width, size] = functools.partial(kernel, *given)
    torch._dynamo.reset()  # after a few shapes of one function it would not compile any more
    rounded = torch.compile(lambda *args: formula(args[0].float(), *args[1:]).to(torch.bfloat16), dynamic=False)
    found[name, width, 0] = functools.partial(rounded, x, *more)
    return found


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per program and width: our best block size beside torch.compile."""
    wanted = [(name, width) for name, p in PROGRAMS.items() for width in p.widths if arguments.only in name]
    if arguments.plan:
        return [planned(name, width, size) for name, width in wanted for size in PROGRAMS[name].sizes]
    import torch

    print(device_of(torch))
    rows: list[Row] = []
    for name, width in wanted:
        sides = sides_of(torch, name, width)
        times = dict(zip(sides, shuffled_medians(torch, list(sides.values()), arguments.rounds), strict=True))
        theirs = times.pop((name, width, 0))
        if times:
            best = min(times, key=lambda key: times[key])
            rows.append({
                "program": name, "rows": rows_of(width), "width": width, "size": best[2], "ms": times[best],
                "torch.compile ms": theirs, "ratio": theirs / times[best],
            })  # fmt: skip
    return rows


def own_options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--only", default="", help="only programs whose name contains this")
    parser.add_argument("--plan", action="store_true", help="compile only")


if __name__ == "__main__":
    run("programs of rows on a GPU", measure, own_options)
