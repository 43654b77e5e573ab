"""Names of TVM objects for annotations, and of those of ``tile_runtime.types``.

TVM has no types that a checker could see, so each of these is ``Any`` to it. They document the type for readers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tile_runtime.types import Argument as Argument
from tile_runtime.types import Array as Array
from tile_runtime.types import DTypeLike as DTypeLike
from tile_runtime.types import Torch as Torch
from tile_runtime.types import TorchTensor as TorchTensor

Expr: TypeAlias = Any
"""An expression of the IR: ``ir.Expr``. As an operand, a Python number is accepted as a constant."""

UnaryNode: TypeAlias = Callable[[Expr], Expr]
"""What makes an expression of one operand: a function of ``tirx``, or our own."""

BinaryNode: TypeAlias = Callable[[Expr, Expr], Expr]
"""What makes an expression of two operands: a class such as ``tirx.Add``, a function of ``tirx``, or our own."""

Stmt: TypeAlias = Any
"""A statement: ``tirx.Stmt``."""

Node: TypeAlias = Any
"""An expression or a statement."""

Var: TypeAlias = Any
"""A variable: ``tirx.Var``."""

Key: TypeAlias = Any
"""What compares expressions by their structure in a dictionary: ``StructuralKey`` of TVM's FFI."""

BufferVar: TypeAlias = Any
"""The variable of a buffer: its type has shape and element type."""

Call: TypeAlias = Any
"""A call: ``ir.Call``, of one of TVM's functions or of a tile op."""

Operand: TypeAlias = Any
"""An operand of a tile op in a program: a region, decoded to ``ops.base.View`` in an ``OpCall``, or an expression."""

Span: TypeAlias = Any
"""A place in the source: ``ir.Span``, or ``None``."""

PrimFunc: TypeAlias = Any
"""A function: ``tirx.PrimFunc``."""

ForKind: TypeAlias = Any
"""How a loop runs: ``tirx.ForKind``."""

Mutator: TypeAlias = Any
"""What walks an expression and makes a new one: ``StructuralMutator`` of TVM."""

Coordinate: TypeAlias = Any
"""Coordinates, indices or addresses for a layout: a Python int, an array of NumPy, or an expression of the IR."""

TvmAnalyzer: TypeAlias = Any
"""TVM's own analyzer, ``sym.Analyzer``; see ``analysis/analyzer.py``."""
