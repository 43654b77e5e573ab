"""Mistakes in emitted barriers: refused, or harmless under the emulator."""

from __future__ import annotations

import functools

import pytest
from zoo.barrier_mutants import mutants_of
from zoo.emitted import Emitted

from tile_cuda.text import emit_plan

from ..zoo.boxes_in_flight import BOXES_IN_FLIGHT
from ..zoo.bulk import BULK
from ..zoo.lanes import LANES
from ..zoo.launch import CUDA
from ..zoo.multicast import CLUSTERS
from ..zoo.pairs import PAIRS
from ..zoo.persistent import PERSISTENT
from ..zoo.tensor_memory import ISSUED, TENSOR
from ..zoo.warpgroups import WARPGROUPS
from .schedules import SCHEDULES

#: One kernel of each schedule.
TABLE = {
    "cp.async, mma.sync": (CUDA, "gemm_f16"),
    "cp.async, chained mma.sync": (CUDA, "attention"),
    "cp.async": (LANES, "gemm_halves"),
    "cp.async, chained products": (WARPGROUPS, "attention"),
    "TMA, one role": (BOXES_IN_FLIGHT, "gemm_f16_boxes"),
    "TMA, mma.sync": (BULK, "gemm_f16_nt"),
    "TMA, chained products": (BULK, "attention"),
    "TMA, staged epilogue": (BOXES_IN_FLIGHT, "gemm_bf16_staged"),
    "multicast": (CLUSTERS, "gemm_f16_pairs"),
    "multicast, cp.async": (CLUSTERS, "gemm_f16_two_groups"),
    "persistent": (PERSISTENT, "gemm_f16_tiles"),
    "persistent, late epilogue": (PERSISTENT, "gemm_f16_two_groups"),
    "persistent, loops in conditions": (PERSISTENT, "grouped"),
    "tcgen05, one role": (TENSOR, "gemm_f16_turned"),
    "tcgen05, MMA warp": (ISSUED, "gemm_f16"),
    "tcgen05, pairs": (PAIRS, "gemm_f16_pair"),
    **SCHEDULES,
}
PARTS = 16


@functools.cache
def emitted(schedule: str) -> Emitted:
    zoo, name, *target = TABLE[schedule]
    return Emitted(zoo, name, emit_plan, *target)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("schedule", TABLE)
@pytest.mark.sweep(48)
def test_mistakes_are_refused_or_harmless(schedule: str, part: int) -> None:
    kernel = emitted(schedule)
    for number, (name, make) in enumerate(mutants_of(kernel.plan.body)):
        if number % PARTS == part:
            body = make()
            assert kernel.refusal(body) or not kernel.misbehaves(body), name


@pytest.mark.parametrize("schedule", TABLE)
@pytest.mark.sweep(4)
def test_wrong_parities_and_dropped_releases_are_refused(schedule: str) -> None:
    kernel = emitted(schedule)
    for name, make in mutants_of(kernel.plan.body):
        if name.startswith("all "):
            found = kernel.refusal(make())
            assert found or (name == "all releases dropped" and not kernel.misbehaves(make()))


def test_the_refusal_names_kernel_role_barrier_and_step() -> None:
    kernel = emitted("persistent")
    make = dict(mutants_of(kernel.plan.body))
    said = kernel.refusal(make["all releases dropped"]())
    assert "[I102] the barriers of the emitted kernel gemm are wrong: thread" in said
    assert "wait for parity 0 of k_free[0]" in said
    assert "A_shared_stages: it is read before a copy to it" in kernel.refusal(make["all parities wrong"]())
