"""2:4 sparse products on an NVIDIA GPU against dense and torch's, in one run.

    python benchmarks/cuda_sparse.py [--size 4096] [--only TEXT] [--export FOLDER | --artefacts FOLDER] [--json FILE]

float16 to float32, and int8 to int32 with B stored as (N, K). Metadata is in natural order, (M, K / 16), or transposed,
(K / 16, M), where names end in ``_et``: then copies of it are as wide as those of the operands. Rates count the
operations of the dense product. What this torch cannot do is reported and skipped.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cuda_gemm import Config, product
from cuda_sides import Candidate, compare, device_of, export, fault, kernels, options, poisoned
from sides import Row, run

import tile_core.language as T
from tile_core.dtypes import DTYPES
from tile_core.layout import make_swizzled_layout

Named = list[tuple[str, Callable[[], object]]]

#: Elements of K that one int16 of metadata describes, for elements of 8 and of 16 bits.
_WORD = 16


@dataclass(frozen=True)
class SparseConfig(Config):
    """How a sparse product is tiled.

    Attributes
    ----------
    turned
        Whether metadata is stored as (K / 16, M).
    """

    turned: bool = False

    def __str__(self) -> str:
        return super().__str__() + "_et" * self.turned


_BYTES: dict[str, Any] = {"dtype": "int8", "accum": "int32", "out": "int32", "transposed": True}
_TURNED: dict[str, Any] = {"turned": True}
SPARSE = tuple(SparseConfig(*tile, **more) for *tile, more in (
    (128, 128, 64, 128, 3, 8, {}), (128, 128, 128, 128, 2, 0, {}), (128, 128, 128, 128, 2, 8, {}),
    (256, 128, 128, 256, 2, 4, {}), (256, 128, 128, 256, 3, 4, {}),
    (128, 128, 64, 128, 3, 8, _TURNED), (128, 128, 64, 128, 4, 16, _TURNED), (256, 128, 64, 256, 3, 8, _TURNED),
    (128, 128, 128, 128, 2, 0, _TURNED), (128, 128, 128, 128, 2, 8, _TURNED), (128, 128, 128, 128, 2, 16, _TURNED),
    (256, 128, 128, 256, 2, 4, _TURNED), (256, 128, 128, 256, 3, 8, _TURNED), (128, 256, 128, 256, 2, 8, _TURNED),
    (128, 128, 128, 128, 3, 8, _BYTES), (128, 128, 128, 128, 3, 8, {**_BYTES, **_TURNED}),
    (128, 128, 256, 128, 2, 8, _BYTES), (128, 128, 256, 128, 2, 8, {**_BYTES, **_TURNED}),
    (256, 128, 128, 256, 4, 8, {**_BYTES, **_TURNED}), (128, 256, 128, 256, 3, 8, _BYTES),
))  # fmt: skip
DENSE = (
    Config(128, 128, 32, 128), Config(128, 128, 64, 128), Config(128, 128, 64, 128, 3, 0), Config(128, 256, 64, 256),
    Config(128, 256, 64, 256, 3, 0), Config(256, 128, 64, 256, 3, 0), Config(256, 128, 64, 256, 3, 8),
    Config(128, 128, 64, 128, **_BYTES), Config(128, 128, 128, 128, **_BYTES), Config(128, 256, 64, 256, **_BYTES),
)  # fmt: skip


def sparse_product(size: int, c: SparseConfig) -> Any:
    """Return the program of a configuration: A has two of every four values along K."""
    described = (size // _WORD, size) if c.turned else (size, size // _WORD)

    @T.prim_func
    def gemm_sp(
        A: T.Tensor((size, size // 2), c.dtype), E: T.Tensor(described, "int16"),
        B: T.Tensor((size, size), c.dtype), C: T.Tensor((size, size), c.out),
    ) -> None:  # fmt: skip
        with T.Kernel(T.ceildiv(size, c.n), T.ceildiv(size, c.m), threads=c.threads) as (bx, by):
            A_s = T.alloc_shared((c.m, c.k // 2), c.dtype)
            E_s = T.alloc_shared((c.k // _WORD, c.m) if c.turned else (c.m, c.k // _WORD), "int16")
            B_s = T.alloc_shared((c.n, c.k) if c.transposed else (c.k, c.n), c.dtype)
            C_f = T.alloc_fragment((c.m, c.n), c.accum)
            if c.panel:
                T.use_swizzle(c.panel)
            T.clear(C_f)
            for k in T.Pipelined(T.ceildiv(size, c.k), num_stages=c.stages):
                T.copy(A[by * c.m, k * c.k // 2], A_s)
                if c.turned:
                    T.copy(E[k * c.k // _WORD, by * c.m], E_s)
                else:
                    T.copy(E[by * c.m, k * c.k // _WORD], E_s)
                if c.transposed:
                    T.copy(B[bx * c.n, k * c.k], B_s)
                else:
                    T.copy(B[k * c.k, bx * c.n], B_s)
                T.gemm_sp(A_s, E_s, B_s, C_f, transpose_E=c.turned, transpose_B=c.transposed)
            if c.staged:
                C_s = T.alloc_shared((c.m, c.n), c.out)
                T.annotate_layout({C_s: make_swizzled_layout((c.m, c.n), DTYPES[c.out].bits, 128)})
                T.copy(C_f, C_s)
                T.copy(C_s, C[by * c.m, bx * c.n])
            else:
                T.copy(C_f, C[by * c.m, bx * c.n])

    return gemm_sp


def candidates(size: int) -> list[Candidate]:
    """Return all configurations as kernels."""
    return [
        *(Candidate(f"gemm_sp_{size}_{c}", functools.partial(sparse_product, size, c)) for c in SPARSE),
        *(Candidate(f"gemm_{size}_{c}", functools.partial(product, size, c)) for c in DENSE),
    ]


def two_of_four(torch: Any, a: Any) -> tuple[Any, Any, Any]:
    """Return a matrix with two random values per four, these values, and natural-order metadata."""
    rows, k = a.shape
    groups = a.view(rows, k // 4, 4)
    kept = torch.rand(groups.shape, device=a.device).argsort(-1)[..., :2].sort(-1).values
    values = groups.gather(-1, kept)
    pruned = torch.zeros_like(groups).scatter(-1, kept, values).view(rows, k)
    codes = (kept[..., 0] | kept[..., 1] << 2).view(rows, k // _WORD, 4)
    words = codes[..., 0] | codes[..., 1] << 4 | codes[..., 2] << 8 | codes[..., 3] << 12
    words = torch.where(words >= 1 << 15, words - (1 << 16), words).to(torch.int16)
    return pruned, values.reshape(rows, k // 2).contiguous(), words.contiguous()


def torch_sides(torch: Any, pruned: Any, b: Any, halves: bool) -> Named:
    """Return torch's versions of the product; the first, dense, is the reference of ratios."""
    dense = functools.partial(torch.mm, pruned, b) if halves else functools.partial(torch._int_mm, pruned, b)
    found: Named = [(f"torch dense {'float16' if halves else 'int8 to int32'}", dense)]
    try:
        if halves:
            made = torch.sparse.to_sparse_semi_structured(pruned)
            side = functools.partial(torch.mm, made, b)
        else:
            packed = torch._cslt_compress(pruned)
            side = functools.partial(torch._cslt_sparse_mm, packed, b, out_dtype=torch.int32)
        result = side()
        wrong = fault(torch, result, dense().double(), 2.0 if halves else 0.0)
        found.append((f"torch semi-structured{' (its result differs)' if wrong else ''}", side))
    except Exception as error:  # whatever a build of torch without these libraries raises
        print(f"torch semi-structured is left out: {(str(error) or type(error).__name__).splitlines()[0]}")
    return found


