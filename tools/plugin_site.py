"""Packages installed for tests with fresh interpreters, and pages that show their files."""

from __future__ import annotations

import ast
import importlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tokenize
from pathlib import Path
from typing import Any

from repository import ROOT

tomllib: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

PLUGINS = ROOT / "tests" / "plugins"
CORE = ROOT / "packages" / "tile-core" / "src"

_FILE = re.compile(
    r"<!-- example: skip, the file (?P<path>\S+) -->\n```\w+\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
_RUN = re.compile(r"<!-- page: run -->\n```bash\npython (?P<command>.*?)\n```", re.DOTALL)
_INSTALL = "<!-- page: install -->\n```bash\npip install -e .\n```"
_NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


class Site:
    """A folder of installed packages, and fresh interpreters that see it.

    Parameters
    ----------
    folder
        Where packages are installed; it need not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stderr = ""

    def install(self, *names: str | Path) -> Site:
        """Install pure Python packages like an installer: copy them with their metadata.

        A name is that of a folder in ``tests/plugins``, or the path of another folder.
        """
        for name in names:
            source = PLUGINS / name
            project = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]
            shutil.copytree(source / "src", self.folder, dirs_exist_ok=True)
            info = self.folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
            info.mkdir()
            metadata = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
            metadata += "".join(f"Requires-Dist: {line}\n" for line in project.get("dependencies", ()))
            (info / "METADATA").write_text(metadata, encoding="utf-8")
            groups = [
                f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
                for group, entries in project["entry-points"].items()
            ]
            (info / "entry_points.txt").write_text("\n".join(groups), encoding="utf-8")
        return self

    def run(self, code: str, **variables: str) -> str:
        """Return the output of ``code`` in a fresh interpreter, with ``p`` the installed backends."""
        prelude = "import sys\nfrom tile_core.plugins.manager import installed\np = installed()\n"
        return self.python("-c", prelude + code, **variables)

    def python(self, *arguments: str, cwd: Any = None, **variables: str) -> str:
        """Return the output of a fresh interpreter that is called with ``arguments``."""
        done = subprocess.run(
            [sys.executable, *arguments],
            env=self.environment(**variables),
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self.stderr = done.stderr
        return done.stdout

    def environment(self, **variables: str) -> dict[str, str]:
        """Return the variables of an interpreter that sees the folder."""
        # The tests' own cache stays, so that the emulator's engine is not compiled again.
        environ = {k: v for k, v in os.environ.items() if k == "TILE_CACHE_DIR" or not k.startswith("TILE_")}
        return {**environ, "PYTHONPATH": os.pathsep.join([str(self.folder), str(CORE)]), **variables}


class Page:
    """A docs page that shows every file of a package, then runs commands.

    Parameters
    ----------
    name
        The file in ``docs``.
    """

    def __init__(self, name: str) -> None:
        self.text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        self.files = {m["path"]: m["text"] for m in _FILE.finditer(self.text)}
        self.commands = [shlex.split(m["command"]) for m in _RUN.finditer(self.text)]

    def follow(self, folder: Path, site: Site) -> None:
        """Do what a reader does in an empty folder: write the files, and install them."""
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert _INSTALL in self.text
        site.install(folder)


def sources(folder: Path) -> dict[str, Path]:
    """Return the source files of a package, by their paths in it."""
    found = sorted(p for p in folder.rglob("*") if p.suffix in (".py", ".toml", ".h"))
    return {p.relative_to(folder).as_posix(): p for p in found}


def lines_of_code(path: Path) -> int:
    """Return the number of lines that are no comment, docstring or blank."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        comment = "//" if path.suffix == ".h" else "#"
        return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith(comment))
    strings = {
        n
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for n in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    tokens = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type not in _NO_CODE]
    return len({n for t in tokens for n in range(t.start[0], t.end[0] + 1)} - strings)
