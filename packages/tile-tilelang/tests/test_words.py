"""Every name that programs use exists, or is rejected with a replacement."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from expected_errors import raises_error

import tile_core.language
import tile_tilelang
import tile_tilelang.language as T
from tile_core.errors import TileError
from tile_core.errors.language import UnknownName
from tile_tilelang import errors, vectors
from tile_tilelang.spellings import RENAMED
from tile_tilelang.words import HINTS, KEYWORDS, REFUSED

#: Names of the language that programs use, besides those that are tile's own.
USED = """
    alloc_barrier mbarrier_wait_parity mbarrier_arrive mbarrier_expect_tx barrier_wait barrier_arrive
    alloc_tmem tcgen05_gemm tcgen05_gemm_blockscaled tcgen05_mma_arrive tma_copy tma_store_wait
    disable_warp_group_reg_alloc set_max_nreg no_set_max_nreg annotate_producer_reg_dealloc annotate_consumer_reg_alloc
    make_swizzled_layout make_full_bank_swizzled_layout make_half_bank_swizzled_layout make_linear_layout
    ClusterKernel block_rank_in_cluster cluster_sync cluster_arrive cluster_wait alloc_cluster_barrier
    async_copy ptx_commit_group ptx_wait_group thread_binding get_thread_binding wgmma_gemm wait_wgmma
    ws WSSchedule WSRole ws_op PersistentTileScheduler pdl_sync pdl_trigger im2col c2d_im2col
    ptr make_tensor ceildiv alloc_global rng_init rng_rand rng_rand_float
    reducer_init reducer_update finalize_reducer alloc_reducer cast round Cast
    Serial Unroll Vectorized parallel SharedBuffer FragmentBuffer LocalBuffer sync_grid
    atomic_add atomic_or atomic_and atomic_xor clamp align_up empty const Tensor StridedTensor dynamic symbolic
    syncthreads_count syncthreads_and syncthreads_or match_any_sync match_all_sync activemask
    call_extern import_source access_ptr call_intrin call_pure_extern address_of ptx_mma ptx_ldmatrix tvm_mfma
    float32x4 float16x2 int8x16 uint8x32 alloc_buffer decl_buffer match_buffer block reads writes evaluate attr
    Kernel Persistent use_swizzle annotate_layout annotate_safe_value annotate_l2_hit_ratio Layout Fragment
    copy fill clear transpose reshape view gemm gemm_v2 gemm_sp gemm_sp_v2 GemmWarpPolicy
    reduce_sum reduce_max reduce_min reduce_abssum reduce_absmax reduce_bitand reduce_bitor reduce_bitxor
    cumsum Parallel Pipelined serial unroll vectorized grid prim_func macro print device_assert assume
    if_then_else Select any_of all_of infinity max_value min_value exp exp2 log sqrt rsqrt sigmoid max min abs
    alloc_shared alloc_fragment alloc_local alloc_var sync_threads sync_warp shfl_sync shfl_xor shfl_up shfl_down
    WarpSpecialize inline likely func_attr annotate_restrict_buffers annotate_pass_configs annotate_compile_flags
    WSPipeline WSID annotate_ws_schedule clc_try_cancel clc_is_canceled print_var print_msg add2 fma2 extract_lane
    lds128
    make_tensor_from_addr get_thread_extent get_block_extents get_mma_micro_size make_blockscaled_gemm_layout
    comm_reducer
    float4_e2m1_unpacked CUDASourceCodeKernel BufferLoad IntImm index_to_coordinates vectorlow is_float4 __exp
    float16 bfloat16 float32 float8_e4m3fn float8_e5m2 float4_e2m1fn int4 int8 int32 bool
""".split()

#: Names of the host interface that programs use.
HOST = """
    jit compile autotune AutoTuner do_bench cdiv next_power_of_2 disable_cache enable_cache set_log_level Profiler
    TensorSupplyType PassConfigKey JITKernel language autotuner profiler layout testing utils transform par_compile
    lower carver engine contrib tools quantize intrinsics env tvm
