"""Every zoo kernel compiles for gfx942, with matrix instructions in all products."""

from __future__ import annotations

import functools
import math
import re

import pytest
from zoo import launch, programs
from zoo.table import BF16, F16, INT8, NT, PRODUCTS

from ..clang import assembly, compiler, facts, instructions
from .launch import context, text_of
from .table import FNUZ, OWN, ZOO

pytestmark = pytest.mark.sweep(4)

_PRODUCTS = frozenset(e.name for e in (*PRODUCTS, *OWN))
#: Kernels of the table that all targets share, which have products.
_WITH_PRODUCTS = ("attention", "epilogue", "dequant", "moe", "split_k", "fp8_")

LARGE = {
    "f16": (F16, (128, 128, 32), (False, False), 256),
    "f16_nt": (F16, (128, 128, 64), NT, 256),
    "bf16": (BF16, (128, 128, 32), NT, 256),
    "int8": (INT8, (128, 128, 64), NT, 256),
    "fp8": (FNUZ, (128, 128, 64), NT, 256),
}


@pytest.fixture(autouse=True)
def _with_a_compiler() -> None:
    compiler()


@functools.cache
def compiled(name: str) -> str:
    return assembly(text_of(name).text)


@pytest.mark.parametrize("name", [e.name for e in ZOO])
def test_compiles(name: str) -> None:
    text, found = text_of(name).text, instructions(compiled(name))
    asked = set(re.findall(r"__builtin_amdgcn_(s?mfma?c?_\w+?)\(", text))
    wanted = "smfmac" if name.startswith("sp_") else "mfma"
    if name in _PRODUCTS or name.startswith(_WITH_PRODUCTS):
        assert found
        assert all(one.startswith(f"v_{wanted}_") for one in found)
    assert len(found) == len(asked), (asked, found)
    made = facts(compiled(name))
    assert made["vgpr_spill_count"] == 0
    # Of blocks that the compiler takes to have 1,024 threads, a thread would have half of the registers.
    assert made["max_flat_workgroup_size"] == math.prod(text_of(name).facts.block)


@pytest.mark.parametrize("name", LARGE)
def test_large_products_stay_in_registers(name: str) -> None:
    types, block, trans, threads = LARGE[name]
    program = programs.gemm(4096, 4096, 4096, types, block, 2, trans, threads)
    text = launch.lowered(program, context())
    made = assembly(text.text)
    assert facts(made)["vgpr_spill_count"] == facts(made)["private_segment_fixed_size"] == 0
    assert all("32x32" in one for one in instructions(made))


def test_a_word_of_metadata_serves_several_instructions() -> None:
    found = set(re.findall(r"v_smfmac_f32_16x16x32_f16 .*?(?: abid:(\d))?$", compiled("sp_f16_words"), re.MULTILINE))
    assert found == {"", "1", "2", "3"}


def test_accesses_are_wide() -> None:
    made = compiled("gemm_f16")
    assert "global_load_dwordx4" in made
    assert "ds_write_b128" in made
    assert "ds_read_b64" in made
