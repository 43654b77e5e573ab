"""Check that a variant's output writes if its op does."""

from __future__ import annotations

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Stmt
from tile_core.ir.visit import collect
from tile_core.ops.registry import OPS


def problem_of(op: str, statement: Stmt) -> str:
    """Return the defect of an op's lowered statement; empty if none is found.

    Stores are seen, and calls may do anything: this finds missing writes, not wrong ones.
    """
    if not isinstance(statement, tirx.Stmt):
        return f"lowered the call to a value of type {type(statement).__name__}; expected a statement"
    if op not in OPS or not OPS[op].writes:
        return ""
    if set(OPS[op].writes) <= set(OPS[op].reads) and len(OPS[op].reads) == 1:
        return ""  # the operand may hold the result already: a reducer with one copy
    if any(isinstance(s.value, ir.Call) for s in collect(statement, tirx.Evaluate)):
        return ""
    own = {s.buffer for s in collect(statement, tirx.AllocBuffer)}
    if any(s.buffer not in own for s in collect(statement, tirx.BufferStore)):
        return ""
    return "lowered the call to a statement that writes nothing; expected that it writes the op's destination"
