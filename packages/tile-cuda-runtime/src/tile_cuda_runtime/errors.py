"""S7xx, U7xx: what this machine lacks, and what a device cannot do."""

from __future__ import annotations

from tile_runtime.errors import SetupError, UnsupportedError

NVRTC = 'pip install "nvidia-cuda-nvrtc>=13,<14"'


class NoNvrtc(SetupError):
    """NVRTC is not installed."""

    code = "S701"
    template = "text for {target} cannot be built on this machine: {reason}"
    remedy = "{advice}"


class NoDriver(SetupError):
    """There is no driver, or none that works."""

    code = "S702"
    template = "{kernel}: no kernel for {target} can be launched on this machine: {reason}"
    remedy = (
        'install the NVIDIA driver, or run the kernel with runtime="emulator"; `tile doctor` reports what is missing. '
        "Text is still produced"
    )


class NoDevice(SetupError):
    """The driver works, but finds no device, or not the requested one."""

    code = "S703"
    template = "{kernel}: there is no CUDA device {found}; the driver sees {count}"
    remedy = "use another device; CUDA_VISIBLE_DEVICES hides devices from a process"


class DriverFailed(SetupError):
    """The driver failed for a reason of the machine, such as lack of memory."""

    code = "S704"
    template = "{kernel}: {call} failed: {reason}"
    remedy = "if memory is short, free some; otherwise `tile doctor` and `nvidia-smi` report more"


class DriverTooOld(SetupError):
    """The driver is too old for the code that the installed compiler generates."""

    code = "S705"
    template = "{kernel}: the driver (CUDA {driver}) does not load code that {compiler} makes: {reason}"
    remedy = "update the NVIDIA driver: it must be as new as {compiler}"


class UnknownArchitecture(UnsupportedError):
    """The target names no architecture that this backend has a record of."""

    code = "U701"
    template = "{found!r} is not an architecture of target cuda"
    remedy = "use cuda:{near}; known: {known}"


class OtherArchitecture(UnsupportedError):
    """A kernel for one architecture is launched on a device of another."""

    code = "U702"
    template = "{kernel}: it was compiled for {target}, which device {device} ({name}, sm_{found}) does not run"
    remedy = "compile it for {near}"


class TensorMapRefused(UnsupportedError):
    """An argument cannot be the source or the target of copies by a tensor map."""

    code = "U703"
    template = "{kernel}: the driver makes no tensor map of argument {argument!r}: {what} {found}"
    remedy = "pass a tensor for which it is {expected}; `T.copy` without a demand for a tensor map takes any"
