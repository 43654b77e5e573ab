"""An interpreter of what one thread does, for all threads of a block at once: every statement is done by all in step.

It refuses what hardware would not do reliably: a shuffle or vote whose mask is not exactly the lanes that execute it,
or that reads a lane that does not exist, an access outside a buffer, and within one step an element of shared or global
memory that one thread writes and another touches. Scratch starts with poison.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tile_core.ir import calls, nodes

_TYPES = {n: getattr(ml_dtypes, n) for n in ("bfloat16", "float8_e4m3fn", "float8_e5m2")}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "FloorDiv": np.floor_divide, "FloorMod": np.mod,
    "Min": np.minimum, "Max": np.maximum, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
    "EQ": np.equal, "NE": np.not_equal, "And": np.logical_and, "Or": np.logical_or, "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor, "LShift": np.left_shift, "RShift": np.right_shift,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "shift_left": np.left_shift, "shift_right": np.right_shift, "Div": np.divide,
}  # fmt: skip


def _extreme(kind: str, nan_wins: bool) -> Callable[[Any, Any], Any]:
    def choose(a: Any, b: Any) -> Any:
        function = getattr(np, f"{kind}imum") if nan_wins else getattr(np, f"f{kind}")
        first = a if (kind == "max") else b
        tied = np.where(np.signbit(a), b if kind == "max" else a, first)
        return np.where(a == b, tied, function(a, b))

    return choose


_BINARY |= {f"tile.float_{k}{'_nan' if n else ''}": _extreme(k, n) for k in ("max", "min") for n in (False, True)}
_UNARY = {"bitwise_not": np.invert, "fabs": np.abs, "abs": np.abs, "isnan": np.isnan}


def numpy_type(name: str) -> Any:
    return np.dtype(_TYPES.get(name, name))


class Machine:
    """A block of threads."""

    def __init__(self, threads: int, thread: Any, memory: dict[Any, Any], width: int = 32) -> None:
        self.count, self.width = threads, width
        self.vars: dict[Any, Any] = {thread: np.arange(threads, dtype=np.int32)}
        self.private: dict[Any, Any] = {}
        self.memory = memory
        self.instructions: dict[str, Callable[..., Any]] = {}
        self.writers: dict[Any, Any] = {}
        self.readers: dict[Any, Any] = {}
        self.shuffles = 0

    def run(self, body: Any) -> None:
        with np.errstate(all="ignore"):
            self.stmt(body, np.ones(self.count, dtype=bool))

    # Statements

    def stmt(self, s: Any, on: Any) -> None:
        if on.any():
            getattr(self, f"do_{type(s).__name__}")(s, on)

    def do_SeqStmt(self, s: Any, on: Any) -> None:
        for part in s.seq:
            self.stmt(part, on & ~self.left)

    left = np.zeros(1, dtype=bool)

    def do_AttrStmt(self, s: Any, on: Any) -> None:
        if s.attr_key == calls.STEP:
            self.writers, self.readers = {}, {}
        self.stmt(s.body, on)
        if s.attr_key == calls.STEP:
            self.writers, self.readers = {}, {}

    def do_For(self, s: Any, on: Any) -> None:
        start, extent = self.eval(s.min, on), self.eval(s.extent, on)
        for k in range(int(np.where(on, extent, 0).max(initial=0))):
            self.vars[s.loop_var] = (start + k).astype(numpy_type(nodes.dtype_of(s.loop_var)))
            self.stmt(s.body, on & (k < extent))

    def do_While(self, s: Any, on: Any) -> None:
        outer, self.left = self.left, np.zeros(self.count, dtype=bool)
        for _ in range(10000):
            on = on & ~self.left
            on = on & self.eval(s.condition, on)
            if not on.any():
                break
            self.stmt(s.body, on)
        else:
            raise AssertionError("a loop does not end")
        self.left = outer

    def do_Break(self, s: Any, on: Any) -> None:
        self.left = self.left | on

    def do_IfThenElse(self, s: Any, on: Any) -> None:
        condition = self.eval(s.condition, on)
        self.stmt(s.then_case, on & condition)
        if s.else_case is not None:
            self.stmt(s.else_case, on & ~condition)

    def do_Bind(self, s: Any, on: Any) -> None:
        self.vars[s.var] = self.eval(s.value, on)

    def do_Evaluate(self, s: Any, on: Any) -> None:
        if not nodes.is_nop(s):
            self.eval(s.value, on)

    def do_AllocBuffer(self, s: Any, on: Any) -> None:
        b = s.buffer
        shape = tuple(int(d) for d in b.shape)
        private = nodes.scope_of(b).startswith("local")
        shape = (self.count, *shape) if private else shape
        kind = numpy_type(nodes.element_type(b))
        data = np.frombuffer(np.random.default_rng(1).bytes(int(np.prod(shape)) * kind.itemsize), kind).reshape(shape)
        if kind == np.dtype(bool):
            data = np.frombuffer(data.tobytes(), np.uint8).reshape(shape) % 2 == 1
        (self.private if private else self.memory)[b] = data.copy()

    def do_BufferStore(self, s: Any, on: Any) -> None:
        value = self.eval(s.value, on)
        at = [self.eval(i, on) for i in s.indices]
        self.write(s.buffer, at, value, on)

    # Memory

    def place(self, buffer: Any, at: list[Any], on: Any) -> Any:
        shape = tuple(int(d) for d in buffer.shape)
        for i, n in zip(at, shape, strict=True):
            assert ((i >= 0) & (i < n))[on].all(), f"outside of {buffer.name}: {i[on].min()}..{i[on].max()} of {n}"
        return tuple(np.where(on, i, 0) for i in at)

    def write(self, buffer: Any, at: list[Any], value: Any, on: Any) -> None:
        place = self.place(buffer, at, on)
        if buffer in self.private:
            self.private[buffer][(np.nonzero(on)[0], *(p[on] for p in place))] = value[on]
            return
        self.touch(buffer, place, on, True)
        self.memory[buffer][tuple(p[on] for p in place)] = value[on]

    def read(self, buffer: Any, at: list[Any], on: Any) -> Any:
        place = self.place(buffer, at, on)
        if buffer in self.private:
            return self.private[buffer][(np.arange(self.count), *place)]
        self.touch(buffer, place, on, False)
        found = self.memory[buffer]
        return found[place] if found.size else np.zeros(self.count, found.dtype)

    def move(self, call: Any, on: Any) -> None:
        """Move neighbours of the last dimension in one access, which must be aligned in memory."""
        to, start = ([self.eval(i, on) for i in a.indices] for a in call.args)
        target, source = (a.source for a in call.args)
        size = int(call.attrs["bytes"]) // numpy_type(nodes.element_type(source)).itemsize
        for at, buffer in ((to, target), (start, source)):
            if buffer not in self.private:
                flat = np.ravel_multi_index(self.place(buffer, at, on), self.memory[buffer].shape)
                assert (flat[on] % size == 0).all(), f"misaligned access of {buffer.name}"
        for k in range(size):
            self.write(target, [*to[:-1], to[-1] + k], self.read(source, [*start[:-1], start[-1] + k], on), on)

    def touch(self, buffer: Any, place: Any, on: Any, store: bool) -> None:
        """Refuse what two threads do to one element in one step, unless both read."""
        size = max(1, int(np.prod(self.memory[buffer].shape)))
        shape = self.memory[buffer].shape or (1,)
        flat = np.ravel_multi_index(tuple(p[on] for p in place), shape) if place else np.zeros(on.sum(), dtype=int)
        threads = np.nonzero(on)[0]
        writers = self.writers.setdefault(buffer, np.full(size, -1))
        readers = self.readers.setdefault(buffer, np.full(size, -1))
        known = writers[flat]
        assert ((known == -1) | (known == threads)).all(), f"race on {buffer.name}"
        if not store:
            seen = readers[flat]
            readers[flat] = np.where((seen == -1) | (seen == threads), threads, -2)
            order = np.argsort(flat, kind="stable")
            same = flat[order][1:] == flat[order][:-1]
            readers[flat[order][1:][same]] = -2
            return
        seen = readers[flat]
        assert ((seen == -1) | (seen == threads)).all(), f"race on {buffer.name}: written after a read"
        assert len(np.unique(flat)) == len(flat), f"race on {buffer.name}: two threads write"
        writers[flat] = threads

    # Expressions

    def eval(self, e: Any, on: Any) -> Any:
        name = type(e).__name__
        if name in _BINARY:
            return self.binary(name, e.a, e.b, on)
        return getattr(self, f"get_{name}")(e, on)

    def binary(self, name: str, a: Any, b: Any, on: Any) -> Any:
        x, y = self.eval(a, on), self.eval(b, on)
        if name in ("And", "Or"):
            return _BINARY[name](x, y)
        assert x.dtype == y.dtype, f"{name} of {x.dtype} and {y.dtype}"
        if name in ("FloorDiv", "FloorMod"):
            y = np.where(y == 0, y.dtype.type(1), y)
        result = _BINARY[name](x, y)
        return result if result.dtype == bool else result.astype(x.dtype)

    def constant(self, value: Any, dtype: str) -> Any:
        return np.full(self.count, value, dtype=numpy_type(dtype))

    def get_IntImm(self, e: Any, on: Any) -> Any:
        return self.constant(int(e.value), nodes.dtype_of(e))

    def get_FloatImm(self, e: Any, on: Any) -> Any:
        return self.constant(float(e.value), nodes.dtype_of(e))

    def get_Var(self, e: Any, on: Any) -> Any:
        return self.vars[e]

    def get_TensorLoad(self, e: Any, on: Any) -> Any:
        return self.read(e.source, [self.eval(i, on) for i in e.indices], on)

    get_BufferLoad = get_TensorLoad

    def get_Cast(self, e: Any, on: Any) -> Any:
        return self.eval(e.value, on).astype(numpy_type(nodes.dtype_of(e)))

    def get_Not(self, e: Any, on: Any) -> Any:
        return ~self.eval(e.a, on)

    def get_Select(self, e: Any, on: Any) -> Any:
        return np.where(self.eval(e.condition, on), self.eval(e.true_value, on), self.eval(e.false_value, on))

    def get_Let(self, e: Any, on: Any) -> Any:
        self.vars[e.var] = self.eval(e.value, on)
        return self.eval(e.body, on)

    def get_Call(self, e: Any, on: Any) -> Any:
        name = nodes.operator_name(e)
        if name == "if_then_else":
            condition = self.eval(e.args[0], on)
            yes, no = self.lazily(e.args[1], on & condition), self.lazily(e.args[2], on & ~condition)
            return np.where(condition, no if yes is None else yes, yes if no is None else no)
        if name == "tile.shuffle":
            return self.shuffle(e, on)
        if name == "tile.vote":
            return self.vote(e, on)
        if name == "tile.move":
            return self.move(e, on)
        if name == "tile.instruction":
            return self.instructions[str(e.attrs["name"])](self, e, on)
        args = [self.eval(a, on) for a in e.args]
        if name == "reinterpret":
            return args[0].view(numpy_type(nodes.dtype_of(e)))
        if name in _UNARY:
            return _UNARY[name](args[0])
        return self.binary(name, *e.args, on)

    def lazily(self, e: Any, on: Any) -> Any:
        return self.eval(e, on) if on.any() else None

    # Lanes

    def lanes(self, mask: Any, on: Any) -> Any:
        """Return for each thread the first thread of its group; the mask must be the lanes that are here."""
        threads = np.arange(self.count)
        first = threads // self.width * self.width
        for low in range(0, self.count, self.width):
            here = on[low : low + self.width]
            if here.any():
                assert here.all(), "a lane that exists does not take part"
                bits = sum(1 << k for k in range(len(here)))
                assert (mask[low : low + len(here)] == bits).all(), "the mask does not fit"
        return first

    def shuffle(self, e: Any, on: Any) -> Any:
        mask, value, amount = (self.eval(a, on) for a in e.args)
        assert value.dtype == np.uint32
        self.shuffles += 1
        mode, width = str(e.attrs["mode"]), int(e.attrs["width"])
        first = self.lanes(mask, on)
        lane = np.arange(self.count) - first
        low = lane // width * width
        high = low + width - 1
        if mode == "idx":
            source, inside = low | (amount & (self.width - 1) & (width - 1)), np.ones(self.count, dtype=bool)
        elif mode == "up":
            source = lane - (amount & (self.width - 1))
            inside = source >= low
        else:
            source = lane + (amount & (self.width - 1)) if mode == "down" else lane ^ (amount & (self.width - 1))
            inside = source <= high
        source = np.where(inside, source, lane) + first
        assert (source < self.count)[on].all(), "a lane that does not exist is read"
        return value[np.minimum(source, self.count - 1)]

    def vote(self, e: Any, on: Any) -> Any:
        mask, condition = (self.eval(a, on) for a in e.args)
        first = self.lanes(mask, on)
        mode = str(e.attrs["mode"])
        out = []
        for low in first:
            here = condition[low : low + self.width]
            out.append(sum(1 << k for k, x in enumerate(here) if x) if mode == "ballot" else getattr(here, mode)())
        return np.array(out, dtype=numpy_type(nodes.dtype_of(e)))
