"""Staged epilogues through shared memory or other lanes: conditions, reasons, results at awkward sizes."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import hypothesis
import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from zoo.launch import lowered

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError
from tile_core.plugins.contexts import make_context
from tile_core.reports import report_json
from tile_core.testing.run import load
from tile_core.testing.strategies import STRATEGIES
from tile_core.testing.tables import products, sparse
from tile_cuda.cost.stores import estimate
from tile_cuda.ptx.lane_transposes import (
    TRANSPOSE_BYTES,
    TRANSPOSE_FLOATS,
    TRANSPOSE_HALVES,
    TRANSPOSE_KEPT,
    TRANSPOSE_PAIRS,
)

pytestmark = pytest.mark.sweep(2)

TARGET = "cuda:sm_90a"
ALWAYS = {"wgmma": "always", "epilogue": "always"}
BOXES = re.compile(r"  cp_async_bulk_tensor_\dd_global_shared")
NUMPY = {name: getattr(ml_dtypes, name) for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2")}


def gemm(
    sizes=(128, 128, 64), block=(64, 64, 32), out="float16", *, threads=128, stages=2, kept=0, then="", where="",
    dynamic=False, scaled=False, batch=0,
):  # fmt: skip
    """A product in tiles; ``then`` names the epilogue, ``where`` the destination."""
    (m, n, k), (bm, bn, bk) = sizes, block
    if dynamic:
        m, n = T.dynamic("m"), T.dynamic("n")
    of_c = (batch, m, n) if batch else (m, n)

    @T.prim_func
    def main(A: T.Tensor((m, k), "float16"), B: T.Tensor((k, n), "float16"), C: T.Tensor(of_c, out)):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (bx, by):
            A_s = T.alloc_shared((bm, bk), "float16")
            B_s = T.alloc_shared((bk, bn), "float16")
            C_l = T.alloc_fragment((bm, bn), "float32")
            if kept:
                K_s = T.alloc_shared((kept,), "uint8")
                for i in T.Parallel(kept):
                    K_s[i] = 1
            T.clear(C_l)
            for t in T.Pipelined(T.ceildiv(k, bk), num_stages=stages):
                T.copy(A[by * bm, t * bk], A_s)
                T.copy(B[t * bk, bx * bn], B_s)
                T.gemm(A_s, B_s, C_l)
            if scaled:
                for i, j in T.Parallel(bm, bn):
                    C_l[i, j] = C_l[i, j] * 2
            if then == "halves":
                C_h = T.alloc_fragment((bm, bn), "float16")
                T.copy(C_l, C_h)
                T.copy(C_h, C[by * bm, bx * bn])
            elif then == "turned":
                D_l = T.alloc_fragment((bm, bn), "float32")
                T.copy(C_l, C[by * bm, bx * bn])
                for i, j in T.Parallel(bm, bn):
                    D_l[i, j] = C_l[bm - 1 - i, j] + 1
                T.copy(D_l, C[by * bm, bx * bn])
            elif where == "loop":
                for b in T.serial(2):
                    T.copy(C_l, C[b, by * bm, bx * bn])
            elif where == "condition":
                if by == 0:
                    T.copy(C_l, C[by * bm, bx * bn])
            elif where == "part":
                T.copy(C_l[: bm // 2, :], C[by * bm, bx * bn])
            elif where == "variant":
                T.copy(C_l, C[by * bm, bx * bn], variant="cuda.copy.loops")
            elif batch:
                T.copy(C_l, C[1, by * bm, bx * bn])
            else:
                T.copy(C_l, C[by * bm, bx * bn])
            if kept:
                for i in T.Parallel(kept):
                    if K_s[i] != 1:
                        C[0, 0] = 0

    return main


def compiled(program, options=ALWAYS):
    return tile.compile(program, TARGET, runtime="emulator", options=options)


def operands(m, n, k):
    rng = np.random.default_rng()
    return tuple(rng.integers(-3, 4, shape).astype("float16") for shape in ((m, k), (k, n)))


def is_staged(kernel):
    return "_staged" in kernel.source


@pytest.mark.parametrize("bulk", ["never", "always"])
@pytest.mark.parametrize("out", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("sizes", [(128, 128, 64), (100, 72, 40), (65, 33, 31), (1, 8, 1), (64, 129, 7)], ids=str)
def test_right_at_awkward_sizes(sizes, out, bulk):
    m, n, k = sizes
    kernel = compiled(gemm(sizes, out=out, stages=3), {**ALWAYS, "tma": bulk})
    assert is_staged(kernel)
    a, b = operands(m, n, k)
    c = np.full((m, n), 85, NUMPY.get(out, out))
    kernel(a, b, c)
    np.testing.assert_array_equal(c.astype("float64"), a.astype("float64") @ b.astype("float64"))


LANES = {"wgmma": "always", "epilogue": "lanes"}


EXCHANGE_CALLS = re.compile(r"  (turn_(?:kept_)?(?:quad|pairs)\w*)\(")
#: Types of results and the columns that lanes exchange at a time.
EXCHANGED = {
    "float16": 32, "bfloat16": 32, "float32": 16, "int32": 16, "float8_e4m3fn": 64, "float8_e5m2": 64, "int8": 64,
}  # fmt: skip


def is_exchanged(kernel):
    return bool(EXCHANGE_CALLS.search(kernel.source))


def as_results(accumulator, out):
    """Convert accumulators to elements of the results; integers saturate."""
    if out == "int8":
        return np.clip(accumulator, -128, 127)
    return accumulator.astype("float32").astype(NUMPY.get(out, out)).astype("float64")


@pytest.mark.parametrize("wgmma", ["always", "never"])
@pytest.mark.parametrize("out", EXCHANGED)
@pytest.mark.parametrize("sizes", [(128, 128, 64), (100, 72, 40), (65, 33, 31), (1, 8, 1), (64, 129, 7)], ids=str)
def test_lanes_exchange_right_at_awkward_sizes(sizes, out, wgmma):
    m, n, k = sizes
    # Two columns of warps, or one of warpgroups, have whole groups of tiles.
    kernel = compiled(
        gemm(sizes, (64, 128, 32) if EXCHANGED[out] == 64 else (64, 64, 32), out), {**LANES, "wgmma": wgmma}
    )
    assert is_exchanged(kernel)
    a, b = operands(m, n, k)
    c = np.full((m, n), 85, NUMPY.get(out, out))
    kernel(a, b, c)
    np.testing.assert_array_equal(c.astype("float64"), as_results(a.astype("float64") @ b.astype("float64"), out))


@pytest.mark.sweep(1)
@pytest.mark.parametrize("out", ["float16", "float32", "float8_e5m2"])
@pytest.mark.parametrize("block", [(64, 96, 32), (128, 64, 32), (128, 128, 32), (192, 32, 32), (64, 48, 32)], ids=str)
@pytest.mark.parametrize("threads", [128, 256, 384])
def test_lanes_of_every_tile(block, threads, out):
    kernel = compiled(gemm((200, 136, 64), block, out, threads=threads), LANES)
    # A lane gets a part of a group of tiles of 8 columns of those that its warps have.
    # As many exchanged floats beside the accumulators may exceed a thread's registers.
    staged = out == "float32" and "float* const C_l_staged" in kernel.source
    assert is_exchanged(kernel) or staged or block[1] % (EXCHANGED[out] * threads // 128)
    a, b = operands(200, 136, 64)
    c = np.full((200, 136), 85, NUMPY.get(out, out))
    kernel(a, b, c)
    np.testing.assert_array_equal(c.astype("float64"), as_results(a.astype("float64") @ b.astype("float64"), out))


@pytest.mark.parametrize("out", ["float32", "bfloat16"])
@pytest.mark.parametrize("stay", [True, False])
def test_persistent_blocks_or_small_budgets_exchange_by_default(stay, out):
    m, n, k = 250, 520, 96
    how = {"stages": 4} if stay else {"stages": 2, "kept": 170_000}
    options = {"wgmma": "always", "persistent": 2 if stay else "never"}
    kernel = compiled(gemm((m, n, k), (128, 256, 32), out, threads=256, **how), options)
    # 128 exchanged floats beside 128 accumulators of persistent blocks exceed a thread's registers: these go through
    # shared memory.
    staged = stay and "float* const C_l_staged" in kernel.source
    assert is_exchanged(kernel) or staged
    assert not (staged and out != "float32")
    assert ("int worker =" in kernel.source) == stay
    a, b = operands(m, n, k)
    c = np.full((m, n), 85, NUMPY.get(out, out))
    kernel(a, b, c)
    np.testing.assert_array_equal(c.astype("float64"), as_results(a.astype("float64") @ b.astype("float64"), out))


@pytest.mark.parametrize("out", ["float16", "float32"])
@pytest.mark.parametrize("where", ["loop", "condition"])
def test_lanes_exchange_in_loops_and_branches(where, out):
    kernel = compiled(
        gemm((128, 120, 64), out=out, where=where, batch=2 if where == "loop" else 0), {"wgmma": "always"}
    )
    assert is_exchanged(kernel)
    a, b = operands(128, 120, 64)
    c = np.full((2, 128, 120) if where == "loop" else (128, 120), 85, out)
    kernel(a, b, c)
    want = np.broadcast_to(a.astype("float64") @ b.astype("float64"), c.shape).copy()
    if where == "condition":
        want[64:] = 85
    np.testing.assert_array_equal(c.astype("float64"), want)


@pytest.mark.parametrize(("m", "n"), [(64, 64), (100, 72), (65, 33)])
def test_sizes_that_a_launch_brings(m, n):
    """Select the general version for a launch size that breaks the specialized version."""
    kernel = compiled(gemm((0, 0, 40), dynamic=True), {})
    a, b = operands(m, n, 40)
    c = np.full((m, n), 85, "float16")
    kernel(a, b, c)
    np.testing.assert_array_equal(c.astype("float64"), a.astype("float64") @ b.astype("float64"))
    assert is_staged(kernel)


@pytest.mark.parametrize("name", ["threads", "halves", "turned", "scaled", "batch"])
def test_every_epilogue_is_right(name):
    how = {
        "threads": {"threads": 256, "block": (128, 64, 32)}, "halves": {"then": "halves"}, "turned": {"then": "turned"},
        "scaled": {"scaled": True}, "batch": {"batch": 2},
    }[name]  # fmt: skip
    kernel = compiled(gemm((128, 120, 64), **how))
    assert is_staged(kernel)
    a, b = operands(128, 120, 64)
    c = np.full((2, 128, 120) if name == "batch" else (128, 120), 85, "float16")
    kernel(a, b, c)
    want = a.astype("float64") @ b.astype("float64")
    if name == "turned":
        want = want.reshape(2, 64, 120)[:, ::-1].reshape(128, 120) + 1
    want = want * 2 if name == "scaled" else want
    np.testing.assert_array_equal((c[1] if name == "batch" else c).astype("float64"), want)


#: Why accumulators are stored by their own threads, and the nearest program without direct stores.
RULES = {
    "the option": ({}, {"epilogue": "never"}, "", {}, {}),
    "rows at odd addresses": ({"sizes": (128, 100, 64)}, {}, "multiples of 8 bytes", {"sizes": (128, 104, 64)},
                              {}),
    "a loop": ({"where": "loop", "batch": 2, "out": "float64"}, ALWAYS, "it is inside of a loop", {"batch": 2}, ALWAYS),
    "24 columns": ({"block": (64, 24, 32)}, LANES, "lanes exchange 32 columns", {"block": (64, 32, 32)}, LANES),
    "24 columns of 32 bits": ({"block": (64, 24, 32), "out": "float32"}, LANES, "lanes exchange 16 columns",
                              {"block": (64, 16, 32), "out": "float32"}, LANES),
    "32 columns of 8 bits": ({"block": (64, 32, 32), "out": "float8_e5m2"}, LANES, "lanes exchange 64 columns",
                             {"block": (64, 64, 32), "out": "float8_e5m2"}, LANES),
    "64 bits": ({"out": "float64"}, LANES, "elements of 8, 16 or 32 bits", {"out": "float32"}, LANES),
    "rows of 32 bits at odd addresses": ({"sizes": (128, 102, 64), "out": "float32"}, {}, "multiples of 8 bytes",
                                         {"sizes": (128, 104, 64), "out": "float32"}, {}),
    "a part": ({"where": "part"}, ALWAYS, "it copies a part of C_l", {}, ALWAYS),
    "a variant": ({"where": "variant"}, ALWAYS, "", {}, ALWAYS),
    "no room": ({"block": (128, 256, 32), "out": "float64", "threads": 256, "kept": 100_000}, ALWAYS,
                "its tile of 262,144 bytes does not fit", {"block": (128, 256, 32), "threads": 256, "kept": 90_000},
                ALWAYS),
    "fewer blocks": ({"block": (64, 256, 16), "out": "float64"}, {"wgmma": "always"}, "fewer blocks would fit",
                     {"block": (64, 256, 64), "stages": 2}, {"wgmma": "always"}),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_each_rule_has_two_sides(name):
    how, options, reason, nearest, same = RULES[name]
    direct = report_json(gemm(**how), TARGET, options={"wgmma": "always", **options})
    staged = report_json(gemm(**nearest), TARGET, options={"wgmma": "always", **same})
    tiles = [[*r["block"]["shared"], *r["block"]["fragments"]] for r in (direct, staged)]
    assert [any(b["name"].endswith("_staged") for b in found) for found in tiles] == [False, True]
    refused = [r["reason"] for op in direct["ops"] for r in op["rejected"] if r["variant"] == "cuda.copy.bulk_store"]
    assert not reason or any(reason in r for r in refused), refused


def test_a_tile_reuses_the_storage_of_the_rings():
    report = report_json(gemm((256, 256, 256), (128, 128, 64), threads=128, stages=3), TARGET)
    (staged,) = (b for b in report["block"]["shared"] if b["name"] == "C_l_staged")
    without = report_json(
        gemm((256, 256, 256), (128, 128, 64), threads=128, stages=3), TARGET, options={"epilogue": "never"}
    )
    assert report["block"]["shared_bytes"] == without["block"]["shared_bytes"]
    assert not staged["conflicts"]


@pytest.mark.parametrize(("bulk", "pattern"), [("always", BOXES), ("never", re.compile(r"\*\(uint4\*\)\(?&C\["))])
def test_whole_rows_are_stored(bulk, pattern):
    options = {"wgmma": "always", "tma": bulk}
    assert pattern.search(compiled(gemm(), options).source)
    assert not pattern.search(compiled(gemm(), {**options, "epilogue": "never"}).source)


def test_products_of_warps_only_by_option():
    options = {"wgmma": "never"}
    assert not is_staged(compiled(gemm(), options))
    assert is_staged(compiled(gemm(), {**options, "epilogue": "always"}))


def _texts(units, options):
    for unit in units:
        with contextlib.suppress(TileError):
            yield lowered(load(unit.text()), make_context(TARGET, options)).text


@pytest.mark.sweep(6)
def test_the_kit_reaches_results_by_way_of_shared_memory_and_orders_of_blocks():
    options = {"wgmma": "always", "rasterization": "always"}
    found = [t for table in (products, sparse) for t in _texts(table.units()[::3], options) if "  wgmma_" in t]
    assert sum("_staged" in t for t in found) >= 3
    assert sum("const int panel" in t for t in found) >= 2
    shared = [t for table in (products, sparse) for t in _texts(table.units(), {"wgmma": "always", "persistent": 2})]
    assert sum("int worker =" in t for t in shared) >= 3
    assert {TRANSPOSE_FLOATS, TRANSPOSE_PAIRS, TRANSPOSE_HALVES, TRANSPOSE_KEPT, TRANSPOSE_BYTES} == {
        n for t in shared for n in EXCHANGE_CALLS.findall(t)
    }


def _drawn(count):
    units: list[Any] = []

    @hypothesis.seed(1)
    @settings(max_examples=count, deadline=None, database=None, phases=(Phase.generate,),
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @hypothesis.given(STRATEGIES["tall-products"][0])
    def draw(unit) -> None:
        units.append(unit)

    draw()
    return units


@pytest.mark.sweep(6)
def test_the_fuzzer_reaches_them():
    units = _drawn(60)
    found = list(_texts(units, {"wgmma": "always", "epilogue": "always", "rasterization": "always"}))
    assert sum("_staged" in t for t in found) >= 10
    assert sum("const int panel" in t for t in found) >= 5
    shared = [t for t in _texts(units, {"wgmma": "always", "numerics": "fast", "persistent": 2}) if "int worker =" in t]
    assert len(shared) >= 3


@pytest.mark.sweep(6)
def test_the_fuzzer_reaches_every_exchange():
    left = {TRANSPOSE_FLOATS, TRANSPOSE_PAIRS, TRANSPOSE_HALVES, TRANSPOSE_BYTES}
    units = {u.text(): u for u in _drawn(450)}.values()
    for text in _texts(units, LANES):
        left.difference_update(EXCHANGE_CALLS.findall(text))
        if not left:
            return
    raise AssertionError(left)


def test_the_estimate_agrees_with_measurements():
    found = estimate((128, 256), 16)
    assert 2_100 <= found.staged <= 2_600
    assert 8_000 <= found.direct <= 9_000
    assert found.is_worth_it
    # 0.3 % of a product that takes 66,000 cycles per tile.
    assert 100 <= found.lanes - found.staged <= 300
    # Half of the instructions that store, and two shuffles for each.
    words = estimate((128, 256), 32)
    assert words.direct == found.direct
    assert 4_224 < words.lanes < 0.6 * words.direct
    assert estimate((128, 256), 64).lanes is None
