"""``cuda.wgmma.sp`` in whole programs: types, orientations, orders and widths of metadata, column counts."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core import sparse
from tile_core.abi.kernel_text import KernelText, LaunchFacts
from tile_core.dtypes import DTYPES
from tile_core.errors.lowering import VariantMissing, VariantRefused
from tile_core.sparse import make_metadata_layout
from tile_cuda.build import build

from ..emit.nvrtc import assemble
from .test_gemm_wgmma import ALWAYS, NUMPY, TARGET

pytestmark = pytest.mark.sweep(3)

ISSUED = re.compile(r"\n +(wgmma_sp\d_m64\w+)\(")
F16 = ("float16", "float16", "float32")


def factor(dtype, meta):
    return DTYPES[meta].bits // 4 * (2 if DTYPES[dtype].bits == 32 else 4)


def program(
    m, n, k, bk, types=F16, meta="int16", *, turned=(False, False, False), threads=128, stages=2, scope="shared",
    order=None, variant=None,
):  # fmt: skip
    """A product of one tile of C; ``turned`` are A, E and B."""
    (a_type, b_type, c_type), (ta, te, tb) = types, turned
    f = factor(a_type, meta)

    def shape(rows, columns, transpose):
        return (columns, rows) if transpose else (rows, columns)

    @T.prim_func
    def main(
        A: T.Tensor(shape(m, k // 2, ta), a_type),
        E: T.Tensor(shape(m, k // f, te), meta),
        B: T.Tensor(shape(k, n, tb), b_type),
        C: T.Tensor((m, n), c_type),
    ):
        with T.Kernel(1, threads=threads):
            A_s = T.alloc_shared(shape(m, bk // 2, ta), a_type)
            E_s = T.alloc_shared(shape(m, bk // f, te), meta)
            B_s = T.alloc_shared(shape(bk, n, tb), b_type)
            C_l = T.alloc_fragment((m, n), c_type)
            if order is not None:
                T.annotate_layout({
                    E: make_metadata_layout(E.shape, meta, order, a_type, bk),
                    E_s: make_metadata_layout(E_s.shape, meta, order, a_type, bk),
                })  # fmt: skip
            T.clear(C_l)
            for t in T.Pipelined(k // bk, num_stages=stages):
                T.copy(A[(t * bk // 2, 0) if ta else (0, t * bk // 2)], A_s)
                T.copy(E[(t * bk // f, 0) if te else (0, t * bk // f)], E_s)
                T.copy(B[(0, t * bk) if tb else (t * bk, 0)], B_s)
                if scope == "fragment":
                    A_l = T.alloc_fragment(shape(m, bk // 2, ta), a_type)
                    T.copy(A_s, A_l)
                    T.gemm_sp(A_l, E_s, B_s, C_l, ta, te, tb, variant=variant)
                else:
                    T.gemm_sp(A_s, E_s, B_s, C_l, ta, te, tb, variant=variant)
            T.copy(C_l, C)

    return main


def check(m, n, k, bk, types=F16, meta="int16", *, turned=(False, False, False), order=None, options=ALWAYS, **how):
    made = program(m, n, k, bk, types, meta, turned=turned, order=order, **how)
    kernel = tile.compile(made, TARGET, runtime="emulator", options=options)
    rng = np.random.default_rng()
    low = 0 if "uint8" in types else -3
    dense, b = (rng.integers(low, 4, s).astype(NUMPY.get(t, t)) for s, t in (((m, k), types[0]), ((k, n), types[1])))
    pruned = sparse.prune(dense)
    kept, metadata = sparse.compress(pruned, meta_dtype=meta, **({"layout": order, "block_k": bk} if order else {}))
    given = [
        np.ascontiguousarray(np.asarray(x).T) if t else x for x, t in zip((kept, metadata, b), turned, strict=True)
    ]
    out = np.full((m, n), 85, NUMPY.get(types[2], types[2]))
    kernel(*given, out)
    assert np.array_equal(out.astype(np.float64), pruned.astype(np.float64) @ b.astype(np.float64))
    assert "(C7" not in assemble(kernel.source, "sm_90a")
    return kernel


def issued(kernel):
    return list(dict.fromkeys(ISSUED.findall(kernel.source)))


FP8, INT8, TF32 = (("float8_e4m3fn", "float8_e5m2", "float32"), ("int8", "int8", "int32"),
                   ("tfloat32", "tfloat32", "float32"))  # fmt: skip
NT = (False, False, True)
CASES = {
    "f16": ((64, 64, 128, 64), {}, "wgmma_sp{}_m64n64k32_f32_f16_f16_ss_tb"),
    "f16 nt": ((64, 32, 128, 64), {"turned": NT}, "wgmma_sp{}_m64n32k32_f32_f16_f16_ss"),
    "f16 across": ((64, 64, 64, 32), {"turned": (True, False, False)}, "wgmma_sp0_m64n64k32_f32_f16_f16_ss_ta_tb"),
    "f16 metadata along K": ((64, 32, 128, 64), {"turned": (False, True, True)}, "wgmma_sp{}_m64n32k32_f32_f16_f16_ss"),
    "f16 in 24 columns": ((64, 24, 128, 128), {"turned": NT}, "wgmma_sp{}_m64n24k32_f32_f16_f16_ss"),
    "f16 in 8 columns": ((128, 8, 128, 128), {"turned": NT, "threads": 256}, "wgmma_sp{}_m64n8k32_f32_f16_f16_ss"),
    "f16 three instructions": ((64, 16, 96, 96), {"meta": "int8", "stages": 1},
                               "wgmma_sp{}_m64n16k32_f32_f16_f16_ss_tb"),
    "f16 int32": ((64, 64, 128, 64), {"meta": "int32"}, "wgmma_sp{}_m64n64k32_f32_f16_f16_ss_tb"),
    "f16 uint8": ((64, 64, 128, 64), {"meta": "uint8"}, "wgmma_sp{}_m64n64k32_f32_f16_f16_ss_tb"),
    "f16 of CUTLASS": ((64, 64, 256, 128), {"meta": "uint8", "order": "cutlass_sm90"},
                       "wgmma_sp{}_m64n64k32_f32_f16_f16_ss_tb"),
    "f16 fragment": ((128, 64, 128, 64), {"scope": "fragment"}, "wgmma_sp{}_m64n64k32_f32_f16_f16_rs_tb"),
    "f16 two warpgroups": ((128, 128, 128, 64), {"threads": 256}, "wgmma_sp{}_m64n128k32_f32_f16_f16_ss_tb"),
    "f16 two along N": ((64, 128, 128, 64), {"threads": 256}, "wgmma_sp{}_m64n64k32_f32_f16_f16_ss_tb"),
    "f16 into f16": ((64, 64, 128, 64, ("float16",) * 3), {}, "wgmma_sp{}_m64n64k32_f32_f16_f16_ss_tb"),
    "bf16": ((64, 40, 64, 64, ("bfloat16", "bfloat16", "bfloat16")), {"turned": NT},
             "wgmma_sp{}_m64n40k32_f32_bf16_bf16_ss"),
    "tf32": ((64, 24, 64, 32, TF32), {"turned": NT}, "wgmma_sp{}_m64n24k16_f32_tf32_tf32_ss"),
    "tf32 fragment": ((64, 24, 64, 32, TF32), {"turned": NT, "scope": "fragment"},
                      "wgmma_sp{}_m64n24k16_f32_tf32_tf32_rs"),
    "fp8": ((64, 32, 256, 128, FP8), {"turned": NT, "meta": "int32"}, "wgmma_sp0_m64n32k64_f32_e4m3_e5m2_ss"),
    "fp8 of CUTLASS": ((64, 32, 256, 128, FP8), {"turned": NT, "meta": "uint8", "order": "cutlass_sm90"},
                       "wgmma_sp0_m64n32k64_f32_e4m3_e5m2_ss"),
    "int8": ((64, 32, 256, 128, INT8), {"turned": NT, "meta": "int16"}, "wgmma_sp0_m64n32k64_s32_s8_s8_ss"),
    "int8 in two": ((64, 40, 128, 64, ("uint8", "int8", "int32")), {"turned": NT, "meta": "int8"},
                    "wgmma_sp0_m64n32k64_s32_u8_s8_ss wgmma_sp0_m64n8k64_s32_u8_s8_ss"),
    "bulk copies": ((64, 64, 256, 64), {"options": {**ALWAYS, "tma": "always"}, "meta": "int32", "stages": 3},
                    "wgmma_sp{}_m64n64k32_f32_f16_f16_ss_tb"),
    "four stages": ((64, 64, 320, 64), {"stages": 4}, "wgmma_sp{}_m64n64k32_f32_f16_f16_ss_tb"),
}  # fmt: skip


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", CASES)
def test_numbers_and_instructions(name):
    args, how, expected = CASES[name]
    names = [x.format(s) for x in expected.split() for s in ((0, 1) if "{}" in x else (0,))]
    assert sorted(issued(check(*args, **how))) == sorted(names)


@pytest.mark.sweep(8)
@pytest.mark.parametrize("n", range(8, 257, 8))
def test_every_number_of_columns(n):
    """Include 8 more than each multiple of 16, wrong in other compilers."""
    kernel = check(64, n, 64, 64, turned=NT, stages=1)
    assert issued(kernel) == [f"wgmma_sp{s}_m64n{n}k32_f32_f16_f16_ss" for s in (0, 1)]


@pytest.mark.sweep(1)
def test_registers_of_metadata_have_a_reader_after_the_wait():
    """Keep registers alive until the wait: the assembler would reuse them after the issue."""
    text = check(128, 64, 256, 128, threads=128, turned=(False, True, True)).source
    _, even, odd = text.split("wgmma_fence_sync_aligned();")[-3:]
    for trip, own, other in ((even, "metadata", "metadata_odd"), (odd, "metadata_odd", "metadata")):
        assert set(re.findall(rf"&{own}\[(\d)\]", trip.split("wgmma_commit")[0])) == {"0", "1", "2", "3"}
        assert re.search(rf"wgmma_wait_group_sync_aligned_1\(\);\s+read_metadata_4\(&{other}\[0\]\);", trip)
    both = "".join(rf"\s+read_metadata_4\(&{name}\[0\]\);" for name in ("metadata", "metadata_odd"))
    assert re.search(rf"wgmma_wait_group_sync_aligned_0\(\);\s+keep_f32_64\(&\w+\[0\]\);{both}", odd)
    assert "setp.eq.u32 p, t, 0; @p pmevent 1;" in text


@pytest.mark.sweep(1)
def test_large_products_are_not_serialized():
    for block, threads in (((128, 256, 64), 256), ((128, 128, 128), 128)):
        made = program(block[0], block[1], 4096, block[2], threads=threads, stages=3)
        kernel = tile.compile(made, TARGET, runtime="emulator", options=ALWAYS)
        assert issued(kernel)
        assert "(C7" not in assemble(kernel.source, "sm_90a")
        cubin = build(KernelText(kernel.source, LaunchFacts("main", (), (1, 1, 1), (threads, 1, 1))), "sm_90a")
        assert cubin.spill_bytes == cubin.stack_bytes == 0, cubin


def test_rejection_reasons():
    with pytest.raises(VariantRefused, match="K=16 is not a multiple of the atom 32"):
        tile.compile(program(64, 64, 16, 16, variant="cuda.wgmma.sp"), TARGET, runtime="emulator")
    made = program(64, 64, 64, 64, INT8, "int16", variant="cuda.wgmma.sp")
    with pytest.raises(VariantRefused, match="adjacent along K only: B_s"):
        tile.compile(made, TARGET, runtime="emulator")
    assert issued(check(64, 64, 64, 64, options={"wgmma": "never"})) == []


def explicit(dtype="float16", m=64):
    @T.prim_func
    def main(
        A: T.Tensor((m, 32), dtype), E: T.Tensor((m, 4), "int16"), B: T.Tensor((64, 64), dtype),
        X: T.Tensor((m, 64), dtype), C: T.Tensor((m, 64), "float32"), D: T.Tensor((m, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            A_s, E_s = T.alloc_shared((m, 32), dtype), T.alloc_shared((m, 4), "int16")
            B_s, X_s = T.alloc_shared((64, 64), dtype), T.alloc_shared((m, 64), dtype)
            C_l, D_l = T.alloc_fragment((m, 64), "float32"), T.alloc_fragment((m, 64), "float32")
            for to, source in ((A_s, A), (E_s, E), (B_s, B), (X_s, X)):
                T.copy(source, to)
            T.wgmma_gemm_sp(A_s, E_s, B_s, C_l, clear_accum=True)
            T.wgmma_gemm(X_s, B_s, D_l, clear_accum=True)
            T.copy(C_l, C)
            T.copy(D_l, D)

    return main


def test_explicit_calls_are_that_instruction_or_refused():
    """Select that instruction whatever the options; the interpreter computes reference semantics."""
    kernel = tile.compile(explicit(), TARGET, runtime="emulator")
    assert "wgmma_m64n64k16_f32_f16_f16_ss_tb(" in kernel.source
    assert "wgmma_sp1_m64n64k32_f32_f16_f16_ss_tb(" in kernel.source
    assert "mma_s" not in kernel.source.replace("wgmma_s", "")
    rng = np.random.default_rng()
    dense, b, x = (rng.integers(-3, 4, (64, 64)).astype("float16") for _ in range(3))
    kept, metadata = sparse.compress(sparse.prune(dense), meta_dtype="int16")
    c, d = np.full((64, 64), 7, "float32"), np.full((64, 64), 7, "float32")
    kernel(kept, metadata, b, x, c, d)
    assert np.array_equal(c, sparse.prune(dense).astype(float) @ b.astype(float))
    assert np.array_equal(d, x.astype(float) @ b.astype(float))
    kernel.verify(kept, metadata, b, x, c, d)
    for target in ("cuda:sm_80", "cuda:sm_90", "cuda:sm_100a", "cpu"):
        with pytest.raises(VariantMissing, match=r"cuda\.wgmma\.sp"):
            tile.compile(explicit(), target)
    with pytest.raises(VariantRefused, match="M=48 is not a multiple of the atom 64"):
        tile.compile(explicit(m=48), TARGET, runtime="emulator")
