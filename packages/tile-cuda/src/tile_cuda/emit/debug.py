"""``T.print`` and ``T.device_assert``: the device's ``printf``, and a trap."""

from __future__ import annotations

import string
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.emit.kernel_printer import KernelPrinter
from tile_core.emit.text import UNARY, wrapped
from tile_core.ir import attributes, nodes
from tile_core.ops.base import OpCall, View

_FORMATS = {
    "bool": "%d", "int8": "%d", "int16": "%d", "int32": "%d", "int64": "%lld", "uint8": "%u", "uint16": "%u",
    "uint32": "%u", "uint64": "%llu", "float16": "%.9g", "bfloat16": "%.9g", "float32": "%.9g", "float64": "%.17g",
}  # fmt: skip
#: Begins the text of a failed assertion; the emulator's model of CUDA knows it, too.
ASSERTED = "device assertion failed: "
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "%": "%%"}


class DebugStatements(KernelPrinter):
    """Writes prints and assertions."""

    def write_print(self, s: Stmt) -> None:
        """Write a print statement; a tile prints one element after another."""
        call = OpCall.decode(s)
        at, values = self._location(call)
        args = iter(call.args[len(values) :])
        text = f"{at}, thread %u: " if at else ""
        values = [*values, self._thread()] if at else []
        for literal, field, _, _ in string.Formatter().parse(str(call.attrs[attributes.FORMAT])):
            text += _escaped(literal)
            if field is None:
                continue
            arg = next(args)
            if isinstance(arg, View):
                self._printf(text + "[", values)
                self._elements(arg)
                text, values = "]", []
            else:
                text += _FORMATS[nodes.dtype_of(arg)]
                values.append(self._shown(arg))
        self._printf(text, values)

    def _location(self, call: OpCall) -> tuple[str, list[str]]:
        """Return the format of a statement's location, and its values."""
        count = int(call.attrs.get(attributes.LOCATED, 0))
        args, text = iter(call.args[:count]), ""
        for literal, field, _, _ in string.Formatter().parse(str(call.attrs.get(attributes.AT, ""))):
            text += _escaped(literal) + ("" if field is None else _FORMATS[nodes.dtype_of(next(args))])
        return text, [self._shown(a) for a in call.args[:count]]

    def _thread(self) -> str:
        """Return the number of the thread in its block."""
        x, y, z = self.launch.block
        terms = ["threadIdx.x"] + [f"threadIdx.y * {x}u"] * (y > 1 or z > 1) + [f"threadIdx.z * {x * y}u"] * (z > 1)
        return " + ".join(terms)

    def _elements(self, view: View) -> None:
        def element(*indices: Any) -> Any:
            load = nodes.load(view.buffer, view.spread(indices))
            return tirx.Evaluate(nodes.tile_call("print", [load], {attributes.FORMAT: " {}"}))

        self.stmt(nodes.nest(view.shape, element, "serial"))

    def _shown(self, value: Expr) -> str:
        dtype = nodes.dtype_of(value)
        text = self.bare(value)
        return self.convert(text, dtype, "float32") if dtype in ("float16", "bfloat16") else text

    def _printf(self, text: str, values: list[str]) -> None:
        if text:
            self.writer.line(f"printf({', '.join([_quoted(text), *values])});")

    def write_device_assert(self, s: Stmt) -> None:
        """Write a branch that names the assertion and stops the kernel."""
        call = OpCall.decode(s)
        at, values = self._location(call)
        if not at:
            at = "" if call.where is None else _escaped(str(call.where))
        message = _escaped(str(call.attrs[attributes.MESSAGE]) or "the condition is false")
        condition = self.bare(call.args[len(values)])
        with self.writer.block(f"if (!{wrapped(condition, UNARY)})"):
            self._printf(f"{ASSERTED}{message} ({at}, thread %u)\\n", [*values, self._thread()])
            self.writer.line("__trap();")


def _escaped(text: str) -> str:
    """Return a text as part of a C string, and of a format."""
    return "".join(_ESCAPES.get(c, c) if c.isascii() else "".join(f"\\{b:03o}" for b in c.encode()) for c in text)


def _quoted(text: str) -> str:
    return f'"{text}"'
