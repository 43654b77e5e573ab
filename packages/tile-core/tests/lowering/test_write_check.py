"""Writes of a variant are recognized by buffers, not by names."""

from tile_core.compat.tvm import tirx
from tile_core.ir import nodes
from tile_core.lowering.write_check import problem_of


def test_scratch_may_be_called_as_the_destination_is():
    destination = tirx.decl_buffer([4], "float32", "x", scope="shared", layout=None)
    scratch, allocate = nodes.alloc([1], "float32", "x", "local")
    kept = nodes.store(scratch, nodes.zero("float32"), [0])
    assert not problem_of("scan", nodes.seq([allocate, kept, nodes.store(destination, scratch[0], [1])]))
    assert "writes nothing" in problem_of("scan", nodes.seq([allocate, kept]))


def test_a_reducer_of_one_copy_is_completed_by_nothing():
    assert not problem_of("finalize_reducer", nodes.seq([]))
