"""``op``: an operator of JAX from a program, with its gradient and its batches."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax

from tile_jax.errors import BadOperatorName
from tile_jax.launching import JaxKernel, Options
from tile_jax.primitive import tile_call
from tile_runtime.calls.arguments import arrange

if TYPE_CHECKING:
    from tile_core.ir.program import Program

Backward = Callable[..., Sequence[Any]]
Residuals = Callable[[tuple[Any, ...], Any], Any]

_known: dict[str, Operator] = {}
_numbers = itertools.count(2)


def op(
    name: str,
    program: Program,
    *,
    out: Sequence[str] | None = None,
    batch: str | None = None,
    options: Options | None = None,
) -> Operator:
    """Return a program as a function of JAX arrays.

    Parameters
    ----------
    name
        ``"namespace::name"``, under which compiled and exported functions call it. A second definition replaces the
        first in functions that are traced from then on.
    program
        The result of ``@T.prim_func``.
    out
        Names of the parameters that are results only; by default all that the program only writes. Other parameters
        that it writes are arguments and results.
    batch
        The symbol of its rows, if each row of a result depends on the same row of its arrays only. ``jax.vmap`` then
        folds a batch into the rows; otherwise it calls once for each example.
    options
        Options of targets by their kind, as ``{"cuda": {"numerics": "fast"}}``.

    Returns
    -------
    Operator
        Call it with arrays, also under ``jax.jit``, ``jax.vmap`` and ``jax.grad``.

    Raises
    ------
    BadOperatorName, BadResults, BadBatch, NoPointers
        The operator cannot be defined.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*::[A-Za-z_]\w*", name):
        raise BadOperatorName(name=name)
    # XLA keeps a target for as long as the process lives: a second definition has another one.
    target = f"{name}#{next(_numbers)}" if name in _known else name
    made = Operator(name, JaxKernel(target, program, out, options, batch))
    _known[name] = made
    return made


def known() -> dict[str, Operator]:
    """Return the operators of this process by the names of their targets."""
    return {operator.kernel.name: operator for operator in _known.values()}


class Operator:
    """An operator of JAX, made by `op`; call it with arrays.

    Attributes
    ----------
    name
        ``"namespace::name"``.
    kernel
        The program with its results.
    """

    def __init__(self, name: str, kernel: JaxKernel) -> None:
        self.name, self.kernel = name, kernel
        self._formula: tuple[Backward, Residuals] | None = None
        self._functions: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self._is_tensor = [kernel.signature.params[i].kind == "tensor" for i in kernel.signature.inputs]

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
        values = arrange(self.kernel.signature, args, kwargs)
        numbers = self.kernel.numbers(values)
        key = tuple(map(repr, numbers))  # 1, 1.0 and True are equal, and 0.0 and -0.0
        function = self._functions.get(key)
        if function is None:
            function = self._functions[key] = jax.jit(self._function(numbers), inline=True)
        return function(*[value for value, is_tensor in zip(values, self._is_tensor, strict=True) if is_tensor])

    def register_backward(self, backward: Backward, *, residuals: Residuals | None = None) -> None:
        """Set the gradient.

        Parameters
        ----------
        backward
            ``backward(residuals, gradient, *numbers)`` returns a tuple of a gradient or ``None`` for each array
            argument. ``gradient`` has the structure of the results; ``numbers`` are the arguments that are numbers.
        residuals
            ``residuals(arguments, results)`` returns what is kept; by default the arrays of the call, as a tuple.
        """
        self._formula = backward, residuals or (lambda arguments, results: arguments)
        self._functions = {}

    def __repr__(self) -> str:
        return f"<tile_jax.Operator {self.name}: {self.kernel.signature}>"

    def _function(self, numbers: tuple[Any, ...]) -> Callable[..., Any]:
        """Return the operator as a function of its arrays, which JAX can differentiate."""
        count = len(self.kernel.written) - self.kernel.signature.workspaces

        def plain(*arrays: Any) -> Any:
            found = tile_call.bind(*arrays, kernel=self.kernel, numbers=numbers)
            return found[0] if count == 1 else tuple(found[:count])

        plain.__name__ = re.sub(r"\W", "_", self.name)
        if self._formula is None:
            return plain
        backward, residuals = self._formula
        function = jax.custom_vjp(plain)

        def forward(*arrays: Any) -> Any:
            results = function(*arrays)
            return results, residuals(arrays, results)

        function.defvjp(forward, lambda kept, gradient: tuple(backward(kept, gradient, *numbers)))
        return function
