"""The package as the core sees it: cheap, complete, and the same on every machine."""

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import tile_cuda
from tile_core.cli.checks import Check
from tile_core.plugins.manager import installed
from tile_cuda import build, doctor
from tile_cuda.runtime import CudaAdapter
from tile_cuda_runtime.api import Device, DriverUnusable, Failed
from tile_cuda_runtime.errors import NoNvrtc

from .runtime.fake import H100, FakeDriver

HIDDEN = ("cuda", "torch", "cupy", "nvidia")


def run(code):
    hide = f"import sys; sys.modules.update(dict.fromkeys({HIDDEN}))\n"
    done = subprocess.run([sys.executable, "-c", hide + code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_importing_loads_nothing():
    loaded = run("""
import tile_cuda.plugin as p
p.tile_backend(), p.tile_target("cuda:sm_90a"), p.tile_runtimes(p.tile_target("cuda:sm_90a"))
print(*sorted(m for m in sys.modules if m.partition(".")[0] in ("tvm", "cuda", "torch", "numpy") and sys.modules[m]))
""")
    assert loaded == []


def test_targets_without_any_vendor_package():
    assert run("""
from tile_core.plugins.manager import installed
p = installed()
print(p.resolve_target("cuda").text, p.resolve_target("cuda:sm_120a").text)
""") == ["cuda:sm_80", "cuda:sm_120a"]


def test_the_core_finds_it():
    plugins = installed()
    target = plugins.resolve_target("cuda:sm_90a")
    assert target is plugins.resolve_target("cuda:sm_90a")
    assert plugins.manifest("cuda").api == ">=1,<2"
    (adapter,) = plugins.runtimes(target)
    assert isinstance(adapter, CudaAdapter)
    assert adapter.arch == "sm_90a"
    assert {e.value for e in entry_points(group="tile.checks", name="cuda")} == {"tile_cuda.doctor:checks"}


def test_the_version_is_that_of_the_distribution():
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    assert f'\nversion = "{tile_cuda.__version__}"\n' in text


class TestDoctor:
    def names(self, checks):
        return [(check.name, check.status) for check in checks]

    def test_reports_every_part(self):
        found = list(doctor.checks())
        assert [c.name for c in found][:3] == ["cuda: NVRTC", "cuda: headers", "cuda: driver"]
        assert all(isinstance(c, Check) and c.detail for c in found)
        assert all(c.remedy for c in found if c.status != "OK")
        assert not [c for c in found if c.status == "missing"]

    def test_devices(self, monkeypatch):
        old = Device(1, "Fake 75", (7, 5), 64 << 10)
        monkeypatch.setattr(doctor, "open_driver", lambda: FakeDriver([H100, old]))
        driver, first, second = doctor.driver()
        assert driver.detail == "supports CUDA 13.0, sees 2 devices"
        assert first.detail == "Fake 90, sm_90, 227 KiB of shared memory: target cuda:sm_90a, the current one"
        assert (second.status, second.detail) == ("note", "Fake 75, sm_75, 64 KiB of shared memory: too old")

    @pytest.mark.parametrize(
        ("error", "status"), [(DriverUnusable("no library"), "note"), (Failed("cuInit", 3, "x"), "missing")]
    )
    def test_a_driver_that_fails(self, monkeypatch, error, status):
        def fails():
            raise error

        monkeypatch.setattr(doctor, "open_driver", fails)
        assert self.names(doctor.driver()) == [("cuda: driver", status)]

    @pytest.mark.parametrize(("platform", "status"), [("linux", "missing"), ("darwin", "note")])
    def test_no_compiler(self, monkeypatch, platform, status):
        def fails():
            raise NoNvrtc(target="cuda", reason="no wheel", advice="pip install it")

        monkeypatch.setattr(build, "known_archs", fails)
        monkeypatch.setattr(doctor.sys, "platform", platform)
        found = doctor.compiler()
        assert (found.status, found.remedy) == (status, "pip install it")
        assert "[S701]" in found.detail

    def test_no_headers(self, monkeypatch):
        monkeypatch.setattr(build, "headers", lambda: None)
        assert doctor.headers().status == "note"

    def test_libraries(self, monkeypatch):
        found = {"torch": "torch 2.9.0"}
        monkeypatch.setattr(doctor, "_distribution", found.get)
        assert [c.detail for c in doctor.libraries()] == ["torch 2.9.0: kernels run on its current stream"]
        found.clear()
        assert [c.detail for c in doctor.libraries()] == ["neither torch nor cupy is installed"]
