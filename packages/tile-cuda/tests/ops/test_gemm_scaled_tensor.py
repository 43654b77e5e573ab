"""``cuda.tcgen05.block_scale``: results, machine code, layout of scales, refusals, and detected mistakes."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
import tile_emulator
from tile_core.compiler import lower
from tile_core.errors import TileError
from tile_core.errors.lowering import VariantMissing
from tile_core.numerics import codecs
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch
from tile_cuda.ops.scale_copies import _layout

from ..emit.nvrtc import assemble

E4M3, E5M2, E2M1, E8M0 = "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "float8_e8m0fnu"
#: (A, B, scales, elements of a block), and the kind.
MXFP8, NVFP4, MXFP4, MXFP4_16 = (
    (E4M3, E4M3, E8M0, 32),
    (E2M1, E2M1, E4M3, 16),
    (E2M1, E2M1, E8M0, 32),
    (E2M1, E2M1, E8M0, 16),
)
KINDS = {
    MXFP8: "mxf8f6f4_block_scale_scale_vec_1X", (E5M2, E4M3, E8M0, 32): "mxf8f6f4_block_scale_scale_vec_1X",
    NVFP4: "mxf4nvf4_block_scale_scale_vec_4X", MXFP4: "mxf4_block_scale_scale_vec_2X",
    MXFP4_16: "mxf4nvf4_block_scale_scale_vec_4X",
}  # fmt: skip
ALWAYS = {"tcgen05": "always"}


def program(
    kind=MXFP8, m=128, n=48, k=256, depth=128, *, stages=2, explicit=False, threads=128, turned=False, coded=True,
    out="float32", unrolled=False,
):  # fmt: skip
    """Return a loop of products; 4-bit codes are packed unless ``coded`` is false."""
    (a, b, scale, block), each = kind, depth // kind[3]
    bytes_ = [2 if t == E2M1 and coded else 1 for t in (a, b)]
    types = ["uint8" if by == 2 else t for t, by in zip((a, b), bytes_, strict=True)]
    formats = {"A_format": a, "B_format": b} if 2 in bytes_ else {}
    product = T.tcgen05_gemm_scaled if explicit else T.gemm_scaled
    trips = T.serial if unrolled else T.Pipelined
    how = {} if unrolled else {"num_stages": stages}
    b_tile, b_whole = ((depth, n), (k, n)) if turned else ((n, depth // bytes_[1]), (n, k // bytes_[1]))
    q_tile, q_whole = ((each, n), (k // block, n)) if turned else ((n, each), (n, k // block))

    @T.prim_func
    def main(
        A: T.Tensor((m, k // bytes_[0]), types[0]), P: T.Tensor((m, k // block), scale), B: T.Tensor(b_whole, types[1]),
        Q: T.Tensor(q_whole, scale), C: T.Tensor((m, n), out),
    ):  # fmt: skip
        with T.Kernel(1, threads=threads):
            S, R = T.alloc_shared((m, depth // bytes_[0]), types[0]), T.alloc_shared(b_tile, types[1])
            p, q, F = T.alloc_shared((m, each), scale), T.alloc_shared(q_tile, scale), T.alloc_fragment((m, n), out)
            T.clear(F)
            for o in trips(k // depth, **how):
                T.copy(A[0, o * (depth // bytes_[0])], S)
                T.copy(B[o * depth, 0] if turned else B[0, o * (depth // bytes_[1])], R)
                T.copy(P[0, o * each], p)
                T.copy(Q[o * each, 0] if turned else Q[0, o * each], q)
                product(S, p, R, q, F, False, not turned, **formats)
            T.copy(F, C)

    return main


def operands(kind=MXFP8, m=128, n=48, k=256, *_, seed=0, **__):
    """Return codes and scales of A and B, and the product; scales have no sign."""
    (a, b, scale, block), rng = kind, np.random.default_rng(seed + n + k)
    found, scaled = [], []
    for lines, dtype in ((m, a), (n, b)):
        x = rng.integers(-3, 4, (lines, k)).astype("float32")
        factors = 2.0 ** rng.integers(-3, 4, (lines, k // block))
        signs = rng.choice([-1.0, 1.0], factors.shape) if scale == E4M3 else 1.0
        codes = codecs.encode(x, dtype)
        found += [codecs.pack4(codes) if dtype == E2M1 else codes, codecs.encode(factors * signs, scale)]
        scaled.append(x.astype(float) * np.repeat(factors, block, axis=1))
    return found, scaled[0] @ scaled[1].T


def check(kind=MXFP8, *args, arch="sm_100a", options=ALWAYS, **how):
    kernel = tile.compile(program(kind, *args, **how), f"cuda:{arch}", runtime="emulator", options=options)
    given, want = operands(kind, *args, **how)
    out = np.full(want.shape, 85, how.get("out", "float32"))
    kernel(*given, out)
    np.testing.assert_array_equal(out.astype(float), want.astype(out.dtype).astype(float))
    assert assemble(kernel.source, arch) == ""
    return kernel


CASES = {
    "one step": (32, 64, 32), "tail of a word": (16, 192, 96), "columns of one word": (64, 128, 128),
    "three words": (48, 768, 384), "most columns": (208, 128, 128),
}  # fmt: skip


@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a", "sm_110a"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.sweep(16)
def test_numbers_and_machine_code(kind, name, arch):
    n, k, depth = CASES[name]
    if kind[0] == E2M1:
        k, depth = 2 * k, 2 * depth
    kernel = check(kind, 128, n, k, depth, arch=arch)
    assert f"tcgen05_mma_cta_group_1_kind_{KINDS[kind]}" in kernel.source


@pytest.mark.sweep(1)
@pytest.mark.parametrize("kind", [MXFP8, NVFP4])
def test_tiles_of_more_rows_and_bulk_copies(kind):
    check(kind, 256, 32, 256, 128, stages=0)
    check(kind, 128, 32, 512, 256, options={**ALWAYS, "tma": "always"}, stages=3)
    check(kind, 128, 32, 128, 128, out="float16")


@pytest.mark.sweep(0.25)
def test_an_explicit_call_is_that_instruction():
    kernel = check(MXFP8, 128, 48, 256, 128, explicit=True, options=None)
    said = " ".join(kernel.explain().split())
    for part in ("cuda.tcgen05.block_scale", "scales in 6 more columns", "1 of 4 at a time", "uncalibrated"):
        assert part in said
    with_barriers = tile.compile(with_barrier(), "cuda:sm_100a", runtime="emulator")
    given, want = operands(MXFP8, 128, 32, 128)
    out = np.zeros(want.shape, "float32")
    with_barriers(*given, out)
    np.testing.assert_array_equal(out, want)


def with_barrier():
    @T.prim_func
    def main(
        A: T.Tensor((128, 128), E4M3), P: T.Tensor((128, 4), E8M0), B: T.Tensor((32, 128), E4M3),
        Q: T.Tensor((32, 4), E8M0), C: T.Tensor((128, 32), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            S, R = T.alloc_shared((128, 128), E4M3), T.alloc_shared((32, 128), E4M3)
            p, q, done = T.alloc_shared((128, 4), E8M0), T.alloc_shared((32, 4), E8M0), T.alloc_barrier(1)
            F = T.alloc_fragment((128, 32), "float32")
            for x, y in ((A, S), (B, R), (P, p), (Q, q)):
                T.copy(x, y)
            T.tcgen05_gemm_scaled(S, p, R, q, F, False, True, clear_accum=True, mbar=done)
            T.mbarrier_wait_parity(done, 0)
            T.copy(F, C)

    return main


def test_nan_scales_and_nan_elements():
    """Propagate NaN scales (e8m0) and elements to rows and columns; other results stay exact."""
    given, want = operands(MXFP8, 128, 32, 128)
    given[1][3, 1], given[3][5, 0], given[0][7, 9] = 255, 255, 0x7F
    want[3], want[:, 5], want[7] = np.nan, np.nan, np.nan
    out = np.zeros(want.shape, "float32")
    tile.compile(program(MXFP8, 128, 32, 128), "cuda:sm_100a", runtime="emulator", options=ALWAYS)(*given, out)
    np.testing.assert_array_equal(out, want)


def test_scales_lie_where_cutlass_copies_them():
    """Match ``tcgen05.cp.32x128b.warpx4`` of CUTLASS: 16 bytes per lane, four scales of four rows.

    Row r has its scales of K at ``r % 32 * 16 + r / 32 * 4`` of 512 bytes (``Sm1xxBlockScaledBasicChunk``), so column c
    of lane l has those of row ``32 c + l``.
    """
    each = 128 // NVFP4[3]
    text = tile.compile(program(NVFP4, k=128, depth=128, stages=0), "cuda:sm_100a", options=ALWAYS).source
    offsets = re.findall(r"&scales\[(\d+)\] = \*\(const unsigned\*\)&p\[(.*)\];", text)
    assert len(offsets) == each
    for column, offset in offsets:
        word, rows = divmod(int(column), 4)
        assert eval(offset, {}, {"lane_row": 77}) == (32 * rows + 77 % 32) * each + 4 * word


@pytest.mark.sweep(0.25)
def test_tiles_of_whole_blocks_are_copied():
    kernel = check(MXFP8, 256, 128, 512, 256)
    assert kernel.source.count("tcgen05_cp_cta_group_1_32x128b_warpx4(columns") == 6
    assert "scales[" not in kernel.source
    layout = _layout((2, 256, 8))
    table = np.asarray(layout.tables()["memory"]).reshape(2, 256, 8)
    for slot, row, k in ((0, 0, 0), (0, 37, 3), (1, 200, 6), (1, 255, 7)):
        chunk = k // 4 * 2 + row // 128
        assert table[slot, row, k] == slot * 2048 + chunk * 512 + row % 32 * 16 + row % 128 // 32 * 4 + k % 4


def test_columns_of_b_that_are_no_whole_block_are_written_by_threads():
    source = check(MXFP8, 128, 48, 256, 128).source
    assert source.count("tcgen05_cp_cta_group_1_32x128b_warpx4(columns") == 1
    assert "unsigned scales[2];" in source


@pytest.mark.sweep(0.25)
def test_scales_that_threads_make_are_seen_by_their_copy():
    """Find a missing proxy fence before a product with scales (tilelang #2634)."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 128), E4M3), X: T.Tensor((128, 4), "float32"), B: T.Tensor((128, 128), E4M3),
        C: T.Tensor((128, 128), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            S, R, p = T.alloc_shared((128, 128), E4M3), T.alloc_shared((128, 128), E4M3), T.alloc_shared((128, 4), E8M0)
            F = T.alloc_fragment((128, 128), "float32")
            T.copy(A, S)
            T.copy(B, R)
            T.clear(F)
            for t in T.serial(2):
                for i, j in T.Parallel(128, 4):
                    p[i, j] = T.cast(X[i, j] * (t + 1.0), E8M0)
                T.tcgen05_gemm_scaled(S, p, R, p, F, False, True)
            T.copy(F, C)

    made = lower(main, make_context("cuda:sm_100a"), installed()).lowered
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-3, 4, (128, 128)).astype("float32") for _ in "AB")
    x = 2.0 ** rng.integers(-3, 4, (128, 4)).astype("float32")
    wide = [m.astype(float) * np.repeat(x, 32, axis=1) for m in (a, b)]
    want = 5 * wide[0] @ wide[1].T  # by the scales, and by twice the scales
    given = {"A": codecs.encode(a, E4M3), "X": x.astype("float32"), "B": codecs.encode(b, E4M3)}
    for fence in (True, False):
        text = made.text if fence else re.sub(r" *fence_proxy_async_shared_cta\(\);\n", "", made.text)
        arrays = given | {"C": np.full((128, 128), np.nan, "float32")}
        arrays = {p.name: arrays[p.name] for p in made.facts.given}
        result = tile_emulator.run(text, made.facts, arrays, dialect_of(Arch.of("sm_100a")))
        right = not result.reports and np.array_equal(result.outputs["C"].reshape(128, 128), want)
        assert right == fence
    assert "tcgen05_cp" in made.text