def one_type(torch: Any, arguments: argparse.Namespace, halves: bool) -> list[Row]:
    """Return the rows of one element type."""
    size = arguments.size
    if halves:
        dense, b = (torch.randn(size, size, device="cuda").half() for _ in range(2))
    else:
        dense, b = (torch.randint(-128, 128, (size, size), device="cuda", dtype=torch.int8) for _ in range(2))
    pruned, values, words = two_of_four(torch, dense)
    turned = words.t().contiguous()
    stored = b if halves else b.t().contiguous()
    c = poisoned(torch, (size, size), torch.float32 if halves else torch.int32)
    expected = pruned.double() @ b.double()
    bound = 2.0**-23 * size * (pruned.double().abs() @ b.double().abs()) if halves else torch.zeros_like(expected)
    prefix = f"_{size}_{'float16' if halves else 'int8'}_"
    ours: Named = []
    for name, kernel in kernels(arguments, [x for x in candidates(size) if prefix in x.name]):
        described = turned if name.endswith("_et") else words
        inputs = (values, described, stored, c) if name.startswith("gemm_sp") else (pruned, stored, c)
        c.fill_(float("nan") if halves else -1)
        kernel(*inputs)
        wrong = fault(torch, c, expected, bound)
        if wrong:
            print(f"WRONG: {name}: {wrong}")
        else:
            ours.append((name, functools.partial(kernel, *inputs)))
    others = torch_sides(torch, pruned, b if halves else stored.t(), halves)
    return compare(torch, ours, others, arguments.seconds, 2.0 * size**3, "T/s")


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per kernel of ours and of torch."""
    if arguments.export is not None:
        return export(arguments, candidates(arguments.size))
    import torch

    print(device_of(torch))
    rows: list[Row] = []
    for halves in (True, False):
        found = one_type(torch, arguments, halves)
        rows += found
        sparse, dense = (
            min((r["ms"] for r in found if str(r["kernel"]).startswith(start)), default=None)
            for start in ("gemm_sp_", f"gemm_{arguments.size}_")
        )
        if sparse and dense:
            print(f"{'float16' if halves else 'int8'}: our best sparse is {dense / sparse:.2f} times our best dense")
    return rows


if __name__ == "__main__":
    run("2:4 sparse products on a GPU", measure, options)
