"""Every model against an oracle, and that the texts are what the device's compiler takes."""

import functools

import numpy as np
import pytest
import tile_emulator
from tile_core.emit.facts import LaunchFacts, ParamFact
from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch, opcodes

from ..vectors import groups, table

ARCH = Arch(90, "a")
GROUPS = groups.groups(ARCH)


@functools.cache
def launched(group, seed, completion="early", order="forward"):
    vectors = GROUPS[group]
    plan = table.plan_of(vectors, seed)
    result = tile_emulator.run(table.text_of(vectors), facts(plan), plan.arrays, dialect_of(ARCH),
                               completion=completion, order=order)  # fmt: skip
    return plan, result


def facts(plan):
    access = {"in": "read", "plan": "read", "out": "write", "memory": "readwrite"}
    params = tuple(
        ParamFact(name, "pointer", str(plan.arrays[name].dtype), access[name], 16) for name in table.PARAMS
    )
    return LaunchFacts(table.ENTRY, params, (plan.blocks, 1, 1), (table.LANES, 1, 1), table.SHARED_BYTES)


@pytest.mark.parametrize("vector", [v for vs in GROUPS.values() for v in vs], ids=lambda v: v.name)
def test_agrees_with_the_oracle(vector):
    for completion, order in (("early", "forward"), ("late", "random")):
        plan, result = launched(vector.group, 17, completion, order)
        assert result.ok, [str(report) for report in result.reports]
        table.check(vector, plan, {name: np.asarray(array) for name, array in result.outputs.items()})


def test_every_opcode_of_the_table_has_a_vector_or_stands_in_one():
    everything = "".join(v.body for v in groups.vectors())
    helpers = {"bar", "barrier", "membar", "fence", "activemask", "setp", "selp", "mov"}  # in test_language.py
    missing = [o for o in opcodes() if o + " " not in everything and o + ";" not in everything
               and o.split(".")[0] not in helpers and ".L2::" not in o]  # fmt: skip
    assert not missing
