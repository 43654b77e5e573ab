"""Operators of array libraries: names, signatures, batches, and calls that a library differentiates."""

from __future__ import annotations

import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import Any

from tile_runtime.abi.signature import Dim, Param, Signature, symbols_of
from tile_runtime.calls import checks
from tile_runtime.calls.arguments import arrange, check_signature
from tile_runtime.calls.arrays import ArrayFacts
from tile_runtime.calls.dlpack import contiguous_strides
from tile_runtime.dtypes import dtype
from tile_runtime.errors.operators import BadBatch, BadOperatorName, BadResults, LibraryNotFound, NoPointers

Backward = Callable[..., Sequence[Any]]
Residuals = Callable[[tuple[Any, ...], Any], Any]


def need_library(package: str, library: str, needed: tuple[int, int], more: str = "") -> None:
    """Import the library of a package's operators.

    Parameters
    ----------
    package, library
        Their names.
    needed
        The oldest version that serves.
    more
        Other requirements, for the remedy.

    Raises
    ------
    LibraryNotFound
        It is not installed, or is too old.
    """
    facts: dict[str, Any] = {"package": package, "library": library, "needed": ">={}.{}".format(*needed), "more": more}
    try:
        found = importlib.import_module(library).__version__
    except ImportError as error:
        raise LibraryNotFound(found=f"no {library}", **facts) from error
    if tuple(int(n) for n in found.split(".")[:2]) < needed:
        raise LibraryNotFound(found=found, **facts)


def split_name(function: str, name: str) -> tuple[str, str]:
    """Return namespace and name of an operator.

    Parameters
    ----------
    function
        The function that defines it, for the remedy.
    name
        ``"namespace::name"``.

    Raises
    ------
    BadOperatorName
        It is of another form.
    """
    parts = name.split("::") if isinstance(name, str) else []
    if len(parts) != 2:
        raise bad_name(function, name, "it is not of the form 'namespace::name'")
    if not all(re.fullmatch(r"[A-Za-z_]\w*", part) for part in parts):
        raise bad_name(function, name, "both parts must be identifiers without a dot")
    return parts[0], parts[1]


def bad_name(function: str, name: str, reason: str) -> BadOperatorName:
    """Return the refusal of an operator's name, with a similar one."""
    near = re.sub(r"\W", "_", name.rpartition("::")[2]) if isinstance(name, str) else ""
    return BadOperatorName(function=function, name=name, reason=reason, near=near if near.isidentifier() else "f")


def operator_signature(
    operator: str, signature_of: Callable[[Sequence[int]], Signature], out: Sequence[str] | None
) -> Signature:
    """Return the signature of a program whose parameters ``out`` are results.

    Parameters
    ----------
    operator
        Its name, for messages.
    signature_of
        Returns the program's signature with results at some positions.
    out
        Names of the results; by default all parameters that the program only writes.

    Raises
    ------
    NoPointers, BadResults, UnsolvableSymbol
        A parameter is a pointer, or a call cannot allocate the results.
    """
    plain = signature_of(())
    own, where = plain.params[: len(plain.params) - plain.workspaces], plain.where
    names = [p.name for p in own]
    pointer = next((p.name for p in own if p.kind == "pointer" or p.addresses), None)
    if pointer is not None:
        raise NoPointers(operator=operator, name=pointer, where=where)
    chosen = [p.name for p in own if p.access == "write"] if out is None else list(out)
    if unknown := [name for name in chosen if name not in names]:
        raise BadResults(
            operator=operator, found=", ".join(unknown), what="results", reason="it has no such parameters",
            advice=f"name parameters of the program: {', '.join(names)}", where=where,
        )  # fmt: skip
    found = signature_of([names.index(name) for name in chosen])
    strided = next((found.params[i].name for i in found.results if found.params[i].strides is not None), None)
    if strided is not None:
        raise BadResults(
            operator=operator, found=strided, what="a result", reason="it has strides, and results are contiguous",
            advice=f"declare {strided} as T.Tensor, or leave it out of out= and pass an array", where=where,
        )  # fmt: skip
    check_signature(found)
    return found


