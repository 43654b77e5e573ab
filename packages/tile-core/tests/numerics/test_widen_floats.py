"""16-bit floats computed in float32: only casts remain, and results match NumPy and ml_dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tile_core.compat.tvm import ir, tirx
from tile_core.ir import calls, nodes
from tile_core.ir.visit import collect
from tile_core.passes.float_rules import hide, reveal
from tile_core.passes.legalize_floats import legalize_floats
from tile_core.passes.widen_floats import STORED, widen_floats

pytestmark = pytest.mark.sweep(4)

NUMPY = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
COUNT = 4099


def widened(build: Callable[..., Any], inputs: list[str], output: str, hidden: bool = False) -> Any:
    """A function of one operation; ``hidden`` goes through the calls that keep the simplifier away."""
    params = [tirx.decl_buffer((COUNT,), d, f"A{i}", layout=None, data_alignment=1) for i, d in enumerate(inputs)]
    out = tirx.decl_buffer((COUNT,), output, "C", layout=None, data_alignment=1)
    i = tirx.Var("i", "int32")
    body = tirx.For(i, 0, COUNT, tirx.ForKind.SERIAL, nodes.store(out, build(*[p[i] for p in params]), [i]))
    return tirx.PrimFunc([*params, out], reveal(widen_floats(hide(body))) if hidden else widen_floats(body))


def computed(compile_func: Any, func: Any, *arrays: np.ndarray) -> np.ndarray:
    """The results of a function, whose casts and storage are the tested ones of `legalize_floats`."""
    native = frozenset({"float32", "float64"})
    compile_func(legalize_floats(func, native))(*arrays)
    return arrays[-1]


def operands(name: str, seed: int) -> list[np.ndarray]:
    """Return codes of all kinds, also subnormal and special, each against the others."""
    rng = np.random.default_rng(seed)
    special = np.array([0, 0x8000, 1, 0x8001, 0x7F80, 0xFF80, 0x7FC0, 0x7C00, 0xFC00, 0x7E00, 0x7BFF, 0x7F7F, 0x3F80])
    pairs = np.stack(np.meshgrid(special, special)).reshape(2, -1)
    rest = rng.integers(0, 1 << 16, (2, COUNT - pairs.shape[1]))
    near = rng.normal(size=rest.shape[1] // 2).astype(NUMPY[name]).view(np.uint16)
    rest[:, : len(near)] = near, rng.permutation(near)
    return [np.concatenate([p, r]).astype(np.uint16) for p, r in zip(pairs, rest, strict=True)]


ARITHMETIC: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (tirx.Add, np.add),
    "sub": (tirx.Sub, np.subtract),
    "mul": (tirx.Mul, np.multiply),
    "div": (tirx.Div, np.divide),
    "chain": (lambda a, b: tirx.Add(tirx.Mul(a, b), a), lambda a, b: np.add(np.multiply(a, b), a)),
    "cancel": (lambda a, b: tirx.Sub(tirx.Add(a, b), b), lambda a, b: np.subtract(np.add(a, b), b)),
    "select": (lambda a, b: tirx.Select(tirx.LT(a, b), a, b), lambda a, b: np.where(a < b, a, b)),
    "if": (lambda a, b: tirx.if_then_else(tirx.GE(a, b), a, b), lambda a, b: np.where(a >= b, a, b)),
    "sqrt": (lambda a, b: tirx.sqrt(a), lambda a, b: np.sqrt(a)),
    "let": (
        lambda a, b: (lambda v: tirx.Let(v, tirx.Mul(a, b), tirx.Add(v, v)))(tirx.Var("v", a.ty)),
        lambda a, b: np.multiply(a, b) + np.multiply(a, b),
    ),
}


def values(codes: np.ndarray, name: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        return codes.view(NUMPY[name]).astype(np.float64)


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("name", sorted(STORED))
@pytest.mark.parametrize("operation", list(ARITHMETIC))
def test_every_operation_is_rounded(compile_func: Any, operation: str, name: str, hidden: bool) -> None:
    build, reference = ARITHMETIC[operation]
    a, b = operands(name, 31)
    func = widened(build, [name, name], name, hidden)
    out = computed(compile_func, func, a, b, np.full(COUNT, 0xA5A5, np.uint16))
    with np.errstate(all="ignore"):
        want = reference(a.view(NUMPY[name]), b.view(NUMPY[name])).astype(NUMPY[name])
    np.testing.assert_array_equal(values(out, name), values(want.view(np.uint16), name))


@pytest.mark.parametrize("name", sorted(STORED))
@pytest.mark.parametrize("node", [tirx.EQ, tirx.LT, tirx.LE, tirx.GT, tirx.GE])
def test_comparisons(compile_func: Any, name: str, node: Any) -> None:
    """Return all comparisons but "not equal", which TVM's LLVM backend makes false for NaN."""
    a, b = operands(name, 32)
    func = widened(lambda x, y: tirx.Cast("int32", node(x, y)), [name, name], "int32", hidden=True)
    out = computed(compile_func, func, a, b, np.full(COUNT, 7, np.int32))
    names = ("equal", "less", "less_equal", "greater", "greater_equal")
    compare = dict(zip(("EQ", "LT", "LE", "GT", "GE"), names, strict=True))
    with np.errstate(all="ignore"):
        want = getattr(np, compare[node.__name__])(values(a, name), values(b, name))
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("source", ["int8", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"])
@pytest.mark.parametrize("name", sorted(STORED))
def test_casts_round_once(compile_func: Any, name: str, source: str) -> None:
    rng = np.random.default_rng(33)
    if source.startswith("float"):
        data = (rng.standard_normal(COUNT) * 10.0 ** rng.integers(-9, 9, COUNT)).astype(source)
    else:
        info = np.iinfo(source)
        data = rng.integers(info.min, info.max, COUNT, source, endpoint=True) >> rng.integers(
            0, info.bits, COUNT, source
        )
        # One more than a tie, far below what float32 keeps of it.
        data[:4] = (
            [2**i for i in (3, 4, 5, 6)] if info.bits < 32 else [(257 << 22) + 1, 257 << 22, (259 << 22) - 1, info.max]
        )
    out = computed(
        compile_func, widened(lambda v: tirx.Cast(name, v), [source], name), data, np.zeros(COUNT, np.uint16)
    )
    keep = 8 if name == "bfloat16" else 11
    for value, code in zip(data.tolist(), values(out, name), strict=True):
        assert code == nearest(value, keep, 65504 if name == "float16" else 3.3895313892515355e38), value


def nearest(value: float, keep: int, largest: float) -> float:
    """The number of ``keep`` binary digits next to a value, ties to even, computed exactly."""
    from fractions import Fraction

    exact = Fraction(value)
    if exact == 0:
        return 0.0
    exponent = abs(exact.numerator).bit_length() - exact.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > abs(exact)
    least = -14 if keep == 11 else -126
    unit = Fraction(2) ** (max(exponent, least) - keep + 1)
    rounded = float(round(exact / unit) * unit)
    return rounded if abs(rounded) <= largest else float("inf") * (1 if value > 0 else -1)


def test_loads_stores_selections_and_tile_calls_stay() -> None:
    a, c = (tirx.decl_buffer((8,), "float16", n, layout=None) for n in "AC")
    i = tirx.Var("i", "int32")
    one = tirx.FloatImm("float16", 1.0)
    body = nodes.seq(
        [
            nodes.store(c, tirx.Select(i > 3, a[i], one), [i]),
            nodes.store(c, tirx.reinterpret("float16", tirx.reinterpret("uint16", a[i])), [i]),
            calls.execute("atom_global_add_noftz_f16", [calls.address(c, [i]), a[i]]),
            nodes.store(c, nodes.tile_call("warp_reduce_sum", [a[i]], ret="float16"), [i]),
        ]
    )
    assert widen_floats(body).same_as(body)
    assert not collect(body, tirx.Cast)


def test_functions_and_predicates_take_float32() -> None:
    a = tirx.decl_buffer((8,), "bfloat16", "A", layout=None)
    i = tirx.Var("i", "int32")
    body = tirx.SeqStmt([nodes.store(a, tirx.exp(a[i]), [i]), nodes.store(a, tirx.exp(tirx.exp(a[i])), [i])])
    new = widen_floats(body)
    found = [c for c in collect(new, ir.Call) if nodes.operator_name(c) == "exp"]
    assert len(found) == 3
    assert {nodes.dtype_of(c) for c in found} == {"float32"}
    assert len([c for c in collect(new, tirx.Cast) if nodes.dtype_of(c) == "bfloat16"]) == 3
