"""The proof of emitted barriers covers the zoo, and refuses kernels without a barrier between slots."""

from __future__ import annotations

import pytest
from zoo.barrier_mutants import mutants_of
from zoo.emitted import Emitted

from tile_rocm_stub.text import _emit

from .launch import AMD

#: Kernels with loops whose slots are filled while others are read.
PIPELINED = ("gemm_f16_small", "gemm_f16", "gemm_int8_large", "gemm_dynamic", "sp_f16_words")


@pytest.mark.parametrize("name", [e.name for e in AMD.entries])
@pytest.mark.sweep(6)
def test_kernels_are_covered(name):
    assert not Emitted(AMD, name, _emit).uncovered()


@pytest.mark.parametrize("name", PIPELINED)
@pytest.mark.sweep(1)
def test_mistakes_are_refused_or_harmless(name):
    kernel = Emitted(AMD, name, _emit)
    assert any(loop.schedule for loop in kernel.plan.pipeline.loops)
    made = {at: make() for at, make in mutants_of(kernel.plan.body)}
    refused = {at for at, body in made.items() if kernel.refusal(body)}
    assert any(at.endswith("barrier dropped") for at in refused)
    assert not any(kernel.misbehaves(body) for at, body in made.items() if at not in refused)
