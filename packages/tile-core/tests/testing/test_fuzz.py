"""The fuzzer: a small fixed sample of programs, a rotating one, and found defects."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import Phase, given, settings

from tile_core.ops import registry
from tile_core.ops.base import TileOp
from tile_core.testing import fuzz
from tile_core.testing.case import one, output, tensor
from tile_core.testing.data import numbers, values
from tile_core.testing.plain import tiles
from tile_core.testing.run import Session
from tile_core.testing.strategies.memory import ON_THREADS, layouts
from tile_core.testing.strategies.mutants import MANY


@pytest.mark.sweep(1)
def test_a_fixed_sample_of_programs():
    counts = fuzz.fuzz(6, seed=7, only="tiles")
    assert counts.total() >= 5
    assert counts["right"] >= 4


@pytest.mark.sweep(200)
@pytest.mark.parametrize("part", range(200))
def test_two_thousand_programs(part):
    assert fuzz.fuzz(10, seed=1000 + part, only="tiles").total() >= 8


@pytest.mark.sweep(4)
def test_a_wrong_result_becomes_a_small_kernel(monkeypatch, tmp_path):
    """With a deliberately broken reference, the smallest failing program is found, and runs."""
    real = tiles.values_of
    monkeypatch.setattr(tiles, "values_of", lambda x: np.minimum(real(x), 2))
    with pytest.raises(fuzz.WrongProgram) as caught:
        fuzz.fuzz(100, seed=3, mutated=0, only="tiles")
    text = str(caught.value)
    assert "elements are wrong, first at" in text
    start = text.index("import tile_core")
    assert len(text[start:].splitlines()) < 60
    script = tmp_path / "kernel.py"
    script.write_text(text[start:])
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_layout_of_fragments_is_drawn():
    forms = {form: re.sub(r"\\\{[a-z]\\\}", r"\\d+", re.escape(form)) for form in ON_THREADS}
    seen = set()

    @settings(max_examples=150, derandomize=True, database=None, deadline=None, phases=[Phase.generate])
    @given(layouts())
    def collect(unit):
        seen.update(form for form, pattern in forms.items() if re.search(pattern, unit.text()))

    collect()
    assert seen == set(ON_THREADS)


def test_an_internal_error_is_found(monkeypatch):
    def broken(call):
        raise ValueError("broken")

    monkeypatch.setitem(registry.OPS, "scan", TileOp("scan", (0,), (1,), broken))
    params = [tensor("X", "float32", "m", "n"), output("O", "float32", "m", "n")]
    data = {"": lambda rng: {"m": 4, "n": 4, "X": numbers(rng, (4, 4), "float32")}}
    body = "s = T.alloc_shared((4, 4), 'float32')\nT.copy(X[0, 0], s)\nT.cumsum(s)\nT.copy(s, O[0, 0])"
    unit = one("fuzz", "x", params, body, lambda d: values(d["X"], "float32").cumsum(0), data, symbols=("m", "n"))
    for check in (fuzz.check, fuzz.check_mutant):
        with pytest.raises(fuzz.WrongProgram, match="raised ValueError: broken"):
            check(Session(), unit)


@pytest.mark.sweep(1)
def test_the_command(capsys):
    assert fuzz.main(["--count", "3", "--seed", "5", "--mutated", "0.5", "--only", "tiles"]) == 0
    assert "3 programs" in capsys.readouterr().out


def test_programs_with_names_of_a_missing_package_have_one_witness(monkeypatch):
    from tile_core.errors.plugins import ProvidedElsewhere
    from tile_core.testing import search

    def missing(text, name):
        raise ProvidedElsewhere(found="ClusterKernel", distribution="tile-cuda", folders="packages/tile-cuda")

    monkeypatch.setattr(search, "load", missing)
    search._second(search.Unit("fuzz", "clusters-0"))


@pytest.mark.parametrize(("count", "runs"), [(MANY, 0), (300, 1)])
def test_a_mutant_that_may_run_for_long_is_compiled_only(monkeypatch, count, runs):
    body = f"for k in T.serial({count}):\n    B[0] = B[0] + A[0]"
    params = [tensor("A", "float32", 1), output("B", "float32", 1)]
    unit = one("fuzz", "long", params, body, lambda d: d["A"], {"": lambda rng: {"A": numbers(rng, (1,), "float32")}})
    session, called = Session("cpu"), []
    monkeypatch.setattr(session, "call", lambda *given: called.append(given))
    assert fuzz.check_mutant(session, unit) == "ran"
    assert len(called) == runs
