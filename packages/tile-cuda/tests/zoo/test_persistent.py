"""Persistent products with a producer warp, under the emulator and the assembler."""

from __future__ import annotations

import pytest
from zoo.suite import ZooTests

from ..emit.nvrtc import assemble
from .persistent import PERSISTENT

pytestmark = pytest.mark.sweep(3)


class TestWorkers(ZooTests):
    zoo = PERSISTENT


@pytest.mark.parametrize("name", [e.name for e in PERSISTENT.entries])
def test_the_assembler_serialises_no_product(name):
    text = PERSISTENT.text_of(name).text
    assert "const int worker = blockIdx.x;" in text
    assert "(C7" not in assemble(text, "sm_90a")
