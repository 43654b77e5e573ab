"""Whole-tile examples have, line by line, the text of element loops."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tile_core.language as T

from . import loops
from .targets import TARGETS, compiled

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
_MODULES = ("checks", "flash_attention", "rms_norm", "softmax", "top_k")


@pytest.fixture(autouse=True)
def _beside_examples(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    for name in _MODULES:
        sys.modules.pop(name, None)


def _example(name: str) -> Any:
    return importlib.import_module(name)


def _threads(columns: int) -> int:
    return int(_example("checks").threads_for(columns))


def _attention(causal: bool) -> tuple[Any, Any]:
    sizes = (2, 1, 77, 133, 40, causal)
    return _example("flash_attention").attention(*sizes), loops.attention(*sizes)


def _norm(rows: int, columns: int, dtype: str) -> tuple[Any, Any]:
    whole = _example("rms_norm").rms_norm(rows, columns, dtype, block_M=2)
    return whole, loops.rms_norm(rows, columns, dtype, _threads(columns), block_M=2)


def _softmax(rows: int, columns: int, dtype: str) -> tuple[Any, Any]:
    whole = _example("softmax").softmax(rows, columns, dtype, block_M=2)
    return whole, loops.softmax(rows, columns, dtype, _threads(columns), block_M=2)


def _route(*sizes: Any) -> tuple[Any, Any]:
    return _example("top_k").route(*sizes), loops.route(*sizes)


def _reductions() -> tuple[Any, Any]:
    @T.prim_func
    def main(P: T.Tensor((5, 33, 40), "float32"), W: T.Tensor((5,), "float32"), C: T.Tensor((33, 40), "float32")):
        with T.Kernel(1, threads=128):
            total = T.alloc_fragment((33, 40), "float32")
            T.clear(total)
            for k in T.serial(5):
                total += P[k, :, :] * W[k]
            T.copy(total, C)

    return main, loops.stream_k_sum(5, 33, 40)


CASES = {
    "attention": lambda: _attention(False), "attention, causal": lambda: _attention(True),
    "norm": lambda: _norm(64, 512, "float32"), "norm, awkward": lambda: _norm(5, 129, "float16"),
    "softmax": lambda: _softmax(37, 1000, "float32"), "top-k": lambda: _route(13, 100, 3, "float16"),
    "reductions of parts": _reductions,
}  # fmt: skip


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_the_text_is_that_of_loops(name: str, target: str) -> None:
    whole, written_out = (compiled(program, target).source for program in CASES[name]())
    assert whole == written_out
