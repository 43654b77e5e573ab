"""S8xx, U8xx, K8xx: missing software, device limits, and unsupported calls."""

from __future__ import annotations

from tile_core.errors import KernelError, SetupError, UnsupportedError


class UnknownFamily(UnsupportedError):
    """The target names no family of devices that this backend has a record of."""

    code = "U801"
    template = "{found!r} is not a family of target metal"
    remedy = "use metal, or one of: {known}"


class TooManyBuffers(UnsupportedError):
    """A kernel has more parameters than Metal has places for buffers."""

    code = "U802"
    template = "{kernel} needs {found} buffers; Metal binds at most {limit}"
    remedy = "pass fewer arrays, for example several as one; all scalars together take one place"


class NoLibrary(SetupError):
    """No library launches kernels on a Metal device, or there is no device."""

    code = "S801"
    template = "{kernel}: no kernel for {target} can be launched on this machine: {reason}"
    remedy = (
        'on a Mac with Apple silicon, pip install mlx or torch; elsewhere run the kernel with runtime="emulator". '
        "`tile doctor` lists the missing parts. Text is still produced"
    )


class LibraryTooOld(SetupError):
    """The installed library has no way to launch a text."""

    code = "S802"
    template = "{kernel}: {library} {version} has no {function}, which kernels for {target} are launched with"
    remedy = "pip install --upgrade {library}"


class FastMathForced(SetupError):
    """The environment makes the arithmetic of every kernel approximate, but this kernel must be precise."""

    code = "S803"
    template = "{kernel}: {variable} is set to {found!r}, so that torch compiles kernels with fast math"
    remedy = "unset it before torch is used, or from macOS 15 on compile with options=MetalOptions(numerics='fast')"


class TooManyThreadsPerGroup(UnsupportedError):
    """A threadgroup is larger than the compiled kernel, or any kernel, may have."""

    code = "U804"
    template = "{kernel}: a threadgroup of {found} threads; {where_from} allows {limit}"
    remedy = "use fewer threads in T.Kernel, or smaller tiles, so that a thread needs fewer registers"


class MachineLacks(UnsupportedError):
    """A feature of the target is missing on this machine.

    Kernels would be rejected or wrong here.
    """

    code = "U808"
    template = "{kernel}: kernels for {target} need {needed}; this machine has {found}"
    remedy = "use {nearest}"


class WrongWidth(UnsupportedError):
    """The device's simdgroups have another number of threads than the kernel was compiled for."""

    code = "U807"
    template = "{kernel}: {found} threads execute together on this device; the text is made for {expected}"
    remedy = "run it on a GPU of Apple silicon"


class WrongLibrary(KernelError):
    """The arrays of a call are not of one library that launches kernels."""

    code = "K801"
    template = "{kernel}: argument {name!r} is {found}; this call is launched through {expected}"
    remedy = "pass arrays of one library in a call, mlx.core or torch on the device mps: they do not share a stream"


class NotPassed(KernelError):
    """MLX cannot pass an array as the kernel requires it."""

    code = "K802"
    template = "{kernel}: argument {name!r} cannot be passed through MLX: {reason}"
    remedy = "let the call allocate it, see out_idx, or pass parts of {name}"


class NotBatched(KernelError):
    """An operator in a function that ``mx.vmap`` transforms, for which MLX accepts no rule."""

    code = "K803"
    template = "{operator}: mx.vmap has no rule for a kernel"
    remedy = "call {operator}.vmap(in_axes)(...), or launch once for the whole batch"


class BadExamples(KernelError):
    """Arrays from which an operator's ``vmap`` cannot take examples."""

    code = "K805"
    template = "{operator}.vmap: {reason}"
    remedy = "{advice}"
