"""Test conformance cases that a backend adds: their owner, and refusals."""

from __future__ import annotations

import sys
import types

import pytest

from tile_core.errors.plugins import HookFailed, HookReturned
from tile_core.testing import tables
from tile_core.testing.case import Unit, refused


@pytest.fixture
def added(world, monkeypatch):
    """Let a backend add what a function makes, and return all units of its target."""

    def add(make):
        module = types.ModuleType("in_memory_cases")
        module.units = make
        monkeypatch.setitem(sys.modules, module.__name__, module)
        world.add("good", tile_cases=lambda target: {"own": "in_memory_cases:units"})
        plugins = world.plugins()
        monkeypatch.setattr(tables, "installed", lambda: plugins)
        return tables.units(plugins.resolve_target("good"))

    return add


def own(target):
    assert target.backend == "good"
    return [refused("gemm", "own", "T.gemm()", "K126"), refused("own", "other", "T.gemm()", "K126")]


@pytest.mark.sweep(0.25)
def test_they_come_last_and_only_for_their_target(added):
    found = added(own)
    assert [(unit.op, unit.name) for unit in found[-2:]] == [("gemm", "own"), ("own", "other")]
    core = tables.units()
    assert len(core) == len(found) - 2
    assert len(tables.cases("good")) == len(tables.cases()) + 2
    assert len(tables.cases("cpu")) == len(tables.cases("no such target")) == len(tables.cases())


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda target: 3, HookFailed, "hook tile_cases of backend 'good' raised TypeError in 'in_memory_cases:units'"),
        (lambda: [], HookFailed, "takes 0 positional arguments"),
        (lambda target: target.nonsense, HookFailed, "'Target' object has no attribute 'nonsense'"),
        (lambda target: ["text"], HookReturned, "returned 'text' in the table 'own'; expected units of the kit"),
        (lambda target: [Unit("casts", "x"), Unit("casts", "x")], HookReturned, "another casts/x in the table 'own'"),
        (lambda target: tables.units()[:1], HookReturned, "expected units of new names"),
    ],
)
def test_rubbish_names_the_backend(added, make, error, says):
    with pytest.raises(error) as caught:
        added(make)
    assert says in str(caught.value)
