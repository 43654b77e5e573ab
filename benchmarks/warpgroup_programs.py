"""The kernels that benchmarks/cuda_warpgroups.py measures: programs, and the options they are compiled with."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cuda_gemm import Config, product
from cuda_sides import Candidate
from cuda_sparse import SparseConfig, sparse_product

import tile_core.language as T
from tile_core.layout import make_swizzled_layout

#: Logarithms to base 2 and natural ones.
LOG2_E = 1.4426950408889634

#: Copies in flight, by the suffix of a kernel's name.
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
        Registers of a thread at most, so that more blocks fit; 0: the assembler's choice.
    staged
        Whether the result goes through shared memory, from where rows are written whole.
    overlap
        The option of that name.
    scores
        Element type of the scores.
    """

    m: int
    n: int
    threads: int
    stages: int
    registers: int = 0
    staged: bool = True
    overlap: str = "auto"
    scores: str = "float32"

    def __str__(self) -> str:
        more = f"{f'_r{self.registers}' if self.registers else ''}{'_st' * self.staged}"
        more += f"_{self.scores}" * (self.scores != "float32")
        return f"{self.m}x{self.n}_t{self.threads}_s{self.stages}{more}_{self.overlap}"


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
#: Ordinary source, compiled without options, as users write it without knowledge of the device.
_PLAIN: dict[str, Any] = {**_HALF, "panel": 0}
PLAIN_GEMM = (
    Config(128, 256, 64, 256, 4, **_PLAIN), Config(256, 128, 64, 256, 4, **_PLAIN),
    Config(128, 256, 64, 256, 4, transposed=True, **_PLAIN),
)  # fmt: skip
PLAIN_GEMM_SP = (
    SparseConfig(128, 256, 64, 256, 4, **_PLAIN, turned=True), SparseConfig(256, 128, 128, 256, 3, **_PLAIN),
    SparseConfig(128, 256, 64, 256, 4, **_PLAIN), SparseConfig(128, 256, 64, 256, 5, **_PLAIN),
    SparseConfig(128, 256, 64, 256, 5, **_PLAIN, turned=True),
)  # fmt: skip
#: Sparse products beside dense ones, by element type: accumulator, result, K of a tile, whether B is stored as (N, K).
SPARSE_TYPES = {
    "bfloat16": ("float32", "bfloat16", 64, False), "int8": ("int32", "int32", 128, True),
    "float8_e4m3fn": ("float32", "bfloat16", 128, True),
}  # fmt: skip
PLAIN_FP8 = (Config(128, 256, 128, 256, 4, out="bfloat16", panel=0),)
ATTENTION = {
    64: (
        AttentionConfig(64, 64, 128, 2), AttentionConfig(128, 128, 256, 2), AttentionConfig(128, 64, 256, 3),
        AttentionConfig(128, 128, 256, 2, overlap="always"),
    ),
    128: (
        AttentionConfig(64, 64, 128, 2), AttentionConfig(128, 128, 256, 2), AttentionConfig(128, 128, 256, 3),
        AttentionConfig(128, 64, 256, 3), AttentionConfig(128, 64, 256, 2),
        AttentionConfig(128, 128, 256, 2, overlap="never"),
    ),
}  # fmt: skip

#: The gradients, where ``m`` are queries of an iteration and ``n`` keys of a block.
BACKWARD = (AttentionConfig(64, 128, 256, 2), AttentionConfig(64, 64, 128, 2), AttentionConfig(32, 128, 256, 2))


#: Options that are not the default, for the same ordinary source: sections ``options_...`` put them side by side.
_STAGED_EPILOGUE = {"epilogue": "always"}
#: Blocks that load for each other, each with one tile, or with roles and several.
CLUSTERS: dict[str, dict[str, Any]] = {
    "clusters": {"persistent": "never", "clusters": "always"}, "clusters_of_4": {"persistent": "never", "clusters": 4},
    "roles_clusters": {"persistent": "always", "clusters": 2},
}  # fmt: skip
OPTIONS_GEMM: tuple[tuple[int, str, dict[str, Any]], ...] = (
    (4, "default", {}), (4, "stmatrix", {"persistent": "never", "stmatrix": "always", **_STAGED_EPILOGUE}),
    (4, "blocks", {"persistent": "never"}), *((4, name, options) for name, options in CLUSTERS.items()),
    (3, "default", {}), (3, "workers", {"persistent": "always"}),
    (3, "workers_stored_later", {"persistent": "always", **_STAGED_EPILOGUE}),
    (3, "workers_stored_later_stmatrix", {"persistent": "always", "stmatrix": "always", **_STAGED_EPILOGUE}),
)  # fmt: skip
OPTIONS_FP8: dict[str, dict[str, Any]] = {
    "fast": {"numerics": "fast"}, "promote": {"numerics": "standard"},
    "promote_workers": {"numerics": "standard", "persistent": "always"},
    "exact": {}, "blocks": {"numerics": "fast", "persistent": "never"},
    **{name: {"numerics": "fast", **options} for name, options in CLUSTERS.items()},
}  # fmt: skip
OPTIONS_ATTENTION: dict[str, dict[str, Any]] = {
    "default": {}, "producer": {"persistent": "always"},
    "producer_overlap": {"persistent": "always", "overlap": "always"},
    "stmatrix": {"stmatrix": "always"}, "producer_stmatrix": {"persistent": "always", "stmatrix": "always"},
}  # fmt: skip


