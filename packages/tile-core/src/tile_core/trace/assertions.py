"""Debugging a running kernel: ``T.print`` and ``T.device_assert``; and ``T.assume``."""

from __future__ import annotations

import builtins
from pathlib import Path

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr
from tile_core.dtypes import DTYPES
from tile_core.errors.language import BadArgument
from tile_core.ir import attributes, nodes
from tile_core.ir.attributes import Attrs
from tile_core.trace.conditions import as_condition
from tile_core.values.builder import Builder, current
from tile_core.values.checks import truth
from tile_core.values.value import Buffer, Region, Scalar, Value, as_value, cast


def print(*items: object, msg: str = "", sep: str = " ", end: str = "\n") -> None:
    """Print runtime scalars, text and whole tiles from the device.

    Each text begins with its line, the block, the iterations of the loops around, and on targets with threads, or where
    the kernel names its threads, the thread: ``"gemm.py:31 block (2, 0), k 1, thread 17: "``.

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
    at, values = _location(builder)
    notes: Attrs = {attributes.FORMAT: sep.join(layout) + end, attributes.AT: at, attributes.LOCATED: len(values)}
    builder.emit(tirx.Evaluate(nodes.tile_call("print", [*values, *args], notes), builder.span()))


def _location(builder: Builder) -> tuple[str, list[Expr]]:
    """Return the format of a statement's location, and the values of its placeholders."""
    where = builder.where()
    line = "" if where is None else f"{Path(where.file).name}:{where.line} ".replace("{", "{{").replace("}", "}}")
    launch = builder.launch
    blocks: list[Expr] = [] if launch is None else list(launch.first)
    block = "({})".format(", ".join(["{}"] * len(blocks))) if len(blocks) > 1 else "{}" if blocks else "0"
    scopes = reversed(list(builder.scope.ancestors()))
    counters = [v for scope in scopes for v in scope.counters]
    loops = "".join(f", {v.name} {{}}" for v in counters)
    return f"{line}block {block}{loops}", [*blocks, *counters]


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

    The message names the line, the block and the iterations as those of ``T.print`` do.

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
    at, values = _location(builder)
    notes: Attrs = {attributes.MESSAGE: msg, attributes.AT: at, attributes.LOCATED: len(values)}
    builder.emit(tirx.Evaluate(nodes.tile_call("device_assert", [*values, value.expr], notes), builder.span()))


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
        builder.attrs.setdefault(attributes.ASSUMED, []).append(value.expr)
        return
    builder.emit(tirx.Evaluate(tirx.assume(value.expr), builder.span()))
