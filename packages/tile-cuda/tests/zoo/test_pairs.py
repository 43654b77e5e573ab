"""Products of block pairs, under the emulator and the assembler."""

from __future__ import annotations

import pytest
from zoo.launch import text_for
from zoo.suite import ZooTests

from tile_core.plugins.contexts import make_context

from ..emit.nvrtc import assemble
from .pairs import PAIRS

pytestmark = pytest.mark.sweep(8)


class TestPairs(ZooTests):
    zoo = PAIRS


@pytest.mark.parametrize("name", [e.name for e in PAIRS.entries])
@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a"])
def test_the_assembler_takes_them(name, arch):
    text = text_for(PAIRS.case_of(name), make_context(f"cuda:{arch}", PAIRS.options)).text
    if (name, arch) == ("gemm_int8", "sm_103a"):  # which has no products of integers in tensor memory
        assert "tcgen05_mma" not in text
        return
    assert "tcgen05_mma_cta_group_2_kind_" in text
    assert "__cluster_dims__(1, 2, 1)" in text
    assert not assemble(text, arch)
