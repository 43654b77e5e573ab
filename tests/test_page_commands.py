"""Command lines of pages run verbatim, beside the files that they name."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from check_examples import python_of
from repository import ROOT

from tile_core.cli.app import run

#: Commands that README and CI run, or that need what a page of its own makes.
ELSEWHERE = {"demo", "doctor"}
GEMM = """
import tile_core.language as T


def matmul(M=64, N=48, K=40, dtype="float16", block=32):
    @T.prim_func
    def gemm(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            A_s, B_s = T.alloc_shared((block, block), dtype), T.alloc_shared((block, block), dtype)
            C_f = T.alloc_fragment((block, block), "float32")
            T.clear(C_f)
            for k in T.Pipelined(T.ceildiv(K, block), num_stages=2):
                T.copy(A[by * block, k * block], A_s)
                T.copy(B[k * block, bx * block], B_s)
                T.gemm(A_s, B_s, C_f)
            T.copy(C_f, C[by * block, bx * block])

    return gemm


def expected(a, b):
    return a.astype("float32") @ b.astype("float32")
"""


def lines() -> list[tuple[str, str]]:
    """Return page and text of each ``tile`` command in shell blocks."""
    found = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for block in re.findall(r"^```bash\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            for line in block.splitlines():
                words = shlex.split(line, comments=True)
                if words[:1] == ["tile"] and words[1] not in ELSEWHERE:
                    found.append((page.relative_to(ROOT).as_posix(), shlex.join(words[1:])))
    return found


def test_there_are_commands() -> None:
    assert {text.split()[0] for _, text in lines()} >= {"compile", "run", "explain", "cache"}


@pytest.mark.sweep(3)
@pytest.mark.parametrize(("page", "text"), lines())
def test_a_command_of_a_page(page: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path / "cache"))
    Path("gemm.py").write_text(GEMM)
    first = python_of(ROOT / "docs" / "getting-started.md").partition("\nkernel = ")[0]
    Path("kernel.py").write_text(first)
    blocks = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "docs" / "debugging.md").read_text(), re.MULTILINE | re.DOTALL
    )
    Path("pages.py").write_text(next(block for block in blocks if "def pages" in block))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert run(shlex.split(text)) == 0
