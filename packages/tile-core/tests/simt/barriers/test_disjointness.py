"""Footprints of accesses: what is remembered is about a variable, not about a Python object that stands for it."""

from __future__ import annotations

from tile_core.analysis.flow import Flow
from tile_core.analysis.uniformity import Varying
from tile_core.compat.tvm import tirx
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.simt.barriers.disjointness import Owners
from tile_core.simt.barriers.shared_accesses import Accesses
from tile_core.simt.variant import Block

COUNT, BOUND = 4, (0, 3)


def test_a_footprint_depends_on_which_variable_cancels():
    """Python reuses the addresses of objects: each variable is taken out of the program anew."""
    thread, i, j = nodes.fresh("thread"), nodes.fresh("i"), nodes.fresh("j")
    buffer, alloc = nodes.alloc([64], "int32", "S", "shared")
    body = nodes.seq([alloc, nodes.store(buffer, nodes.int_const(1), [thread * 16 + i * 4 + j])])
    flow = Flow(body)
    (access,) = Accesses(flow).of(flow.points[1])
    block = Block((COUNT, 1, 1), thread)
    owners = Owners(block, Varying(body, [thread]), {i: BOUND, j: BOUND})

    def uses_of(var):
        for _ in range(20):
            new = next(v for v in collect(body, tirx.Var) if v.same_as(var))
            found = owners.footprint(access, (new,), 4, False)
            del new
        return sorted(found[0].tolist())

    without_i, without_j = uses_of(i), uses_of(j)
    assert without_i == sorted(16 * t + step for t in range(COUNT) for step in range(3))
    assert without_j == sorted(16 * t + 4 * step for t in range(COUNT) for step in range(3))
    assert len(owners.prints) == 2
