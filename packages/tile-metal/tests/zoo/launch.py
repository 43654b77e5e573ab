"""The zoo of Metal, and texts run by the emulator on a case's arguments."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from zoo.case import Case
from zoo.suite import Zoo

import tile_emulator
from tile_core.abi.kernel_text import KernelText
from tile_core.context import Context
from tile_core.plugins.contexts import make_context
from tile_metal.emulation import dialect

from .mutants import MUTANTS
from .table import KEPT, ZOO

METAL = "metal:metal3"
METAL4 = "metal:metal4"


@functools.cache
def context(target: str = METAL) -> Context:
    """Return the context of a target."""
    return make_context(target)


APPLE = Zoo(
    entries=ZOO,
    targets=(METAL, METAL4),
    dialect=lambda target: dialect(context(target).target),
    orders=({}, {"order": "reverse"}, {"order": "random", "seed": 5}),
    mutants=MUTANTS,
    barrier=r"\n *threadgroup_barrier\([^\n]*",
    needless=dict.fromkeys(
        ("gemm_f16_small", "split_k", "row_max", "cumsum_columns", "block_sum", "neighbours", "kv_gather", "fp8_rows"),
        (),
    ),
    golden=Path(__file__).parent / "golden",
    suffix=".metal",
    kept=KEPT,
)


def text_of(name: str, target: str = METAL) -> KernelText:
    """Return the text that a call with a case's arguments takes."""
    return APPLE.text_of(name, target)


def run(case: Case, text: KernelText, target: str = METAL, **how: Any) -> tile_emulator.RunResult:
    """Run a text on copies of a case's arguments."""
    return APPLE.run(case, text, target, **how)
