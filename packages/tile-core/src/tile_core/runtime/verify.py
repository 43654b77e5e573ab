"""Comparing what a kernel wrote with what its reference meaning writes."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tile_core.abi.adapter import HOST_DEVICE
from tile_core.abi.signature import Param, Signature, evaluate
from tile_core.compat.types import Argument, Array
from tile_core.dtypes import dtype
from tile_core.errors.launch import MissingArgument, UnsupportedArray, VerifyMismatch
from tile_core.records import dataclass
from tile_runtime import markup
from tile_runtime.calls.arrays import facts_of, numpy_alias

if TYPE_CHECKING:
    import numpy as np


_NOTHING: Mapping[str, str] = MappingProxyType({})
#: By how much of their range an element may lie outside of the values that other roundings give.
_BEYOND = 0.5
#: Times that range from which on an error is not rounding.
_HOPELESS = 32.0


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
    unwritten, first_unwritten
        How many elements the kernel never writes, and the index of the first one.
    nonfinite, first_nonfinite
        How many elements are NaN or infinite although all inputs are finite, and the index of the first one.
    """

    name: str
    elements: int
    worst_index: tuple[int, ...]
    worst_error: float
    rtol: float
    atol: float
    unwritten: int = 0
    first_unwritten: tuple[int, ...] | None = None
    nonfinite: int = 0
    first_nonfinite: tuple[int, ...] | None = None

    @property
    def findings(self) -> tuple[str, ...]:
        """Defects of the elements apart from their error."""
        found = []
        if self.unwritten:
            found.append(
                f"output {self.name!r}: {self.unwritten} of {self.elements} elements are never written, the first at "
                f"{self.first_unwritten}"
            )
        if self.nonfinite:
            found.append(
                f"output {self.name!r}: {self.nonfinite} of {self.elements} elements are NaN or infinite though all "
                f"inputs are finite, the first at {self.first_nonfinite}"
            )
        return tuple(found)


@dataclass(frozen=True)
class VerifyReport:
    """The results of ``Kernel.verify``; every output passed.

    Attributes
    ----------
    kernel
        The kernel's name.
    outputs
        One entry per written parameter.
    reference
        What they were compared with.
    """

    kernel: str
    outputs: tuple[Compared, ...]
    reference: str = "its reference"

    @property
    def findings(self) -> tuple[str, ...]:
        """Elements that are never written, and unexplained NaN and infinities: empty unless they were allowed."""
        return tuple(text for output in self.outputs for text in output.findings)

    def _repr_html_(self) -> str:
        columns = ("output", "elements", "largest error", "at", "rtol", "atol")
        rows = [
            (o.name, f"{o.elements:,}", f"{o.worst_error:.3g}", str(o.worst_index), f"{o.rtol:g}", f"{o.atol:g}")
            for o in self.outputs
        ]
        allowed = [markup.paragraph(f"allowed: {text}", "warning") for text in self.findings]
        head = markup.paragraph(f"{self.kernel}: equal to {self.reference}", "good")
        return markup.page(head, markup.table(columns, rows, ("elements", "largest error", "rtol", "atol")), *allowed)

    def __str__(self) -> str:
        lines = [f"{self.kernel}: equal to {self.reference}"]
        for o in self.outputs:
            lines.append(
                f"  {o.name}: {o.elements} elements, largest error {o.worst_error:.3g} at {o.worst_index} "
                f"(rtol {o.rtol:g}, atol {o.atol:g})"
            )
        return "\n".join([*lines, *(f"  allowed: {text}" for text in self.findings)])


class RoundingSpread:
    """The values of an output when results are perturbed as a target may round them.

    Attributes
    ----------
    low, high
        The least and the largest value of each element.
    """

    def __init__(self, expected: Array) -> None:
        self.low: Array = expected
        self.high: Array = expected
        self._all: list[Array] = []

    def add(self, values: Array) -> None:
        """Another execution gave these."""
        import numpy as np

        if values.dtype.kind != "f":
            self.low, self.high = np.minimum(self.low, values), np.maximum(self.high, values)
            return
        self.low, self.high = np.fmin(self.low, values), np.fmax(self.high, values)
        self._all.append(values)

    def has(self, x: Array, beyond: float = _BEYOND) -> Array:
        """Return which elements lie between the values, or beside them.

        ``beyond`` is the part of their range by which floats may lie outside.
        """
        import numpy as np

        if x.dtype.kind != "f":
            return (x >= self.low) & (x <= self.high)
        with np.errstate(invalid="ignore", over="ignore"):
            more = np.nan_to_num((self.high - self.low) * beyond, nan=0.0, posinf=0.0)
            inside = (x >= self.low - more) & (x <= self.high + more)
        for z in self._all:
            inside |= (x == z) | (np.isnan(x) & np.isnan(z))
        return inside

    def explains(self, error: Array) -> bool:
        """Return whether errors of some elements may be of the size of the spread."""
        import numpy as np

        with np.errstate(invalid="ignore", over="ignore"):
            width = np.abs(self.high.astype(np.float64) - self.low.astype(np.float64))
        return bool((error <= _HOPELESS * width).all())


