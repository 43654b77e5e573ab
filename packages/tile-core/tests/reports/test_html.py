"""HTML of reports, results, layouts and errors."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from html.parser import HTMLParser

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError, Where
from tile_core.reports import explain_facts, explain_launches
from tile_core.reports.lines import source_of
from tile_core.reports.page import page_of
from tile_core.reports.parts import Section, parts_of
from tile_core.runtime.bench import BenchResult
from tile_core.runtime.verify import Compared, VerifyReport
from tile_core.tuning import Trial, Tuned
from tile_runtime import markup


class _Page(HTMLParser):
    """Elements and text of a page; unclosed and crossed elements are errors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style" and data.strip():
            self.text.append(data.strip())


def program():
    @T.prim_func
    def less(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((64, 64), "float16")
            T.copy(A, S)
            for i, j in T.Parallel(64, 64):
                B[i, j] = T.if_then_else(S[i, j] < 1, S[i, j], 0)

    return less


def test_a_report_is_its_text_and_has_the_same_tables_as_html():
    report = tile.explain(program(), "cpu")
    assert isinstance(report, str)
    assert report.startswith("less for cpu")
    page = _Page(report._repr_html_())
    for part in parts_of(report.facts[0]):
        texts = (
            [part.title, *part.columns, *(c for row in part.rows for c in row)]
            if isinstance(part, Section)
            else part[:1]
        )
        assert [t for t in texts if t.strip() and t.strip() not in page.text] == []


def test_the_report_of_a_kernel_is_of_the_same_kind():
    kernel = tile.compile(program(), "cpu")
    assert type(kernel.explain()) is type(tile.explain(program(), "cpu"))
    assert "less for cpu" in kernel.explain()._repr_html_()


def test_a_report_survives_copies():
    report = tile.explain(program(), "cpu")
    for other in (pickle.loads(pickle.dumps(report)), copy.copy(report)):
        assert other == report
        assert other._repr_html_() == report._repr_html_()


def test_shared_memory_is_drawn():
    pytest.importorskip("tile_cuda")
    (facts,) = explain_launches(program(), "cuda:sm_80")
    page = _Page(tile.explain(program(), "cuda:sm_80")._repr_html_())
    assert page.names.count("svg") == 1
    assert f"8,192 of {facts.shared_limit:,} bytes" in page.text


def test_results_of_bench():
    page = _Page(BenchResult("k", (2e-6, 4e-6, 3e-6), 10)._repr_html_())
    assert page.names.count("line") == 3
    assert "k: median 3 us, min 2 us, mean 3 us (3 samples of 10 launches)" in page.text
    assert "4 us" in page.text


def test_results_of_verify():
    found = Compared("C", 4096, (3, 4), 0.25, 1e-3, 1e-4, unwritten=2, first_unwritten=(0, 1))
    page = _Page(VerifyReport("k", (found,))._repr_html_())
    assert {"k: equal to its reference", "C", "4,096", "0.25", "(3, 4)", "0.001"} <= set(page.text)
    assert "allowed: output 'C': 2 of 4096 elements are never written, the first at (0, 1)" in page.text


def test_results_of_tuning():
    trials = [Trial({"block": n}, 1e-6 * n, low=0.9e-6 * n, high=1.1e-6 * n) for n in range(1, 40)]
    trials.append(Trial({"block": -1}, error="[K219] <no> tile"))
    kernel = tile.compile(program(), "cpu")
    page = _Page(Tuned(kernel, trials[2].config, tuple(trials))._repr_html_())
    assert "less: the fastest of 40 is block=3" in page.text
    assert page.text.index("block=3") < page.text.index("block=1")
    assert page.names.count("rect") == 24
    assert "15 slower configurations are not shown" in page.text
    assert "[K219] <no> tile" in page.text


def test_layouts():
    swizzled = T.Layout((8, 16), lambda i, j: i * 16 + (j ^ i))
    page = _Page(swizzled._repr_html_())
    assert page.names.count("rect") == 128
    assert not any("of 8 rows" in text for text in page.text)
    large = T.Fragment((64, 64), lambda i, j: (i, j))
    page = _Page(large._repr_html_())
    assert page.names.count("rect") == 32 * 32
    assert "32 of 64 rows, 32 of 64 columns" in page.text


def test_errors():
    with pytest.raises(TileError) as caught:
        tile.compile(program(), "cpu")(np.zeros((64, 64), "float32"), np.zeros((64, 64), "float16"))
    page = _Page(caught.value._repr_html_())
    assert "K411: less: argument 'A' must be float16, found float32" in page.text
    assert any("def less(A: T.Tensor" in text for text in page.text)
    assert any(text.startswith("help: ") for text in page.text)


def test_text_is_escaped():
    text = '<script>"&'
    parts = (markup.paragraph(text), markup.code(text), markup.section(text, ""), markup.table([text], [[text]]))
    page = _Page(markup.page(*parts, markup.spans([markup.Span(text, 0, 1, text)], 1, text)))
    assert "script" not in page.names
    assert page.text.count(text) == 8


def test_bars_of_nothing():
    assert _Page(markup.spans([markup.Span("a", 0, 0)], 0, "0 bytes")).names.count("rect") == 1


def test_lines_of_a_function(tmp_path):
    file = tmp_path / "kernels.py"
    file.write_text(
        "import x\n\n@x.kernel\ndef one(\n    a,\n):\n    a.copy()\n\ndef two():\n    pass\n", encoding="utf-8"
    )
    found = source_of(Where(str(file), 4), [f"{file}:10", f"{file}:7", ""])
    assert [(line.location, line.text) for line in found] == [
        (f"{file}:3", "@x.kernel"), (f"{file}:4", "def one("), (f"{file}:5", "    a,"), (f"{file}:6", "):"),
        (f"{file}:7", "    a.copy()"), (f"{file}:10", "    pass"),
    ]  # fmt: skip


def test_lines_of_a_file_that_is_gone():
    assert source_of(None, []) == ()
    assert source_of(Where("/no/such.py", 3), []) == ()
    assert [line.text for line in source_of(Where("/no/such.py", 3), ["/no/such.py:5"])] == [""]


def test_a_page_without_source_says_why():
    facts = dataclasses.replace(explain_facts(program(), "cpu"), source=())
    assert "<b>Source:</b> the file of the kernel is not available." in page_of([facts])
