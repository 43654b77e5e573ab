"""Random arguments for ``tile run``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tile_core.abi.signature import Param, Signature, evaluate
from tile_core.cli.source import refuse_argument
from tile_core.compat.types import Argument
from tile_core.dtypes import dtype
from tile_core.errors.cli import BadValue, MissingValue, NoInputs
from tile_core.records import dataclass
from tile_core.runtime.verify import random_arguments

#: Symbolic sizes that got no value; a multiple of nothing that kernels tile by, so that tails are exercised.
DEFAULT_SIZE = 131


@dataclass(frozen=True)
class Inputs:
    """Arguments of one call.

    Attributes
    ----------
    values
        One per parameter that the caller passes.
    sizes
        The values of the symbolic sizes.
    """

    values: tuple[Argument, ...]
    sizes: dict[str, int]


def make_inputs(
    signature: Signature, given: Mapping[str, object], seed: int, held: Mapping[str, str] | None = None
) -> Inputs:
    """Make random arrays, with the given sizes and scalars.

    Parameters
    ----------
    signature
        Of the kernel.
    given
        Values of symbolic sizes and scalar parameters by name; sizes without one are ``DEFAULT_SIZE``.
    seed
        Of the random numbers.
    held
        What the words of parameters stand for, see ``held_codes``: their elements are legal.

    Raises
    ------
    UnknownArgument, MissingValue, BadValue, NoInputs
        S3xx.
    """
    scalars = tuple(signature.params[i].name for i in signature.inputs if signature.params[i].kind == "scalar")
    for name in given:
        if name not in signature.symbols and name not in scalars:
            refuse_argument(signature.name, name, (*signature.symbols, *scalars))
    sizes = {s: _size(s, given.get(s, DEFAULT_SIZE)) for s in signature.symbols}
    return Inputs(tuple(_value(signature, i, given, sizes, seed, held or {}) for i in signature.inputs), sizes)


def _size(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise BadValue(name=name, found=value, expected="a size, an integer of 0 or more", example=DEFAULT_SIZE)
    return value


def _value(
    signature: Signature,
    position: int,
    given: Mapping[str, object],
    sizes: Mapping[str, int],
    seed: int,
    held: Mapping[str, str],
) -> Argument:
    param = signature.params[position]
    if param.kind == "pointer":
        raise NoInputs(kernel=signature.name, name=param.name, reason="it is a pointer")
    if param.kind == "scalar":
        if param.name not in given:
            facts = {"what": f", a {param.dtype}", "usage": f"--arg {param.name}=VALUE"}
            raise MissingValue(kernel=signature.name, name=param.name, where=signature.where, **facts)
        return _scalar(param, given[param.name])
    shape = tuple(evaluate(d, sizes) for d in param.shape)
    if param.strides is not None:
        raise NoInputs(kernel=signature.name, name=param.name, reason="it is declared with strides")
    if any(extent is None or extent < 0 for extent in shape):
        raise NoInputs(kernel=signature.name, name=param.name, reason=f"its shape is {shape}")
    alone = Signature(signature.name, (replace(param, shape=tuple(e for e in shape if e is not None)),))
    return random_arguments(alone, seed + position, held)[0]


def _scalar(param: Param, value: object) -> float:
    kind = dtype(param.dtype)
    if kind.is_float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if kind.kind == "bool" and isinstance(value, bool):
        return value
    if kind.is_integer and isinstance(value, int) and not isinstance(value, bool):
        return value
    raise BadValue(name=param.name, found=value, expected=f"a {param.dtype}", example="1.5" if kind.is_float else "1")