def scaled_product(size: int, c: Config) -> Any:
    """Return the program of 8-bit float products with row scales of A and B.

    B is stored as (N, K).
    """

    @T.prim_func
    def gemm(
        A: T.Tensor((size, size), "float8_e4m3fn"), B: T.Tensor((size, size), "float8_e4m3fn"),
        SA: T.Tensor((size,), "float32"), SB: T.Tensor((size,), "float32"), C: T.Tensor((size, size), "bfloat16"),
    ) -> None:  # fmt: skip
        with T.Kernel(T.ceildiv(size, c.n), T.ceildiv(size, c.m), threads=c.threads) as (bx, by):
            A_s = T.alloc_shared((c.m, c.k), "float8_e4m3fn")
            B_s = T.alloc_shared((c.n, c.k), "float8_e4m3fn")
            C_f = T.alloc_fragment((c.m, c.n), "float32")
            if c.panel:
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
    """Return the program of attention over whole key blocks, masked on the diagonal only.

    Of the causal form the last queries, which see most keys, come first: the short blocks fill the gaps at the end.
    """
    scale = LOG2_E / h.dim**0.5
    t = T.Tensor(h.shape, "float16")

    @T.prim_func
    def main(Q: t, K: t, V: t, R: t) -> None:
        with T.Kernel(h.length // c.m, h.heads, h.batch, threads=c.threads) as (at, by, bz):
            bx = h.length // c.m - 1 - at if h.causal else at
            Q_s = T.alloc_shared((c.m, h.dim), "float16")
            K_s = T.alloc_shared((c.n, h.dim), "float16")
            V_s = T.alloc_shared((c.n, h.dim), "float16")
            scores = T.alloc_fragment((c.m, c.n), c.scores)
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
            if c.staged:
                R_s = T.alloc_shared((c.m, h.dim), "float16")
                T.copy(result, R_s)
                T.copy(R_s, R[bz, by, bx * c.m, 0])
            else:
                T.copy(result, R[bz, by, bx * c.m, 0])

    return main


def brain_gemms(size: int) -> list[Candidate]:
    """Return the dense bfloat16 products of ordinary source."""
    configs = [replace(c, dtype="bfloat16", out="bfloat16") for c in PLAIN_GEMM]
    return [_ordinary(f"gemm_{size}_{c}", functools.partial(product, size, c)) for c in configs]


def gemms(size: int) -> list[Candidate]:
    """Return the dense float16 products, one of them on ``mma.sync`` to compare with."""
    plain = Candidate(f"gemm_{size}_mma_{GEMM[0]}", functools.partial(product, size, GEMM[0]), {"wgmma": "never"})
    ordinary = [_ordinary(f"gemm_{size}_{c}", functools.partial(product, size, c)) for c in PLAIN_GEMM]
    return [*ordinary, *_both(f"gemm_{size}", ((str(c), functools.partial(product, size, c)) for c in GEMM)), plain]


def sparse_gemms(size: int) -> list[Candidate]:
    """Return the 2:4 sparse float16 products."""
    made = [(c, functools.partial(sparse_product, size, c)) for c in (*PLAIN_GEMM_SP, *GEMM_SP)]
    ordinary = [_ordinary(f"gemm_sp_{size}_{c}", program) for c, program in made[: len(PLAIN_GEMM_SP)]]
    for name, options in ({"blocks": {"persistent": "never"}} | CLUSTERS).items():
        ordinary += [Candidate(f"gemm_sp_{size}_{c}_{name}", x, options) for c, x in made[: len(PLAIN_GEMM_SP)]]
    return [*ordinary, *_both(f"gemm_sp_{size}", ((str(c), program) for c, program in made[len(PLAIN_GEMM_SP) :]))]


def typed_gemms(size: int, dtype: str) -> list[Candidate]:
    """Return sparse products of an element type, and the dense one last."""
    accum, out, k, transposed = SPARSE_TYPES[dtype]
    more: dict[str, Any] = {"dtype": dtype, "accum": accum, "out": out, "transposed": transposed, "panel": 0}
    fast = {"numerics": "fast"} if dtype.startswith("float8") else {}
    found = []
    for stages, turned, options in ((4, False, {}), (4, True, {}), (5, False, {}), (5, True, {}),
                                    (5, True, {"persistent": "always"}),
                                    (5, True, {"persistent": "never"})):  # fmt: skip
        c = SparseConfig(128, 256, k, 256, stages, turned=turned, **more)
        name = f"gemm_sp_{size}_{c}_{options.get('persistent', 'default')}"
        found.append(Candidate(name, functools.partial(sparse_product, size, c), {**fast, **options}))
    dense = Config(128, 256, k, 256, 4, **more)
    return [*found, Candidate(f"gemm_{size}_{dense}_default", functools.partial(product, size, dense), fast)]


def scaled_gemms(size: int) -> list[Candidate]:
    """Return the 8-bit products with scales."""

    def named(c: Config) -> tuple[str, Any]:
        return f"{c.m}x{c.n}x{c.k}_s{c.stages}{'_st' * c.staged}", functools.partial(scaled_product, size, c)

    ordinary = [_ordinary(f"fp8_{size}_{name}", made, numerics="fast") for name, made in map(named, PLAIN_FP8)]
    return [*ordinary, *_both(f"fp8_{size}", map(named, FP8), numerics="fast")]


def attentions(h: Heads) -> list[Candidate]:
    """Return attention of one kind; functions are approximate and multiplications fused, as everywhere else."""
    found: list[Candidate] = []
    for c in ATTENTION[h.dim]:
        program = functools.partial(attention, h, c)
        found += _both(f"attention_{h}", [(str(c), program)], numerics="fast", max_registers=c.registers or None,
                       overlap=c.overlap)  # fmt: skip
    return found


def options_of_gemms(size: int) -> list[Candidate]:
    """Return dense float16 products with the default options and with others."""
    found = []
    for stages, name, options in OPTIONS_GEMM:
        c = Config(128, 256, 64, 256, stages, **_PLAIN)
        found.append(Candidate(f"options_gemm_{size}_s{stages}_{name}", functools.partial(product, size, c), options))
    return found


def options_of_scaled_gemms(size: int) -> list[Candidate]:
    """Return 8-bit products with different accumulation."""
    program = functools.partial(scaled_product, size, PLAIN_FP8[0])
    return [Candidate(f"options_fp8_{size}_{name}", program, options) for name, options in OPTIONS_FP8.items()]


def options_of_attentions(h: Heads) -> list[Candidate]:
    """Return attention with and without threads that copy."""
    found = []
    for c in (AttentionConfig(128, 128, 256, 2), AttentionConfig(128, 128, 256, 2, staged=False)):
        for name, more in OPTIONS_ATTENTION.items():
            options = {"wgmma": "always", "tma": "always", "numerics": "fast", **more}
            found.append(Candidate(f"options_attention_{h}_{c}_{name}", functools.partial(attention, h, c), options))
    return found


def gradients(h: Heads) -> list[Candidate]:
    """Return the gradients of attention: the programs of the example."""
    found: list[Candidate] = []
    for c in BACKWARD:
        sizes = (h.batch, h.heads, h.length, h.length, h.dim, h.causal, "float16", c.m, c.n, c.threads, c.stages)
        program = functools.partial(_example().backward, *sizes)
        options = {"wgmma": "always", "tma": "always", "numerics": "fast", "overlap": c.overlap}
        found.append(Candidate(f"backward_{h}_{c.m}x{c.n}_t{c.threads}_s{c.stages}", program, options))
    return found


def row_products(h: Heads) -> Candidate:
    """Return the row reductions that the gradients need."""
    sizes = (h.batch, h.heads, h.length, h.dim)
    return Candidate(f"backward_{h}_rows", functools.partial(_example().row_products, *sizes), {"numerics": "fast"})


def _example() -> Any:
    folder = str(Path(__file__).parents[1] / "examples")
    sys.path += [] if folder in sys.path else [folder]
    return importlib.import_module("attention_backward")


def _ordinary(name: str, program: Any, **options: Any) -> Candidate:
    """Return a program that is compiled with the default options."""
    return Candidate(f"{name}_default", program, options)


def _both(prefix: str, programs: Iterable[tuple[str, Any]], **more: Any) -> list[Candidate]:
    """Return each program with either way of copying."""
    return [
        Candidate(f"{prefix}_{name}_{copies}", program, {"wgmma": "always", "tma": bulk, **more})
        for name, program in programs
        for copies, bulk in COPIES.items()
    ]
