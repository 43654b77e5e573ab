"""Copies that an epilogue adds to a program."""

from __future__ import annotations

from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.ir import nodes
from tile_core.ir.attributes import Attrs


def copy_of(source: Expr, to: Expr, attrs: Attrs, span: Any) -> Stmt:
    """Return the copy of a tile."""
    return tirx.Evaluate(nodes.tile_call("copy", [source, to], dict(attrs)), span)


def whole(buffer: BufferVar) -> Expr:
    """Return all elements of a tile."""
    shape = nodes.shape_of(buffer)
    return nodes.region(buffer, [nodes.int_const(0)] * len(shape), list(shape))
