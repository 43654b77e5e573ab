"""Isolation of recorders: a fresh process continues after a case that ended one."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from ..vectors import record_matrix
from ..vectors.isolated import run_isolated

TESTS = Path(__file__).parent.parent
CHILD = f"""
import os, sys, time
sys.path.insert(0, {str(TESTS)!r})
from vectors import isolated
seen = 0
def run(name):
    global seen
    seen += 1
    print("a library says something")
    if name == "raises":
        raise ValueError("an illegal instruction")
    if name == "dies":
        print("the driver's last words", file=sys.stderr, flush=True)
        os._exit(9)
    if name == "hangs":
        time.sleep(60)
    return [name, seen]
isolated.answer(run)
"""


def run_cases(names, **how):
    said = []
    return run_isolated([sys.executable, "-c", CHILD], names, say=said.append, **how), said


def test_all_cases_are_run_in_batches():
    outcome, said = run_cases([f"c{i}" for i in range(5)], batch=2)
    assert outcome.results == {"c0": ["c0", 1], "c1": ["c1", 2], "c2": ["c2", 1], "c3": ["c3", 2], "c4": ["c4", 1]}
    assert not outcome.failed
    assert not outcome.left
    assert said == [f"{n} of 5 done, 0 failed, {5 - n} to go" for n in (2, 4, 5)]


def test_a_case_that_fails_costs_only_itself():
    outcome, said = run_cases(["a", "raises", "b", "dies", "raises too", "c"])
    assert outcome.results == {"a": ["a", 1], "b": ["b", 1], "raises too": ["raises too", 1], "c": ["c", 2]}
    assert outcome.failed == {
        "raises": "ValueError: an illegal instruction",
        "dies": "its process ended with 9: the driver's last words",
    }
    assert "raises failed: ValueError: an illegal instruction" in said


def test_a_case_that_never_ends_is_ended():
    outcome, _ = run_cases(["a", "hangs", "b"], seconds=5)
    assert list(outcome.results) == ["a", "b"]
    assert outcome.failed == {"hangs": "it took more than 5 s"}


def test_where_everything_fails_it_stops():
    outcome, _ = run_cases(["a", "raises", "dies", "raises", "b"], most_failures=2)
    assert list(outcome.failed) == ["raises", "dies"]
    assert outcome.left == ["raises", "b"]


def test_a_child_that_cannot_start_is_no_case():
    with pytest.raises(RuntimeError, match="ended with 3 before it began a case: no device"):
        run_isolated([sys.executable, "-c", "import sys; print('no device', file=sys.stderr); sys.exit(3)"], ["a"])


RECORDING = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from vectors import isolated, matrix, record_matrix
def run(name):
    case = record_matrix.named()[name]
    if "3d" in name:
        raise OSError("gone")
    held = case.held.reshape(-1, case.held.shape[-1])
    return record_matrix.record_of(case, held if "1d" in name else held + 1)
isolated.answer(run)
"""


@pytest.mark.sweep(1)
def test_the_file_has_the_cases_that_did_not_fail(tmp_path, monkeypatch, capsys):
    cases = {name: record_matrix.named()[name] for name in (f"int32_{d}d_0_zero_pair" for d in (1, 2, 3))}
    monkeypatch.setattr(record_matrix, "named", lambda: cases)
    command = [sys.executable, "-c", RECORDING]
    record_matrix.record(tmp_path, command=command)
    with np.load(tmp_path / record_matrix.FILE) as kept:
        assert list(kept["names"]) == ["int32_1d_0_zero_pair", "int32_2d_0_zero_pair"]
        assert kept["digests"].shape == (2, 16)
        assert kept["digests"].dtype == np.uint8
    said = capsys.readouterr().out
    assert "2 recorded, 1 not as expected, 1 failed, 0 not run" in said
    assert "not as expected: int32_2d_0_zero_pair\nfailed: int32_3d_0_zero_pair: OSError: gone" in said


@pytest.mark.sweep(1)
def test_parts_of_names_write_nothing(tmp_path, monkeypatch):
    cases = {name: record_matrix.named()[name] for name in ("int32_1d_0_zero_pair", "int32_2d_0_zero_pair")}
    monkeypatch.setattr(record_matrix, "named", lambda: cases)
    found = record_matrix.record(tmp_path, ["1d"], command=[sys.executable, "-c", RECORDING])
    assert list(found.results) == ["int32_1d_0_zero_pair"]
    assert not list(tmp_path.iterdir())
