"""Errors of the catalogue that are raised inside callbacks of TVM come out as themselves."""

from __future__ import annotations

import threading

import pytest

from tile_core.compat import crossing, structural
from tile_core.compat.tvm import ir, tirx, tvm, tvm_ffi
from tile_core.errors import InternalError, TileError, Where


def expression():
    return tirx.Cast("float32", tirx.Var("x", "int32") * 3)


def by_walk(callback):
    structural.walk(expression(), tirx.Var, callback)


def by_map(callback):
    structural.mapped(expression(), tirx.Var, callback)


def by_mutation(callback):
    structural.mutated(expression(), [(tirx.Cast, lambda node, mutator: callback(node))])


def by_tvm(callback):
    tvm_ffi.structural_map(expression(), (tirx.Var, callback))


def by_pass(callback):
    func = tirx.PrimFunc([], tirx.Evaluate(expression())).with_attr("global_symbol", "f")
    change = tirx.transform.prim_func_pass(lambda f, _m, _c: callback(f), opt_level=0, name="change")
    tvm.transform.Sequential([change])(ir.IRModule({"f": func}))


def by_two_layers(callback):
    by_map(lambda node: by_pass(callback))


WAYS = [by_walk, by_map, by_mutation, by_tvm, by_pass, by_two_layers]


@pytest.mark.parametrize("way", WAYS)
def test_a_refusal_is_the_same_object_outside(way):
    raised = InternalError(stage="a test", detail="[crossing 1]", where=Where("user.py", 3))

    def refuse(node):
        raise raised

    with pytest.raises(TileError) as caught:
        way(refuse)
    assert caught.value is raised
    assert str(raised).startswith("[I000] internal error in a test")
    assert "refuse" in [entry.name for entry in caught.traceback]
    assert not crossing._inside


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_other_errors_come_out_as_tvm_makes_them(way, kind):
    def fail(node):
        raise kind("no number")

    with pytest.raises(kind):
        way(fail)


def test_every_thread_gets_its_own():
    found = {}

    def work(n):
        raised = [InternalError(stage=str(n), detail=str(i)) for i in range(50)]
        for error in raised:

            def refuse(node, error=error):
                raise error

            try:
                by_map(refuse)
            except TileError as caught:
                found.setdefault(n, []).append(caught is error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert found == {n: [True] * 50 for n in range(4)}


def test_a_text_without_a_known_number_is_a_runtime_error():
    for message in ("lost", "lost [crossing 12]"):
        error = tvm_ffi.core.Error(crossing.KIND, message, "").py_error()
        assert type(error) is RuntimeError
        assert str(error) == message
