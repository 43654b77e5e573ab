"""K66x, U66x: refused operators of torch, and refused calls of them; others are in `tile_runtime.errors.operators`."""

from __future__ import annotations

from tile_core.errors import KernelError, UnsupportedError


class NoSchema(KernelError):
    """A program or function that has no schema."""

    code = "K662"
    template = "{operator}: {function} has no schema: {reason}"
    remedy = "annotate parameters and results with torch.Tensor, int, float or bool, as in f(x: Tensor) -> Tensor"


class NoFake(KernelError):
    """A function whose results' shapes cannot be found without running it."""

    code = "K665"
    template = "{operator}: result shapes are unknown, since {function} does not run on fake tensors: {reason}"
    remedy = "launch kernels made by tile_torch.kernel(program), or pass fake=, a function that returns empty results"


class BadLayer(KernelError):
    """An argument or a state that a layer cannot use."""

    code = "K667"
    template = "{layer}: {name} is {found}, expected {expected}"
    remedy = "{advice}"


class LostInPlace(KernelError):
    """A tensor that an operator writes in place and whose gradient would be lost."""

    code = "K668"
    template = "{operator} writes argument {name!r} in place, and gradients are recorded for {graded!r}"
    remedy = "return the result instead of writing it, or call the operator under torch.no_grad()"


class TransformRefused(UnsupportedError):
    """A transformation of torch that an operator does not support."""

    code = "U661"
    template = "{operator}: {transform} is not supported: {reason}"
    remedy = "{advice}"


class ShardedArgument(UnsupportedError):
    """A distributed tensor, of which each process has a part."""

    code = "U662"
    template = "{operator}: argument {number} is a DTensor, and the operator has no sharding rule"
    remedy = "pass its local part, x.to_local(), and wrap the result with DTensor.from_local(y, mesh, placements)"
