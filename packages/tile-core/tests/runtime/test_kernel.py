"""The object that users hold: verify, bench, export, explain, display."""

import ml_dtypes
import numpy as np
import pytest
from expected_errors import raises_error

from tile_core.abi.adapter import HostMemory
from tile_core.abi.signature import Param, Signature
from tile_core.errors import UnsupportedError
from tile_core.errors import launch as errors
from tile_core.runtime.bench import BenchResult, Stopwatch, measure, time_text
from tile_core.runtime.kernel import Kernel, Origin
from tile_core.runtime.verify import Comparison, tolerance_for, values_of


def tensor(name, *shape, dtype="float32", access="read"):
    return Param(name, "tensor", dtype, shape, access=access)


DOUBLE = Signature("double", (tensor("A", "n"), tensor("C", "n", access="write")), (1,))


def double(a, c):
    c[...] = 2 * a


def test_call_and_display():
    kernel = Kernel(
        DOUBLE, double, origin=Origin(target="cpu", source=lambda: "text", explain=lambda: "report", program=3)
    )
    assert np.array_equal(kernel(np.arange(3, dtype="f4")), [0, 2, 4])
    assert (kernel.name, kernel.source, kernel.source, kernel.explain()) == ("double", "text", "text", "report")
    assert repr(kernel) == "<tile.Kernel double(A: float32(n,)) -> C: float32(n,) for cpu>"


def test_verify_reports():
    report = Kernel(DOUBLE, double, origin=Origin(reference=double)).verify(np.float32([1, np.nan, -np.inf, -0.0]))
    assert report.outputs[0].elements == 4
    assert str(report).startswith("double: equal to its reference\n  C: 4 elements, largest error 0 at ")


def test_verify_names_the_worst_element():
    def wrong(a, c):
        c[...] = 2 * a
        c[1] += 0.5
        c[3] += 2

    with pytest.raises(errors.VerifyMismatch) as caught:
        Kernel(DOUBLE, wrong, origin=Origin(reference=double)).verify(np.ones(5, "f4"))
    text = str(caught.value)
    assert text.startswith("[K430] double: output 'C' differs from its reference at 2 of 5 elements; worst at (3,): ")
    assert "found 4.0, expected 2.0" in text
    assert "rtol" in text
    assert Kernel(DOUBLE, wrong, origin=Origin(reference=double)).verify(np.ones(5, "f4"), atol=2).outputs[
        0
    ].worst_index == (3,)


def test_verify_sees_what_is_not_written():
    def lazy(a, c):
        c[:1] = 2 * a[:1]

    signature = Signature("double", DOUBLE.params)
    out = np.zeros(3, "f4")
    with raises_error(errors.VerifyMismatch, wrong=2, elements=3, expected=0.0):
        Kernel(signature, lazy, origin=Origin(reference=double)).verify(np.zeros(3, "f4"), out)
    assert np.isnan(out[1:]).all()
    equal = Kernel(signature, lazy, origin=Origin(reference=lazy))  # equally unwritten: NaN that no input explains
    with pytest.raises(errors.SuspectResults, match="2 of 3 elements are NaN"):
        equal.verify(np.zeros(3, "f4"), out)
    equal.verify(np.zeros(3, "f4"), out, allow="nonfinite")


def test_verify_keeps_what_is_read_before_it_is_written():
    signature = Signature("inc", (tensor("C", "n", dtype="int32", access="readwrite"),))

    def inc(c):
        c += 1

    out = np.arange(4, dtype="i4")
    Kernel(signature, inc, origin=Origin(reference=inc)).verify(out)
    assert np.array_equal(out, [1, 2, 3, 4])


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "bool", "int64", "uint8", "int4"])
def test_verify_of_storage_types(name):
    packed = name == "int4"
    params = (tensor("A", 6, dtype=name), tensor("C", 6, dtype=name, access="write"))

    def copy(a, c):
        assert a.dtype == c.dtype
        c[...] = a

    def zero(a, c):
        c[...] = 0

    Kernel(Signature("f", params, (1,)), copy, origin=Origin(reference=copy)).verify(seed=4)
    data = np.full(3, 0x11, "u1") if packed else np.ones(6, ml_dtypes.finfo(name).dtype if "f" in name else name)
    with pytest.raises(errors.VerifyMismatch):
        Kernel(Signature("f", params, (1,)), zero, origin=Origin(reference=copy)).verify(data)


