"""Strategies reach the variants and passes of the CPU that need long rows, wide groups or blocks of scales."""

from __future__ import annotations

import re

import pytest
from hypothesis import Phase, given, settings

from tile_core.compat.tvm import tirx
from tile_core.compiler import lower
from tile_core.cpu.dots import dot_of
from tile_core.cpu.isa import detect
from tile_core.ir.visit import collect
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.testing.run import load
from tile_core.testing.strategies import programs


def _missing(only, name, forms, count):
    """Return the forms that no drawn program with a variant or buffer of this name has."""
    plugins, missing = installed(), set(forms)

    @settings(max_examples=count, derandomize=True, database=None, deadline=None, phases=[Phase.generate])
    @given(programs(only))
    def each(unit):
        text = unit.text() if missing else ""
        if not any(re.search(form, text) for form in missing):
            return
        (program,) = load(text).stages
        plan = lower(program, make_context("cpu", plugins=plugins), plugins)
        names = {choice.selection.variant.name for choice in plan.choices}
        names |= {str(s.buffer.name) for s in collect(plan.lowered.body, tirx.AllocBuffer)}
        if name in names:
            missing.difference_update([form for form in missing if re.search(form, text)])

    each()
    return missing


@pytest.mark.sweep(0.25)
def test_scans_of_several_vectors_are_drawn():
    scans = {
        rf"T\.cum{kind}\(.*dim=(1|-1){more}\)" for kind in ("sum", "prod", "max") for more in ("", ", reverse=True")
    }
    nan = r"T\.cummax\(.*nan_propagate=True"
    lengths = {rf"B: T\.Tensor\(\(\d+, {n}\)" for n in (131, 260)}  # elements are left after the vectors
    assert not _missing("reductions", "cpu.scan.lanes", {*scans, nan, *lengths}, 1200)


@pytest.mark.sweep(0.25)
@pytest.mark.skipif(detect().name != "avx512", reason="no permutation of this width here")
def test_tables_of_codes_are_drawn():
    storages = {rf"q = T\.alloc_shared\(.*\b{d}\b" for d in ("int4", "uint4")}
    groups = {rf"\) // ({n})\b" for n in ("64|96", "128|256", "65|66|99")}
    assert not _missing("converted-operands", "table", {*storages, *groups}, 1200)


@pytest.mark.sweep(0.25)
def test_scaled_products_of_packed_tiles_are_drawn():
    scales = {rf"p = T\.alloc_shared\(.*{d}" for d in ("e8m0", "e4m3")}
    assert not _missing("scaled-products", "cpu.gemm_scaled.packed", scales, 40)


@pytest.mark.sweep(0.25)
@pytest.mark.skipif(dot_of(detect(), "int8", "int8", "int32") is None, reason="no dot products of int8 here")
def test_sparse_products_of_integers_are_drawn():
    stored = {rf"s = T\.alloc_shared\(.*int8[\s\S]*gemm_sp\(.*transpose_B={x}" for x in (False, True)}
    assert not _missing("tall-products", "cpu.gemm_sp.expanded", stored, 600)
