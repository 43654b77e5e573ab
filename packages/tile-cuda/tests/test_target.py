"""The table of architectures, held against the assembler, and which text runs on which device."""

import re

import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.launch import GridTooLarge
from tile_core.target import Capabilities
from tile_cuda import build, target
from tile_cuda.options import CudaOptions
from tile_cuda.plugin import tile_detect
from tile_cuda.resolve import detect, parse_target
from tile_cuda.target import FEATURES, make_target
from tile_cuda_runtime import api
from tile_cuda_runtime.architectures import RECORDS, arch_for, nearest, runs_on
from tile_cuda_runtime.errors import DriverFailed, NoDriver, UnknownArchitecture

SHARED = "__shared__ __align__(128) int s[64]; unsigned a = (unsigned)__cvta_generic_to_shared(s);"
ADDRESS = '"r"(a), "l"(x), "r"(0) : "memory"'

#: One instruction that an architecture has exactly if it has the feature. `fp8_sparse_units` is about speed only.
INSTRUCTIONS = {
    "cp_async": f'{SHARED} asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: {ADDRESS}); x[0] = s[1];',
    "mbarrier": f'{SHARED} asm volatile("mbarrier.init.shared.b64 [%0], 16;" :: "r"(a));',
    "fp8_mma": """unsigned d[2], a = x[0];
        asm volatile("mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16 {%0,%1},{%2,%2,%2,%2},{%2,%2},{%0,%1};"
                     : "=r"(d[0]), "=r"(d[1]) : "r"(a)); x[0] = d[0];""",
    "block_scaled_mma": """float d[4]; unsigned a = x[0];
        asm volatile("mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X."
                     "m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0 "
                     "{%0,%1,%2,%3},{%4,%4,%4,%4},{%4,%4},{%0,%1,%2,%3},{%4},{0,0},{%4},{0,0};"
                     : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) : "r"(a)); x[0] = d[0];""",
    "fp4_convert": """unsigned short h;
        asm("{.reg .b8 t; cvt.rn.satfinite.e2m1x2.f32 t, %1, %1; cvt.u16.u8 %0, t;}" : "=h"(h) : "f"(1.0f * x[0]));
        x[0] = h;""",
    "stmatrix": f'{SHARED} asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {{%2}};" :: {ADDRESS});',
    "clusters": 'asm volatile("barrier.cluster.arrive.aligned;");',
    "transactions": f'{SHARED} asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 16;" :: "r"(a));',
    "tma": f"""{SHARED} asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {{%2, %2}}], [%0];" :: {ADDRESS});""",
    "gather4": f"""{SHARED} asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4."
        "mbarrier::complete_tx::bytes [%0], [%1, {{%2, %2, %2, %2, %2}}], [%0];" :: {ADDRESS});""",
    "gather4_cluster": f"""{SHARED} asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4."
        "mbarrier::complete_tx::bytes [%0], [%1, {{%2, %2, %2, %2, %2}}], [%0];" :: {ADDRESS});""",
    "scatter4": f"""{SHARED} asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group "
        "[%1, {{%2, %2, %2, %2, %2}}], [%0];" :: {ADDRESS});""",
    "setmaxnreg": 'asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");',
    "wgmma": 'asm volatile("wgmma.fence.sync.aligned;");',
    "tcgen05": f"""{SHARED} asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;"
        :: "r"(a));""",
    "bf16_arithmetic": 'short h; asm("add.rn.bf16 %0, %1, %1;" : "=h"(h) : "h"((short)x[0])); x[0] = h;',
    "bf16_atomics": 'asm volatile("red.global.add.noftz.bf16 [%0], %1;" :: "l"(x), "h"((short)1));',
    "vector_atomics": 'asm volatile("red.global.add.v4.f32 [%0], {%1, %1, %1, %1};" :: "l"(x), "f"(1.0f));',
}


def assembles(arch, *features):
    body = "".join(f"{{ {INSTRUCTIONS[feature]} }}\n" for feature in features)
    text = f'extern "C" __global__ void k(int* x) {{ {body} }}'
    status, log, _ = build._run(text, build.flags(arch, CudaOptions(opt=0)), "CUBIN")
    assert not re.search(r"kernel.cu\(", log), log  # it is the assembler that refuses
    return status == 0


@pytest.mark.sweep(3)
@pytest.mark.parametrize("arch", RECORDS)
def test_the_table_agrees_with_the_assembler(arch):
    has = RECORDS[arch].features - {"fp8_sparse_units"}
    assert assembles(arch, *sorted(has))
    assert [feature for feature in INSTRUCTIONS if feature not in has and assembles(arch, feature)] == []


def test_every_feature_is_assembled():
    assert set(INSTRUCTIONS) | {"fp8_sparse_units"} == {fact.name for fact in FEATURES}


@pytest.mark.parametrize(
    ("arch", "kib"),
    [("sm_80", 163), ("sm_86", 99), ("sm_87", 163), ("sm_89", 99), ("sm_90a", 227), ("sm_110a", 227), ("sm_120a", 99)],
)
def test_capabilities(arch, kib):
    found = make_target(arch)
    capabilities = found.capabilities
    assert isinstance(capabilities, Capabilities)
    assert (found.text, found.kind, found.backend, found.arch) == (f"cuda:{arch}", "cuda", "cuda", arch)
    assert parse_target(found.text) == found
    assert capabilities.shared_bytes == kib * 1024
    assert capabilities.execution_width == 32
    assert capabilities.vector_bytes == (1, 2, 4, 8, 16)
    assert "float16" not in capabilities.native_dtypes
    assert capabilities.supports_atomic("max", "bfloat16")


