"""The zoo of AMD GPUs, and texts run by the emulator on a case's arguments."""

from __future__ import annotations

import functools
from pathlib import Path

from zoo.suite import Zoo

from tile_core.abi.kernel_text import KernelText
from tile_core.context import Context
from tile_core.plugins.contexts import make_context
from tile_rocm_stub.emulation import dialect

from .mutants import MUTANTS
from .table import KEPT, ZOO

GFX942, GFX950 = "rocm:gfx942", "rocm:gfx950"


@functools.cache
def context(target: str = GFX942) -> Context:
    """Return the context of a target."""
    return make_context(target)


AMD = Zoo(
    entries=ZOO,
    targets=(GFX942, GFX950),
    dialect=lambda target: dialect(context(target).target),
    orders=({}, {"order": "random", "seed": 5}),
    mutants=MUTANTS,
    barrier=r"\n *block_barrier\(\);",
    needless=dict.fromkeys(
        ("gemm_f16_small", "split_k", "cumsum_columns", "block_sum", "neighbours", "kv_gather", "fp8_rows"),
        (),
    ),
    golden=Path(__file__).parent / "golden",
    suffix=".hip",
    kept=KEPT,
)


def text_of(name: str, target: str = GFX942) -> KernelText:
    """Return the text that a call with a case's arguments takes."""
    return AMD.text_of(name, target)
