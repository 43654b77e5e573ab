"""Allocate scratch memory in a traced program, for ``T`` and for tile ops."""

from __future__ import annotations

import math

from tile_core.compat.tvm import tirx
from tile_core.compat.types import DTypeLike
from tile_core.dtypes import dtype as to_dtype
from tile_core.errors.language import BadShape, ScratchTooLarge
from tile_core.values.buffer import Buffer
from tile_core.values.builder import current
from tile_core.values.checks import python_int, shown
from tile_core.values.scalar import Shape, Value, constant_of

#: The most elements that 32-bit indices can count.
_MOST_ELEMENTS = 2**31 - 1


def allocate(what: str, shape: Shape, dtype: DTypeLike, scope: str, default: str) -> Buffer:
    """Allocate scratch memory and return it.

    Parameters
    ----------
    what
        The calling function of ``T``, for messages.
    shape
        Positive Python ints.
    dtype
        Element type.
    scope
        Storage scope of the IR.
    default
        Its name, if the user's source gives none.

    Raises
    ------
    BadShape, ScratchTooLarge
        If an extent is not static and positive, or there are more elements than 32-bit indices count.
    """
    builder = current(f"T.{what}")
    element = to_dtype(dtype)
    extents = _static(what, shape)
    name = builder.hinted(default)
    var = tirx.decl_buffer(list(extents), element.container, name, scope=scope, layout=None)
    builder.emit(tirx.AllocBuffer(var, {}, builder.span()))
    return Buffer(var, extents, element, scope, name)


def _static(what: str, shape: Shape) -> tuple[int, ...]:
    dims = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    extents = []
    for d, dim in enumerate(dims):
        constant = constant_of(dim) if isinstance(dim, Value) else python_int(dim)
        if constant is None or constant <= 0:
            found = f"the runtime value {dim._expr}" if isinstance(dim, Value) and constant is None else shown(dim)
            raise BadShape(what=what, dim=d, found=found)
        extents.append(constant)
    count = math.prod(extents)
    if count > _MOST_ELEMENTS:
        raise ScratchTooLarge(what=what, shape=tuple(map(shown, extents)), found=shown(count), limit=_MOST_ELEMENTS)
    return tuple(extents)
