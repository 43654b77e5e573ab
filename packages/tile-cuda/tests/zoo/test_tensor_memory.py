"""Kernels for Blackwell, under the emulator and the assembler."""

from __future__ import annotations

import re

import pytest
from zoo.suite import ZooTests

from ..emit.nvrtc import assemble
from .tensor_memory import ISSUED, MOE, SM_120, TENSOR

pytestmark = pytest.mark.sweep(3)


class TestTensorZoo(ZooTests):
    zoo = TENSOR


class TestIssuedZoo(ZooTests):
    zoo = ISSUED


class TestSm120Zoo(ZooTests):
    zoo = SM_120


@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a", "sm_110a"])
@pytest.mark.parametrize("name", [e.name for e in TENSOR.entries])
def test_its_products_are_in_tensor_memory(name, arch):
    text = TENSOR.text_of(name, f"cuda:{arch}").text
    has = arch != "sm_103a" or "int8" not in name
    assert bool(re.search(r"\n +tcgen05_mma_(sp_)?cta_group_1_kind_\w+\(", text)) == has
    assert "(C7" not in assemble(text, arch)


@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a", "sm_110a"])
@pytest.mark.parametrize("name", [e.name for e in ISSUED.entries])
def test_its_products_are_issued_by_a_thread_of_its_own(name, arch):
    text = ISSUED.text_of(name, f"cuda:{arch}").text
    assert "sums_ready" in text
    assert "(C7" not in assemble(text, arch)


@pytest.mark.parametrize("name", [e.name for e in SM_120.entries])
def test_text_for_sm_120a_becomes_machine_code(name):
    assert "(C7" not in assemble(SM_120.text_of(name).text, "sm_120a")


def test_gathered_rows_feed_products():
    """Feed a mixture of experts: four-row copies fill the operand of the instruction."""
    text = TENSOR.text_of(MOE).text
    body = text[text.index('extern "C"') :]
    first, second = (body.index(x) for x in ("tile_gather4", "tcgen05_mma_cta_group_1_kind_f16"))
    assert first < second