""".split()


def answer(holder: object, name: str) -> str:
    """Return the replacement of a name; empty if it exists."""
    found = None
    try:
        getattr(holder, name)
    except TileError as error:
        found = error
    if found is None:
        return ""
    assert isinstance(found, AttributeError)
    assert name in found.message or RENAMED[name] in found.message
    return found.help


@pytest.mark.parametrize("name", USED)
def test_a_word_is_there_or_refused_with_a_remedy(name: str) -> None:
    remedy = answer(T, name)
    assert not remedy or any(w in remedy for w in ("T.", "write", "leave it out", "pass", "pip install", "compare"))
    # Not the answer for unknown names.
    assert "dir(T)" not in remedy
    assert "did you mean" not in remedy


@pytest.mark.parametrize("name", HOST)
def test_a_host_call_is_there_or_refused_with_a_remedy(name: str) -> None:
    assert "has:" not in answer(tile_tilelang, name)


def test_small_floats_saturate_and_round_goes_to_even() -> None:
    @T.prim_func
    def narrowed(
        X: T.Tensor((3, 32), "float32"), Y: T.Tensor((3, 32), "float8_e4m3fn"), Z: T.Tensor((3, 32), "float8_e5m2"),
        R: T.Tensor((3, 32), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=32):
            F = T.alloc_fragment((3, 32), "float32")
            T.copy(X, F)
            T.copy(F, Y[0, 0])
            for i, j in T.Parallel(3, 32):
                Z[i, j] = F[i, j]
                R[i, j] = T.round(F[i, j]) + T.round(F[i, j], "ties-away-from-zero")

    rng = np.random.default_rng()
    x = rng.standard_normal((3, 32)).astype("float32")
    x[0, :8] = 1000, -1e9, np.inf, -np.inf, np.nan, 2.5, -0.5, 6e4
    y, z, r = tile_tilelang.compile(narrowed, out_idx=[1, 2, 3], target="cpu")(x)
    np.testing.assert_array_equal(y.astype("float32"), np.clip(x, -448, 448).astype(y.dtype).astype("float32"))
    np.testing.assert_array_equal(z.astype("float32"), np.clip(x, -57344, 57344).astype(z.dtype).astype("float32"))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(r, np.rint(x) + np.copysign(np.floor(np.abs(x) + 0.5), x))


def test_names_of_tile_are_all_there() -> None:
    """No name of the language is hidden; other objects are spellings that accept more."""
    own = {*dir(T)} - {*dir(tile_core.language)}
    assert {*RENAMED, *HINTS} <= {*dir(T)}
    for name in dir(tile_core.language):
        if not name.startswith("__"):
            assert getattr(T, name) is not None
    assert own <= {*RENAMED, *HINTS, *vectors.__all__, *dir(tile_tilelang.spellings)}


def test_unknown_names_are_refused_as_by_tile() -> None:
    with raises_error(UnknownName, name="alloc_fragmnt") as refused:
        T.alloc_fragmnt  # noqa: B018
    assert "T.alloc_fragment" in refused.value.help
    with pytest.raises(AttributeError, match=r"\[K652\] tilelang\.cdvi"):
        tile_tilelang.cdvi  # noqa: B018


def test_every_refusal_says_why_and_what_to_write() -> None:
    for patterns, (reason, instead) in REFUSED.items():
        assert patterns
        assert reason
        assert instead[0].islower() or instead.startswith("Python")


def test_the_guides_page_lists_the_hints_and_the_errors() -> None:
    page = (Path(__file__).parents[3] / "docs" / "moving-over.md").read_text(encoding="utf-8")
    assert [name for name in HINTS if f"`T.{name}`" not in page] == []
    own = [e for e in vars(errors).values() if getattr(e, "__module__", "") == errors.__name__]
    assert [e.code for e in own if f"| `{e.code}` |" not in page] == []
    assert len(own) == 7


@pytest.mark.parametrize("name", HINTS)
def test_hints_have_reasons_and_do_nothing(name: str) -> None:
    assert HINTS[name]
    if not hasattr(tile_core.language, name):
        assert getattr(T, name)(40, 1) is None


def test_keywords_that_are_dropped_have_reasons() -> None:
    for op, keywords in KEYWORDS.items():
        assert hasattr(tile_core.language, op)
        assert all(keywords.values())


def test_a_keyword_that_is_no_hint_is_still_refused() -> None:
    with pytest.raises(TileError, match="coalesced"):

        @T.prim_func
        def kernel(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=32):
                T.copy(A, B, prefer_instruction="x", coalesced=4)
