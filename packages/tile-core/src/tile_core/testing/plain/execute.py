"""Running a kernel's text as plain Python."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np

from tile_core.dtypes import DTYPES
from tile_core.testing import data as arrays_of
from tile_core.testing.case import Data, Param
from tile_core.testing.plain.memory import Memory
from tile_core.testing.plain.numbers import convert, is_float
from tile_core.testing.plain.rewrite import rewritten
from tile_core.testing.plain.threads import run_block
from tile_core.testing.plain.vocabulary import Grid, Ignored, Language
from tile_core.testing.plain.whole import WholeTiles

Array = Any


def run(
    text: str, params: list[Param], given: Data, names: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Array]:
    """Execute a kernel.

    Parameters
    ----------
    text
        A Python file that defines ``main``, as ``Unit.text`` makes it.
    params
        Parameters of ``main`` in order.
    given
        Arrays of storage elements and scalars by name, sizes that shapes name, and ``"#lanes"`` of a warp (32).
    names
        What names of ``T`` mean that packages besides the core add.

    Returns
    -------
    dict
        Outputs by name: float64 for floats, numbers for integers.
    """
    sizes = {k: v for k, v in given.items() if isinstance(v, int)}
    language = Language(sizes, sizes.get("#lanes", 32), names)
    scope: dict[str, Any] = {
        "T": WholeTiles(language),
        "tile": Ignored(),
        "range": language.serial,
        "launch": _launcher(language),
    }
    exec(compile(rewritten(text), "<plain>", "exec"), scope)
    bound = {p.name: _bound(p, given, sizes) for p in params if not p.of}
    bound |= {p.name: [bound[name] for name in p.of] for p in params if p.of}
    scope["main"](**bound)
    return {p.name: _result(bound[p.name]) for p in params if p.out}


def _bound(p: Param, given: Mapping[str, Any], sizes: Mapping[str, int]) -> Any:
    if p.shape is None:
        return convert(given[p.name], p.dtype)
    shape = tuple(d if isinstance(d, int) else int(eval(d, {"__builtins__": {}}, dict(sizes))) for d in p.shape)
    if p.name not in given:
        array = arrays_of.values(arrays_of.poisoned(shape, p.dtype), p.dtype, shape)
    else:
        array = arrays_of.values(np.asarray(given[p.name]), p.dtype, shape)
    packed = DTYPES[p.dtype].is_packed or DTYPES[p.dtype].is_reduced
    with np.errstate(all="ignore"):
        data = array.astype(object) if packed else array.astype(DTYPES[p.dtype].numpy())
    return Memory(data, p.dtype, "global")


def _result(memory: Memory) -> Array:
    with np.errstate(all="ignore"):
        if is_float(memory.dtype):
            return memory.data.astype(np.float64)
        return memory.data.astype(np.int64) if memory.data.dtype == object else memory.data


def _launcher(language: Language) -> Any:
    def launch(grid: Grid, block: Any) -> None:
        for at in product(*(range(n) for n in reversed(grid.extents))):
            language.begin(at[::-1], grid.threads)
            language.blocks, language.cluster = grid.extents[0], grid.cluster
            values = tuple(convert(i, "int32") for i in at[::-1])
            argument: Any = values[: grid.named]
            if inspect.isgeneratorfunction(block):
                run_block(language, lambda a=argument: block(a), int(np.prod(grid.threads)))  # type: ignore[misc]
            else:
                block(argument)

    return launch
