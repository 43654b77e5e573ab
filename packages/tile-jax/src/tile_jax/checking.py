"""Check the arguments of a call, and find the shapes of its results."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax

from tile_core.abi.signature import Param, Signature, evaluate
from tile_core.dtypes import dtype
from tile_core.errors.launch import StrideMismatch
from tile_core.records import dataclass
from tile_jax.errors import Undecided, WideElements
from tile_runtime.calls import checks
from tile_runtime.calls.arguments import only_catalogue
from tile_runtime.calls.arrays import ArrayFacts
from tile_runtime.calls.wide import has_many_elements
from tile_runtime.operators import facts_of_abstract, stored_shape, stored_type

if TYPE_CHECKING:
    from tile_runtime.calls.wide import WideVersion

Number = Any  # int, float or bool
Abstract = tuple[tuple[Any, ...], str]
"""Shape and name of the element type of an array; extents may be symbolic."""


@dataclass(frozen=True)
class Checked:
    """A call that passed the checks.

    Attributes
    ----------
    results
        The arrays that it writes, workspaces included, in the order of parameters.
    symbols
        The values of all symbols.
    wide
        Whether offsets in its arrays need 64 bits.
    """

    results: tuple[Abstract, ...]
    symbols: Mapping[str, int]
    wide: bool


def check(
    operator: str, signature: Signature, reach: WideVersion | None, arrays: tuple[Abstract, ...],
    numbers: tuple[Number, ...],
) -> Checked:  # fmt: skip
    """Return the results of a call.

    Parameters
    ----------
    operator
        Its name, for messages.
    signature
        The parameters; ``inputs`` are those that a call takes.
    reach
        The version of the kernel for large arrays, if it has one.
    arrays, numbers
        The arguments that are arrays, and the others, each in order.

    Raises
    ------
    LaunchError
        K4xx: element types, ranks or extents do not fit.
    Undecided, WideElements
        Symbolic extents, or a disabled type.
    """
    kinds = [(i, signature.params[i].kind) for i in signature.inputs]
    facts = {
        i: facts_of_abstract("numpy", signature, signature.params[i], name, shape)
        for i, (shape, name) in zip((i for i, kind in kinds if kind == "tensor"), arrays, strict=True)
    }
    scalars = dict(zip((i for i, kind in kinds if kind == "scalar"), numbers, strict=True))
    symbolic = [d for shape, _ in arrays for d in shape if jax.export.is_symbolic_dim(d)]
    with only_catalogue("the checks of a call", signature.where), _decided(operator, symbolic):
        symbols = (_symbolic if symbolic else checks.solve_symbols)(signature, facts, scalars)
        _check_strides(signature, facts, symbols)
        written = [p for p in signature.params if p.writes]
        results = tuple(_result(operator, signature, p, symbols, bool(symbolic)) for p in written)
    wide = not symbolic and reach is not None and has_many_elements(signature, facts, symbols)
    if wide and reach is not None:
        reach.check(symbols)
    return Checked(results, symbols, wide)


def _symbolic(signature: Signature, facts: Mapping[int, ArrayFacts], scalars: Mapping[int, float]) -> dict[str, int]:
    """Solve all symbols of a call with symbolic extents.

    Compiled code checks the sizes of arrays.
    """
    symbols = checks.solve_extents(signature, facts, scalars).values
    for i in facts:
        checks.check_narrow(signature, signature.params[i], symbols)
    return symbols


def _check_strides(signature: Signature, facts: Mapping[int, ArrayFacts], symbols: Mapping[str, int]) -> None:
    """Refuse declared strides other than those of contiguous memory."""
    for i, array in facts.items():
        param = signature.params[i]
        expected = None if param.strides is None else tuple(evaluate(s, symbols) for s in param.strides)
        if expected is not None and expected != array.strides:
            raise StrideMismatch(
                kernel=signature.name, name=param.name, expected=expected, found=array.strides, shape=array.shape,
                advice="declare strides by symbols, or the parameter as T.Tensor: arrays of JAX are contiguous",
            )  # fmt: skip


def _result(operator: str, signature: Signature, param: Param, symbols: Mapping[str, int], symbolic: bool) -> Abstract:
    """Return shape and element type of an array that a call writes."""
    extents: Sequence[Any] = [evaluate(d, symbols) for d in param.shape]
    if not symbolic:
        extents = checks.output_shape(signature, param, symbols)
    name = dtype(stored_type(param)).numpy()
    if name != jax.dtypes.canonicalize_dtype(name):
        raise WideElements(operator=operator, name=param.name, dtype=name)
    return stored_shape(param, extents), name.name


@contextlib.contextmanager
def _decided(operator: str, symbolic: Sequence[Any]) -> Iterator[None]:
    """Convert undecided comparisons of symbolic extents to an error of the catalogue."""
    try:
        yield
    except jax.errors.InconclusiveDimensionOperation as error:
        found = ", ".join(dict.fromkeys(map(str, symbolic)))
        raise Undecided(operator=operator, found=found, reason=str(error).splitlines()[0]) from error
