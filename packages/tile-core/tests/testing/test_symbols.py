"""The fuzzer draws runtime sizes, corners and bounds in every strategy's programs."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tile_core.testing import strategies
from tile_core.testing.case import Data, Unit, one, output, scalar, tensor
from tile_core.testing.run import Session
from tile_core.testing.symbolic import CORNERS, EXTENTS, twin

#: As the fuzzer draws: a few programs of each of many seeds.
QUICK = settings(
    max_examples=10, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
FORMS = {
    "a tile at a corner that is read": r"T\.atomic_\w+\(B\[R\[bx\]( \* 2 - 1)?, ",
    "a tile at a constant corner of a symbolic tensor": r"B: T\.Tensor\(\(B_0(.|\n)*T\.atomic_\w+\(B\[1\b",
    "a tile at a variable's corner": r"T\.atomic_\w+\(B\[at",
    "a negative bound": r"T\.serial\(-\d, ",
    "bounds that are read": r"T\.serial\(R\[1[^,]*, R\[",
    "a bound of a thread's own": r"T\.serial\(v - i, ",
    "a 64-bit size": r'T\.dynamic\("\w+", "int64"\)',
    "sizes of both types": r'"int64"\)(.|\n)*"int32"\)',
    "a table of symbolic size": r'm = T\.dynamic\("m", "int64"\)(.|\n)*T\.gather\(',
}


def texts(strategy: Any, seeds: int) -> list[str]:
    """Programs of a strategy, as text."""
    found: list[str] = []
    for number in range(seeds):

        @seed(number)
        @QUICK
        @given(strategy)
        def collect(unit: Unit) -> None:
            found.append(unit.text())

        collect()
    return found


@pytest.mark.sweep(0.25)
def test_corners_and_bounds_are_drawn() -> None:
    found = texts(strategies.programs("corners"), 60)
    assert [form for form, pattern in FORMS.items() if not any(re.search(pattern, text) for text in found)] == []


def test_launches_with_workspaces_have_64_bit_sizes() -> None:
    found = texts(strategies.programs("launches"), 20)
    assert any('"int64")' in t and t.count("T.alloc_global(") > 1 and t.count("T.Kernel(") > 2 for t in found)


@pytest.mark.sweep(0.25)
def test_programs_of_all_strategies_have_symbols() -> None:
    found = [t for t in texts(strategies.programs(), 20) if "T.dynamic(" in t and "_0" in t]
    assert len(found) > 30  # half of the programs, of which some have no constant extent


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("extents", EXTENTS)
@pytest.mark.parametrize("corner", CORNERS)
def test_twins_compute_the_same(extents: str, corner: str) -> None:
    body = 'T.annotate_safe_value({A: 7})\ns = T.alloc_shared((3, 4), "int32")\nT.copy(A, s)\nT.copy(s, B[v, 0])\nfor i in T.Parallel(3):\n    C[i] = A[i, 3]'
    params = [tensor("A", "int32", 3, 4), scalar("v"), output("B", "int32", "m", 4), output("C", "int32", 3)]

    def data(rng: Any) -> Data:
        return {
            "m": 5,
            "v": 1,
            "A": rng.integers(0, 9, (3, 4)).astype("int32"),
            "B": rng.integers(0, 9, (5, 4)).astype("int32"),
        }

    def want(d: Data) -> Data:
        b = d["B"].copy()
        b[1:4] = d["A"]
        return {"B": b, "C": d["A"][:, 3]}

    unit = one("copy", "x", params, body, want, {"": data}, symbols=("m",))
    made = twin(unit, extents, corner)
    if extents == "constant" and corner == "constant":
        assert made is None
        return
    assert made is not None
    assert made.text() != unit.text()
    assert CORNERS[corner][1] in made.text()
    assert Session().run(made.cases()[0]).kind == "right"


def test_tensors_of_whole_operands_keep_their_names() -> None:
    body = "T.copy(A[0:3, 0:4], B)\nT.copy(C, D)"
    params = [tensor(n, "int32", 3, 4) for n in "AC"] + [output(n, "int32", 3, 4) for n in "BD"]
    unit = one("copy", "x", params, body, lambda d: {}, {"": lambda rng: {}}, whole=("A", "B"))
    made = twin(unit, "int32", "scalar")
    assert made is not None
    assert "T.copy(A[0:3, 0:4], B)" in made.text()
    assert "T.copy(C[zero_:zero_ + 3, zero_:zero_ + 4], D[zero_:zero_ + 3, zero_:zero_ + 4])" in made.text()
