"""``tile.tilings`` on Metal targets: proposed configurations compile, and ranks follow from rates and sizes."""

from __future__ import annotations

import itertools

import pytest
from zoo.case import example
from zoo.launch import lowered

import tile_core as tile
from tile_core.plugins.contexts import make_context
from tile_core.target import Target
from tile_metal import chips, tilings, versions
from tile_metal.chips import CHIPS, chip_of
from tile_metal.target import MOST_THREADS, SHARED_BYTES, SIMD

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
