"""Debugging a running kernel: ``T.print`` and ``T.device_assert``; and ``T.assume``."""

from __future__ import annotations

import builtins

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr
from tile_core.dtypes import DTYPES
from tile_core.errors.language import BadArgument
from tile_core.ir import nodes
from tile_core.trace.conditions import as_condition
from tile_core.values.builder import Builder, current
from tile_core.values.checks import truth
from tile_core.values.value import Buffer, Region, Scalar, Value, as_value, cast


def print(*items: object, msg: str = "", sep: str = " ", end: str = "\n") -> None:
    """Print runtime scalars, text and whole tiles from the device.

    Parameters
    ----------
    *items
        Text, numbers, scalars, and buffers or slices, which print as their elements.
    msg
        Prefix.
    sep, end
        As in Python; output of different threads is not ordered.
    """
    builder = tracing_builder()
    if builder is None:
        builtins.print(*items, sep=sep, end=end)
        return
    args: list[Expr] = []
    layout: list[str] = [msg] if msg else []
    for item in items:
        if isinstance(item, Buffer) and not item.is_scalar:
            item = item.whole()
        if isinstance(item, Region):
            args.append(item.ir())
            layout.append("{}")
        elif isinstance(item, (str, type(None))):
            layout.append(str(item).replace("{", "{{").replace("}", "}}"))
        else:
            args.append(_printable(as_value(item)).expr)
            layout.append("{}")
    call = nodes.tile_call("print", args, {"format": sep.join(layout) + end})
    builder.emit(tirx.Evaluate(call, builder.span()))


def tracing_builder() -> Builder | None:
    """Return the active builder if a launch is open."""
    from tile_core.values.builder import tracing

    builder = tracing()
    return builder if builder is not None and builder.threads is not None else None


def _printable(value: Value) -> Value:
    if value.dtype.is_float and value.dtype not in ("float32", "float64"):
        return cast(value, DTYPES["float32"])
    return value


def device_assert(condition: Scalar, msg: str = "") -> None:
    """Stop the kernel with a message if a runtime condition is false.

    Parameters
    ----------
    condition
        A runtime value; a Python condition is checked while tracing.
    msg
        Text of the message.
    """
    if not isinstance(msg, str):
        raise BadArgument(
            function="device_assert", name="msg", found=repr(msg), expected="text", instead="pass a Python string"
        )
    builder = current("T.device_assert")
    value = as_condition(condition)
    if value is None:
        if not truth("device_assert", condition):
            raise BadArgument(
                function="device_assert", name="condition", found=f"false ({msg})", expected="a true condition",
                instead="correct the kernel's arguments",
            )  # fmt: skip
        return
    call = nodes.tile_call("device_assert", [value.expr], {"message": msg})
    builder.emit(tirx.Evaluate(call, builder.span()))


def assume(condition: Scalar) -> None:
    """Assume that a condition holds; the compiler relies on it without a check."""
    builder = current("T.assume")
    value = as_condition(condition)
    if value is None:
        if not truth("assume", condition):
            instead = "remove it, or correct it"
            raise BadArgument(
                function="assume", name="condition", found="false", expected="a true condition", instead=instead
            )
        return
    if builder.scope.kind == "function":
        # An assumption about parameters: it holds for the whole launch.
        builder.attrs.setdefault("assume", []).append(value.expr)
        return
    builder.emit(tirx.Evaluate(tirx.assume(value.expr), builder.span()))
