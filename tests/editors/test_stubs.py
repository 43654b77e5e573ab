"""Stubs of ``T`` and ``tile``: they agree with the code, and mypy finds planted errors by them."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import check_types
import editor_stubs
import pytest
from planted_types import HEAD, WRONG
from repository import ROOT
from stubs.signatures import UnknownTypeInStub, documented, stub_of


def test_stub_files_agree_with_the_code() -> None:
    different = [str(path) for path, text in editor_stubs.texts().items() if path.read_text(encoding="utf-8") != text]
    assert different == []


def test_a_changed_stub_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = ROOT / "packages/tile-core/src/tile_core/__init__.pyi"
    monkeypatch.setattr(editor_stubs, "texts", lambda: {path: path.read_text(encoding="utf-8") + "x: int\n"})
    monkeypatch.setattr(sys, "argv", ["editor_stubs.py", "--check"])
    assert editor_stubs.main() == 1
    assert "tile_core/__init__.pyi: differs" in capsys.readouterr().out


def test_an_annotation_without_a_translation_is_refused() -> None:
    def copy(src: Unheard) -> None: ...

    with pytest.raises(UnknownTypeInStub, match="Unheard"):
        stub_of("copy", copy)


@pytest.mark.parametrize("text", ['ends in a "quote"', "a \\ backslash", 'three """ quotes', "two\n\nparagraphs"])
def test_a_docstring_survives(text: str) -> None:
    names: dict[str, object] = {}
    exec(documented("def f():", text), names)
    assert inspect.getdoc(names["f"]).strip() == text  # type: ignore[union-attr]


@pytest.mark.sweep(0.25)
def test_strict_mypy_accepts_an_annotated_kernel_without_settings(tmp_path: Path) -> None:
    assert _mypy(tmp_path, HEAD.format(line="T.sync_threads()"), "--strict") == []


@pytest.mark.sweep(0.25)
def test_mypy_finds_planted_errors(tmp_path: Path) -> None:
    lines = ("\n" + " " * 12).join(WRONG)
    found = _mypy(tmp_path, HEAD.format(line=lines), "--strict")
    first = HEAD.splitlines().index(" " * 12 + "{line}") + 1
    for number, (line, message) in enumerate(WRONG.items(), first):
        assert any(f"page.py:{number}: error" in text and message in text for text in found), (line, found)


@pytest.mark.sweep(0.25)
def test_names_of_absent_backends_are_errors(tmp_path: Path) -> None:
    """The stub of ``T`` mentions backends that need not be installed."""
    for package in ("tile_core",):
        (tmp_path / package).symlink_to(ROOT / "packages" / package.replace("_", "-") / "src" / package)
    page = "import tile_core.language as T\n\nT.clear\nT.wgmma_gemm\n"
    found = _mypy(tmp_path, page, "--no-site-packages", "--follow-imports=silent", environment=str(tmp_path))
    assert [line for line in found if "page.py" in line and "has no attribute" in line] == [
        'page.py:4: error: Module has no attribute "wgmma_gemm"  [attr-defined]'
    ]


@pytest.mark.sweep(0.25)
def test_the_pages_tool_reports_errors_at_the_lines_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_types, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    skipped = "<!-- types: skip, a wrong name -->\n```python\nT.no_such_either\n```\n"
    page.write_text(f"# Page\n\n```python\nimport tile_core.language as T\n\nT.no_such\n```\n\n{skipped}")
    (found,) = check_types.check([page], check_types.mypy)
    assert found.startswith("page.md:6: error: Module has no attribute")


def _mypy(folder: Path, text: str, *options: str, environment: str | None = None) -> list[str]:
    (folder / "page.py").write_text(text, encoding="utf-8")
    # Not one for both: mypy would keep what it found without the packages of backends.
    cache = ROOT / ".mypy_cache" / ("pages" if environment is None else "absent")
    command = [sys.executable, "-m", "mypy", *options, "--config-file=", f"--cache-dir={cache}", "page.py"]
    variables = None if environment is None else {"MYPYPATH": environment}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=variables)
    assert done.returncode in (0, 1), done.stderr
    return [line for line in done.stdout.splitlines() if ": error:" in line]
