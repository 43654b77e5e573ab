"""Declarations in eager kernels: dimensions and outputs."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.compat.types import DTypeLike
from tile_core.trace.eager import const_names, eager_state
from tile_core.values.value import Buffer, Index


def const(names: str) -> object:
    """Return dimensions that the arguments' shapes determine: ``M, N = T.const("M, N")``.

    They are Python ints: the kernel is compiled for each set of shapes that it is called with.

    Raises
    ------
    UndeterminedConst
        If a name is not a dimension of a declared tensor.
    """
    listed = const_names(names)
    state = eager_state("T.const")
    values = tuple(state.const(n) for n in listed)
    return values[0] if len(values) == 1 else values


def empty(shape: Sequence[Index], dtype: DTypeLike = "float32") -> Buffer:
    """Return an output of an eager kernel, allocated at the call like the inputs."""
    return eager_state("T.empty").empty(tuple(shape) if isinstance(shape, (tuple, list)) else (shape,), dtype)
