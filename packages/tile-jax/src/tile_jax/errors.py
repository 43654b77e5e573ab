"""K67x, U67x: refused operators of JAX, and refused calls of them; others are in `tile_runtime.errors.operators`."""

from __future__ import annotations

from tile_core.errors import KernelError, UnsupportedError


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
