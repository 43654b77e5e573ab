"""The device of ``target="auto"`` with several candidates: CUDA, then Metal, then CPU."""

import platform
import sys

import pytest

from tile_core.plugins.manager import BackendWarning, Plugins
from tile_metal import plugin, versions

api = pytest.importorskip("tile_cuda_runtime.api", reason="tile-cuda is not installed")


@pytest.fixture
def devices(monkeypatch):
    """Set the available devices: a CUDA capability or failure, and whether it is a Mac."""

    def given(cuda=None, mac=False):
        def current_compute():
            if isinstance(cuda, Exception):
                raise cuda
            return cuda

        monkeypatch.setattr(api, "current_compute", current_compute)
        monkeypatch.setattr(sys, "platform", "darwin" if mac else "linux")
        monkeypatch.setattr(platform, "machine", lambda: "arm64" if mac else "x86_64")
        monkeypatch.setattr(platform, "mac_ver", lambda: ("15.1", ("", "", ""), "arm64"))
        monkeypatch.setattr(versions, "chip", lambda: "Apple M2")
        return Plugins()

    return given


def test_the_order(devices):
    assert devices(cuda=(9, 0), mac=True).resolve_target("auto").text == "cuda:sm_90a"
    assert devices(mac=True).resolve_target("auto").text == "metal"
    assert devices().resolve_target("auto").kind == "cpu"


@pytest.mark.parametrize("mac", [True, False])
def test_a_broken_cuda_is_said(devices, mac):
    plugins = devices(cuda=api.Broken("the driver does not start: version mismatch"), mac=mac)
    with pytest.warns(BackendWarning, match="passes over backend 'cuda': .*version mismatch"):
        assert plugins.resolve_target("auto").kind == ("metal" if mac else "cpu")


def test_no_cuda_is_nothing_to_say(devices):
    assert devices(mac=True).resolve_target("auto").text == "metal"


def test_a_mac_is_known_without_its_libraries(devices):
    devices(mac=True)
    assert plugin.tile_detect().text == "metal"
