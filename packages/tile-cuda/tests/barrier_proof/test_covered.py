"""The proof of emitted barriers covers every kernel of the zoo, and is part of each compilation."""

from __future__ import annotations

import pytest

import tile_core as tile
import tile_core.emit.tail
from tile_core.errors.lowering import UnprovenBarriers
from tile_core.simt.barrier_proof.check import check_emitted
from tile_cuda.async_instructions import INSTRUCTIONS

from ..zoo.persistent import PERSISTENT
from .emitted import Emitted, entries
from .ir_mutants import mutants_of

#: Kernels that the proof does not cover, with the reason. This may only become shorter.
UNCOVERED: dict[tuple[str, str], str] = {}


@pytest.mark.parametrize(("zoo", "name", "target"), [pytest.param(*e, id=f"{e[1]}-{e[2]}") for e in entries()])
@pytest.mark.sweep(8)
def test_kernels_are_covered(zoo, name, target):
    found = check_emitted(Emitted(zoo, name, target).plan, INSTRUCTIONS)
    assert found == UNCOVERED.get((name, target), "")


def test_a_wrong_kernel_does_not_compile(monkeypatch):
    def parities_wrong(body):
        return dict(mutants_of(body))["all parities wrong"]()

    monkeypatch.setattr(tile_core.emit.tail, "share", parities_wrong)
    with pytest.raises(UnprovenBarriers, match="gemm"):
        tile.compile(PERSISTENT.case_of("gemm_f16_tiles").program, "cuda:sm_90a", options=PERSISTENT.options)
