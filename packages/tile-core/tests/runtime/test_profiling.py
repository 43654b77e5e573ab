"""Test names of launches in profiles: ``torch.profiler`` and NVTX ranges."""

import sys
import types

import numpy as np
import pytest
from expected_errors import raises_error

from tile_core.abi.signature import Param, Signature
from tile_core.errors.setup import NoNvtx
from tile_runtime import knobs
from tile_runtime.calls.binder import Binder
from tile_runtime.calls.profiling import torch_record
from tile_runtime.calls.repeat import Repeat

COPY = Signature(
    "copy", (Param("A", "tensor", "float32", ("m",)), Param("C", "tensor", "float32", ("m",), access="write"))
)


class Ranges:
    """A module ``nvtx`` that records."""

    def __init__(self):
        self.log = []

    def push_range(self, message, domain):
        self.log.append((message, domain))

    def pop_range(self, domain):
        self.log.append(domain)


@pytest.fixture
def nvtx(monkeypatch):
    module = Ranges()
    monkeypatch.setitem(sys.modules, "nvtx", module)
    return module


def arrays():
    return np.zeros(4, "float32"), np.zeros(4, "float32")


class TestNvtx:
    def test_each_launch_is_a_range(self, launch, nvtx):
        with knobs.override(nvtx=True):
            binder = Binder(COPY, lambda *values: (nvtx.log.append("launch"), launch(*values)))
        for _ in range(4):
            binder(*arrays())
        assert nvtx.log == [("copy", "tile"), "launch", "tile"] * 4
        assert len(launch.calls) == 4

    def test_a_range_ends_where_a_launch_fails(self, nvtx):
        def fail(*values):
            raise ValueError

        with knobs.override(nvtx=True):
            binder = Binder(COPY, fail)
        with pytest.raises(Exception, match="ValueError"):
            binder(*arrays())
        assert nvtx.log == [("copy", "tile"), "tile"]

    def test_without_the_setting_the_launch_is_unchanged(self, launch, nvtx):
        assert Binder(COPY, launch).launch is launch

    def test_torch_makes_ranges_where_nvtx_is_not_installed(self, launch, monkeypatch):
        log = []
        functions = types.SimpleNamespace(range_push=log.append, range_pop=lambda: log.append("end"))
        torch = types.SimpleNamespace(
            _C=types.SimpleNamespace(_nvtx=1), cuda=types.SimpleNamespace(nvtx=functions), Tensor=type("Tensor", (), {})
        )
        monkeypatch.setitem(sys.modules, "nvtx", None)
        monkeypatch.setitem(sys.modules, "torch", torch)
        with knobs.override(nvtx=True):
            binder = Binder(COPY, launch)
        binder.launch()
        assert log == ["tile::copy", "end"]

    def test_nothing_that_makes_ranges_is_refused(self, launch, monkeypatch):
        monkeypatch.setitem(sys.modules, "nvtx", None)
        monkeypatch.setitem(sys.modules, "torch", None)
        with knobs.override(nvtx=True), raises_error(NoNvtx, kernel="copy"):
            Binder(COPY, launch)

    def test_the_variable_is_read(self, monkeypatch):
        monkeypatch.setenv("TILE_NVTX", "1")
        assert knobs.current().nvtx


class TestTorch:
    def test_without_torch_there_is_no_record(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "torch", None)
        assert torch_record("copy") is None
        monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace())  # another library of the name, or a stub
        assert torch_record("copy") is None

    @pytest.mark.parametrize("convention", ["packed", "pointers", "repeated", "prepared"])
    def test_each_launch_is_recorded_while_a_profiler_is(self, convention):
        torch = pytest.importorskip("torch")
        binder, count = _binder(convention)
        a, c = torch.zeros(4), torch.zeros(4)
        before = torch.zeros(4)
        for _ in range(3):
            binder(a, c)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            for _ in range(5):
                binder(a, c)
            binder(before, c)
        binder(a, c)
        recorded = {e.key: e.count for e in profile.key_averages()}
        assert recorded.get("tile::copy") == 6
        assert count() == 10

    def test_numpy_calls_have_no_check(self, launch):
        pytest.importorskip("torch")
        binder = Binder(COPY, launch)
        for _ in range(4):
            binder(*arrays())
        (call,) = {id(f): f for f in binder.forms.values()}.values()
        names = call.__code__.co_names
        assert "_is_profiler_enabled" not in names


def _binder(convention):
    """Return a binder of one way to launch, and how often it was launched."""
    log = []

    class Launch:
        name, devices = "launch", frozenset({1})

        def __call__(self, *values):
            log.append(values)

        def again(self, ready, key):
            log.append(key)

    Launch.convention = "packed" if convention == "packed" else "pointers"
    if convention in ("repeated", "prepared"):
        prepare = (lambda values: values) if convention == "prepared" else None
        Launch.repeat = lambda self, values, location, moving: Repeat(self, (), prepare, self.again)
    launch = Launch()
    return Binder(COPY, launch, launch), lambda: len(log)
