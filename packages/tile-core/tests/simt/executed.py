"""Statements that threads need not share, executed by the reference interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tile_core.compat.tvm import tirx
from tile_core.ir import nodes
from tile_core.ir.program import ParamInfo, Program
from tile_core.reference import execute


def executed(body: Any, arrays: Mapping[Any, Any], values: Mapping[Any, Any] = {}) -> dict[Any, Any]:
    """Execute a statement of one thread; return copies of the arrays of its buffers afterwards.

    Parameters
    ----------
    arrays
        By buffer.
    values
        Scalars, by variable.
    """
    found = {buffer: np.array(array) for buffer, array in arrays.items()}
    params = [
        *(ParamInfo(str(b.name), "tensor", nodes.element_type(b), tuple(nodes.shape_of(b))) for b in found),
        *(ParamInfo(str(v.name), "scalar", nodes.dtype_of(v)) for v in values),
    ]
    program = Program(tirx.PrimFunc([*found, *values], body), "executed", tuple(params))
    execute(program, [*found.values(), *values.values()], unwritten=())
    return found
