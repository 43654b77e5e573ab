"""Products with 4-bit weights (bfloat16 activations) beside cuBLAS on converted weights.

    python benchmarks/cuda_weights.py [--rounds 12] [--only words] [--size 8192] [--json FILE]

The weights are ``int4`` elements, two numbers in a byte, eight in a 32-bit word, or unsigned numbers with zeros; each
has a scale for 128 of K. Each form is checked against float64 and timed with its tiles, all sides of a number of rows
in one run. Tiles with several parts of K add to a result that is cleared first, which is timed too.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Mapping
from typing import Any

from cuda_sides import Side, device_of, fault, shuffled_medians
from sides import Row, run

import tile_core as tile
import tile_core.language as T

_GROUP = 128
_BF16 = "bfloat16"
#: Storage, numbers of a word, and a number from a word ``q`` and its position ``e``.
FORMS: Mapping[str, tuple[str, int, Callable[[Any, Any], Any]]] = {
    "int4": ("int4", 1, lambda q, e: q),
    "bytes": ("uint8", 2, lambda q, e: (T.cast(q, "int32") >> e * 4 & 15 ^ 8) - 8),
    "words": ("int32", 8, lambda q, e: (q >> e * 4 & 15) - 8),
    "zeros": ("uint4", 1, lambda q, e: q),
}
#: Tiles (rows, columns, K), threads, stages and parts of K, by the number of rows.
TILES: Mapping[int, tuple[tuple[int, ...], ...]] = {
    1: ((16, 64, 128, 128, 4, 1), (16, 64, 128, 128, 4, 4), (16, 64, 256, 128, 3, 2)),
    16: ((16, 64, 128, 128, 4, 1), (16, 64, 128, 128, 4, 4), (16, 64, 256, 128, 3, 2)),
    64: ((64, 64, 128, 128, 3, 1), (64, 64, 128, 128, 3, 2), (64, 128, 128, 256, 3, 2)),
    256: ((256, 64, 64, 128, 4, 1), (128, 64, 64, 128, 4, 1), (128, 128, 64, 256, 3, 1)),
}


def weighted(form: str, m: int, n: int, k: int, how: tuple[int, ...]) -> Any:
    """Return the program of a product whose weights are converted between copy and product."""
    (storage, per, number), (bm, bn, bk, threads, stages, parts) = FORMS[form], how
    steps = -(-k // (bk * parts))

    @T.prim_func
    def main(
        A: T.Tensor((m, k), _BF16), W: T.Tensor((n, k // per), storage), S: T.Tensor((n, k // _GROUP), _BF16),
        Z: T.Tensor((n, k // _GROUP), _BF16), C: T.Tensor((m, n), "float32"),
    ) -> None:  # fmt: skip
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), parts, threads=threads) as (bx, by, part):
            a = T.alloc_shared((bm, bk), _BF16)
            q = T.alloc_shared((bn, bk // per), storage)
            w = T.alloc_shared((bn, bk), _BF16)
            c = T.alloc_fragment((bm, bn), "float32")
            T.clear(c)
            for step in T.Pipelined(steps, num_stages=stages):
                first = (part * steps + step) * bk
                T.copy(A[by * bm, first], a)
                T.copy(W[bx * bn, first // per], q)
                for i, j in T.Parallel(bn, bk):
                    x = T.cast(number(q[i, j // per], j % per), _BF16)
                    if form == "zeros":
                        x = x - Z[bx * bn + i, (first + j) // _GROUP]
                    w[i, j] = x * S[bx * bn + i, (first + j) // _GROUP]
                T.gemm(a, w, c, transpose_B=True)
            if parts == 1:
                T.copy(c, C[by * bm, bx * bn])
            else:
                for i, j in T.Parallel(bm, bn):
                    T.atomic_add(C[by * bm + i, bx * bn + j], c[i, j])

    return main


def sides_of(torch: Any, form: str, m: int, size: int) -> dict[str, Side]:
    """Return the checked kernels of a form, and cuBLAS under an empty name."""
    codes = torch.randint(0, 16, (size, size), device="cuda", dtype=torch.int32)
    a = torch.randn(m, size, device="cuda", dtype=torch.bfloat16)
    s, z = (torch.rand(size, size // _GROUP, device="cuda").to(torch.bfloat16) for _ in range(2))
    if form == "words":
        packed = sum(codes[:, e::8] << 4 * e for e in range(8))
    else:
        packed = (codes[:, ::2] | codes[:, 1::2] << 4).to(torch.uint8)
    numbers = codes if form == "zeros" else codes - 8 if form == "words" else (codes ^ 8) - 8
    x = numbers.to(torch.bfloat16) - (z.repeat_interleave(_GROUP, 1) if form == "zeros" else 0)
    w = (x * s.repeat_interleave(_GROUP, 1)).t()
    exact = a.double() @ w.double()
    bound = 2.0**-9 * (a.double().abs() @ w.double().abs())
    found: dict[str, Side] = {"": functools.partial(torch.matmul, a, w)}
    for how in TILES[m]:
        kernel = tile.compile(weighted(form, m, size, size, how), target="cuda")
        c = torch.zeros(m, size, device="cuda")

        def once(kernel: Any = kernel, c: Any = c, parts: int = how[-1]) -> None:
            if parts > 1:
                c.zero_()
            kernel(a, packed, s, z, c)

        once()
        wrong = fault(torch, c, exact, bound)
        if wrong:
            print(f"WRONG: {form} {m} with {how}: {wrong}", flush=True)
        else:
            found["x".join(map(str, how))] = once
    return found


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per form and number of rows: our best tiles beside cuBLAS."""
    import torch

    print(device_of(torch))
    rows: list[Row] = []
    for form in (f for f in FORMS if arguments.only in f):
        for m in TILES:
            sides = sides_of(torch, form, m, arguments.size)
            times = dict(zip(sides, shuffled_medians(torch, list(sides.values()), arguments.rounds), strict=True))
            theirs = times.pop("")
            if times:
                best = min(times, key=lambda key: times[key])
                rows.append({
                    "weights": form, "M": m, "tiles": best, "ms": times[best], "cuBLAS ms": theirs,
                    "ratio": theirs / times[best],
                })  # fmt: skip
    return rows


def own_options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--size", type=int, default=8192, help="columns and K")
    parser.add_argument("--only", default="", help="only forms whose name contains this")


if __name__ == "__main__":
    run("products with 4-bit weights on a GPU", measure, own_options)
