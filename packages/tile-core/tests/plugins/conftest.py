"""Backends to test with: made in memory, or installed for real into a folder of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import types
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tile_core.manifest import BackendManifest
from tile_core.plugins.discovery import GROUP
from tile_core.plugins.manager import Plugins
from tile_core.target import Capabilities, Target, split_target

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).parents[4]
PACKAGES = REPOSITORY / "tests" / "plugins"
CORE = REPOSITORY / "packages" / "tile-core" / "src"


class World:
    """Backends in memory, found through entry points as installed ones are."""

    def __init__(self, monkeypatch):
        self._monkeypatch = monkeypatch
        self._entries = []
        self.add("cpu")

    def add(self, name, **hooks):
        """Add a correct backend; ``hooks`` replaces functions, ``None`` removes one."""
        kinds = () if "." in name else (name,)

        def tile_backend():
            return BackendManifest(name, api=">=1,<2", target_kinds=kinds, fingerprint=f"print of {name}")

        def tile_target(text):
            return self.target(text, name)

        def tile_lowerings(target):
            return ()

        functions = {"tile_backend": tile_backend, "tile_target": tile_target, "tile_lowerings": tile_lowerings}
        module = types.ModuleType(f"in_memory_{name.replace('-', '_').replace('.', '_')}")
        vars(module).update({key: value for key, value in {**functions, **hooks}.items() if value is not None})
        self._monkeypatch.setitem(sys.modules, module.__name__, module)
        self._entries = [entry for entry in self._entries if entry.name != name]
        self._entries.append(EntryPoint(name, module.__name__, GROUP))

    def add_entry(self, name, value):
        self._entries.append(EntryPoint(name, value, GROUP))

    def plugins(self, **options):
        return Plugins(self._entries, **options)

    @staticmethod
    def target(text, backend, **capabilities):
        parts = split_target(text)
        return Target(str(parts), parts.kind, backend, Capabilities(**capabilities), parts.arch, parts.options)


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch)


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path / "site")


class Site:
    """A folder of installed packages, and fresh interpreters that see it."""

    def __init__(self, folder):
        self.folder = folder

    def install(self, *names):
        """Do what an installer does with pure Python packages: copy them, and write their metadata beside them.

        A name is that of a folder in ``tests/plugins``, or the path of another folder.
        """
        for name in names:
            source = PACKAGES / name
            project = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]
            shutil.copytree(source / "src", self.folder, dirs_exist_ok=True)
            info = self.folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
            info.mkdir()
            metadata = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
            (info / "METADATA").write_text(metadata, encoding="utf-8")
            groups = [
                f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
                for group, entries in project["entry-points"].items()
            ]
            (info / "entry_points.txt").write_text("\n".join(groups), encoding="utf-8")
        return self

    def run(self, code, **variables):
        """Standard output of ``code`` in a fresh interpreter, with ``p`` the installed backends."""
        prelude = "import sys\nfrom tile_core.plugins.manager import installed\np = installed()\n"
        return self.python("-c", prelude + code, **variables)

    def python(self, *arguments, cwd=None, **variables):
        """Standard output of a fresh interpreter that is called with ``arguments``."""
        environ = {key: value for key, value in os.environ.items() if not key.startswith("TILE_")}
        path = os.pathsep.join([str(self.folder), str(CORE)])
        done = subprocess.run(
            [sys.executable, *arguments],
            env={**environ, "PYTHONPATH": path, **variables},
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self.stderr = done.stderr
        return done.stdout
