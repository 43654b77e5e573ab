"""Spellings of one epilogue: all of them take the way of the plain copy, and compute the same."""

from __future__ import annotations

import re
from typing import Any

import hypothesis
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
from tile_core.testing.strategies.tall_products import dense_products

pytestmark = pytest.mark.sweep(2)

TARGET = "cuda:sm_90a"
ALWAYS = {"wgmma": "always", "numerics": "standard"}
STAGED = re.compile(r"\n +cp_async_bulk_tensor_2d_global_shared\w*\(&(\w+)\[")
LARGE = (4096, 4096, 1024)
#: Spellings, with the results that they store: accumulators x, and x + V.
SPELLINGS = {
    "copy": "x", "nest": "x", "nest over columns first": "x", "nest in a nest": "x", "nest with a name": "x + v",
    "nest with a bias": "x + v", "guarded": "x", "guarded in one condition": "x", "bias in place": "x + v",
    "converted by a nest": "x", "bias to a fragment": "x + v", "bias behind the conversion": "x + v",
    "two results": "x", "two results of a name": "x + v", "transposed": "", "transposed over columns first": "",
    "looked up": "v[np.clip(x, 0, len(v) - 1).astype(int)]",
}  # fmt: skip
#: The same, of others.
OTHERS = {"read by the next store": "x"}


FRAGMENTS = ("bias in place", "converted by a nest", "bias to a fragment", "bias behind the conversion")


def fragments(how: str, block) -> Any:
    """Return the epilogues that store a fragment."""
    bm, bn, _ = block

    @T.macro
    def store(c, V, C, D, row, column):
        if how == "bias in place":
            for i, j in T.Parallel(bm, bn):
                c[i, j] += V[column + j]
            T.copy(c, C[row, column])
        elif how in ("converted by a nest", "bias to a fragment"):
            h = T.alloc_fragment((bm, bn), "float16")
            for i, j in T.Parallel(bm, bn):
                h[i, j] = c[i, j] if how == "converted by a nest" else c[i, j] + V[column + j]
            T.copy(h, C[row, column])
        elif how == "bias behind the conversion":
            h = T.alloc_fragment((bm, bn), "float16")
            T.copy(c, h)
            for i, j in T.Parallel(bm, bn):
                h[i, j] += V[column + j]
            T.copy(h, C[row, column])

    return store


def nests(how: str, sizes, block) -> Any:
    """Return the epilogues that store single elements."""
    (m, n, _), (bm, bn, _) = sizes, block

    @T.macro
    def store(c, V, C, D, row, column):
        if how == "copy":
            T.copy(c, C[row, column])
        elif how == "nest":
            for i, j in T.Parallel(bm, bn):
                C[row + i, column + j] = c[i, j]
        elif how == "nest over columns first":
            for j, i in T.Parallel(bn, bm):
                C[row + i, column + j] = c[i, j]
        elif how == "nest in a nest":
            for i in T.Parallel(bm):
                for j in T.Parallel(bn):
                    C[row + i, column + j] = c[i, j]
        elif how == "nest with a name":
            for i, j in T.Parallel(bm, bn):
                at = column + j
                value = c[i, j] + V[at]
                C[row + i, at] = value
        elif how == "nest with a bias":
            for i, j in T.Parallel(bm, bn):
                C[row + i, column + j] = c[i, j] + V[column + j]
        elif how == "guarded":
            for i, j in T.Parallel(bm, bn):
                if row + i < m:  # noqa: SIM102
                    if column + j < n:
                        C[row + i, column + j] = c[i, j]
        elif how == "guarded in one condition":
            for i, j in T.Parallel(bm, bn):
                if row + i < m and column + j < n:
                    C[row + i, column + j] = c[i, j]
        elif how == "two results":
            for i, j in T.Parallel(bm, bn):
                C[row + i, column + j] = c[i, j]
                D[column + j, row + i] = c[i, j] * 2
        elif how == "two results of a name":
            for i, j in T.Parallel(bm, bn):
                value = c[i, j] + V[column + j]
                C[row + i, column + j] = value
                D[column + j, row + i] = value + c[i, j] - V[column + j]
        elif how == "looked up":
            for i, j in T.Parallel(bm, bn):
                C[row + i, column + j] = V[T.cast(T.min(T.max(c[i, j], 0), n - 1), "int32")]
        elif how == "read by the next store":
            for i, j in T.Parallel(bm, bn):
                C[row + i, column + j] = c[i, j]
                D[column + j, row + i] = C[row + i, column + j] * T.float16(2)
        elif how == "transposed":
            for i, j in T.Parallel(bm, bn):
                D[column + j, row + i] = c[i, j] * 2
        elif how == "transposed over columns first":
            for j, i in T.Parallel(bn, bm):
                D[column + j, row + i] = c[i, j] * 2

    return store


