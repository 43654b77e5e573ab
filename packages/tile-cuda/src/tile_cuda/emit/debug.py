"""``T.print`` and ``T.device_assert``: the device's ``printf``, and a trap."""

from __future__ import annotations

import string
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.emit.c_family import CFamilyEmitter
from tile_core.emit.text import UNARY, wrapped
from tile_core.ir import nodes
from tile_core.ops.base import OpCall, View

_FORMATS = {
    "bool": "%d", "int8": "%d", "int16": "%d", "int32": "%d", "int64": "%lld", "uint8": "%u", "uint16": "%u",
    "uint32": "%u", "uint64": "%llu", "float16": "%.9g", "bfloat16": "%.9g", "float32": "%.9g", "float64": "%.17g",
}  # fmt: skip
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "%": "%%"}


class DebugStatements(CFamilyEmitter):
    """Writes prints and assertions."""

    def write_print(self, s: Stmt) -> None:
        """Write a print statement; a tile prints one element after another."""
        call = OpCall.decode(s)
        args = iter(call.args)
        text = ""
        values: list[str] = []
        for literal, field, _, _ in string.Formatter().parse(str(call.attrs["format"])):
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

    def _elements(self, view: View) -> None:
        def element(*indices: Any) -> Any:
            load = nodes.load(view.buffer, view.spread(indices))
            return tirx.Evaluate(nodes.tile_call("print", [load], {"format": " {}"}))

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
        message = _escaped(str(call.attrs["message"]) or "the condition is false")
        location = "" if call.where is None else _escaped(f"{call.where.file}:{call.where.line}: ")
        condition = self.bare(call.args[0])
        with self.writer.block(f"if (!{wrapped(condition, UNARY)})"):
            at = "blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z"
            form = f"{location}{message} (block %u %u %u, thread %u %u %u)\\n"
            self.writer.line(f"printf({_quoted(form)}, {at});")
            self.writer.line("__trap();")


def _escaped(text: str) -> str:
    """Return a text as part of a C string, and of a format."""
    return "".join(_ESCAPES.get(c, c) if c.isascii() else "".join(f"\\{b:03o}" for b in c.encode()) for c in text)


def _quoted(text: str) -> str:
    return f'"{text}"'
