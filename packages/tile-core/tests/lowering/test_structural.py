"""The short ways to TVM's structural walk and map find what TVM's own functions find."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx, tvm_ffi


def tree():
    x, y = tirx.Var("x", "int32"), tirx.Var("y", "int32")
    buffer = tirx.decl_buffer((8,), "float32", "A")
    value = tirx.Cast("float32", x * 3 + y) + buffer[x]
    store = tirx.BufferStore(buffer, value, [y])
    return tirx.For(x, 0, 8, tirx.ForKind.SERIAL, tirx.SeqStmt([store, tirx.Evaluate(tirx.exp(value))]))


@pytest.mark.parametrize("kinds", [tirx.Var, ir.TensorLoad, (tirx.Var, tirx.IntImm), (tirx.For, ir.Call, tirx.Cast)])
def test_walk(kinds):
    mine, theirs = [], []
    root = tree()
    structural.walk(root, kinds, mine.append)
    tvm_ffi.structural_walk(root, [(kinds, theirs.append)])
    assert mine
    assert len(mine) == len(theirs)
    assert all(a.same_as(b) for a, b in zip(mine, theirs, strict=True))


ATOMS = {
    "constant": tirx.IntImm("int32", 3),
    "constant of a float": tirx.FloatImm("float32", 3.0),
    "scalar": tirx.Var("x", "int32"),
    "buffer with sizes that are variables": tirx.decl_buffer((tirx.Var("n", "int32"), 4), "float32", "A"),
}


@pytest.mark.parametrize("root", [*ATOMS.values(), tree()], ids=[*ATOMS, "tree"])
@pytest.mark.parametrize("kinds", [tirx.Var, tirx.IntImm, (ir.Call, tirx.FloatImm), ir.Expr, (tirx.Add, tirx.Var)])
def test_collect(kinds, root):
    theirs: list[object] = []
    tvm_ffi.structural_walk(root, [(kinds, theirs.append)])
    for _ in range(2):  # the second time with what the first one made
        mine = structural.collect(root, kinds)
        assert len(mine) == len(theirs)
        assert all(a.same_as(b) for a, b in zip(mine, theirs, strict=True))


def test_threads_that_collect_do_not_meet():
    first = structural.collect(tree(), tirx.Var)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: len(structural.collect(tree(), tirx.Var)), range(200)))
    assert found == [len(first)] * 200


@pytest.mark.parametrize("root", ATOMS.values(), ids=ATOMS)
@pytest.mark.parametrize("kinds", [tirx.IntImm, (tirx.Var, tirx.FloatImm), ir.Expr])
def test_map_of_atoms(kinds, root):
    def change(node):
        return tirx.IntImm("int32", 7) if not isinstance(node, tirx.Var) else node

    mine, theirs = structural.mapped(root, kinds, change), tvm_ffi.structural_map(root, (kinds, change))
    assert tvm_ffi.structural_equal(mine, theirs, map_free_vars=False)


@pytest.mark.parametrize("kinds", [tirx.IntImm, (tirx.IntImm, tirx.Cast)])
def test_map(kinds):
    def change(node):
        return tirx.IntImm(str(node.ty), node.value + 1) if isinstance(node, tirx.IntImm) else node

    root = tree()
    mine, theirs = structural.mapped(root, kinds, change), tvm_ffi.structural_map(root, (kinds, change))
    assert tvm_ffi.structural_equal(mine, theirs, map_free_vars=False)
    assert not tvm_ffi.structural_equal(mine, root, map_free_vars=False)


def test_mutate():
    def handlers():
        def cast(node, mutator):
            return tirx.Cast("float64", mutator.mutate(node.value))

        def literal(node, mutator):
            return tirx.IntImm(str(node.ty), node.value * 2)

        return [(tirx.Cast, cast), ((tirx.IntImm, tirx.FloatImm), literal)]

    root = tree()
    mine, theirs = structural.mutated(root, handlers()), tvm_ffi.structural_mutate(root, handlers())
    assert tvm_ffi.structural_equal(mine, theirs, map_free_vars=False)
    assert not tvm_ffi.structural_equal(mine, root, map_free_vars=False)


def test_the_elements_of_an_array_are_those_of_its_iterator():
    for size in (0, 1, 5):
        array = tvm_ffi.Array([tirx.IntImm("int32", n) for n in range(size)])
        found = structural.items(array)
        assert len(found) == size
        assert all(a.same_as(b) for a, b in zip(found, array, strict=True))
