"""Attention whose warps lie side by side: scores stay in registers, and weights pass through shared memory."""

from __future__ import annotations

import numpy as np
import pytest
from zoo.case import example

import tile_core as tile
from tile_core.reports import report_json


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(("queries", "keys", "dim"), [(64, 128, 64), (50, 75, 128)])
def test_scores_stay_in_registers(queries, keys, dim):
    module = example("flash_attention")
    program = module.attention(1, 1, queries, keys, dim, True, "float16", 32, 64, 128)
    kernel = tile.compile(program, "cuda:sm_80", runtime="emulator")
    held = {fragment["name"] for fragment in report_json(program, "cuda:sm_80")["block"]["fragments"]}
    assert "scores" in held
    assert "weights" not in held
    rng = np.random.default_rng(dim)
    q, k, v = (rng.standard_normal((1, 1, n, dim)).astype("float16") for n in (queries, keys, keys))
    out = np.full((1, 1, queries, dim), np.nan, "float16")
    kernel(q, k, v, out)
    np.testing.assert_allclose(out.astype("float64"), module.reference(q, k, v, True), atol=2e-3, rtol=2e-3)
