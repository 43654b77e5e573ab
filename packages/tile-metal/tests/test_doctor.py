"""The report of ``tile doctor`` on Metal, here and on a Mac."""

import platform
import sys

import pytest

from tile_core.cli.checks import Check
from tile_metal import doctor
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
    assert found.remedy == "pip install tile-emulator to run it here"


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
