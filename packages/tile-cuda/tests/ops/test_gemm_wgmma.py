"""``cuda.wgmma`` in whole programs: types, orientations, sizes, warpgroup counts, rejection reasons."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.abi.kernel_text import KernelText, LaunchFacts
from tile_core.errors.lowering import VariantMissing, VariantRefused
from tile_core.layout import Layout, make_swizzled_layout, strided
from tile_cuda.build import build
from tile_cuda.ptx import TABLE, prelude

from ..emit.nvrtc import assemble
from ..emit.test_table import TYPES as DECLARED
from ..emit.test_table import call

pytestmark = pytest.mark.sweep(3)

TARGET, ALWAYS = "cuda:sm_90a", {"wgmma": "always", "numerics": "fast"}
ISSUED = re.compile(r"\n +(wgmma_m64\w+?)(?:_new)?\(")
NUMPY = {"bfloat16": ml_dtypes.bfloat16, "tfloat32": np.float32, "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
         "float8_e5m2": ml_dtypes.float8_e5m2}  # fmt: skip


def program(
    sizes, block, types=("float16", "float16", "float32"), *, turned=(False, False), threads=128, stages=2, policy=0,
    scope="shared", variant=None, pad=None, layout=None, corner=0,
):  # fmt: skip
    """A product in tiles; operands are parts of larger buffers with ``corner``."""
    (m, n, k), (bm, bn, bk), (a_type, b_type, c_type), (ta, tb) = sizes, block, types, turned
    a_tile, b_tile = ((bk, bm) if ta else (bm, bk)), ((bn, bk) if tb else (bk, bn))

    @T.prim_func
    def main(
        A: T.Tensor((k, m) if ta else (m, k), a_type),
        B: T.Tensor((n, k) if tb else (k, n), b_type),
        C: T.Tensor((m, n), c_type),
    ):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (bx, by):
            A_s = T.alloc_shared((a_tile[0] + corner, a_tile[1] + corner), a_type)
            B_s = T.alloc_shared(b_tile, b_type)
            C_l = T.alloc_fragment((bm, bn), c_type)
            if layout is not None:
                T.annotate_layout({B_s: layout})
            T.clear(C_l)
            for t in T.Pipelined(T.ceildiv(k, bk), num_stages=stages):
                T.copy(A[(t * bk, by * bm) if ta else (by * bm, t * bk)], A_s[corner:, corner:])
                T.copy(B[(bx * bn, t * bk) if tb else (t * bk, bx * bn)], B_s)
                if scope == "fragment":
                    A_l = T.alloc_fragment(a_tile, a_type)
                    T.copy(A_s[corner:, corner:], A_l)
                    T.gemm(A_l, B_s, C_l, ta, tb, policy=T.GemmWarpPolicy(policy), variant=variant)
                else:
                    T.gemm(A_s[corner:, corner:], B_s, C_l, ta, tb, policy=T.GemmWarpPolicy(policy), variant=variant)
            T.copy(C_l, C[by * bm, bx * bn])

    return main


def compiled(sizes, block, *args, options=ALWAYS, target=TARGET, **how):
    return tile.compile(program(sizes, block, *args, **how), target, runtime="emulator", options=options)


def issued(kernel):
    """The functions of the instructions, without repetition."""
    return list(dict.fromkeys(ISSUED.findall(kernel.source)))


def check(sizes, block, types=("float16", "float16", "float32"), *, turned=(False, False), options=ALWAYS, **how):
    kernel = compiled(sizes, block, types, turned=turned, options=options, **how)
    (m, n, k), rng = sizes, np.random.default_rng()
    a, b = (
        rng.integers(0 if t == "uint8" else -3, 4, shape).astype(NUMPY.get(t, t))
        for t, shape in zip(types, ((m, k), (k, n)), strict=False)
    )
    out = np.full((m, n), 85, NUMPY.get(types[2], types[2]))
    given = [np.ascontiguousarray(x.T) if transpose else x for x, transpose in zip((a, b), turned, strict=True)]
    kernel(*given, out)
    assert np.array_equal(out.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64))
    assert "(C7" not in assemble(kernel.source, "sm_90a")
    return kernel


PLAIN = Layout((32, 64), strided((32, 64), (64, 1)))
NT, TN, TT = (False, True), (True, False), (True, True)
CASES = {
    "f16": (((100, 72, 136), (64, 32, 64)), {}, "wgmma_m64n32k16_f32_f16_f16_ss_tb"),
    "f16 nt": (((64, 64, 64), (64, 64, 32)), {"turned": NT}, "wgmma_m64n64k16_f32_f16_f16_ss"),
    "f16 tn": (((70, 64, 64), (64, 64, 32)), {"turned": TN}, "wgmma_m64n64k16_f32_f16_f16_ss_ta_tb"),
    "f16 tt": (((128, 50, 50), (128, 40, 32)), {"turned": TT}, "wgmma_m64n40k16_f32_f16_f16_ss_ta"),
    "f16 rows of 16 columns": (((64, 16, 16), (64, 16, 16)), {}, "wgmma_m64n16k16_f32_f16_f16_ss_tb"),
    "f16 rows of 96 bytes": (((64, 48, 48), (64, 48, 48)), {"stages": 1}, "wgmma_m64n48k16_f32_f16_f16_ss_tb"),
    "f16 eight columns": (((64, 8, 32), (64, 8, 32)), {"turned": NT}, "wgmma_m64n8k16_f32_f16_f16_ss"),
    "f16 into f16": (((64, 64, 64), (64, 64, 32), ("float16",) * 3), {}, "wgmma_m64n64k16_f32_f16_f16_ss_tb"),
    "bf16": (((64, 64, 64), (64, 64, 32), ("bfloat16",) * 3), {"turned": TN}, "wgmma_m64n64k16_f32_bf16_bf16_ss_ta_tb"),
    "tf32": (((64, 40, 64), (64, 40, 32), ("tfloat32", "tfloat32", "float32")), {"turned": NT},
             "wgmma_m64n40k8_f32_tf32_tf32_ss"),
    "fp8": (((64, 64, 96), (64, 64, 64), ("float8_e4m3fn", "float8_e5m2", "float32")), {"turned": NT},
            "wgmma_m64n64k32_f32_e4m3_e5m2_ss"),
    "fp8 into bf16": (((64, 24, 64), (64, 24, 32), ("float8_e5m2", "float8_e4m3fn", "bfloat16")), {"turned": NT},
                      "wgmma_m64n24k32_f32_e5m2_e4m3_ss"),
    "int8": (((64, 64, 64), (64, 64, 64), ("int8", "int8", "int32")), {"turned": NT}, "wgmma_m64n64k32_s32_s8_s8_ss"),
    "int8 in two": (((64, 40, 64), (64, 40, 64), ("uint8", "int8", "int32")), {"turned": NT},
                    "wgmma_m64n32k32_s32_u8_s8_ss wgmma_m64n8k32_s32_u8_s8_ss"),
    "uint32": (((64, 16, 64), (64, 16, 32), ("uint8", "uint8", "uint32")), {"turned": NT},
               "wgmma_m64n16k32_s32_u8_u8_ss"),
    "two warpgroups along M": (((128, 128, 64), (128, 128, 32)), {"threads": 256},
                               "wgmma_m64n128k16_f32_f16_f16_ss_tb"),
    "two along N": (((64, 192, 32), (64, 192, 32)), {"threads": 256}, "wgmma_m64n96k16_f32_f16_f16_ss_tb"),
    "two along N by boxes": (((64, 192, 96), (64, 192, 32)),
                             {"threads": 256, "options": {**ALWAYS, "tma": "always"}},
                             "wgmma_m64n96k16_f32_f16_f16_ss_tb"),
    "two of FullCol": (((128, 64, 32), (128, 64, 32)), {"threads": 256, "policy": 2},
                       "wgmma_m64n32k16_f32_f16_f16_ss_tb"),
    "three": (((192, 16, 32), (192, 16, 32)), {"threads": 384}, "wgmma_m64n16k16_f32_f16_f16_ss_tb"),
    "four": (((128, 128, 32), (128, 128, 32)), {"threads": 512, "turned": NT}, "wgmma_m64n64k16_f32_f16_f16_ss"),
    "threads beyond the last": (((64, 64, 32), (64, 64, 32)), {"threads": 224}, "wgmma_m64n64k16_f32_f16_f16_ss_tb"),
    "one warpgroup for 128 rows": (((128, 64, 32), (128, 64, 32)), {}, "wgmma_m64n64k16_f32_f16_f16_ss_tb"),
    "256 columns": (((64, 256, 32), (64, 256, 32)), {}, "wgmma_m64n256k16_f32_f16_f16_ss_tb"),
    "320 columns": (((64, 320, 32), (64, 320, 32)), {},
                    "wgmma_m64n256k16_f32_f16_f16_ss_tb wgmma_m64n64k16_f32_f16_f16_ss_tb"),
    "fragment": (((128, 64, 64), (128, 64, 32)), {"scope": "fragment"}, "wgmma_m64n64k16_f32_f16_f16_rs_tb"),
    "turned fragment": (((128, 32, 64), (128, 32, 32)), {"scope": "fragment", "turned": TN, "threads": 256},
                        "wgmma_m64n32k16_f32_f16_f16_rs_tb"),
    "fragment of fp8": (((64, 32, 64), (64, 32, 64), ("float8_e4m3fn", "float8_e4m3fn", "float32")),
                        {"scope": "fragment", "turned": NT}, "wgmma_m64n32k32_f32_e4m3_e4m3_rs"),
    "fragment of tf32": (((64, 32, 32), (64, 32, 32), ("tfloat32", "tfloat32", "float32")),
                         {"scope": "fragment", "turned": NT}, "wgmma_m64n32k8_f32_tf32_tf32_rs"),
    "fragment of int8": (((64, 32, 64), (64, 32, 64), ("int8", "uint8", "int32")), {"scope": "fragment", "turned": NT},
                         "wgmma_m64n32k32_s32_s8_u8_rs"),
    "four stages": (((64, 64, 224), (64, 64, 32)), {"stages": 4}, "wgmma_m64n64k16_f32_f16_f16_ss_tb"),
    "bulk copies": (((128, 128, 160), (64, 128, 64)), {"stages": 3, "options": {**ALWAYS, "tma": "always"}},
                    "wgmma_m64n128k16_f32_f16_f16_ss_tb"),
    "only this call": (((64, 64, 64), (64, 64, 32)), {"options": None, "variant": "cuda.wgmma"},
                       "wgmma_m64n64k16_f32_f16_f16_ss_tb"),
    "a part of a buffer": (((64, 64, 32), (64, 64, 32)), {"corner": 32, "stages": 1, "variant": "cuda.wgmma"},
                           "wgmma_m64n64k16_f32_f16_f16_ss_tb"),
}  # fmt: skip


@pytest.mark.sweep(6)
@pytest.mark.parametrize("name", CASES)
def test_numbers_and_instructions(name):
    args, how, expected = CASES[name]
    assert issued(check(*args, **how)) == expected.split()


#: Rejection reasons of warpgroup products in ``explain``; another instruction computes the product.
REFUSED = {
    "never": ({"options": {"wgmma": "never"}}, 'the option wgmma is "never"'),
    "rows": ({"block": (48, 64, 32)}, "M=48 is not a multiple of the atom 64"),
    "columns": ({"block": (64, 20, 32)}, "N=20 is not a multiple of the atom 8"),
    "depth": ({"block": (64, 64, 24)}, "K=24 is not a multiple of the atom 16"),
    "a warp less": ({"threads": 96}, "threads=96 is below the limit 128"),
    "a part of a warp": ({"threads": 200}, "threads=200 is not a multiple of 32"),
    "int8 along N": ({"types": ("int8", "int8", "int32"), "block": (64, 64, 64)},
                     "elements of 8 bits are adjacent along K only: B_s"),
    "tf32 along M": ({"types": ("tfloat32", "tfloat32", "float32"), "turned": TT},
                     "elements of 32 bits are adjacent along K only: A_s"),
    "mixed types": ({"types": ("float16", "bfloat16", "float32")}, "float16, bfloat16"),
    "narrow rows of B": ({"block": (64, 24, 32)}, "rows of B_s have 24 elements, N=16 or N=32"),
    "too many registers": ({"block": (128, 256, 32)}, "would need 296 registers M=64 or N=208 or threads=256"),
    "a layout of the user's": ({"layout": make_swizzled_layout((32, 64), 16, 32)}, ""),
    "another layout of the user's": ({"layout": PLAIN}, "a descriptor needs a swizzle of rows"),
}  # fmt: skip


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", REFUSED)
def test_rejected_products_run_on_another_instruction(name):
    how, reason = REFUSED[name]
    given = {"block": (64, 64, 32), **how}
    kernel = check((130, 70, 70), given.pop("block"), given.pop("types", ("float16", "float16", "float32")), **given)
    assert issued(kernel) == ([] if reason else ["wgmma_m64n64k16_f32_f16_f16_ss_tb"])
    assert all(word in kernel.explain() for word in reason.split()), kernel.explain()


def test_an_explicit_call_does_not_fall_back():
    with pytest.raises(VariantRefused, match="M=48 is not a multiple of the atom 64"):
        compiled((48, 64, 32), (48, 64, 32), variant="cuda.wgmma")
    with pytest.raises(VariantRefused, match="needs a swizzle of rows"):
        compiled((64, 64, 32), (64, 64, 32), variant="cuda.wgmma", layout=PLAIN)
    with pytest.raises(VariantMissing):
        compiled((64, 64, 32), (64, 64, 32), variant="cuda.wgmma", target="cuda:sm_80", options=None)


@pytest.mark.sweep(1)
def test_a_second_product_takes_the_first_one_from_registers():
    """Chain products as in attention: accumulators become a register operand of the next product."""

    @T.prim_func
    def main(Q: T.Tensor((128, 64), "float16"), K: T.Tensor((32, 64), "float16"), V: T.Tensor((32, 64), "float16"),
             Out: T.Tensor((128, 64), "float32"), R: T.Tensor((128,), "float32")):  # fmt: skip
        with T.Kernel(1, threads=256):
            Q_s, K_s, V_s = (T.alloc_shared(s, "float16") for s in ((128, 64), (32, 64), (32, 64)))
            S, P = T.alloc_fragment((128, 32), "float32"), T.alloc_fragment((128, 32), "float16")
            total, acc = T.alloc_fragment((128,), "float32"), T.alloc_fragment((128, 64), "float32")
            T.copy(Q, Q_s)
            T.copy(K, K_s)
            T.copy(V, V_s)
            T.gemm(Q_s, K_s, S, transpose_B=True, clear_accum=True)
            for i, j in T.Parallel(128, 32):
                S[i, j] = T.max(S[i, j], 0.0)
            T.reduce_sum(S, total, dim=1)
            T.copy(S, P)
            T.gemm(P, V_s, acc, clear_accum=True)
            T.copy(acc, Out)
            T.copy(total, R)

    kernel = tile.compile(main, TARGET, runtime="emulator", options=ALWAYS)
    q, k, v = (
        np.random.default_rng(n).integers(-2, 3, s).astype("float16")
        for n, s in enumerate(((128, 64), (32, 64), (32, 64)))
    )
    out, rows = np.full((128, 64), 7, "float32"), np.full(128, 7, "float32")
    kernel(q, k, v, out, rows)
    s = np.maximum(q.astype(float) @ k.astype(float).T, 0)
    assert np.array_equal(out, s @ v.astype(float))
    assert np.array_equal(rows, s.sum(1))
    assert issued(kernel) == ["wgmma_m64n32k16_f32_f16_f16_ss", "wgmma_m64n64k16_f32_f16_f16_rs_tb"]


@pytest.mark.sweep(6)
@pytest.mark.parametrize("n", range(8, 257, 8))
def test_every_number_of_columns(n):
    kernel = check((64, n, 32), (64, n, 32), turned=NT, stages=1)
    assert issued(kernel) == [f"wgmma_m64n{n}k16_f32_f16_f16_ss"]


def test_tiles_written_by_threads_are_fenced_before_they_are_read():
    """Fence stores of threads before reads by the asynchronous proxy (peer bug #2634)."""

    @T.prim_func
    def main(A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            A_s, B_s = T.alloc_shared((64, 32), "float16"), T.alloc_shared((32, 64), "float16")
            C_l = T.alloc_fragment((64, 64), "float32")
            T.clear(C_l)
            for trip in T.serial(3):
                for i, j in T.Parallel(64, 32):
                    A_s[i, j] = A[i, j] + T.cast(trip, "float16")
                T.copy(B, B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C)

    kernel = tile.compile(main, TARGET, runtime="emulator", options=ALWAYS)
    assert "wgmma_m64n64k16" in kernel.source
    a, b = np.random.default_rng(1).integers(-3, 4, (64, 32)), np.random.default_rng(2).integers(-3, 4, (32, 64))
    out = np.full((64, 64), 7, "float32")
    kernel(a.astype("float16"), b.astype("float16"), out)
    assert np.array_equal(out, 3 * (a @ b) + 3 * np.ones_like(a) @ b)


@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize("when", ["always", "first", "never"])
def test_a_product_may_start_from_zero_itself(when, kind):
    """Start from zero by the first instructions: accumulators hold NaN, no thread clears registers."""

    @T.prim_func
    def main(A: T.Tensor((64, 96), "float16"), B: T.Tensor((96, 64), "float16"), C: T.Tensor((64, 64), kind)):
        with T.Kernel(1, threads=128):
            A_s, B_s = T.alloc_shared((64, 32), "float16"), T.alloc_shared((32, 64), "float16")
            C_l = T.alloc_fragment((64, 64), kind)
            T.fill(C_l, 1.0 if when == "never" else float("nan"))
            for t in T.Pipelined(3, num_stages=2):
                T.copy(A[0, t * 32], A_s)
                T.copy(B[t * 32, 0], B_s)
                T.gemm(A_s, B_s, C_l, clear_accum={"always": True, "first": t == 0, "never": False}[when])
            T.copy(C_l, C)

    kernel = tile.compile(main, TARGET, runtime="emulator", options=ALWAYS)
    rng, out = np.random.default_rng(), np.full((64, 64), 7, kind)
    a, b = rng.integers(-3, 4, (64, 96)).astype("float16"), rng.integers(-3, 4, (96, 64)).astype("float16")
    kernel(a, b, out)
    from_row = 64 if when == "always" else 0
    expected = a[:, from_row:].astype(float) @ b[from_row:].astype(float) + (when == "never")
    assert np.array_equal(out, expected)
    assert "wgmma_m64n64k16" in kernel.source
    assert kind == "float16" or " = 0.0f;" not in kernel.source
    assert ("_ss_tb_new(&" in kernel.source) == (when == "always")


def test_explain_names_instruction_descriptors_and_swizzle():
    options = {**ALWAYS, "tma": "never"}
    said = compiled((128, 128, 64), (128, 128, 32), threads=256, turned=NT, options=options).explain()
    for words in (
        "wgmma_m64n128k16_f32_f16_f16_ss, 2 x",
        "1 warpgroups of 1 x 16 tiles; A by",
        "descriptor, swizzle 64 bytes; B by",
    ):
        assert words in said


@pytest.mark.sweep(1)
def test_8_bit_float_products_are_wgmma_unless_they_are_strict():
    made = CASES["fp8"]
    assert issued(check(*made[0], **made[1], options={"wgmma": "always"})) == [made[2]]
    kernel = check(*made[0], **made[1], options={"wgmma": "always", "numerics": "strict"})
    assert not issued(kernel)
    assert "it does not add floats in ascending order" in " ".join(kernel.explain().split())


LARGE = {
    "f16 128 x 256 x 64": ((128, 256, 64), {"threads": 256, "stages": 4}),
    "f16 128 x 128 x 64": ((128, 128, 64), {"threads": 128, "stages": 4, "turned": NT}),
    "f16 256 x 128 x 64": ((256, 128, 64), {"threads": 256, "stages": 4, "turned": TN}),
    "bf16 64 x 256 x 64": ((64, 256, 64), {"threads": 128, "stages": 4, "types": ("bfloat16", "bfloat16", "float32")}),
    "fp8 128 x 256 x 128": (
        (128, 256, 128), {"threads": 256, "stages": 4, "turned": NT,
                          "types": ("float8_e4m3fn", "float8_e4m3fn", "float32")}),
    "int8 128 x 256 x 128": (
        (128, 256, 128), {"threads": 256, "stages": 4, "turned": NT, "types": ("int8", "int8", "int32")}),
    "tf32 128 x 256 x 32": (
        (128, 256, 32), {"threads": 256, "stages": 4, "turned": NT, "types": ("tfloat32", "tfloat32", "float32")}),
    "fragment 128 x 128 x 64": ((128, 128, 64), {"threads": 256, "stages": 3, "scope": "fragment"}),
}  # fmt: skip


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", LARGE)
def test_large_products_are_kept_in_registers_and_are_not_serialized(name):
    block, how = LARGE[name]
    kernel = compiled((4096, 4096, 4096), block, **how)
    assert issued(kernel)
    assert "(C7" not in assemble(kernel.source, "sm_90a")
    cubin = build(KernelText(kernel.source, LaunchFacts("main", (), (1, 1, 1), (how["threads"], 1, 1))), "sm_90a")
    assert cubin.spill_bytes == cubin.stack_bytes == 0, cubin


@pytest.mark.sweep(8)
@pytest.mark.parametrize("n", [8, 24, 64, 200, 256])
def test_every_form_of_the_table_assembles(n):
    forms = [f"wgmma_m64n{n}k16_f32_f16_f16_{f}" for f in ("ss", "ss_ta", "ss_tb", "ss_ta_tb", "rs", "rs_tb")]
    forms += [
        f"wgmma_m64n{n}k16_f16_f16_f16_ss",
        f"wgmma_m64n{n}k8_f32_tf32_tf32_rs",
        f"wgmma_m64n{n}k32_f32_e5m2_e4m3_ss",
    ]
    forms += [f"wgmma_m64n{n}k16_f32_bf16_bf16_ss_tb", f"wgmma_m64n{n}k32_f16_e4m3_e4m3_rs"]
    forms += [f"wgmma_m64n{n}k16_f32_f16_f16_ss_ta_tb_new", f"wgmma_sp1_m64n{n}k32_f32_bf16_bf16_rs_new"]
    forms += [f"wgmma_sp0_m64n{n}k64_f32_e4m3_e5m2_ss", f"wgmma_sp1_m64n{n}k32_f32_f16_f16_rs_tb"]
    forms += (
        [f"wgmma_m64n{n}k32_s32_{a}_{b}_ss" for a in ("s8", "u8") for b in ("s8", "u8")]
        if n % 16 == 0 or n < 32
        else []
    )
    text = [*DECLARED, *prelude(forms, "sm_90a"), *(call(TABLE[f], i) for i, f in enumerate(forms))]
    said = assemble("\n".join(text), "sm_90a")
    assert not re.search(r"error|warning : (?!.*C75)", said), said


def in_a_role(first, size, threads, trips=3):
    """Roles of ``size`` threads: one loads the first operand, a second one multiplies."""

    @T.prim_func
    def main(A: T.Tensor((64, 32 * trips), "float16"), B: T.Tensor((32 * trips, 64), "float16"),
             C: T.Tensor((64, 64), "float32")):  # fmt: skip
        with T.Kernel(1, threads=threads):
            A_s, B_s = T.alloc_shared((64, 32), "float16"), T.alloc_shared((32, 64), "float16")
            C_l = T.alloc_fragment((64, 64), "float32")
            with T.ws(*first, size=size):
                T.clear(C_l)
                for t in T.Pipelined(trips, num_stages=2):
                    T.copy(A[0, t * 32], A_s)
                    T.copy(B[t * 32, 0], B_s)
                    T.gemm(A_s, B_s, C_l)
                T.copy(C_l, C)

    return main


@pytest.mark.parametrize(
    ("first", "size", "threads", "taken"),
    [((0,), 128, 256, True), ((1,), 128, 256, True), ((1, 2), 128, 384, True), ((1, 2, 3, 4), 32, 160, False),
     ((2, 3), 64, 256, True), ((1, 2), 64, 256, False)],
)  # fmt: skip
def test_roles_are_warpgroups_if_they_begin_where_one_does(first, size, threads, taken):
    kernel = tile.compile(in_a_role(first, size, threads), TARGET, runtime="emulator", options=ALWAYS)
    assert bool(issued(kernel)) is taken
    a, b = (np.random.default_rng().integers(-3, 4, s).astype("float16") for s in ((64, 96), (96, 64)))
    out = np.full((64, 64), 7, "float32")
    kernel(a, b, out)
    assert np.array_equal(out, a.astype(float) @ b.astype(float))


@pytest.mark.parametrize("policy", [0, 1, 2])
@pytest.mark.parametrize("threads", [256, 512])
def test_blocks_of_64_rows_keep_their_order(policy, threads):
    """Store blocks of 64 rows in order with 8 or more warps along M (#2522)."""
    kernel = check((256, 64, 32), (256, 64, 32), turned=NT, threads=threads, policy=policy)
    assert issued(kernel)


@pytest.mark.sweep(0.25)
def test_a_fragment_stays_moved_where_a_variant_gives_its_call_back():
    """Two fragments beyond a thread's registers, and products whose variant is withdrawn: compilation ends."""
    m, n, steps = 70, 72, 3

    @T.prim_func
    def main(
        A: T.Tensor((m, 64 * steps), "float8_e4m3fn"), B: T.Tensor((n, 64 * steps), "float8_e4m3fn"),
        S: T.Tensor((m, steps), "float32"), C: T.Tensor((m, n), "bfloat16"), D: T.Tensor((m, n), "bfloat16"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((128, 64), "float8_e4m3fn"), T.alloc_shared((128, 64), "float8_e4m3fn")
            part, acc = T.alloc_fragment((128, 128), "float32"), T.alloc_fragment((128, 128), "float32")
            T.clear(acc)
            T.clear(part)
            for o in T.Pipelined(steps, num_stages=1):
                T.copy(A[0, o * 64], a)
                T.copy(B[0, o * 64], b)
                T.gemm(a, b, part, transpose_B=True)
                for i, j in T.Parallel(128, 128):
                    acc[i, j] += part[i, j] * S[i, o]
            T.copy(acc, C[0, 0])
            for i, j in T.Parallel(128, 128):
                D[i, j] = T.cast(T.max(acc[i, j], 0), "bfloat16")

    kernel = tile.compile(main, "cuda:sm_90a", runtime="emulator", options={"persistent": "never"})
    rng = np.random.default_rng()
    a, b = (rng.integers(-1, 2, (rows, 64 * steps)) for rows in (m, n))
    s = np.exp2(rng.integers(-1, 2, (m, steps))).astype(np.float32)
    c, d = (np.full((m, n), np.nan, ml_dtypes.bfloat16) for _ in range(2))
    kernel(a.astype(ml_dtypes.float8_e4m3fn), b.astype(ml_dtypes.float8_e4m3fn), s, c, d)
    added = np.cumsum([a[:, o : o + 64] @ b[:, o : o + 64].T for o in range(0, 64 * steps, 64)], 0)
    exact = sum(p * s[:, [o]] for o, p in enumerate(added)).astype(np.float32)
    np.testing.assert_array_equal(c, exact.astype(ml_dtypes.bfloat16))
    np.testing.assert_array_equal(d, np.maximum(exact, 0).astype(ml_dtypes.bfloat16))
