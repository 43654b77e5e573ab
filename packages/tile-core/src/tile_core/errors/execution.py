"""K44x: what a kernel does wrong while it is executed with watched memory, and U402: what cannot be executed."""

from __future__ import annotations

from tile_core.errors.base import KernelError, UnsupportedError


class ExecutionError(KernelError):
    """Undefined behaviour of a kernel, detected by watching its memory during execution."""

    code = "K440"


class ReadUnwritten(ExecutionError):
    """An uninitialized element is read."""

    code = "K441"
    template = "{buffer}{index} is read before anybody writes it"
    remedy = "clear the buffer first (T.clear, T.fill, clear_accum=True), or write all of what is read"


class OutsideScratch(ExecutionError):
    """A scratch buffer is accessed out of bounds, where that is to be reported."""

    code = "K442"
    template = "{buffer} of shape {shape} is {action} outside, at {index}"
    remedy = "guard the access with a condition, or make the buffer larger"


class DataRace(ExecutionError):
    """Iterations of a parallel loop, or threads between two barriers, depend on each other's accesses."""

    code = "K443"
    template = "{buffer}{index} is {action} by one {lane} and {other} by another"
    remedy = "{advice}"


class BlockRace(ExecutionError):
    """Blocks of a launch depend on each other's accesses, which nothing orders."""

    code = "K445"
    template = "{buffer}{index} is {action} by {block} and {other} by {before}, in any order"
    remedy = "use T.atomic_add (or another atomic), give each block elements of its own, or put T.sync_grid() between"


class UndefinedMetadata(ExecutionError):
    """Metadata of ``T.gemm_sp`` that matrix instructions do not define."""

    code = "K444"
    template = (
        "{place}: metadata {bits} of group {group} of row {row} of A_sparse's tile says that {found} of its elements "
        "{first} to {last} along K are kept"
    )
    remedy = "make metadata with sparse.compress: the two indices of a group increase; 0 is for a group of zeros only"


class NoReferenceMeaning(UnsupportedError):
    """The reference does not know what an operation of a backend means."""

    code = "U402"
    template = "the reference has no meaning of {what}"
    remedy = "compare this kernel with NumPy instead of verify()"