REFUSED = {
    "64 rows": ({"m": 64}, "M=64 is not a multiple of the atom 128"),
    "24 columns": ({"n": 24}, "N=24 is not a multiple of the atom 16"),
    "B across": ({"turned": True, "n": 64}, r"adjacent along K only: R_stages would have to be \(N, K\)"),
    "elements of 4 bits in bytes": ({"kind": MXFP4, "coded": False}, "its own; declare it as uint8, with A_format="),
    "mixed widths": ({"kind": (E4M3, E2M1, E8M0, 32), "coded": False}, "declare it as uint8, with B_format="),
    "mixed widths, coded": ({"kind": (E4M3, E2M1, E8M0, 32)}, f"no instruction for the types A {E4M3}, B {E2M1}"),
    "blocks of 64": ({"kind": (E4M3, E4M3, E8M0, 64)}, f"{E8M0} for blocks of 64 elements; .* {E8M0} for 32"),
    "scales of another type": ({"kind": (E4M3, E4M3, E4M3, 32)}, f"{E4M3} for blocks of 32 elements"),
    "blocks of 32 with e4m3": ({"kind": (E2M1, E2M1, E4M3, 32)}, f"{E8M0} for 32, {E8M0} for 16, {E4M3} for 16"),
    "fnuz": ({"kind": ("float8_e4m3fnuz", E4M3, E8M0, 32)}, "no instruction for the types A float8_e4m3fnuz"),
    "256 threads": ({"threads": 256}, "256 threads execute it; blocks of 128 move accumulators"),
    "too many columns": ({"m": 256, "n": 288}, "256 x 288 accumulator needs 576 columns of tensor memory"),
    "too many columns of scales": ({"m": 256, "n": 256}, "it needs 512 accumulator columns and two sets of 16"),
    "K of half a step": ({"kind": MXFP4, "k": 64, "depth": 32}, "K=32 is not a multiple of the atom 64"),
}  # fmt: skip


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("name", REFUSED)
def test_illegal_shapes_are_refused(name):
    change, reason = REFUSED[name]
    with pytest.raises(TileError, match=reason):
        tile.compile(program(**change, explicit=True), "cuda:sm_100a", runtime="emulator")


