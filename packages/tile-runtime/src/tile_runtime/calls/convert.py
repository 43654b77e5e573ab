"""Conversions between the arguments of a call and the values of a launch."""

from __future__ import annotations

import ctypes
import dataclasses
import operator
import sys
from collections.abc import Callable, Mapping

from tile_runtime.abi.adapter import HOST_DEVICE, Location
from tile_runtime.abi.signature import Param, Signature, evaluate
from tile_runtime.calls import checks
from tile_runtime.calls.arrays import ArrayFacts, empty_array, facts_of, numpy_alias, writable_alias
from tile_runtime.dtypes import dtype
from tile_runtime.types import Argument

Convert = Callable[[Argument], Argument]


def converts(
    signature: Signature,
    args: tuple[Argument, ...],
    arrays: Mapping[int, ArrayFacts],
    symbols: Mapping[str, int],
    *,
    packed: bool,
) -> tuple[tuple[int, Convert], ...]:
    """Return conversions of the arguments that a launch cannot take unchanged, by position."""
    found: list[tuple[int, Convert]] = []
    for i, position in enumerate(signature.inputs):
        param, facts = signature.params[position], arrays.get(position)
        convert: Convert | None = None
        if param.kind == "scalar":
            convert = _scalar_convert(signature, param, args[i])
        elif param.kind == "pointer":
            convert = (lambda v: ctypes.c_void_p(address_of(v))) if packed else address_of
        elif not packed:
            torch = facts is not None and facts.library == "torch"
            convert = operator.methodcaller("data_ptr") if torch else address_of
        elif facts is not None:
            convert = _strides_convert(param, facts, symbols) or _array_convert(param, facts)
        if convert is not None:
            found.append((i, convert))
    return tuple(found)


def output_convert(param: Param, location: Location, shape: tuple[int, ...], *, packed: bool) -> Convert | None:
    """Return the conversion of an allocated output; ``None`` if a launch takes it unchanged."""
    if not packed:
        return address_of
    if 0 in shape and location.device[0] == HOST_DEVICE:
        empty = empty_array((*shape[:-1], shape[-1] // 2) if param.packed else shape, param.storage)
        return lambda array: empty
    if param.storage == param.dtype or param.packed or dtype(param.dtype).is_reduced:
        return None
    if location.library == "torch":
        kind = getattr(sys.modules["torch"], param.storage)
        return lambda tensor: tensor.view(kind)
    if location.device[0] != HOST_DEVICE:
        return None
    return operator.methodcaller("view", param.storage)


def launch_number(signature: Signature, param: Param, value: Argument) -> int | float | bool:
    """Return the number that a launch takes for a scalar argument, after its check."""
    number = checks.check_scalar(signature, param, value)
    if not dtype(param.dtype).is_reduced:
        return number
    from tile_runtime.numerics.literals import round_number

    return round_number(number, param.dtype)


def coded_number(value: float, name: str) -> int | float:
    """Return a number as machine code takes it: narrow floats as codes."""
    kind = dtype(name)
    if name == "uint64":
        return int(value) - (1 << 64) if value >= 1 << 63 else int(value)
    if not kind.is_float or kind.storage == kind.container:
        return value
    from tile_runtime.numerics.codecs import encode

    return int(encode(float(value), name))


def address_of(value: Argument) -> int:
    """Return the address in a pointer, or that of an array's first element."""
    if type(value) is int:
        return value
    if isinstance(value, ctypes.c_void_p):
        return value.value or 0
    data_ptr = getattr(value, "data_ptr", None)
    if data_ptr is not None:
        return int(data_ptr())
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return int(value.__array_interface__["data"][0])
    return facts_of(value).pointer


def _scalar_convert(signature: Signature, param: Param, value: Argument) -> Convert | None:
    if dtype(param.dtype).is_reduced:  # which launches pass as its container
        return lambda v: launch_number(signature, param, v)
    plain = {"bool": bool, "float": float}.get(dtype(param.dtype).kind, int)
    if type(value) is plain:
        return None
    if type(value) in (int, float):
        return plain
    return lambda v: launch_number(signature, param, v)


def _strides_convert(param: Param, facts: ArrayFacts, symbols: Mapping[str, int]) -> Convert | None:
    """Give an array the declared strides on axes of extent 0 or 1."""
    if param.strides is None or facts.device[0] != HOST_DEVICE:
        return None
    declared = tuple(evaluate(s, symbols) for s in param.strides)
    strides = tuple(s for s in declared if s is not None)
    if len(strides) < len(declared) or strides == facts.strides:
        return None
    return lambda array: numpy_alias(dataclasses.replace(facts_of(array), strides=strides), array, param.storage)


def _array_convert(param: Param, facts: ArrayFacts) -> Convert | None:
    storage = param.storage
    if not facts.size and param.strides is None and facts.device[0] == HOST_DEVICE:
        empty = empty_array(facts.shape, storage)
        return lambda array: empty
    if facts.library == "torch":
        return _torch_convert(storage if facts.dtype != storage else "", facts)
    if facts.library == "numpy" and facts.writable:
        return None if facts.dtype == storage else operator.methodcaller("view", storage)
    if facts.device[0] != HOST_DEVICE:
        return None
    if facts.library == "numpy":
        return lambda array: writable_alias(array, storage)
    return lambda array: numpy_alias(facts_of(array), array, storage)


def _torch_convert(storage: str, facts: ArrayFacts) -> Convert | None:
    kind = getattr(sys.modules["torch"], storage, None) if storage else None
    if storage and kind is None:
        return lambda tensor: numpy_alias(facts_of(tensor), tensor, storage)
    if kind is not None:
        return lambda tensor: tensor.detach().view(kind)
    return operator.methodcaller("detach") if facts.requires_grad else None
