"""Value numbering: equal values have equal numbers, and each name is visited once."""

from __future__ import annotations

import numpy as np
import pytest

from tile_core.analysis.index_evaluation import Unknown, evaluate
from tile_core.analysis.value_numbering import Fingerprint, apart
from tile_core.compat.tvm import tirx
from tile_core.ir import nodes

EXECUTIONS = np.arange(5)


def chain(length):
    """Names that are each the sum of two uses of the previous one.

    The first is an element.
    """
    buffer = tirx.decl_buffer([5], "float32", "A")
    i = nodes.fresh("i")
    names = [nodes.fresh(f"x{n}", "float32") for n in range(length)]
    binds = {names[0]: nodes.load(buffer, [i])}
    binds |= {names[n]: names[n - 1] + names[n - 1] for n in range(1, length)}
    return names, binds, i


def test_a_long_chain_of_names_takes_no_time():
    names, binds, i = chain(300)
    reads = []

    def element(load, env):
        reads.append(load)
        return apart(env[i])

    found = Fingerprint({i: EXECUTIONS}, binds, element).of(names[-1])
    assert len(reads) == 1
    assert len(set(found.tolist())) == 5


def test_equal_values_of_different_names_have_one_number():
    names, binds, i = chain(4)
    other, more, j = chain(4)
    load = binds[names[0]]
    more[other[0]] = load
    numbers = Fingerprint({i: EXECUTIONS}, {**binds, **more}, lambda load, env: apart(env[i]))
    np.testing.assert_array_equal(numbers.of(names[3]), numbers.of(other[3]))
    assert not np.array_equal(numbers.of(names[3]), numbers.of(other[2]))
    assert j is not i


def test_what_calls_the_unknown_is_unknown_each_time():
    v = nodes.fresh("v")
    numbers = Fingerprint({}, {v: nodes.tile_call("lane_index", [], ret="int32")}, lambda load, env: apart(EXECUTIONS))
    for _ in range(2):
        with pytest.raises(Unknown):
            numbers.of(v + 1)


def test_a_variable_has_one_number_whichever_object_stands_for_it():
    """Python makes new objects for a variable, possibly at an earlier object's address."""
    numbers = Fingerprint({}, {}, lambda load, env: apart(EXECUTIONS))
    twice = [nodes.fresh("x") * 2 + 1 for _ in range(2)]
    first, second = ([numbers.of(e.a.a).tolist() for _ in range(3)] for e in twice)
    assert first[0] == first[1] == first[2]
    assert second[0] == second[1] == second[2]
    assert first[0] != second[0]


def test_constants_that_exceed_int64_are_unknown():
    least = tirx.IntImm("int64", -(2**63))
    found = Fingerprint({}, {}, lambda load, env: apart(env[0])).of(tirx.Sub(tirx.IntImm("int64", 0), least))
    assert found.dtype == np.uint64
    with pytest.raises(Unknown):
        evaluate(tirx.Mul(least, tirx.IntImm("int64", 2)), {})
