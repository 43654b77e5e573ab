"""Signatures as data, and the solving of symbols."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile_core.abi.signature import (
    Equation,
    Param,
    Signature,
    dim_text,
    evaluate,
    shape_text,
    solvable,
    solve,
    symbols_of,
)
from tile_core.errors import InternalError, Where

TEXTS = [
    (7, "7"),
    ("m", "m"),
    (("mul", 2, "n"), "2*n"),
    (("add", "m", 1), "m + 1"),
    (("mul", ("add", "m", 1), 2), "(m + 1)*2"),
    (("sub", "a", ("sub", "b", "c")), "a - (b - c)"),
    (("ceildiv", "m", ("mul", 2, "n")), "ceildiv(m, 2*n)"),
    (("floordiv", "m", 4), "m//4"),
    (("mod", ("max", "m", 3), 4), "max(m, 3)%4"),
]


@pytest.mark.parametrize(("dim", "text"), TEXTS)
def test_text_of_a_dim(dim, text):
    assert dim_text(dim) == text
    values = {"a": 11, "b": 5, "c": 3, "m": 17, "n": 2}
    python = {"ceildiv": lambda x, y: -(-x // y), "max": max, **values}
    assert eval(text, python) == evaluate(dim, values)


def test_text_of_shapes():
    assert shape_text(("m", ("mul", 2, "n"))) == "(m, 2*n)"
    assert shape_text(("m",)) == "(m,)"
    assert shape_text(()) == "()"


def test_json_round_trip():
    params = (
        Param("A", "tensor", "float16", ("m", ("mul", 2, "k")), ("s", 1), "readwrite", 16),
        Param("n", "scalar", "int32"),
        Param("p", "pointer", "float32", access="write"),
        Param("C", "tensor", "bfloat16", ("m",), access="write"),
    )
    signature = Signature("f", params, (3,), 64, Where("kernel.py", 12))
    assert Signature.from_json(json.loads(json.dumps(signature.to_json()))) == signature
    assert signature.symbols == ("m", "k", "s")
    assert signature.usage == "C = f(A, n, p)"
    assert str(signature) == "f(A: float16(m, 2*k), strides (s, 1), n: int32, p: float32*) -> C: bfloat16(m,)"


def test_output_listed_before_the_input_that_defines_its_symbol():
    solution = solve([Equation(("mul", 2, "m"), 10, "C.shape[0]"), Equation("m", 5, "A.shape[0]")])
    assert solution.values == {"m": 5}
    assert solution.origins == {"m": "A.shape[0]"}


def test_linear_expressions_are_solved():
    assert solve([Equation(("mul", 2, "m"), 10, "A")]).values == {"m": 5}
    assert solve([Equation(("add", "m", "m"), 10, "A")]).values == {"m": 5}
    assert solve([Equation(("sub", 10, ("mul", 3, "m")), 4, "A")]).values == {"m": 2}
    assert solve([Equation(("mul", "m", "n"), 12, "A"), Equation("n", 4, "B")]).values == {"n": 4, "m": 3}


def test_what_cannot_be_solved():
    assert solve([Equation(("add", "m", "n"), 10, "A")]).values == {}
    assert solve([Equation(("ceildiv", "m", 4), 10, "A")]).values == {}
    assert solve([Equation(("mul", "m", "n"), 0, "A"), Equation("n", 0, "B")]).values == {"n": 0}
    odd = solve([Equation(("mul", 2, "m"), 7, "A")])
    assert odd.values == {}
    assert odd.undivided[0][1] == "m"
    assert solvable([("add", "m", "n"), ("ceildiv", "k", 4)]) == set()
    assert solvable([("add", "m", "n"), ("mul", 4, "n")]) == {"m", "n"}
    assert solvable([("mod", "m", 4)], {"m"}) == {"m"}


def test_division_by_zero_has_no_value():
    for op in ("floordiv", "mod", "ceildiv"):
        assert evaluate((op, 4, "n"), {"n": 0}) is None


def test_impossible_parameters_are_internal_errors():
    with pytest.raises(InternalError, match="1 strides"):
        Param("A", "tensor", "float32", ("m", "n"), (1,))
    with pytest.raises(InternalError, match="packed tensor"):
        Param("A", "tensor", "int4", ("m",), (1,))
    with pytest.raises(InternalError, match="alignment 12"):
        Param("A", "tensor", "int8", ("m",), align=12)


NAMES = ("m", "n", "k")


@st.composite
def chains(draw):
    """Dims that each solve a symbol from earlier ones, with positive values, in any order."""
    values = {name: draw(st.integers(1, 1000)) for name in NAMES}
    dims = []
    for count, name in enumerate(NAMES):
        dim = name
        for _ in range(draw(st.integers(0, 3))):
            other = draw(st.one_of(st.integers(1, 9), st.sampled_from(NAMES[:count] or (3,))))
            op = draw(st.sampled_from(("add", "sub", "mul")))
            dim = (op, other, dim) if draw(st.booleans()) else (op, dim, other)
        dims.append(dim)
    dims += draw(st.lists(st.sampled_from([("ceildiv", "m", 7), ("max", "n", "k"), ("mod", "k", 5)]), max_size=3))
    return values, draw(st.permutations(dims))


@given(chains())
def test_symbols_of_solvable_systems_come_back_in_any_order(system):
    values, dims = system
    solution = solve([Equation(d, evaluate(d, values), f"argument {i}") for i, d in enumerate(dims)])
    assert solution.values == values
    assert set(solution.origins) == set(NAMES)


@given(chains())
def test_statically_solvable_symbols(system):
    assert solvable(system[1]) == set(NAMES)


@given(chains(), st.data())
def test_a_found_value_always_satisfies_the_equation_that_gave_it(system, data):
    _, dims = system
    equations = [Equation(d, data.draw(st.integers(0, 50)), str(i)) for i, d in enumerate(dims)]
    solution = solve(equations)
    for symbol, origin in solution.origins.items():
        equation = equations[int(origin)]
        assert symbol in set(symbols_of(equation.dim))
        assert evaluate(equation.dim, solution.values) == equation.value
