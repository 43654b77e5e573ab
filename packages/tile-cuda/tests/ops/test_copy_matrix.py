"""Accumulators stored by 8 x 8 matrices; epilogues overlapped with the next persistent tile."""

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
import tile_emulator
from tile_core.compiler import lower
from tile_core.errors import TileError
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.reports import report_json
from tile_core.testing.run import load
from tile_core.testing.strategies import STRATEGIES
from tile_core.testing.tables import products
from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch
from tile_cuda.options import CudaOptions

from ..emit.nvrtc import assemble
from .test_persistent import TARGET, check, gemm

pytestmark = pytest.mark.sweep(6)

MATRICES = {"wgmma": "always", "numerics": "fast", "stmatrix": "always", "epilogue": "always", "persistent": "never"}
_STORED = re.compile(r"\n +stmatrix_sync_aligned_m8n8_x(\d)_shared_b16\(&")

CASES: dict[str, tuple[dict[str, Any], str]] = {
    "plain": ({}, "4"),
    "two groups": ({"block": (128, 64, 32), "threads": 256}, "4"),
    "beside each other": ({"block": (64, 128, 32), "threads": 256, "sizes": (130, 264, 96)}, "4"),
    "two rows of tiles": ({"block": (128, 64, 32), "sizes": (130, 72, 96)}, "4"),
    "five tiles": ({"block": (64, 40, 32), "sizes": (70, 88, 96)}, "41"),
    "three tiles": ({"block": (64, 24, 32), "sizes": (70, 72, 96)}, "21"),
    "six tiles": ({"block": (64, 48, 32), "sizes": (70, 104, 96)}, "42"),
    "one tile": ({"block": (64, 8, 32), "sizes": (70, 16, 96)}, "2"),
    "a tile in part": ({"sizes": (1, 8, 96)}, "4"),
    "bfloat16": ({"types": ("bfloat16", "bfloat16")}, "4"),
    "8-bit floats": ({"types": ("float8_e4m3fn", "bfloat16"), "block": (64, 64, 64), "sizes": (64, 64, 64)}, "4"),
    "the program's own tile": ({"where": "staged"}, "4"),
    "scales": ({"where": "scaled"}, "4"),
    "on instructions of warps": ({"options": {**MATRICES, "wgmma": "never"}}, "4"),
    "no boxes": ({"options": {**MATRICES, "tma": "never"}}, "4"),
    "persistent": ({"options": {**MATRICES, "persistent": 3}}, "4"),
    "persistent, two groups": ({"block": (128, 64, 32), "threads": 256, "sizes": (400, 136, 96),
                                "options": {**MATRICES, "persistent": 2}}, "4"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_right(name: str) -> None:
    how, expected = CASES[name]
    kernel = check(**{"options": MATRICES, **how})
    assert "".join(dict.fromkeys(_STORED.findall(kernel.source))) == expected
    assert "(C7" not in assemble(kernel.source, "sm_90a")


#: Why accumulators are stored directly, and a program for which they are not.
REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "the option": ({}, {"stmatrix": "never"}),
    "32 bits": ({"types": ("float16", "float32")}, {}),
    "not staged": ({}, {"epilogue": "never"}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_directly_stored_accumulators(name: str) -> None:
    how, options = REFUSED[name]
    kernel = check(**how, options={**MATRICES, **options})
    assert not _STORED.search(kernel.source)
    assert _STORED.search(check(options=MATRICES).source)


def test_other_targets_and_the_default_are_left_alone() -> None:
    texts = [tile.compile(gemm(), "cuda:sm_80", options=o).source for o in ({}, {"stmatrix": "always"})]
    assert texts[0] == texts[1]
    assert not _STORED.search(tile.compile(gemm(), TARGET, options={"wgmma": "always"}).source)
    with pytest.raises(ValueError, match="stmatrix is 'never' or 'always'"):
        CudaOptions(stmatrix="auto")


def test_partial_accumulators_and_a_user_layout() -> None:
    """Store plain rows right, and incomplete fragments by another variant."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            A_s, B_s = T.alloc_shared((64, 64), "float16"), T.alloc_shared((64, 64), "float16")
            C_l, C_s = T.alloc_fragment((64, 64), "float32"), T.alloc_shared((64, 64), "float16")
            T.annotate_layout({C_s: T.Layout((64, 64), lambda i, j: i * 64 + j)})
            T.copy(A, A_s)
            T.copy(B, B_s)
            T.clear(C_l)
            T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C_s)
            T.copy(C_s, C)

    kernel = tile.compile(main, TARGET, runtime="emulator", options=MATRICES)
    rng = np.random.default_rng()
    a, b = (rng.integers(-3, 4, (64, 64)).astype("float16") for _ in range(2))
    c = np.full((64, 64), np.nan, "float16")
    kernel(a, b, c)
    assert np.array_equal(c, a.astype("float32") @ b.astype("float32"))
    assert _STORED.search(kernel.source)


@pytest.mark.sweep(1)
def test_epilogues_overlap_the_next_tile() -> None:
    """Wait for the store of a tile only before the next write to its buffer."""
    source = check(options={**MATRICES, "persistent": 3}).source
    waits, writes, leaves = (
        source.index(x, source.index("const int tile_1"))
        for x in ("cp_async_bulk_wait_group_read_0();", "stmatrix_sync", "cp_async_bulk_tensor_2d_global_shared")
    )
    product = source.index("wgmma_wait_group_sync_aligned_0", source.index("wgmma_commit_group"))
    assert product < waits < writes < leaves
    program = gemm((8192, 8192, 512), (128, 256, 64), threads=256, stages=4)
    reports = [report_json(program, TARGET, options={**MATRICES, "persistent": "always", "epilogue": s}) for s in
               ("always", "auto")]  # fmt: skip
    assert all("cuda.copy.lanes" in str(r["ops"]) for r in reports)  # four slots exhaust the shared-memory budget
    three = gemm((8192, 8192, 512), (128, 256, 64), threads=256, stages=3)
    found = report_json(three, TARGET, options={**MATRICES, "persistent": "always"})
    assert [op["variant"] for op in found["ops"]][-2:] == ["cuda.copy.stmatrix", "cuda.copy.bulk_store"]
    assert "132 persistent blocks process" in str(found["block"]["loops"])


@pytest.fixture(scope="module")
def made() -> Any:
    return lower(gemm((70, 72, 96)), make_context(TARGET, {**MATRICES, "persistent": 2}), installed()).lowered


ORDERS: tuple[dict[str, Any], ...] = ({"completion": "late"}, {"completion": "early", "order": "random", "seed": 5})


def is_right(text: str, facts: Any) -> bool:
    rng = np.random.default_rng()
    a, b = (rng.integers(-3, 4, shape).astype("float16") for shape in ((70, 96), (72, 96)))
    given = {"A": a, "B": b, "S": np.ones(70, "float32"), "C": np.full((70, 72), np.nan, "float16")}
    for how in ORDERS:
        args = {p.name: given[p.name] for p in facts.given}
        result = tile_emulator.run(text, facts, args, dialect_of(Arch.of("sm_90a")), **how)
        if result.reports or not np.array_equal(result.outputs["C"].reshape(70, 72), a.astype("f4") @ b.T.astype("f4")):
            return False
    return True


def test_whenever_stores_complete(made: Any) -> None:
    assert is_right(made.text, made.facts)


_ROW = r"(C_l_staged\[[^\n]*?)\(number & 7\) \* 64"
MISTAKES = {
    "rows of another lane": (_ROW, r"\1((number + 1) & 7) * 64", 0),
    "chunks are not exchanged": (r"(\(group \* 4 \+ [^\^]*\)) \^ \(number & 7\)", r"\1", 0),
    "another matrix": (r"\(number & 31\) >> 3", "(number & 31) >> 2 & 3", 0),
    "another register": (r"(matrix_halves\[2\] = [^\n]*) \+ 4\]", r"\1 + 5]", 0),
    "two words exchanged": (r"&matrix_words\[0\]( = |\) = )", r"&matrix_words[1]\1", 0),
    "no wait before the tile is written again": (r"\n *cp_async_bulk_wait_group(_read)?_0\(\);", "", 0),
    "no fence before the tile leaves": (r"\n *fence_proxy_async_shared_cta\(\);", "", 0),
    "no barrier before the tile leaves": (r"(fence_proxy_async_shared_cta\(\);)\n *bar_sync\(1, 128\);", r"\1", 0),
}  # fmt: skip


@pytest.mark.sweep(8)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_the_text_are_found(mistake: str, made: Any) -> None:
    pattern, new, count = MISTAKES[mistake]
    wrong, changed = re.subn(pattern, new, made.text, count=count)
    assert changed
    assert not is_right(wrong, made.facts)


def _texts(units: list[Any]) -> list[str]:
    found = []
    for unit in units:
        with contextlib.suppress(TileError):
            found.append(lowered(load(unit.text()), make_context(TARGET, MATRICES)).text)
    return [t for t in found if _STORED.search(t)]


@pytest.mark.sweep(1)
def test_the_kit_reaches_it() -> None:
    assert len(_texts(products.units()[::3])) >= 3


@pytest.mark.sweep(8)
def test_the_fuzzer_reaches_it() -> None:
    units: list[Any] = []

    @hypothesis.seed(3)
    @settings(max_examples=80, deadline=None, database=None, phases=(Phase.generate,),
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @hypothesis.given(STRATEGIES["tall-products"][0])
    def draw(unit: Any) -> None:
        units.append(unit)

    draw()
    assert len(_texts(units)) >= 3
