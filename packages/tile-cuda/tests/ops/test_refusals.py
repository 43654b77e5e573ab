"""Rejection reasons of products, by variant: reasons are true, and named values are accepted."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.attributes import ISSUED
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import View
from tile_core.plugins.contexts import make_context
from tile_core.reports.slow import SlowTiles
from tile_core.simt.variant import Block, SimtCall
from tile_cuda.attributes import PROMOTE, READABLE_ROWS, WHOLE
from tile_cuda.ops.accumulator_marks import MATRIX
from tile_cuda.ops.gemm_mma import MmaGemm
from tile_cuda.ops.gemm_scaled_mma import MmaGemmScaled
from tile_cuda.ops.gemm_sp_mma import MmaGemmSp
from tile_cuda.ops.gemm_sp_wgmma import WarpgroupGemmSp
from tile_cuda.ops.gemm_wgmma import WarpgroupGemm
from tile_cuda.ops.tensor_products import TENSOR_PRODUCTS

SCOPES = {"s": "shared", "r": "local.fragment", "g": "global", "t": MATRIX}
F16, BF16, TF32, F32, F64 = "float16", "bfloat16", "tfloat32", "float32", "float64"
E4M3, E2M1, E8M0 = "float8_e4m3fn", "float4_e2m1fn", "float8_e8m0fnu"
HALF, INT8, FP8, FP4 = (F16, F16, F32), ("int8", "int8", "int32"), (E4M3, E4M3, F32), (E2M1, E2M1, F32)
NT = (False, True)
DENSE, SPARSE, SCALED = "gemm", "gemm_sp", "gemm_scaled"
TENSOR = {v.op: v for v in TENSOR_PRODUCTS}
VARIANTS = {
    "mma": MmaGemm(True), "mma of old": MmaGemm(False), "mma.sp": MmaGemmSp(True), "scaled": MmaGemmScaled(),
    "wgmma": WarpgroupGemm(), "wgmma.sp": WarpgroupGemmSp(),
    "tcgen05": TENSOR[DENSE], "tcgen05.sp": TENSOR[SPARSE], "tcgen05.scaled": TENSOR[SCALED],
}  # fmt: skip


@dataclass
class Product:
    """A product: ``scopes`` of A, B, C and metadata or scales; ``pad`` elements beside rows."""

    variant: str
    M: int
    N: int
    K: int
    threads: int = 128
    types: tuple[str, str, str] = HALF
    turned: tuple[bool, bool] = (False, False)
    scopes: str = "sss"
    beside: str = "s"
    policy: int = 0
    pad: tuple[int, int] = (0, 0)
    scale: tuple[str, int] = (E8M0, 32)
    begins: int = 0
    alone: bool = False
    attrs: tuple[tuple[str, Any], ...] = ()
    options: tuple[tuple[str, Any], ...] = ()

    def view(self, name: str, rows: int, columns: int, dtype: str, scope: str, pad: int = 0) -> View:
        if dtype == E2M1:
            dtype, columns = "uint8", columns // 2
        held = F32 if dtype == TF32 else dtype
        buffer, _ = nodes.alloc((rows, columns + pad), held, name, SCOPES[scope])
        return View(buffer, (0, 0), (rows, columns))

    def call(self) -> SimtCall:
        op, (a, b, c), (ta, tb) = VARIANTS[self.variant].op, self.types, self.turned
        m, n, k = self.M, self.N, self.K
        of_a = k // 2 if op == SPARSE else k
        one = self.view("A", *((of_a, m) if ta else (m, of_a)), a, self.scopes[0], self.pad[0])
        two = self.view("B", *((n, k) if tb else (k, n)), b, self.scopes[1], self.pad[1])
        accumulator = self.view("C", m, n, c, self.scopes[2])
        (scale, block), clear = self.scale, nodes.const(True, "bool")
        attrs: dict[str, Any] = {"transpose_A": ta, "transpose_B": tb, "policy": self.policy, "types": list(self.types)}
        args: tuple[Any, ...] = (one, two, accumulator, clear)
        if op == SPARSE:
            args = (one, self.view("E", m, k // 16, "int16", self.beside), two, accumulator, clear)
            attrs |= {"types": [a, "int16", b, c], "group": 2 if DTYPES[a].bits == 32 else 4, "transpose_E": False}
        elif op == SCALED:
            scales = [self.view(x, lines, k // block, scale, self.beside) for x, lines in (("S", m), ("R", n))]
            args = (one, scales[0], two, scales[1], accumulator, clear)
            attrs |= {"types": [a, scale, b, scale, c], "block": block}
        where = Block((self.threads, 1, 1), nodes.fresh("tid"), begins=self.begins)
        return SimtCall(op, args, attrs | dict(self.attrs), block=where, divergent=self.alone)

    def answer(self) -> Accept | Reject:
        variant = VARIANTS[self.variant]
        ask = variant.fits if hasattr(variant, "fits") else variant.accepts
        return ask(self.call(), context(self.variant, self.options))


@cache
def context(variant: str, options: tuple[tuple[str, Any], ...]) -> Any:
    target, given = "cuda:sm_120a", {}
    if variant.startswith("wgmma"):
        target, given = "cuda:sm_90a", {"wgmma": "always", "numerics": "fast"}
    elif variant.startswith("tcgen05"):
        target, given = "cuda:sm_100a", {"tcgen05": "always"}
    return make_context(target, given | dict(options))


def of(reads: tuple[int, ...]) -> tuple[tuple[str, Any], ...]:
    return ((READABLE_ROWS, reads),)


ALONE = "one thread executes it for itself; the instruction needs a "
NO_F64 = (
    "no instruction for the types A float64, B float64, C float64; nearest legal: A bfloat16, B bfloat16, C bfloat16"
)
#: By variant: its product, and the whole reason.
REFUSED: dict[str, tuple[tuple[Product, str], ...]] = {
    "mma": (
        (Product("mma", 16, 16, 16, alone=True), ALONE + "warp"),
        (Product("mma", 16, 16, 16, 31), "threads=31 is below the limit 32; nearest legal: 32"),
        (Product("mma", 16, 16, 16, types=("int8", F16, F32)),
         "no instruction for the types A int8, B float16, C float32; nearest legal: A bfloat16, B float16, C float32"),
        (Product("mma", 16, 16, 16, types=(F32, F32, F32)),
         "the instruction would round float32 operands; nearest legal: tfloat32"),
        (Product("mma", 16, 16, 16, 31, types=("int8", F16, F32)),
         "no instruction for the types A int8, B float16, C float32; nearest legal: A bfloat16, B float16, C float32"),
        (Product("mma", 16, 16, 16, scopes="gss"), "A is in global; legal: shared or fragment"),
    ),
    "mma.sp": (
        (Product("mma.sp", 16, 16, 32, alone=True), ALONE + "warp"),
        (Product("mma.sp", 16, 16, 32, 31), "threads=31 is below the limit 32; nearest legal: 32"),
        (Product("mma.sp", 16, 16, 32, types=(F16, TF32, F32)),
         "no instruction for the types A float16, B tfloat32, C float32; nearest legal: A float16, B float16, "
         "C float32"),
        (Product("mma.sp", 16, 16, 32, beside="r"), "E is in fragment; legal: shared or global"),
    ),
    "scaled": (
        (Product("scaled", 16, 16, 64, types=FP8, alone=True), ALONE + "warp"),
        (Product("scaled", 16, 16, 64, 31, FP8), "threads=31 is below the limit 32; nearest legal: 32"),
        (Product("scaled", 16, 16, 64, types=(E4M3, E2M1, F32)),
         "no instruction for the types A float8_e4m3fn, B float4_e2m1fn, C float32; nearest legal: A float4_e2m1fn, "
         "B float4_e2m1fn, C float32"),
        (Product("scaled", 16, 16, 64, types=FP8, scale=(E8M0, 64)),
         "float8_e8m0fnu for blocks of 64 elements; for float8_e4m3fn there are float8_e8m0fnu for 32"),
        (Product("scaled", 16, 16, 64, types=FP8, beside="g"), "S is not in shared memory"),
        (Product("scaled", 16, 16, 64, types=FP8, scopes="srs"), "B is in fragment; legal: shared"),
    ),
    "wgmma": (
        (Product("wgmma", 64, 64, 64, alone=True), ALONE + "warpgroup"),
        (Product("wgmma", 64, 64, 64, 96), "threads=96 is below the limit 128; nearest legal: 128"),
        (Product("wgmma", 64, 64, 64, 200), "threads=200 is not a multiple of 32; nearest legal: 192"),
        (Product("wgmma", 64, 64, 64, begins=32), "its threads begin at 32; warpgroups begin at multiples of 128"),
        (Product("wgmma", 64, 64, 64, types=(F16, BF16, F32)),
         "no instruction for the types A float16, B bfloat16, C float32; nearest legal: A bfloat16, B bfloat16, "
         "C float32"),
        # Neither more threads nor another orientation is legal where the types are not.
        (Product("wgmma", 64, 64, 64, 96, (F64, F64, F64)), NO_F64),
        (Product("wgmma", 48, 20, 24),
         "M=48 is not a multiple of the atom 64; nearest legal: 64; N=20 is not a multiple of the atom 8; nearest "
         "legal: 16 or 24; K=24 is not a multiple of the atom 16; nearest legal: 16 or 32"),
        (Product("wgmma", 64, 64, 64, scopes="srs"), "B is in fragment; legal: shared"),
        (Product("wgmma", 64, 64, 64, types=INT8),
         "elements of 8 bits are adjacent along K only: B would have to be (N, K)"),
        (Product("wgmma", 128, 256, 64),
         "each of 128 threads would need 296 registers for its part of 128 x 256 and has at most 255; nearest legal: "
         "M=64 or N=208 or threads=256"),
        (Product("wgmma", 64, 96, 512, 384, scopes="rss", turned=NT),
         "each of 384 threads would need 184 registers for its part of 64 x 96 and has at most 168; nearest legal: "
         "K=448"),
        (Product("wgmma", 192, 256, 64, 384, FP8, NT, attrs=((PROMOTE, 32),)),
         "each of 384 threads would need 184 registers for its part of 192 x 256 and has at most 168; nearest legal: "
         "M=64 or N=224"),
        (Product("wgmma", 64, 24, 64),
         "rows of B have 24 elements, and descriptors describe multiples of 16; nearest legal: N=16 or N=32"),
        (Product("wgmma", 64, 80, 64, 256),
         "to descriptors B has rows of 32 bytes, which an instruction's columns from 40 on would cross; nearest "
         "legal: N=64 or N=96"),
        (Product("wgmma", 64, 64, 64, turned=NT, pad=(8, 0)),
         "rows of A have 72 elements, and descriptors describe multiples of 16"),
        (Product("wgmma", 64, 96, 64, 128, attrs=of((0, 128, 0))),
         "other products read B in rows of 128 bytes, and this one in rows of 64 or 32; nearest legal: N=64 or N=128"),
        (Product("wgmma", 64, 64, 64, options=(("wgmma", "never"),)), 'the option wgmma is "never"'),
    ),
    "wgmma.sp": (
        (Product("wgmma.sp", 64, 64, 64, alone=True), ALONE + "warpgroup"),
        (Product("wgmma.sp", 64, 64, 64, 96), "threads=96 is below the limit 128; nearest legal: 128"),
        (Product("wgmma.sp", 64, 64, 48), "K=48 is not a multiple of the atom 32; nearest legal: 32 or 64"),
        (Product("wgmma.sp", 64, 64, 64, beside="r"), "E is in fragment; legal: shared or global"),
        (Product("wgmma.sp", 192, 256, 128, 384, INT8, NT),
         "each of 384 threads would need 170 registers for its part of 192 x 256 and has at most 168; nearest legal: "
         "M=64 or N=248"),
        (Product("wgmma.sp", 64, 24, 64),
         "rows of B have 24 elements, and descriptors describe multiples of 16; nearest legal: N=16 or N=32"),
        (Product("wgmma.sp", 64, 64, 64, turned=NT, pad=(0, 16)),
         "rows of B have 80 elements, and descriptors describe multiples of 32"),
        (Product("wgmma.sp", 64, 64, 64, turned=NT, attrs=of((0, 0, 32, 0))),
         "other products read B in rows of 32 bytes, and this one in rows of 128 or 64"),
    ),
    "tcgen05": (
        (Product("tcgen05", 128, 64, 64, alone=True), ALONE + "warpgroup"),
        (Product("tcgen05", 128, 64, 64, 64), "threads=64 is below the limit 128; nearest legal: 128"),
        (Product("tcgen05", 128, 64, 64, 256), "256 threads execute it; blocks of 128 move accumulators"),
        (Product("tcgen05", 128, 64, 64, begins=64),
         "its threads begin at 64; warpgroups begin at multiples of 128"),
        (Product("tcgen05", 128, 64, 64, types=(F16, BF16, F32)),
         "no instruction for the types A float16, B bfloat16, C float32; nearest legal: A bfloat16, B bfloat16, "
         "C float32"),
        (Product("tcgen05", 128, 64, 64, 96, (F64, F64, F64)), NO_F64),
        (Product("tcgen05", 64, 24, 24),
         "M=64 is not a multiple of the atom 128; nearest legal: 128; N=24 is not a multiple of the atom 16; nearest "
         "legal: 16 or 32; K=24 is not a multiple of the atom 16; nearest legal: 16 or 32"),
        (Product("tcgen05", 640, 128, 16, scopes="sst"),
         "640 x 128 accumulator needs 640 columns of tensor memory, which has 512; nearest legal: M=512 or N=96"),
        (Product("tcgen05", 128, 272, 16, scopes="sst"),
         "272 columns are not a multiple of 32, as more than 256 have to be: 256 and 288 are"),
        (Product("tcgen05", 128, 208, 320, scopes="rss", turned=NT),
         "it needs 208 accumulator columns and two sets of 160 of A; tensor memory has 512; nearest legal: "
         "N=192 or K=304"),
        (Product("tcgen05", 128, 224, 64, attrs=((WHOLE, "they are turned"),)),
         "128 x 224 accumulator needs more than 208 registers of each thread, and it is not subtiled: they are turned"
         "; nearest legal: N=208"),
        (Product("tcgen05", 128, 64, 64, turned=NT, pad=(8, 0)),
         "rows of A have 72 elements, and descriptors describe multiples of 16"),
        (Product("tcgen05", 128, 96, 64, attrs=of((0, 128, 0))),
         "other products read B in rows of 128 bytes, and this one in rows of 64 or 32; nearest legal: N=64 or N=128"),
        (Product("tcgen05", 128, 64, 64, types=INT8),
         "elements of int8 are adjacent along K only: B would have to be (N, K)"),
        (Product("tcgen05", 128, 64, 64, scopes="srs"), "B is in fragment; legal: shared"),
        (Product("tcgen05", 128, 64, 64, options=(("tcgen05", "never"),)), 'the option tcgen05 is "never"'),
    ),
    "tcgen05.sp": (
        (Product("tcgen05.sp", 128, 64, 64, 256), "256 threads execute it; blocks of 128 move accumulators"),
        (Product("tcgen05.sp", 128, 64, 48), "K=48 is not a multiple of the atom 32; nearest legal: 32 or 64"),
        (Product("tcgen05.sp", 256, 256, 64, scopes="sst"),
         "it needs 512 accumulator columns and two sets of 4 of metadata; tensor memory has 512; nearest legal: "
         "M=128 or N=240"),
        (Product("tcgen05.sp", 128, 64, 64, turned=NT, pad=(0, 16)),
         "rows of B have 80 elements, and descriptors describe multiples of 32"),
    ),
    "tcgen05.scaled": (
        (Product("tcgen05.scaled", 128, 64, 64, 256, FP8, NT),
         "256 threads execute it; blocks of 128 move accumulators"),
        (Product("tcgen05.scaled", 128, 64, 64, types=(E4M3, E2M1, F32), turned=NT),
         "no instruction for the types A float8_e4m3fn, B float4_e2m1fn, C float32; nearest legal: A float4_e2m1fn, "
         "B float4_e2m1fn, C float32"),
        (Product("tcgen05.scaled", 128, 64, 64, types=FP8, turned=NT, scale=(E4M3, 32)),
         "float8_e4m3fn for blocks of 32 elements; for float8_e4m3fn there are float8_e8m0fnu for 32"),
        (Product("tcgen05.scaled", 128, 64, 32, types=FP4, turned=NT, scale=(E8M0, 32)),
         "K=32 is not a multiple of the atom 64; nearest legal: 64"),
        (Product("tcgen05.scaled", 256, 256, 128, types=FP8, turned=NT, scopes="sst"),
         "it needs 512 accumulator columns and two sets of 16 of scales; tensor memory has 512; nearest legal: "
         "M=128 or N=240"),
        (Product("tcgen05.scaled", 128, 64, 64, types=FP8, turned=NT, pad=(16, 0)),
         "rows of A have 80 elements, and descriptors describe multiples of 32"),
        (Product("tcgen05.scaled", 128, 64, 64, types=FP8, turned=NT, beside="g"), "S is not in shared memory"),
    ),
}  # fmt: skip
LEGAL = re.compile(r"\b([MNK]|threads)=(\d+)")


def legal(reason: str) -> list[dict[str, int]]:
    """Yield each legal value of a reason alone; tables name values without their axis."""
    return [{name: int(value)} for name, value in LEGAL.findall(reason.rpartition("nearest legal: ")[2])]


@pytest.mark.parametrize("name", REFUSED)
def test_the_reason_is_the_true_one(name):
    for product, reason in REFUSED[name]:
        answer = product.answer()
        assert isinstance(answer, Reject), product
        assert answer.reason == reason, product
        for change in legal(reason):
            other = replace(product, **change).answer()
            assert isinstance(other, Accept), (product, change, other)


#: What products are drawn from, by variant: rows, columns, K, threads, types and orientations.
TYPES = {
    "wgmma": ((HALF, (False, False)), (HALF, NT), (INT8, NT), (FP8, NT)),
    "wgmma.sp": ((HALF, (False, False)), (HALF, NT), (INT8, NT)),
    "tcgen05": ((HALF, (False, False)), (HALF, NT), (INT8, NT)),
    "tcgen05.sp": ((HALF, (False, False)), (HALF, NT), (INT8, NT)),
    "tcgen05.scaled": ((FP8, NT),),
}


def drawn(name: str, rng: np.random.Generator) -> Product:
    types, turned = TYPES[name][rng.integers(len(TYPES[name]))]
    m, n, k = 64 * rng.integers(1, 9), 8 * rng.integers(1, 49), 32 * rng.integers(1, 17)
    tensor = name.startswith("tcgen05")
    first = "s" if rng.integers(3) or name in ("tcgen05.sp", "tcgen05.scaled") else "r"
    return Product(
        name, int(m) * (1 + tensor), int(n) * (1 + tensor), int(k),
        128 if tensor else 128 * int(rng.integers(1, 9)), types, turned, first + "s" + "sst"[rng.integers(3)] * tensor
        + "s" * (not tensor), policy=int(rng.integers(3)), pad=(int(rng.choice([0, 0, 0, 8])), 0),
        attrs=((PROMOTE, 64),) if types == FP8 and rng.integers(2) else (),
    )  # fmt: skip


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("name", TYPES)
def test_values_named_by_reasons_are_accepted(name):
    """Accept each value named by a reason alone, for drawn products."""
    rng, named, accepted = np.random.default_rng(), 0, 0
    for _ in range(300):
        product = drawn(name, rng)
        answer = product.answer()
        accepted += isinstance(answer, Accept)
        for change in legal(answer.reason) if isinstance(answer, Reject) else ():
            named += 1
            other = replace(product, **change).answer()
            assert isinstance(other, Accept), (product, answer, change, other)
    assert named
    assert accepted


def test_one_thread_that_issues_for_others_needs_none_beside_it():
    product = Product("tcgen05", 128, 64, 64, 32, turned=NT, scopes="sst", attrs=((ISSUED, 1),))
    plan = VARIANTS["tcgen05"].plan(product.call())
    assert not isinstance(plan, Reject), plan


def test_plans_are_refused_for_themselves():
    """Request plans without a selected variant: the reasons are the same."""
    for name, answers in REFUSED.items():
        for product, reason in answers:
            call = product.call()
            plan, first = VARIANTS[name].plan(call), VARIANTS[name].refuses(call)
            assert not isinstance(plan, Reject) or first or plan.reason == reason, product


def sparse(m: int, n: int, k: int, threads: int) -> Any:
    """A large sparse product of bytes."""
    size = 4096

    @T.prim_func
    def main(
        A: T.Tensor((size, size // 2), "int8"), E: T.Tensor((size // 16, size), "int16"),
        B: T.Tensor((size, size), "int8"), C: T.Tensor((size, size), "int32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(size, n), T.ceildiv(size, m), threads=threads) as (bx, by):
            A_s, E_s = T.alloc_shared((m, k // 2), "int8"), T.alloc_shared((k // 16, m), "int16")
            B_s, C_f = T.alloc_shared((n, k), "int8"), T.alloc_fragment((m, n), "int32")
            T.clear(C_f)
            for t in T.Pipelined(T.ceildiv(size, k), num_stages=4):
                T.copy(A[by * m, t * k // 2], A_s)
                T.copy(E[t * k // 16, by * m], E_s)
                T.copy(B[bx * n, t * k], B_s)
                T.gemm_sp(A_s, E_s, B_s, C_f, transpose_E=True, transpose_B=True)
            T.copy(C_f, C[by * m, bx * n])

    return main


@pytest.mark.sweep(0.25)
def test_explain_and_the_warning_report_rejected_warpgroup_products():
    with tile.disable_cache(), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        kernel = tile.compile(sparse(192, 256, 128, 384), "cuda:sm_90a")
    reason = "each of 384 threads would need 170 registers for its part of 192 x 256 and has at most 168"
    assert reason in " ".join(str(kernel.explain()).split())
    (said,) = [str(w.message) for w in seen if w.category is SlowTiles]
    assert "registers of each thread, which has at most 168" in said, said
    legal = tile.compile(sparse(192, 248, 128, 384), "cuda:sm_90a")
    assert "wgmma_sp" in legal.source
