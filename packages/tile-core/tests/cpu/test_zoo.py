"""The zoo's kernels on the CPU: the grammar of the IR after each pass."""

from __future__ import annotations

import pytest
from zoo.launch import lowered
from zoo.table import KERNELS, Entry

from tile_core.plugins.contexts import make_context
from tile_runtime import knobs


@pytest.mark.sweep(4)
@pytest.mark.parametrize("entry", KERNELS, ids=lambda e: e.name)
def test_grammar(entry: Entry) -> None:
    with knobs.override(verify_ir=True):
        assert lowered(entry.make().program, make_context("cpu")) is not None
