"""Gradients of an operator: one formula for torch's dispatcher and two functions of autograd.

An eager call that records goes to `recorded`, whose forward launches directly. Under transformations of
``torch.func`` a call goes to `transformed`, whose forward calls the operator, and which has a rule for ``vmap``. All
other calls go to torch's dispatcher, where the same formula is registered.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from tile_runtime.errors.operators import NoGradient

Backward = Callable[..., Any]
Setup = Callable[[Any, tuple[Any, ...], Any], None]
Rule = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class Formula:
    """The gradient of an operator.

    Attributes
    ----------
    backward
        ``backward(ctx, *gradients)`` returns a gradient or ``None`` for each argument.
    setup
        ``setup(ctx, inputs, output)`` keeps what that needs.
    """

    backward: Backward
    setup: Setup


def save_tensors(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """Keep all tensor arguments, as ``ctx.saved_tensors``."""
    ctx.save_for_backward(*(value for value in inputs if isinstance(value, torch.Tensor)))


def refusing(operator: str) -> Formula:
    """Return the formula of an operator without one, which refuses a backward pass."""

    def backward(ctx: Any, *gradients: Any) -> Any:
        raise NoGradient(operator=operator, instead="pass x.detach(), or call it under torch.no_grad()")

    return Formula(backward, lambda ctx, inputs, output: None)


def recorded(launch: Callable[..., Any], formula: Callable[[], Formula]) -> Callable[..., Any]:
    """Return the function for eager calls that record gradients.

    Parameters
    ----------
    launch
        Launches the kernels.
    formula
        Returns the gradient.
    """

    def forward(ctx: Any, *args: Any) -> Any:
        result = launch(*args)
        formula().setup(ctx, args, result)
        return result

    def backward(ctx: Any, *gradients: Any) -> Any:
        return formula().backward(ctx, *gradients)

    made: Any = type("Recorded", (torch.autograd.Function,), _static(forward, backward))
    return super(torch.autograd.Function, made).apply


def transformed(operator: Callable[..., Any], formula: Callable[[], Formula], rule: Rule) -> Callable[..., Any]:
    """Return the function for calls under transformations of ``torch.func``.

    Parameters
    ----------
    operator
        The operator.
    formula
        Returns the gradient.
    rule
        ``rule(apply, info, dims, *args)``: batched results and their batch axes.
    """

    def forward(*args: Any) -> Any:
        return operator(*args)

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        formula().setup(ctx, inputs, output)

    def backward(ctx: Any, *gradients: Any) -> Any:
        return formula().backward(ctx, *gradients)

    def vmap(info: Any, dims: tuple[int | None, ...], *args: Any) -> Any:
        return rule(made.apply, info, dims, *args)

    made: Any = type("Transformed", (torch.autograd.Function,), _static(forward, setup_context, backward, vmap))
    return made.apply


def _static(*functions: Callable[..., Any]) -> dict[str, Any]:
    return {function.__name__: staticmethod(function) for function in functions}
