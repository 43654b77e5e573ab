"""The zoo of CUDA, and texts run by the emulator on a case's arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from zoo import launch
from zoo.case import Case
from zoo.suite import Zoo

import tile_emulator
from tile_core.abi.kernel_text import KernelText
from tile_core.plugins.contexts import make_context
from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch

from .mutants import MUTANTS
from .table import KEPT, ZOO

CUDA = Zoo(
    entries=ZOO,
    targets=("cuda:sm_80",),
    dialect=lambda target: dialect_of(Arch.of(target.removeprefix("cuda:"))),
    orders=({"completion": "late"}, {"completion": "early", "order": "random", "seed": 5}),
    mutants=MUTANTS,
    barrier=r"\n *__syncthreads\(\);",
    needless={
        **dict.fromkeys(
            ("gemm_f16_small", "split_k", "row_max", "cumsum_columns", "block_sum", "neighbours", "kv_gather"), ()
        ),
        "kv_append": (),
        # The barrier after the loop: two iterations use two slots.
        "moe": (-3,),
    },
    golden=Path(__file__).parent / "golden",
    suffix=".cu",
    kept=KEPT,
)


def lowered(program: Any, arch: str = "sm_80") -> KernelText:
    """Return the text of a program."""
    return launch.lowered(program, make_context(f"cuda:{arch}"))


def text_of(name: str, arch: str = "sm_80") -> KernelText:
    """Return the text that a call with a case's arguments takes."""
    return CUDA.text_of(name, f"cuda:{arch}")


def run(case: Case, text: KernelText, arch: str = "sm_80", **how: Any) -> tile_emulator.RunResult:
    """Run a text on copies of a case's arguments."""
    return CUDA.run(case, text, f"cuda:{arch}", **{"completion": "late", **how})
