"""Mistakes of a list of kinds, drawn over the texts of the zoo: each is reported."""

from __future__ import annotations

import functools
import random
import re
from itertools import zip_longest

import pytest
from zoo.mutant import Mutant

from tile_core.errors import TileError
from tile_metal.lint import lint

from .launch import APPLE
from .table import KEPT

#: By name the pattern of a mistake and what replaces it, each at one of its matches.
KINDS = {
    "a barrier left out": (r"\n *threadgroup_barrier\([^\n]*", ""),
    "an index of the next element": (r"(= \*\((?:device|threadgroup) const \w+\*\)&\w+\[)", r"\g<1>1 + "),
    "a store to the next element": (r"(\n *\*\((?:device|threadgroup) \w+\*\)&\w+\[)", r"\g<1>1 + "),
    "one more than the limit": (r"(if \([^\n]*) < (\d+\))", r"\1 <= \2"),
    "a wrong pitch": (r"(simdgroup_load\w+\(&[^\n]*\], )(\d+)\)", r"\1(\2 + 8))"),
    "an iteration too few": (r"(for \(int k = 0; k < )(\d+)(; \+\+k\))", r"\g<1>(\2 - 1)\3"),
    "a step of the loop over K left out": (r"for \(int k_step = 0", "for (int k_step = 1"),
    "coordinates of threadgroups swapped": (r"(threadgroup_position_in_grid)\.y", r"\1.x"),
    "a product left out": (r"\n *simdgroup_multiply_accumulate_f32_\w+\(&[^\n]*", ""),
    "operands swapped": (r"&(\w+_values\[[^\n]*?\]), &(\w+_values\[[^\n]*?\])\);", r"&\2, &\1);"),
    "an accumulator that begins at one": (r"(\n *\w+\[[^\n]*\] = )0\.0f;", r"\g<1>1.0f;"),
    "another address space": (r"\(threadgroup const (\w+\*\)&)", r"(device const \1"),
    "a name that is not there": (r"\bsimdgroup_load\(m", "simdgroup_read(m"),
    "a type that Metal lacks": (r"\bconst float (\w+ =)", r"const double \1"),
    "a shuffle by the wrong distance": (r"\(ushort\)8\)", "(ushort)4)"),
}  # fmt: skip
#: Changes after which a text is still right.
HARMLESS = {
    ("a barrier left out", "gemm_fp32_even"): "the loop over K has one iteration, before which nothing is read",
    ("an accumulator that begins at one", "attention"): "the first iteration multiplies it by zero",
}
COUNT = 24


@functools.cache
def drawn():
    """Return mistakes of all kinds in turn, at matches of texts that chance draws."""
    chance, found = random.Random(7), {}
    for kind, (pattern, new) in KINDS.items():
        kept = [k for k in KEPT if (kind, k) not in HARMLESS]
        matches = [(k, at) for k in kept for at in range(len(re.findall(pattern, APPLE.text_of(k).text)))]
        found[kind] = [Mutant(k, kind, pattern, new, at) for k, at in chance.sample(matches, min(3, len(matches)))]
    rounds = zip_longest(*found.values())
    return [m for each in rounds for m in each if m is not None][:COUNT]


def is_reported(mutant):
    """Whether the rules for texts or a run report a mistake."""
    changed = mutant.apply(APPLE.text_of(mutant.kernel).text)
    try:
        return bool(lint(changed)) or APPLE.finds(mutant.kernel, changed)
    except TileError:
        return True  # the emulator's compiler refuses it


@pytest.mark.sweep(1)
def test_every_kind_is_drawn():
    assert len(drawn()) == COUNT
    assert {m.name for m in drawn()} == set(KINDS)


@pytest.mark.sweep(8)
@pytest.mark.parametrize("number", range(COUNT))
def test_a_drawn_mistake_is_reported(number):
    mutant = drawn()[number]
    assert is_reported(mutant), f"{mutant.kernel}: {mutant.name}, match {mutant.at}"


@pytest.mark.sweep(1)
def test_a_right_text_is_not_reported():
    assert not is_reported(Mutant("rms_norm", "nothing", r"#include", "#include"))
