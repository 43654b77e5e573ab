"""Strategies of this package for the fuzzer: drawn programs, and reintroduced mistakes found."""

from __future__ import annotations

import contextlib
from collections import Counter

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, settings
from zoo.launch import lowered

import tile_core as tile
from tile_core.errors import TileError
from tile_core.ir import nodes
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.testing import fuzz
from tile_core.testing import search as searching
from tile_core.testing.coverage import emitted
from tile_core.testing.run import Session, load
from tile_core.testing.search import Chunk, WrongProgram, search
from tile_core.testing.strategies import STRATEGIES, strategies_of
from tile_core.testing.symbolic import twin
from tile_cuda.copies import bulk
from tile_cuda.ops import four_rows, gemm_scaled_tensor, gemm_tensor

TARGET = "cuda:sm_100a"
#: Names drawn by each strategy, and coverage of its texts.
DRAWN = {
    "tensor-memory": (
        "alloc_tmem tcgen05_gemm tcgen05_gemm_sp tcgen05_gemm_scaled mbarrier_wait_parity",
        "kind_f16 tcgen05_mma_sp_cta block_scale tcgen05_st_sync tcgen05_commit",
    ),
    "four-rows": (
        "tma_gather4 tma_scatter4 tma_gather4_bytes mbarrier_expect_tx mbarrier_arrive mbarrier_wait_parity",
        "tile_gather4 tile_scatter4",
    ),
    "multicast": (
        "ClusterKernel alloc_cluster_barrier tma_copy mbarrier_arrive",
        "multicast_cluster barrier_cluster_arrive mbarrier_arrive_shared_cluster",
    ),
}


def added(target):
    return set(strategies_of(installed().resolve_target(target))) - set(STRATEGIES)


def test_a_target_has_the_strategies_of_its_instructions():
    assert added(TARGET) == set(DRAWN)
    assert added("cuda:sm_90a") == added("cuda:sm_120a") == {"multicast"}
    assert added("cuda:sm_80") == added("cpu") == set()


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("name", DRAWN)
def test_twins_with_symbols_keep_their_operands(name):
    kinds: Counter[str] = Counter()

    @hypothesis.seed(1)
    @settings(max_examples=12, deadline=None, database=None, phases=(Phase.generate,))
    @hypothesis.given(strategies_of(installed().resolve_target(TARGET))[name][0])
    def draw(unit):
        made = twin(unit, "constant", "scalar")
        if made is not None:
            try:
                load(made.text())
            except TileError as refusal:
                kinds[refusal.code] += 1
            else:
                kinds["traced"] += 1

    draw()
    assert kinds["traced"] > 0
    assert kinds.keys() <= {"traced", "K202", "K144", "K215", "K216"}  # those that any twin may raise


@pytest.mark.sweep(6)
@pytest.mark.parametrize("name", DRAWN)
def test_names_and_instructions_are_drawn(name):
    target = installed().resolve_target(TARGET)
    names, instructions = (x.split() for x in DRAWN[name])
    assert emitted(30, [name], 1, target)[name].keys() >= set(names)
    found: Counter[str] = Counter()

    @hypothesis.seed(1)
    @settings(
        max_examples=24, deadline=None, database=None, phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @hypothesis.given(strategies_of(target)[name][0])
    def draw(unit):
        found["all"] += 1
        with contextlib.suppress(TileError):
            text = lowered(load(unit.text()), make_context(TARGET, {"tma": "always"})).text
            body = text[text.index('extern "C"') :]
            found.update(["legal", *(i for i in instructions if i in body)])

    draw()
    assert set(found) >= set(instructions)
    assert found["legal"] >= 0.6 * found["all"]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("divided", ["always", "never"])
@pytest.mark.parametrize("persistent", ["always", "never", 2])
def test_accumulator_and_block_options_can_be_pinned(divided, persistent):
    """Pin options as `.ci/run` does: programs are right with all of them."""
    pinned = {"tcgen05": "always", "tma": "always", "subtiling": divided, "persistent": persistent}
    session, seen = Session(TARGET, "emulator", options=pinned), Counter()
    search(Chunk("programs", 11, 4, "tensor-memory"), session, lambda kind, count: seen.update([kind]))
    assert seen["right"] > 0
    assert set(seen) <= {"right", "refused"}


def rows_in_another_order(patch):
    number = four_rows._Copies.number
    patch.setattr(four_rows._Copies, "number", lambda self, i: number(self, i ^ (self.call.name == "gather")))


def numbers_behind_the_list(patch):
    """Read row numbers beyond the end of their list."""
    patch.setattr(
        four_rows._Copies, "number",
        lambda self, i: nodes.cast(nodes.load(self.rows.buffer, self.rows.spread([nodes.int_const(i)])), "int32"),
    )  # fmt: skip


def products_that_do_not_add(patch):
    patch.setattr(gemm_tensor.TensorProduct, "adds", lambda self, step: nodes.int_const(1 if step else 0))


def scales_of_the_first_step(patch):
    scale_column = gemm_scaled_tensor.ScaledPlan.scale_column
    patch.setattr(
        gemm_scaled_tensor.ScaledPlan, "scale_column", lambda self, role, line, step: scale_column(self, role, line, 0)
    )


def tiles_that_are_still_read(patch):
    """Reintroduce a block barrier before copies out of the tile have read it."""
    made = bulk._Choose.__init__

    def init(self, *given):
        made(self, *given)
        self.left_from = set()

    patch.setattr(bulk._Choose, "__init__", init)


FINDS = {
    rows_in_another_order: Chunk("programs", 2, 10, "four-rows"),
    numbers_behind_the_list: Chunk("programs", 3, 10, "numbered-rows"),
    products_that_do_not_add: Chunk("programs", 3, 10, "tensor-memory"),
    scales_of_the_first_step: Chunk("programs", 3, 10, "tensor-memory"),
    tiles_that_are_still_read: Chunk("programs", 8, 10, "multicast"),
}


@pytest.mark.sweep(6)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("defect", FINDS, ids=lambda f: f.__name__)
def test_a_mistake_that_comes_back_is_found(monkeypatch, defect):
    defect(monkeypatch)
    monkeypatch.setattr(searching, "SHRINKING", 0.0)
    session = Session(TARGET, "emulator", options={"tma": "always"})
    with tile.disable_cache(), pytest.raises(WrongProgram) as found:
        search(FINDS[defect], session, lambda kind, count: None)
    assert "def main(" in str(found.value)


def test_the_command_line_accepts_them(capsys):
    assert fuzz.main(["--target", TARGET, "--list"]) == 0
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()} == {*STRATEGIES, *DRAWN}
    with pytest.raises(SystemExit):
        fuzz.main(["--target", "cpu", "--only", "four-rows"])
    assert "--only four-rows: the strategies are" in capsys.readouterr().err