def leading_params(operator: str, signature: Signature, results: Collection[int], symbol: str) -> frozenset[int]:
    """Return the positions of the parameters that begin with a symbol.

    A batch can be folded into this extent.

    Parameters
    ----------
    operator
        Its name, for messages.
    signature, results
        The parameters, and the positions of its results.
    symbol
        The symbol.

    Raises
    ------
    BadBatch
        It is not the first extent of all arrays that have it and of all results.
    """

    def refused(reason: str, advice: str) -> BadBatch:
        return BadBatch(operator=operator, found=symbol, reason=reason, advice=advice, where=signature.where)

    if symbol not in signature.symbols:
        raise refused("is not a symbol of the program", f"its symbols are: {', '.join(signature.symbols) or 'none'}")
    found = set()
    for position, param in enumerate(signature.params):
        leads = bool(param.shape) and param.shape[0] == symbol
        elsewhere: tuple[Dim, ...] = (*param.shape[leads:], *(param.strides or ()))
        if not leads and position in results:
            raise refused(f"is not the first extent of result {param.name}", "leave out batch=: vmap then loops")
        if any(symbol in symbols_of(dim) for dim in elsewhere):
            raise refused(f"is not only the first extent of {param.name}", "leave out batch=: vmap then loops")
        if leads:
            found.add(position)
    return frozenset(found)


def facts_of_abstract(
    library: str, signature: Signature, param: Param, name: str, shape: tuple[Any, ...],
    strides: tuple[Any, ...] | None = None,
) -> ArrayFacts:  # fmt: skip
    """Check element type and rank of an array without memory, and return its facts.

    Parameters
    ----------
    library
        Whose types of memory it has: ``"numpy"`` or ``"torch"``.
    signature, param
        The parameters, and the one that the array is for.
    name
        The name of the array's element type.
    shape, strides
        Its extents and strides in elements, which may be symbolic; contiguous by default.
    """
    facts = ArrayFacts(
        library=library, dtype=name, itemsize=max(dtype(param.dtype).bits // 8, 1), shape=shape,
        strides=contiguous_strides(shape) if strides is None else strides, device=(1, 0), pointer=0, writable=True,
    )  # fmt: skip
    checks.check_kind(signature, param, facts)
    return facts


def stored_shape(param: Param, extents: Sequence[Any]) -> tuple[Any, ...]:
    """Return the extents of a result's array, which has two packed elements in a byte."""
    return (*extents[:-1], -(-extents[-1] // 2)) if param.packed else tuple(extents)


def stored_type(param: Param) -> str:
    """Return the name of the element type of the array of a result."""
    return "uint8" if param.packed else dtype(param.dtype).container


class ArrayOperator(ABC):
    """An operator of immutable arrays.

    Its results are new arrays, and its scalars are constants of functions of arrays.

    Attributes
    ----------
    name
        Its name, for messages.
    signature
        The parameters; ``inputs`` are those that a call takes.
    """

    def __init__(self, name: str, signature: Signature) -> None:
        self.name, self.signature = name, signature
        self._is_tensor = [signature.params[i].kind == "tensor" for i in signature.inputs]
        self._formula: tuple[Backward, Residuals] | None = None
        self._functions: dict[tuple[str, ...], Callable[..., Any]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the operator.

        Returns
        -------
        Any
            The parameters that the program writes: one array, or a tuple in the order of parameters.

        Raises
        ------
        LaunchError
            K4xx: an argument is refused.
        """
        return self._called(arrange(self.signature, args, kwargs))

    def register_backward(self, backward: Backward, *, residuals: Residuals | None = None) -> None:
        """Set the gradient.

        Parameters
        ----------
        backward
            ``backward(residuals, gradient, *scalars)`` returns a tuple of a gradient or ``None`` for each array
            argument. ``gradient`` has the structure of the results; ``scalars`` are the other arguments.
        residuals
            ``residuals(arguments, results)`` returns what is kept; by default the arrays of the call, as a tuple.
        """
        self._formula = backward, residuals or (lambda arguments, results: arguments)
        self._functions = {}

    def _called(self, values: Sequence[Any]) -> Any:
        """Call the operator with the arguments in the order of its parameters."""
        arrays = [value for value, is_tensor in zip(values, self._is_tensor, strict=True) if is_tensor]
        scalars = self._scalars(values)
        key = tuple(map(repr, scalars))  # 1, 1.0 and True are equal, and 0.0 and -0.0
        function = self._functions.get(key)
        if function is None:
            function = self._functions[key] = self._function(scalars)
        return function(*arrays)

    def _scalars(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return the scalars among the arguments of a call."""
        return tuple(value for value, is_tensor in zip(values, self._is_tensor, strict=True) if not is_tensor)

    @abstractmethod
    def _function(self, scalars: tuple[Any, ...]) -> Callable[..., Any]:
        """Return the operator as a function of its arrays, which the library can differentiate."""