def test_scales_elsewhere_than_in_shared_memory_are_refused():
    @T.prim_func
    def main(P: T.Tensor((128, 2), E8M0), C: T.Tensor((128, 128), "float32")):
        with T.Kernel(1, threads=128):
            S, F = T.alloc_shared((128, 64), E4M3), T.alloc_fragment((128, 128), "float32")
            T.clear(S)
            T.tcgen05_gemm_scaled(S, P, S, P, F, False, True, clear_accum=True)
            T.copy(F, C)

    with pytest.raises(TileError, match="P is not in shared memory"):
        tile.compile(main, "cuda:sm_100a", runtime="emulator")


@pytest.mark.parametrize("target", ["cuda:sm_90a", "cuda:sm_100", "cuda:sm_120a", "cpu"])
def test_other_targets_refuse_it_by_name(target):
    with pytest.raises(VariantMissing, match=r"cuda\.tcgen05\.block_scale"):
        tile.compile(program(explicit=True), target)


#: Name -> (kind, pattern, new text), in the kernel or, if that does not have the pattern, in the whole text.
_ISSUE = r"(  tcgen05_mma_cta_group_1_kind_\w+\(columns, &\w+\[[^\n]*)"
MISTAKES = {
    "the scales of the first step of A": (MXFP8, r"\b680001552u", "143130640u"),
    "the scales of the first step of B": (MXFP8, r"\b680001552u", "680001536u"),
    "a descriptor with scales of another type": (NVFP4, r"\b(134\d{6})u, 1\)", r"(\1u | 1u << 23), 1)"),
    "powers of two that are none": (MXFP8, r"\b(\d{9})u, 1\)", r"(\1u & ~(1u << 23)), 1)"),
    "rows that the field does not have": (MXFP8, r"\b(\d{9})u, 1\)", r"(\1u | 1u << 24), 1)"),
    "more columns than there are": (MXFP8, r"\b(\d{9})u, 1\)", r"(\1u + (16u << 17)), 1)"),
    "half of the scales": (NVFP4, r"mxf4nvf4\.block_scale\.scale_vec::4X", "mxf4.block_scale.scale_vec::2X"),
    "a byte that no group of scales begins at": (MXFP4, r"\b(12\d{8})u, 1\)", r"(\1u ^ 3u << 29), 1)"),
    "scales of A one column further": (
        MXFP8, _ISSUE + r", columns \+ \(([^\n]*?)32u\), columns", r"\1, columns + (\g<2>33u), columns",
    ),
    "scales of A and B exchanged": (
        MXFP8, r", (columns \+ \([^,]*\)), (columns \+ \([^,]*\)), (\d{9}u)", r", \2, \1, \3",
    ),
    "scales of the first word only": (NVFP4, r"\+ 36u\), columns", "+ 32u), columns"),
    "no wait for stored scales": (
        MXFP8, r"(tcgen05_st_sync\w+_u32[^\n]*\n) *tcgen05_wait_st_sync_aligned\(\);\n", r"\1",
    ),
    "no barrier between scales and products": (
        MXFP8, r"(fence_before_thread_sync\(\);\n[^\n]*\n) *__syncthreads\(\);\n", r"\1",
    ),
    "no fence of proxies": (MXFP8, r" *fence_proxy_async_shared_cta\(\);\n", ""),
    "one set of scales": (MXFP8, r"\(unsigned\)\(products & 1\)", "0u"),
    "no scales": (MXFP8, r" *tcgen05_st_sync\w+_u32[^\n]*\n", ""),
    "no scales of B": (NVFP4, r" *tcgen05_st_sync\w+_u32\(&scales\[[1-9]\d*\][^\n]*\n", ""),
    "scales in one partition of lanes": (
        NVFP4, r"(\n *tcgen05_st_sync\w+_u32\(&scales\[0\])", r"\nif (tid >= 32) scales[1] = 0;\1",
    ),
    "rows of another group": (MXFP8, r"\(lane_row & 31\)", "(lane_row & 15)"),
    "scales with signs": (NVFP4, r" *scales\[\d+\] = scales\[\d+\] & 2139062143u;\n", ""),
    "A of another step": (MXFP8, r"(kind_\w+\(columns, &S\w*\[[^]]*\], \d+, \d+, 2, )2,", r"\g<1>4,"),
    "a swizzle of warpgroups": (MXFP8, r"(columns, &S\w*\[[^]]*\], \d+, \d+, )2,", r"\g<1>1,"),
    "no copy of scales": (MXFP8, r"\n *tcgen05_cp_cta\w+\([^\n]*", ""),
    "scales copied behind the products": (
        MXFP8,
        r"(\n *tcgen05_cp_cta\w+\([^\n]*)((?:\n *tcgen05_mma_\w+\([^\n]*)+)",
        r"\2\1",
    ),
    "scales copied to another column": (MXFP8, r"(tcgen05_cp_cta\w+\(columns \+ \([^,]*)32u\)", r"\g<1>33u)"),
    "scales copied from the next rows": (MXFP8, r"(tcgen05_cp_cta[^\n]*), 0, 128, 0, 0\);", r"\1, 0, 256, 0, 0);"),
    "scales copied by a swizzle": (MXFP8, r"(tcgen05_cp_cta[^\n]*), 0, 128, 0, 0\);", r"\1, 0, 128, 6, 0);"),
    "scales copied from another slot": (MXFP8, r"(tcgen05_cp_cta[^\n]*\[)slot", r"\1(1 - slot)"),
    "no commit": (MXFP8, r" *tcgen05_commit\w+\([^\n]*\n", ""),
    "one product less": (NVFP4, _ISSUE + r"\n", ""),
}  # fmt: skip
ORDERS = ({"completion": "late"}, {"completion": "early", "order": "random", "seed": 5})
SHAPE = (128, 32, 256, 128)


