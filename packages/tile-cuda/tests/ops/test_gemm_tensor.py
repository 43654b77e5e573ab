"""Products with tensor-memory accumulators: results, machine code, refusals, and detected mistakes."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
import tile_emulator
from tile_core.compiler import lower
from tile_core.errors import TileError
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch

from ..emit.nvrtc import assemble

TARGET = "cuda:sm_100a"
TYPES = {
    "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "tfloat32": np.float32, "int8": np.int8, "uint8": np.uint8,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip


def product(
    m=128, n=64, trips=2, depth=64, a="float16", b=None, c="float32", turned=(False, True), explicit=True, threads=128,
    clear=None, blocks=2,
):  # fmt: skip
    b = b or a
    k = trips * depth

    @T.prim_func
    def main(
        A: T.Tensor((k, m) if turned[0] else (m, k), a), B: T.Tensor((n, k) if turned[1] else (k, n), b),
        C: T.Tensor((blocks, m, n), c),
    ):  # fmt: skip
        with T.Kernel(blocks, threads=threads) as bx:
            S = T.alloc_shared((depth, m) if turned[0] else (m, depth), a)
            R = T.alloc_shared((n, depth) if turned[1] else (depth, n), b)
            F = T.alloc_fragment((m, n), c)
            if clear is None:
                T.clear(F)
            for t in range(trips):
                T.copy(A[t * depth, 0] if turned[0] else A[0, t * depth], S)
                T.copy(B[0, t * depth] if turned[1] else B[t * depth, 0], R)
                if explicit:
                    T.tcgen05_gemm(S, R, F, *turned, clear_accum=False if clear is None else t == 0)
                else:
                    T.gemm(S, R, F, *turned)
            T.copy(F, C[bx, 0, 0])

    return main


def operands(m=128, n=64, trips=2, depth=64, a="float16", b=None, turned=(False, True), seed=0, **_):
    rng, k = np.random.default_rng(seed), trips * depth

    def made(shape, kind):
        return rng.integers(0 if kind == "uint8" else -3, 4, shape).astype(TYPES[kind])

    x, y = made((k, m) if turned[0] else (m, k), a), made((n, k) if turned[1] else (k, n), b or a)
    wide = np.int64 if a in ("int8", "uint8") else np.float64
    p, q = x.astype(wide), y.astype(wide)
    return x, y, (p.T if turned[0] else p) @ (q.T if turned[1] else q)


def check(options=None, target=TARGET, **shape):
    kernel = tile.compile(product(**shape), target, runtime="emulator", options=options)
    a, b, want = operands(**shape)
    kind = TYPES.get(shape.get("c", "float32"), np.dtype(shape.get("c", "float32")))
    c = np.full((shape.get("blocks", 2), *want.shape), 77, kind)
    kernel(a, b, c)
    for one in c:
        np.testing.assert_array_equal(one.astype(want.dtype), want)
    return kernel


SHAPES = {
    "one step": {"trips": 1, "depth": 32, "n": 16}, "rows of 32 bytes": {"depth": 16, "n": 32, "trips": 3},
    "rows of 64 bytes": {"depth": 32, "n": 48}, "rows of 128 bytes": {"n": 128}, "two panels": {"depth": 128, "n": 32},
    "A across": {"turned": (True, True)}, "B across": {"turned": (False, False)},
    "both across": {"turned": (True, False), "n": 192, "depth": 32},
    "B across, 32 bytes": {"turned": (False, False), "n": 16},
    "two tiles": {"m": 256, "n": 96}, "three tiles": {"m": 384, "n": 64}, "most columns": {"n": 208},
    "all columns": {"n": 256}, "four tiles": {"m": 512, "n": 128, "depth": 16},
    "from zero": {"clear": True}, "several blocks": {"blocks": 3},
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.sweep(4)
def test_shapes(shape):
    kernel = check(**SHAPES[shape])
    text = kernel.source[kernel.source.index('extern "C"') :]
    assert ("tcgen05_mma_cta_group_1_kind_f16" in text) is True
    assert "uncalibrated" in kernel.explain()
    assert assemble(kernel.source, "sm_100a") == ""


@pytest.mark.parametrize(
    ("a", "b", "c"),
    [
        ("bfloat16", None, "float32"), ("float16", None, "float16"), ("bfloat16", None, "bfloat16"),
        ("tfloat32", None, "float32"), ("int8", None, "int32"), ("uint8", "int8", "int32"), ("int8", "uint8", "uint32"),
        ("float8_e4m3fn", None, "float32"), ("float8_e5m2", "float8_e4m3fn", "float32"),
        ("float8_e4m3fn", "float8_e5m2", "float16"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a", "sm_110a"])
@pytest.mark.sweep(4)
def test_types(a, b, c, arch):
    shape = {"a": a, "b": b, "c": c, "depth": 64 if a != "tfloat32" else 32, "n": 32}
    if "int8" in a and arch == "sm_103a":
        with pytest.raises(TileError) as caught:
            tile.compile(product(**shape), f"cuda:{arch}", runtime="emulator")
        assert f"the target has no products of {a} in tensor memory" in str(caught.value)
        return
    if c == "uint32":
        a_, b_, want = operands(**shape)
        kernel = tile.compile(product(**shape), f"cuda:{arch}", runtime="emulator")
        out = np.zeros((2, *want.shape), "uint32")
        kernel(a_, b_, out)
        np.testing.assert_array_equal(out[1], want.astype("uint32"))
    else:
        kernel = check(target=f"cuda:{arch}", **shape)
    assert assemble(kernel.source, arch) == ""


@pytest.mark.parametrize("how", [{"completion": "late"}, {"completion": "early", "order": "random", "seed": 3}])
def test_products_by_option_in_other_orders(how):
    shape = {"trips": 3, "n": 32, "explicit": False}
    lowered = lower(product(**shape), make_context(TARGET, {"tcgen05": "always"}), installed()).lowered
    assert "tcgen05_mma_cta_group_1_kind_f16" in lowered.text
    assert not found(lowered.text, lowered, shape, (how,))


def test_without_the_option_products_run_on_warps():
    kernel = tile.compile(product(explicit=False), TARGET, runtime="emulator")
    assert "tcgen05" not in kernel.source
    assert 'the option tcgen05 is "never"' in kernel.explain()


def fed(stages, gathers=False, explicit=True):
    """A product in a loop with a dynamic trip count, of copied or gathered rows."""

    @T.prim_func
    def main(
        A: T.Tensor((256, 256), "float16"), R: T.Tensor((128,), "int32"), B: T.Tensor((256, 64), "float16"),
        C: T.Tensor((128, 64), "float32"), n: T.int32,
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((128, 64), "float16")
            W = T.alloc_shared((64, 64), "float16")
            F = T.alloc_fragment((128, 64), "float32")
            T.clear(F)
            for t in T.Pipelined(n, num_stages=stages):
                if gathers:
                    T.gather(A[0, t * 64], R, S)
                else:
                    T.copy(A[0, t * 64], S)
                T.copy(B[t * 64, 0], W)
                T.gemm(S, W, F, variant="cuda.tcgen05" if explicit else None)
            T.copy(F, C)

    return main


@pytest.mark.parametrize("trips", [0, 1, 2, 4])
@pytest.mark.parametrize(("stages", "gathers"), [(0, False), (2, False), (3, False), (0, True)])
@pytest.mark.parametrize("bulk", ["never", "always"])
@pytest.mark.sweep(4)
def test_loops_feed_products(stages, gathers, bulk, trips):
    rng = np.random.default_rng(trips)
    a, b = (rng.integers(-3, 4, s).astype("float16") for s in ((256, 256), (256, 64)))
    r, c = rng.integers(0, 256, 128).astype("int32"), np.full((128, 64), np.nan, "float32")
    kernel = tile.compile(fed(stages, gathers), TARGET, runtime="emulator", options={"tma": bulk})
    kernel(a, r, b, c, trips)
    rows = a[r] if gathers else a[:128]
    np.testing.assert_array_equal(c, rows[:, : trips * 64].astype("float32") @ b[: trips * 64].astype("float32"))
    if gathers and bulk == "always":
        assert "tile_gather4" in kernel.source[kernel.source.index('extern "C"') :]
    assert assemble(kernel.source, "sm_100a") == ""


def test_it_means_a_product():
    kernel = tile.compile(product(), TARGET, runtime="emulator")
    a, b, _ = operands()
    kernel.verify(a, b, np.zeros((2, 128, 64), "float32"))


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        ({"m": 64}, "M=64 is not a multiple of the atom 128"),
        ({"n": 24}, "N=24 is not a multiple of the atom 16"),
        ({"n": 8}, "N=8"),
        ({"depth": 24}, "K=24 is not a multiple of the atom 16"),
        ({"threads": 256}, "256 threads execute it; blocks of 128 move accumulators"),
        ({"threads": 64}, "threads=64 is below the limit 128"),
        ({"m": 640, "n": 128, "depth": 16}, "needs 640 columns of tensor memory, which has 512"),
        ({"a": "int8", "c": "int32", "turned": (True, True)}, "adjacent along K only"),
        ({"a": "float8_e4m3fn", "turned": (False, False)}, "adjacent along K only"),
    ],
)
def test_illegal_shapes_are_refused(shape, reason):
    with pytest.raises(TileError) as caught:
        tile.compile(product(**shape), TARGET, runtime="emulator")
    assert caught.value.code == "U104"
    assert reason in str(caught.value)


@pytest.mark.parametrize("shape", [{"n": 224}, {"m": 512, "n": 64}])
def test_wide_tiles_are_refused_without_accumulator_subtiling(shape):
    with pytest.raises(TileError, match="needs more than 208 registers of each thread") as caught:
        tile.compile(product(**shape), TARGET, runtime="emulator", options={"subtiling": "never"})
    assert caught.value.code == "U104"


@pytest.mark.parametrize("target", ["cuda:sm_90a", "cuda:sm_100", "cuda:sm_120a", "cpu"])
def test_targets_without_tensor_memory_refuse_it(target):
    with pytest.raises(TileError) as caught:
        tile.compile(product(), target)
    assert caught.value.code == "U103"


def test_a_role_of_two_warpgroups_is_refused():
    @T.prim_func
    def main(A: T.Tensor((128, 64), "float16"), C: T.Tensor((128, 128), "float32")):
        with T.Kernel(1, threads=384):
            S = T.alloc_shared((128, 64), "float16")
            F = T.alloc_fragment((128, 128), "float32")
            T.copy(A, S)
            with T.ws(0, 1):
                T.tcgen05_gemm(S, S, F, False, True, clear_accum=True)
                T.copy(F, C)

    with pytest.raises(TileError) as caught:
        tile.compile(main, TARGET, runtime="emulator")
    assert caught.value.code == "U104"
    assert "256 threads execute it; blocks of 128 move accumulators" in str(caught.value)


# Seeded mistakes in generated text

SHAPE = {"n": 32, "trips": 3}
IDESC = 1 << 4 | 32 // 8 << 17 | 8 << 24
NUMBERS = r"(\d+), (\d+), (\d+)"
MMA = rf"(tcgen05_mma_cta_group_1_kind_f16\(columns, &S\[0\], ){NUMBERS}(, \d+, &R\[0\], ){NUMBERS}, \d+, (\d+)u, 1\)"
#: The next product of the tile: its operands begin two chunks of 16 bytes behind the first.
SECOND = r"tcgen05_mma_cta_group_1_kind_f16\(columns, &S\[0\], \d+, \d+, \d+, 2,"


def changed(field, value):
    """The descriptors of the first product with another field."""
    fields = {"a_stride": 3, "a_swizzle": 4, "b_stride": 7, "b_swizzle": 8, "kind": 9}
    parts = [rf"\g<{i}>" for i in range(1, 10)]
    parts[fields[field] - 1] = str(value)
    one, two, three, four, five, six, seven, eight, nine = parts
    return f"{one}{two}, {three}, {four}{five}{six}, {seven}, {eight}, 0, {nine}u, 1)"


MISTAKES = {
    "type of A": (MMA, changed("kind", IDESC | 1 << 7)),
    "type of B": (MMA, changed("kind", IDESC | 1 << 10)),
    "type of the accumulator": (MMA, changed("kind", IDESC & ~(1 << 4))),
    "negated": (MMA, changed("kind", IDESC | 1 << 13)),
    "A across": (MMA, changed("kind", IDESC | 1 << 15)),
    "B across": (MMA, changed("kind", IDESC | 1 << 16)),
    "fewer columns": (MMA, changed("kind", IDESC - (2 << 17))),
    "more columns than are allocated": (MMA, changed("kind", IDESC + (4 << 17))),
    "64 rows": (MMA, changed("kind", IDESC - (4 << 24))),
    "sparse": (MMA, changed("kind", IDESC | 4)),
    "a reserved bit": (MMA, changed("kind", IDESC | 1 << 23)),
    "stride of A": (MMA, changed("a_stride", 512)),
    "stride of B": (MMA, changed("b_stride", 2048)),
    "swizzle of A": (MMA, changed("a_swizzle", 4)),
    "swizzle of B": (MMA, changed("b_swizzle", 0)),
    "a swizzle of warpgroups": (MMA, changed("a_swizzle", 1)),
    "one product less": (rf" *{SECOND}.*\n", ""),
    "does not add": (rf"({SECOND}.*)1\);", r"\g<1>0);"),
    "no commit": (r" *tcgen05_commit\w+\(.*\n", ""),
    "commit before the products": (r"( *tcgen05_mma_cta_group_1_kind_f16\(columns, &S\[0\].*\n)", r"COMMIT\1"),
    "no wait": (r" *mbarrier_wait_parity\(&product_done.*\n", ""),
    "always the first phase": (r"(mbarrier_wait_parity\(&product_done\[[^]]*\], )[^;]*;", r"\g<1>0);"),
    "no fence of proxies": (r" *fence_proxy_async_shared_cta\(\);\n", ""),
    "no wait for the accumulator": (r" *tcgen05_wait_ld_sync_aligned\(\);\n", ""),
    "no wait for the stored accumulator": (r" *tcgen05_wait_st_sync_aligned\(\);\n", ""),
    "no barrier before the products": (
        r"(fence_before_thread_sync\(\);\n(?: *fence[^\n]*\n)*) *__syncthreads\(\);\n", r"\1"
    ),
    "entered in every iteration": (r"(.*tcgen05_st_sync\w+32_b32_f32.*\n)(.*\n)(.*for \(int t.*\n)", r"\2\3\1"),
    "not entered": (r" *tcgen05_st_sync\w+32_b32_f32.*\n", ""),
    "not left": (r" *tcgen05_ld_sync\w+32_b32_f32.*\n", ""),
    "left too early": (r"( *const unsigned columns =.*\n)((?:.*\n)+?)( *tcgen05_ld_sync.*\n)", r"\3\1\2"),
    "foreign lanes": (r"\(tid >> 5\)", "((tid >> 5) + 1)"),
    "columns exchanged": (r"(tcgen05_ld_sync_aligned_32x32b_x32_b32_f32\(&F\[0\], tensor_columns\[0\] \+)", r"\1 1u +"),
    "no allocation": (r" *tcgen05_alloc_cta.*\n", ""),
    "an odd allocation": (r"(tcgen05_alloc\w+\(.*, )32\)", r"\g<1>48)"),
    "columns that are not freed": (r" *tcgen05_dealloc.*\n", ""),
    "more columns are freed": (r"(tcgen05_dealloc\w+\(.*, )32\)", r"\g<1>64)"),
    "an allocation by part of a warp": (r"if \(tid < 32\) \{\n( *tcgen05_alloc)", r"if (tid < 16) {\n\1"),
    "two arrivals are counted": (r"(mbarrier_init_shared_cta_b64\(&product_done\[0\], )1\)", r"\g<1>2)"),
    "all threads multiply": (r"if \(tid == 0\) \{\n( *tcgen05_fence_after)", r"{\n\1"),
}  # fmt: skip


def found(text, lowered, shape, orders):
    dialect = dialect_of(Arch.of("sm_100a"))
    a, b, want = operands(**shape)
    for how in orders:
        given = dict(zip("ABC", (a, b, np.full((2, *want.shape), np.nan, "float32")), strict=True))
        given = {p.name: given[p.name] for p in lowered.facts.given}
        result = tile_emulator.run(text, lowered.facts, given, dialect, **how)
        if result.reports or not np.array_equal(result.outputs["C"].reshape(2, *want.shape), np.stack([want] * 2)):
            return True
    return False


ORDERS = ({"completion": "late"}, {"completion": "early", "order": "random", "seed": 5})


@pytest.fixture(scope="module")
def lowered():
    return lower(product(**SHAPE), make_context(TARGET), installed()).lowered


def test_nothing_is_found_in_the_text_as_it_is(lowered):
    assert not found(lowered.text, lowered, SHAPE, ORDERS)


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.sweep(4)
def test_mistakes_in_the_text_are_found(mistake, lowered):
    pattern, new = MISTAKES[mistake]
    cut = lowered.text.index('extern "C"')
    head, body = lowered.text[:cut], lowered.text[cut:]
    new = new.replace(
        "COMMIT", "tcgen05_commit_cta_group_1_mbarrier_arrive_one_shared_cluster_b64(&product_done[0]);\n"
    )
    edited, count = re.subn(pattern, new, body, count=0 if mistake == "foreign lanes" else 1)
    assert count, body
    assert found(head + edited, lowered, SHAPE, ORDERS)
