"""Arguments of a launch: arrays and scalars become memory and values, symbols get their values.

4-bit elements, two to a byte in an array, are unpacked to one a byte for the execution and packed again after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tile_core.abi.signature import evaluate
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Argument, Array, BufferVar, Expr, Var
from tile_core.dtypes import DTYPES
from tile_core.errors import InternalError
from tile_core.ir import nodes
from tile_core.numerics.codecs import pack4, unpack4
from tile_core.records import dataclass
from tile_core.reference.elements import constant, holder, wrap
from tile_core.reference.memory import LaneMemory, Root

if TYPE_CHECKING:
    from tile_core.ir.program import Program
    from tile_core.reference.program import Compiled
    from tile_core.reference.state import State

__all__ = ["Unwritten", "bind", "unbind", "unwritten_of", "workspaces"]


@dataclass(frozen=True)
class Unwritten:
    """The elements of a parameter that a program never writes.

    Attributes
    ----------
    position, name
        The parameter.
    mask
        Bools of its shape.
    """

    position: int
    name: str
    mask: Array


def bind(
    compiled: Compiled,
    state: State,
    arguments: Sequence[Argument],
    symbols: Mapping[str, int],
    unwritten: frozenset[int],
) -> None:
    """Give a state its arguments.

    Parameters
    ----------
    arguments
        One per parameter: NumPy arrays, Python or NumPy scalars, addresses.
    symbols
        Values of symbols; others come from the shapes of arrays.
    unwritten
        Positions of tensors that hold nothing yet.
    """
    for (param, number), argument in zip(compiled.params, arguments, strict=True):
        if not tirx.is_buffer_var(param):
            state.values[number] = _scalar(argument, param)
    _solve(compiled, state, arguments, symbols)
    for position, ((param, number), argument) in enumerate(zip(compiled.params, arguments, strict=True)):
        if tirx.is_buffer_var(param):
            memory = _tensor(compiled, state, number, param, argument)
            memory.root.shared = number in compiled.written
            if state.sanitizer is not None and position in unwritten:
                memory.root.valid = np.zeros(memory.root.units, np.bool_)
            state.memories[number] = memory
    for number, value in compiled.fills.items():
        state.fills[number] = value(state)


def unbind(compiled: Compiled, state: State, arguments: Sequence[Argument]) -> None:
    """Pack the 4-bit elements that the launch may have written into the caller's arrays."""
    for (param, number), argument in zip(compiled.params, arguments, strict=True):
        if not (
            tirx.is_buffer_var(param) and DTYPES[nodes.element_type(param)].is_packed and number in compiled.written
        ):
            continue
        memory, array = state.memories[number], _bytes(argument)
        if not array.size:
            continue
        elements = memory.flat.reshape(memory.shape)
        packed = pack4(elements.reshape(1) if not memory.shape else elements)
        packed = packed.reshape(array.shape)
        if memory.shape and memory.shape[-1] % 2:  # the last high nibble of a row is unused
            packed[..., -1] |= array[..., -1] & 0xF0
        array[...] = packed


def unwritten_of(compiled: Compiled, state: State, positions: frozenset[int]) -> tuple[Unwritten, ...]:
    """Return the elements of parameters that held nothing and were not written; of workspaces none."""
    found = []
    own = len(compiled.program.params) - len(compiled.program.workspaces)
    for position, (param, number) in enumerate(compiled.params[:own]):
        memory: LaneMemory | None = state.memories[number] if tirx.is_buffer_var(param) else None
        if position not in positions or memory is None or memory.root.valid is None:
            continue
        if memory.table is not None:
            written = memory.root.valid[memory.table].reshape(memory.shape)
        else:
            written = memory.block_valid
            written = written.all(axis=-1) if memory.ratio > 1 else written
        if not written.all():
            found.append(Unwritten(position, memory.root.name, ~written))
    return tuple(found)


