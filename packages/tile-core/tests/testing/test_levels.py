"""Each level of numerics is judged by its own promise: by the suite, the fuzzer and ``verify``."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import tirx, tvm_ffi
from tile_core.compiler import _reference
from tile_core.cpu import pipeline
from tile_core.errors.launch import VerifyMismatch
from tile_core.numerics.build import type_name
from tile_core.runtime.kernel import Origin
from tile_core.testing import search as searching
from tile_core.testing.case import Tolerance, one, output, tensor
from tile_core.testing.data import anything, stored, values
from tile_core.testing.run import Session, load
from tile_core.testing.search import Chunk, WrongProgram, search

COUNT = 64


def small(rng, dtype="float32"):
    """Subnormal numbers among numbers of all sizes."""
    drawn = anything(rng, (COUNT,), dtype)
    drawn[::3] = stored(rng.uniform(-1, 1, COUNT) * 2.0**-127, dtype)[::3]
    return drawn


def elementwise(expression, want, dtype="float32", out=None, tolerance=None, draw=small):
    """Return a unit with one expression of ``A[i]`` and ``C[i]``."""
    params = [tensor("A", dtype, COUNT), tensor("C", dtype, COUNT), output("B", out or dtype, COUNT)]
    body = f"for i in T.Parallel({COUNT}):\n    B[i] = {expression}"

    def reference(d):
        with np.errstate(all="ignore"):
            return want(*(values(d[n], dtype).astype(np.float32) for n in "AC"))

    data = {"": lambda rng: {"A": draw(rng, dtype), "C": draw(rng, dtype)}}
    return one("levels", "elementwise", params, body, reference, data, tolerance or Tolerance())


def outcome(unit, level, *replaced):
    """Return the outcome of a unit on a target whose kernel has other expressions."""
    session = Session("cpu", options={"numerics": level})
    compile_kernel = session.compile

    def compiled(program):
        text = unit.text()
        for old, new in replaced:
            assert old in text
            text = text.replace(old, new)
        return compile_kernel(load(text))

    session.compile = compiled
    (case,) = unit.cases()
    return session.run(case)


def flushed(x, least="2.0**-126"):
    return f"T.if_then_else(T.abs({x}) < T.cast({least}, 'float32'), {x} * 0, {x})"


#: An expression, its reference, and what a target that flushes makes of it.
FLUSHING = {
    "product": ("A[i] * C[i]", lambda a, c: a * c, flushed(f"({flushed('A[i]')} * {flushed('C[i]')})"), None),
    "sum": ("A[i] + C[i]", lambda a, c: a + c, flushed(f"({flushed('A[i]')} + {flushed('C[i]')})"), None),
    "comparison": ("A[i] > 0", lambda a, c: a > 0, f"{flushed('A[i]')} > 0", "bool"),
    "size": ("T.abs(A[i])", lambda a, c: np.abs(a), flushed("T.abs(A[i])"), None),
    "maximum": ("T.max(A[i], C[i])", np.fmax, f"T.max({flushed('A[i]')}, {flushed('C[i]')})", None),
    "conversion": ("T.cast(A[i], 'float64')", lambda a, c: a, f"T.cast({flushed('A[i]')}, 'float64')", "float64"),
    "chain": (
        "T.if_then_else(A[i] * 2.0**30 > 0, T.max(A[i] * C[i], A[i]), -A[i])",
        lambda a, c: np.where(a * np.float32(2.0**30) > 0, np.fmax(a * c, a), -a),
        f"T.if_then_else({flushed('A[i]')} * 2.0**30 > 0, "
        f"T.max({flushed('A[i]')} * {flushed('C[i]')}, {flushed('A[i]')}), -{flushed('A[i]')})", None,
    ),
}  # fmt: skip


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", FLUSHING)
def test_only_fast_admits_flushed_subnormals(name):
    expression, want, kernel, out = FLUSHING[name]
    unit = elementwise(expression, want, out=out)
    replaced = (f"= {expression}", f"= {kernel}")
    assert outcome(unit, "fast", replaced).kind == "right"
    for level in ("strict", "standard"):
        found = outcome(unit, level, replaced)
        assert found.kind == "wrong"
        assert "elements are wrong" in found.detail
        assert outcome(unit, level).kind == "right"


#: Errors that no level admits, of the same expressions.
WRONG = {
    "a sum loses normal numbers": ("A[i] + C[i]", lambda a, c: a + c, flushed("(A[i] + C[i])", "2.0**-120")),
    "a copy flushes": ("A[i]", lambda a, c: a, flushed("A[i]")),
    "a subnormal number doubles": (
        "A[i] + C[i] * 0", lambda a, c: a + c * 0,
        "T.if_then_else(T.abs(A[i]) < 2.0**-126, A[i] * 2, A[i] + C[i] * 0)",
    ),
    "a subnormal number changes its sign": ("A[i] * 0.5", lambda a, c: a * np.float32(0.5), "A[i] * -0.5"),
    "a comparison includes equality": ("A[i] > C[i]", lambda a, c: a > c, "not (C[i] > A[i])"),
    "infinity is lost": ("A[i] + 1.0", lambda a, c: a + np.float32(1), "T.min(A[i], 3.0e38) + 1.0"),
}  # fmt: skip


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", WRONG)
def test_errors_are_found_at_fast(name):
    expression, want, kernel = WRONG[name]

    def draw(rng, dtype):
        drawn = small(rng, dtype)
        drawn[0], drawn[1], drawn[2] = 2.0**-124, np.inf, 1.0
        return drawn

    unit = elementwise(expression, want, out="bool" if ">" in expression else None, draw=draw)
    assert outcome(unit, "fast").kind == "right"
    found = outcome(unit, "fast", (f"= {expression}", f"= {kernel}"))
    assert found.kind == "wrong"
    assert "elements are wrong" in found.detail


@pytest.mark.sweep(1)
def test_float16_and_float64_are_not_flushed():
    for dtype, least in (("float16", 2.0**-14), ("float64", 2.0**-1022)):
        unit = elementwise("A[i] * 1", lambda a, c: a, dtype=dtype)
        unit = dataclasses.replace(
            unit, parts={"": dataclasses.replace(unit.parts[""], want=lambda d, t=dtype: values(d["A"], t))},
            launches={"": dataclasses.replace(
                unit.launches[""], data=lambda rng, t=dtype, n=least: {k: stored(rng.uniform(-n, n, COUNT), t) for k in "AC"}
            )},
        )  # fmt: skip
        assert outcome(unit, "fast").kind == "right"
        assert outcome(unit, "fast", ("= A[i] * 1", "= A[i] * 0")).kind == "wrong"


#: A function, its reference, a relative error that fast admits, and one that it does not.
APPROXIMATED = {
    "exp": ("T.exp(C[i])", np.exp, (40, 80), 3e-6, 1e-4),
    "tanh": ("T.tanh(C[i])", np.tanh, (0.5, 5), 2e-4, 3e-3),
    "log": ("T.log(C[i])", np.log, (1.001, 1.01), 2e-5, 1e-2),
    "quotient": ("A[i] / C[i]", None, (1, 5), 1.5e-7, 2e-6),
}


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", APPROXIMATED)
def test_functions_are_judged_by_the_table_of_their_level(name):
    expression, function, (low, high), admitted, refused = APPROXIMATED[name]

    def draw(rng, dtype):
        return stored(rng.uniform(low, high, COUNT), dtype)

    def want(a, c):
        a, c = a.astype(np.float64), c.astype(np.float64)
        return a / c if function is None else function(c)

    unit = elementwise(expression, want, tolerance=Tolerance(1e-7 if name == "quotient" else 4 * 2.0**-23), draw=draw)
    stricter = "strict" if name == "quotient" else "standard"
    for error, kinds in ((admitted, ("right", "wrong")), (refused, ("wrong", "wrong"))):
        replaced = (f"= {expression}", f"= T.cast(T.cast({expression}, 'float64') * (1 + {error}), 'float32')")
        assert tuple(outcome(unit, level, replaced).kind for level in ("fast", stricter)) == kinds


@pytest.mark.sweep(1)
def test_no_bound_beyond_the_range_of_a_function():
    for expression, function, bounds in (
        ("T.sin(C[i])", np.sin, (10, 20)), ("A[i] / C[i]", None, (1e38, 3e38)), ("T.pow(A[i], C[i])", None, (-3, -1)),
    ):  # fmt: skip
        unit = elementwise(
            expression,
            lambda a, c, f=function, e=expression: f(c) if f else np.power(a, c) if "pow" in e else a / c,
            tolerance=Tolerance(1e-5, 1e-30),
            draw=lambda rng, dtype, b=bounds: stored(rng.uniform(*b, COUNT).round(), dtype),
        )
        replaced = (f"= {expression}", "= T.cast(7, 'float32')")
        assert [outcome(unit, level, replaced).kind for level in ("fast", "standard")] == ["right", "wrong"]


@pytest.mark.sweep(1)
@pytest.mark.parametrize("sign", ["//", "%"])
def test_quotients_beside_an_integer_are_either_at_fast(sign):
    """An approximate quotient of multiples may be below the integer; a whole one below is an error."""
    near = "T.floor(A[i] / C[i] * (1 - 2.0**-23))"

    def unit():
        def data(rng):
            c = rng.integers(1, 50, COUNT).astype(np.float32)
            return {"C": c, "A": c * rng.integers(1, 90, COUNT).astype(np.float32)}

        made = elementwise(f"A[i] {sign} C[i]", np.floor_divide if sign == "//" else np.fmod)
        return dataclasses.replace(made, launches={"": dataclasses.replace(made.launches[""], data=data)})

    for quotient, kinds in ((near, ("right", "wrong")), (f"{near} - 1", ("wrong", "wrong"))):
        kernel = f"({quotient})" if sign == "//" else f"(A[i] - ({quotient}) * C[i])"
        replaced = (f"= A[i] {sign} C[i]", f"= {kernel}")
        assert tuple(outcome(unit(), level, replaced).kind for level in ("fast", "standard")) == kinds


def scaled():
    @T.prim_func
    def scaled(A: T.Tensor((COUNT,), "float32"), B: T.Tensor((COUNT,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(COUNT):
                B[i] = A[i] * 2.0**126

    return scaled


@pytest.mark.sweep(1)
@pytest.mark.parametrize("level", ["strict", "standard", "fast"])
def test_verify_judges_by_the_level_of_the_kernel(level):
    program = scaled()
    made = tile.compile(program, "cpu", out_idx=1, options={"numerics": level})
    a = (np.arange(COUNT) * 2.0**-130).astype(np.float32)
    made.verify(a)

    def launch(a, b, least=2.0**-126):
        b[...] = np.where(np.abs(a) < least, 0, a) * np.float32(2.0**126)

    def kernel(run):
        return tile.Kernel(made.signature, run, origin=Origin(program=program, reference=made._origin.reference))

    if level == "fast":
        kernel(launch).verify(a)
    else:
        with pytest.raises(VerifyMismatch):
            kernel(launch).verify(a)
    with pytest.raises(VerifyMismatch):  # normal numbers are flushed
        kernel(lambda a, b: launch(a, b, 2.0**-124)).verify(np.ldexp(np.float32(1), np.arange(-125, -61)))


def test_the_reference_of_a_kernel_has_its_level():
    a, low = np.full(COUNT, 2.0**-130, np.float32), []
    for level in ("standard", "fast"):
        b = np.zeros(COUNT, np.float32)
        _reference(scaled(), (), level)(a, b, shake=1)
        low.append(b[0])
    assert low == [2.0**-4, 0.0]


def flush_results(patch, least):
    """Make small results of float32 additions and products on the CPU zero."""

    def flush(e):
        if type_name(e) != "float32":
            return e
        low = tirx.const(least, "float32")
        small = tirx.And(e < low, e > tirx.const(-1.0, "float32") * low)
        return tirx.Select(small, e * tirx.const(0.0, "float32"), e)

    real = pipeline._floats

    def floats(plan, ctx):
        plan = real(plan, ctx)
        entries = [((tirx.Add, tirx.Sub, tirx.Mul), flush)]
        return plan.replace(body=tvm_ffi.structural_map(plan.body, entries))

    patch.setattr(pipeline, "_floats", floats)


def fuzzed(level, seed):
    """Return how the fuzzer judges programs of functions and arithmetic, some of subnormal numbers."""
    counts = Counter()

    def report(kind, number):
        counts[kind] += number

    with tile.disable_cache():
        search(Chunk("programs", seed, 10, "mathematics"), Session("cpu", options={"numerics": level}), report)
    return counts


@pytest.mark.sweep(1)
@pytest.mark.filterwarnings("ignore")
def test_the_fuzzer_judges_by_the_level(monkeypatch):
    monkeypatch.setattr(searching, "SHRINKING", 0.0)
    flush_results(monkeypatch, 2.0**-126)
    for seed in range(5, 15):
        assert fuzzed("fast", seed)["right"] == 10
        with contextlib.suppress(WrongProgram):
            fuzzed("standard", seed)
            continue
        return
    pytest.fail("no program has subnormal results")


@pytest.mark.sweep(1)
@pytest.mark.filterwarnings("ignore")
def test_the_fuzzer_finds_errors_at_fast(monkeypatch):
    monkeypatch.setattr(searching, "SHRINKING", 0.0)
    flush_results(monkeypatch, 2.0**-100)
    with pytest.raises(WrongProgram, match="elements are wrong"):
        sum((fuzzed("fast", seed) for seed in range(5, 15)), Counter())