class Comparison:
    """An output of a kernel beside what is expected.

    Parameters
    ----------
    kernel
        Name for messages.
    param
        The written parameter.
    found, expected
        Elements as float64, integers or bools (see ``values_of``).
    tolerance
        Relative and absolute.
    skipped
        Elements that are not compared, as bools.
    """

    def __init__(
        self, kernel: str, param: Param, found: Array, expected: Array, tolerance: tuple[float, float],
        skipped: Array | None = None,
    ) -> None:  # fmt: skip
        self.kernel, self.param, self.found, self.expected = kernel, param, found, expected
        self.tolerance, self.skipped = tolerance, skipped

    def judge(self, spread: RoundingSpread | None = None) -> tuple[Array, Array]:
        """Return which elements are good, and how far each is off."""
        import numpy as np

        x, y = self.found, self.expected
        relative, absolute = self.tolerance
        if x.dtype.kind == "f":
            with np.errstate(invalid="ignore", over="ignore"):
                same = (x == y) | (np.isnan(x) & np.isnan(y))
                error = np.where(same, 0.0, np.abs(x - y))
                good = same | (np.isfinite(y) & (error <= absolute + relative * np.abs(y)))
                error = np.where(np.isnan(error), np.inf, error)
        else:
            error = _integer_error(x, y)
            good = (x == y) | (error <= absolute + relative * np.abs(y.astype(np.float64)))
        if spread is not None:
            good = good | spread.has(x)
        if self.skipped is not None:
            good, error = good | self.skipped, np.where(self.skipped, 0.0, error)
        return good, error

    def result(self, spread: RoundingSpread | None = None, advice: str | None = None) -> Compared:
        """Return the comparison.

        Raises
        ------
        VerifyMismatch
            Naming the worst element.
        """
        import numpy as np

        x, y = self.found, self.expected
        good, error = self.judge(spread)
        # A large error that passes (of a large element) must not hide a small one that does not.
        rank = error if good.all() else np.where(good, -1.0, error)
        worst = tuple(int(i) for i in np.unravel_index(int(np.argmax(rank)), x.shape)) if x.size else ()
        if not good.all():
            facts: dict[str, Any] = {} if advice is None else {"advice": advice}
            first = tuple(int(i) for i in np.unravel_index(int(np.argmin(good)), x.shape))
            raise VerifyMismatch(
                kernel=self.kernel, name=self.param.name, wrong=int((~good).sum()), elements=x.size, index=worst,
                found=x[worst].item(), expected=y[worst].item(), rtol=self.tolerance[0], atol=self.tolerance[1],
                first=first, **facts,
            )  # fmt: skip
        return Compared(self.param.name, x.size, worst, float(error[worst]) if x.size else 0.0, *self.tolerance)


def tolerance_for(param: Param, rtol: float | None, atol: float | None) -> tuple[float, float]:
    """Return tolerances; by default those of the element type, none for integers."""
    kind = dtype(param.dtype)
    usual = kind.row.tolerance if kind.is_float and not param.packed else (0.0, 0.0)
    return usual[0] if rtol is None else rtol, usual[1] if atol is None else atol


def values_of(array: Array, param: Param) -> Array:
    """Return elements as float64 or integers that subtract without loss."""
    import numpy as np

    kind = dtype(param.dtype)
    if kind.is_packed:
        return array.view(np.uint8)
    with np.errstate(invalid="ignore"):  # widening a signalling NaN warns
        return array.view(kind.numpy()).astype(np.float64) if kind.is_float else array


def host_copy(value: Array, param: Param) -> Array:
    """Return a NumPy copy of an array argument, with storage elements; scalars unchanged.

    Raises
    ------
    UnsupportedArray
        The library cannot copy its device memory to the host.
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
    strided = np.lib.stride_tricks.as_strided(np.empty(facts.span, param.storage), alias.shape, alias.strides)
    strided[...] = alias
    return strided


def poison(value: Array, param: Param) -> None:
    """Fill an output with unlikely bytes: NaN in floats, -1 in integers, True in bools."""
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
    if not kind.has_zero:
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
