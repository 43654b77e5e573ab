"""The kernels that benchmarks/cuda_warpgroups.py measures: programs, and the options they are compiled with."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cuda_gemm import Config, product
from cuda_sides import Candidate
from cuda_sparse import SparseConfig, sparse_product

import tile_core.language as T
from tile_core.layout import make_swizzled_layout

_LOG2_E = 1.4426950408889634

#: How copies run ahead, by the suffix of a kernel's name.
COPIES = {"chunks": "never", "boxes": "always"}


@dataclass(frozen=True)
class AttentionConfig:
    """How attention is tiled.

    Attributes
    ----------
    m, n
        Queries and keys of a block's tile.
    threads, stages
        Of a block, and of the pipeline over keys.
    registers
        Of a thread at most, so that more blocks fit; 0: as many as the assembler wants.
    """

    m: int
    n: int
    threads: int
    stages: int
    registers: int = 0

    def __str__(self) -> str:
        return f"{self.m}x{self.n}_t{self.threads}_s{self.stages}{f'_r{self.registers}' if self.registers else ''}"


@dataclass(frozen=True)
class Heads:
    """The sizes of an attention: batch, heads, positions, and elements of a head."""

    batch: int
    heads: int
    length: int
    dim: int
    causal: bool

    def __str__(self) -> str:
        return f"d{self.dim}_{'causal' if self.causal else 'full'}"

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Of queries, keys, values and the result."""
        return self.batch, self.heads, self.length, self.dim

    @property
    def work(self) -> float:
        """Operations of both products; of the causal form, half of them."""
        return 4.0 * self.batch * self.heads * self.length**2 * self.dim / (2 if self.causal else 1)


HEADS = tuple(
    Heads(*sizes, causal) for sizes in ((8, 32, 4096, 128), (4, 16, 8192, 64)) for causal in (False, True)
)  # fmt: skip

_HALF: dict[str, Any] = {"out": "float16"}
_STAGED: dict[str, Any] = {**_HALF, "staged": True}
GEMM = (
    Config(128, 256, 64, 256, 4, **_HALF), Config(128, 256, 64, 256, 3, **_STAGED),
    Config(128, 256, 64, 256, 4, **_STAGED), Config(256, 128, 64, 256, 4, **_STAGED),
    Config(128, 128, 64, 128, 3, **_STAGED), Config(128, 128, 64, 256, 5, **_STAGED),
)  # fmt: skip
GEMM_SP = (
    SparseConfig(128, 256, 64, 256, 4, **_HALF), SparseConfig(128, 256, 64, 256, 5, **_STAGED),
    SparseConfig(128, 256, 128, 256, 2, **_STAGED), SparseConfig(128, 128, 128, 256, 3, **_STAGED),
    SparseConfig(128, 256, 64, 256, 4, **_STAGED, turned=True),
    SparseConfig(256, 128, 64, 256, 5, **_STAGED, turned=True),
    SparseConfig(128, 128, 64, 128, 4, **_STAGED, turned=True), SparseConfig(256, 192, 64, 256, 5, **_STAGED),
    SparseConfig(256, 192, 64, 256, 4, **_STAGED, turned=True), SparseConfig(256, 128, 128, 256, 3, **_STAGED),
)  # fmt: skip
_BFLOAT: dict[str, Any] = {"out": "bfloat16"}
FP8 = (
    Config(128, 256, 128, 256, 4, **_BFLOAT), Config(128, 256, 128, 256, 4, **_BFLOAT, staged=True),
    Config(256, 128, 128, 256, 4, **_BFLOAT, staged=True), Config(128, 128, 128, 128, 3, **_BFLOAT, staged=True),
)  # fmt: skip
ATTENTION = {
    64: (
        AttentionConfig(64, 64, 128, 2), AttentionConfig(64, 64, 128, 3), AttentionConfig(128, 128, 256, 2),
        AttentionConfig(128, 64, 256, 3),
    ),
    128: (
        AttentionConfig(64, 64, 128, 2), AttentionConfig(128, 128, 256, 2), AttentionConfig(128, 128, 256, 3),
        AttentionConfig(128, 64, 256, 3), AttentionConfig(128, 64, 256, 2, 128),
    ),
}  # fmt: skip


def scaled_product(size: int, c: Config) -> Any:
    """Return the program of a product of 8-bit floats, B stored as (N, K), with a scale per row of A and of B."""

    @T.prim_func
    def gemm(
        A: T.Tensor((size, size), "float8_e4m3fn"), B: T.Tensor((size, size), "float8_e4m3fn"),
        SA: T.Tensor((size,), "float32"), SB: T.Tensor((size,), "float32"), C: T.Tensor((size, size), "bfloat16"),
    ) -> None:  # fmt: skip
        with T.Kernel(T.ceildiv(size, c.n), T.ceildiv(size, c.m), threads=c.threads) as (bx, by):
            A_s = T.alloc_shared((c.m, c.k), "float8_e4m3fn")
            B_s = T.alloc_shared((c.n, c.k), "float8_e4m3fn")
            C_f = T.alloc_fragment((c.m, c.n), "float32")
            T.use_swizzle(c.panel)
            T.clear(C_f)
            for k in T.Pipelined(T.ceildiv(size, c.k), num_stages=c.stages):
                T.copy(A[by * c.m, k * c.k], A_s)
                T.copy(B[bx * c.n, k * c.k], B_s)
                T.gemm(A_s, B_s, C_f, transpose_B=True)
            for i, j in T.Parallel(c.m, c.n):
                C_f[i, j] = C_f[i, j] * SA[by * c.m + i] * SB[bx * c.n + j]
            if c.staged:
                C_s = T.alloc_shared((c.m, c.n), "bfloat16")
                T.annotate_layout({C_s: make_swizzled_layout((c.m, c.n), 16, 128)})
                T.copy(C_f, C_s)
                T.copy(C_s, C[by * c.m, bx * c.n])
            else:
                T.copy(C_f, C[by * c.m, bx * c.n])

    return gemm