def test_random_inputs_need_constant_shapes():
    with raises_error(errors.MissingArgument, kernel="double", name="A"):
        Kernel(DOUBLE, double, origin=Origin(reference=double)).verify()
    fixed = Signature("double", (tensor("A", 5), tensor("C", 5, access="write")), (1,))
    seen = []
    for seed in (1, 1, 2):
        Kernel(fixed, double, origin=Origin(reference=lambda a, c: (seen.append(a), double(a, c)))).verify(seed=seed)
    assert np.array_equal(seen[0], seen[1])
    assert not np.array_equal(seen[0], seen[2])


def test_verify_by_another_runtime():
    class Other(HostMemory):
        name = "other"

    def load(name):
        assert name == "other"
        return (lambda a, c: c.fill(0)), Other()

    kernel = Kernel(DOUBLE, double, origin=Origin(reference=double, runtimes=load))
    kernel.verify(np.ones(3, "f4"), runtime="host")
    with pytest.raises(errors.VerifyMismatch):
        kernel.verify(np.ones(3, "f4"), runtime="other")


@pytest.mark.parametrize(
    "use",
    [
        lambda k: k.explain(),
        lambda k: k.export("x"),
        lambda k: k.verify(1),
        lambda k: Kernel(DOUBLE, double, origin=Origin(reference=double)).verify(runtime="emulator"),
    ],
)
def test_what_was_not_provided(use):
    with pytest.raises(UnsupportedError) as caught:
        use(Kernel(DOUBLE, double, origin=Origin(target="t")))
    assert str(caught.value).startswith("[U401] double: ")
    assert "is not available for target" in str(caught.value)


def test_export_delegates(tmp_path):
    kernel = Kernel(DOUBLE, double, origin=Origin(export=lambda k, path: path.write_text(k.name)))
    assert kernel.export(str(tmp_path / "k.tile")).read_text() == "double"


def test_bench():
    calls, waits = [], []

    class Waiting(HostMemory):
        def synchronize(self):
            waits.append(len(calls))

    kernel = Kernel(DOUBLE, lambda *v: calls.append(v), adapter=Waiting())
    result = kernel.bench(np.ones(3, "f4"), warmup=2, repeat=5)
    assert len(result.samples) == 5
    assert waits[0] == 2
    assert waits[-1] == len(calls)
    assert 0 < result.min <= result.median
    assert result.min <= result.mean


def test_bench_by_the_clock_of_a_device():
    launched = []

    def clock(launch, launches):
        for _ in range(launches):
            launch()
        return None if len(launched) < 3 else launches * 1e-3

    result = measure([Stopwatch("f", lambda: launched.append(1), lambda: None, clock)], warmup=0, repeat=3)[0]
    assert result.samples == (1e-3, 1e-3, 1e-3)


def test_bench_text():
    result = BenchResult("f", (3e-6, 1e-6, 2e-6), 10)
    assert str(result) == "f: median 2 us, min 1 us, mean 2 us (3 samples of 10 launches)"
    assert [time_text(t) for t in (2.0, 0.0123, 4.5e-8)] == ["2 s", "12.3 ms", "45 ns"]
    assert len(measure([Stopwatch("f", lambda: None, lambda: None)], warmup=0, repeat=0)[0].samples) == 1


FLOATS = np.float32([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, 3.4e38])


def compared(param, x, y):
    x, y = values_of(x, param), values_of(y, param)
    return Comparison("f", param, x, y, tolerance_for(param, None, None)).result()


@pytest.mark.parametrize("i", range(len(FLOATS)))
@pytest.mark.parametrize("j", range(len(FLOATS)))
def test_comparison_of_special_values(i, j):
    x, y = FLOATS[i : i + 1], FLOATS[j : j + 1]
    same = bool(np.array_equal(x, y, equal_nan=True)) or {i, j} <= {0, 1, 7}
    try:
        compared(tensor("C", 1), x, y)
        passed = True
    except errors.VerifyMismatch:
        passed = False
    assert passed == same


def test_comparison_of_big_integers_is_exact():
    x, y = np.array([2**62, 0]), np.array([2**62 + 1, 0])
    with raises_error(errors.VerifyMismatch, wrong=1, elements=2, index=(0,)):
        compared(tensor("C", 2, dtype="int64"), x, y)
    compared(tensor("C", 0), np.zeros(0, "f4"), np.zeros(0, "f4"))
    compared(tensor("C"), np.ones((), "f4"), np.ones((), "f4"))
