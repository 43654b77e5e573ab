"""No module imports itself over others: at the top, in functions, or in annotations.

The contract "no package has a circle" of import-linter is about folders and files side by side; this is about single
modules, across folders too. Both are held against a circle that is put there.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import size
from repository import ROOT

PACKAGE = "tile_seeded"


PACKAGES = sorted(path.name for path in ROOT.glob("packages/*/src/tile_*"))


@pytest.fixture(scope="module")
def found() -> tuple[list[list[str]], dict[str, dict[str, list[str]]]]:
    """Circles of all modules, and homonyms by package; syntax trees are freed."""
    with size.uncollected():
        modules = size.modules_of(ROOT)
        same = {p: size.homonyms([m for m in modules if m.package in ("tile_core", p)]) for p in PACKAGES}
        return size.circles(modules), same


def circles(root: Path) -> list[list[str]]:
    return size.circles(size.modules_of(root))


def linted(root: Path) -> int:
    """Return how import-linter's contract ends over a package like ours."""
    contract = f'[[tool.importlinter.contracts]]\nname = "c"\ntype = "acyclic_siblings"\nancestors = ["{PACKAGE}"]\n'
    (root / "pyproject.toml").write_text(f'[tool.importlinter]\nroot_package = "{PACKAGE}"\n{contract}', "utf-8")
    call = f"import sys; sys.path.insert(0, {str(root / 'packages' / 'seeded' / 'src')!r})"
    call += "; from importlinter.cli import lint_imports_command as run; run()"
    command = [sys.executable, "-c", call, "--no-logo", "--no-cache", "--config", "pyproject.toml"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).returncode


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with a package of three modules, without a circle."""
    for name, text in {
        "__init__": "", "low/__init__": "", "low/types": "X = 1\n", "low/values": "from . import types\n",
        "high": f"from {PACKAGE}.low.values import types\n",
    }.items():  # fmt: skip
        seed(tmp_path, name, text)
    return tmp_path


def seed(root: Path, name: str, text: str) -> None:
    path = root / "packages" / "seeded" / "src" / PACKAGE / f"{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_no_package_has_a_circle(found) -> None:
    assert found[0] == []


def test_every_folder_is_seen() -> None:
    """A folder without ``__init__.py`` is missing in import-linter's graph and contracts."""
    folders = {path.parent for path in ROOT.glob("packages/*/src/tile_*/**/*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_is_that_of_one_class(found, package: str) -> None:
    """Class names are unique in a package and the core; two backends may share one."""
    assert found[1][package] == {}


def test_without_one_nothing_is_found(root: Path) -> None:
    assert circles(root) == []
    assert linted(root) == 0


@pytest.mark.parametrize(
    "text",
    [
        f"from {PACKAGE}.high import X\n",
        f"def late():\n    from {PACKAGE} import high\n    return high\n",
        f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import {PACKAGE}.high\n",
        "from ..high import X\n",
    ],
    ids=["at the top", "in a function", "for annotations", "relative"],
)
def test_a_seeded_circle_is_found(root: Path, text: str) -> None:
    seed(root, "low/types", text)
    assert circles(root) == [[f"{PACKAGE}.{name}" for name in ("high", "low.types", "low.values")]]
    assert linted(root) == 1


def test_a_package_that_its_own_module_imports_is_found(root: Path) -> None:
    seed(root, "low/__init__", f"from {PACKAGE}.low import types\n")
    seed(root, "low/types", f"import {PACKAGE}.low\n")
    assert circles(root) == [[f"{PACKAGE}.low", f"{PACKAGE}.low.types"]]


class TestSize:
    def test_lines_with_code_are_counted(self, root: Path) -> None:
        function = 'def f(a: "int") -> None:'
        text = f'"""A\nB\n"""\n\n# no\nX = (\n    1,  # yes\n)\n\n\n{function}\n    """D."""\n'
        seed(root, "low/types", text)
        (module,) = (m for m in size.modules_of(root) if m.name.endswith("types"))
        assert [text for _, text in module.code] == ["X = (", "1,  # yes", ")", function]

    def test_a_block_of_two_packages_is_found_once(self, root: Path) -> None:
        block = "".join(f"value_{i} = {i}\n" for i in range(8))
        seed(root, "high", f"import os\n{block}")
        other = root / "packages" / "other" / "src" / "tile_other" / "__init__.py"
        other.parent.mkdir(parents=True)
        other.write_text(f"START = 0\n{block}END = 1\n", encoding="utf-8")
        assert size.duplicates(size.modules_of(root)) == [(8, "tile_other:2", f"{PACKAGE}.high:2")]

    def test_names_of_several_classes_are_found(self, root: Path) -> None:
        seed(root, "high", "class A: ...\nclass B: ...\n")
        seed(root, "low/values", "class A: ...\n")
        assert size.homonyms(size.modules_of(root)) == {"A": [f"{PACKAGE}.high", f"{PACKAGE}.low.values"]}
