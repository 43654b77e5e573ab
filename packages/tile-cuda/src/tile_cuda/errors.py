"""S7xx, U7xx, K7xx: what this machine lacks, what a device cannot do, and what a device reports."""

from __future__ import annotations

from tile_core.errors import KernelError, SetupError, UnsupportedError

NVRTC = 'pip install "nvidia-cuda-nvrtc>=13,<14"'


class NoCompiler(SetupError):
    """NVRTC is not installed."""

    code = "S701"
    template = "text for {target} cannot be built on this machine: {reason}"
    remedy = "{advice}"


class NoDriver(SetupError):
    """There is no driver, or none that works."""

    code = "S702"
    template = "{kernel}: no kernel for {target} can be launched on this machine: {reason}"
    remedy = (
        'install the NVIDIA driver, or run the kernel with runtime="emulator"; `tile doctor` says what is missing. '
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
    remedy = "if memory is short, free some; otherwise `tile doctor` and `nvidia-smi` say more"


class DriverTooOld(SetupError):
    """The driver is too old for the code that the installed compiler generates."""

    code = "S705"
    template = "{kernel}: the driver (CUDA {driver}) does not load code that NVRTC {compiler} makes: {reason}"
    remedy = "update the NVIDIA driver to one of CUDA {compiler} or newer"


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


class GridTooLarge(UnsupportedError):
    """A launch has more blocks along an axis than the limit."""

    code = "U703"
    template = "{kernel}: a launch has at most {limit} blocks along {axis}, this one has {found}"
    remedy = "make the blocks larger, or put the longer extent first in T.Kernel: x may have 2**31 - 1 blocks"


class TooMuchShared(UnsupportedError):
    """A block needs more shared memory than the device gives."""

    code = "U704"
    template = "{kernel}: a block uses {found} bytes of shared memory, device {device} ({name}) has {limit}"
    remedy = "use smaller tiles or fewer stages, or compile for {near}, whose limit is checked when compiling"


class TextRefused(UnsupportedError):
    """The compiler refused the text."""

    code = "U705"
    template = "{kernel}: the compiler for {arch} refused {place}: {reason}"
    remedy = "if the line holds code of your own, correct it; otherwise please report it with kernel.source"


class DeviceFault(KernelError):
    """The device stopped with an error of a kernel, this one or one launched before it."""

    code = "K701"
    template = "{kernel}: the device reports a fault of this launch or of one before it: {reason}"
    remedy = (
        'run the kernel with runtime="emulator", which names the line and the index; this process cannot use the '
        "device any more"
    )
