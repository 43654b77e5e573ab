"""``op``: an operator of JAX from a program, with its gradient and its batches."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax

from tile_jax.launching import JaxKernel, Options
from tile_jax.primitive import tile_call
from tile_runtime.operators import ArrayOperator, split_name

if TYPE_CHECKING:
    from tile_core.ir.program import Program

_known: dict[str, JaxOperator] = {}
_numbers = itertools.count(2)


def op(
    name: str,
    program: Program,
    *,
    out: Sequence[str] | None = None,
    batch: str | None = None,
    options: Options | None = None,
) -> JaxOperator:
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
    JaxOperator
        Call it with arrays, also under ``jax.jit``, ``jax.vmap`` and ``jax.grad``.

    Raises
    ------
    BadOperatorName, BadResults, BadBatch, NoPointers
        The operator cannot be defined.
    """
    split_name("tile_jax.op", name)
    # XLA keeps a target for as long as the process lives: a second definition has another one.
    target = f"{name}#{next(_numbers)}" if name in _known else name
    made = JaxOperator(name, JaxKernel(target, program, out, options, batch))
    _known[name] = made
    return made


def known() -> dict[str, JaxOperator]:
    """Return the operators of this process by the names of their targets."""
    return {operator.kernel.name: operator for operator in _known.values()}


class JaxOperator(ArrayOperator):
    """An operator of JAX, made by `op`; call it with arrays.

    Attributes
    ----------
    name
        ``"namespace::name"``.
    kernel
        The program with its results.
    """

    def __init__(self, name: str, kernel: JaxKernel) -> None:
        super().__init__(name, kernel.signature)
        self.kernel = kernel

    def _scalars(self, values: Sequence[Any]) -> tuple[Any, ...]:
        return self.kernel.numbers(values)

    def __repr__(self) -> str:
        return f"<tile_jax.JaxOperator {self.name}: {self.kernel.signature}>"

    def _function(self, scalars: tuple[Any, ...]) -> Callable[..., Any]:
        return jax.jit(self._differentiable(scalars), inline=True)

    def _differentiable(self, scalars: tuple[Any, ...]) -> Callable[..., Any]:
        """Return the operator as a function of its arrays, with its gradient."""
        count = len(self.kernel.written) - self.signature.workspaces

        def plain(*arrays: Any) -> Any:
            found = tile_call.bind(*arrays, kernel=self.kernel, numbers=scalars)
            return found[0] if count == 1 else tuple(found[:count])

        plain.__name__ = re.sub(r"\W", "_", self.name)
        if self._formula is None:
            return plain
        backward, residuals = self._formula
        function = jax.custom_vjp(plain)

        def forward(*arrays: Any) -> Any:
            results = function(*arrays)
            return results, residuals(arrays, results)

        function.defvjp(forward, lambda kept, gradient: tuple(backward(kept, gradient, *scalars)))
        return function
