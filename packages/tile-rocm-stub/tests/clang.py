"""The compiler of texts to machine code; tests that need it may be skipped."""

from __future__ import annotations

import re

import pytest

from tile_rocm_stub import build
from tile_rocm_stub.errors import NoCompiler


def compiler() -> str:
    """Return the command; skip the test if no clang here compiles for AMD GPUs."""
    try:
        return build.clang("gfx942")
    except NoCompiler as error:
        pytest.skip(f"{error.message}: apt-get install clang-19 lld-19")


def assembly(text: str) -> str:
    """Return the compiler's assembly of a text."""
    compiler()
    return build.assembly(text, "gfx942")


def instructions(assembly_text: str) -> set[str]:
    """Return the names of the matrix instructions in it."""
    return set(re.findall(r"\bv_s?mfma?c?_\w+", assembly_text))


def facts(assembly_text: str) -> dict[str, int]:
    """Return the compiler's report of register and memory use."""
    return {name: int(value) for name, value in re.findall(r"^ *\.(\w+): +(\d+)$", assembly_text, re.MULTILINE)}