@cache
def lowered(kind):
    return lower(program(kind, *SHAPE), make_context("cuda:sm_100a", ALWAYS), installed()).lowered


def found(kind, text):
    given, want = operands(kind, *SHAPE)
    facts = lowered(kind).facts
    for how in ORDERS:
        arrays = dict(zip("APBQC", (*given, np.full(want.shape, np.nan, "float32")), strict=True))
        arrays = {p.name: arrays[p.name] for p in facts.given}
        result = tile_emulator.run(text, facts, arrays, dialect_of(Arch.of("sm_100a")), **how)
        if result.reports or not np.array_equal(result.outputs["C"].reshape(want.shape), want):
            return True
    return False


@pytest.mark.sweep(1)
@pytest.mark.parametrize("kind", [MXFP8, NVFP4, MXFP4])
def test_nothing_is_found_in_the_text_as_it_is(kind):
    assert not found(kind, lowered(kind).text)


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.sweep(12)
def test_mistakes_in_the_text_are_found(mistake):
    kind, pattern, new = MISTAKES[mistake]
    text = lowered(kind).text
    cut = text.index('extern "C"')
    edited, count = re.subn(pattern, new, text[cut:])
    whole = text[:cut] + edited
    if not count:
        whole, count = re.subn(pattern, new, text)
    assert count, text[cut:]
    assert found(kind, whole)
