"""Calls in a per-thread program beyond plain statements, each emitted as one call or access."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Call, Expr, Span, Stmt
from tile_core.ir import attributes, nodes
from tile_core.ir.attributes import AttrDict
from tile_core.ir.visit import collect

ASYNC_PROXY = "async"
"""Proxy of an access that is not made as threads access memory."""
UNTIL_GROUP, UNTIL_PHASE = "group", "phase"
"""What an access lasts until: the wait for the thread's groups, or for the phase of a barrier object."""
UNTIL_READ, UNTIL_STORED = "read", "stored"
"""What an access of a copy out of shared memory lasts until: that its source has been read, or that all is stored. The
first of the threads that execute the op together issues it. The waits are placed, see ``store_wait``."""


def part(which: str, statements: Sequence[Stmt]) -> Stmt:
    """Return statements as a part of an op at the end of a pipelined loop.

    Parameters
    ----------
    which
        ``"setup"``: the loop-invariant part. ``"first"``: reads the operands of the first step into registers
        that ``"last"``, the instructions of the last step, do not touch; where both are divided, those that the
        parts of ``"last"`` before it touch may be read to. ``"middle"``: a part of the steps between them; copies of a
        later iteration may begin before it. ``"ring"``: empty, but requests slots without divisions.
    """
    return nodes.mark(attributes.PART, which, nodes.seq(list(statements)))


def step(body: Stmt, span: Span = None) -> Stmt:
    """Return a statement marked as one step, whose threads are independent while executing it."""
    return nodes.mark(attributes.STEP, 0, body, span)


def address(
    buffer: BufferVar, indices: Sequence[Expr], access: str = "r", proxy: str = "", until: str = "",
    box: Sequence[int] = (), align: int = 1, between_blocks: bool = False, words: bool = False, chunk: int = 0,
) -> Call:  # fmt: skip
    """Return the address of an element of a buffer, as an argument of an instruction.

    Parameters
    ----------
    access
        How the instruction accesses the memory: ``"r"``, ``"w"``, ``"rw"``, or ``"a"`` for an atomic access, which is
        unordered with other atomic accesses of the buffer.
    proxy
        ``ASYNC_PROXY`` if the instruction does not access memory as threads do: it sees what threads have written only
        after ``fence_proxy``, which barrier insertion places.
    until
        Until when the instruction may access the memory, by default the end of the statement: ``UNTIL_GROUP``,
        ``UNTIL_PHASE`` of the barrier object whose address stands among the same arguments with access ``"a"``,
        ``UNTIL_READ`` or ``UNTIL_STORED``, or a name that a later call has as its attribute ``waits``.
    box
        Extents of what the instruction accesses from there on, if nothing else.
    align
        What the address of the shared buffer itself is a multiple of, in bytes: the instruction relies on it.
    between_blocks
        Whether it is an operand of a copy from block to block: other blocks may access it at any time, so that it
        shares its bytes with no other buffer.
    words
        Whether it accesses an array of a thread as words of 32 bits, whatever the elements are.
    chunk
        Bytes that the instruction accesses for each thread, as a vector access of that size; 0 if it accesses others.
    """
    attrs: AttrDict = {
        attributes.PROXY: proxy,
        attributes.UNTIL: until,
        attributes.BOX: list(box),
        attributes.BETWEEN_BLOCKS: int(between_blocks),
    }
    attrs |= {attributes.ALIGN: align if align > 1 else 0, attributes.WORDS: int(words), attributes.CHUNK: chunk}
    attrs = {attributes.ACCESS: access, **{key: value for key, value in attrs.items() if value}}
    return nodes.tile_call("address", [nodes.load(buffer, indices)], attrs, ret="handle")


def accessed_as_words(body: Stmt) -> list[BufferVar]:
    """Return the arrays that instructions of a body access as words, once for each access."""
    addresses = [c for c in collect(body, ir.Call) if nodes.is_tile_call(c, "address")]
    return [c.args[0].source for c in addresses if attributes.WORDS in c.attrs]


def move(
    dst: BufferVar, to: Sequence[Expr], src: BufferVar, start: Sequence[Expr], size: int, span: Span = None
) -> Stmt:
    """Return a move of ``size`` bytes in one access, from ``src[start]`` to ``dst[to]``."""
    call = nodes.tile_call("move", [nodes.load(dst, to), nodes.load(src, start)], {attributes.BYTES: size})
    return tirx.Evaluate(call, span)


