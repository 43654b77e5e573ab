"""Attention with overlapped iterations: every trip count, way of copying and of completing."""

from __future__ import annotations

import contextlib
import functools
import re
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from zoo.launch import lowered as lowered_unit

import tile_core as tile
import tile_core.language as T
import tile_emulator
from tile_core.compiler import lower
from tile_core.errors import TileError
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.testing.run import load
from tile_core.testing.strategies import STRATEGIES
from tile_core.testing.tables import products
from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch
from tile_cuda.options import CudaOptions

from ..emit.nvrtc import assemble

TARGET = "cuda:sm_90a"
ALWAYS = {"wgmma": "always", "numerics": "fast", "overlap": "always"}


def attention(
    keys: Any, dim: int = 64, n: int = 32, stages: int = 2, threads: int = 128, held: str = "fragment"
) -> Any:
    """Attention, 64 queries per warpgroup; the number of keys may be symbolic."""
    M = 64 * (threads // 128)

    @T.prim_func
    def main(
        Q: T.Tensor((M, dim), "float16"),
        K: T.Tensor((keys, dim), "float16"),
        V: T.Tensor((keys, dim), "float16"),
        R: T.Tensor((M, dim), "float32"),
        Sum: T.Tensor((M,), "float32"),
    ):
        with T.Kernel(1, threads=threads):
            Q_s = T.alloc_shared((M, dim), "float16")
            K_s = T.alloc_shared((n, dim), "float16")
            V_s = T.alloc_shared((n, dim), "float16")
            scores = T.alloc_fragment((M, n), "float32")
            weights = T.alloc_fragment((M, n), "float16") if held == "fragment" else T.alloc_shared((M, n), "float16")
            result = T.alloc_fragment((M, dim), "float32")
            top, before, total, added = (T.alloc_fragment((M,), "float32") for _ in range(4))
            T.copy(Q, Q_s)
            T.clear(result)
            T.clear(total)
            T.fill(top, -1e30)
            for k in T.Pipelined(T.ceildiv(keys, n), num_stages=stages):
                T.copy(K[k * n, 0], K_s)
                T.copy(V[k * n, 0], V_s)
                T.gemm(Q_s, K_s, scores, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(M, n):
                    scores[i, j] = T.if_then_else(k * n + j < keys, scores[i, j], -1e30)
                T.copy(top, before)
                T.reduce_max(scores, top, dim=1, clear=False)
                for i, j in T.Parallel(M, n):
                    scores[i, j] = T.exp2(scores[i, j] - top[i])
                T.reduce_sum(scores, added, dim=1)
                for i in T.Parallel(M):
                    before[i] = T.exp2(before[i] - top[i])
                    total[i] = total[i] * before[i] + added[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(M, dim):
                    result[i, j] = result[i, j] * before[i]
                T.gemm(weights, V_s, result)
            T.copy(result, R)
            T.copy(total, Sum)

    return main


def check(kernel: Any, keys: int, dim: int, M: int = 64) -> None:
    rng = np.random.default_rng()
    q, k, v = (rng.standard_normal((rows, dim)).astype("float16") for rows in (M, keys, keys))
    r, total = np.full((M, dim), np.nan, "float32"), np.full(M, np.nan, "float32")
    kernel(q / np.float16(8), k, v, r, total)
    scores = (q / np.float16(8)).astype("float64") @ k.astype("float64").T
    weights = np.exp2(scores - scores.max(1, keepdims=True, initial=-1e30))
    assert np.allclose(total, weights.sum(1), rtol=1e-3)
    bound = 2.0**-9 * (weights @ np.abs(v.astype("float64"))) + 1e-6
    assert (np.abs(r - weights @ v.astype("float64")) <= bound).all()


#: How copies are prefetched, and threads: two consumer groups run in ping-pong with box copies.
WAYS = {
    "chunks": ("never", 128),
    "boxes": ("always", 128),
    "chunks, two groups": ("never", 256),
    "turns": ("always", 256),
}


@pytest.mark.sweep(2)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stages", [2, 3])
def test_any_trip_count(stages: int, way: str) -> None:
    bulk, threads = WAYS[way]
    program = attention(T.dynamic("keys"), stages=stages, threads=threads)
    kernel = tile.compile(program, TARGET, runtime="emulator", options={**ALWAYS, "tma": bulk})
    assert "wgmma_wait_group_sync_aligned_1" in kernel.source
    assert ("k_turn" in kernel.source) == (way == "turns")
    for keys in (0, 1, 32, 33, 77, 129):
        check(kernel, keys, 64, threads // 2)


ORDERS: tuple[dict[str, Any], ...] = ({"completion": "late"}, {"completion": "early", "order": "random", "seed": 5})


def is_right(text: str, lowered: Any, rows: int = 0) -> bool:
    """Whether a text of ``attention(100, 48)`` runs right and without reports, in all orders."""
    for how in ORDERS:

        def emulated(*values: Any, how: dict[str, Any] = how) -> None:
            given = dict(zip(("Q", "K", "V", "R", "Sum"), values, strict=True))
            given = {p.name: given[p.name] for p in lowered.facts.given}
            result = tile_emulator.run(text, lowered.facts, given, dialect_of(Arch.of("sm_90a")), **how)
            assert not result.reports
            for name in ("R", "Sum"):
                given[name][...] = result.outputs[name].reshape(given[name].shape)

        try:
            check(emulated, 100, 48, rows or lowered.facts.block[0] // 2)
        except AssertionError:
            return False
    return True


def lowered_as(way: str) -> Any:
    bulk, threads = WAYS[way]
    options = {**ALWAYS, "tma": bulk}
    return lower(attention(100, 48, threads=threads), make_context(TARGET, options), installed()).lowered


@pytest.fixture(scope="module", params=["chunks", "boxes"])
def lowered(request: Any) -> Any:
    return lowered_as(request.param)


@pytest.fixture(scope="module")
def turned() -> Any:
    return lowered_as("turns")


@pytest.mark.sweep(1)
@pytest.mark.parametrize("way", WAYS)
def test_whenever_copies_and_products_complete(way: str) -> None:
    made = lowered_as(way)
    assert is_right(made.text, made)


_ONE = r"\n +wgmma_wait_group_sync_aligned_1\(\);"
_ALL = r"\n +wgmma_wait_group_sync_aligned_0\(\);"
MISTAKES = {
    "the head is not waited for": (_ONE, "", 0),
    "two products are left": (r"(wgmma\.wait_group\.sync\.aligned) 1", r"\1 2", 0),
    "the tail is not waited for": (rf"({_ONE}(?s:.*?)){_ALL}", r"\1", 0),
    "the head of the first trip is not waited for": (_ALL, "", 1),
    "weights are rewritten in flight": (rf"({_ONE})", r"\n    a_words[3] = 1u;\1", 0),
    "accumulators are touched in flight": (rf"({_ONE})", r"\1 result[7] += 0.0f;", 0),
    "scores are read too early": (rf"({_ONE})", r"\n    scores[3] = scores[2] + 0.0f;\1", 0),
    "the tail reads the slot of the next trip": (r"slot_before = \(k - 1\)", "slot_before = (k)", 0),
    "the last tail reads another slot": (r"(slot_before_1 =) (\d)", r"\1 1 - \2", 0),
    "no barrier before slots are filled": (r"(for \(int k(?s:.*?))\n +__syncthreads\(\);", r"\1", 0),
}  # fmt: skip


@pytest.mark.sweep(3)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_the_text_are_found(mistake: str, lowered: Any) -> None:
    pattern, new, count = MISTAKES[mistake]
    wrong, changed = re.subn(pattern, new, lowered.text, count=count)
    assert changed
    assert not is_right(wrong, lowered)


_WAIT_FIRST = r"\n +mbarrier_wait_parity\(&k_turn\[[^;]*;"
_WAIT_LAST = r"\n +mbarrier_wait_parity\(&k_turn_1\[[^;]*;"
_GIVEN, _LAST_GIVEN = (rf"\n +mbarrier_arrive_shared_cta_b64\(&k_turn{x}\[[^;]*;" for x in ("", "_1"))
PING_PONG_MISTAKES = {
    "the last group does not wait": (_WAIT_LAST, "", 0),
    "the first group does not signal": (rf"(number < 128\) \{{){_LAST_GIVEN}", r"\1", 0),
    "the last group does not signal": (_GIVEN, "", 0),
    "the last group does not signal before the loop": (rf"(common\) \{{){_GIVEN}(?=\n  +\}}\n  +wgmma_wait)", r"\1", 0),
    "arrivals of more than one group": (r"(&k_turn_1\[\d\]), 128\)", r"\1, 256)", 0),
    "the phase of the previous iteration": (r"(&k_turn_1\[\w+\], )(\(k >> 1\) & 1)", r"\1 1 - (\2)", 0),
    "products of the last group are in flight when slots are filled": (rf"({_ONE}(?s:.*?)){_ALL}", r"\1", 0),
}  # fmt: skip


@pytest.mark.sweep(2)
@pytest.mark.parametrize("mistake", PING_PONG_MISTAKES)
def test_mistakes_in_ping_pong_are_found(mistake: str, turned: Any) -> None:
    pattern, new, count = PING_PONG_MISTAKES[mistake]
    wrong, changed = re.subn(pattern, new, turned.text, count=count)
    assert changed
    assert not is_right(wrong, turned)


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("dim", "n", "threads"), [(128, 64, 128), (16, 16, 128), (64, 32, 160)])
def test_tiles(dim: int, n: int, threads: int) -> None:
    kernel = tile.compile(attention(n + 3, dim, n, threads=threads), TARGET, runtime="emulator", options=ALWAYS)
    assert kernel.source.count("wgmma_wait_group_sync_aligned_1();") == 1
    check(kernel, n + 3, dim, 64)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("threads", [128, 256])
def test_weights_in_shared_memory(threads: int) -> None:
    options = {**ALWAYS, "tma": "always"}
    kernel = tile.compile(attention(100, held="shared", threads=threads), TARGET, runtime="emulator", options=options)
    assert "f16_f16_ss_tb" in kernel.source
    assert "k_turn" not in kernel.source
    check(kernel, 100, 64, threads // 2)


def test_warpgroups_with_shared_rows_have_no_ping_pong() -> None:
    @T.prim_func
    def main(Q: T.Tensor((64, 16), "float16"), Y: T.Tensor((45, 16), "float16"), R: T.Tensor((64, 16), "float32")):
        with T.Kernel(1, threads=256):
            q, y = T.alloc_shared((64, 16), "float16"), T.alloc_shared((16, 16), "float16")
            z = T.alloc_shared((16, 16), "float16")
            s, c = T.alloc_fragment((64, 16), "float32"), T.alloc_fragment((64, 16), "float32")
            p = T.alloc_fragment((64, 16), "float16")
            T.copy(Q, q)
            T.clear(c)
            for o in T.Pipelined(3, num_stages=2):
                T.copy(Y[o * 16, 0], y)
                T.copy(Y[o * 16, 0], z)
                T.gemm(q, y, s, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(64, 16):
                    p[i, j] = T.min(T.max(s[i, j], -9), 9)
                T.gemm(p, z, c)
            T.copy(c, R)

    options = {**ALWAYS, "tma": "always"}
    kernel = tile.compile(main, TARGET, runtime="emulator", options=options)
    assert "o_turn" not in kernel.source
    rng = np.random.default_rng()
    q, y = (rng.integers(-2, 3, (rows, 16)).astype("float16") for rows in (64, 45))
    r = np.full((64, 16), np.nan, "float32")
    kernel(q, y, r)
    a, b = q.astype("float64"), y.astype("float64")
    assert np.array_equal(r, np.clip(a @ b.T, -9, 9) @ b)


def test_the_assembler_keeps_both_products_in_flight() -> None:
    text = lower(attention(500, 64, 64), make_context(TARGET, ALWAYS), installed()).lowered.text
    assert "(C7" not in assemble(text, "sm_90a")


@functools.cache
def report(threads: int = 256, n: int = 128, dim: int = 128, stages: int = 2, **options: Any) -> str:
    program = attention(500, dim, n, stages, threads)
    options = {"wgmma": "always", "tma": "always", **options}
    return " ".join(str(tile.explain(program, TARGET, options=options)).split())


APART = {
    'the option overlap is "never"': {"overlap": "never"},
    "it would need about 192 registers of a thread, which has 128": {"max_registers": 128},
    "it has one warpgroup": {"threads": 128},
    "its warpgroups cannot ping-pong": {"tma": "never"},
    "two blocks of about 128 registers a thread run beside each other": {"dim": 64},
    "its first product, with 32 accumulators a thread, is too short to overlap": {"n": 64, "stages": 3},
}


@pytest.mark.sweep(1)
@pytest.mark.parametrize("reason", APART)
def test_iterations_overlap_by_default_where_faster(reason: str) -> None:
    by_default = report()
    assert "no overlap of its products between iterations" not in by_default
    assert "group 1, each iteration: wait for k_arrived" in by_default
    assert f"no overlap of its products between iterations: {reason}" in report(**APART[reason])  # type: ignore[arg-type]


@pytest.mark.sweep(0.25)
def test_the_option_insists() -> None:
    assert "do not overlap" not in report(threads=128, max_registers=128, tma="never", overlap="always")
    with pytest.raises(ValueError, match="overlap is one of 'never', 'auto', 'always'"):
        CudaOptions(overlap="sometimes")


def _overlaps(unit: Any) -> bool:
    made = lowered_unit(load(unit.text()), make_context(TARGET, {**ALWAYS, "tma": "always"}))
    return "slot_before" in made.text


@pytest.mark.sweep(1)
def test_the_suite_has_overlapped_loops() -> None:
    units = [u for u in products.units() if "chained-loop" in u.name]
    assert sum(map(_overlaps, units)) >= 3


@pytest.mark.sweep(2)
def test_the_fuzzer_draws_overlapped_loops() -> None:
    found: list[bool] = []

    @hypothesis.seed(1)
    @settings(
        max_examples=20, deadline=None, database=None, phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @hypothesis.given(STRATEGIES["product-loops"][0])
    def draw(unit: Any) -> None:
        with contextlib.suppress(TileError):
            found.append(_overlaps(unit))

    draw()
    assert any(found)
