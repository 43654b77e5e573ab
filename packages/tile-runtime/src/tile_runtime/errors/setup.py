"""S2xx: what this machine lacks."""

from __future__ import annotations

from tile_runtime.errors.base import SetupError


class NoRuntime(SetupError):
    """A target whose backend only produces text."""

    code = "S201"
    template = "no runtime on this machine launches kernels for {target}"
    remedy = "run `tile doctor` to see what is missing; `tile compile` still produces text"


class UnknownRuntime(SetupError):
    """A runtime that the target's backend does not have."""

    code = "S202"
    template = "{target} has no runtime {found!r}"
    remedy = "its runtimes are: {known}"


class RuntimeBroken(SetupError):
    """A runtime that raised an error outside the catalogue."""

    code = "S203"
    template = "the runtime {name!r} is installed but broken: {reason}"
    remedy = "reinstall the package that provides it, use another runtime, or report this to the package's authors"
    unexpected = True


class OutOfMemory(SetupError):
    """The system could not allocate memory for a kernel's buffers other than its arguments."""

    code = "S204"
    template = "{kernel}: not enough memory for the kernel's own buffers"
    remedy = "use smaller tiles (T.alloc_shared, T.alloc_fragment), or raise the memory limit of the process"


class NoToolchain(SetupError):
    """Source code was to be compiled, and no compiler for the target is installed."""

    code = "S205"
    template = "no toolchain for {target} is installed: {reason}"
    remedy = (
        "install the toolchain that `tile doctor` names for this target, or only generate source code: `tile compile`, "
        "or the runtime `text` in the conformance kit and the fuzzer"
    )


class WorkerEnded(SetupError):
    """A process that ran a configuration ended, or could not be reached, twice."""

    code = "S206"
    template = "the process that ran it ended: {reason}"
    remedy = "run this configuration alone, in a separate process, to see why"


class WorkerSlow(SetupError):
    """An executor that completes no task for a long time."""

    code = "S210"
    template = "timed out: the executor completed no task for {seconds} s"
    remedy = "run this configuration alone to see what takes so long, or raise `timeout`"


class BadResultsFile(SetupError):
    """A file that cannot hold the results of tuning."""

    code = "S207"
    template = "cannot store tuning results in {file}: {reason}"
    remedy = "name a new file, or one made by tuning, in a writable folder"


class ProcessorLacksInstructions(SetupError):
    """A launch of a kernel whose instructions this machine may lack."""

    code = "S208"
    template = "{kernel} was compiled for {target}, but this machine's {host} lacks {missing}"
    remedy = "launch it on a processor that has them, or compile for this machine: target='cpu'"


class NoNvtx(SetupError):
    """Launches were to be NVTX ranges, and nothing that makes them is installed."""

    code = "S211"
    template = (
        "{kernel}: TILE_NVTX is set, but neither the package nvtx nor a torch that was imported makes NVTX ranges"
    )
    remedy = "install the package nvtx, import torch before the kernel is made, or unset TILE_NVTX"