def instruction(name: str, args: Sequence[Expr], ret: str = "void") -> Call:
    """Return a call of an instruction by the name of its helper function."""
    return nodes.tile_call("instruction", args, {attributes.NAME: name}, ret)


def execute(name: str, args: Sequence[Expr], span: Span = None) -> Stmt:
    """Return a statement that executes an instruction for its effect."""
    return tirx.Evaluate(instruction(name, args), span)


def sync_threads(after_reads: bool = False) -> Stmt:
    """Return a barrier of all threads of the block.

    Parameters
    ----------
    after_reads
        Whether it only marks the end of reads: no thread has written data that later accesses have to see.
    """
    return tirx.Evaluate(nodes.tile_call("sync_threads", [], {attributes.AFTER_READS: 1} if after_reads else {}))


def sync_part(barrier: int, threads: int) -> Stmt:
    """Return a barrier of ``count`` threads of the block, by its number, from 1 on."""
    return tirx.Evaluate(nodes.tile_call("sync_part", [nodes.int_const(barrier), nodes.int_const(threads)]))


def sync_warp() -> Stmt:
    """Return a barrier of the threads of a warp."""
    return tirx.Evaluate(nodes.tile_call("sync_warp", []))


def async_commit(span: Span = None) -> Stmt:
    """Return the commit of a group: the thread's asynchronous copies since the last one."""
    return tirx.Evaluate(nodes.tile_call("async_commit", []), span)


def async_wait(groups: int, span: Span = None) -> Stmt:
    """Return a wait for the thread's asynchronous copies, except for the latest ``groups`` groups."""
    return tirx.Evaluate(nodes.tile_call("async_wait", [nodes.int_const(groups)]), span)


#: Calls of a program for its own barriers and fences: they order threads and compute nothing.
BARRIER_CALLS = frozenset(
    {
        "barrier_arrive", "barrier_wait", "barrier_announce", "fence_proxy", "fence_init", "sync_part",
        "cluster_arrive", "cluster_wait", "launch_wait", "launch_trigger",
        "async_wait", "async_commit",
    }
)  # fmt: skip


def alloc_barriers(name: str, count: int) -> tuple[BufferVar, Stmt]:
    """Return a shared buffer of ``count`` barrier objects, only for calls, and its allocation."""
    return nodes.alloc([count], "uint64", name, "shared")


def barrier_init(barriers: BufferVar, index: Expr, arrivals: int) -> Stmt:
    """Return the initialization of a barrier object by one thread, with arrivals per phase."""
    return _barrier("barrier_init", barriers, index, "w", [nodes.int_const(arrivals)])


def barrier_drop(barriers: BufferVar, index: Expr) -> Stmt:
    """Return the invalidation of a barrier object by one thread, which frees its memory."""
    return _barrier("barrier_drop", barriers, index, "w", [])


def barrier_expect(barriers: BufferVar, index: Expr, size: int) -> Stmt:
    """Return an arrival that also expects ``size`` bytes in the current phase."""
    return _barrier("barrier_expect", barriers, index, "a", [nodes.int_const(size)])


def barrier_announce(barriers: BufferVar, index: Expr, size: Expr, span: Span = None) -> Stmt:
    """Return the announcement of ``size`` more bytes for the current phase, without an arrival."""
    return _barrier("barrier_announce", barriers, index, "a", [size], span)


def barrier_arrive(barriers: BufferVar, index: Expr, span: Span = None, rank: Expr | None = None) -> Stmt:
    """Return an arrival at a barrier object of this block, or of a rank's."""
    return _barrier("barrier_arrive", barriers, index, "a", [] if rank is None else [rank], span)


def barrier_complete(barriers: BufferVar, index: Expr, blocks: Expr | None = None) -> Stmt:
    """Return an arrival at a barrier object once the thread's earlier products are complete.

    Parameters
    ----------
    blocks
        A mask of ranks of the cluster, if it is at the objects of those blocks.
    """
    return _barrier("barrier_complete", barriers, index, "a", [] if blocks is None else [blocks])


def in_flight(
    barriers: BufferVar, index: Expr, tiles: Sequence[tuple[BufferVar, Sequence[Expr]]], span: Span
) -> Stmt:  # fmt: skip
    """Return a note that earlier instructions read tiles until a phase ends; it does nothing."""
    reads = [address(b, at, "r", ASYNC_PROXY, UNTIL_PHASE) for b, at in tiles]
    return _barrier("in_flight", barriers, index, "a", reads, span)


