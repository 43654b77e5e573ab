"""Names of TVM and NumPy objects for annotations.

TVM has no types that a checker could see, so each of these is ``Any`` to it. To a reader they say what a value is.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Expr: TypeAlias = Any
"""An expression of the IR: ``ir.Expr``. As an operand, a Python number is accepted as a constant."""

Stmt: TypeAlias = Any
"""A statement: ``tirx.Stmt``."""

Node: TypeAlias = Any
"""An expression or a statement."""

Var: TypeAlias = Any
"""A variable: ``tirx.Var``."""

BufferVar: TypeAlias = Any
"""The variable of a buffer: its type has shape and element type."""

Call: TypeAlias = Any
"""A call: ``ir.Call``, of one of TVM's functions or of a tile op."""

Span: TypeAlias = Any
"""A place in the source: ``ir.Span``, or ``None``."""

PrimFunc: TypeAlias = Any
"""A function: ``tirx.PrimFunc``."""

Array: TypeAlias = Any
"""A NumPy array, or one of NumPy's scalars where an array has rank 0."""

Mutator: TypeAlias = Any
"""What walks an expression and makes a new one: ``StructuralMutator`` of TVM."""

DTypeLike: TypeAlias = Any
"""An element type by any of its names: ``T.float16``, text, or a type of NumPy, ml_dtypes or torch."""
