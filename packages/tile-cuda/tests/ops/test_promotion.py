"""Promotion of partial accumulators of 8-bit floats to float32: results, error bounds, instructions, coverage."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from zoo.launch import lowered

import tile_core as tile
import tile_core.language as T
from tile_core import sparse
from tile_core.errors import TileError
from tile_core.plugins.contexts import make_context
from tile_core.reports import report_json
from tile_core.testing.run import load
from tile_core.testing.strategies import STRATEGIES
from tile_core.testing.tables import products
from tile_core.testing.tables import sparse as sparse_units

from ..emit.nvrtc import assemble
from . import test_gemm_sp_wgmma as of_sparse
from . import test_gemm_wgmma as of_dense
from .test_persistent import gemm, shares

pytestmark = pytest.mark.sweep(6)

TARGET = "cuda:sm_90a"
PROMOTED = {"wgmma": "always", "numerics": "standard"}
E4, E5 = "float8_e4m3fn", "float8_e5m2"
NT = (False, True)
ADDED = re.compile(r"\w+\[[^\]]*\] = \(?\w+\[[^\]]*\] \+ partial\[")
FIRST = re.compile(r"\n +wgmma_m64n\d+k32_\w+_new\(")


DENSE = {
    "one part": (((64, 64, 128), (64, 64, 128), (E4, E4, "float32")), {}),
    "two parts of a product": (((64, 64, 256), (64, 64, 256), (E4, E5, "float32")), {"stages": 1}),
    "a part and a half": (((64, 40, 192), (64, 40, 192), (E5, E4, "float32")), {"stages": 1}),
    "products shorter than a part": (((70, 50, 160), (64, 64, 32), (E4, E4, "float32")), {"stages": 3}),
    "two warpgroups": (((200, 136, 256), (128, 64, 128), (E4, E4, "float32")), {"threads": 256}),
    "beside each other": (((64, 136, 256), (64, 128, 128), (E4, E4, "float16")), {"threads": 256}),
    "in pieces": (((64, 256, 128), (64, 256, 128), (E4, E4, "float32")), {}),
    "more than a piece, no multiple": (((64, 200, 128), (64, 200, 128), (E4, E4, "float32")), {}),
    "two rows of tiles": (((128, 72, 128), (128, 72, 128), (E4, E4, "float32")), {}),
    "a fragment": (((64, 32, 256), (64, 32, 256), (E4, E4, "float32")), {"scope": "fragment", "stages": 1}),
    "this call": (((64, 64, 128), (64, 64, 128), (E4, E4, "float32")),
                  {"options": {"numerics": "standard"}, "variant": "cuda.wgmma"}),
}  # fmt: skip


@pytest.mark.parametrize("name", DENSE)
def test_dense_products(name):
    args, how = DENSE[name]
    source = of_dense.check(*args, **{"turned": NT, "options": PROMOTED, **how}).source
    assert FIRST.search(source)
    assert ADDED.search(source)


@pytest.mark.parametrize("threads", [128, 256])
@pytest.mark.parametrize("k", [64, 128, 256])
def test_sparse_products(k, threads):
    how = {"turned": (False, False, True), "options": PROMOTED, "threads": threads}
    made = of_sparse.check(threads // 2, 72, 256, k, (E4, E5, "float32"), **how)
    assert "  wgmma_sp0_m64n72k64_f32_e4m3_e5m2_ss_new(" in made.source
    assert ADDED.search(made.source)


@pytest.mark.parametrize("clear", [True, None])
def test_a_product_that_clears(clear):
    @T.prim_func
    def main(
        A: T.Tensor((64, 128), E4), B: T.Tensor((64, 128), E4), F: T.Tensor((1,), "int32"),
        C: T.Tensor((64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            A_s, B_s = T.alloc_shared((64, 128), E4), T.alloc_shared((64, 128), E4)
            C_l = T.alloc_fragment((64, 64), "float32")
            T.copy(A, A_s)
            T.copy(B, B_s)
            T.fill(C_l, 7)
            T.gemm(A_s, B_s, C_l, transpose_B=True, clear_accum=clear if clear else F[0] != 0)
            T.copy(C_l, C)

    kernel = tile.compile(main, TARGET, runtime="emulator", options=PROMOTED)
    rng = np.random.default_rng()
    a, b = (rng.integers(-3, 4, (64, 128)).astype(of_dense.NUMPY[E4]) for _ in range(2))
    want = a.astype("float64") @ b.astype("float64").T
    for flag in (1,) if clear else (0, 1):
        out = np.full((64, 64), np.nan, "float32")
        kernel(a, b, np.array([flag], "int32"), out)
        assert np.array_equal(out, want + (0 if flag else 7))


SIGNS = {"one sign": 0.5, "both": -2.0}


@pytest.mark.parametrize("least", SIGNS.values(), ids=SIGNS)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_the_bound_of_the_error(is_sparse, least):
    """Bound the error at K = 8192 by terms of a part, not by K."""
    k, rng = 8192, np.random.default_rng()
    a, b = (rng.uniform(least, 2, shape).astype(of_dense.NUMPY[E4]) for shape in ((64, k), (k, 8)))
    types, turned = (E4, E4, "float32"), (False, False, True)
    if is_sparse:
        a = sparse.prune(a)
        given = [*sparse.compress(a, meta_dtype="int16"), np.ascontiguousarray(b.T)]
        made = of_sparse.program(64, 8, k, 512, types, turned=turned)
    else:
        given = [a, np.ascontiguousarray(b.T)]
        made = of_dense.program((64, 8, k), (64, 8, 512), types, turned=NT)
    a, b = a.astype("float64"), b.astype("float64")
    worst = {}
    for name, option in (("promoted", {"numerics": "standard"}), ("fast", {"numerics": "fast"})):
        kernel = tile.compile(made, TARGET, runtime="emulator", options={"wgmma": "always", **option})
        out = np.full((64, 8), np.nan, "float32")
        kernel(*given, out)
        worst[name] = float(np.max(np.abs(out - a @ b) / (np.abs(a) @ np.abs(b))))
    # A part has 128 terms in four instructions, or two of 64, half of them counting. Each cuts its 33 addends, the sum
    # before it among them, at 2^-13 of the largest, which is the part's sum at most, and that sum to 14 bits.
    assert worst["promoted"] < 34 * (2 if is_sparse else 4) * 2**-13
    assert worst["promoted"] < 2**-10
    # The same instructions lose much more where accumulators are large, as with terms of one sign.
    assert worst["fast"] > (50 if least > 0 else 4) * worst["promoted"]


def test_persistent_kernels_promote_as_well():
    made = gemm((200, 136, 384), (64, 64, 128), (E4, "float32"), stages=2)
    kernel = tile.compile(made, TARGET, runtime="emulator", options={**PROMOTED, "persistent": 3})
    rng = np.random.default_rng()
    a, b = (rng.integers(-3, 4, shape).astype(of_dense.NUMPY[E4]) for shape in ((200, 384), (136, 384)))
    c = np.full((200, 136), 85, "float32")
    kernel(a, b, np.ones(200, "float32"), c)
    np.testing.assert_array_equal(c, a.astype("float64") @ b.astype("float64").T)
    assert shares(kernel)
    assert ADDED.search(kernel.source)


@pytest.mark.sweep(1)
def test_the_report_names_the_cost():
    made = gemm((8192, 8192, 8192), (128, 256, 128), (E4, "bfloat16"), threads=256, stages=4)
    (said,) = [x for x in report_json(made, TARGET, options={"numerics": "standard"})["ops"] if x["op"] == "gemm"]
    assert said["variant"] == "cuda.wgmma"
    assert "each 128 of K, a thread promotes 128 partial accumulators to float32 in 64 registers" in said["note"]
    assert re.search(r"estimated \d+ cycles, \d+ of them for promotion, on mma.sync \d+", said["note"])
    made = gemm((256, 256, 256), (64, 64, 128), (E4, "bfloat16"), threads=128, stages=2)
    (strict,) = [x for x in report_json(made, TARGET, options={"numerics": "strict"})["ops"] if x["op"] == "gemm"]
    assert strict["variant"] == "cuda.simt.gemm"


@T.prim_func
def started_through_a_view(
    A: T.Tensor((64, 128), E4), B: T.Tensor((64, 128), E4), C: T.Tensor((64, 64)),
):  # fmt: skip
    with T.Kernel(1, threads=128):
        a, b = T.alloc_shared((64, 128), E4), T.alloc_shared((64, 128), E4)
        c = T.alloc_fragment((64, 64), "float32")
        v = T.view(c, (64, 64), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.clear(c)
        T.copy(C, v)
        T.gemm(a, b, c, transpose_B=True)
        T.copy(c, C)


def test_an_accumulator_that_a_view_writes_does_not_begin_with_zeros():
    a, b = (np.full((64, 128), 0.125).astype(of_dense.NUMPY[E4]) for _ in range(2))
    c = np.full((64, 64), 10000, "float32")
    kernel = tile.compile(started_through_a_view, TARGET, runtime="emulator", options={"wgmma": "always"})
    kernel(a, b, c)
    assert ADDED.search(kernel.source)
    np.testing.assert_array_equal(c, np.full((64, 64), 10002, "float32"))


def test_other_types_and_targets_are_left_alone():
    for options in ({}, {"numerics": "standard"}):
        made = of_dense.program((64, 64, 64), (64, 64, 32))
        assert "partial" not in tile.compile(made, TARGET, options={"wgmma": "always", **options}).source
    eight = of_dense.program((64, 64, 128), (64, 64, 64), (E4, E4, "float32"), turned=NT)
    texts = {tile.compile(eight, "cuda:sm_89", options=o).source for o in ({}, {"numerics": "standard"})}
    assert len(texts) == 1


@pytest.mark.parametrize("options", [{"persistent": "never"}, {}], ids=["blocks", "persistent"])
def test_large_tiles_keep_their_accumulators_in_registers(options):
    made = gemm((8192, 8192, 8192), (128, 256, 128), (E4, "bfloat16"), threads=256, stages=4)
    report = report_json(made, TARGET, options={"numerics": "standard", **options})
    assert not report["warnings"]
    source = tile.compile(made, TARGET, options={"numerics": "standard", **options}).source
    assert "(C7" not in assemble(source, "sm_90a")
    assert ("setmaxnreg_inc_sync_aligned_u32_232();" in source) == (not options)


def _texts(units: list[Any]) -> list[str]:
    found = []
    for unit in units:
        with contextlib.suppress(TileError):
            found.append(lowered(load(unit.text()), make_context(TARGET, PROMOTED)).text)
    return [t for t in found if ADDED.search(t)]


@pytest.mark.sweep(1)
def test_the_kit_reaches_it():
    units = [u for table in (products, sparse_units) for u in table.units() if "float8_e" in u.text()]
    found = _texts(units)
    assert len(found) >= 3
    assert any("  wgmma_sp0_" in t for t in found)
    assert any("  wgmma_m64" in t for t in found)


@pytest.mark.sweep(8)
def test_the_fuzzer_reaches_it():
    units: list[Any] = []

    @hypothesis.seed(2)
    @settings(max_examples=200, deadline=None, database=None, phases=(Phase.generate,),
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @hypothesis.given(STRATEGIES["tall-products"][0])
    def draw(unit: Any) -> None:
        if "float8_e" in unit.text():
            units.append(unit)

    draw()
    found = _texts(units)
    assert len(found) >= 3
    assert any("  wgmma_sp0_" in t for t in found)
    assert any("  wgmma_m64" in t for t in found)
