"""Whether a variant did anything is told by buffers, not by their names."""

from tile_core.compat.tvm import tirx
from tile_core.ir import nodes
from tile_core.lowering.written import problem_of
from tile_core.ops.base import OpCall, View


def test_scratch_may_be_called_as_the_destination_is():
    destination = tirx.decl_buffer([4], "float32", "x", scope="shared", layout=None)
    scratch, allocate = nodes.alloc([1], "float32", "x", "local")
    kept = nodes.store(scratch, nodes.zero("float32"), [0])
    assert not problem_of("scan", nodes.seq([allocate, kept, nodes.store(destination, scratch[0], [1])]))
    assert "writes nothing" in problem_of("scan", nodes.seq([allocate, kept]))


def test_an_op_that_means_nothing_may_write_nothing():
    reducer = tirx.decl_buffer([1], "float32", "r", scope="local.fragment", layout=None)
    call = OpCall("finalize_reducer", (View(reducer, (0,), (1,)),), {"kind": "sum"})
    assert not problem_of("finalize_reducer", nodes.seq([]), call)
    assert "writes nothing" in problem_of("finalize_reducer", nodes.seq([]))
