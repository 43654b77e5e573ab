"""``tile doctor``: what it says where all is well, and where each thing is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from importlib.metadata import EntryPoint

import pytest

from tile_core.cli import checks, doctor, tryout
from tile_core.cli.requirements import requirements
from tile_core.errors import SetupError


@pytest.fixture
def healthy(monkeypatch):
    """Dependencies that are all there, whatever this environment has."""
    bounds = {"apache-tvm": "==0.27.0.post1", "apache-tvm-ffi": "==0.1.14.post1", "numpy": ">=2.1,<3"}
    versions = {"apache-tvm": "0.27.0.post1", "apache-tvm-ffi": "0.1.14.post1", "numpy": "2.4.6"}
    monkeypatch.setattr(checks, "requirements", lambda: bounds)
    monkeypatch.setattr(checks, "version_of", versions.get)
    cpu = checks.Check("backend cpu", "OK", "tile-core: cpu")
    monkeypatch.setattr(doctor, "trials", lambda: iter([cpu]))  # see test_trials.py
    return versions


class TestDoctor:
    def test_all_is_well(self, tile, healthy):
        result = tile("doctor")
        assert result.status == 0, result.out
        for line in ("Python", "apache-tvm", "numpy", "processor", "threads", "self-test", "backend cpu", "settings"):
            assert f"OK        {line}" in result.out
        assert "everything that was looked for is there" in result.out

    def test_json(self, tile, healthy):
        found = json.loads(tile("doctor", "--json").out)
        assert {"name", "status", "detail", "remedy"} == set(found[0])
        assert {c["status"] for c in found} == {"OK"}

    def test_a_clash_of_versions_is_found_without_an_import(self, tile, healthy, monkeypatch):
        healthy["apache-tvm-ffi"] = "0.1.15"
        monkeypatch.setattr(checks, "tvm_loads", lambda: pytest.fail("TVM was imported"))
        result = tile("doctor")
        assert result.status == 1
        assert "0.1.15 clashes with tile-core" in result.out
        assert "which needs ==0.1.14.post1" in result.out
        assert 'pip install "apache-tvm-ffi==0.1.14.post1"; another package may need that version' in result.out
        assert "not run: first correct the versions above" in result.out
        assert "broken: apache-tvm-ffi" in result.out

    def test_a_missing_package(self, healthy):
        del healthy["numpy"]
        (found,) = (c for c in checks.distributions() if c.status == "missing")
        assert (found.name, found.detail) == ("numpy", "not installed; expected >=2.1,<3")
        assert found.remedy == 'pip install "numpy>=2.1,<3"'

    def test_an_import_that_ends_the_process(self, monkeypatch):
        def aborted(*args, **more):
            return subprocess.CompletedProcess(args, -6, "", "")

        monkeypatch.setattr(subprocess, "run", aborted)
        found = checks.tvm_loads()
        assert found.status == "missing"
        assert found.detail == "the process ended with status -6"
        assert "--force-reinstall" in found.remedy

    def test_an_old_python(self, monkeypatch):
        monkeypatch.setattr(checks, "OLDEST", (9, 9))
        assert checks.python().status == "missing"

    def test_a_python_that_is_newer_than_the_tests(self, monkeypatch):
        monkeypatch.setattr(checks, "UNTESTED", (3, 10))
        assert checks.python().status == "note"

    def test_a_kernel_that_is_wrong(self, monkeypatch):
        import numpy as np

        from tile_core.runtime.kernel import Kernel

        monkeypatch.setattr(Kernel, "__call__", lambda self, a, b: np.full((37, 29), np.nan, "float32"))
        found = checks.self_test()
        assert found.status == "missing"
        assert "wrong by nan" in found.detail

    @pytest.mark.parametrize("error", [SetupError(message="no such thing"), RuntimeError("no such thing")])
    def test_a_check_that_raises_is_a_finding(self, error):
        def fails():
            raise error

        found = checks.caught("processor", fails)
        assert found.status == "missing"
        assert "no such thing" in found.detail


class TestOffered:
    def test_checks_of_packages_run_although_others_raise(self, monkeypatch):
        module = types.ModuleType("in_memory_checks")
        module.good = lambda: iter([checks.Check("device", "OK", "one")])
        module.bad = lambda: 1 / 0
        monkeypatch.setitem(sys.modules, "in_memory_checks", module)
        entries = [EntryPoint(n, f"in_memory_checks:{n}", tryout.GROUP) for n in ("bad", "gone", "good")]
        bad, gone, good = tryout.offered(entries)
        assert good == checks.Check("device", "OK", "one")
        assert (bad.name, bad.status) == ("package bad", "missing")
        assert "ZeroDivisionError: division by zero" in bad.detail
        assert "AttributeError" in gone.detail


class TestSettings:
    @pytest.fixture(autouse=True)
    def defaults(self, monkeypatch):
        for name in [n for n in os.environ if n.startswith("TILE_")]:
            monkeypatch.delenv(name)

    def test_defaults(self):
        (found,) = checks.settings()
        assert (found.status, found.detail) == ("OK", "all at their defaults")

    def test_changed_ones_are_shown(self, monkeypatch):
        monkeypatch.setenv("TILE_NUM_THREADS", "3")
        (found,) = checks.settings()
        assert (found.status, found.detail) == ("OK", "TILE_NUM_THREADS=3")

    def test_unknown_ones_are_named_with_the_nearest(self, monkeypatch):
        monkeypatch.setenv("TILE_DUMPDIR", "x")
        _, found = checks.settings()
        assert found.status == "note"
        assert "TILE_DUMPDIR has no effect; did you mean TILE_DUMP_DIR?" in found.detail

    def test_a_disabled_backend_that_is_not_there_is_named(self, monkeypatch):
        monkeypatch.setenv("TILE_DISABLE_BACKENDS", "cpuu")
        _, found = checks.settings()
        assert (found.status, found.remedy) == ("note", "did you mean 'cpu'?")
        assert found.detail == "TILE_DISABLE_BACKENDS names 'cpuu', which is not installed"

    def test_wrong_ones_are_a_finding(self, monkeypatch):
        monkeypatch.setenv("TILE_NUM_THREADS", "many")
        (found,) = checks.settings()
        assert found.status == "missing"
        assert "TILE_NUM_THREADS='many'; expected a positive number" in found.detail


class TestRequirements:
    def test_know_the_exact_pins(self):
        found = requirements()
        assert found["apache-tvm"].startswith("==")
        assert found["apache-tvm-ffi"].startswith("==")
