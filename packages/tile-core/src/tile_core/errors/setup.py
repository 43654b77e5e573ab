"""S2xx: what this machine lacks."""

from __future__ import annotations

from tile_core.errors.base import SetupError


class NoRuntime(SetupError):
    """A target whose backend only produces text."""

    code = "S201"
    template = "no runtime on this machine launches kernels for {target}"
    remedy = "`tile doctor` says what is missing; text is still produced by `tile compile`"


class UnknownRuntime(SetupError):
    """A runtime that the target's backend does not have."""

    code = "S202"
    template = "{target} has no runtime {found!r}"
    remedy = "its runtimes are: {known}"


class RuntimeBroken(SetupError):
    """A runtime of a backend, or of the group ``tile.runtimes``, raised an error outside the catalogue."""

    code = "S203"
    template = "the runtime {name!r} is installed but broken: {reason}"
    remedy = "reinstall the package that provides it, use another runtime of the target, or tell the package's authors"
    unexpected = True


class OutOfMemory(SetupError):
    """The system could not allocate memory for a kernel's buffers other than its arguments."""

    code = "S204"
    template = "{kernel}: there is not enough memory for the kernel's own buffers"
    remedy = "take smaller tiles (T.alloc_shared, T.alloc_fragment), or raise the limit of the process"


class NoToolchain(SetupError):
    """Source code was to be compiled, and no compiler for the target is installed."""

    code = "S205"
    template = "no toolchain of {target} is installed here: {reason}"
    remedy = (
        "install what `tile doctor` names for this target, or only generate source code: `tile compile`, and in the "
        "conformance kit and the fuzzer the runtime `text`"
    )


class WorkerEnded(SetupError):
    """A process that ran a configuration ended, or could not be reached, twice."""

    code = "S206"
    template = "the process that ran it ended: {reason}"
    remedy = "run this configuration alone, in a process of its own, to see why"


class WorkerSlow(SetupError):
    """An executor that finishes nothing for a long time."""

    code = "S210"
    template = "it was given up: the executor has finished nothing for {seconds} s"
    remedy = "run this configuration alone to see what takes so long, or allow more with `timeout`"


class BadResultsFile(SetupError):
    """A file that cannot hold the results of tuning."""

    code = "S207"
    template = "the results of tuning cannot be kept in {file}: {reason}"
    remedy = "name a file that is new or was made by tuning, in a folder that is writable"


class ProcessorLacksInstructions(SetupError):
    """A launch of a kernel for a processor with instructions that this machine may lack."""

    code = "S208"
    template = "{kernel} was compiled for {target}, and this machine's {host} has no {missing}"
    remedy = "launch it on such a processor, or compile for this machine: target='cpu'"