def test_architectures_of_one_number_differ():
    def fact(arch, key):
        return make_target(arch).capabilities.fact(key)

    assert (fact("sm_90", target.WGMMA), fact("sm_90a", target.WGMMA), fact("sm_100a", target.WGMMA)) == (0, 1, 0)
    assert (fact("sm_100a", target.TCGEN05), fact("sm_120a", target.TCGEN05)) == (True, False)
    assert ("add", "bfloat16") not in fact("sm_89", target.NATIVE_ATOMICS)
    assert ("add", "bfloat16") in fact("sm_90", target.NATIVE_ATOMICS)
    assert fact("sm_103a", target.COMPUTE) == (10, 3)
    assert (fact("sm_90", target.FORWARD), fact("sm_90a", target.FORWARD)) == (True, False)


def test_a_target_is_data():
    import json

    assert json.dumps(make_target("sm_90a").capabilities.as_dict())


@pytest.mark.parametrize(
    ("found", "near"),
    [
        ("sm_88", "sm_87"), ("sm_75", "sm_80"), ("sm_90b", "sm_90"), ("sm_103", "sm_103a"), ("sm_101a", "sm_100a"),
        ("90a", "sm_90a"), ("sm90a", "sm_90a"), ("hopper", "sm_80"), ("sm_121a", "sm_120a"), ("sm_999", "sm_120"),
    ],
)  # fmt: skip
def test_an_unknown_architecture_names_the_nearest(found, near):
    assert nearest(found) == near
    with pytest.raises(UnknownArchitecture, match=r"\[U701\] .* is not an architecture of target cuda") as caught:
        parse_target(f"cuda:{found}")
    assert f"use cuda:{near}; known: sm_80, sm_86" in str(caught.value)


def test_another_kind_is_not_ours():
    assert parse_target("cpu") is None


@pytest.mark.parametrize(
    ("compute", "arch"),
    [
        ((7, 5), "sm_80"), ((8, 0), "sm_80"), ((8, 8), "sm_87"), ((8, 9), "sm_89"), ((9, 0), "sm_90a"),
        ((10, 0), "sm_100a"), ((10, 1), "sm_100"), ((10, 3), "sm_103a"), ((12, 0), "sm_120a"), ((12, 1), "sm_120"),
        ((13, 0), "sm_80"), ((11, 0), "sm_110a"),
    ],
)  # fmt: skip
def test_the_best_target_of_a_device(compute, arch):
    assert arch_for(compute) == arch


@pytest.mark.parametrize(
    ("arch", "compute", "runs"),
    [
        ("sm_80", (8, 0), True), ("sm_80", (9, 0), True), ("sm_80", (12, 1), True), ("sm_80", (7, 5), False),
        ("sm_90", (8, 9), False), ("sm_90a", (9, 0), True), ("sm_90a", (10, 0), False), ("sm_100a", (12, 0), False),
        ("sm_89", (8, 6), False),
    ],
)  # fmt: skip
def test_which_text_runs_where(arch, compute, runs):
    assert runs_on(arch, compute) is runs


class TestDetection:
    def test_the_current_device(self, monkeypatch):
        monkeypatch.setattr(api, "current_compute", lambda: (9, 0))
        assert detect() == parse_target("cuda") == make_target("sm_90a")

    def test_without_a_device_text_is_for_all(self, monkeypatch):
        monkeypatch.setattr(api, "current_compute", lambda: None)
        assert detect() is None
        assert parse_target("cuda").text == "cuda:sm_80"

    def test_a_driver_that_fails_is_no_device(self, monkeypatch):
        def fails():
            raise api.DriverUnusable("it is broken")

        monkeypatch.setattr(api, "open_driver", fails)
        assert api.current_compute() is None

    @pytest.mark.parametrize(
        "error", [api.Broken("driver and library differ"), api.Failed("cuDeviceGet", 999, "unknown")]
    )
    def test_a_driver_that_does_not_work_is_not_hidden(self, monkeypatch, error):
        """``target="cuda"`` still makes text; ``"auto"`` warns before it looks for other devices."""

        def fails():
            raise error

        monkeypatch.setattr(api, "open_driver", fails)
        assert detect() is None
        assert parse_target("cuda").text == "cuda:sm_80"
        with pytest.raises((NoDriver, DriverFailed), match=r"differ|unknown"):
            tile_detect()


@pytest.mark.parametrize(("grid", "axis", "limit"), [((1, 65536), "y", 65535), ((2, 3, 65536), "z", 65535)])
def test_a_constant_grid_over_the_limits_is_refused_when_compiled(grid, axis, limit):
    def compiled(*extents):
        @T.prim_func
        def k(A: T.Tensor((1,), "int32")):
            with T.Kernel(*extents, threads=32):
                T.fill(A, 1)

        tile.compile(k, "cuda:sm_80", runtime="emulator")

    compiled(*(min(n, limit) for n in grid))
    with pytest.raises(GridTooLarge) as found:
        compiled(*grid)
    assert found.value.code == "U404"
    assert (found.value.facts["axis"], found.value.facts["limit"], found.value.facts["found"]) == (
        axis,
        limit,
        max(grid),
    )
    assert found.value.where.file == __file__
