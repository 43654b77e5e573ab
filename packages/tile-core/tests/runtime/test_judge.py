"""``Kernel.verify`` judges results: unwritten elements, unexplained NaN and infinities, and a user's own reference."""

import copy
import pickle
import sys
import types

import numpy as np
import pytest
from expected_errors import raises_error

import tile_core as tile
import tile_core.language as T
from tile_core.errors.execution import BlockRace
from tile_core.errors.launch import BadSetting, SuspectResults, VerifyMismatch
from tile_core.runtime.kernel import Origin
from tile_core.runtime.own_reference import longest_reduction


def tail(count, dtype="float32", out=None):
    """Return a program that leaves the last elements where 64 does not divide their number."""

    @T.prim_func
    def tail(A: T.Tensor((count,), dtype), B: T.Tensor((count,), out or dtype)):
        with T.Kernel(max(1, count // 64), threads=64) as bx:
            for i in T.Parallel(min(64, count)):
                B[bx * 64 + i] = A[bx * 64 + i]

    return tail


def quotient():
    @T.prim_func
    def quotient(A: T.Tensor((40,), "float32"), C: T.Tensor((40,), "float32"), B: T.Tensor((40,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(40):
                B[i] = A[i] / C[i]

    return quotient


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8", "bool", "int4", "float8_e4m3fn"])
@pytest.mark.parametrize("how", [{}, {"out_idx": 1}])
def test_elements_that_are_never_written(dtype, how):
    count = 1000
    kernel = tile.compile(tail(count, dtype), "cpu", **how)
    size = count // 2 if dtype == "int4" else count
    kind = (
        np.uint8
        if dtype == "int4"
        else np.dtype(tile.dtypes.dtype(dtype).numpy())
        if hasattr(tile, "dtypes")
        else dtype
    )
    a = np.zeros(size, kind)
    args = (a,) if how else (a, np.zeros_like(a))
    with pytest.raises(SuspectResults, match=r"40 of \d+ elements are never written, the first at \(960,\)") as info:
        kernel.verify(*args)
    assert info.value.code == "K429"
    output = info.value.report.outputs[0]
    assert (output.unwritten, output.first_unwritten, output.nonfinite) == (40, (960,), 0)
    report = kernel.verify(*args, allow="unwritten")
    assert report.outputs[0].unwritten == 40
    assert "allowed: output 'B': 40 of" in str(report)
    tile.compile(tail(640, dtype), "cpu", **how).verify(*(x[: 320 if dtype == "int4" else 640] for x in args))


def test_an_output_that_only_some_launches_write_is_unwritten():
    @T.prim_func
    def parts(A: T.Tensor((8,), "int32"), B: T.Tensor((2, 8), "int32")):
        with T.Kernel(1):
            T.copy(A, B[0, 0:8])
        with T.Kernel(1):
            for i in T.Parallel(7):
                B[1, i] = A[i]

    with pytest.raises(SuspectResults, match=r"1 of 16 elements are never written, the first at \(1, 7\)"):
        tile.compile(parts, "cpu", out_idx=1).verify(np.arange(8, dtype="int32"))


def test_what_a_kernel_also_reads_may_stay():
    @T.prim_func
    def some(B: T.Tensor((40,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(20):
                B[i] += 1

    assert tile.compile(some, "cpu").verify(np.zeros(40, "int32")).findings == ()


def test_nan_and_infinities_of_finite_inputs():
    kernel = tile.compile(quotient(), "cpu", out_idx=2)
    a, c = np.ones(40, "float32"), np.ones(40, "float32")
    assert kernel.verify(a, c).findings == ()
    c[7:9] = 0
    a[8] = 0
    with pytest.raises(SuspectResults, match=r"2 of 40 elements are NaN or infinite .* the first at \(7,\)") as info:
        kernel.verify(a, c)
    assert info.value.report.outputs[0].nonfinite == 2
    assert kernel.verify(a, c, allow=["nonfinite"]).outputs[0].nonfinite == 2
    a[3] = np.nan  # an input that may explain them
    assert kernel.verify(a, c).findings == ()


def test_an_infinity_of_the_program_explains_infinities_but_no_nan():
    @T.prim_func
    def masked(A: T.Tensor((40,), "float32"), B: T.Tensor((40,), "float32"), C: T.Tensor((40,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(40):
                B[i] = T.if_then_else(A[i] > 0, A[i], -T.infinity("float32"))
                C[i] = T.if_then_else(A[i] > 0, A[i], -T.infinity("float32")) * 0 + 1

    with pytest.raises(SuspectResults) as info:
        tile.compile(masked, "cpu", out_idx=[1, 2]).verify(np.where(np.arange(40) < 30, 1, -1).astype("float32"))
    assert [o.nonfinite for o in info.value.report.outputs] == [0, 10]


def test_both_findings_are_in_one_error():
    @T.prim_func
    def both(A: T.Tensor((100,), "float32"), B: T.Tensor((100,), "float32")):
        with T.Kernel(100 // 64, threads=64) as bx:
            for i in T.Parallel(64):
                B[bx * 64 + i] = A[bx * 64 + i] / A[bx * 64 + i]

    with pytest.raises(SuspectResults) as info:
        tile.compile(both, "cpu", out_idx=1).verify(np.zeros(100, "float32"))
    assert info.value.message.count("output 'B'") == 2
    assert info.value.where.line
    again = pickle.loads(pickle.dumps(copy.copy(info.value)))
    assert str(again) == str(info.value)


def product(m=33, n=17, k=200, dtype="float32"):
    @T.prim_func
    def product(A: T.Tensor((m, k), dtype), B: T.Tensor((k, n), dtype), C: T.Tensor((m, n), "float32")):
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((m, 32), dtype), T.alloc_shared((32, n), dtype)
            c = T.alloc_fragment((m, n), "float32")
            T.clear(c)
            for step in T.Pipelined(T.ceildiv(k, 32), num_stages=2):
                T.copy(A[0, step * 32], a)
                T.copy(B[step * 32, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    return product


@pytest.fixture(scope="module")
def matmul():
    return tile.compile(product(), "cpu", out_idx=2)


REFERENCES = [
    lambda a, b: a @ b,
    lambda a, b: a.astype("float64") @ b.astype("float64"),
    lambda a, b: [a @ b],
    lambda a, b: {"C": a @ b},
    np.matmul,
]


@pytest.mark.parametrize("reference", REFERENCES)
def test_a_reference_of_the_user(matmul, reference):
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((33, 200), np.float32), rng.standard_normal((200, 17), np.float32)
    assert "equal to" in str(matmul.verify(a, b, reference=reference))
    assert matmul.verify(a, b, reference=a @ b).reference == "the arrays given"
    with raises_error(VerifyMismatch, name="C", wrong=561, elements=561) as info:
        matmul.verify(a, b, reference=lambda a, b: a @ b + 1)
    assert "the program or the reference is wrong" in info.value.help


def test_a_reference_gets_what_the_kernel_reads():
    @T.prim_func
    def scaled(A: T.Tensor((5,), "float16"), s: T.float32, B: T.Tensor((5,), "float32"), C: T.Tensor((5,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(5):
                B[i] = A[i] * s
                C[i] += 1

    seen = []

    def reference(a, s, c):
        seen.append((a.dtype, s, c.tolist()))
        a[...] = 0  # a copy
        return np.arange(5) * s, c + 1

    a = np.arange(5, dtype="float16")
    tile.compile(scaled, "cpu").verify(a, 2.0, np.zeros(5, "float32"), np.full(5, 4, "int32"), reference=reference)
    assert seen == [(np.dtype("float16"), 2.0, [4] * 5)]
    assert a[4] == 4


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        (lambda a, b: None, "of None"),
        (lambda a: a, "raises TypeError"),
        (lambda a, b: a, r"of shape \(33, 200\) for C"),
        (lambda a, b: (a, b), "of 2 arrays|of shape"),
        ({"D": np.zeros((33, 17))}, "of D"),
        (lambda a, b: {}, "of nothing"),
        ("text", "of str"),
    ],
)
def test_references_that_are_none(matmul, reference, found):
    with pytest.raises(BadSetting, match=found):
        matmul.verify(reference=reference)


def test_what_may_be_allowed(matmul):
    for wrong in ("nan", ["unwritten", "x"], 3):
        with pytest.raises(BadSetting, match="expected 'unwritten' or 'nonfinite'"):
            matmul.verify(allow=wrong)


def test_nan_that_a_reference_has_too_is_right():
    kernel = tile.compile(quotient(), "cpu", out_idx=2)
    a = np.zeros(40, "float32")
    with np.errstate(all="ignore"):
        assert kernel.verify(a, a, reference=np.divide).findings == ()


def test_unwritten_elements_come_before_a_difference_there():
    a = np.ones(100, "float32")
    kernel = tile.compile(tail(100), "cpu", out_idx=1)
    with pytest.raises(SuspectResults, match="36 of 100"):
        kernel.verify(a, reference=lambda a: a)
    kernel.verify(a, reference=lambda a: a, allow="unwritten")


def test_a_function_of_torch_gets_tensors(matmul, monkeypatch):
    class Tensor:
        """What torch's functions take."""

        def __init__(self, array):
            self.array = array

        def to(self, device):
            return self

        def is_floating_point(self):
            return True

        def detach(self):
            return self

        cpu = double = detach

        def numpy(self):
            return self.array

    def multiply(a, b):
        if not isinstance(a, Tensor):
            raise TypeError("must be Tensor, not ndarray")
        return Tensor(a.array @ b.array)

    torch = types.SimpleNamespace(Tensor=Tensor, from_numpy=Tensor)
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((33, 200), np.float32), rng.standard_normal((200, 17), np.float32)
    kernel = matmul
    kernel.verify(a, b)
    monkeypatch.setitem(sys.modules, "torch", torch)
    from tile_core.runtime.own_reference import outputs_of

    found = outputs_of(multiply, kernel.signature, {2: (33, 17)}, [a, b])
    np.testing.assert_allclose(found[2], a @ b)


def test_tolerances_follow_reductions_and_types(matmul):
    assert longest_reduction(matmul.program, {}) == 224  # seven steps of 32
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((33, 200), np.float32), rng.standard_normal((200, 17), np.float32)
    exact = a.astype("float64") @ b.astype("float64")
    wide = matmul.verify(a, b, reference=exact).outputs[0]
    rms = float(np.sqrt((exact * exact).mean()))
    assert wide.atol == pytest.approx(1e-5 + 4 * 2.0**-24 * 224 * rms)
    assert matmul.verify(a, b, reference=exact, atol=0.5, rtol=0.25).outputs[0].atol == 0.5

    @T.prim_func
    def through_half(A: T.Tensor((40,), "float32"), B: T.Tensor((40,), "float32")):
        with T.Kernel(1, threads=32):
            h = T.alloc_fragment((40,), "float16")
            T.copy(A, h)
            T.copy(h, B)

    report = tile.compile(through_half, "cpu", out_idx=1).verify(reference=lambda a: a)
    assert report.outputs[0].rtol == 1e-2


def test_a_race_between_blocks_is_the_programs_and_no_defect():
    @T.prim_func
    def racing(A: T.Tensor((40,), "float32"), R: T.Tensor((40,), "int32"), B: T.Tensor((40,), "float32")):
        with T.Kernel(40, threads=32) as bx:
            B[R[bx]] = A[bx]

    kernel = tile.compile(racing, "cpu", out_idx=2)
    a, r = np.arange(40, dtype="float32"), np.arange(40, dtype="int32")[::-1].copy()
    kernel.verify(a, r)
    r[5] = r[20]
    with pytest.raises(BlockRace) as info:
        kernel.verify(a, r)
    assert info.value.code == "K445"
    assert "B[19] is written by block 20 and written by block 5" in str(info.value)
    assert info.value.where.source == "B[R[bx]] = A[bx]"


def test_a_mismatch_blames_the_compiler_only_where_the_program_was_checked(matmul):
    def unwatched(*arrays):
        pass

    kernel = tile.Kernel(
        matmul.signature, lambda a, b, c: c.fill(1), origin=Origin(program=matmul.program, reference=unwatched)
    )
    with pytest.raises(VerifyMismatch) as info:
        kernel.verify()
    assert "rule them out before you report" in info.value.help
    watched = tile.Kernel(
        matmul.signature, lambda a, b, c: c.fill(1),
        origin=Origin(program=matmul.program, reference=matmul._origin.reference),
    )  # fmt: skip
    with pytest.raises(VerifyMismatch) as info:
        watched.verify()
    assert info.value.help.endswith("otherwise please report the kernel")


def test_a_kernel_without_its_program_is_compared_with_a_reference(matmul):
    kernel = tile.Kernel(matmul.signature, lambda a, b, c: np.matmul(a, b, out=c))
    assert kernel.verify(reference=np.matmul).reference == "matmul"
    with pytest.raises(VerifyMismatch) as info:
        kernel.verify(reference=lambda a, b: a @ b * 2)
    assert "the kernel or the reference is wrong" in info.value.help


class TestCauses:
    def test_a_nan_is_reported_with_the_operation_that_makes_it(self):
        kernel = tile.compile(quotient(), "cpu", out_idx=-1)
        a, c = np.ones(40, "float32"), np.ones(40, "float32")
        a[7] = c[7] = 0
        with pytest.raises(SuspectResults) as info:
            kernel.verify(a, c)
        assert "division of 0 and 0 makes NaN, first in B[7] of block 0" in info.value.message
        assert info.value.where.source == "B[i] = A[i] / C[i]"

    def test_an_infinity_is_reported_if_there_is_no_nan(self):
        kernel = tile.compile(quotient(), "cpu", out_idx=-1)
        a, c = np.ones(40, "float32"), np.ones(40, "float32")
        c[9] = 0
        with pytest.raises(SuspectResults, match="division of 1 and 0 makes an infinity, first in B"):
            kernel.verify(a, c)

    def test_the_first_wrong_element_has_its_line_and_block(self):
        @T.prim_func
        def twice(A: T.Tensor((4, 8), "float32"), B: T.Tensor((4, 8), "float32")):
            with T.Kernel(2, 2, threads=32) as (bx, by):
                for i, j in T.Parallel(2, 4):
                    B[by * 2 + i, bx * 4 + j] = A[by * 2 + i, bx * 4 + j]
                B[by * 2, bx * 4 + 3] = 0

        def expected(a):
            right = a.copy()
            right[2:, 4:] += 1
            return right

        kernel = tile.compile(twice, "cpu", out_idx=-1)
        with pytest.raises(VerifyMismatch) as info:
            kernel.verify(np.ones((4, 8), "float32"), reference=expected)
        assert "; the first is (0, 3), written by block (0, 0) in line " in info.value.message
        assert info.value.where.source == "B[by * 2, bx * 4 + 3] = 0"
        assert info.value.facts["first"] == (0, 3)
        with pytest.raises(VerifyMismatch) as info:
            kernel.verify(np.zeros((4, 8), "float32"), reference=expected)
        assert "; the first is (2, 4), written by block (1, 1) in line " in info.value.message
        assert info.value.where.source == "B[by * 2 + i, bx * 4 + j] = A[by * 2 + i, bx * 4 + j]"
