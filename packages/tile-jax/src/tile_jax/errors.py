"""K67x, U67x, S67x: refused operators of JAX, and refused calls of them."""

from __future__ import annotations

from tile_core.errors import KernelError, SetupError, UnsupportedError


class BadOperatorName(KernelError):
    """A name that cannot be that of an operator."""

    code = "K671"
    template = "{name!r} cannot be the name of an operator: it is not of the form 'namespace::name'"
    remedy = "tile_jax.op('my_kernels::f', program)"


class BadResults(KernelError):
    """Parameters that cannot be results of an operator."""

    code = "K672"
    template = "{operator}: {found} cannot be {what}: {reason}"
    remedy = "{advice}"


class NoGradient(KernelError):
    """A gradient of an operator without a formula."""

    code = "K673"
    template = "{operator} has no gradient formula"
    remedy = "give it one with register_backward(function), or pass jax.lax.stop_gradient(x)"


class BadBatch(KernelError):
    """A symbol along which an operator cannot be batched."""

    code = "K674"
    template = "{operator}: batch={found!r} {reason}"
    remedy = "{advice}"


class TracedNumber(KernelError):
    """An array where an operator takes a Python number."""

    code = "K675"
    template = "{operator}: argument {name!r} is an array of JAX, and numbers are constants of compiled code"
    remedy = "pass a Python number (static_argnums of jax.jit), or declare {name} as T.Tensor((1,), {dtype!r})"


class NotDefined(KernelError):
    """An exported function that calls an operator which this process does not define."""

    code = "K676"
    template = "the exported function calls {found}, which this process has not defined"
    remedy = "call tile_jax.op({first!r}, program) before tile_jax.deserialize"


class NoPointers(UnsupportedError):
    """A parameter of a kind that JAX lacks."""

    code = "U671"
    template = "{operator}: parameter {name!r} is a pointer, which an operator cannot take"
    remedy = "declare {name} as T.Tensor(shape, dtype)"


class NoTargetOf(UnsupportedError):
    """A platform of JAX for which no target is known."""

    code = "U672"
    template = "{operator}: platform {found!r} has no target"
    remedy = "run it on one of {known}, as in jax.jit(f, device=jax.devices('cpu')[0])"


class Undecided(UnsupportedError):
    """Symbolic extents that do not show whether a call is legal."""

    code = "U673"
    template = "{operator}: symbolic extents {found} do not decide a check: {reason}"
    remedy = (
        "export with constant extents, or pass constraints: jax.export.symbolic_shape('m', constraints=['m <= 65536'])"
    )


class WideElements(UnsupportedError):
    """A result of a type that JAX disables by default."""

    code = "U674"
    template = "{operator}: result {name!r} has elements of {dtype}, which JAX has disabled"
    remedy = "jax.config.update('jax_enable_x64', True)"


class JaxNotFound(SetupError, ImportError):
    """The package jax is not installed, or is too old."""

    code = "S671"
    template = "tile_jax needs jax {needed}, found {found}"
    remedy = "pip install 'jax{needed}' jax-tvm-ffi"
