"""The counted kernels: a program, and an equivalent hand-written text.

The texts (``reference/*.metal``) have the structure of MLX's kernels: threads, tiles, threadgroup memory, what is read
how often. They run in the emulator as emitted texts do, on the same arguments, and must be right.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zoo import programs as zoo_programs
from zoo.case import Case
from zoo.launch import edited, text_for, values_of, wrong
from zoo.table import BF16, F16, FP32, NT

import tile_emulator
from metal_counts import programs
from metal_counts.counts import Counts, counts_of
from tile_core.abi.kernel_text import KernelText
from tile_core.plugins.contexts import make_context
from tile_metal.emulation import dialect

REFERENCE = Path(__file__).parent / "reference"
_FP8 = ("float8_e4m3fn", "float8_e4m3fn", "float32")
_METAL, _METAL4 = "metal:metal3", "metal:metal4"
Grid = tuple[int, int, int]


@dataclass(frozen=True)
class Reference:
    """A text written by hand, and how it is launched.

    Attributes
    ----------
    file
        Its name in ``reference/``.
    grid, threads
        Threadgroups, and threads of one.
    words
        What stands for words of the file: element types, sizes, bytes of threadgroup memory.
    """

    file: str
    grid: Grid
    threads: int
    words: dict[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text."""
        text = (REFERENCE / f"{self.file}.metal").read_text(encoding="utf-8")
        for word, value in self.words.items():
            text = re.sub(rf"\b{word}\b", value, text)
        return text

    @property
    def shared_bytes(self) -> int:
        """Threadgroup memory that the text declares."""
        found = re.search(r"smem\[(\d+)\]", self.text)
        return int(found[1]) if found else 0

    def launched_as(self, own: KernelText) -> KernelText:
        """Return the text with the parameters of an emitted one."""
        params = tuple(dataclasses.replace(p, align=16) for p in own.facts.params)
        entry = re.search(r"\]\] void (\w+)\(", self.text)
        assert entry is not None
        facts = dataclasses.replace(
            own.facts, entry=entry[1], grid=self.grid, block=(self.threads, 1, 1), shared_bytes=self.shared_bytes,
            shared=(), params=params, divides={},
        )  # fmt: skip
        return dataclasses.replace(edited(own, self.text), facts=facts)


@dataclass(frozen=True)
class Row:
    """A kernel: a program, and the text that it is compared with."""

    name: str
    case: Callable[[], Case]
    reference: Reference
    target: str = _METAL

    def texts(self) -> tuple[Case, KernelText, KernelText]:
        """Return the case, the text that is emitted and the one written by hand."""
        case = self.case()
        own = text_for(case, make_context(self.target))
        return case, own, self.reference.launched_as(own)

    def measured(self) -> tuple[Counts, Counts]:
        """Run both texts and return their counts: emitted, by hand.

        Raises
        ------
        AssertionError
            One of them is wrong.
        """
        case, own, reference = self.texts()
        return _run(case, own, self.target), _run(case, reference, self.target)


def _run(case: Case, text: KernelText, target: str) -> Counts:
    result = tile_emulator.run(text.text, text.facts, values_of(case, text), dialect(make_context(target).target))
    assert not result.reports, "\n".join(map(str, result.reports))
    assert not wrong(case, text, result), wrong(case, text, result)
    return counts_of(text, result)


def _gemm(
    types: Any,
    element: str,
    smem: int,
    stages: int = 2,
    file: str = "gemm",
    threads: int = 64,
    trans: tuple[bool, bool] = (False, False),
) -> tuple[Any, Reference]:
    case = functools.partial(zoo_programs.gemm_case, 128, 128, 128, types, (64, 64, 16), stages, trans, threads=threads)
    words = {"ELEMENT": element, "SMEM": str(smem), "TURNED": "true" if trans == NT else "false"}
    return case, Reference(file, (2, 2, 1), threads, words)


def _attention(dim: int, width: int) -> tuple[Any, Reference]:
    words = {"DEPTH": str(dim), "WIDTH": str(width), "SMEM": str((32 + width) * (dim + 8) * 2)}
    return functools.partial(programs.attention_case, dim, width), Reference("attention", (4, 1, 1), 128, words)


def _vector(dtype: str, file: str, block_K: int, **words: str) -> tuple[Any, Reference]:
    case = functools.partial(programs.scaled_vector_case, dtype, block_K=block_K)
    return case, Reference(file, (8, 1, 1), 64, words)


_DECODE = Reference("decode", (2, 1, 1), 256)

ROWS: tuple[Row, ...] = (
    Row("gemm float16", *_gemm(F16, "half", 5376)),
    Row("gemm bfloat16", *_gemm(BF16, "bfloat", 5376)),
    Row("gemm float32", *_gemm(FP32, "float", 9472)),
    Row("gemm float16, B as (N, K)", *_gemm(F16, "half", 6144, trans=NT)),
    Row("gemm bfloat16, B as (N, K)", *_gemm(BF16, "bfloat", 6144, trans=NT)),
    Row("gemm float16, 3 stages", *_gemm(F16, "half", 5376, 3)),
    Row(
        "gemm float8_e4m3fn",
        functools.partial(zoo_programs.gemm_case, 128, 128, 128, _FP8, (64, 64, 32), 2, NT),
        Reference("gemm_fp8", (2, 2, 1), 128),
    ),
    Row("gemm float16 x int4", programs.dequant_case, Reference("gemm_nibbles", (2, 2, 1), 64)),
    Row("vector x int4", *_vector("int4", "vector_nibbles", 512, FLIP="8u")),
    Row("vector x uint4", *_vector("uint4", "vector_nibbles", 512, FLIP="0u")),
    Row("vector x int8", *_vector("int8", "vector_bytes", 256)),
    Row("vector x float8_e4m3fn", programs.fp8_vector_case, Reference("vector_fp8", (8, 1, 1), 64)),
    Row("attention, 64 deep", *_attention(64, 32)),
    Row("attention, 128 deep", *_attention(128, 16)),
    Row("attention, one query, 64 deep", functools.partial(programs.decode_case, 2, 256, 64), _DECODE),
    Row("sum of rows", functools.partial(programs.row_sum_case, 16, 1024), Reference("row_sum", (4, 1, 1), 128)),
    Row("softmax of rows", functools.partial(programs.softmax_case, 16, 1024), Reference("softmax", (16, 1, 1), 256)),
    Row("RMS norm", functools.partial(programs.rms_norm_case, 16, 1024), Reference("rms_norm", (16, 1, 1), 256)),
    Row("gemm float16, metal4", *_gemm(F16, "half", 0, 2, "gemm_tensor", 128), _METAL4),
    Row("gemm float16, B as (N, K), metal4", *_gemm(F16, "half", 0, 2, "gemm_tensor", 128, NT), _METAL4),
)
"""All kernels."""

MOST = 1.05
"""How much more than a text written by hand an emitted one may need."""
