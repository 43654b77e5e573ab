# Kernels bind names that only the trace looks at, and call an output O.
# ruff: noqa: F841, E741, RUF059
"""Arithmetic: promotion, constants, functions of the language against Python and NumPy."""

import math

import numpy as np
import pytest

import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.errors.language import BadArgument, BadOperand, ConstantDoesNotFit, NotCompileTime
from tile_core.ir.attributes import FORMAT, MESSAGE

NAN, INF = float("nan"), float("inf")


def types_of(build):
    """Trace ``build`` on one element of several types and return the types of its results."""
    found = []

    @T.prim_func
    def k(
        H: T.Tensor((4,), "float16"), B: T.Tensor((4,), "bfloat16"), F: T.Tensor((4,), "float32"),
        D: T.Tensor((4,), "float64"), E: T.Tensor((4,), "float8_e4m3fn"), I8: T.Tensor((4,), "int8"),
        U8: T.Tensor((4,), "uint8"), I32: T.Tensor((4,), "int32"), U32: T.Tensor((4,), "uint32"),
        I64: T.Tensor((4,), "int64"), P: T.Tensor((4,), "bool"),
    ):  # fmt: skip
        with T.Kernel(1) as bx:
            results = build(H[0], B[0], F[0], D[0], E[0], I8[0], U8[0], I32[0], U32[0], I64[0], P[0])
            found.extend(str(r.dtype) for r in results)

    return found


