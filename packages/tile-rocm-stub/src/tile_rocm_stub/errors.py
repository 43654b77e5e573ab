"""S9xx, U9xx: unsupported operations of this package, and unknown targets."""

from __future__ import annotations

from tile_core.errors import SetupError, UnsupportedError


class TextOnly(SetupError):
    """The package produces text for AMD GPUs and launches nothing."""

    code = "S901"
    template = "{kernel}: tile-rocm-stub launches nothing for {target}: it produces text only"
    remedy = (
        'write kernel.source to kernel.hip and compile it with "hipcc --genco --offload-arch={arch} kernel.hip -o '
        'kernel.hsaco", or with clang as on the guide\'s page "AMD GPUs"; runtime="emulator" runs it here'
    )


class NoCompiler(SetupError):
    """There is no clang with the target AMDGPU."""

    code = "S902"
    template = "text for {arch} cannot be compiled on this machine: {reason}"
    remedy = "install clang and lld of LLVM 18 or later (Debian: clang-19 and lld-19), or name one in HIP_CLANG"


class UnknownArchitecture(UnsupportedError):
    """The target names no architecture that this backend has a record of."""

    code = "U901"
    template = "{found!r} is not an architecture of target rocm"
    remedy = "use one of: {known}"
