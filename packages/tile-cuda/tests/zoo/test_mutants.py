"""Mistakes in emitted texts are found: by a check of the emulator, or because NumPy computes something else.

A mutant that nobody finds is either no mistake, which its test then says, or a gap in the emulator. A part of them runs
by default and rotates with the commit; the others, like it, with ``-m slow``.
"""

from __future__ import annotations

import re

import pytest
from zoo.launch import edited, wrong
from zoo.mutant import Mutant

from .launch import case_of, run, text_of
from .mutants import MUTANTS

BARRIER = r"\n *__syncthreads\(\);"
#: Kernels whose barriers are left out one by one, and the barriers that order nothing, counted from the end.
BARRIERS = {
    "gemm_f16_small": set(),
    "split_k": set(),
    "row_max": set(),
    "cumsum_columns": set(),
    "block_sum": set(),
    "neighbours": set(),
    "kv_gather": set(),
    "kv_append": set(),
    # The barrier before the first copies: that of the first turn does; the one after the loop: two turns use two slots.
    "moe": {-6, -3},
}


def found(mutated, case, text):
    """Whether a run of a changed text shows that it is wrong."""
    for how in ({"completion": "late"}, {"completion": "early", "order": "random", "seed": 5}):
        result = run(case, edited(text, mutated), **how)
        if result.reports or wrong(case, text, result):
            return True
    return False


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(m, id=f"{m.kernel}-{m.name.replace(' ', '-')}", marks=[pytest.mark.slow] if m.slow else [])
        for m in MUTANTS
    ],
)
def test_mutant(mutant):
    case, text = case_of(mutant.kernel), text_of(mutant.kernel)
    assert found(mutant.apply(text.text), case, text)


@pytest.mark.parametrize("name", list(BARRIERS))
def test_every_barrier_is_needed(name):
    case, text = case_of(name), text_of(name)
    count = len(re.findall(BARRIER, text.text))
    without = [Mutant(name, "no barrier", BARRIER, "", at).apply(text.text) for at in range(count)]
    missed = {at - count for at in range(count) if not found(without[at], case, text)}
    assert missed == BARRIERS[name]


@pytest.mark.parametrize("name", sorted({m.kernel for m in MUTANTS} | set(BARRIERS)))
def test_unchanged(name):
    """The same way of looking finds nothing in the texts as they are."""
    case, text = case_of(name), text_of(name)
    assert not found(text.text, case, text)
