"""Calls in a per-thread program in addition to plain statements; an emitter prints each as one call or access."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Call, Expr, Stmt
from tile_core.ir import nodes

#: Attribute around a statement inside which the block's threads need no barrier; between two of them they may.
STEP = "tile.step"

#: Attribute around a region that orders the accesses of some shared buffers itself; its node is the list of these.
MANAGED = "tile.managed"


#: Annotation of a loop whose slots ``simt/launch/strength_reduction.py`` counts.
RING = "tile.ring"

#: Attribute around parts of a lowered op that operand prefetch may move; the node says which part it is.
PART = "tile.part"


#: Attribute around a store of a 4-bit element where another thread may store the other half of the byte.
SPLIT = "tile.split_byte"


def part(which: str, statements: Sequence[Stmt]) -> Stmt:
    """Return statements as a part of an op at the end of a pipelined loop.

    Parameters
    ----------
    which
        ``"setup"``: the loop-invariant part. ``"first"``: reads the operands of the first step into registers
        that ``"last"``, the instructions of the last step, do not touch; where both come in pieces, those that the
        pieces of ``"last"`` before it touch may be read to. ``"middle"``: a piece of what is between them; copies of a
        later iteration may begin before it. ``"ring"``: empty, but requests slots without divisions.
    """
    return tirx.AttrStmt(ir.StringImm(which), PART, nodes.int_const(0), nodes.seq(list(statements)))


def step(body: Stmt, span: Any = None) -> Stmt:
    """Return a statement marked as one step: its threads do not depend on each other while they execute it."""
    return tirx.AttrStmt(nodes.int_const(0), STEP, nodes.int_const(0), body, span)


def address(buffer: BufferVar, indices: Sequence[Expr], access: str = "r") -> Call:
    """Return the address of an element of a buffer, as an argument of an instruction.

    Parameters
    ----------
    access
        How the instruction accesses the memory: ``"r"``, ``"w"``, ``"rw"``, or ``"a"`` for an atomic access, which is
        unordered with other atomic accesses of the buffer.
    """
    return nodes.tile_call("address", [nodes.load(buffer, indices)], {"access": access}, ret="handle")


def move(
    dst: BufferVar, to: Sequence[Expr], src: BufferVar, start: Sequence[Expr], size: int, span: Any = None
) -> Stmt:
    """Return a statement that moves ``size`` bytes in one access, from ``src[start]`` on to ``dst[to]`` on."""
    call = nodes.tile_call("move", [nodes.load(dst, to), nodes.load(src, start)], {"bytes": size})
    return tirx.Evaluate(call, span)


def instruction(name: str, args: Sequence[Expr], ret: str = "void") -> Call:
    """Return a call of an instruction by the name of its helper function."""
    return nodes.tile_call("instruction", args, {"name": name}, ret)


def execute(name: str, args: Sequence[Expr], span: Any = None) -> Stmt:
    """Return a statement that executes an instruction for its effect."""
    return tirx.Evaluate(instruction(name, args), span)


def sync_threads() -> Stmt:
    """Return a barrier of all threads of the block."""
    return tirx.Evaluate(nodes.tile_call("sync_threads", []))


def sync_warp() -> Any:
    """Return a barrier of the threads of a warp."""
    return tirx.Evaluate(nodes.tile_call("sync_warp", []))


def async_commit() -> Stmt:
    """Return the commit of a group of asynchronous copies: those that the thread has issued since the last one."""
    return tirx.Evaluate(nodes.tile_call("async_commit", []))


def async_wait(groups: int) -> Stmt:
    """Return a wait of the thread for its asynchronous copies, all but those of the latest ``groups`` groups."""
    return tirx.Evaluate(nodes.tile_call("async_wait", [nodes.int_const(groups)]))


def managed(buffers: Sequence[BufferVar], body: Stmt, span: Any = None) -> Stmt:
    """Return a statement whose waits and barriers order all accesses of ``buffers`` inside it.

    At its start and end all accesses of their bytes are ordered against those before and after it, so barrier
    insertion may ignore these buffers.
    """
    return tirx.AttrStmt(list(buffers), MANAGED, nodes.int_const(0), body, span)


def thread_index(axis: int) -> Call:
    """Return the thread's coordinate along an axis of the block."""
    return nodes.tile_call("thread_index", [nodes.int_const(axis)], ret="int32")


def block_index(axis: int) -> Call:
    """Return the block's coordinate along an axis of the grid."""
    return nodes.tile_call("block_index", [nodes.int_const(axis)], ret="int32")
