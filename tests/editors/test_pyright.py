"""What pyright reports, and what its language server offers in an editor."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import check_types
import pytest
from language_server import LanguageServer
from planted_types import HEAD, WRONG

import tile_core
import tile_core.language as T
import tile_tilelang.language
from tile_core.plugins.manager import installed

pytestmark = [pytest.mark.editor, pytest.mark.xdist_group("editor")]

IMPORTS = "import tile_core as tile\nimport tile_core.language as T\nimport tile_tilelang.language as L\n"


@pytest.fixture(scope="module")
def editor() -> Iterator[LanguageServer]:
    with tempfile.TemporaryDirectory() as folder, LanguageServer(Path(folder)) as server:
        yield server


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("T", {*T.__all__, *installed().language_names()}),
        ("tile", set(tile_core.__all__)),
        ("L", set(tile_tilelang.language.__all__)),
    ],
    ids=["T", "tile", "tilelang"],
)
def test_completion_lists_public_names_and_no_internals(editor: LanguageServer, module: str, names: set[str]) -> None:
    offered = {name for name in editor.completions(f"{IMPORTS}{module}.") if not name.startswith("__")}
    assert offered - {n for n in names if not n.startswith("__")} - _of_backends(module) == set()
    assert {n for n in names if not n.startswith("__")} - offered == set()


def _of_backends(module: str) -> set[str]:
    return set(installed().language_names()) if module == "L" else set()


def test_hover_shows_signature_and_docstring(editor: LanguageServer) -> None:
    shown = editor.hover(f"{IMPORTS}T.gemm")
    assert "def gemm(" in shown
    assert "transpose_A: bool = False" in shown
    assert "Multiply tiles: ``C += A @ B``" in shown


#: Names whose stubs are documented otherwise: they are classes there.
OWN = {"Buffer", "Ref", "Tensor"}


@pytest.mark.parametrize("name", sorted({*T.__all__, *installed().language_names()} - OWN))
def test_hover_shows_the_docstring_of_every_name(editor: LanguageServer, name: str) -> None:
    value = getattr(T, name)
    first = str(getattr(value, "__doc__", "")).strip().partition("\n")[0]
    shown = editor.hover(f"{IMPORTS}T.{name}")
    expected = "an element type" if isinstance(value, str) else first
    assert expected.split(":")[0] in shown


def test_pyright_accepts_an_annotated_kernel_without_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_types, "PYRIGHT", {"typeCheckingMode": "standard"})
    (tmp_path / "page.py").write_text(HEAD.format(line="T.sync_threads()"))
    assert check_types.pyright(tmp_path) == []


def test_pyright_finds_planted_errors(tmp_path: Path) -> None:
    (tmp_path / "page.py").write_text(HEAD.format(line=("\n" + " " * 12).join(WRONG)))
    found = check_types.pyright(tmp_path)
    first = HEAD.splitlines().index(" " * 12 + "{line}") + 1
    missed = [line for n, line in enumerate(WRONG, first) if not any(t.startswith(f"page.py:{n}:") for t in found)]
    assert missed == []
