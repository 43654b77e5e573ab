"""Barriers of a program's own: names that this package adds to ``T``.

A barrier is one or several objects in shared memory. A *phase* ends when the expected number of threads has arrived and
the expected transaction bytes have been copied. A program's semantics are the same without barriers, in program order:
they only define which threads wait for which others, instead of the barriers of the whole block that the compiler
inserts without them. Their use is checked for every trip count (``K233``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.dtypes import DTYPES
from tile_core.errors.language import BadArgument, OutsideKernel
from tile_core.errors.naming import naming
from tile_core.errors.ops import BadBarrier
from tile_core.ir import calls, nodes
from tile_core.ir.attributes import ARRIVALS, Attrs
from tile_core.ops.base import with_attributes
from tile_core.values.allocation import allocate
from tile_core.values.builder import Builder, current
from tile_core.values.checks import python_int, shown
from tile_core.values.value import as_value, cast, to_index

if TYPE_CHECKING:
    from tile_core.compat.types import BufferVar, Expr
    from tile_core.values.value import Index, Scalar

#: Arrivals that a phase can count.
MOST_ARRIVALS = 2**20 - 1
#: Objects of one barrier: each takes statements of its own, and steps of the proof that phases balance.
MOST_OBJECTS = 64


class Barrier:
    """A barrier: one object, or several that ``b[i]`` are.

    Attributes
    ----------
    name
        For messages.
    count
        Objects.
    of_cluster
        Whether other blocks of the cluster may arrive at it.
    """

    __slots__ = ("_buffer", "_index", "count", "name", "of_cluster")

    def __init__(
        self, buffer: BufferVar, name: str, count: int, index: Expr | None = None, of_cluster: bool = False
    ) -> None:
        self._buffer, self._index = buffer, index
        self.name, self.count, self.of_cluster = name, count, of_cluster

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: Index) -> Barrier:
        """Return one of the objects.

        Raises
        ------
        BadBarrier
            If it is one already, or if a constant index is outside.
        """
        constant = python_int(index)
        if self._index is not None:
            raise BadBarrier(found=f"{self.name} is one object", fix="index the barrier once")
        if constant is not None and not 0 <= constant < self.count:
            found = f"{self.name}[{constant}] is outside of its {self.count} objects"
            raise BadBarrier(found=found, fix=f"use 0 to {self.count - 1}")
        return Barrier(self._buffer, self.name, 1, to_index(index), self.of_cluster)

    def located(self, op: str) -> tuple[BufferVar, Expr]:
        """Return the buffer and the index of one object.

        Raises
        ------
        BadBarrier
            If it has several.
        """
        if self._index is None and self.count > 1:
            found = f"T.{op}: {self.name} has {self.count} objects"
            raise BadBarrier(found=found, fix=f"name one of them: {self.name}[0]")
        return self._buffer, nodes.int_const(0) if self._index is None else self._index


def alloc_barrier(arrive_count: int | Sequence[int]) -> Barrier:
    """Allocate a barrier with phases.

    Parameters
    ----------
    arrive_count
        Arrivals that end a phase, or those of each of several objects: ``T.alloc_barrier([128] * 4)``.

    Raises
    ------
    BadArgument
        For other than positive Python ints.
    BadBarrier
        Inside a loop, a branch or ``T.ws``: the whole block makes it.
    """
    return _allocated("alloc_barrier", arrive_count)


def alloc_cluster_barrier(arrive_count: int | Sequence[int]) -> Barrier:
    """Allocate a barrier in each block for arrivals of all blocks of the cluster.

    Parameters
    ----------
    arrive_count
        As for ``T.alloc_barrier``: arrivals of all blocks together that end a phase.

    Raises
    ------
    BadArgument, BadBarrier
        As for ``T.alloc_barrier``.
    """
    made = _allocated("alloc_cluster_barrier", arrive_count)
    made.of_cluster = True
    return made


def _allocated(name: str, arrive_count: int | Sequence[int]) -> Barrier:
    builder = builder_in_launch(name)
    counts = [python_int(n) for n in (arrive_count if isinstance(arrive_count, (list, tuple)) else [arrive_count])]
    wrong = any(n is None or not 1 <= n <= MOST_ARRIVALS for n in counts)
    if wrong or not 1 <= len(counts) <= MOST_OBJECTS:
        expected = f"1 to {MOST_ARRIVALS} arrivals, or a list of 1 to {MOST_OBJECTS} such numbers"
        raise BadArgument(
            function=name, name="arrive_count", found=shown(arrive_count), expected=expected,
            instead="pass the number of threads that arrive in each phase",
        )  # fmt: skip
    if builder.scope.kind != "kernel":
        raise BadBarrier(found=f"T.{name} stands inside a loop, a branch or T.ws", fix="move it before them")
    made = allocate(name, (len(counts),), "uint64", "shared", "barrier")
    _annotate(builder, made.var, [int(n or 0) for n in counts])
    return Barrier(made.var, made.name, len(counts))


def mbarrier_arrive(barrier: Barrier, cta_id: Scalar | None = None) -> None:
    """Arrive once per executing thread of the block or role.

    What a thread has read and written before is ordered before what others do after a wait for the phase.

    Parameters
    ----------
    barrier
        One object.
    cta_id
        Rank of the block of the cluster in which it arrives, at a barrier of ``T.alloc_cluster_barrier``: made of
        constants, loop variables and ``T.block_rank_in_cluster()``. By default its own block. Only what a thread has
        read before is ordered.
    """
    located = _object("mbarrier_arrive", barrier)
    builder = builder_in_launch("mbarrier_arrive")
    if cta_id is not None and not barrier.of_cluster:
        found = f"T.mbarrier_arrive: {barrier.name} takes arrivals of its own block only"
        raise BadBarrier(found=found, fix="make it with T.alloc_cluster_barrier, or leave cta_id out")
    rank = None if cta_id is None else _integer("mbarrier_arrive", "cta_id", cta_id)
    builder.emit(calls.barrier_arrive(*located, builder.span(), rank))


@naming("barrier_arrive")
def barrier_arrive(barrier: Barrier, cta_id: Scalar | None = None) -> None:
    """Arrive at a barrier, see ``mbarrier_arrive``."""
    mbarrier_arrive(barrier, cta_id)


def mbarrier_wait_parity(barrier: Barrier, parity: Scalar) -> None:
    """Wait for the end of a phase by its parity: 0 for even phases.

    Of a new barrier a wait for parity 1 passes at once. In program order every wait passes, and it is for the phase
    that has ended last.

    Parameters
    ----------
    barrier
        One object.
    parity
        0 or 1: an integer made of constants and loop variables, such as ``(k // 2) % 2``.
    """
    located = _object("mbarrier_wait_parity", barrier)
    builder = builder_in_launch("mbarrier_wait_parity")
    builder.emit(calls.barrier_wait(*located, _integer("mbarrier_wait_parity", "parity", parity), builder.span()))


@naming("barrier_wait")
def barrier_wait(barrier: Barrier, parity: Scalar) -> None:
    """Wait for a phase, see ``mbarrier_wait_parity``."""
    mbarrier_wait_parity(barrier, parity)


def mbarrier_expect_tx(barrier: Barrier, tx: int) -> None:
    """Expect transaction bytes: the current phase ends only after they have been copied.

    One of the executing threads does so. ``T.tma_copy(..., barrier=b)`` expects its own bytes, except where a
    program expects bytes of the barrier with this.

    Parameters
    ----------
    barrier
        One object.
    tx
        Bytes, a positive Python int.
    """
    located = _object("mbarrier_expect_tx", barrier)
    builder = builder_in_launch("mbarrier_expect_tx")
    size = python_int(tx)
    if size is None or size < 1:
        expected, instead = "a positive number of bytes", "pass the bytes that copies deliver"
        raise BadArgument(function="mbarrier_expect_tx", name="tx", found=shown(tx), expected=expected, instead=instead)
    builder.emit(calls.barrier_announce(*located, nodes.int_const(size), builder.span()))


def fence_proxy_async() -> None:
    """Make what threads have written visible to copies and products that access memory by themselves.

    The compiler places these fences; one more is harmless.
    """
    builder = builder_in_launch("fence_proxy_async")
    builder.emit(tirx.Evaluate(calls.fence_proxy(everywhere=True).value, builder.span()))


def fence_barrier_init() -> None:
    """Make new barriers visible to copies that arrive at them.

    The compiler places these fences; one more is harmless.
    """
    builder = builder_in_launch("fence_barrier_init")
    builder.emit(tirx.Evaluate(calls.fence_init().value, builder.span()))


def as_barrier(op: str, barrier: object) -> Barrier:
    """Return an operand that has to be a barrier.

    Raises
    ------
    BadBarrier
        If it is something else.
    """
    if not isinstance(barrier, Barrier):
        raise BadBarrier(found=f"T.{op}: {shown(barrier)} is not a barrier", fix="make one with T.alloc_barrier")
    return barrier


def count_bytes(buffer: BufferVar, index: Expr) -> None:
    """Let an object count the bytes of the copy that is the last statement."""
    mark_last({}, [nodes.region(buffer, [index], [1])])


def mark_last(attrs: Attrs, args: Sequence[Expr] = ()) -> None:
    """Give the copy that is the last statement more attributes and operands."""
    builder = builder_in_launch("tma_copy")
    old = builder.scope.statements.pop()
    assert isinstance(old, tirx.Evaluate)
    builder.emit(with_attributes(old, attrs, [*old.value.args, *args]))


def _object(op: str, barrier: object) -> tuple[BufferVar, Expr]:
    return as_barrier(op, barrier).located(op)


def _integer(op: str, name: str, value: Scalar) -> Expr:
    found = as_value(value)
    if not found.dtype.is_integer and found.dtype != "bool":
        raise BadArgument(
            function=op, name=name, found=f"a {found.dtype} value", expected="an integer", instead="use k % 2"
        )
    return cast(found, DTYPES["int32"]).expr


def builder_in_launch(name: str) -> Builder:
    """Return the builder of the program that a function of ``T`` is called in.

    Raises
    ------
    OutsideKernel
        Outside of a launch.
    """
    builder: Builder = current(f"T.{name}")
    if builder.threads is None:
        raise OutsideKernel(what=f"T.{name}")
    return builder


def _annotate(builder: Builder, buffer: BufferVar, counts: Sequence[int]) -> None:
    """Store the source location in the allocation, the last statement."""
    old = builder.scope.statements.pop()
    notes = {ARRIVALS: [nodes.int_const(n) for n in counts]}
    builder.emit(tirx.AllocBuffer(buffer, notes, getattr(old, "span", None)))