def program(how: str, sizes=LARGE, block=(128, 128, 64), threads=256, fill="clear") -> Any:
    (m, n, k), (bm, bn, bk) = sizes, block
    store = fragments(how, block) if how in FRAGMENTS else nests(how, sizes, block)

    @T.prim_func
    def main(
        A: T.Tensor((m, k), "float16"), B: T.Tensor((n, k), "float16"), V: T.Tensor((n,), "float16"),
        C: T.Tensor((m, n), "float16"), D: T.Tensor((n, m), "float16"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (bx, by):
            a = T.alloc_shared((bm, bk), "float16")
            b = T.alloc_shared((bn, bk), "float16")
            c = T.alloc_fragment((bm, bn), "float32")
            if fill == "clear":
                T.clear(c)
            elif fill == "nest":
                for i, j in T.Parallel(bm, bn):
                    c[i, j] = 0
            elif fill == "a part":
                for i, j in T.Parallel(bm, bn):
                    if i != 3:
                        c[i, j] = 0
            for t in T.Pipelined(T.ceildiv(k, bk), num_stages=4):
                T.copy(A[by * bm, t * bk], a)
                T.copy(B[bx * bn, t * bk], b)
                T.gemm(a, b, c, transpose_B=True)
            store(c, V, C, D, by * bm, bx * bn)

    return main


def text(made: Any, **options: Any) -> str:
    return str(lowered(made, make_context(TARGET, {**ALWAYS, **options})).text)


@pytest.mark.parametrize("how", SPELLINGS)
def test_results_are_staged(how: str) -> None:
    stored = STAGED.findall(text(program(how), persistent="never"))
    assert stored
    assert len(stored) == (4 if how.startswith("two") else 2)


@pytest.mark.parametrize("how", [x for x in SPELLINGS if not x.startswith("transposed")])
def test_lanes_exchange_results_of_persistent_blocks(how: str) -> None:
    found = text(program(how), persistent=132)
    assert re.search(r"\n +turn_\w+\(", found)


OVERLAPPED = (
    "copy", "nest", "nest with a name", "nest with a bias", "guarded", "bias in place", "converted by a nest",
    "bias to a fragment", "bias behind the conversion",
)  # fmt: skip


@pytest.mark.parametrize("how", OVERLAPPED)
def test_epilogues_overlap_the_next_tile(how: str) -> None:
    assert beside_the_loop(text(program(how, block=(128, 256, 64))))
    sizes = (300, 136, 96)
    assert beside_the_loop(check(how, program(how, sizes, (128, 64, 32), 256), sizes, {"persistent": 3}))


def beside_the_loop(source: str) -> bool:
    """Whether lanes exchange results before the last wait for products of a tile."""
    exchanged = re.search(r"\n +turn_kept_quad\w*\(", source)
    return exchanged is not None and exchanged.start() < source.rindex("wgmma_wait_group_sync_aligned_0()")


EXPLAINED = {
    "bias in place": [
        ("storage", "registers"), ("initialization", "folded into the first product, which starts from zero"),
        ("prefetch", "128 elements of V in 1 register of each thread, and 256 bytes of shared memory"),
        ("stored to C", "through shared memory, 32,768 bytes: estimated "),
    ],
    "transposed": [("stored to D", "through shared memory, 32,768 bytes: estimated ")],
    "two results of a name": [
        ("stored to C", "through shared memory, 32,768 bytes"), ("stored to D", "through shared memory"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("how", EXPLAINED)
def test_the_report_shows_the_life_of_an_accumulator(how: str) -> None:
    report = report_json(program(how), TARGET, options={**ALWAYS, "persistent": "never"})
    steps = [(x["step"], x["outcome"]) for x in report["block"]["accumulators"] if x["name"] == "c"]
    for step, outcome in EXPLAINED[how]:
        assert any(found == step and text.startswith(outcome) for found, text in steps), steps


def test_the_report_gives_the_reasons_of_direct_stores() -> None:
    report = report_json(program("copy", (136, 67, 96), (64, 32, 32), 128), TARGET, options=ALWAYS)
    steps = {x["step"]: x["outcome"] for x in report["block"]["accumulators"]}
    assert steps["stored to C"] == "directly"
    assert "multiples of 2 bytes" in steps["not through shared memory"]


def test_the_report_shows_accumulators_in_tensor_memory() -> None:
    options = {"tcgen05": "always", "subtiling": "always"}
    report = report_json(program("copy", threads=128), "cuda:sm_100a", options=options)
    steps = {x["step"]: x["outcome"] for x in report["block"]["accumulators"]}
    assert steps["storage"] == "128 columns of tensor memory, read in subtiles of 64"
    assert steps["initialization"].startswith("folded")


OPTIONS = ({"persistent": "never", "epilogue": "always"}, {"persistent": 2}, {"epilogue": "lanes"})


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("how", [*SPELLINGS, *OTHERS])
def test_right(how: str, options: dict[str, Any]) -> None:
    sizes = (136, 72, 96)
    check(how, program(how, sizes, (64, 32, 32), 128), sizes, options)


def check(how: str, made: Any, sizes: tuple[int, int, int], options: dict[str, Any]) -> str:
    """Compare results with NumPy's, and return the text."""
    m, n, k = sizes
    kernel = tile.compile(made, TARGET, runtime="emulator", options={**ALWAYS, **options})
    rng = np.random.default_rng()
    a, b = (rng.integers(-2, 3, (x, k)).astype("float16") for x in (m, n))
    v, old = rng.integers(-9, 9, n).astype("float16"), rng.integers(-9, 9, (m, n)).astype("float16")
    c, d = old.copy(), old.T.copy()
    kernel(a, b, v, c, d)
    x = a.astype("float32") @ b.astype("float32").T
    wanted = {**SPELLINGS, **OTHERS}[how]
    np.testing.assert_array_equal(c, eval(wanted, {"x": x, "v": v, "np": np}) if wanted else old)
    twice = how.startswith(("two", "transposed", "read"))
    np.testing.assert_array_equal(d, (2 * x).T if twice else old.T)
    return str(kernel.source)


def test_zeros_of_a_nest_are_folded() -> None:
    texts = [text(program("copy", fill=fill), persistent="never") for fill in ("clear", "nest", "a part")]
    assert texts[0] == texts[1] != texts[2]


def _drawn(count: int, seed: int) -> list[Any]:
    units: list[Any] = []

    @hypothesis.seed(seed)
    @settings(max_examples=count, deadline=None, database=None, phases=(Phase.generate,),
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @hypothesis.given(dense_products())
    def draw(unit: Any) -> None:
        units.append(unit)

    draw()
    return units


#: Spellings that the fuzzer draws, as it writes them.
DRAWN = {
    "nest": r"    B\[by \* \d+ \+ i, .*\] = c\[i, j\]\n", "guarded": r"    B\[by .*\] = c\[i, j\] \+ 1",
    "named": r"= v \+ v", "fragment": r"T\.copy\(h, B", "two": r"    E\[by \* \d+ \+ i",
    "transposed": r"    E\[bx .*\] = c\[i, j\]\n", "columns first": r"    E\[bx .*\] = c\[i, j\] - 1",
    "zeros of a nest": r"    c\[i, j\] = 0",
}  # fmt: skip


@pytest.mark.sweep(1)
def test_the_fuzzer_draws_them() -> None:
    every = [unit for seed in range(6) for unit in _drawn(60, seed)]
    drawn = {how: [unit for unit in every if re.search(form, unit.text())] for how, form in DRAWN.items()}
    assert {how for how, units in drawn.items() if units} == set(DRAWN)
    for how in ("named", "fragment", "two", "transposed", "columns first"):
        assert any(re.search(r"\bE_descriptor\b|\b(c_values|h|c)_staged\b", _text(unit)) for unit in drawn[how])


def _text(unit: Any) -> str:
    """Return a program's text; empty if it is refused."""
    try:
        return text(load(unit.text()), epilogue="always")
    except TileError:
        return ""
