"""Operators of MLX made of programs, with gradients: ``from tile_metal import mlx``.

A kernel of ``tile.compile`` takes arrays of MLX as it is. An operator is a function of values, as MLX's own are: it
returns all that its program writes, has a gradient, and can be called in ``mx.compile``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import tile_core as tile
from tile_core.compiler import signature_of
from tile_core.runtime.settings import program_of
from tile_metal.errors import BadExamples, NotBatched
from tile_runtime.calls.arguments import arrange
from tile_runtime.calls.arrays import library_of
from tile_runtime.errors.operators import NoGradient
from tile_runtime.operators import ArrayOperator

if TYPE_CHECKING:
    from tile_core.ir.program import Program


def op(program: Program, *, target: str = "metal", options: object = None) -> MlxOperator:
    """Return a program as a function of arrays of MLX.

    Parameters
    ----------
    program
        The result of ``@T.prim_func``. Parameters that it only writes are results. Other parameters that it writes are
        arguments and results; the arrays that are passed for them do not change.
    target, options
        As for ``tile.compile``.

    Returns
    -------
    MlxOperator
        Call it with arrays, also under ``mx.compile`` and ``mx.grad``. ``mx.vmap`` has no rule for kernels, see
        `MlxOperator.vmap`.
    """
    return MlxOperator(program_of("tile_metal.mlx.op", program), target, options)


class MlxOperator(ArrayOperator):
    """An operator of MLX, made by `op`; call it with arrays.

    A call computes nothing before a result is needed. Within ``mx.vmap`` it raises `NotBatched`.

    Attributes
    ----------
    name
        The program's name.
    kernel
        The kernel that it launches.
    """

    def __init__(self, program: Program, target: str, options: object) -> None:
        plain = signature_of(program, ())
        own = plain.params[: len(plain.params) - plain.workspaces]
        only = [n for n, p in enumerate(own) if p.access == "write"]
        self.kernel = tile.compile(program, target, only, options)
        super().__init__(program.name, self.kernel.signature)
        self._written = [n for n, p in enumerate(own) if p.writes]

    def vmap(self, in_axes: int | Sequence[int | None] | None = 0) -> Callable[..., Any]:
        """Return a function that calls the operator once for each example, and stacks the results.

        Parameters
        ----------
        in_axes
            The axis of the examples in each array argument, ``None`` if it has none; one for all, or one for each.

        Raises
        ------
        BadExamples
            If ``in_axes`` or the arrays' numbers of examples do not match, or there are none.
        """

        def batched(*args: Any) -> Any:
            import mlx.core as mx

            values = arrange(self.signature, args, {})
            pairs = list(zip(values, self._axes(in_axes), strict=True))
            front = [(a if axis is None else mx.moveaxis(a, axis, 0), axis) for a, axis in pairs]
            counts = {a.shape[0] for a, axis in front if axis is not None}
            if len(counts) != 1 or 0 in counts:
                found = f"arrays with {' and '.join(map(str, sorted(counts)))} examples" if counts else "no examples"
                advice = "pass arrays with the same number of examples, at least one"
                raise BadExamples(operator=self.name, reason=f"it got {found}", advice=advice)
            made = [self(*(a if axis is None else a[n] for a, axis in front)) for n in range(*counts)]
            if not isinstance(made[0], tuple):
                return mx.stack(made)
            return tuple(mx.stack(list(rows)) for rows in zip(*made, strict=True))

        return batched

    def __repr__(self) -> str:
        return f"<tile_metal.mlx.MlxOperator {self.signature}>"

    def _called(self, values: Sequence[Any]) -> Any:
        libraries = {library_of(v) for v, is_tensor in zip(values, self._is_tensor, strict=True) if is_tensor}
        # The kernel refuses arrays of other libraries; a call without arrays has nothing to differentiate.
        return super()._called(values) if libraries == {"mlx"} else self.kernel(*values)

    def _axes(self, in_axes: int | Sequence[int | None] | None) -> list[int | None]:
        """Return the axis of the examples of each argument."""
        count = sum(self._is_tensor)
        axes = list(in_axes) if isinstance(in_axes, Sequence) else [in_axes] * count
        if len(axes) != count:
            advice = "give one axis for all arrays, or one for each"
            reason = f"in_axes has length {len(axes)}, for {count} arrays"
            raise BadExamples(operator=self.name, reason=reason, advice=advice)
        found = iter(axes)
        return [next(found) if is_tensor else None for is_tensor in self._is_tensor]

    def _function(self, scalars: tuple[Any, ...]) -> Callable[..., Any]:
        import mlx.core as mx

        guard = _guard(self.name)

        def forward(*arrays: Any) -> Any:
            return self._launched(guard(*arrays) if len(arrays) > 1 else (guard(*arrays),), scalars)

        def gradients(primals: Any, gradient: Any, results: Any) -> Any:
            if self._formula is None:
                raise NoGradient(operator=self.name, instead="pass mx.stop_gradient(x)")
            backward, residuals = self._formula
            arrays = primals if isinstance(primals, tuple) else (primals,)
            found = backward(residuals(arrays, results), gradient, *scalars)
            pairs = zip(found, arrays, strict=True)
            made = tuple(mx.zeros_like(array) if value is None else value for value, array in pairs)
            return made if isinstance(primals, tuple) else made[0]

        function: Callable[..., Any] = mx.custom_function(forward)
        function.vjp(gradients)  # type: ignore[attr-defined]
        return function

    def _launched(self, arrays: Sequence[Any], scalars: Sequence[Any]) -> Any:
        """Launch on values, and return all that is written."""
        import mlx.core as mx

        signature = self.signature
        given, rest = iter(arrays), iter(scalars)
        by_position: dict[int, Any] = {}
        for position, is_tensor in zip(signature.inputs, self._is_tensor, strict=True):
            value = next(given) if is_tensor else next(rest)
            # Another object of the same value: the kernel gives it new content.
            by_position[position] = mx.array(value) if position in self._written else value
        made = self.kernel(*by_position.values())
        results = made if isinstance(made, tuple) else (made,)
        by_position |= dict(zip(signature.results, results, strict=False))
        found = tuple(by_position[n] for n in self._written)
        return found[0] if len(found) == 1 else found


@functools.cache
def _guard(operator: str) -> Callable[..., Any]:
    """Return the identity of arrays, which refuses ``mx.vmap`` by the operator's name."""
    import mlx.core as mx

    def identity(*arrays: Any) -> Any:
        return arrays if len(arrays) > 1 else arrays[0]

    def refuse(arrays: Any, axes: Any) -> Any:
        raise NotBatched(operator=operator)

    guard: Callable[..., Any] = mx.custom_function(identity)
    guard.vmap(refuse)  # type: ignore[attr-defined]
    return guard
