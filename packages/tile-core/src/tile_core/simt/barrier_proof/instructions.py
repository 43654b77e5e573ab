"""Instructions of a target that the proof of barriers follows, as data of the backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from tile_core.compat.types import Call, Expr
from tile_core.records import dataclass


class TensorAccess(NamedTuple):
    """An access to columns of tensor memory.

    Attributes
    ----------
    address
        Of the first column, in the lower 16 bits.
    columns
        Their number.
    writes
        Whether it is a write.
    is_async
        Whether a product accesses them, until it arrives.
    of_pair
        Whether in both blocks of a pair.
    """

    address: Expr
    columns: int
    writes: bool
    is_async: bool = False
    of_pair: bool = False


@dataclass(frozen=True)
class AsyncInstructions:
    """Names of a target's instructions, by their effect on threads and barriers.

    Attributes
    ----------
    elects
        True for one thread of a warp.
    uniform
        The value of the first argument in the first thread of a warp, for all of its threads.
    fills
        Copy to shared memory by the thread; a group of the thread ends them.
    commits
        End a group of asynchronous reads; their value is the ``until`` of these reads.
    waits
        Wait until at most a number of such groups is in flight: ``until`` and number.
    register_fences
        Order a thread's accesses to registers before products that use these.
    completes
        Arrive at a barrier once the thread's earlier products are complete; a second argument is a mask of blocks.
    arrives
        Arrive at a barrier in the block of a rank, the second argument.
    phase_waits
        Wait for a phase by its parity, the second argument.
    multicasts
        Copy to the blocks of a mask, the last argument, and arrive there.
    tensor
        Accesses of an instruction to tensor memory.
    tensor_allocates
        Allocate tensor memory, and write its address to shared memory; whether for all blocks of the cluster.
    tensor_frees
        Free tensor memory, and whether that of all blocks of the cluster.
    size
        Bytes of a copy to or from shared memory.
    """

    elects: frozenset[str] = frozenset()
    uniform: frozenset[str] = frozenset()
    fills: frozenset[str] = frozenset()
    commits: Mapping[str, str] = field(default_factory=dict)
    waits: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    register_fences: frozenset[str] = frozenset()
    completes: frozenset[str] = frozenset()
    arrives: frozenset[str] = frozenset()
    phase_waits: frozenset[str] = frozenset()
    multicasts: frozenset[str] = frozenset()
    tensor: Callable[[Call], Sequence[TensorAccess]] = lambda call: ()
    tensor_allocates: Mapping[str, bool] = field(default_factory=dict)
    tensor_frees: Mapping[str, bool] = field(default_factory=dict)
    size: Callable[[Call], int] = lambda call: 0
