"""Launches where only tile-cuda-runtime is installed: binaries run on devices that they were made for."""

import dataclasses

import pytest

from tile_core.abi.adapter import Built
from tile_core.abi.kernel_text import KernelText
from tile_cuda_runtime import driver as driver_module
from tile_cuda_runtime import launch as launch_module
from tile_cuda_runtime.architectures import code_runs_on, record_of
from tile_cuda_runtime.driver import DriverAdapter
from tile_cuda_runtime.errors import DriverTooOld, NoNvrtc

from ..texts import SCALE, facts
from .fake import H100, FakeDriver
from .test_launch import HERE, VALUES


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    for module in (driver_module, launch_module):
        monkeypatch.setattr(module, "builder", lambda backend: None)


def loaded(built, arch, device):
    driver = FakeDriver([device])
    return driver, DriverAdapter(record_of(arch), lambda: driver).load(KernelText(SCALE, facts(), None, built))


@pytest.mark.parametrize(("own", "compute"), [("sm_90a", (9, 0)), ("sm_80", (8, 0)), ("sm_80", (8, 9))])
def test_binaries_are_loaded_within_a_major_capability(own, compute):
    built = Built("cuda", "cubin", b"mine", own)
    device = dataclasses.replace(H100, compute=compute)
    driver, launch = loaded(built, own, device)
    launch(VALUES, HERE)
    assert ("load", b"mine") in driver.calls
    assert DriverAdapter(record_of(own), lambda: driver).refuses(built) == ""


def test_other_devices_are_refused():
    built = Built("cuda", "cubin", b"mine", "sm_80")
    reason = "its binary is for sm_80, and tile-cuda is not installed"
    with pytest.raises(NoNvrtc, match=rf"\[S701\] text for cuda:sm_90 cannot be built .*{reason}"):
        loaded(built, "sm_80", H100)
    refusal = DriverAdapter(record_of("sm_80"), lambda: FakeDriver()).refuses(built)
    assert refusal == f"{reason} to compile it for sm_90"


@pytest.mark.parametrize(
    ("own", "device", "runs"),
    [
        ("sm_80", "sm_89", True), ("sm_89", "sm_86", False), ("sm_90a", "sm_90a", True), ("sm_100a", "sm_103", False),
        ("sm_100", "sm_103", True), ("sm_80", "sm_87", False), ("sm_87", "sm_89", False), ("sm_87", "sm_87", True),
        ("sm_80", "sm_90", False),
    ],
)  # fmt: skip
def test_devices_that_run_machine_code(own, device, runs):
    assert code_runs_on(own, device) is runs


def test_text_alone_is_refused():
    with pytest.raises(NoNvrtc, match=r"\[S701\] .*it has no binary, and tile-cuda is not installed"):
        loaded(None, "sm_90a", H100)


def test_a_driver_that_is_too_old():
    driver = FakeDriver(fail={"load": 222})
    text = KernelText(SCALE, facts(), None, Built("cuda", "cubin", b"mine", "sm_90a"))
    with pytest.raises(DriverTooOld, match="does not load code that the compiler that built it makes"):
        DriverAdapter(record_of("sm_90a"), lambda: driver).load(text)
