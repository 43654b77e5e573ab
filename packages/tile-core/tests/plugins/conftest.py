"""Provide backends for tests, in memory or installed in a separate folder."""

from __future__ import annotations

import sys
import types
from importlib.metadata import EntryPoint

import pytest
from plugin_site import Site

from tile_core.manifest import BackendManifest
from tile_core.plugins.discovery import GROUP
from tile_core.plugins.manager import Plugins
from tile_core.target import Capabilities, Target, split_target


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
