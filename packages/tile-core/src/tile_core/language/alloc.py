"""Scratch buffers and variables."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tile_core.compat.types import DTypeLike
from tile_core.dtypes import dtype as to_dtype
from tile_core.errors.language import BadInitial, WorkspaceInside
from tile_core.values.allocation import allocate
from tile_core.values.builder import current
from tile_core.values.checks import shown
from tile_core.values.value import Buffer, Index, Scalar


def alloc_shared(shape: Sequence[int], dtype: DTypeLike, scope: str = "shared.dyn") -> Buffer:
    """Allocate a buffer that the threads of a block share.

    Parameters
    ----------
    shape
        Positive Python ints.
    dtype
        Element type.
    scope
        ``"shared"`` or ``"shared.dyn"``, which mean the same.

    Raises
    ------
    BadShape
        If an extent is not static and positive.
    """
    _check_scope("alloc_shared", scope, "shared", "shared.dyn")
    return allocate("alloc_shared", shape, dtype, "shared", "shared")


def alloc_fragment(shape: Sequence[int], dtype: DTypeLike, scope: str = "local.fragment") -> Buffer:
    """Allocate a tile in registers, distributed over a block's threads by its layout."""
    _check_scope("alloc_fragment", scope, "local.fragment")
    return allocate("alloc_fragment", shape, dtype, "local.fragment", "fragment")


def alloc_local(shape: Sequence[int], dtype: DTypeLike, scope: str = "local") -> Buffer:
    """Allocate a small array private to each thread (or iteration of a parallel loop)."""
    _check_scope("alloc_local", scope, "local")
    return allocate("alloc_local", shape, dtype, "local", "local")


def alloc_var(dtype: DTypeLike, *args: Scalar | str, init: Scalar | None = None, scope: str = "local.var") -> Buffer:
    """Allocate a scalar variable: assigning to its name stores to it.

    Parameters
    ----------
    dtype
        Element type.
    *args, init
        The first value: ``T.alloc_var("float32", 0)`` or ``init=0``. Without it the variable starts at zero.
    scope
        Accepted for other dialects' kernels.
    """
    for given in (scope, *(a for a in args if isinstance(a, str))):
        _check_scope("alloc_var", given, "local.var")
    values = [a for a in args if not isinstance(a, str)]
    if len(values) + (init is not None) > 1:
        found = f"{len(values) + (init is not None)} values"
        raise BadInitial(what="alloc_var", name="init", found=found, expected="at most one", instead="keep one")
    first = values[0] if values else 0 if init is None else init
    var = allocate("alloc_var", (1,), dtype, "local.var", "var")
    from tile_core.values.buffer import store

    store(var, 0, bool(first) if var.dtype == "bool" and isinstance(first, int) else first)
    return var


def alloc_global(shape: Sequence[Index], dtype: DTypeLike, scope: str = "global") -> Buffer:
    """Allocate a workspace: a tensor that the runtime allocates for every call, beside the arguments.

    Parameters
    ----------
    shape
        Extents, as those of ``T.Tensor``: Python ints, sizes of the parameters, arithmetic on them.
    dtype
        Element type.
    scope
        Accepted for other dialects' kernels.

    Raises
    ------
    WorkspaceInside
        Inside a launch: all its blocks share the workspace.

    Notes
    -----
    It holds nothing at first, lives until the last launch of the call has finished, and is not shared between calls.
    """
    from tile_core.trace.parameters import tensor
    from tile_core.values.types import TensorType

    _check_scope("alloc_global", scope, "global")
    builder = current("T.alloc_global")
    if builder.scope.kind != "function":
        raise WorkspaceInside()
    name = builder.hints.pop(0) if builder.hints else "workspace"
    dims = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    var, buffer, info = tensor(builder, name, TensorType(dims, to_dtype(dtype)))
    builder.workspaces.append((var, dataclasses.replace(info, name=str(var.name))))
    return buffer


def _check_scope(what: str, scope: object, *legal: str) -> None:
    if not isinstance(scope, str) or scope not in legal:
        found, expected = shown(scope), " or ".join(map(repr, legal))
        raise BadInitial(what=what, name="scope", found=found, expected=expected, instead="leave it out")
