"""Mistakes in emitted texts are found: by a check of the emulator, or because NumPy computes something else.

A mutant that nobody finds is either no mistake, which its test then says, or a gap in the emulator. A part of them runs
by default and rotates with the commit; the others, like it, with ``-m slow``. That this way of looking finds nothing in
the texts as they are, ``test_numbers.py`` shows.
"""

from __future__ import annotations

import re

import pytest
from zoo.launch import edited, wrong
from zoo.mutant import Mutant

from .launch import ORDERS, case_of, run, text_of
from .mutants import MUTANTS

BARRIER = r"\n *threadgroup_barrier\([^\n]*"
#: Kernels whose barriers are left out one by one: each of them orders something.
BARRIERS = (
    "gemm_f16_small", "split_k", "row_max", "cumsum_columns", "block_sum", "neighbours", "kv_gather", "fp8_rows",
)  # fmt: skip


def found(mutated, case, text):
    """Whether a run of a changed text shows that it is wrong."""
    for how in ORDERS:
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


@pytest.mark.parametrize("name", BARRIERS)
def test_every_barrier_is_needed(name):
    case, text = case_of(name), text_of(name)
    count = len(re.findall(BARRIER, text.text))
    without = [Mutant(name, "no barrier", BARRIER, "", at).apply(text.text) for at in range(count)]
    assert count
    missed = {at - count for at in range(count) if not found(without[at], case, text)}
    assert not missed