def barrier_wait(barriers: BufferVar, index: Expr, parity: Expr, span: Span = None) -> Stmt:
    """Return a wait for the end of the phase of a parity, current or previous."""
    return _barrier("barrier_wait", barriers, index, "a", [parity], span)


def _barrier(name: str, barriers: BufferVar, index: Expr, access: str, args: Sequence[Expr], span: Span = None) -> Stmt:
    return tirx.Evaluate(nodes.tile_call(name, [address(barriers, [index], access), *args]), span)


def cluster_arrive(span: Span = None, meets: bool = False, relaxed: bool = False) -> Stmt:
    """Return a thread's arrival at the barrier of the cluster; a separate wait follows.

    Parameters
    ----------
    meets
        Whether it follows at once: then the block needs no barrier of its own between what is before and behind.
    relaxed
        Whether others, behind their wait, need not see what the thread did before.
    """
    attrs = {**({attributes.MEETS: 1} if meets else {}), **({attributes.RELAXED: 1} if relaxed else {})}
    return tirx.Evaluate(nodes.tile_call("cluster_arrive", [], attrs), span)


def cluster_wait(span: Span = None) -> Stmt:
    """Return the wait for all threads of the cluster, whose earlier writes become visible."""
    return tirx.Evaluate(nodes.tile_call("cluster_wait", []), span)


def launch_wait(span: Span = None) -> Stmt:
    """Return the wait for all earlier launches: they are complete and their writes visible."""
    return tirx.Evaluate(nodes.tile_call("launch_wait", []), span)


def launch_trigger(span: Span = None) -> Stmt:
    """Return the permission to begin the next launch, once all blocks have given it.

    The next launch runs up to its own ``launch_wait``.
    """
    return tirx.Evaluate(nodes.tile_call("launch_trigger", []), span)


def store_commit() -> Stmt:
    """Return the commit of a group: the thread's shared-memory copies since the last."""
    return tirx.Evaluate(nodes.tile_call("store_commit", []))


def store_wait(stored: bool) -> Stmt:
    """Return a wait until the thread's groups have read their sources, or are stored.

    Barrier insertion places it, before a barrier, where an access conflicts with such a copy, and at the end.
    """
    return tirx.Evaluate(nodes.tile_call("store_wait", [nodes.int_const(int(stored))]))


def fence_proxy(everywhere: bool = False) -> Stmt:
    """Return a fence: what the thread has written before is visible to the asynchronous proxy.

    Parameters
    ----------
    everywhere
        Whether what it has written to global memory is too, which takes longer; otherwise to shared memory only.
    """
    return tirx.Evaluate(nodes.tile_call("fence_proxy", [nodes.int_const(int(everywhere))]))


def fence_init() -> Stmt:
    """Return a fence that makes initialized barrier objects visible to the asynchronous proxy."""
    return tirx.Evaluate(nodes.tile_call("fence_init", []))


def only(role: tuple[str, int, int], body: Stmt, span: Any = None) -> Stmt:
    """Return a statement that only some consecutive threads execute: (name, first thread, count)."""
    name, first, count = role
    node = [ir.StringImm(name), nodes.int_const(first), nodes.int_const(count)]
    return nodes.mark(attributes.ONLY, node, body, span)


def managed(buffers: Sequence[BufferVar], body: Stmt, span: Span = None) -> Stmt:
    """Return a statement whose waits and barriers order all accesses of ``buffers`` inside it.

    At its start and end all accesses of their bytes are ordered against those before and after it, so barrier
    insertion may ignore these buffers.
    """
    return nodes.mark(attributes.MANAGED, list(buffers), body, span)


def thread_index(axis: int) -> Call:
    """Return the thread's coordinate along an axis of the block."""
    return nodes.tile_call("thread_index", [nodes.int_const(axis)], ret="int32")


def block_index(axis: int) -> Call:
    """Return the block's coordinate along an axis of the grid."""
    return nodes.tile_call("block_index", [nodes.int_const(axis)], ret="int32")


def rank_in_cluster(coordinates: Sequence[Expr], cluster: Sequence[int]) -> Expr:
    """Return the rank of a block in its cluster; its x coordinate counts fastest."""
    rank, step = nodes.int_const(0), 1
    for at, size in zip(coordinates, cluster, strict=False):
        if size > 1:
            rank = rank + tirx.floormod(nodes.cast(at, "int32"), nodes.int_const(size)) * step
        step *= size
    return rank
