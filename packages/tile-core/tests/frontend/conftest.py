"""Helpers: run a traced program in a plain Python interpreter of the IR, and look at refusals."""

import inspect
import math

import numpy as np
import pytest

from tile_core.compat.tvm import ir, tirx
from tile_core.errors import TileError
from tile_core.ir import nodes
from tile_core.numerics.extremes import expand_extremes


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


_BINARY = {
    "Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b, "FloorDiv": lambda a, b: a // b,
    "FloorMod": lambda a, b: a % b, "LT": lambda a, b: a < b, "LE": lambda a, b: a <= b, "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b, "EQ": lambda a, b: a == b, "NE": lambda a, b: a != b, "Max": max, "Min": min,
    "LShift": lambda a, b: a << b, "RShift": lambda a, b: a >> b, "BitwiseAnd": lambda a, b: a & b,
    "BitwiseOr": lambda a, b: a | b, "BitwiseXor": lambda a, b: a ^ b,
    "Mod": lambda a, b: int(math.fmod(int(a), int(b))),
}  # fmt: skip


class Interpreter:
    """Executes the statements that the frontend emits; tile calls are recorded."""

    def __init__(self):
        self.memory = {}
        self.env = {}
        self.calls = []
        self.divisions = 0

    def run(self, program, *arrays):
        func = program.func
        for param, array in zip(func.params, arrays, strict=True):
            if tirx.is_buffer_var(param):
                self.memory[param] = array
                for dim, extent in zip(param.shape, array.shape, strict=True):
                    if isinstance(dim, tirx.Var):
                        self.env[dim] = np.int64(extent)
            else:
                self.env[param] = array
        self.stmt(expand_extremes(func.body))
        return self

    def stmt(self, s):
        kind = type(s).__name__
        getattr(self, f"do_{kind}")(s)

    def do_SeqStmt(self, s):
        for child in s.seq:
            self.stmt(child)

    def do_For(self, s):
        low, extent = int(self.expr(s.min)), int(self.expr(s.extent))
        for i in range(low, low + extent):
            self.env[s.loop_var] = np.dtype(nodes.dtype_of(s.loop_var)).type(i)
            try:
                self.stmt(s.body)
            except _Continue:
                continue
            except _Break:
                break

    def do_While(self, s):
        while self.expr(s.condition):
            try:
                self.stmt(s.body)
            except _Continue:
                continue
            except _Break:
                break

    def do_Break(self, s):
        raise _Break

    def do_Continue(self, s):
        raise _Continue

    def do_IfThenElse(self, s):
        if self.expr(s.condition):
            self.stmt(s.then_case)
        elif s.else_case is not None:
            self.stmt(s.else_case)

    def do_Bind(self, s):
        self.env[s.var] = self.expr(s.value)

    def do_AllocBuffer(self, s):
        shape = [nodes.as_int(d) for d in s.buffer.shape]
        self.memory[s.buffer] = np.full(shape, 77, dtype=nodes.element_type(s.buffer))

    def do_Evaluate(self, s):
        if isinstance(s.value, ir.Call):
            self.calls.append(s.value)

    def do_BufferStore(self, s):
        value = self.expr(s.value)
        self.memory[s.buffer][tuple(int(self.expr(i)) for i in s.indices)] = value

    def expr(self, e):
        kind = type(e).__name__
        if isinstance(e, (tirx.IntImm, tirx.FloatImm)):
            return np.dtype(nodes.dtype_of(e)).type(e.value)
        if isinstance(e, tirx.Var):
            return self.env[e]
        if kind in ("BufferLoad", "TensorLoad"):
            buffer = e.buffer if hasattr(e, "buffer") else e.source
            return self.memory[buffer][tuple(int(self.expr(i)) for i in e.indices)]
        if kind in _BINARY:
            self.divisions += kind in ("FloorDiv", "FloorMod")
            return self.typed(e, _BINARY[kind](self.expr(e.a), self.expr(e.b)))
        if kind == "Div":
            a, b = self.expr(e.a), self.expr(e.b)
            return self.typed(e, a / b if np.issubdtype(type(a), np.floating) else int(a / b))
        if kind == "And":
            return bool(self.expr(e.a)) and bool(self.expr(e.b))
        if kind == "Or":
            return bool(self.expr(e.a)) or bool(self.expr(e.b))
        if kind == "Not":
            return not self.expr(e.a)
        if kind == "Cast":
            return self.typed(e, self.expr(e.value))
        if kind == "Select":
            return self.expr(e.true_value) if self.expr(e.condition) else self.expr(e.false_value)
        if kind == "Let":
            self.env[e.var] = self.expr(e.value)
            return self.expr(e.body)
        return self.call(e)

    def typed(self, e, value):
        dtype = nodes.dtype_of(e)
        return bool(value) if dtype == "bool" else np.array(value).astype(dtype)[()]

    def call(self, e):
        name = str(e.op.name).rpartition(".")[2]
        if name == "if_then_else":
            return self.expr(e.args[1]) if self.expr(e.args[0]) else self.expr(e.args[2])
        args = [self.expr(a) for a in e.args]
        if name == "reinterpret":
            return np.array(args[0]).view(nodes.dtype_of(e))[()]
        known = {
            "exp": np.exp, "sqrt": np.sqrt, "floor": np.floor, "fabs": np.abs, "isnan": np.isnan, "pow": np.power,
            "shift_left": np.left_shift, "shift_right": np.right_shift, "bitwise_and": np.bitwise_and,
            "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor, "bitwise_not": np.bitwise_not,
            "nearbyint": np.round, "popcount": lambda x: bin(int(x)).count("1"), "trunc": np.trunc,
        }  # fmt: skip
        return self.typed(e, known[name](*args))


@pytest.fixture
def execute():
    """Run a program on arrays; scalars are NumPy scalars. Returns the interpreter."""

    def run(program, *arrays):
        with np.errstate(all="ignore"):
            return Interpreter().run(program, *arrays)

    return run


@pytest.fixture
def refused():
    """Check that a function raises a certain error at its line marked ``# here``, with code and text."""

    def check(error, code, text, build):
        with pytest.raises(TileError) as info:
            build()
        assert type(info.value) is error, str(info.value)
        assert info.value.code == code
        assert text in str(info.value), str(info.value)
        assert info.value.help
        lines, first = inspect.getsourcelines(build)
        marked = [first + n for n, line in enumerate(lines) if line.rstrip().endswith("# here")]
        if marked:
            assert info.value.where is not None, "no place"
            assert info.value.where.file == inspect.getsourcefile(build)
            assert info.value.where.line == marked[0]
        return info.value

    return check
