"""Comparing what a kernel wrote with what its reference meaning writes."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from tile_core.abi.adapter import HOST_DEVICE
from tile_core.abi.signature import Param, Signature, evaluate
from tile_core.compat.types import Argument, Array
from tile_core.dtypes import dtype
from tile_core.errors.launch import MissingArgument, UnsupportedArray, VerifyMismatch
from tile_core.records import dataclass
from tile_core.runtime.arrays import facts_of, numpy_alias

if TYPE_CHECKING:
    import numpy as np


_TOLERANCES = {
    "float64": (1e-9, 1e-9), "float32": (1e-4, 1e-5), "tfloat32": (1e-2, 1e-3), "float16": (1e-2, 1e-3),
    "bfloat16": (2e-2, 1e-2),
}  # fmt: skip
_NARROW_TOLERANCE = (0.13, 0.02)  # one unit in the last place of three mantissa bits


_NOTHING: Mapping[str, str] = MappingProxyType({})
#: How many times the change of a shaken sum another order of additions may make.
_ORDERS = 4.0


@dataclass(frozen=True)
class Compared:
    """One compared output.

    Attributes
    ----------
    name
        The parameter.
    elements
        How many were compared.
    worst_index
        Index of the largest difference; empty for no elements.
    worst_error
        ``|found - expected|`` there.
    rtol, atol
        An element passes when ``|found - expected| <= atol + rtol * |expected|``, when both are NaN, or when both are
        the same infinity.
    """

    name: str
    elements: int
    worst_index: tuple[int, ...]
    worst_error: float
    rtol: float
    atol: float


@dataclass(frozen=True)
class VerifyReport:
    """What ``Kernel.verify`` compared; every output passed.

    Attributes
    ----------
    kernel
        The kernel's name.
    outputs
        One entry per written parameter.
    """

    kernel: str
    outputs: tuple[Compared, ...]

    def __str__(self) -> str:
        lines = [f"{self.kernel}: equal to its reference"]
        for o in self.outputs:
            lines.append(
                f"  {o.name}: {o.elements} elements, largest error {o.worst_error:.3g} at {o.worst_index} "
                f"(rtol {o.rtol:g}, atol {o.atol:g})"
            )
        return "\n".join(lines)


def compare(
    kernel: str,
    param: Param,
    found: Array,
    expected: Array,
    rtol: float | None,
    atol: float | None,
    shaken: Sequence[Array] = (),
) -> Compared:
    """Compare two host arrays of one output.

    Parameters
    ----------
    kernel
        Name for messages.
    param
        The written parameter.
    found, expected
        NumPy arrays of storage elements (see ``Param.storage``).
    rtol, atol
        Tolerances; by default those of the element type, none for integers.
    shaken
        What is expected when sums are changed as another order of additions may change them: an element may be off by
        a few times as much.

    Raises
    ------
    VerifyMismatch
        Naming the worst element.
    """
    import numpy as np

    usual = _TOLERANCES.get(param.dtype, _NARROW_TOLERANCE) if dtype(param.dtype).is_float else (0.0, 0.0)
    usual = (0.0, 0.0) if param.packed else usual
    relative, absolute = usual[0] if rtol is None else rtol, usual[1] if atol is None else atol
    x, y = _values(found, param), _values(expected, param)
    if x.dtype.kind == "f":
        with np.errstate(invalid="ignore", over="ignore"):
            same = (x == y) | (np.isnan(x) & np.isnan(y))
            error = np.where(same, 0.0, np.abs(x - y))
            slack = np.max([_distance(_values(z, param), y) for z in shaken], axis=0) if shaken else 0.0
            good = same | (np.isfinite(y) & (error <= absolute + relative * np.abs(y) + _ORDERS * slack))
            error = np.where(np.isnan(error), np.inf, error)
    else:
        good, error = x == y, _integer_error(x, y)
    # A large error that passes (of a large element) must not hide a small one that does not.
    rank = error if good.all() else np.where(good, -1.0, error)
    worst = tuple(int(i) for i in np.unravel_index(int(np.argmax(rank)), x.shape)) if x.size else ()
    if not good.all():
        raise VerifyMismatch(
            kernel=kernel, name=param.name, wrong=int((~good).sum()), elements=x.size, index=worst,
            found=x[worst].item(), expected=y[worst].item(), rtol=relative, atol=absolute,
        )  # fmt: skip
    return Compared(param.name, x.size, worst, float(error[worst]) if x.size else 0.0, relative, absolute)


def host_copy(value: Array, param: Param) -> Array:
    """A NumPy copy of an array argument, with storage elements; scalars are returned as they are.

    Raises
    ------
    UnsupportedArray
        The library cannot bring its device memory to the host.
    """
    import numpy as np

    if param.kind != "tensor":
        return value
    facts = facts_of(value)
    if facts.device[0] != HOST_DEVICE:
        value = value.detach().cpu() if facts.library == "torch" else _to_host(value, param)
        facts = facts_of(value)
    alias = numpy_alias(facts, value, param.storage)
    if param.strides is None:
        return np.array(alias)
    # The kernel was compiled for these strides, so the copy must have them too.
    room = np.lib.stride_tricks.as_strided(np.empty(facts.span, param.storage), alias.shape, alias.strides)
    room[...] = alias
    return room


def poison(value: Array, param: Param) -> None:
    """Fill an output with bytes that no kernel leaves by accident: NaN in floats, -1 in integers, True in bools."""
    facts = facts_of(value)
    byte = 1 if dtype(param.dtype).kind == "bool" else 0xFF
    if not facts.size:
        return
    if facts.device[0] == HOST_DEVICE:
        numpy_alias(facts, value)[...] = int.from_bytes(bytes([byte]) * facts.itemsize, "little")
    elif facts.library == "torch" and facts.contiguous:
        value.detach().reshape(-1).view(sys.modules["torch"].uint8).fill_(byte)
    elif callable(fill := getattr(value, "fill_bytes", None)):  # of a runtime's own, see `RuntimeAdapter.from_host`
        fill(byte)


def random_arguments(signature: Signature, seed: int, held: Mapping[str, str] = _NOTHING) -> tuple[Array, ...]:
    """Random NumPy inputs for a kernel whose inputs are all arrays of constant shape.

    Parameters
    ----------
    signature
        Of the kernel.
    seed
        Of the random numbers.
    held
        What the words of parameters stand for, see ``held_codes``: their elements are legal.

    Raises
    ------
    MissingArgument
        An input has a symbolic shape or is not an array.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    values = []
    for count, position in enumerate(signature.inputs):
        param = signature.params[position]
        shape = [evaluate(d, {}) for d in param.shape]
        if param.kind != "tensor" or param.addresses or param.strides is not None or None in shape:
            raise MissingArgument(
                kernel=signature.name, name=param.name, found=count, expected=len(signature.inputs),
                usage=signature.usage.replace(signature.name, f"{signature.name}.verify"),
            )  # fmt: skip
        extents = [e for e in shape if e is not None]
        code = held.get(param.name)
        values.append(_random(rng, param, extents) if code is None else _codes(rng, param, extents, code))
    return tuple(values)


