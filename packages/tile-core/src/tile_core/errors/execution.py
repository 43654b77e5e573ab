"""K44x: undefined behaviour found by the reference interpreter; U402: ops that it lacks."""

from __future__ import annotations

from tile_core.errors.base import KernelError, UnsupportedError


class ExecutionError(KernelError):
    """Undefined behaviour of a kernel, found by checking its memory accesses."""

    code = "K440"


class ReadUnwritten(ExecutionError):
    """An uninitialized element is read."""

    code = "K441"
    template = "{buffer}{index} is read before it is written"
    remedy = "clear the buffer first (T.clear, T.fill, clear_accum=True), or write every element that is read"


class OutsideScratch(ExecutionError):
    """A scratch buffer is accessed out of bounds."""

    code = "K442"
    template = "{buffer} of shape {shape} is {action} out of bounds, at {index}"
    remedy = "guard the access with a condition, or make the buffer larger"


class DataRace(ExecutionError):
    """Iterations of a parallel loop, or threads between two barriers, depend on each other's accesses."""

    code = "K443"
    template = "{buffer}{index} is {action} by one {lane} and {other} by another"
    remedy = "{advice}"


class BlockRace(ExecutionError):
    """Blocks of a launch access the same element without synchronization."""

    code = "K445"
    template = "{buffer}{index} is {action} by {block} and {other} by {before}, in any order"
    remedy = "use T.atomic_add (or another atomic), give each block elements of its own, or put T.sync_grid() between"


class UndefinedMetadata(ExecutionError):
    """Metadata of ``T.gemm_sp`` that matrix instructions leave undefined."""

    code = "K444"
    template = (
        "{location}: metadata {bits} of group {group} of row {row} of A_sparse's tile selects {found} of its elements "
        "{first} to {last} along K"
    )
    remedy = "create metadata with sparse.compress: the two indices of a group increase; only a group of zeros has 0"


class NoReferenceMeaning(UnsupportedError):
    """An operation of a backend that the reference interpreter does not define."""

    code = "U402"
    template = "the reference interpreter does not define {what}"
    remedy = "compare this kernel with NumPy instead of verify()"
