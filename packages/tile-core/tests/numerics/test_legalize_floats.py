"""The storage-type pass: IR in, kernels run on this machine, results against the NumPy codecs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tile_core.compat.tvm import ir, tirx
from tile_core.ir.attributes import ROLE
from tile_core.numerics.codecs import decode, encode, pack4, unpack4
from tile_core.passes.legalize_floats import STORAGE, legalize_floats
from tile_runtime.numerics.formats import FORMATS

pytestmark = pytest.mark.sweep(4)

NATIVE = frozenset({"float16", "float32", "float64"})
NARROW = [n for n in FORMATS if n.startswith("float8")]


def buffer(shape: tuple[Any, ...], dtype: str, name: str, scope: str = "global") -> Any:
    return tirx.decl_buffer(shape, dtype, name, scope=scope, layout=None, data_alignment=1)


def loop(extent: Any, body: Callable[[Any], Any], kind: Any = None, notes: dict[str, Any] | None = None) -> Any:
    i = tirx.Var("i", "int32")
    return tirx.For(i, 0, extent, tirx.ForKind.SERIAL if kind is None else kind, body(i), None, notes)


def elementwise_func(build: Callable[..., Any], inputs: list[str], output: str, count: int | None = None) -> Any:
    n = tirx.Var("n", "int32") if count is None else count
    params = [buffer((n,), d, f"A{k}") for k, d in enumerate(inputs)]
    out = buffer((n,), output, "C")
    body = loop(n, lambda i: tirx.BufferStore(out, build(*[tirx.BufferLoad(p, [i]) for p in params]), [i]))
    return tirx.PrimFunc([*params, out], body)


def float32(value: float) -> Any:
    return tirx.FloatImm("float32", value)


def bf16(values: np.ndarray) -> np.ndarray:
    return encode(values, "bfloat16")


def run(compile_func: Any, func: Any, *arrays: np.ndarray) -> None:
    compile_func(legalize_floats(func, NATIVE))(*arrays)


@pytest.mark.parametrize("name", [*NARROW, "bfloat16"])
def test_cast_both_ways(compile_func: Any, edge_values: Any, name: str) -> None:
    values = edge_values(name, 21)[:20_000]
    codes = np.full(len(values), 0xA5, STORAGE[name])
    run(compile_func, elementwise_func(lambda v: tirx.Cast(name, v), ["float32"], name), values, codes)
    np.testing.assert_array_equal(codes, encode(values, name))
    back = np.full(len(values), 7, np.float32)
    run(compile_func, elementwise_func(lambda v: tirx.Cast("float32", v), [name], "float32"), codes, back)
    np.testing.assert_array_equal(back, decode(codes, name))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (s, t)
        for s in ("float16", "bfloat16", "float8_e5m2", "int32", "int8", "float64")
        for t in ("float8_e4m3fn", "bfloat16")
        if s != t
    ],
)
def test_cast_between(compile_func: Any, source: str, target: str) -> None:
    rng = np.random.default_rng(22)
    if source.startswith(("int", "float64")):
        data = (rng.standard_normal(4096) * 200).astype(source)
        values = data.astype(np.float64)
    else:
        kind = np.uint8 if FORMATS[source].bits == 8 else np.uint16
        raw = rng.integers(0, 1 << FORMATS[source].bits, 4096).astype(kind)
        data, values = raw.view(np.float16) if source == "float16" else raw, decode(raw, source)
    codes = np.full(4096, 0xA5, STORAGE[target])
    run(compile_func, elementwise_func(lambda v: tirx.Cast(target, v), [source], target), data, codes)
    wanted = encode(values, target)
    nan = np.isnan(decode(wanted, target))  # whose bits mean nothing
    np.testing.assert_array_equal(codes[~nan], wanted[~nan])
    assert np.isnan(decode(codes[nan], target)).all()


OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[..., np.ndarray]]] = {
    "add": (tirx.Add, np.add), "sub": (tirx.Sub, np.subtract), "mul": (tirx.Mul, np.multiply),
    "div": (tirx.Div, np.divide),
    "chain": (lambda a, b: tirx.Add(tirx.Mul(a, b), a), lambda a, b: np.add(np.multiply(a, b), a)),
    "sqrt": (lambda a, b: tirx.sqrt(a), lambda a, b: np.sqrt(a)),
    "select": (lambda a, b: tirx.Select(tirx.LT(a, b), a, b), lambda a, b: np.where(a < b, a, b)),
    "if": (lambda a, b: tirx.if_then_else(a < b, a, b), lambda a, b: np.where(a < b, a, b)),
    "constant": (lambda a, b: tirx.Mul(a, tirx.FloatImm("bfloat16", 1.1)), lambda a, b: a * ml_dtypes.bfloat16(1.1)),
    "let": (lambda a, b: (lambda v: tirx.Let(v, tirx.Mul(a, b), tirx.Add(v, v)))(tirx.Var("v", "bfloat16")),
            lambda a, b: np.multiply(a, b) + np.multiply(a, b)),
}  # fmt: skip


@pytest.mark.parametrize("name", list(OPERATIONS))
def test_bfloat16_arithmetic_rounds_each_operation(compile_func: Any, name: str) -> None:
    build, reference = OPERATIONS[name]
    rng = np.random.default_rng(23)
    a, b = (bf16(rng.standard_normal(4096)) for _ in range(2))
    a[:4] = [0x7FC0, 0x7F80, 0x8000, 0x0001]
    out = np.full(4096, 0xA5A5, np.uint16)
    run(compile_func, elementwise_func(build, ["bfloat16"] * 2, "bfloat16"), a, b, out)
    with np.errstate(all="ignore"):
        expected = reference(a.view(ml_dtypes.bfloat16), b.view(ml_dtypes.bfloat16)).astype(np.float32)
    np.testing.assert_array_equal(decode(out, "bfloat16"), expected)


def test_float16_as_a_foreign_type(compile_func: Any) -> None:
    rng = np.random.default_rng(24)
    a, b = (rng.standard_normal(1000).astype(np.float16) for _ in range(2))
    func = legalize_floats(elementwise_func(tirx.Mul, ["float16"] * 2, "float16"), frozenset({"float32"}))
    assert "float16" not in str(func)
    out = np.zeros(1000, np.uint16)
    compile_func(func)(a.view(np.uint16), b.view(np.uint16), out)
    np.testing.assert_array_equal(out.view(np.float16), a * b)


def test_scratch_binds_views_and_control_flow(compile_func: Any) -> None:
    """All statement kinds around fp8 values: allocation, view, bind, branch, while, constant, reinterpret."""
    a, c = buffer((64,), "float8_e4m3fn", "A"), buffer((64,), "float8_e4m3fn", "C")
    scratch, count = buffer((64,), "float8_e4m3fn", "S", "local"), buffer((1,), "int32", "k", "local")
    view = tirx.decl_buffer((64,), "uint8", "V", data=tirx.buffer_data(scratch), scope="local", layout=None)
    x, k = tirx.Var("x", "float8_e4m3fn"), tirx.BufferLoad(count, [0])
    first = loop(64, lambda i: tirx.SeqStmt([
        tirx.Bind(x, tirx.BufferLoad(a, [i])),
        tirx.IfThenElse(i < 32, tirx.BufferStore(scratch, x, [i]),
                        tirx.BufferStore(scratch, tirx.FloatImm("float8_e4m3fn", 1.5), [i])),
    ]))  # fmt: skip
    step = tirx.SeqStmt([
        tirx.BufferStore(c, tirx.reinterpret("float8_e4m3fn", tirx.BufferLoad(view, [k])), [k]),
        tirx.BufferStore(count, k + 1, [0]),
    ])  # fmt: skip
    second = tirx.SeqStmt([tirx.BufferStore(count, tirx.IntImm("int32", 0), [0]), tirx.While(k < 64, step)])
    attr = tirx.AttrStmt(tirx.IntImm("int32", 0), "pragma_x", tirx.IntImm("int32", 1), first)
    body = tirx.SeqStmt([tirx.AllocBuffer(scratch), tirx.AllocBuffer(count),
                         tirx.DeclBuffer(view, data=tirx.buffer_data(scratch)), attr, second])  # fmt: skip
    data = np.random.default_rng(25).integers(0, 256, 64).astype(np.uint8)
    out = np.full(64, 0xA5, np.uint8)
    func = legalize_floats(tirx.PrimFunc([a, c], body), NATIVE)
    assert "float8" not in str(func)
    compile_func(func)(data, out)
    np.testing.assert_array_equal(out, np.concatenate([data[:32], np.full(32, 0x3C, np.uint8)]))


def test_scalar_parameter(compile_func: Any) -> None:
    x, c = tirx.Var("x", "bfloat16"), buffer((1,), "float32", "C")
    func = tirx.PrimFunc([x, c], tirx.BufferStore(c, tirx.Cast("float32", x), [0]))
    out = np.zeros(1, np.float32)
    compile_func(legalize_floats(func, NATIVE))(0x3FC0, out)
    assert out[0] == 1.5


@pytest.mark.parametrize("columns", [1, 7, 8])
@pytest.mark.parametrize("name", ["int4", "uint4", "float4_e2m1fn"])
def test_packed_parameters(compile_func: Any, name: str, columns: int) -> None:
    """Return C = A and D = float32(A), packed A and C, through scratch."""
    value = "float32" if name.startswith("float") else "int32"
    a, c = buffer((3, columns), name, "A"), buffer((3, columns), name, "C")
    d, row = buffer((3, columns), value, "D"), buffer((columns,), name, "R", "local")
    fill = lambda i: loop(columns, lambda j: tirx.BufferStore(row, tirx.BufferLoad(a, [i, j]), [j]))  # noqa: E731
    drain = lambda i: loop(columns, lambda j: tirx.SeqStmt([  # noqa: E731
        tirx.BufferStore(c, tirx.BufferLoad(row, [j]), [i, j]),
        tirx.BufferStore(d, tirx.Cast(value, tirx.BufferLoad(row, [j])), [i, j]),
    ]))  # fmt: skip
    body = tirx.SeqStmt([tirx.AllocBuffer(row), loop(3, lambda i: tirx.SeqStmt([fill(i), drain(i)]))])
    nibbles = np.random.default_rng(columns).integers(0, 16, (3, columns)).astype(np.uint8)
    packed, numbers = np.full((3, (columns + 1) // 2), 0xA5, np.uint8), np.full((3, columns), 77, value)
    run(compile_func, tirx.PrimFunc([a, c, d], body), pack4(nibbles), packed, numbers)
    np.testing.assert_array_equal(unpack4(packed, columns), nibbles)
    np.testing.assert_array_equal(numbers, decode(nibbles, name))
    if columns % 2:
        assert (packed[:, -1] >> 4 == 0xA).all()  # the unused nibble is not touched


@pytest.mark.parametrize("of_bytes", [False, True])
def test_views_of_packed_memory(compile_func: Any, of_bytes: bool) -> None:
    """An int4 view of bytes, a byte view of int4: two elements per byte."""
    a, c = buffer((8,), "uint8", "A"), buffer((16,), "int8", "C")
    owner = buffer((8,), "uint8", "S", "local") if of_bytes else buffer((16,), "int4", "S", "local")
    data = tirx.buffer_data(owner)
    other = (16, "int4") if of_bytes else (8, "uint8")
    view = tirx.decl_buffer((other[0],), other[1], "V", data=data, scope="local", layout=None)
    octets, nibbles = (owner, view) if of_bytes else (view, owner)
    body = tirx.SeqStmt([
        tirx.AllocBuffer(owner), tirx.DeclBuffer(view, data=data),
        loop(8, lambda i: tirx.BufferStore(octets, tirx.BufferLoad(a, [i]), [i])),
        tirx.BufferStore(nibbles, tirx.IntImm("int4", -3), [5]),
        loop(16, lambda i: tirx.BufferStore(c, tirx.Cast("int8", tirx.BufferLoad(nibbles, [i])), [i])),
    ])  # fmt: skip
    source = np.random.default_rng(26).integers(0, 256, 8).astype(np.uint8)
    out = np.full(16, 77, np.int8)
    run(compile_func, tirx.PrimFunc([a, c], body), source, out)
    expected = decode(unpack4(source, 16), "int4")
    expected[5] = -3
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("shape", ["dynamic", "rank0"])
def test_packed_shapes(compile_func: Any, shape: str) -> None:
    n = tirx.Var("n", "int32")
    dims: tuple[Any, ...] = (n, 6) if shape == "dynamic" else ()
    a = buffer(dims, "int4", "A")
    c = buffer(dims, "int8", "C")
    copy = lambda index: tirx.BufferStore(c, tirx.Cast("int8", tirx.BufferLoad(a, index)), index)  # noqa: E731
    body = loop(n, lambda i: loop(6, lambda j: copy([i, j]))) if dims else copy([])
    nibbles = np.random.default_rng(1).integers(0, 16, (5, 6) if dims else (1,)).astype(np.uint8)
    out = np.zeros((5, 6) if dims else (), np.int8)
    run(compile_func, tirx.PrimFunc([a, c], body), pack4(nibbles) if dims else nibbles.reshape(()), out)
    np.testing.assert_array_equal(out, decode(nibbles if dims else nibbles[0], "int4"))


def test_int4_arithmetic_wraps(compile_func: Any) -> None:
    a, b = (g.ravel().astype(np.uint8) for g in np.meshgrid(np.arange(16), np.arange(16)))
    x, y = decode(a, "int4").astype(int), decode(b, "int4").astype(int)
    for node, reference in ((tirx.Add, x + y), (tirx.Sub, x - y), (tirx.Mul, x * y), (tirx.Max, np.maximum(x, y))):
        out = np.full(128, 0xA5, np.uint8)
        run(compile_func, elementwise_func(node, ["int4", "int4"], "int4", 256), pack4(a), pack4(b), out)
        np.testing.assert_array_equal(unpack4(out, 256), reference & 15)


def test_packed_stores_serialise_their_loops() -> None:
    c = buffer((4, 16), "int4", "C")
    store = lambda i, j: tirx.BufferStore(c, tirx.IntImm("int4", 3), [i, j])  # noqa: E731
    notes = {"tile.role": "parallel"}
    inner = lambda i: loop(16, lambda j: store(i, j), tirx.ForKind.VECTORIZED, notes)  # noqa: E731
    func = legalize_floats(tirx.PrimFunc([c], loop(4, inner, tirx.ForKind.PARALLEL, {"tile.role": "grid"})), NATIVE)
    assert func.body.kind == tirx.ForKind.PARALLEL
    assert func.body.body.kind == tirx.ForKind.SERIAL
    assert func.body.body.annotations[ROLE] == "serial"


@pytest.mark.parametrize("value", [-1.5, 1.06, 1e9, float("nan"), float("inf"), -0.0, 1e-45])
@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_constants(compile_func: Any, name: str, value: float) -> None:
    with np.errstate(all="ignore"):
        expected = encode(np.float32(value), name)
    direct, hidden = np.full(16, 0xA5, STORAGE[name]), np.full(16, 0xA5, STORAGE[name])
    func = legalize_floats(elementwise_func(lambda v: tirx.Cast(name, float32(value)), ["float32"], name), NATIVE)
    assert str(int(expected)) in str(func)
    compile_func(func)(np.zeros(16, np.float32), direct)
    indirect = elementwise_func(lambda v: tirx.Cast(name, tirx.Cast("float64", float32(value))), ["float32"], name)
    run(compile_func, indirect, np.zeros(16, np.float32), hidden)
    np.testing.assert_array_equal(direct, expected)
    np.testing.assert_array_equal(hidden, expected)


def test_identity_and_spans() -> None:
    func = elementwise_func(lambda v: tirx.Add(v, float32(1.0)), ["float32"], "float32")
    assert legalize_floats(func, NATIVE) is func
    native = elementwise_func(lambda v: v, ["bfloat16"], "bfloat16")
    assert legalize_floats(native, NATIVE | {"bfloat16"}) is native
    a, c = buffer((4,), "bfloat16", "A"), buffer((4,), "bfloat16", "C")
    span = ir.Span(ir.SourceName("kernel.py"), 7, 7, 1, 1)
    changed = legalize_floats(tirx.PrimFunc([a, c], tirx.BufferStore(c, tirx.BufferLoad(a, [0]), [0], span)), NATIVE)
    assert changed.body.span.line == 7


def test_attributes_survive() -> None:
    func = elementwise_func(lambda v: v, ["bfloat16"], "bfloat16").with_attr("global_symbol", "k")
    assert legalize_floats(func, NATIVE).attrs["global_symbol"] == "k"


def test_bool_needs_no_storage_type(compile_func: Any) -> None:
    """TVM keeps bool in a byte and reads 0 or 1, in vectors too."""
    n = 64
    a, c = buffer((n,), "bool", "A"), buffer((n,), "bool", "C")
    body = loop(n, lambda i: tirx.BufferStore(c, tirx.Not(tirx.BufferLoad(a, [i])), [i]), tirx.ForKind.VECTORIZED)
    data = np.random.default_rng(3).integers(0, 2, n).astype(bool)
    out = np.zeros(n, bool)
    compile_func(tirx.PrimFunc([a, c], body))(data, out)
    np.testing.assert_array_equal(out, ~data)
