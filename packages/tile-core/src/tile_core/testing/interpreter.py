"""A slow interpreter of the IR on NumPy, for tests of passes: what a statement means, element by element.

It runs a program of tile ops (each by its meaning) as one thread would see it, and the code of one thread. Asynchronous
copies complete as late as they may: at the wait for their group. Until then their destination holds poison. A slot of a
buffer with asynchronous copies must not be read before a wait and a barrier, nor be overwritten before a barrier that
follows its reads; breaking either rule is an ``AssertionError``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from tile_core.ir import nodes
from tile_core.ops.base import OpCall, View
from tile_core.ops.registry import OPS

Instruction = Callable[["Interpreter", Sequence[Any]], Any]

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Div": operator.truediv,
    "FloorDiv": operator.floordiv, "FloorMod": operator.mod, "Min": min, "Max": max,
    "LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge, "EQ": operator.eq, "NE": operator.ne,
    "BitwiseAnd": operator.and_, "BitwiseOr": operator.or_, "BitwiseXor": operator.xor,
    "LShift": operator.lshift, "RShift": operator.rshift,
}  # fmt: skip


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class Interpreter:
    """The state of one thread, or of a block that is seen as one.

    Parameters
    ----------
    arrays
        Memory by buffer; the arrays are changed.
    values
        Values of variables (scalar parameters, symbols, thread numbers).
    late
        Whether asynchronous copies complete at the wait for them, or at once.
    lenient
        Whether accesses outside of a buffer follow the out-of-range rule; otherwise they are errors.
    instructions
        What instructions do, by name; their arguments are values, and ``Address`` for addresses.
    """

    def __init__(
        self,
        arrays: Mapping[Any, Any],
        values: Mapping[Any, Any] | None = None,
        *,
        late: bool = True,
        lenient: bool = False,
        instructions: Mapping[str, Instruction] | None = None,
    ) -> None:
        self.arrays: dict[Any, Any] = dict(arrays)
        self.values: dict[Any, Any] = dict(values or {})
        self.late, self.lenient, self.instructions = late, lenient, dict(instructions or {})
        self.group: list[Callable[[], None]] = []
        self.groups: list[list[Callable[[], None]]] = []
        #: (buffer, slot) of asynchronous copies: "flying", "arrived" (no barrier yet) or "ready".
        self.slots: dict[tuple[str, int], str] = {}
        self.read: set[tuple[str, int]] = set()
        self.copies = 0

    def run(self, s: Any) -> Interpreter:
        """Execute a statement; all asynchronous copies must have been waited for at its end."""
        self.stmt(s)
        assert not any([self.group, *self.groups]), "copies are still in flight at the end"
        return self

    # Statements

    def stmt(self, s: Any) -> None:
        """Execute a statement."""
        getattr(self, f"_{type(s).__name__}")(s)

    def _SeqStmt(self, s: Any) -> None:
        for x in s.seq:
            self.stmt(x)

    def _For(self, s: Any) -> None:
        start, extent = self.expr(s.min), self.expr(s.extent)
        step = 1 if s.step is None else int(nodes.as_int(s.step))
        for value in range(start, start + extent, step):
            self.values[s.loop_var] = value
            try:
                self.stmt(s.body)
            except _Continue:
                continue
            except _Break:
                break

    def _While(self, s: Any) -> None:
        while self.expr(s.condition):
            try:
                self.stmt(s.body)
            except _Continue:
                continue
            except _Break:
                break

    def _IfThenElse(self, s: Any) -> None:
        if self.expr(s.condition):
            self.stmt(s.then_case)
        elif s.else_case is not None:
            self.stmt(s.else_case)

    def _AttrStmt(self, s: Any) -> None:
        self.stmt(s.body)

    def _Break(self, s: Any) -> None:
        raise _Break

    def _Continue(self, s: Any) -> None:
        raise _Continue

    def _AllocBuffer(self, s: Any) -> None:
        array = np.empty(nodes.shape_of(s.buffer), element(s.buffer))
        array.view(np.uint8)[...] = 0xFF
        self.arrays[s.buffer] = array

    def _DeclBuffer(self, s: Any) -> None:
        base = self.arrays[s.data.args[0]]
        self.arrays[s.buffer] = base.reshape(-1).view(element(s.buffer)).reshape(nodes.shape_of(s.buffer))

    def _Bind(self, s: Any) -> None:
        self.values[s.var] = self.expr(s.value)

    def _BufferStore(self, s: Any) -> None:
        self.store(s.buffer, [self.expr(i) for i in s.indices], self.expr(s.value))

    def _Evaluate(self, s: Any) -> None:
        if not nodes.is_tile_call(s.value):
            self.expr(s.value)
            return
        call = OpCall.decode(s)
        if call.name == "copy" and "async" in call.attrs:
            self.async_copy(call)
        elif call.name in OPS:
            self.stmt(OPS[call.name].meaning(call))
        else:
            self.expr(s.value)

    # Memory

    def load(self, buffer: Any, at: Sequence[int]) -> Any:
        """Read an element."""
        array = self.arrays[buffer]
        if not all(0 <= i < n for i, n in zip(at, array.shape, strict=True)):
            assert self.lenient, f"{buffer.name}{list(at)} is outside of {array.shape}"
            return array.dtype.type(0)
        key = (str(buffer.name), int(at[0]) if at else 0)
        if key in self.slots:
            assert self.slots[key] == "ready", f"slot {key} is read while its copy is {self.slots[key]}"
            self.read.add(key)
        value = array[tuple(at)]
        return int(value) if array.dtype.kind in "iu" else value

    def store(self, buffer: Any, at: Sequence[int], value: Any) -> None:
        """Write an element."""
        array = self.arrays[buffer]
        if not all(0 <= i < n for i, n in zip(at, array.shape, strict=True)):
            assert self.lenient, f"{buffer.name}{list(at)} is outside of {array.shape}"
            return
        array[tuple(at)] = _wrapped(value, array.dtype)

    # Asynchronous copies

    def async_copy(self, call: OpCall) -> None:
        """Begin the copy of a tile."""
        dst = call.args[1]
        self.begin(dst.buffer, int(self.expr(nodes.int_const(0) + dst.mins[0])))
        src = View(call.args[0].buffer, tuple(self._known(m) for m in call.args[0].mins), call.args[0].extents)
        to = View(dst.buffer, tuple(self._known(m) for m in dst.mins), dst.extents)
        self.poison(to)
        self.later(lambda: self.stmt(OPS["copy"].meaning(OpCall("copy", (src, to), {}))))

    def begin(self, buffer: Any, slot: int) -> None:
        """Note that an asynchronous copy into a slot begins."""
        key = (str(buffer.name), slot)
        assert key not in self.read, f"slot {key} is overwritten while other threads may still read it"
        self.slots[key] = "flying"
        self.copies += 1

        def arrive() -> None:
            self.slots[key] = "arrived"

        self.group.append(arrive)

    def later(self, action: Callable[[], None]) -> None:
        """Do something at the wait for the current group."""
        if self.late:
            self.group.append(action)
        else:
            action()

    def poison(self, view: View) -> None:
        """Fill a tile with what nobody should see."""
        array = self.arrays[view.buffer]
        for at in product(*(range(m, m + e) for m, e in zip(view.mins, view.extents, strict=True))):
            array[at] = np.full(1, 0xFF, np.uint8).repeat(array.dtype.itemsize).view(array.dtype)[0]

    def _known(self, e: Any) -> Any:
        return self.expr(nodes.int_const(0) + e)

    # Expressions

    def expr(self, e: Any) -> Any:
        """Return the value of an expression."""
        kind = type(e).__name__
        operation = _BINARY.get(kind)
        if operation is not None:
            return operation(self.expr(e.a), self.expr(e.b))
        if kind in ("int", "float"):
            return e
        if kind == "Var":
            return self.values[e]
        evaluate: Callable[[Any], Any] = getattr(self, f"_{kind}", self.call)
        return evaluate(e)

    def _IntImm(self, e: Any) -> int:
        return int(e.value)

    def _FloatImm(self, e: Any) -> Any:
        return np.dtype(nodes.dtype_of(e)).type(float(e.value))

    def _TensorLoad(self, e: Any) -> Any:
        return self.load(e.source, [self.expr(i) for i in e.indices])

    def _And(self, e: Any) -> bool:
        return bool(self.expr(e.a)) and bool(self.expr(e.b))

    def _Or(self, e: Any) -> bool:
        return bool(self.expr(e.a)) or bool(self.expr(e.b))

    def _Not(self, e: Any) -> bool:
        return not self.expr(e.a)

    def _Cast(self, e: Any) -> Any:
        return _cast(self.expr(e.value), nodes.dtype_of(e))

    def _Select(self, e: Any) -> Any:
        return self.expr(e.true_value) if self.expr(e.condition) else self.expr(e.false_value)

    def _Let(self, e: Any) -> Any:
        self.values[e.var] = self.expr(e.value)
        return self.expr(e.body)

    def call(self, e: Any) -> Any:
        """Return the value of a call, after its effects."""
        name = nodes.operator_name(e)
        if name == "if_then_else":
            return self.expr(e.args[1] if self.expr(e.args[0]) else e.args[2])
        if name == "tile.address":
            return Address(self, e.args[0].source, [self.expr(i) for i in e.args[0].indices])
        if name == "tile.move":
            to, start = (Address(self, a.source, [self.expr(i) for i in a.indices]) for a in e.args)
            size = int(nodes.as_int(e.attrs["bytes"]))
            to.write(start.read(size))
            return None
        if name == "tile.instruction":
            return self.instructions[str(e.attrs["name"])](self, [self.expr(a) for a in e.args])
        return self.control(name, e)

    def control(self, name: str, e: Any) -> None:
        """Execute a barrier, the end of a group of copies, or a wait."""
        if name == "tile.sync_threads":
            self.read.clear()
            self.slots = {k: "ready" if v == "arrived" else v for k, v in self.slots.items()}
        elif name == "tile.async_commit":
            self.groups.append(self.group)
            self.group = []
        elif name == "tile.async_wait":
            left = int(nodes.as_int(e.args[0]))
            done = self.groups[: len(self.groups) - left] if left else self.groups
            self.groups = self.groups[len(done) :]
            for action in (a for group in done for a in group):
                action()
        else:
            raise NotImplementedError(name)


class Address:
    """The address of an element: memory of the buffer in row-major order from there on.

    It may lie outside of the buffer as long as nothing is read or written there.
    """

    def __init__(self, owner: Interpreter, buffer: Any, at: Sequence[int]) -> None:
        array = owner.arrays[buffer]
        # A view with strides of its own begins where the memory begins that it shows.
        memory = array if array.flags.c_contiguous else array.base
        self.owner, self.buffer, self.bytes = owner, buffer, memory.reshape(-1).view(np.uint8)
        self.at = list(at)
        self.offset = sum(i * step for i, step in zip(at, array.strides, strict=True))

    def read(self, size: int, align: int = 0) -> Any:
        """Return a copy of the next bytes, which must be aligned (by default to their number) and inside."""
        self._check(size, align or size)
        return self.bytes[self.offset : self.offset + size].copy()

    def write(self, data: Any, align: int = 0) -> None:
        """Write bytes, which must be aligned and inside of the buffer."""
        self._check(len(data), align or len(data))
        self.bytes[self.offset : self.offset + len(data)] = data

    def _check(self, size: int, align: int) -> None:
        inside = self.offset >= 0 and self.offset + size <= len(self.bytes)
        fits = inside and self.offset % align == 0
        assert fits, f"{size} bytes of {self.buffer.name} at byte {self.offset}"


def element(buffer: Any) -> Any:
    """Return the NumPy type of a buffer's elements."""
    return np.dtype(nodes.element_type(buffer))


def _cast(value: Any, dtype: str) -> Any:
    if dtype == "bool":
        return bool(value)
    if dtype.startswith(("int", "uint")):
        return int(value)
    return np.dtype(dtype).type(value)


def _wrapped(value: Any, dtype: Any) -> Any:
    if dtype.kind not in "iu":
        return value
    bits = 8 * dtype.itemsize
    low = int(value) & ((1 << bits) - 1)
    return low - (1 << bits) if dtype.kind == "i" and low >> (bits - 1) else low
