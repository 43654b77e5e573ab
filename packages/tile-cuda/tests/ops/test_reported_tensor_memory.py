"""Reported or suspected hazards of a tile compiler on sm_100 and sm_120: right, or refused.

One test for each row of tile-ai/tilelang's issues (the number is the issue's), and for each candidate of its list of
suspicions, #2644, without a reproduction on a device.
"""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
import tile_emulator
from tile_core import sparse
from tile_core.compiler import lower
from tile_core.errors import UnsupportedError
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_cuda import build
from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch
from tile_cuda_runtime.errors import NoNvrtc

from ..emit.nvrtc import assemble

pytestmark = pytest.mark.sweep(12)
TARGET, ALWAYS = "cuda:sm_100a", {"tma": "always", "tcgen05": "always"}
FENCE = "fence_proxy_async_shared_cta();"


def body_of(kernel):
    return kernel.source[kernel.source.index('extern "C"') :]


def ready(program, target=TARGET, options=ALWAYS):
    return tile.compile(program, target, runtime="emulator", options=options)


def small(*shape, dtype="float16"):
    return np.random.default_rng().integers(-3, 4, shape).astype(dtype)


@pytest.mark.parametrize("rows", [[0, 1, 2, 3], [3, 3, 0, 36], [36, 35, 34, 33]])
def test_2601_constant_row_numbers(rows):
    """Any constant row number: the compiler's process ended with a segmentation fault."""

    @T.prim_func
    def main(A: T.Tensor((37, 64), "float16"), B: T.Tensor((4, 64), "float16"), C: T.Tensor((37, 64), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((4, 64), "float16")
            T.tma_gather4(A, S, 0, rows)
            T.copy(S, B)
            if len(set(rows)) == 4:
                T.tma_scatter4(S, C, 0, rows)

    a, b, c = small(37, 64), np.full((4, 64), 77, "float16"), np.full((37, 64), 77, "float16")
    ready(main)(a, b, c)
    assert np.array_equal(b, a[rows])
    if len(set(rows)) == 4:
        assert np.array_equal(c[rows], a[rows])
        assert (np.delete(c, rows, 0) == 77).all()


@pytest.mark.parametrize("role", ["A", "B", "E"])
def test_2634_operands_that_threads_wrote(role):
    """Operands or metadata written by threads, read by another proxy: no fence."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 32), "float16"), E: T.Tensor((128, 4), "int16"), B: T.Tensor((64, 64), "float16"),
        C: T.Tensor((128, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            S, E_s = T.alloc_shared((128, 32), "float16"), T.alloc_shared((128, 4), "int16")
            R, F = T.alloc_shared((64, 64), "float16"), T.alloc_fragment((128, 64), "float32")
            for name, src, dst in (("A", A, S), ("E", E, E_s), ("B", B, R)):
                if name == role:
                    for i, j in T.Parallel(*src.shape):
                        dst[i, j] = src[i, j]
                else:
                    T.copy(src, dst)
            T.gemm_sp(S, E_s, R, F, transpose_B=True, clear_accum=True)
            T.copy(F, C)

    kernel = ready(main)
    text = body_of(kernel)
    product = text.index("  tcgen05_mma_sp_")
    if role != "E":
        assert 0 < text.index(FENCE) < text.rindex("__syncthreads();", 0, product) < product
    dense = sparse.prune(small(128, 64))
    kept, metadata = sparse.compress(dense, meta_dtype="int16")
    b, c = small(64, 64), np.full((128, 64), np.nan, "float32")
    kernel(kept, metadata, b, c)
    assert np.array_equal(c, dense.astype(float) @ b.T.astype(float))


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "int8", "float16"])
@pytest.mark.parametrize("rows", [128, 256])
def test_2644_accumulator_rows_are_in_order(dtype, rows):
    """Store with the row map of another instruction form: exchanged accumulator rows."""
    depth, acc = 64, "int32" if dtype == "int8" else "float32"

    @T.prim_func
    def main(A: T.Tensor((rows, depth), dtype), B: T.Tensor((32, depth), dtype), C: T.Tensor((rows, 32), acc)):
        with T.Kernel(1, threads=128):
            S, R = T.alloc_shared((rows, depth), dtype), T.alloc_shared((32, depth), dtype)
            F = T.alloc_fragment((rows, 32), acc)
            T.copy(A, S)
            T.copy(B, R)
            T.tcgen05_gemm(S, R, F, transpose_B=True, clear_accum=True)
            T.copy(F, C)

    kind = {"float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2}.get(dtype, dtype)
    # Row i of A is the integer i in digits of base 4, and column j of B selects one digit: no two rows are alike.
    digits = np.stack([np.arange(rows) // 4**k % 4 for k in range(4)], 1)
    a, b = np.zeros((rows, depth), kind), np.zeros((32, depth), kind)
    a[:, 8:12], b[np.arange(32), 8 + np.arange(32) % 4] = digits, 1
    c = np.full((rows, 32), 77, acc)
    kernel = ready(main)
    assert "  tcgen05_mma_cta" in body_of(kernel)
    kernel(a, b, c)
    assert np.array_equal(c.astype(int), np.tile(digits, 8))


def test_2644_lanes_are_not_masked():
    """Emit no lane masks: a form of the instruction lost them."""

    @T.prim_func
    def main(A: T.Tensor((128, 64), "float16"), C: T.Tensor((128, 128), "float32")):
        with T.Kernel(1, threads=128):
            S, F = T.alloc_shared((128, 64), "float16"), T.alloc_fragment((128, 128), "float32")
            T.copy(A, S)
            T.gemm(S, S, F, transpose_B=True, clear_accum=True)
            T.copy(F, C)

    instruction = re.findall(r"tcgen05\.mma\.cta_group::1[^;]*", ready(main).source)
    assert instruction
    assert not [text for text in instruction if "{" in text]


def test_2644_a_block_allocates_before_it_uses_columns_and_frees_them():
    """Allocation without waits of other threads or the pair: deadlock of cold launches."""

    @T.prim_func
    def main(A: T.Tensor((128, 64), "float16"), C: T.Tensor((4, 128, 128), "float32")):
        with T.Kernel(4, threads=128) as bx:
            S, F = T.alloc_shared((128, 64), "float16"), T.alloc_fragment((128, 128), "float32")
            T.copy(A, S)
            T.gemm(S, S, F, transpose_B=True, clear_accum=True)
            T.copy(F, C[bx, :, :])

    kernel = ready(main)
    text = body_of(kernel)
    made, used, freed = (text.index(f"  tcgen05_{x}") for x in ("alloc", "mma", "dealloc"))
    assert made < text.index("__syncthreads();", made) < used < text.rindex("__syncthreads();", used, freed) < freed
    a, c = small(128, 64), np.full((4, 128, 128), np.nan, "float32")
    kernel(a, c)
    for one in c:
        assert np.array_equal(one, a.astype(float) @ a.T.astype(float))


PAIRS = {**ALWAYS, "clusters": "pairs"}


def pair(held=False, group=2):
    """A product of two blocks; with ``held`` its A is a fragment for tensor memory."""

    @T.prim_func
    def main(A: T.Tensor((256, 128), "float16"), B: T.Tensor((64, 128), "float16"), C: T.Tensor((256, 64), "float32")):
        with T.Kernel(2, threads=128) as bx:
            S, R = T.alloc_shared((128, 32), "float16"), T.alloc_shared((64, 32), "float16")
            P, F = T.alloc_fragment((128, 32), "float16"), T.alloc_fragment((128, 64), "float32")
            T.clear(F)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[bx * 128, k * 32], S)
                T.copy(B[0, k * 32], R)
                if held:
                    T.copy(S, P)
                T.tcgen05_gemm(P if held else S, R, F, transpose_B=True, cta_group=group)
            T.copy(F, C[bx * 128, 0])

    return main


@pytest.mark.sweep(0.25)
def test_2644a_both_blocks_of_a_pair_have_begun_before_they_allocate():
    """Allocation for a pair behind a barrier of one block only: possible deadlock."""
    kernel = ready(pair(), options=PAIRS)
    text = body_of(kernel)
    allocated, freed = (text.index(f"  tcgen05_{name}_cta_group_2_") for name in ("alloc", "dealloc"))
    met = [m.start() for m in re.finditer(r"  barrier_cluster_wait_acquire\(\);", text)]
    assert "tcgen05_" not in text[: met[0]]
    assert met[0] < allocated < text.index("  tcgen05_mma_cta_group_2_") < met[-1] < freed
    a, b, c = small(256, 128), small(64, 128), np.full((256, 64), np.nan, "float32")
    kernel(a, b, c)
    assert np.array_equal(c, a.astype(float) @ b.T.astype(float))
    assert assemble(kernel.source, "sm_100a") == ""


def test_2644b_products_of_pairs_mask_no_lanes_and_read_a_from_shared_memory():
    """Emit no lane masks for pairs, and read A from shared memory."""
    instruction = re.findall(r"tcgen05\.mma\.cta_group::2[^;]*", ready(pair(), options=PAIRS).source)
    assert instruction
    assert not [text for text in instruction if "{" in text or "[%1]" in text]
    with pytest.raises(UnsupportedError, match="no pair of blocks computes it") as caught:
        ready(pair(held=True), options=PAIRS)
    assert caught.value.code == "U104"
    alone = ready(pair(held=True, group=1), options={**ALWAYS, "clusters": "never"})
    assert "_of_held(" in body_of(alone)
    assert not [x for x in re.findall(r"tcgen05\.mma\.cta_group::1[^;]*", alone.source) if "{" in x]


def rows_by_four():
    @T.prim_func
    def main(A: T.Tensor((37, 64), "float16"), B: T.Tensor((37, 64), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((4, 64), "float16")
            T.tma_gather4(A, S, 0, [5, 0, 36, 7])
            T.tma_scatter4(S, B, 0, [1, 2, 3, 4])

    return main


@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a", "sm_110a"])
def test_2129_rows_by_four_where_target_and_toolkit_have_them(arch):
    """Copies of four rows without a guard for supporting targets and toolkits."""
    kernel = ready(rows_by_four(), f"cuda:{arch}", {})
    assert assemble(kernel.source, arch) == ""
    a, b = small(37, 64), np.full((37, 64), 77, "float16")
    kernel(a, b)
    assert np.array_equal(b[1:5], a[[5, 0, 36, 7]])
    assert (np.delete(b, range(1, 5), 0) == 77).all()


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "cuda:sm_100", "cuda:sm_120a"])
def test_2129_rows_by_four_are_refused_by_targets_that_lack_them(target):
    with pytest.raises(UnsupportedError, match=r"cuda\.(gather|scatter)\.tma4") as caught:
        ready(rows_by_four(), target, {})
    assert caught.value.code == "U103"


def test_2129_an_older_toolkit_is_distinguished_from_a_wrong_text(monkeypatch):
    """Report the toolkit to install for sm_100, not the error of a toolkit before 12.8."""
    lowered = lower(rows_by_four(), make_context(TARGET, {}), installed()).lowered
    assert build.build(lowered, "sm_100a").data[:4] == b"\x7fELF"
    monkeypatch.setattr(build, "known_archs", lambda: (75, 80, 86, 89, 90))
    build._cubin.cache_clear()
    with pytest.raises(NoNvrtc, match="pip install --upgrade nvidia-cuda-nvrtc") as caught:
        build.build(lowered, "sm_100a")
    assert "supports sm_75, sm_80, sm_86, sm_89, sm_90" in str(caught.value)


@pytest.mark.parametrize("target", ["cuda:sm_120a", TARGET])
def test_2699_2703_a_tile_is_cleared_after_its_last_read(target):
    """Bulk store of zeros behind the last read of a tile: no barrier."""

    @T.prim_func
    def main(A: T.Tensor((32, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=64):
            S, F = T.alloc_shared((16, 64), "float16"), T.alloc_fragment((16, 64), "float16")
            for t in T.serial(2):
                T.copy(A[t * 16, 0], S)
                T.copy(S, F)
                T.copy(F, B[t * 32, 0])
                T.clear(S)
                T.copy(S, B[t * 32 + 16, 0])

    a, b = small(32, 64), np.full((64, 64), 77, "float16")
    ready(main, target)(a, b)
    for t in range(2):
        assert np.array_equal(b[t * 32 : t * 32 + 16], a[t * 16 : t * 16 + 16])
        assert (b[t * 32 + 16 : t * 32 + 32] == 0).all()


def test_1804_conditions_of_a_block_are_not_moved():
    """Guards were hoisted out of a loop with the wrong sense."""

    @T.prim_func
    def main(P: T.Tensor((4,), "int32"), A: T.Tensor((128, 64), "float16"), C: T.Tensor((4, 128, 64), "float32")):
        with T.Kernel(4, threads=128) as bx:
            S, F = T.alloc_shared((128, 64), "float16"), T.alloc_fragment((128, 64), "float32")
            T.clear(F)
            for _ in T.serial(4):
                if P[bx] < 2:
                    T.copy(A, S)
                    T.gemm(S, S[0:64, :], F, transpose_B=True)
                if P[bx] % 2 == 0:
                    for i, j in T.Parallel(128, 64):
                        F[i, j] = F[i, j] + 1
            T.copy(F, C[bx, :, :])

    p, a = np.array([0, 1, 2, 3], "int32"), small(128, 64)
    c = np.full((4, 128, 64), np.nan, "float32")
    ready(main)(p, a, c)
    product = a.astype(float) @ a[:64].T.astype(float)
    for one, number in zip(c, p.tolist(), strict=True):
        assert np.array_equal(one, 4 * (product * (number < 2) + (number % 2 == 0)))


@pytest.mark.parametrize("target", ["cuda:sm_120a", TARGET])
@pytest.mark.parametrize("seed", range(4))
def test_2301_a_linear_layer_of_8_bits_ends_in_every_order(target, seed):
    """Tiles of 32 x 32 x 64 by 64 threads: one deadlock in 30,000 launches."""
    dtype = "float8_e4m3fn"

    @T.prim_func
    def main(A: T.Tensor((40, 192), dtype), B: T.Tensor((32, 192), dtype), C: T.Tensor((40, 32), "float32")):
        with T.Kernel(2, threads=64) as by:
            S, R = T.alloc_shared((32, 64), dtype), T.alloc_shared((32, 64), dtype)
            F = T.alloc_fragment((32, 32), "float32")
            T.clear(F)
            for k in T.Pipelined(3, num_stages=2):
                T.copy(A[by * 32, k * 64], S)
                T.copy(B[0, k * 64], R)
                T.gemm(S, R, F, transpose_B=True)
            for i, j in T.Parallel(32, 32):
                F[i, j] = F[i, j] * T.if_then_else(F[i, j] > 0, 1, 0)
            T.copy(F, C[by * 32, 0])

    made = lower(main, make_context(target, ALWAYS), installed()).lowered
    a, b = (small(*s).astype(ml_dtypes.float8_e4m3fn) for s in ((40, 192), (32, 192)))
    given = {"A": a.view("uint8"), "B": b.view("uint8"), "C": np.full((40, 32), np.nan, "float32")}
    order = {"completion": ("late", "early")[seed % 2], "order": "random", "seed": seed}
    arch = dialect_of(Arch.of(target.removeprefix("cuda:")))
    done = tile_emulator.run(made.text, made.facts, {p.name: given[p.name] for p in made.facts.given}, arch, **order)
    assert not done.reports
    want = np.maximum(a.astype(float) @ b.T.astype(float), 0)
    assert np.array_equal(done.outputs["C"].reshape(40, 32), want)


def test_consumer_cards_have_neither_the_memory_nor_the_registers_of_others():
    """Shared memory above 99 KiB, and unsupported `setmaxnreg`, on consumer cards."""

    @T.prim_func
    def large(A: T.Tensor((512, 64), "float32"), B: T.Tensor((512, 64), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((512, 64), "float32")
            T.copy(A, S)
            T.copy(S, B)

    @T.prim_func
    def registers(B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=256), T.ws(0):
            T.set_max_nreg(40, False)
            T.fill(B, 1)

    for program, target, said in ((large, "cuda:sm_120a", "131072"), (registers, "cuda:sm_120", "cuda.setmaxnreg")):
        with pytest.raises(UnsupportedError, match=said):
            tile.compile(program, target)
    assert assemble(ready(large, TARGET).source, "sm_100a") == ""
