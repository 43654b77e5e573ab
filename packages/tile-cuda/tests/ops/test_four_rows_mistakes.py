"""Mistakes in texts of four-row copies, all found by the emulator."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tile_emulator
from tile_core.compiler import lower
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch

from .test_four_rows import TARGET, at, rolls, values

MISTAKES = {
    "fewer bytes": (r"(expect_tx_relaxed\w+\(&full\[0\], )512", r"\g<1>256"),
    "more bytes": (r"(expect_tx_relaxed\w+\(&full\[0\], )512", r"\g<1>528"),
    "rows exchanged": (r"0, row, row_1, row_2, row_3", "0, row, row_2, row_1, row_3"),
    "column last": (r"0, row, row_1, row_2, row_3", "row, row_1, row_2, row_3, 0"),
    "no wait": (r" *mbarrier_wait_parity\(&full\[0\], 0\);\n", ""),
    "the other phase": (r"mbarrier_wait_parity\(&full\[0\], 0\)", "mbarrier_wait_parity(&full[0], 1)"),
    "no commit": (r"cp_async_bulk_commit_group\(\);", ""),
    "another column": (r"(gather4_mbarrier_complete_tx_bytes\(&S\[0\], &A_descriptor), 0,", r"\1, 8,"),
    "a column between chunks": (r"(gather4_mbarrier_complete_tx_bytes\(&S\[0\], &A_descriptor), 0,", r"\1, 4,"),
    "another place": (r"complete_tx_bytes\(&S\[0\]", "complete_tx_bytes(&S[64]"),
    "another map": (r"bulk_group\(&S\[0\], &C_descriptor, 0, row_4", "bulk_group(&S[0], &C_descriptor, 16, row_4"),
    "the map of the other tensor": (r"bulk_group\(&S\[0\], &C_descriptor", "bulk_group(&S[0], &A_descriptor"),
    "no wait for the store": (r"cp_async_bulk_wait_group_read_0\(\);", ""),
    "a negative row": (r"row_4 < 0 \? 2147483647 : row_4", "-1"),
    "one row twice": (r"row_4 < 0 \? 2147483647 : row_4", "row_5"),
    "no fence of objects": (r"fence_mbarrier_init_release_cluster\(\);", ""),
}  # fmt: skip
ROUND = [36, 0, 17, 5]


def found(text, lowered):
    """Whether a text does anything wrong, in some order."""
    dialect = dialect_of(Arch.of("sm_100a"))
    a, c = values((37, 64), "float16"), values((37, 64), "float16", 1)
    expected = c.copy()
    expected[ROUND] = a[ROUND]
    names = [p.name for p in lowered.facts.params]
    for how in ({"completion": "late"}, {"completion": "early", "order": "random", "seed": 5}):
        given = dict(zip(names, (a, np.array(ROUND, "int32"), c.copy()), strict=False))
        given = {p.name: given[p.name] for p in lowered.facts.given}
        result = tile_emulator.run(text, lowered.facts, given, dialect, **how)
        if result.reports or not np.array_equal(result.outputs["C"].reshape(c.shape), expected):
            return True
    return False


@pytest.fixture(scope="module")
def lowered():
    return lower(rolls(), make_context(TARGET), installed()).lowered


def test_nothing_is_found_in_the_text_as_it_is(lowered):
    assert not found(lowered.text, lowered)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_the_text_are_found(mistake, lowered):
    pattern, new = MISTAKES[mistake]
    head, body = lowered.text[: lowered.text.index('extern "C"')], at(lowered.text)
    changed, count = re.subn(pattern, new, body, count=1)
    assert count == 1, body
    assert found(head + changed, lowered)