def workspaces(program: Program, arguments: Sequence[Argument], symbols: Mapping[str, int]) -> list[Array]:
    """Return memory for the workspaces of a program, with every bit set."""
    known = dict(symbols)
    for param, argument in zip(program.params, arguments, strict=False):
        if param.kind == "tensor":
            pairs = zip(param.shape, np.shape(argument), strict=False)
            known = {**{dim: n for dim, n in pairs if isinstance(dim, str)}, **known}
        elif param.kind == "scalar" and isinstance(argument, (int, np.integer)):
            known[param.name] = int(argument)
    made = []
    for param in program.params[len(arguments) :]:
        shape = [int(evaluate(dim, known) or 0) for dim in param.shape]
        element = DTYPES[param.dtype]
        if element.is_packed:
            shape[-1] = -(-shape[-1] // 2)
        array = np.empty(shape, np.uint8 if element.is_packed else element.numpy())
        array.view(np.uint8)[...] = 0xFF
        made.append(array)
    return made


def _scalar(argument: Argument, param: Var) -> Array:
    if not hasattr(param.ty, "dtype"):
        return argument  # a pointer
    return constant(argument, nodes.dtype_of(param))


def _solve(compiled: Compiled, state: State, arguments: Sequence[Argument], symbols: Mapping[str, int]) -> None:
    """Set symbols: given values, and symbols that are an extent or stride alone."""
    known: dict[int, int] = {}
    idle: list[tuple[Expr, int]] = []
    for (param, _), argument in zip(compiled.params, arguments, strict=True):
        if not tirx.is_buffer_var(param):
            continue
        array, packed = np.asarray(argument), DTYPES[nodes.element_type(param)].is_packed
        strides = [s // array.dtype.itemsize for s in array.strides]
        for d, dim in enumerate(param.shape):
            last = packed and d == len(param.shape) - 1
            _note(compiled, known, dim, array.shape[d] * (2 if last else 1), weak=last)
        steps = [s * (2 if packed and d < len(strides) - 1 else 1) for d, s in enumerate(strides)]
        for d, dim in enumerate(param.ty.strides or []):
            if array.size and array.shape[d] > 1:
                _note(compiled, known, dim, steps[d], weak=True)
            else:
                idle.append((dim, max(steps[d], 0)))
    for dim, step in idle:  # they address nothing, and count where nothing better is known
        _note(compiled, known, dim, step, weak=True)
    for name, number in compiled.symbols.items():
        var = compiled.program.symbols[name]
        value = symbols.get(name, known.get(number))
        if value is None:
            raise InternalError(stage="reference", detail=f"symbol {name} has no value")
        state.values[number] = constant(value, nodes.dtype_of(var))


def _note(compiled: Compiled, known: dict[int, int], dim: Expr, value: int, *, weak: bool) -> None:
    while isinstance(dim, tirx.Cast):
        dim = dim.value
    number = compiled.scope.variables.get(dim) if isinstance(dim, tirx.Var) else None
    if number is not None and not (weak and number in known):
        known[number] = value


def _tensor(compiled: Compiled, state: State, number: int, param: BufferVar, argument: Array) -> LaneMemory:
    dtype, name = nodes.element_type(param), str(param.name)
    dims, steps = compiled.shapes[number]
    shape = [int(d(state)) for d in dims]
    strides = None if steps is None else [int(s(state)) for s in steps]
    layout = compiled.program.layouts.get(name)
    table = None if layout is None else np.asarray(layout.tables()["memory"], np.int64)
    if DTYPES[dtype].is_packed:
        raw = _bytes(argument)
        nibbles = unpack4(raw.reshape(1) if not shape else raw, shape[-1] if shape else 1)
        data = np.ascontiguousarray(wrap(nibbles, dtype)).reshape(-1)
        strides = None
    else:
        data = _flat(np.asarray(argument), dtype, shape, strides)
    unit = compiled.scope.units[number]
    return LaneMemory(Root(data, None, None, unit, name, "global"), dtype, shape, strides, table)


def _bytes(argument: Array) -> Array:
    return np.asarray(argument).view(np.uint8)


def _flat(array: Array, dtype: str, shape: list[int], strides: list[int] | None) -> Array:
    """Return the memory of an array as a flat one that shares it."""
    held = array.view(holder(dtype)) if array.dtype != holder(dtype) else array
    if strides is None:
        if held.flags.c_contiguous:
            return held.reshape(-1)
        raise InternalError(stage="reference", detail="a contiguous tensor got an array with strides")
    span = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    return np.lib.stride_tricks.as_strided(held, (span,), (held.dtype.itemsize,))
