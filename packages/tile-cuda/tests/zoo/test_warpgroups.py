"""Warpgroup products, under the emulator and the assembler."""

from __future__ import annotations

import re

import pytest
from zoo.suite import ZooTests

from ..emit.nvrtc import assemble
from .warpgroups import WARPGROUPS

pytestmark = pytest.mark.sweep(3)


class TestWarpgroupZoo(ZooTests):
    zoo = WARPGROUPS


@pytest.mark.parametrize("name", [e.name for e in WARPGROUPS.entries])
def test_products_use_warpgroup_instructions(name):
    text = WARPGROUPS.text_of(name).text
    assert re.search(r"\n +wgmma_(sp\d_)?m64n", text)
    assert "(C7" not in assemble(text, "sm_90a")
