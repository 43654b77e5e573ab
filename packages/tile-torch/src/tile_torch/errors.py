"""K66x, U66x, S66x: refused operators of torch, and refused calls of them."""

from __future__ import annotations

from tile_core.errors import KernelError, SetupError, UnsupportedError


class BadOperatorName(KernelError):
    """A name that torch cannot register."""

    code = "K661"
    template = "{name!r} cannot be the name of an operator: {reason}"
    remedy = "tile_torch.op('my_kernels::{near}', program)"


class NoSchema(KernelError):
    """A program or function that has no schema."""

    code = "K662"
    template = "{operator}: {function} has no schema: {reason}"
    remedy = "annotate parameters and results with torch.Tensor, int, float or bool, as in f(x: Tensor) -> Tensor"


class BadResults(KernelError):
    """Parameters that cannot be results or outputs of an operator."""

    code = "K663"
    template = "{operator}: {found} cannot be {what}: {reason}"
    remedy = "{advice}"


class NoGradient(KernelError):
    """A backward pass through an operator without a gradient formula."""

    code = "K664"
    template = "{operator} has no gradient formula"
    remedy = "give it one with register_backward(function), pass x.detach(), or call it under torch.no_grad()"


class NoFake(KernelError):
    """A function whose results' shapes cannot be found without running it."""

    code = "K665"
    template = "{operator}: result shapes are unknown, since {function} does not run on fake tensors: {reason}"
    remedy = "launch kernels made by tile_torch.kernel(program), or pass fake=, a function that returns empty results"


class BadBatch(KernelError):
    """A symbol along which an operator cannot be batched."""

    code = "K666"
    template = "{operator}: batch={found!r} {reason}"
    remedy = "{advice}"


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


class NoTargetOf(UnsupportedError):
    """A device of torch for which no target is known."""

    code = "U663"
    template = "{operator}: tensors of device {found!r} have no target"
    remedy = "move them to one of {known}"


class NotInSchema(UnsupportedError):
    """A parameter of a kind that torch's schemas lack."""

    code = "U664"
    template = "{operator}: parameter {name!r} is a {kind}, which an operator cannot take"
    remedy = "{advice}"


class TorchNotFound(SetupError, ImportError):
    """The package torch is not installed, or is too old."""

    code = "S661"
    template = "tile_torch needs torch {needed}, found {found}"
    remedy = "pip install 'torch{needed}'"
