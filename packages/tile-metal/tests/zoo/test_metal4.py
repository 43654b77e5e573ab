"""Kept texts for ``metal:metal4``: what its tensor operations change, beside the kept texts of ``metal``."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from zoo.launch import values_of

import tile_emulator
from tile_metal.emulation import dialect

from .launch import APPLE, METAL4, context, text_of

pytestmark = pytest.mark.sweep(2)

GOLDEN = Path(__file__).parent / "golden_metal4"
KEPT = ("gemm_f16", "gemm_bf16", "fp8_tensor", "attention")


@pytest.mark.parametrize("kept", KEPT)
def test_golden(kept, request):
    """Compare emitted texts with golden files; ``--update-golden`` rewrites them."""
    path, text = GOLDEN / f"{kept}.metal", text_of(kept, METAL4).text
    assert "matmul2d_16x32x16" in text
    if request.config.getoption("update_golden", default=False):
        path.write_text(text, encoding="utf-8")
    found = path.read_text(encoding="utf-8") if path.exists() else ""
    assert text.splitlines() == found.splitlines(), f"{kept}: run with --update-golden if this change is wanted"


@pytest.mark.parametrize("others", [1, 2, 3])
@pytest.mark.parametrize("kept", KEPT)
def test_where_lanes_hold_other_elements_a_text_gives_no_numbers(kept, others):
    """With another lane layout in the tensors' report, a text multiplies NaN."""
    case, text, known = APPLE.case_of(kept), text_of(kept, METAL4), dialect(context(METAL4).target)
    other = dataclasses.replace(known, flags=(*known.flags, f"-DMETAL_OTHER_LANES={others}"))
    result = tile_emulator.run(text.text, text.facts, values_of(case, text), other)
    assert not result.reports, "\n".join(map(str, result.reports))
    written = [p.name for p in text.facts.params if p.kind == "pointer" and p.access != "read"]
    assert all(np.isnan(result.outputs[name].astype("float32")).all() for name in written)


def test_no_text_is_left_over():
    assert sorted(path.stem for path in GOLDEN.glob("*.metal")) == sorted(KEPT)
