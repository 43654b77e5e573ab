"""``tile.tilings`` on Metal targets: proposed configurations compile, and ranks follow from rates and sizes."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from zoo.case import example
from zoo.launch import lowered

import tile_core as tile
import tile_core.language as T
from tile_core.plugins.contexts import make_context
from tile_core.reports import report_json
from tile_core.target import Target
from tile_metal import chips, tilings, versions
from tile_metal.chips import CHIPS, Chip, chip_of
from tile_metal.target import MOST_THREADS, SHARED_BYTES, SIMD

from .ops.kit import numbers, right

METAL, METAL4 = "metal", "metal:metal4"
ATTENTION = {"batch": 1, "heads": 8, "queries": 1024, "keys": 1024, "causal": False}
FACTORIES = {
    "gemm": ("gemm", "matmul", {"M": 1024, "N": 1024, "K": 1024}),
    "few rows": ("gemm", "matmul", {"M": 16, "N": 4096, "K": 4096}),
    "awkward": ("gemm", "matmul", {"M": 33, "N": 50, "K": 97}),
    "4-bit weights": ("dequant_gemm", "dequant_matmul", {"M": 64, "N": 1024, "K": 1024}),
    "8-bit floats": ("fp8_gemm", "row_scaled_matmul", {"M": 512, "N": 512, "K": 512, "fmt": "float8_e4m3fn"}),
    "attention": ("flash_attention", "attention", {**ATTENTION, "dim": 64}),
    "wide attention": ("flash_attention", "attention", {**ATTENTION, "dim": 128}),
}  # fmt: skip


def found(name: str, target: str, **more: object) -> list[tile.Tiling]:
    module, function, sizes = FACTORIES[name]
    return tile.tilings(getattr(example(module), function), {**sizes, **more}, target=target)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("target", [METAL, METAL4])
@pytest.mark.parametrize("name", FACTORIES)
def test_the_best_tilings_compile_within_limits(name, target):
    module, function, sizes = FACTORIES[name]
    ranked = found(name, target)
    times = [one.microseconds for one in ranked]
    assert times == sorted(times)
    assert times[0] > 0
    assert "not measured" in ranked[0].reason
    facts = lowered(getattr(example(module), function)(**sizes, **ranked[0]), make_context(target)).facts
    assert facts.shared_bytes <= SHARED_BYTES
    assert facts.block[0] % SIMD == 0
    assert facts.block[0] <= MOST_THREADS


def test_few_rows_take_few_rows_of_tiles():
    assert found("few rows", METAL)[0]["block_M"] <= 16 < found("gemm", METAL)[0]["block_M"]


@pytest.mark.parametrize("name", ["attention", "wide attention"])
def test_all_simdgroups_of_attention_multiply(name):
    """A simdgroup has 8 rows at least, by tensor operations 16."""
    for target, rows in ((METAL, 8), (METAL4, 16)):
        best = found(name, target)[0]
        assert best["threads"] // SIMD * rows <= best["block_M"]


def test_idle_simdgroups_cost_time():
    """Tensor operations of 32 rows occupy two simdgroups."""
    busy, idle = (found("attention", METAL4, block_M=32, block_N=64, threads=n)[0].microseconds for n in (64, 128))
    assert busy < idle


@pytest.mark.parametrize("target", [METAL, METAL4])
def test_time_grows_with_work_and_falls_with_rates(target, monkeypatch):
    times = [found("gemm", target, **dict.fromkeys("MNK", n))[0].microseconds for n in (256, 1024, 4096)]
    assert times[0] < times[1] < times[2]
    names = ["M5"] if target == METAL4 else ["M1 Max", "M1 Pro", "M1"]
    ranked = []
    for chip in names:
        monkeypatch.setattr(versions, "chip", lambda chip=chip: f"Apple {chip}")
        ranked.append(found("gemm", target)[0].microseconds)
    assert ranked == sorted(ranked)
    assert len(set(ranked)) == len(names)


def target_of(text: str) -> Target:
    return make_context(text).target


def test_chips(monkeypatch):
    """Newer chips of a class are not slower; only those with tensor operations are taken for their target."""
    generations = [f"M{n}" for n in range(1, 6)]
    for old, new in itertools.pairwise(CHIPS[name] for name in generations):
        assert (old.cores, old.memory) <= (new.cores, new.memory)
        assert old.clock * 0.95 < new.clock
    monkeypatch.setattr(versions, "chip", lambda: "Apple M2 Max")
    assert chip_of(target_of(METAL)).name == "M2 Max"
    assert chip_of(target_of(METAL4)).name == "M5"
    monkeypatch.setattr(versions, "chip", lambda: "Apple M5")
    assert chip_of(target_of(METAL)).name == chip_of(target_of(METAL4)).name == "M5"
    monkeypatch.setattr(versions, "chip", lambda: "Apple M99")
    assert chip_of(target_of(METAL)).matrix == 0 < chip_of(target_of(METAL4)).matrix


def test_too_many_registers_are_refused():
    refused = found("gemm", METAL, block_M=128, block_N=128, block_K=16, threads=64)
    assert all(one.microseconds is None and "registers" in one.reason for one in refused)


def test_rates_limit_estimates(monkeypatch):
    before = found("gemm", METAL)[0].microseconds
    monkeypatch.setattr(chips, "MULTIPLICATIONS", 64)
    monkeypatch.setattr(tilings.rates, "LOADED_BYTES", 16)
    assert found("gemm", METAL)[0].microseconds > 1.5 * before


def order_of(program: object, target: str, chip: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(versions, "chip", lambda: f"Apple {chip}")
    return str(report_json(program, target)["rasterization"])


@pytest.mark.parametrize(
    ("size", "target", "chip", "expected"),
    [
        (1024, METAL, "M4 Pro", ""),  # all tensors fit in the last-level cache
        (4096, METAL, "M4 Pro", "along panels of 8 rows of the grid"),
        (4096, METAL, "M1", "along panels of 4 rows of the grid"),  # fewer threadgroups run at a time
        (4096, METAL, "M1 Max", ""),  # multiplications take longer than reads
        (4096, METAL, "M5", "along panels of 4 rows of the grid"),
        (1024, METAL4, "M5", "along panels of 4 rows of the grid"),  # four times the multiplications
    ],
)
def test_panels_of_threadgroups_follow_from_the_rates(size, target, chip, expected, monkeypatch):
    program = example("gemm").matmul(size, size, size, block_M=64, block_N=64, block_K=16)
    assert order_of(program, target, chip, monkeypatch) == expected


def test_the_order_of_a_program_stays(monkeypatch):
    program = example("gemm").matmul(T.dynamic("M"), 4096, 4096, block_M=64, block_N=64)
    assert order_of(program, METAL, "M1", monkeypatch) == "along panels of 4 rows of the grid"

    @T.prim_func
    def swizzled(A: T.Tensor((4096, 64), "float32"), B: T.Tensor((64, 4096), "float32"), C: T.Tensor((4096, 4096))):
        with T.Kernel(64, 64, threads=128) as (bx, by):
            T.use_swizzle(3)
            c = T.alloc_fragment((64, 64), "float32")
            T.gemm(A[by * 64 : by * 64 + 64, :], B[:, bx * 64 : bx * 64 + 64], c, clear_accum=True)
            T.copy(c, C[by * 64, bx * 64])

    assert order_of(swizzled, METAL, "M1", monkeypatch) == "along panels of 3 rows of the grid"


def test_the_longest_threadgroups_begin_first(monkeypatch):
    """Blocks of the last queries see most keys, if there are more of them than cores."""
    few, many = (example("flash_attention").attention(1, 1, 64 * n, 64 * n, 64, True) for n in (16, 40))
    assert order_of(few, METAL, "M1 Max", monkeypatch) == ""
    assert order_of(many, METAL, "M1 Max", monkeypatch) == "from the last along x, which has most iterations"
    assert order_of(few, METAL, "M1", monkeypatch) == "from the last along x, which has most iterations"


@pytest.mark.sweep(1)
@pytest.mark.parametrize("sizes", [(130, 200), (65, 300), (1, 1)])
@pytest.mark.parametrize("target", [METAL, METAL4])
def test_every_threadgroup_runs_once(target, sizes, monkeypatch):
    monkeypatch.setitem(CHIPS, "M5", Chip("M5", 1, 1620, 4096, 1.0, 0))
    monkeypatch.setattr(versions, "chip", lambda: "Apple M5")
    rows, columns = sizes
    a, b = numbers((rows, 32), "float16"), numbers((32, columns), "float16")
    program = example("gemm").matmul(rows, columns, 32, dtype="float16", block_M=16, block_N=32, block_K=16, threads=32)
    text, got = right(program, a, b, np.full(sizes, np.nan, "float32"), target=target)
    assert ("panel" in text.text) == (rows > 1)
    np.testing.assert_array_equal(got["C"], a.astype("float64") @ b.astype("float64"))


def test_split_k_and_rows_follow_from_the_rates(monkeypatch):
    """With more cores, more threadgroups share K, and tiles have fewer rows."""
    sizes = {"M": 64, "N": 256, "K": 8192}
    splits, rows = [], []
    for chip in ("M1", "M1 Max"):
        monkeypatch.setattr(versions, "chip", lambda chip=chip: f"Apple {chip}")
        splits.append(tile.tilings(example("split_k").matmul, sizes, target=METAL)[0]["splits"])
        rows.append(found("attention", METAL, heads=2, queries=512, dim=64)[0]["block_M"])
    assert splits[0] < splits[1]
    assert rows == [64, 32]


def test_instructions_follow_from_the_rates(monkeypatch):
    """Tensor operations multiply 16 x 32 elements of a tile of 8 x 8, unless they are fast enough."""

    @T.prim_func
    def small(A: T.Tensor((8, 64), "float16"), B: T.Tensor((64, 8), "float16"), C: T.Tensor((8, 8), "float32")):
        with T.Kernel(1, threads=32):
            c = T.alloc_fragment((8, 8), "float32")
            T.gemm(A, B, c, clear_accum=True)
            T.copy(c, C)

    monkeypatch.setattr(versions, "chip", lambda: "Apple M5")
    variants = []
    for rate in (512, 2048):
        monkeypatch.setitem(CHIPS, "M5", dataclasses.replace(CHIPS["M5"], matrix=rate))
        ops = report_json(small, METAL4)["ops"]
        variants.append(next(op["variant"] for op in ops if op["op"] == "gemm"))
    assert variants == ["metal.simdgroup", "metal.tensor_ops"]
