"""Pages of ``explain`` for kernels of the zoo, on all targets."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from zoo.table import KERNELS, PRODUCTS

import tile_core as tile
import tile_core.language as T
from tile_core.reports.facts import Facts
from tile_core.reports.report import ReportText
from tile_core.reports.timeline import timeline_of

TARGETS = ("cuda:sm_90a", "cuda:sm_80", "metal", "rocm:gfx942", "cpu")
ENTRIES = {entry.name: entry for entry in (*KERNELS, *PRODUCTS)}
_VOID = frozenset({"meta"})
_LOADS = re.compile(r"<script|<link|<img|\bsrc=|\bhref=|@import|url\(", re.IGNORECASE)


class Page(HTMLParser):
    """Elements and text of a page; unclosed and crossed elements are errors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        #: Number and text of each line of the source.
        self.lines: list[list[str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "span" and ("class", "number") in attrs:
            self.lines.append(["", ""])
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style" and data.strip():
            self.text.append(data.strip())
        if self.lines and self.open[-1:] == ["pre"] and not self.lines[-1][1]:
            self.lines[-1][1] = data
        elif self.lines and self.open[-1:] == ["span"] and not self.lines[-1][0]:
            self.lines[-1][0] = data

    def buffers(self) -> list[dict[str, str | None]]:
        """Return the attributes of the drawn shared buffers."""
        return [attrs for tag, attrs in self.elements if tag == "rect" and attrs.get("class") == "buffer"]


def check(report: ReportText) -> Page:
    """Check a page against the facts of its report, which it must show completely, and loads nothing."""
    text = report.html_page()
    assert text.startswith("<!DOCTYPE html>")
    assert not _LOADS.search(text)
    assert set(re.findall(r"https?://[^\"' ]+", text)) <= {"http://www.w3.org/2000/svg"}
    page = Page(text)
    expected = list(dict.fromkeys(line for facts in report.facts for line in facts.source))
    assert [number for number, _ in page.lines] == [x.location.rpartition(":")[2] for x in expected]
    assert [shown.strip() for _, shown in page.lines] == [x.text.strip() for x in expected]
    drawn = [b for facts in report.facts for b in (facts.block.shared if facts.block else ())]
    found = [(a["data-buffer"], int(a["data-offset"] or 0), int(a["data-bytes"] or 0)) for a in page.buffers()]
    assert found == [(b.name, b.offset, b.bytes) for b in drawn]
    for facts in report.facts:
        check_launch(page, facts)
    return page


def check_launch(page: Page, facts: Facts) -> None:
    """Check bytes, roles and slots of a launch."""
    for op in facts.ops:
        assert op.variant in page.text
    if facts.block is None or facts.block.drawn is None:
        return
    if facts.block.shared:
        (sentence,) = [t for t in page.text if t.endswith(f": {facts.shared_bytes:,} of {facts.shared_limit:,} bytes.")]
        parts = re.findall(r"(less )?([\d,]+) bytes", sentence.rpartition(": ")[0])
        assert sum((-1 if less else 1) * int(n.replace(",", "")) for less, n in parts) == facts.shared_bytes
    for schedule in (s for s in facts.block.drawn.schedules if s is not None):
        assert {p.role.name for p in schedule.programs} <= set(page.text)
        for bars in timeline_of(schedule).slots.values():
            assert all(a.end <= b.start for a, b in pairwise(bars))
            kinds = [(b.kind, b.iteration) for b in bars]
            iterations = list(dict.fromkeys(b.iteration for b in bars))
            assert kinds == [(kind, n) for n in iterations for kind in ("copy", "use")]


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ENTRIES)
def test_pages_of_the_zoo(name: str, target: str) -> None:
    check(tile.explain(ENTRIES[name].make().program, target))


def gemm(M: int, block_M: int, block_N: int, threads: int, num_stages: int) -> Any:
    @T.prim_func
    def product(A: T.Tensor((M, M), "float16"), B: T.Tensor((M, M), "float16"), C: T.Tensor((M, M), "float16")) -> None:
        with T.Kernel(T.ceildiv(M, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_s = T.alloc_shared((block_M, 64), "float16")
            B_s = T.alloc_shared((64, block_N), "float16")
            C_f = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_f)
            for k in T.Pipelined(T.ceildiv(M, 64), num_stages=num_stages):
                T.copy(A[by * block_M, k * 64], A_s)
                T.copy(B[k * 64, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_f)
            T.copy(C_f, C[by * block_M, bx * block_N])

    return product


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(
    ("target", "options", "roles"),
    [
        ("cuda:sm_90a", {}, {"the producer", "the block"}),
        ("cuda:sm_90a", {"clusters": "always"}, {"the producer", "the block"}),
        ("cuda:sm_90a", {"persistent": "never", "tma": "never"}, {"the block"}),
        ("cuda:sm_100a", dict.fromkeys(("tcgen05", "persistent", "tma"), "always"), {"the producer", "the MMA warp"}),
        ("cuda:sm_80", {}, {"the block"}),
    ],
)  # fmt: skip
def test_roles_of_products(target: str, options: dict[str, str], roles: set[str]) -> None:
    wide = (128, 256, 128 if "tcgen05" in options else 256, 4)
    page = check(tile.explain(gemm(4096, *(wide if target != "cuda:sm_80" else (128, 128, 128, 3))), target, options))
    assert roles <= set(page.text)
    assert any("limited by" in text for text in page.text)


def test_a_user_s_text_is_escaped(tmp_path: Path) -> None:
    @T.prim_func
    def less(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")) -> None:
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                B[i] = T.if_then_else(A[i] < 1, A[i], 0)  # <script>alert("&amp;")</script>

    page = check(tile.explain(less, "cpu"))
    assert "script" not in [tag for tag, _ in page.elements]
    (line,) = [text for _, text in page.lines if "if_then_else" in text]
    assert line.endswith('# <script>alert("&amp;")</script>')


def test_several_launches_share_their_source() -> None:
    page = check(tile.explain(ENTRIES["split_k"].make().program, "cuda:sm_80"))
    assert len(page.lines) == len({number for number, _ in page.lines})


def test_parts_without_data_are_sentences() -> None:
    page = check(tile.explain(ENTRIES["row_max"].make().program, "cpu"))
    assert "no estimate of its time: backend 'cpu' has none." in " ".join(page.text)
    assert not [tag for tag, _ in page.elements if tag == "svg"]