def attention(h: Heads, c: AttentionConfig) -> Any:
    """Return the program of attention over whole blocks of keys; only those on the diagonal have a mask."""
    scale = _LOG2_E / h.dim**0.5
    t = T.Tensor(h.shape, "float16")

    @T.prim_func
    def main(Q: t, K: t, V: t, R: t) -> None:
        with T.Kernel(h.length // c.m, h.heads, h.batch, threads=c.threads) as (bx, by, bz):
            Q_s = T.alloc_shared((c.m, h.dim), "float16")
            K_s = T.alloc_shared((c.n, h.dim), "float16")
            V_s = T.alloc_shared((c.n, h.dim), "float16")
            scores = T.alloc_fragment((c.m, c.n), "float32")
            weights = T.alloc_fragment((c.m, c.n), "float16")
            result = T.alloc_fragment((c.m, h.dim), "float32")
            top = T.alloc_fragment((c.m,), "float32")
            before = T.alloc_fragment((c.m,), "float32")
            total = T.alloc_fragment((c.m,), "float32")
            added = T.alloc_fragment((c.m,), "float32")
            T.copy(Q[bz, by, bx * c.m, 0], Q_s)
            T.clear(result)
            T.clear(total)
            T.fill(top, -T.infinity("float32"))
            for n in T.Pipelined(T.ceildiv((bx + 1) * c.m, c.n) if h.causal else h.length // c.n, num_stages=c.stages):
                T.copy(K[bz, by, n * c.n, 0], K_s)
                T.copy(V[bz, by, n * c.n, 0], V_s)
                T.gemm(Q_s, K_s, scores, transpose_B=True, clear_accum=True)
                if h.causal and (n + 1) * c.n > bx * c.m:
                    for i, j in T.Parallel(c.m, c.n):
                        seen = bx * c.m + i >= n * c.n + j
                        scores[i, j] = T.if_then_else(seen, scores[i, j], -T.infinity("float32"))
                T.copy(top, before)
                T.reduce_max(scores, top, dim=1, clear=False)
                for i, j in T.Parallel(c.m, c.n):
                    scores[i, j] = T.exp2(scores[i, j] * scale - top[i] * scale)
                T.reduce_sum(scores, added, dim=1)
                for i in T.Parallel(c.m):
                    before[i] = T.exp2(before[i] * scale - top[i] * scale)
                    total[i] = total[i] * before[i] + added[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(c.m, h.dim):
                    result[i, j] = result[i, j] * before[i]
                T.gemm(weights, V_s, result)
            for i, j in T.Parallel(c.m, h.dim):
                result[i, j] = result[i, j] / total[i]
            T.copy(result, R[bz, by, bx * c.m, 0])

    return main


def gemms(size: int) -> list[Candidate]:
    """Return the dense float16 products, one of them on ``mma.sync`` to compare with."""
    plain = Candidate(f"gemm_{size}_mma_{GEMM[0]}", functools.partial(product, size, GEMM[0]), {"wgmma": "never"})
    return [*_both(f"gemm_{size}", ((str(c), functools.partial(product, size, c)) for c in GEMM)), plain]


def sparse_gemms(size: int) -> list[Candidate]:
    """Return the 2:4 sparse float16 products."""
    return _both(f"gemm_sp_{size}", ((str(c), functools.partial(sparse_product, size, c)) for c in GEMM_SP))


def scaled_gemms(size: int) -> list[Candidate]:
    """Return the 8-bit products with scales."""
    return _both(
        f"fp8_{size}",
        ((f"{c.m}x{c.n}x{c.k}_s{c.stages}{'_st' * c.staged}", functools.partial(scaled_product, size, c)) for c in FP8),
        fast_accum=True,
    )


def attentions(h: Heads) -> list[Candidate]:
    """Return attention of one kind; functions are approximate and multiplications fused, as everywhere else."""
    found: list[Candidate] = []
    for c in ATTENTION[h.dim]:
        program = functools.partial(attention, h, c)
        found += _both(f"attention_{h}", [(str(c), program)], fast_math=True, max_registers=c.registers or None)
    return found


def _both(prefix: str, programs: Iterable[tuple[str, Any]], **more: Any) -> list[Candidate]:
    """Return each program with either way of copying."""
    return [
        Candidate(f"{prefix}_{name}_{copies}", program, {"wgmma": "always", "bulk_copies": bulk, **more})
        for name, program in programs
        for copies, bulk in COPIES.items()
    ]
