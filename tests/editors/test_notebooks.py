"""Notebooks, executed by a Jupyter kernel: what their cells show."""

from __future__ import annotations

from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

pytestmark = pytest.mark.editor

START = """\
import numpy as np
import tile_core as tile
import tile_core.language as T
"""

KERNEL = """\
@T.prim_func
def kernel(A: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=64):
        for i, j in T.Parallel(64, 64):
            A[i, j] = {value}
"""


def run(*cells: str) -> list[list[Any]]:
    """Return the outputs of each cell."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in (START, *cells)])
    nbclient.NotebookClient(book, timeout=100, kernel_name="python3", allow_errors=True).execute()
    return [cell.outputs for cell in book.cells[1:]]


def printed(outputs: list[Any]) -> str:
    """Return the text that a cell printed, which may come in several parts."""
    return "".join(output.text for output in outputs).strip()


def test_reports_and_results_have_html() -> None:
    tuned = """\
@tile.autotune([{"block": 16}, {"block": 32}])
@tile.jit(target="cpu")
def factory(n, block=16):
    @T.prim_func
    def copied(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
            T.copy(A[bx * block], B[bx * block])
    return copied

factory.tune(64)"""
    wrong = "try:\n    compiled(np.zeros(64))\nexcept tile.TileError as error:\n    found = error\nfound"
    cells = {
        "compiled.explain()": "kernel for cpu",
        'tile.explain(kernel, "cpu")': "kernel for cpu",
        "compiled.verify(np.zeros((64, 64), 'float32'))": "equal to its reference",
        "compiled.bench(np.zeros((64, 64), 'float32'))": "<svg",
        tuned: "the fastest of 2",
        "T.Layout((4, 4), lambda i, j: i * 4 + j)": "<svg",
        wrong: "K411",
    }
    first, *others = run(KERNEL.format(value=1) + 'compiled = tile.compile(kernel, "cpu")', *cells)
    assert first == []
    for (cell, part), outputs in zip(cells.items(), others, strict=True):
        (output,) = outputs
        assert output.output_type == "execute_result", (cell, output)
        assert part in output.data["text/html"]
        assert output.data["text/plain"]


def test_a_report_of_the_command_line_is_text() -> None:
    program = "from tile_core.reports import explain_launches\nfrom tile_core.reports.report import show\n"
    program += 'from tile_core.cli.console import console\nshow(explain_launches(kernel, "cpu")[0], console())'
    (outputs,) = run(KERNEL.format(value=1) + program)
    assert {output.output_type for output in outputs} == {"stream"}
    assert "kernel for cpu" in printed(outputs)


def test_reports_name_cells() -> None:
    (text,), (page,) = run(KERNEL.format(value=1) + 'print(tile.explain(kernel, "cpu"))', 'tile.explain(kernel, "cpu")')
    assert "defined at Cell In[2]:2" in text.text
    assert "defined at Cell In[2]:2" in page.data["text/html"]
    assert "ipykernel" not in text.text + page.data["text/html"]


def test_a_kernel_may_be_redefined() -> None:
    call = 'x = np.zeros((64, 64), "float32")\ntile.compile(kernel, "cpu")(x)\nprint(x.min(), x.max())'
    cells = [KERNEL.format(value=value) + call for value in (1, 2, 1)]
    assert [printed(outputs) for outputs in run(*cells)] == ["1.0 1.0", "2.0 2.0", "1.0 1.0"]


def test_a_factory_may_be_redefined() -> None:
    text = """\
@tile.jit(target="cpu")
def factory(n):
    @T.prim_func
    def filled(A: T.Tensor((n,), "int32")):
        with T.Kernel(1, threads=32):
            T.fill(A, {value})
    return filled

x = np.zeros(8, "int32")
factory(8)(x)
print(x.sum())"""
    found = run(text.format(value=1), text.format(value=2))
    assert [printed(outputs) for outputs in found] == ["8", "16"]


def test_traces_are_short_unless_a_setting_shows_all() -> None:
    wrong = KERNEL.format(value="A[0, 64]")
    short, _, long = run(wrong, 'import os\nos.environ["TILE_FULL_TRACEBACK"] = "1"', wrong)
    for outputs in (short, long):
        (output,) = outputs
        assert output.output_type == "error"
        assert output.ename == "IndexOutOfRange"
        assert "[K106] index 64 is outside dimension 1 of A" in "\n".join(output.traceback)
    lines = "\n".join(short[0].traceback).splitlines()
    assert len(lines) <= 12
    assert not any("tile_core/" in line or "IPython/" in line for line in lines)
    assert any("A[i, j] = A[0, 64]" in line for line in lines)
    assert "  --> Cell In[2]:5" in lines
    assert not any("ipykernel_" in line for line in lines)
    assert sum("tile_core/" in line for line in "\n".join(long[0].traceback).splitlines()) > 3