def _random(rng: np.random.Generator, param: Param, shape: Sequence[int]) -> Array:
    import numpy as np

    kind = dtype(param.dtype)
    if kind.is_packed:
        return rng.integers(0, 256, (*shape[:-1], -(-shape[-1] // 2)), dtype=np.uint8)
    if kind == "float8_e8m0fnu":
        return rng.integers(120, 135, shape, dtype=np.uint8).view(kind.numpy())
    if kind.is_float:
        return rng.standard_normal(shape).astype(kind.numpy())
    if kind.kind == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    return rng.integers(-8 if kind.kind == "int" else 0, 8, shape).astype(kind.numpy())


def _codes(rng: np.random.Generator, param: Param, shape: Sequence[int], held: str) -> Array:
    """Return words of metadata, or of codes of a narrow float."""
    import numpy as np

    from tile_core.ops.held_codes import LEGAL_NIBBLES

    word = dtype(param.dtype).numpy()
    size = math.prod(shape) * word.itemsize
    legal = LEGAL_NIBBLES.get(held)
    if legal is not None:  # in any layout, as all words are legal
        nibbles = rng.choice(np.array(legal, np.uint8), (size, 2))
        codes = nibbles[:, 0] | nibbles[:, 1] << 4
    else:
        kind = dtype(held)
        numbers = rng.integers(0, 256, size, dtype=np.uint8) if kind.is_packed else rng.standard_normal(size)
        codes = numbers if kind.is_packed else numbers.astype(kind.numpy()).view(np.uint8)
    return np.ascontiguousarray(codes).view(word).reshape(shape)


def _values(array: Array, param: Param) -> Array:
    """Elements as float64 or integers that subtract without loss."""
    import numpy as np

    kind = dtype(param.dtype)
    if kind.is_packed:
        return array.view(np.uint8)
    with np.errstate(invalid="ignore"):  # widening a signalling NaN warns
        return array.view(kind.numpy()).astype(np.float64) if kind.is_float else array


def _distance(x: Array, y: Array) -> Array:
    """How far elements are apart; 0 where one is not finite."""
    import numpy as np

    return np.nan_to_num(np.abs(x - y), nan=0.0, posinf=0.0)


def _integer_error(x: Array, y: Array) -> Array:
    import numpy as np

    return np.abs(x.astype(np.float64) - y.astype(np.float64)) + (x != y) * 1e-300


def _to_host(value: Argument, param: Param) -> Argument:
    import numpy as np

    get = getattr(value, "get", None)
    try:
        return get() if callable(get) else np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UnsupportedArray(kernel="verify", name=param.name, found=f"it cannot be read back: {error}") from error