def test_promotion():
    def build(h, b, f, d, e, i8, u8, i32, u32, i64, p):
        return [
            (h + 1, "float16"), (h * 0.5, "float16"), (h + b, "float32"), (h + f, "float32"), (f * d, "float64"),
            (e + e, "float32"), (e * 2, "float32"), (e + h, "float32"), (i8 + 1, "int8"), (i8 + u8, "uint8"),
            (i8 + i32, "int32"), (i32 + u32, "uint32"), (i64 + u32, "int64"), (i32 + 0.5, "float32"),
            (i8 * h, "float16"), (i32 / 2, "float32"), (i64 / 3, "float64"), (p + 1, "int32"), (p + i8, "int8"),
            (p & p, "bool"), (i32 < 0.5, "bool"), (-h, "float16"), (-i8, "int8"), (~p, "bool"), (abs(i8), "int8"),
            (i8 << 1, "int8"), (1 << i8, "int8"), (p + p, "int32"), (i32 // 2, "int32"), (f // 2, "float32"),
            (h % 2.0, "float16"), (h * np.float64(2), "float16"), (i32 * np.int64(2), "int32"),
            (h * np.float32(2), "float32"),
        ]  # fmt: skip

    expected = []

    def values(*args):
        pairs = build(*args)
        expected.extend(t for _, t in pairs)
        return [v for v, _ in pairs]

    assert types_of(values) == expected


def result_of(execute, build, *values, dtype="float32", out="float32"):
    """Run ``build`` on elements of a tensor that holds ``values`` and return the result."""

    @T.prim_func
    def k(A: T.Tensor((len(values),), dtype), O: T.Tensor((1,), out)):
        with T.Kernel(1) as bx:
            O[0] = build(*[A[i] for i in range(len(values))])

    result = np.zeros(1, out)
    execute(k, np.array(values, dtype), result)
    return result[0]


def test_float_identities_are_not_folded(execute):
    for value in (NAN, INF):
        assert math.isnan(result_of(execute, lambda x: x * 0.0, value))
        assert math.isnan(result_of(execute, lambda x: x - x, value))
    assert math.copysign(1, result_of(execute, lambda x: -x, 0.0)) == -1
    assert math.copysign(1, result_of(execute, lambda x: -x, -0.0)) == 1


@pytest.mark.parametrize("b", [NAN, INF, -INF, 0.0, -0.0, 1.5])
@pytest.mark.parametrize("a", [NAN, INF, -INF, 0.0, -0.0, -2.0])
def test_max_and_min(a, b, execute):
    # peer bug #2882: a constant on either side, too
    order = lambda x: (x, math.copysign(1, x))  # noqa: E731
    numbers = [x for x in (a, b) if x == x] or [NAN]
    for function, pick in ((T.max, max), (T.min, min)):
        expected = pick(numbers, key=order)
        for build, values in (
            (lambda x, y, f=function: f(x, y), (a, b)),
            (lambda x, f=function: f(x, b), (a,)),
            (lambda y, f=function: f(a, y), (b,)),
        ):
            found = result_of(execute, build, *values)
            assert np.array_equal(found, np.float32(expected), equal_nan=True), (function, a, b)
            assert np.isnan(found) or math.copysign(1, found) == math.copysign(1, expected)
        found = result_of(execute, lambda x, y, f=function: f(x, y, nan_propagate=True), a, b)
        assert np.isnan(found) == (a != a or b != b)


def test_clamp(execute):
    # peer bug #3024
    assert math.isnan(result_of(execute, lambda x: T.clamp(x, 0.0, 1.0), NAN))
    for value, expected in ((-3.0, 0.0), (0.25, 0.25), (7.0, 1.0), (INF, 1.0), (-INF, 0.0)):
        assert result_of(execute, lambda x: T.clamp(x, 0.0, 1.0), value) == expected
    assert T.clamp(5, 0, 3) == 3


@pytest.mark.parametrize("n", [-3, -1, 0, 1, 2, 7, 2.0, -2.0])
@pytest.mark.parametrize("x", [3.0, -2.0, 0.0, INF, NAN])
def test_pow_with_constant_exponents(x, n, execute):
    # peer bug #2614
    with np.errstate(all="ignore"):
        expected = np.float32(x) ** np.float32(n)
    found = result_of(execute, lambda v: T.pow(v, n), x)
    assert np.allclose(found, expected, equal_nan=True)
    assert np.allclose(result_of(execute, lambda v: v**n, x), expected, equal_nan=True)


def test_pow_types(execute):
    # peer bug #2571
    def build(h, b, f, d, e, i8, u8, i32, u32, i64, p):
        return [T.pow(b, 2), T.pow(b, b), T.pow(h, 0.3), T.pow(i32, 3), T.pow(i32, -1), T.pow(2.0, f), T.pow(e, 2)]

    assert types_of(build) == ["bfloat16", "bfloat16", "float16", "int32", "float32", "float32", "float32"]
    assert result_of(execute, lambda v: T.pow(v, 5), 3, dtype="int32", out="int32") == 243
    assert result_of(execute, lambda v: T.pow(2.0, v), 0.5) == np.float32(2**0.5)
    assert T.pow(2, 5) == 32


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint32"])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 31, 32, 63, 64, 200])
def test_shifts(dtype, count, execute):
    # peer bug #2961: narrow types wrap at their own width
    bits = np.dtype(dtype).itemsize * 8
    value = 0x5B if dtype != "int8" else -37
    left = (value << count) & (2**bits - 1) if count < bits else 0
    left -= 2**bits if dtype.startswith("int") and left >= 2 ** (bits - 1) else 0
    right = value >> min(count, bits - 1) if dtype.startswith("int") else value >> count if count < bits else 0
    assert result_of(execute, lambda v: v << count, value, dtype=dtype, out=dtype) == left
    assert result_of(execute, lambda v: v >> count, value, dtype=dtype, out=dtype) == right
    if count < 2 ** (bits - 1):
        assert result_of(execute, lambda v, c: v << c, value, count, dtype=dtype, out=dtype) == left
        assert result_of(execute, lambda v, c: T.shift_right(v, c), value, count, dtype=dtype, out=dtype) == right


def test_integer_division(execute):
    for a in (-7, -1, 0, 6, 7):
        for b in (-3, 2, 3):
            run = lambda f, a=a, b=b: result_of(execute, f, a, b, dtype="int32", out="int32")  # noqa: E731
            assert run(lambda x, y: x // y) == a // b == T.floordiv(a, b)
            assert run(lambda x, y: x % y) == a % b == T.floormod(a, b)
            assert run(lambda x, y: T.truncdiv(x, y)) == int(a / b) == T.truncdiv(a, b)
            assert run(lambda x, y: T.truncmod(x, y)) == math.fmod(a, b) == T.truncmod(a, b)
            if b > 0:
                assert run(lambda x, y: T.ceildiv(x, y)) == -(-a // b) == T.ceildiv(a, b)


def test_python_numbers_stay_python_numbers():
    assert (T.ceildiv(7, 2), T.max(3, 4), T.min(3.0, NAN), T.max(NAN, 2, 1)) == (4, 4, 3.0, 2)
    assert (T.exp2(3), T.sqrt(4.0), T.log(0.0), T.abs(-3)) == (8.0, 2.0, -INF, 3)
    assert (T.round(2.5), T.nearbyint(2.5), T.floor(-0.5), T.trunc(-1.5)) == (3.0, 2.0, -1.0, -1.0)
    assert math.isnan(T.sqrt(-1.0))
    assert T.exp(1000.0) == INF
    assert (T.if_then_else(True, 1, 2), T.popcount(255), T.shift_left(1, 4), T.bitwise_xor(5, 1)) == (1, 8, 16, 4)
    assert (T.popcount(-1), T.popcount(-32), T.popcount(-(2**40))) == (32, 27, 24)
    assert T.isnan(NAN)
    assert T.isinf(INF)
    assert not T.isfinite(-INF)


def test_casts(execute):
    assert result_of(execute, lambda x: T.cast(x, "int8"), -2.75, out="int8") == -2
    assert result_of(execute, lambda x: T.int32(x) + T.int8(2.9), 3.9, out="int32") == 5
    assert result_of(execute, lambda x: T.reinterpret(x, "int32"), 1.0, out="int32") == 0x3F800000
    assert result_of(execute, lambda x: T.reinterpret("uint32", x), 1.0, out="uint32") == 0x3F800000
    assert result_of(execute, lambda x: T.cast(x, bool), 0.5, out="bool")
    assert result_of(execute, lambda x: x.astype("float16"), 1 / 3) == np.float32(np.float16(1 / 3))
    assert result_of(execute, lambda x: T.isnan(x), NAN, out="bool")
    assert result_of(execute, lambda x: T.isfinite(x), -1.0, out="bool")
    assert result_of(execute, lambda x: T.isinf(x), -INF, out="bool")
    assert result_of(execute, lambda x: T.popcount(x), -1, dtype="int8", out="int32") == 8


def test_functions_of_half_are_computed_in_single():
    @T.prim_func
    def k(A: T.Tensor((4,), "float16"), O: T.Tensor((4,), "float16")):
        with T.Kernel(1) as bx:
            O[0] = T.exp(A[0])
            O[1] = T.sigmoid(A[1]) * 2

    assert 'T.Cast("float16", T.exp(T.Cast("float32", A[0])))' in k.script()


def test_limits():
    assert T.infinity("float16").expr.value == INF
    assert T.max_value("int8").expr.value == 127
    assert T.min_value("float16").expr.value == -65504.0
    assert T.max_value("float8_e4m3fn").expr.value == 448.0
    with pytest.raises(BadArgument, match="a type with infinities"):
        T.infinity("float8_e4m3fn")


def test_values_used_several_times_without_a_name(execute):
    @T.prim_func
    def k(A: T.Tensor((4,), "float32"), O: T.Tensor((4,), "float32")):
        with T.Kernel(1) as bx:
            kept = [T.max(A[0], A[1])]
            O[0] = kept[0] * kept[0]
            O[1] = T.max(kept[0], 1.0) + T.clamp(kept[0], 0.0, kept[0])

    out = np.zeros(4, "float32")
    execute(k, np.array([2, 3, 0, 0], "float32"), out)
    assert list(out[:2]) == [9, 6]


def test_any_and_all(execute):
    @T.prim_func
    def k(A: T.Tensor((2, 3), "bool"), O: T.Tensor((4,), "bool")):
        with T.Kernel(1) as bx:
            O[0] = T.any_of(A)
            O[1] = T.all_of(A[1, 0:2])
            O[2] = any([A[0, 0], A[0, 1]])
            O[3] = all(A[1])

    out = np.zeros(4, "bool")
    execute(k, np.array([[0, 0, 1], [1, 1, 0]], "bool"), out)
    assert list(out) == [True, True, False, False]


@pytest.mark.parametrize(("right", "joined"), [
    (lambda i, n: i // 4 > 0, True), (lambda i, n: i % 3 > 0, True), (lambda i, n: 4 // n > 0, False),
    (lambda i, n: i % n > 0, False), (lambda i, n: i // -1 > 0, False), (lambda i, n: T.exp(n) > 0, False),
])  # fmt: skip
def test_conditions_that_may_trap_are_choices(right, joined):
    found = []

    @T.prim_func
    def k(n: T.int32, O: T.Tensor((8,), "bool")):
        with T.Kernel(8) as bx:
            found.extend([T.all_of(bx > 2, right(bx, n)).expr, T.any_of(bx > 2, right(bx, n)).expr])
            O[bx] = False

    assert [isinstance(e, kind) for e, kind in zip(found, (tirx.And, tirx.Or), strict=True)] == [joined] * 2


def test_builtins_of_runtime_values(execute):
    @T.prim_func
    def k(A: T.Tensor((4,), "float32"), O: T.Tensor((8,), "float32")):
        with T.Kernel(1) as bx:
            O[0] = max(A[0], A[1], 2.5)
            O[1] = min([A[0], A[1]])
            O[2] = abs(A[1])
            O[3] = sum([A[0], A[1], A[2]])
            O[4] = pow(A[2], 2)
            O[5] = round(A[3])
            O[6] = len(A) + max(3, 1)
            O[7] = float(int(A[3]))

    out = np.zeros(8, "float32")
    execute(k, np.array([1, -2, 3, 2.5], "float32"), out)
    assert list(out) == [2.5, -2, 2, 2, 9, 2, 7, 2]


@pytest.mark.parametrize(
    ("operate", "error", "text"),
    [
        (lambda A, x, n: n + 3_000_000_000_000, ConstantDoesNotFit, "does not fit int32"),
        (lambda A, x, n: x + 1e39, ConstantDoesNotFit, "does not fit float32"),
        (lambda A, x, n: T.uint8(n) - 1000, ConstantDoesNotFit, "does not fit uint8"),
        (lambda A, x, n: A @ A, BadOperand, "the whole tile A"),
        (lambda A, x, n: x + "a", BadOperand, "'a' cannot take part"),
        (lambda A, x, n: x + None, BadOperand, "None cannot take part"),
        (lambda A, x, n: x & 1, BadOperand, "& on a float32 value"),
        (lambda A, x, n: n << -1, BadOperand, "a negative shift count -1"),
        (lambda A, x, n: n // 0, BadOperand, "division by the constant zero"),
        (lambda A, x, n: A[x], BadOperand, "an index of type float32"),
        (lambda A, x, n: A["a"], BadOperand, "an index of type str"),
        (lambda A, x, n: [1, 2][n], NotCompileTime, "a runtime value as a Python int"),
        (lambda A, x, n: math.sqrt(x), NotCompileTime, "a runtime value as a Python float"),
        (lambda A, x, n: 1 if n > 1 else 2, NotCompileTime, "the truth of a runtime value"),
        (lambda A, x, n: list(A), NotCompileTime, "iteration over a buffer"),
        (lambda A, x, n: n in [1, 2], NotCompileTime, "the truth of a runtime value"),
        (lambda A, x, n: T.reinterpret(x, "int8"), BadArgument, "T.reinterpret: dtype is int8 (8 bits)"),
        (lambda A, x, n: T.ceildiv(x, 2), BadArgument, "T.ceildiv: an operand is a float32 value"),
        (lambda A, x, n: T.ceildiv(3, 0), BadArgument, "T.ceildiv: the divisor is 0"),
    ],
)
def test_refusals(operate, error, text, refused):
    def build():
        @T.prim_func
        def k(A: T.Tensor((4,), "float32"), n: T.int32):
            with T.Kernel(1) as bx:
                A[0] = operate(A, A[1], n)  # here

    refused(error, error.code, text, build)


# ---------------------------------------------------------------------------------------------------- threads and debug


def test_threads_and_warps():
    @T.prim_func
    def k(A: T.Tensor((4,), "float16"), O: T.Tensor((4,), "uint64")):
        with T.Kernel(1, threads=64) as bx:
            tx = T.get_thread_binding()
            x, y, z = T.get_thread_bindings()
            v = T.shfl_xor(A[tx], 1)
            w = T.shfl_sync(v, 0, width=16)
            T.sync_threads()
            T.sync_warp()
            O[0] = T.ballot(w > 0)
            if T.any_sync(A[0] > 1) and not T.all_sync(A[0] > 1):
                A[1] = T.warp_reduce_sum(A[tx])
            O[1] = T.warp_reduce_bitor(O[tx]) + T.get_lane_idx() + T.get_warp_idx() + T.get_block_binding(1)

    text = k.script()
    assert 'tx: T.let[T.int32] = T.Call("tile.thread_index", [0], attrs={}, ret_ty="int32")' in text
    assert 'T.Call("tile.shfl_xor", [A[tx], 1, 0], attrs={}, ret_ty="float16")' in text
    assert 'T.Call("tile.shfl_sync", [v, 0, 16], attrs={}, ret_ty="float16")' in text
    assert 'T.Call("tile.sync_threads", [], attrs={}, ret_ty="void")' in text
    assert 'ret_ty="uint64")' in text


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x, n: T.warp_reduce_bitand(x), "value is a float32 value, expected an integer"),  # peer bug #2599
        (lambda x, n: T.shfl_sync(x, 0, width=12), "width is 12, expected a power of two"),
        (lambda x, n: T.shfl_sync(x, x), "lane is a float32 value"),
        (lambda x, n: T.shfl_xor(n > 0, 1), "value is a bool value"),
        (lambda x, n: T.get_thread_binding(3), "dim is 3"),
    ],
)
def test_bad_thread_functions(call, text, refused):
    def build():
        @T.prim_func
        def k(A: T.Tensor((4,), "float32"), n: T.int32):
            with T.Kernel(1) as bx:
                A[0] = call(A[1], n)  # here

    refused(BadArgument, "K128", text, build)


def test_print_and_assert(capsys, tile_calls):
    # peer bug #3019
    @T.prim_func
    def k(A: T.Tensor((4,), "float16")):
        with T.Kernel(1) as bx:
            print("tracing")
            T.print("value {}", A[0], bx)
            print(A[0:2])
            assert A[0] > 0, "positive"
            T.device_assert(A[1] > 0)
            assert bx == 0

    assert capsys.readouterr().out == "tracing\n"
    calls = tile_calls(k)
    assert [str(c.op.name) for c in calls] == ["tile.print"] * 2 + ["tile.device_assert"] * 3
    assert str(calls[0].attrs[FORMAT]) == "value {{}} {} {}\n"
    assert str(calls[2].attrs[MESSAGE]) == "positive"


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "uint32", "int64", "uint64"])
def test_constants_wrap(dtype, execute):
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    one = T.cast(1, dtype)
    for build, expected in (
        (lambda x: x + (T.cast(low, dtype) - one), high),
        (lambda x: x + (T.cast(high, dtype) + one), low),
        (lambda x: x + (-one), high if low == 0 else -1),
        (lambda x: x + T.cast(high, dtype) * T.cast(high, dtype), 1),
    ):
        found = result_of(execute, build, 0, dtype=dtype, out=dtype)
        assert int(found) == expected, dtype
