"""An interpreter of what one thread does, for all threads of a block at once, with the matrix instructions of a warp.

Shared memory is flat: an element is where its buffer's layout puts it, and instructions read bytes. Everything starts
as poison. An access outside of a buffer, a misaligned row, and an instruction of an incomplete warp are errors.
"""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np

from tile_core.ir import nodes
from tile_core.layout import row_major

from ..vectors import products

_NARROW = {n: getattr(ml_dtypes, n) for n in (
    "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float4_e2m1fn")}  # fmt: skip
_BINARY = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "FloorDiv": np.floor_divide, "FloorMod": np.mod,
    "Min": np.minimum, "Max": np.maximum, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
    "EQ": np.equal, "NE": np.not_equal, "And": np.logical_and, "Or": np.logical_or, "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor, "shift_left": np.left_shift,
    "shift_right": np.right_shift, "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor, "LShift": np.left_shift, "RShift": np.right_shift,
}  # fmt: skip


def numpy_type(name: str) -> Any:
    return np.dtype(_NARROW.get(name, name))


class Machine:
    """A block of threads; ``values`` are variables that have values before the block starts."""

    def __init__(self, threads: int, thread: Any, values: dict[Any, int] | None = None) -> None:
        self.count = threads
        self.vars: dict[Any, Any] = {thread: np.arange(threads, dtype=np.int32)}
        self.vars |= {v: np.full(threads, x, np.int32) for v, x in (values or {}).items()}
        self.private: dict[Any, Any] = {}
        self.shared: dict[Any, Any] = {}
        self.layouts: dict[Any, Any] = {}
        self.used: set[str] = set()

    def put(self, buffer: Any, values: Any, layout: Any = None) -> None:
        """Fill a shared buffer."""
        layout = row_major(values.shape) if layout is None else layout
        memory = np.full(layout.span, 0x7F, np.uint8).repeat(values.itemsize).view(values.dtype)
        memory[np.asarray(layout.tables()["memory"])] = values.reshape(-1)
        self.shared[buffer], self.layouts[buffer] = memory, layout

    def get(self, buffer: Any) -> Any:
        """Return the elements of a shared buffer."""
        layout = self.layouts[buffer]
        return self.shared[buffer][np.asarray(layout.tables()["memory"])].reshape(layout.shape)

    def allocate(self, buffer: Any) -> Any:
        """Make the registers of every thread."""
        shape = (self.count, *(int(d) for d in buffer.shape))
        kind = numpy_type(nodes.element_type(buffer))
        self.private[buffer] = np.full((*shape, kind.itemsize), 0x7F, np.uint8).view(kind)[..., 0]
        return self.private[buffer]

    def run(self, body: Any) -> None:
        with np.errstate(all="ignore"):
            self.stmt(body, np.ones(self.count, dtype=bool))

    # Statements

    def stmt(self, s: Any, on: Any) -> None:
        if on.any():
            getattr(self, f"do_{type(s).__name__}")(s, on)

    def do_SeqStmt(self, s: Any, on: Any) -> None:
        for part in s.seq:
            self.stmt(part, on)

    def do_AttrStmt(self, s: Any, on: Any) -> None:
        self.stmt(s.body, on)

    def do_For(self, s: Any, on: Any) -> None:
        for k in range(int(s.min), int(s.min) + int(s.extent)):
            self.vars[s.loop_var] = np.full(self.count, k, np.int32)
            self.stmt(s.body, on)

    def do_IfThenElse(self, s: Any, on: Any) -> None:
        condition = self.eval(s.condition, on)
        self.stmt(s.then_case, on & condition)
        if s.else_case is not None:
            self.stmt(s.else_case, on & ~condition)

    def do_Bind(self, s: Any, on: Any) -> None:
        self.vars[s.var] = self.eval(s.value, on)

    def do_AllocBuffer(self, s: Any, on: Any) -> None:
        assert nodes.scope_of(s.buffer) == "local"
        self.allocate(s.buffer)

    def do_BufferStore(self, s: Any, on: Any) -> None:
        value, at = self.eval(s.value, on), [self.eval(i, on) for i in s.indices]
        memory, place = self.place(s.buffer, at, on)
        assert value.dtype == memory.dtype
        memory[tuple(p[on] for p in place)] = value[on]

    def do_Evaluate(self, s: Any, on: Any) -> None:
        if nodes.is_nop(s):
            return
        call = s.value
        if nodes.is_tile_call(call, "move"):
            self.move(call, on)
        else:
            assert nodes.is_tile_call(call, "instruction")
            self.instruction(str(call.attrs["name"]), call.args, on)

    # Memory

    def place(self, buffer: Any, at: list[Any], on: Any) -> tuple[Any, Any]:
        """Return an array, and the index in it of each thread's element."""
        extents = [int(d) for d in buffer.shape]
        for i, n in zip(at, extents, strict=True):
            assert ((i >= 0) & (i < n))[on].all(), f"outside of {buffer.name}: {i[on].min()} … {i[on].max()} of {n}"
        at = [np.where(on, i, 0) for i in at]
        if buffer in self.private:
            return self.private[buffer], (np.arange(self.count), *at)
        return self.shared[buffer], (np.asarray(self.layouts[buffer].apply(*at)["memory"]) + np.zeros_like(at[0]),)

    def bytes_at(self, load: Any, on: Any, size: int, aligned: int) -> tuple[Any, Any]:
        """Return an array of bytes, and the indices (thread, byte) of what lies from an element on."""
        at = [self.eval(i, on) for i in load.indices]
        memory, place = self.place(load.source, at, on)
        flat = np.ravel_multi_index(place, memory.shape) * memory.itemsize
        if load.source not in self.private:
            assert (flat[on] % aligned == 0).all(), f"misaligned access of {load.source.name}"
        limit = memory[0].nbytes if load.source in self.private else memory.nbytes
        assert (flat[on] % limit + size <= limit).all(), f"beyond {load.source.name}"
        flat = np.where(on, flat, 0)
        return memory.reshape(-1).view(np.uint8), flat[:, None] + np.arange(size)

    def move(self, call: Any, on: Any) -> None:
        size = int(call.attrs["bytes"])
        source, start = self.bytes_at(call.args[1], on, size, size)
        target, to = self.bytes_at(call.args[0], on, size, size)
        target[to[on]] = source[start[on]]

    # Expressions

    def eval(self, e: Any, on: Any) -> Any:
        name = type(e).__name__
        return self.binary(name, e.a, e.b, on) if name in _BINARY else getattr(self, f"get_{name}")(e, on)

    def binary(self, name: str, a: Any, b: Any, on: Any) -> Any:
        x, y = self.eval(a, on), self.eval(b, on)
        assert x.dtype == y.dtype, f"{name} of {x.dtype} and {y.dtype}"
        result = _BINARY[name](x, y)
        return result if result.dtype == bool else result.astype(x.dtype)

    def get_Select(self, e: Any, on: Any) -> Any:
        return np.where(self.eval(e.condition, on), self.eval(e.true_value, on), self.eval(e.false_value, on))

    def get_IntImm(self, e: Any, on: Any) -> Any:
        return np.full(self.count, int(e.value), numpy_type(nodes.dtype_of(e)))

    def get_FloatImm(self, e: Any, on: Any) -> Any:
        return np.full(self.count, float(e.value), numpy_type(nodes.dtype_of(e)))

    def get_Var(self, e: Any, on: Any) -> Any:
        return self.vars[e]

    def get_TensorLoad(self, e: Any, on: Any) -> Any:
        memory, place = self.place(e.source, [self.eval(i, on) for i in e.indices], on)
        return memory[place]

    def get_Cast(self, e: Any, on: Any) -> Any:
        return self.eval(e.value, on).astype(numpy_type(nodes.dtype_of(e)))

    def get_Call(self, e: Any, on: Any) -> Any:
        name = nodes.operator_name(e)
        if name == "if_then_else":
            condition = self.eval(e.args[0], on)
            yes = self.eval(e.args[1], on & condition)
            return np.where(condition, yes, self.eval(e.args[2], on & ~condition))
        if name == "reinterpret":
            return np.ascontiguousarray(self.eval(e.args[0], on)).view(numpy_type(nodes.dtype_of(e)))
        return self.binary(name, *e.args, on)

    # Instructions

    def instruction(self, name: str, args: Any, on: Any) -> None:
        self.used.add(name)
        warps = on.reshape(-1, 32)
        assert (warps.all(1) | ~warps.any(1)).all(), f"{name} by a part of a warp"
        on = on.copy()
        if name.startswith("ldmatrix"):
            self.ldmatrix(name, args, on)
        else:
            self.multiply(name, args, on)

    def array(self, arg: Any, on: Any, count: int, kind: Any) -> tuple[Any, Any]:
        """Return an array of registers and (thread, register) indices."""
        load = arg.args[0]
        memory = self.private[load.source]
        assert memory.dtype == kind, f"{load.source.name} is {memory.dtype}, not {kind}"
        start = self.eval(load.indices[0], on)
        assert (start[on] + count <= memory.shape[1]).all(), f"beyond {load.source.name}"
        return memory, (np.arange(self.count)[:, None], np.where(on, start, 0)[:, None] + np.arange(count))

    def ldmatrix(self, name: str, args: Any, on: Any) -> None:
        count = int(re.search(r"_x(\d)", name)[1])  # type: ignore[index]
        wanted = on & (np.arange(self.count) % 32 < 8 * count)
        source, at = self.bytes_at(args[1].args[0], wanted, 16, 16)
        rows = source[at].view(np.uint16).reshape(-1, 32, 8)[:, : 8 * count].reshape(-1, count, 8, 8)
        if "trans" in name:
            rows = rows.transpose(0, 1, 3, 2)
        words = np.ascontiguousarray(rows).view(np.uint32).reshape(-1, count, 32).transpose(0, 2, 1)
        target, to = self.array(args[0], on, count, np.uint32)
        target[to[0][on], to[1][on]] = words.reshape(self.count, count)[on]

    def multiply(self, name: str, args: Any, on: Any) -> None:
        m, k, types = re.search(r"_m(\d+)n8k(\d+)_row_col_(.*)", name).groups()  # type: ignore[union-attr]
        c, a, b = types.split("_")[:3]
        stored = int(k) // (2 if "_sp_" in name else 1)
        kind = {"f32": np.float32, "s32": np.int32, "f64": np.float64}[c]
        word = np.float64 if a == "f64" else np.uint32
        bits = 64 if a == "f64" else products.BITS[a]
        sizes = (2 if m == "8" else 4, max(1, stored * int(m) * bits // 1024), max(1, int(k) * bits // 128))
        if a == "f64":
            sizes = (2, 1, 1)
        total, to = self.array(args[0], on, sizes[0], kind)
        left, right, held = (
            found[at] for found, at in (
                self.array(args[1], on, sizes[1], word), self.array(args[2], on, sizes[2], word),
                self.array(args[3], on, sizes[0], kind),
            )
        )  # fmt: skip
        metadata = self.eval(args[4], on) if len(args) > 4 else None
        selector = int(name.rsplit("_", 1)[1]) if metadata is not None else 0
        for first in range(0, self.count, 32):
            lanes = slice(first, first + 32)
            if on[first]:
                shape = (int(k), stored, selector, None if metadata is None else metadata[lanes])
                total[lanes][to[0][:32], to[1][lanes]] = warp_product(
                    left[lanes], right[lanes], held[lanes], (c, a, b), *shape
                )


def warp_product(
    left: Any, right: Any, held: Any, types: tuple[str, str, str], k: int, stored: int, selector: int, metadata: Any
) -> Any:
    """Return the accumulators after an instruction."""
    c, a, b = types
    g, t = np.arange(32) // 4, np.arange(32) % 4
    if a == "f64":
        x, y, z = np.zeros((8, 4)), np.zeros((4, 8)), np.zeros((8, 8))
        x[g, t], y[t, g] = left[:, 0], right[:, 0]
        z[g, 2 * t], z[g, 2 * t + 1] = held[:, 0], held[:, 1]
        z = z + x @ y
        return np.stack([z[g, 2 * t], z[g, 2 * t + 1]], axis=1)
    x, y = products.matrix_a(left, a, stored), products.matrix_b(right, b, k)
    z = products.matrix_c(held, c)
    if metadata is None:
        z = z + x @ y
    else:
        chosen = products.places(metadata, a, k, selector)
        z = z + (x[:, :, None] * y[chosen]).sum(axis=1)
    found = products.fragment(z)
    return found.astype(np.int64).astype(np.int32) if c == "s32" else found.astype(np.float32)
