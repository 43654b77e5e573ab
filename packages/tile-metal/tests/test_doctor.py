"""The report of ``tile doctor`` on Metal, here and on a Mac."""

import platform
import sys

import pytest

from tile_core.cli import tryout
from tile_core.cli.checks import Check
from tile_core.plugins.manager import installed
from tile_metal import doctor, versions
from tile_metal.runtime import libraries
from tile_metal.runtime.libraries import LibraryUnusable

from .runtime.fake_mlx import Mlx
from .runtime.fake_torch import Torch


def missing(name):
    def find():
        raise LibraryUnusable(f"{name} is not installed")

    return find


@pytest.fixture
def mac(monkeypatch):
    """Make this a Mac with some libraries."""

    def given(version="15.1", machine="arm64", **libraries):
        monkeypatch.setattr(sys, "platform", "darwin")
        monkeypatch.setattr(platform, "mac_ver", lambda: (version, ("", "", ""), machine))
        monkeypatch.setattr(platform, "machine", lambda: machine)
        monkeypatch.setattr(doctor.versions, "chip", lambda: "Apple M2 Max")
        find = {name: (lambda m=libraries[name]: m) if name in libraries else missing(name) for name in doctor.FIND}
        monkeypatch.setattr(doctor, "FIND", find)
        monkeypatch.delenv(doctor.FAST_MATH, raising=False)
        return doctor.checks

    return given


def test_elsewhere(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    (found,) = doctor.checks()
    assert isinstance(found, Check)
    assert (found.name, found.status) == ("metal: device", "note")
    assert "run by the emulator" in found.detail
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    (found,) = doctor.checks()
    assert found.remedy == "pip install packages/tile-emulator in a checkout to run it here"


def test_all_is_there(mac):
    system, mlx, torch = mac(mlx=Mlx(), torch=Torch())()
    assert (system.status, system.detail) == ("OK", "macOS 15.1 and a GPU of generation 14, MSL 3.2; runs metal:metal3")
    assert mlx.detail.startswith(
        "mlx 0.32.4, which compiles MSL 3.2, Double (applegpu_g13d), buffers of at most 16 GiB"
    )
    assert torch.detail == "torch 2.13.0, which compiles MSL 3.2: kernels run on its stream of the device mps"
    assert {mlx.status, torch.status} == {"OK"}


def test_one_library_is_enough(mac):
    found = list(mac(mlx=Mlx())())
    assert [c.status for c in found] == ["OK", "OK", "note"]
    assert found[-1].remedy == "pip install torch to launch kernels on its arrays"


def test_no_library(mac):
    found = list(mac()())
    assert [(c.name, c.status) for c in found] == [
        ("metal: system", "OK"), ("metal: libraries", "missing"), ("metal: mlx", "note"), ("metal: torch", "note"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("version", "machine", "status", "detail"),
    [
        ("26.2", "arm64", "OK", "macOS 26.2 and a GPU of generation 14, MSL 4.0; runs metal:metal3"),
        ("14.0", "arm64", "OK", "macOS 14.0 and a GPU of generation 14, MSL 3.1; runs metal:metal3"),
        ("13.6", "arm64", "missing", "macOS 13.6"),
        ("15.1", "x86_64", "missing", "macOS 15.1 on x86_64"),
    ],
)
def test_systems(mac, version, machine, status, detail):
    mac(version, machine)
    found = doctor.system()
    assert (found.status, found.detail) == (status, detail)


def test_a_machine_with_tensor_operations(mac, monkeypatch):
    mac("26.2")
    monkeypatch.setattr(doctor.versions, "chip", lambda: "Apple M5")
    assert doctor.system().detail.endswith("runs metal:metal3, metal:metal4")


def test_an_old_torch(mac):
    torch = Torch()
    del torch.mps.compile_shader
    mac(torch=torch)
    assert (doctor.library("torch").status, doctor.library("torch").remedy) == ("note", "pip install --upgrade torch")


def test_an_mlx_that_says_nothing_of_its_device():
    assert doctor.device_text(object()) == ""


def test_fast_math_in_the_environment(mac, monkeypatch):
    mac(mlx=Mlx())
    monkeypatch.setenv(doctor.FAST_MATH, "1")
    (found,) = doctor.environment()
    assert "precise kernels are refused" in found.detail


XCRUN = """#!/bin/sh
cat > "$(dirname "$0")/seen.metal"
echo "$@" > "$(dirname "$0")/seen.txt"
echo "{said}" >&2
exit {status}
"""


class TestDeviceChecks:
    @pytest.fixture
    def xcrun(self, tmp_path, monkeypatch):
        def made(said, status):
            program = tmp_path / "xcrun"
            program.write_text(XCRUN.format(said=said, status=status))
            program.chmod(0o755)
            monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
            return tmp_path

        return made

    def test_the_compiler(self, xcrun):
        folder = xcrun("", 0)
        found = doctor.compiled("metal4")
        assert (found.status, found.detail) == ("OK", "xcrun metal -std=metal4.0 accepts a product for metal:metal4")
        assert (folder / "seen.txt").read_text() == "-sdk macosx metal -std=metal4.0 -c -x metal - -o /dev/null\n"
        assert "matmul2d" in (folder / "seen.metal").read_text()

    def test_an_error(self, xcrun):
        xcrun("<stdin>:3:1: error: unknown type name 'blah'\n1 error generated.", 1)
        found = doctor.compiled("metal3")
        assert found.status == "missing"
        assert "-std=metal3.1 refuses a product: <stdin>:3:1: error: unknown type name 'blah'" in found.detail

    def test_no_compiler(self, xcrun, monkeypatch, tmp_path):
        xcrun("xcrun: error: unable to find utility metal, not a developer tool or in PATH", 72)
        assert doctor.compiled("metal3").status == "note"
        monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
        assert doctor.compiled("metal3").detail == "xcrun is not installed"

    @pytest.mark.sweep(1)
    def test_a_launch(self, monkeypatch):
        mx = Mlx()
        monkeypatch.setitem(libraries.FIND, "mlx", lambda: mx)
        for adapter in installed().runtimes(installed().resolve_target("metal")):
            monkeypatch.setattr(adapter, "_used", {})
        monkeypatch.setattr(versions, "system_version", lambda: mx.system)
        found = doctor.launched("mlx")
        assert (found.status, found.detail) == ("OK", "a product for metal on the GPU: 2240 elements are right")
        mx.refuse = "program_source:3: error: unknown type name 'blah'"
        found = doctor.launched("mlx")
        assert (found.status, "U406" in found.detail, "blah" in found.detail) == ("missing", True, True)

    @pytest.mark.sweep(1)
    def test_no_library(self, monkeypatch):
        for adapter in installed().runtimes(installed().resolve_target("metal")):
            monkeypatch.setattr(adapter, "_used", {})
        monkeypatch.setitem(libraries.FIND, "torch", missing("torch"))
        assert (doctor.launched("torch").status, doctor.launched("torch").detail) == ("note", "torch is not installed")

    def test_the_option_runs_them(self):
        without, with_them = ([name for name, _ in tryout.steps(device)] for device in (False, True))
        assert [name for name in with_them if name not in without] == ["device of metal"]
