"""Format of the text, and its launch attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tile_core.abi.kernel_text import SharedArray
from tile_core.compat.tvm import tirx
from tile_core.errors.base import Where
from tile_core.errors.lowering import NotExpressible
from tile_core.ir import calls, nodes
from tile_core.passes import wrapping
from tile_cuda.ptx.errors import InstructionMissing

from .kit import body_lines, buffer, kernel, passed, run, shared
from .nvrtc import assemble

int_const = nodes.int_const


def stored(value: Any, dtype: str, *params: Any) -> str:
    """The text of a value that is stored."""
    out = buffer((64,), dtype, "out")
    return body_lines(kernel([*params, out], nodes.store(out, value, [0])))[-1].removeprefix("out[0] = ").rstrip(";")


a, b, c = (tirx.Var(n, "int32") for n in "abc")
x, y = tirx.Var("x", "float32"), tirx.Var("y", "float32")

EXPRESSIONS = [
    (a + b * c, "int32", "a + b * c"),
    ((a + b) * c, "int32", "(a + b) * c"),
    (a - (b - c), "int32", "a - (b - c)"),
    (tirx.Add(tirx.shift_left(a, int_const(2)), b), "int32", "(int)((unsigned)a << 2) + b"),
    (tirx.bitwise_or(tirx.bitwise_or(a, b), c), "int32", "a | b | c"),
    (tirx.bitwise_xor(a + b, c), "int32", "(a + b) ^ c"),
    (tirx.And(tirx.Or(a < b, b < c), tirx.Not(a < c)), "bool", "(a < b || b < c) && !(a < c)"),
    (tirx.Select(a < b, x, tirx.Select(b < c, y, x)), "float32", "a < b ? x : b < c ? y : x"),
    (tirx.Cast("float32", a + b), "float32", "(float)(a + b)"),
    (tirx.Cast("int64", int_const(7)), "int64", "7LL"),
    (tirx.FloatImm("float32", 0.1), "float32", "0.1f"),
    (tirx.FloatImm("float32", float("nan")), "float32", "__int_as_float(0x7fc00000)"),
    (tirx.FloatImm("float64", float("-inf")), "float64", "__longlong_as_double(0xfff0000000000000)"),
    (tirx.FloatImm("float16", 1.0), "float16", "0x3c00"),
    (tirx.Select(a < b, tirx.FloatImm("bfloat16", 1.0), tirx.FloatImm("bfloat16", 0.0)), "bfloat16",
     "a < b ? (bf16)0x3f80 : (bf16)0x0000"),
    (x - y * tirx.FloatImm("float32", -2.0), "float32", "x - y * -2.0f"),
    (tirx.exp(x) + tirx.sqrt(y), "float32", "expf(x) + sqrt_approx_f32(y)"),
    (tirx.exp2(x * tirx.FloatImm("float32", 2.0) - y), "float32", "exp2_of_half_f32(x * 1.0f - y * 0.5f)"),
    (tirx.exp2(x * y), "float32", "exp2_of_half_f32(x * y * 0.5f)"),
    (x / y, "float32", "div_full_f32(x, y)"),
    (x / tirx.FloatImm("float32", 4.0), "float32", "x * 0.25f"),
    (x / tirx.FloatImm("float32", 1e-39), "float32", "div_full_f32(x, 1e-39f)"),
    (tirx.floor(x / y), "float32", "floorf(x / y)"),
    (tirx.pow(x, y), "float32", "(float)pow((double)x, (double)y)"),
    (tirx.Cast("int8", a), "int8", "(signed char)a"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "dtype", "text"), EXPRESSIONS, ids=[t for _, _, t in EXPRESSIONS])
def test_expressions_have_the_parentheses_that_a_reader_needs(value: Any, dtype: str, text: str) -> None:
    assert stored(value, dtype, a, b, c, x, y) == text


def test_users_arithmetic_wraps_and_indices_do_not_hide() -> None:
    data = buffer((64,), "int32", "data")
    value = tirx.Add(tirx.Mul(data[a], b), data[a + 1])
    out = buffer((64,), "int32", "out")
    line = body_lines(kernel([data, a, b, out], wrapping.hide(nodes.store(out, value, [0]))))[-1]
    assert line == "out[0] = (unsigned)data[a] * (unsigned)b + (unsigned)data[a + 1];"


def test_narrow_arithmetic_is_converted_back_unless_the_store_does_it() -> None:
    p, q = tirx.Var("p", "int8"), tirx.Var("q", "int8")
    assert stored(tirx.Add(p, q), "int8", p, q) == "p + q"
    assert stored(tirx.Cast("int32", tirx.Add(p, q)), "int32", p, q) == "(int)(signed char)(p + q)"


def test_fast_functions_are_by_option() -> None:
    out = buffer((64,), "float32", "out")
    value = tirx.Div(tirx.exp(x), tirx.sigmoid(y))
    text = kernel([x, y, out], nodes.store(out, value, [0]), numerics="fast")
    assert body_lines(text)[-1] == "out[0] = __fdividef(__expf(x), __fdividef(1.0f, 1.0f + __expf(-y)));"
    assert assemble(text.text, "sm_80") == ""


def test_the_head_states_assumptions_for_the_compiler() -> None:
    A, B, C = (buffer((tirx.Var("m", "int32"),), "float32", n) for n in "ABC")
    body = nodes.seq([nodes.store(B, A[0] + C[0], [0])])
    text = kernel([A, B, C], body, threads=96, aliased=frozenset({"C"}))
    lines = text.text.splitlines()
    start = next(i for i, line in enumerate(lines) if "__global__" in line)
    assert lines[start : start + 5] == [
        'extern "C" __global__ void __launch_bounds__(96) kernel(',
        "    const float* __restrict__ A,",
        "    float* __restrict__ B,",
        "    const float* C",
        ") {",
    ]
    assert [p.access for p in text.facts.params] == ["read", "write", "read"]


def test_numbers_of_threads_and_blocks_take_the_users_names_and_simplify_indices() -> None:
    m = tirx.Var("m", "int32")
    A = buffer((m, 128), "float32", "A")
    bx, i = tirx.Var("row_block", "int32"), tirx.Var("i", "int32")
    t = calls.thread_index(0)
    indices = [bx * 8 + tirx.floordiv(t, 16) + 0, tirx.floormod(t, 16) * 8 + i]
    loop = nodes.for_loop(i, 8, nodes.store(A, nodes.const(1.0, "float32"), indices), "unroll")
    body = nodes.seq([tirx.Bind(bx, calls.block_index(0)), loop])
    text = kernel([A, m], body, threads=128, grid=(("ceildiv", "m", 8), 1, 1))
    assert body_lines(text) == [
        "const int row_block = blockIdx.x;",
        "const int tx = threadIdx.x;",
        "#pragma unroll",
        "for (int i = 0; i < 8; ++i) {",
        "A[row_block * 1024 + tx * 8 + i] = 1.0f;",
        "}",
    ]
    assert text.facts.blocks({"m": 17}) == (3, 1, 1)


def test_offsets_beyond_32_bits_are_computed_in_64() -> None:
    A = buffer((1 << 20, 1 << 12), "float32", "A")
    line = body_lines(kernel([A, a, b], nodes.store(A, nodes.const(0, "float32"), [a, b])))[-1]
    assert line == "(A + (long long)a * 4096LL)[b] = 0.0f;"


def test_shared_arrays_variables_and_views() -> None:
    S, declare = shared((256,), "float16", "A_s", 4096)
    v, make_v = nodes.alloc([1], "float32", "v", "local.var")
    r, make_r = nodes.alloc([8], "float16", "r", "local")
    view = tirx.decl_buffer([4], "uint32", "words", data=tirx.buffer_data(r), scope="local", layout=None)
    out = buffer((64,), "uint32", "out")
    body = nodes.seq(
        [
            declare, make_v, make_r, tirx.DeclBuffer(view, data=tirx.buffer_data(r)),
            calls.move(r, [0], S, [8], 16), nodes.store(v, nodes.cast(r[1], "float32"), [0]),
            nodes.store(out, nodes.cast(v[0], "uint32") + view[2], [0]),
        ]
    )  # fmt: skip
    where = SharedArray("A_s", 4096, 512, "float16")
    text = kernel([out], body, shared_bytes=4608, shared=(where,))
    assert body_lines(text) == [
        "extern __shared__ __align__(1024) unsigned char smem[];",
        "f16* const A_s = (f16*)(smem + 4096);",
        "float v;",
        "__align__(16) f16 r[8];",
        "unsigned* const words = (unsigned*)r;",
        "*(uint4*)&r[0] = *(const uint4*)&A_s[8];",
        "v = cvt_f32_f16(r[1]);",
        "out[0] = (unsigned)v + words[2];",
    ]
    assert text.facts.shared == (where,)
    assert assemble(text.text, "sm_80") == ""


def test_operands_of_instructions_have_the_types_that_they_take() -> None:
    d, make_d = nodes.alloc([4], "float32", "d", "local")
    h, make_h = nodes.alloc([8], "bfloat16", "h", "local")
    name = "mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32"
    args = [calls.address(d, [0]), calls.address(h, [0]), calls.address(h, [4]), calls.address(d, [0])]
    text = kernel([], nodes.seq([make_d, make_h, calls.execute(name, args)]))
    assert body_lines(text)[-1] == f"{name}(&d[0], (unsigned*)&h[0], (unsigned*)&h[4], &d[0]);"
    assert "__align__(16) bf16 h[8];" in body_lines(text)
    assert "float d[4];" in body_lines(text)


def test_reserved_words_are_no_names() -> None:
    smem, exp = buffer((4,), "float32", "smem"), tirx.Var("expf", "int32")
    text = kernel([smem, exp], nodes.store(smem, tirx.exp(smem[exp]), [0]), grid=("expf", 1, 1))
    assert body_lines(text)[-1] == "smem_1[0] = expf(smem_1[expf_1]);"
    assert text.facts.grid == ("expf_1", 1, 1)
    assert assemble(text.text, "sm_80") == ""


def test_lines_name_the_users_source() -> None:
    out = buffer((4,), "float32", "out")
    spans = [nodes.span_of(Where("k.py", n)) for n in (3, 3, 7)]
    body = nodes.seq([nodes.store(out, nodes.const(i, "float32"), [i], s) for i, s in enumerate(spans)])
    text = kernel([out], body)
    assert "//" not in text.text
    line = next(i for i, t in enumerate(text.text.splitlines(), 1) if "out[2]" in t)
    assert text.facts.line_map.where(line) == Where("k.py", 7)
    assert [t for t in body_lines(kernel([out], body, line_info=True)) if t.startswith("//")] == [
        "// k.py:3", "// k.py:7",
    ]  # fmt: skip


def test_unprintable_and_unsupported_statements_are_refused() -> None:
    out = buffer((4,), "float32", "out")
    with pytest.raises(NotExpressible, match="CUDA C\\+\\+ cannot express the type float8_e4m3fn"):
        kernel([buffer((4,), "float8_e4m3fn", "A"), out], nodes.store(out, x, [0]))
    with pytest.raises(InstructionMissing, match="sm_80 has no instruction cvt_rn_f16x2_e4m3x2"):
        kernel([out], calls.execute("cvt_rn_f16x2_e4m3x2", [int_const(0)]))


def test_control_flow() -> None:
    """Loops with jumps, conditions that need statements, and lazily evaluated choices."""
    n = 64
    X, Y, i, k = buffer((n,), "int32", "X"), buffer((n,), "int32", "Y"), tirx.Var("i", "int32"), tirx.Var("k", "int32")
    left, make = nodes.alloc([1], "int32", "left", "local.var")
    count, make_count = nodes.alloc([1], "int32", "count", "local.var")
    v = tirx.Var("v", "int32")
    inside = tirx.And(i + 1 < n, tirx.Let(v, X[i + 1], tirx.And(v > 2, v < 90)))
    w = tirx.Var("w", "int32")
    positive = tirx.Let(w, left[0], w > 1)
    body = nodes.seq(
        [
            tirx.Bind(i, calls.thread_index(0)), make, make_count,
            nodes.store(left, X[i], [0]), nodes.store(count, int_const(0), [0]),
            tirx.While(positive, nodes.seq([
                nodes.store(count, count[0] + 1, [0]), nodes.store(left, tirx.floordiv(left[0], int_const(2)), [0]),
                tirx.IfThenElse(tirx.EQ(left[0], int_const(9)), tirx.Continue(), None),
                tirx.IfThenElse(tirx.EQ(left[0], int_const(5)), tirx.Break(), None),
            ])),
            nodes.for_loop(k, 5, tirx.IfThenElse(k > 3, tirx.Break(), nodes.store(count, count[0] + k, [0])),
                           step=int_const(2)),
            tirx.IfThenElse(inside, nodes.store(count, count[0] + 1000, [0]), None),
            nodes.store(Y, count[0] + tirx.if_then_else(i > 0, X[i - 1], int_const(-1)), [i]),
        ]
    )  # fmt: skip
    data = np.random.default_rng(1).integers(0, 100, n).astype(np.int32)

    def want(t: int) -> int:
        value, total = int(data[t]), 0
        while value > 1:
            total, value = total + 1, value // 2
            if value == 5:
                break
        total += 0 + 2
        if t + 1 < n and 2 < data[t + 1] < 90:
            total += 1000
        return total + (int(data[t - 1]) if t else -1)

    found = run(kernel([X, Y], passed(body), threads=n), data, np.full(n, -7, np.int32)).outputs["Y"]
    np.testing.assert_array_equal(found, [want(t) for t in range(n)])


def test_prints_and_assertions() -> None:
    X, t = buffer((2, 3), "float32", "X"), calls.thread_index(0)
    region = nodes.region(X, [0, 1], [2, 2])
    show = nodes.tile_call("print", [t, region, nodes.const(1, "uint64")], {"format": 'is {} "100%" {} {{{}}}\n'})
    claim = nodes.tile_call("device_assert", [X[0, 0] > X[0, 1]], {"message": "50% ok"})
    where = nodes.span_of(Where("k.py", 4))
    only = tirx.IfThenElse(tirx.EQ(t, int_const(1)), tirx.Evaluate(show), None)
    text = kernel(
        [X], nodes.seq([only, calls.sync_threads(), tirx.Evaluate(claim, where)]), threads=2, access={"X": "read"}
    )
    data = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
    result = run(text, data, faults=True)
    assert 'is 1 "100%" [ 0.25 0.5 1 1.25] {1}\n' in result.printed
    assert "device assertion failed: 50% ok (k.py:4, thread 1)" in result.printed
    assert {report.kind for report in result.reports} == {"assertion"}
