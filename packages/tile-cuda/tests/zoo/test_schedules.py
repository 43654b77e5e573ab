"""Barrier ledger of the zoo: balanced for every trip count, unbalanced without a wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tile_core.compiler import lower
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.simt.notes import PIPELINE
from tile_core.simt.pipelining.ledger import imbalance_of
from tile_core.simt.pipelining.schedule import WaitGroups, WaitPhase

from .table import ZOO

pytestmark = pytest.mark.sweep(6)


def schedules(entry, target):
    plan = lower(entry.make().program, make_context(f"cuda:{target}"), installed())
    return [loop.schedule for loop in plan[PIPELINE].loops if loop.schedule is not None]


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("entry", ZOO, ids=lambda e: e.name)
def test_schedules_balance(entry, target):
    for schedule in schedules(entry, target):
        assert imbalance_of(schedule) is None
        anyhow = replace(schedule, trips=None)
        assert imbalance_of(anyhow) is None
        for at, program in enumerate(schedule.programs):
            for n, step in enumerate(program.iteration):
                if isinstance(step, (WaitGroups, WaitPhase)):
                    left = replace(program, iteration=(*program.iteration[:n], *program.iteration[n + 1 :]))
                    programs = (*schedule.programs[:at], left, *schedule.programs[at + 1 :])
                    assert imbalance_of(replace(anyhow, programs=programs)) is not None, step


def test_the_zoo_has_schedules():
    entry = next(e for e in ZOO if e.name == "gemm_f16")
    (schedule,) = schedules(entry, "sm_80")
    assert schedule.stages == 3
    assert any(isinstance(s, WaitGroups) for p in schedule.programs for s in p.iteration)
