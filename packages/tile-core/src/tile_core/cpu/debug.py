"""``T.print`` and ``T.device_assert`` on the CPU: calls back into this process, in order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NoReturn

from tile_core.analysis.uniformity import uses_threads
from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import Argument, Call, Expr, Stmt
from tile_core.cpu.grid import threads_of
from tile_core.errors.base import TileError, Where
from tile_core.errors.launch import DeviceAssertFailed, asserted
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.visit import StmtRewriter, collect
from tile_core.ops.base import OpCall, View
from tile_runtime.errors.interrupts import passed_on

_PUT, _SHOW, _FAIL = "tile.cpu.put", "tile.cpu.show", "tile.cpu.fail"


def lower_debug(body: Stmt) -> Stmt:
    """Return the body with prints and assertions as calls of functions of this process."""
    if not calls_back(body):
        return body
    _register()
    return _LowerDebug().stmt(body)


def calls_back(body: Stmt) -> bool:
    """Whether a program prints or asserts: its blocks then run in order."""
    return any(nodes.is_tile_call(c, n) for c in collect(body, ir.Call) for n in ("print", "device_assert"))


def name_threads(body: Stmt) -> Stmt:
    """Add the thread to the locations of prints, in kernels that name their threads."""
    if not calls_back(body) or not uses_threads(body):
        return body
    x, y, _ = threads_of(body)
    linear = calls.thread_index(2) * (x * y) + calls.thread_index(1) * x + calls.thread_index(0)
    return _NameThreads(linear).stmt(body)


class _NameThreads(StmtRewriter):
    def __init__(self, thread: Expr) -> None:
        self.thread = thread

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        if not any(nodes.is_tile_call(s.value, name) for name in ("print", "device_assert")):
            return s
        call = OpCall.decode(s)
        if not call.attrs.get(attributes.AT):
            return s
        count, args = int(call.attrs[attributes.LOCATED]), list(s.value.args)
        notes = {
            **call.attrs,
            attributes.AT: f"{call.attrs[attributes.AT]}, thread {{}}",
            attributes.LOCATED: count + 1,
        }
        made = nodes.tile_call(call.name, [*args[:count], self.thread, *args[count:]], notes)
        return tirx.Evaluate(made, s.span)


class _LowerDebug(StmtRewriter):
    def visit_Evaluate(self, s: Stmt) -> Stmt:
        if nodes.is_tile_call(s.value, "print"):
            return self.show(OpCall.decode(s))
        if nodes.is_tile_call(s.value, "device_assert"):
            call = OpCall.decode(s)
            where, count = call.where or Where("", 0), int(call.attrs.get(attributes.LOCATED, 0))
            texts = (str(call.attrs[attributes.MESSAGE]), str(call.attrs.get(attributes.AT, "")), where.file)
            fail = tirx.Evaluate(packed(_FAIL, *texts, nodes.int_const(where.line)))
            values = [_put(a) for a in call.args[:count]]
            return tirx.IfThenElse(tirx.Not(call.args[count]), nodes.seq([*values, fail]), None, s.span)
        return s

    def show(self, call: OpCall) -> Stmt:
        parts, shapes = [], []
        for arg in call.args:
            if isinstance(arg, View):
                parts.append(nodes.nest(arg.shape, lambda *i, a=arg: _put(nodes.load(a.buffer, a.spread(i))), "serial"))
                shapes.append("x".join(str(e) for e in arg.shape))
            else:
                parts.append(_put(arg))
                shapes.append("")
        at = str(call.attrs.get(attributes.AT, ""))
        text = f"{at}: {call.attrs[attributes.FORMAT]}" if at else str(call.attrs[attributes.FORMAT])
        parts.append(tirx.Evaluate(packed(_SHOW, text, ",".join(shapes))))
        return nodes.seq(parts)


def _put(value: Expr) -> Stmt:
    return tirx.Evaluate(packed(_PUT, wide(value)))


def wide(value: Expr) -> Expr:
    """Return a value in a type that functions of this process take."""
    dtype = nodes.dtype_of(value)
    if dtype == "bool":
        return nodes.cast(value, "int32")
    if dtype.startswith(("float", "bfloat")):
        return nodes.cast(nodes.cast(value, "float32") if dtype not in ("float32", "float64") else value, "float64")
    return nodes.cast(value, "int64")


def packed(name: str, *args: Expr) -> Call:
    """Return a call of a function of this process."""
    return tirx.call_packed(name, *[ir.StringImm(a) if isinstance(a, str) else a for a in args])


_items = threading.local()


def _put_item(value: Expr) -> None:
    if not hasattr(_items, "values"):
        _items.values = []
    _items.values.append(value)


def _show_items(text: str, shapes: str) -> None:
    import numpy as np

    values, _items.values = getattr(_items, "values", []), []
    shown, at = [], 0
    for shape in shapes.split(",") if shapes or values else []:
        extents = [int(e) for e in shape.split("x")] if shape else []
        count = int(np.prod(extents)) if extents else 1
        part = values[at : at + count]
        shown.append(str(np.array(part).reshape(extents)) if extents else str(part[0]))
        at += count
    print(str(text).format(*shown), end="", flush=True)


def _fail(message: str, at: str, file: str, line: int) -> None:
    where = Where(str(file), int(line))
    values, _items.values = getattr(_items, "values", []), []
    failed(DeviceAssertFailed(message=asserted(str(message), str(at).format(*values)), where=where))


def failed(error: TileError) -> NoReturn:
    """End a launch with an error's text.

    A launch from Python raises the error itself.
    """
    _items.failure = error
    raise RuntimeError(str(error))


def with_failures(entry: Callable[..., object]) -> Callable[..., object]:
    """Return a launch that raises the error of a failed assertion itself, beyond TVM's text."""

    def launch(*values: Argument) -> None:
        _items.failure, _items.values = None, []
        try:
            entry(*values)
        except Exception as error:
            passed_on(error)
            if _items.failure is not None:
                raise _items.failure from None
            raise

    return launch


def _register() -> None:
    for name, function in ((_PUT, _put_item), (_SHOW, _show_items), (_FAIL, _fail)):
        tvm_ffi.register_global_func(name, function, override=True)
