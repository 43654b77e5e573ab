"""Kernels with products in flight across iterations, under the emulator and the assembler."""

from __future__ import annotations

import pytest
from zoo.suite import ZooTests

from ..emit.nvrtc import assemble
from .boxes_in_flight import BOXES_IN_FLIGHT


class TestBoxesInFlight(ZooTests):
    zoo = BOXES_IN_FLIGHT


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", [e.name for e in BOXES_IN_FLIGHT.entries])
def test_the_assembler_serialises_no_product(name):
    text = BOXES_IN_FLIGHT.text_of(name).text
    assert ("  wgmma_wait_group_sync_aligned_1();" in text) == (name != "gemm_fp8_one_trip")
    assert "(C7" not in assemble(text, "sm_90a")
