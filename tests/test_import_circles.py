"""No module of any package imports itself over others: at the top, in functions, or for annotations only.

The contract "no package has a circle" of import-linter is about folders and files side by side; this is about single
modules, across folders too. Both are held against a circle that is put there.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import grimp
import pytest
from repository import ROOT

PACKAGES = sorted(path.parent.name for path in ROOT.glob("packages/*/src/*/__init__.py"))


def circles(*packages: str) -> list[list[str]]:
    """Return the groups of modules that import each other (Tarjan's strongly connected components)."""
    graph = grimp.build_graph(*packages, cache_dir=None)
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    open_: list[str] = []
    found = []

    def visit(module: str) -> None:
        number[module] = low[module] = len(number)
        open_.append(module)
        for other in sorted(graph.find_modules_directly_imported_by(module)):
            if other not in number:
                visit(other)
            if other in open_:
                low[module] = min(low[module], low[other])
        if low[module] == number[module]:
            group = open_[open_.index(module) :]
            del open_[-len(group) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in sorted(graph.modules):
        if module not in number:
            visit(module)
    return found


def linted(folder: Path, package: str) -> subprocess.CompletedProcess[str]:
    """Run import-linter's contract over a package of a folder."""
    contract = f'[[tool.importlinter.contracts]]\nname = "c"\ntype = "acyclic_siblings"\nancestors = ["{package}"]\n'
    text = f'[tool.importlinter]\nroot_package = "{package}"\n{contract}'
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    call = "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports_command as run; run()"
    command = [sys.executable, "-c", call, "--no-logo", "--no-cache", "--config", "pyproject.toml"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """A package of three modules without a circle, which can be imported under a name of its own."""
    made = tmp_path / f"seeded_{abs(hash(request.node.name))}"
    (made / "low").mkdir(parents=True)
    for name, text in {
        "__init__": "", "low/__init__": "", "low/types": "", "low/values": "from {p}.low import types\n",
        "high": "from {p}.low.values import *\n",
    }.items():  # fmt: skip
        (made / f"{name}.py").write_text(text.format(p=made.name), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return made


def test_no_package_has_a_circle() -> None:
    assert circles(*PACKAGES) == []


def test_every_folder_is_seen() -> None:
    """Without an ``__init__.py`` a folder is none of the graph's, and no contract is about it."""
    folders = {path.parent for path in ROOT.glob("packages/*/src/tile_*/**/*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_without_one_nothing_is_found(package: Path) -> None:
    assert circles(package.name) == []
    done = linted(package.parent, package.name)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "from {p}.high import X\n",
        "def late():\n    from {p} import high\n    return high\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from {p}.high import X\n",
    ],
    ids=["at the top", "in a function", "for annotations"],
)
def test_a_seeded_circle_is_found(package: Path, text: str) -> None:
    (package / "low" / "types.py").write_text(text.format(p=package.name), encoding="utf-8")
    name = package.name
    assert circles(name) == [[f"{name}.high", f"{name}.low.types", f"{name}.low.values"]]
    assert linted(package.parent, name).returncode == 1


def test_a_package_that_its_own_module_imports_is_found(package: Path) -> None:
    (package / "low" / "__init__.py").write_text(f"from {package.name}.low import types\n", encoding="utf-8")
    (package / "low" / "types.py").write_text(f"import {package.name}.low\n", encoding="utf-8")
    assert circles(package.name) == [[f"{package.name}.low", f"{package.name}.low.types"]]
