"""Access modes of a program's parameters: read, written or both."""

from __future__ import annotations

from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Stmt
from tile_core.ir import nodes
from tile_core.ir.visit import collect, loads_of


def accesses(body: Stmt, effects: Any) -> dict[str, str]:
    """Return ``"read"``, ``"write"`` or ``"readwrite"`` by buffer name, views counted as their buffers.

    Parameters
    ----------
    body
        A program.
    effects
        From a decoded tile call (statement or binding) to (views read, views written).
    """
    reads: set[str] = set()
    writes: set[str] = set()
    base = _bases(body)

    def name(buffer: BufferVar) -> str:
        found = str(buffer.name)
        while found in base:
            found = base[found]
        return found

    for store in collect(body, tirx.BufferStore):
        writes.add(name(store.buffer))
    for load in loads_of(body):
        reads.add(name(load.source))
    for stmt in collect(body, (tirx.Evaluate, tirx.Bind)):
        if nodes.is_tile_call(stmt.value):
            read, written = effects(stmt)
            reads |= {name(v.buffer) for v in read}
            writes |= {name(v.buffer) for v in written}
    both = reads | writes
    return {n: "readwrite" if n in reads and n in writes else "write" if n in writes else "read" for n in both}


def _bases(body: Stmt) -> dict[str, str]:
    found = {}
    for view in collect(body, tirx.DeclBuffer):
        for var in collect(view.data, tirx.Var):
            found[str(view.buffer.name)] = str(var.name)
    return found
