"""The watchdog: a hang or crash is a failure with its text; search continues."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tile_core.testing import watch
from tile_core.testing.effort import effort, own_effort
from tile_core.testing.search import Chunk, WrongProgram


def _watch(monkeypatch, jobs, limit):
    monkeypatch.syspath_prepend(Path(__file__).parent)
    monkeypatch.setattr(watch, "serve", importlib.import_module("seeded_worker").serve)
    made = watch.Watch("cpu", None, jobs=jobs, limit=limit)
    # Not "fork": this process has threads, whose locks a fork keeps for ever.
    made.context = multiprocessing.get_context("forkserver")
    made.context.set_forkserver_preload(["tile_core.testing.search"])
    return made


def test_nothing_begins_when_the_time_is_up(monkeypatch):
    made = _watch(monkeypatch, 1, 60.0)
    made.seconds = 0.0
    assert made.run([Chunk("indices", 5, 7)] * 100, count_into(made), print).counts.total() == 7


@pytest.mark.sweep(1)
@pytest.mark.parametrize("jobs", [1, 2])
def test_hanging_and_dying_programs_are_failures(monkeypatch, jobs):
    said = []
    made = _watch(monkeypatch, jobs, 1.0)
    summary = made.run([Chunk("indices", n, 7) for n in range(5)], count_into(made), said.append)
    assert sorted(kind for kind, _ in summary.failures) == ["crashed", "over time", "wrong"]
    assert any("program 1" in text and "the build took more than 1 s" in text for _, text in summary.failures)
    assert any("program 2" in text and "11" in text for _, text in summary.failures)
    table = summary.table()
    assert table["counts"]["right"] == 14
    assert table["slowest"]["build"]["seconds"] == 0.25
    assert len(said) == 3


@pytest.mark.parametrize(("seed", "over"), [(11, True), (12, False), (13, True)])
def test_what_waits_uses_no_time_but_not_for_ever(monkeypatch, seed, over):
    """One program waits forever, one exceeds the limit, one's child never ends."""
    made = _watch(monkeypatch, 1, 0.5)
    if not over:  # on a busy machine too
        monkeypatch.setattr(watch, "_WAITING", 100)
    summary = made.run([Chunk("indices", seed, 7)], count_into(made), lambda text: None)
    assert [kind for kind, _ in summary.failures] == ["over time"] * over
    assert summary.counts["right"] == (0 if over else 7)


def test_effort_is_that_of_a_process_and_its_children():
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
    with subprocess.Popen([sys.executable, "-c", code], start_new_session=True) as process:
        try:
            while (effort(process.pid) or 0.0) < 0.3:
                time.sleep(0.02)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    assert effort(process.pid) is None
    assert 0.0 < own_effort() <= effort(os.getpid()) + 0.02


def count_into(made):
    def count(kind, number):
        made.summary.counts[kind] += number

    return count


def test_the_rest_of_a_chunk_is_drawn_again(monkeypatch):
    made = _watch(monkeypatch, 1, 5.0)
    summary = made.run([Chunk("programs", 3, 10)], count_into(made), lambda text: None)
    assert len(summary.failures) == 1
    assert summary.counts["right"] == 9


def test_after_a_fault_of_the_device_a_new_process_runs_the_program_alone(monkeypatch):
    made = _watch(monkeypatch, 1, 5.0)
    given = []
    give = made._give
    monkeypatch.setattr(made, "_give", lambda w, chunk: (given.append((chunk, w.process.pid)), give(w, chunk)))
    summary = made.run([Chunk("programs", 9, 10)], count_into(made), lambda text: None)
    assert [chunk.alone for chunk, _ in given] == [-1, 4, -1]
    assert given[0][1] != given[1][1]
    assert "alone in a fresh process it fails too" in summary.failures[1][1]
    assert summary.counts["right"] == 9


def test_wrong_programs_differ_from_internal_errors():
    assert issubclass(WrongProgram, AssertionError)
    assert watch._kind("[I000] internal error in x") == "internal error"
    assert watch._kind("output B: 3 of 4 elements are wrong") == "wrong"
