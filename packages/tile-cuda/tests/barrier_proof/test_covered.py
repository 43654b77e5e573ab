"""The proof of emitted barriers covers every kernel of the zoo, and is part of each compilation."""

from __future__ import annotations

import pytest
from zoo.barrier_mutants import mutants_of
from zoo.emitted import Emitted

import tile_core as tile
import tile_core.emit.tail
from tile_core.errors.lowering import UnprovenBarriers
from tile_cuda.text import emit_plan

from ..zoo.boxes_in_flight import BOXES_IN_FLIGHT
from ..zoo.bulk import BULK
from ..zoo.lanes import LANES
from ..zoo.launch import CUDA
from ..zoo.multicast import CLUSTERS
from ..zoo.pairs import PAIRS
from ..zoo.persistent import PERSISTENT
from ..zoo.tensor_memory import ISSUED, SM_120, TENSOR
from ..zoo.warpgroups import WARPGROUPS

ZOOS = (BOXES_IN_FLIGHT, BULK, CUDA, LANES, CLUSTERS, PAIRS, PERSISTENT, ISSUED, SM_120, TENSOR, WARPGROUPS)

#: Kernels that the proof does not cover, with the reason. This may only become shorter.
UNCOVERED: dict[tuple[str, str], str] = {}


def entries():
    for zoo in ZOOS:
        for entry in zoo.entries:
            for target in {"cuda:sm_80", "cuda:sm_90a"} if zoo is CUDA else zoo.targets:
                yield pytest.param(zoo, entry.name, target, id=f"{entry.name}-{target}")


@pytest.mark.parametrize(("zoo", "name", "target"), sorted(entries(), key=lambda e: e.id))
@pytest.mark.sweep(8)
def test_kernels_are_covered(zoo, name, target):
    assert Emitted(zoo, name, emit_plan, target).uncovered() == UNCOVERED.get((name, target), "")


def test_a_wrong_kernel_does_not_compile(monkeypatch):
    def parities_wrong(body):
        return dict(mutants_of(body))["all parities wrong"]()

    monkeypatch.setattr(tile_core.emit.tail, "share", parities_wrong)
    with pytest.raises(UnprovenBarriers, match="gemm"):
        tile.compile(PERSISTENT.case_of("gemm_f16_tiles").program, "cuda:sm_90a", options=PERSISTENT.options)
