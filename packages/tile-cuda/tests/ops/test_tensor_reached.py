"""Coverage of tensor-memory products, dense and sparse, of every kind."""

from __future__ import annotations

import contextlib
import re

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, settings
from zoo.launch import lowered

from tile_core.errors import TileError
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.testing import tables
from tile_core.testing.run import load
from tile_core.testing.strategies import STRATEGIES
from tile_core.testing.tables import block_scaled, products, sparse

_PRODUCT = re.compile(r"  (tcgen05_mma_(?:sp_)?)cta_group_1_kind_(\w+)\(")
EVERY = {(f"tcgen05_mma_{s}", kind) for s in ("", "sp_") for kind in ("f16", "tf32", "f8f6f4", "i8")}


#: Kinds with scales.
SCALED = {"mxf8f6f4_block_scale_scale_vec_1X", "mxf4_block_scale_scale_vec_2X", "mxf4nvf4_block_scale_scale_vec_4X"}

_PIECE = re.compile(r"tcgen05_ld_sync\w+\(&\w+_piece(?:_\d+)?\[0\]")


def text_of(unit) -> str:
    found = lowered(load(unit.text()), make_context("cuda:sm_100a", {"tcgen05": "always"})).text
    return found[found.index('extern "C"') :]


def reached(unit) -> set[tuple[str, str]]:
    return set(_PRODUCT.findall(text_of(unit)))


@pytest.mark.sweep(1)
def test_the_kit_reaches_every_kind():
    tall = [u for table in (products, sparse) for u in table.units() if not u.illegal and "128" in u.text()]
    found: set[tuple[str, str]] = set()
    for unit in tall:
        if not found >= EVERY and "128, " in unit.text():
            with contextlib.suppress(TileError):
                found |= reached(unit)
    assert found >= EVERY


def test_the_kit_has_products_that_one_thread_issues():
    (unit,) = (u for u in products.units() if "constant-f16-rows" in u.name)
    assert "sums_ready" in text_of(unit)


def test_the_kit_has_products_of_fragments_in_tensor_memory():
    (unit,) = (u for u in products.units() if "128x48x48-fragment" in u.name)
    assert "_of_held(" in text_of(unit)


def own_units(target):
    """Units of this package, which the core's tables may not name."""
    every = tables.units(installed().resolve_target(target))
    return [u for u in every if u.name.startswith(("mbar-", "gathered-"))]


@pytest.mark.sweep(0.25)
def test_the_kit_has_products_that_arrive_at_a_barrier():
    """Each commits to an object of the program."""
    *units, _ = own_units("cuda:sm_100a")
    assert len(units) == 13
    assert not own_units("cpu")
    committed = re.compile(r"  tcgen05_commit_cta_group_1\w+\(&(done|empty)\b")
    assert all(committed.search(text_of(unit)) for unit in units[1::3])
    assert all(unit.optional for unit in own_units("cuda:sm_90a"))
    assert not any(unit.optional for unit in units)


def test_the_kit_gathers_rows_that_two_instructions_share():
    unit = own_units("cuda:sm_100a")[-1]
    found = lowered(load(unit.text()), make_context("cuda:sm_100a", {"tma": "always"})).text
    assert "_tile_gather4_" in found
    assert len(_PRODUCT.findall(found)) == 2


def test_the_suite_reads_accumulator_subtiles():
    (unit,) = (u for u in products.units() if "128x240x32" in u.name)
    assert _PIECE.search(text_of(unit))


@pytest.mark.sweep(1)
def test_the_kit_reaches_every_kind_with_scales():
    tall = [u for u in block_scaled.units() if not u.illegal and "-128x" in u.name]
    found = [{kind for _, kind in reached(u)} for u in tall]
    assert set().union(*found) == SCALED
    assert sum(bool(f) for f in found) >= len(found) / 2


def test_the_kit_reaches_every_kind_of_warps_with_scales():
    found: set[str] = set()
    for unit in block_scaled.units():
        if not unit.illegal and not found >= SCALED:
            text = lowered(load(unit.text()), make_context("cuda:sm_120a")).text
            found |= set(re.findall(r"kind_(\w+?_\dX)_f32_\w+\(&", text))
    assert found == SCALED


@pytest.mark.sweep(2)
def test_the_fuzzer_reaches_every_kind_with_scales():
    found: list[set[str]] = []

    @hypothesis.seed(3)
    @settings(
        max_examples=60, deadline=None, database=None, phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @hypothesis.given(STRATEGIES["scaled-products"][0])
    def draw(unit) -> None:
        with contextlib.suppress(TileError):
            found.append({kind for _, kind in reached(unit)})

    draw()
    assert set().union(*found) == SCALED
    assert sum(bool(f) for f in found) >= 0.2 * len(found)


@pytest.mark.sweep(2)
def test_the_fuzzer_reaches_every_kind_subtiles_and_mma_warps():
    found: list[set[tuple[str, str]]] = []
    divided: list[bool] = []
    issued: list[bool] = []
    held: list[bool] = []

    def missing() -> list[str]:
        every = set().union(*found)
        reached = {
            "epilogue subtiles": any(divided), "fragments in tensor memory": any(held), "MMA warps": any(issued),
            "dense and sparse": {form for form, _ in every} == {form for form, _ in EVERY},
            "three kinds": len({kind for _, kind in every}) >= 3,
            "in one of four": sum(bool(f) for f in found) >= 0.25 * len(found),
        }  # fmt: skip
        return [what for what, is_so in reached.items() if not is_so]

    @hypothesis.seed(2)
    @settings(
        max_examples=400, deadline=None, database=None, phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @hypothesis.given(STRATEGIES["tall-products"][0])
    def draw(unit) -> None:
        if len(found) >= 24 and not missing():
            return  # one in about forty has a fragment in tensor memory; later draws need not be compiled
        with contextlib.suppress(TileError):
            text = text_of(unit)
            found.append(set(_PRODUCT.findall(text)))
            divided.append(bool(_PIECE.search(text)))
            issued.append("sums_ready" in text)
            held.append("_of_held(" in text)

    draw()
    assert missing() == []


@pytest.mark.sweep(2)
def test_the_fuzzer_reaches_copies_of_four_rows():
    texts: list[str] = []

    @hypothesis.seed(2)
    @settings(
        max_examples=40, deadline=None, database=None, phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @hypothesis.given(STRATEGIES["numbered-rows"][0])
    def draw(unit) -> None:
        with contextlib.suppress(TileError):
            found = lowered(load(unit.text()), make_context("cuda:sm_100a", {"tma": "always"})).text
            texts.append(found[found.index('extern "C"') :])

    draw()
    assert any("tile_gather4" in t for t in texts)
    assert any("tile_scatter4" in t for t in texts)
