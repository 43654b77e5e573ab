"""Operands that are read in place: which copies of pipelined loops a product does without, and its numbers then."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core.language as T
from tile_core.compat.tvm import ir, tirx
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.passes.spine import SPINE, Plan
from tile_core.simt.pipelining.operands import read_operands_directly
from tile_core.simt.spine import SimtHooks, simt_spine

from ..executed import executed
from ..whole import context


def planned(program, reads=lambda operand: True, kept=()):
    """Return the plan before operands are looked at, and after."""
    spine = simt_spine(SPINE, SimtHooks())
    before = Plan.of(program, ())
    for step in spine.passes[: [p.name for p in spine.passes].index("pipeline")]:
        before = step.run(before, context())
    return before, before.replace(body=read_operands_directly(before.body, reads, kept))


def run(plan, seed):
    """Return the arrays after a run on random numbers."""
    rng = np.random.default_rng(seed)
    memory = {p: rng.integers(-4, 5, nodes.shape_of(p)).astype("float32") for p in plan.params}
    return list(executed(plan.body, memory).values())


def read_directly(plan):
    """Return the names of the operands that products read from global memory."""
    calls = [c for c in collect(plan.body, ir.Call) if nodes.is_tile_call(c, "gemm")]
    views = [a for c in calls for a in c.args if hasattr(a, "region")]
    return {str(a.source.name) for a in views if nodes.scope_of(a.source) == "global"}


def product(M=11, N=10, K=13, trans=(False, False), twice=False, dtype="float32", used=False, part=False):
    shapes = [(K, M) if trans[0] else (M, K), (N, K) if trans[1] else (K, N)]

    @T.prim_func
    def main(A: T.Tensor(shapes[0], "float32"), B: T.Tensor(shapes[1], "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 8), T.ceildiv(M, 8), threads=32) as (bx, by):
            a = T.alloc_shared((8, 8), dtype)
            b = T.alloc_shared((16, 8) if part else (8, 8), dtype)
            c = T.alloc_fragment((8, 8), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 8), num_stages=2):
                if trans[0]:
                    T.copy(A[k * 8, by * 8], a)
                else:
                    T.copy(A[by * 8, k * 8], a)
                if trans[1]:
                    T.copy(B[bx * 8, k * 8], b[0:8, :])
                else:
                    T.copy(B[k * 8, bx * 8], b[0:8, :])
                T.gemm(a, b[0:8, :], c, transpose_A=trans[0], transpose_B=trans[1])
                if twice:
                    T.gemm(a, b[0:8, :], c, transpose_A=trans[0], transpose_B=trans[1])
                if used:
                    for i, j in T.Parallel(8, 8):
                        c[i, j] = c[i, j] + T.cast(a[j, i], "float32")
            T.copy(c, C[by * 8, bx * 8])

    return main


@pytest.mark.sweep(4)
@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("trans", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("only", [None, 0, 1])
def test_numbers_are_the_same(trans, twice, only):
    before, after = planned(product(trans=trans, twice=twice), lambda operand: only in (None, operand.position))
    want = {"A", "B"} if only is None else {"AB"[only]}
    assert read_directly(after) == want
    shared = {str(a.buffer.name) for a in collect(after.body, tirx.AllocBuffer) if nodes.scope_of(a.buffer) == "shared"}
    assert shared == {"a", "b"} - {x.lower() for x in want}
    for one, other in zip(run(before, 1), run(after, 1), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(("how", "left"), [
    ({"used": True}, {"B"}),  # something else reads the tile
    ({"part": True}, {"A"}),  # it is a part of a larger one
    ({"dtype": "float16"}, set()),  # the copy converts
])  # fmt: skip
def test_tiles_that_are_more_than_an_operand_are_copied(how, left):
    before, after = planned(product(**how))
    assert read_directly(after) == left
    for one, other in zip(run(before, 2), run(after, 2), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_target_is_asked():
    asked = []

    def reads(operand):
        asked.append((operand.call.name, operand.position, str(operand.source.name)))
        return False

    before, after = planned(product(), reads)
    assert asked == [("gemm", 0, "A"), ("gemm", 1, "B")]
    assert after.body.same_as(before.body)


def test_a_source_that_the_loop_writes_is_copied():
    @T.prim_func
    def main(A: T.Tensor((32, 8), "float32"), C: T.Tensor((8, 8), "float32")):
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((8, 8), "float32")
            c = T.alloc_fragment((8, 8), "float32")
            T.clear(c)
            for k in T.Pipelined(3, num_stages=2):
                T.copy(A[k * 8, 0], a)
                T.gemm(a, a, c)
                T.copy(c, A[k * 8 + 8, 0])
            T.copy(c, C)

    before, after = planned(main)
    assert after.body.same_as(before.body)


def test_one_tile_on_both_sides():
    @T.prim_func
    def main(A: T.Tensor((32, 8), "float32"), C: T.Tensor((8, 8), "float32")):
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((8, 8), "float32")
            c = T.alloc_fragment((8, 8), "float32")
            T.clear(c)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[k * 8, 0], a)
                T.gemm(a, a, c, transpose_B=True)
            T.copy(c, C)

    before, after = planned(main)
    assert read_directly(after) == {"A"}
    assert not [a for a in collect(after.body, tirx.AllocBuffer) if nodes.scope_of(a.buffer) == "shared"]
    for one, other in zip(run(before, 3), run(after, 3), strict=True):
        np.testing.assert_array_equal(one, other)
    assert read_directly(planned(main, lambda operand: operand.position == 0)[1]) == set()


@pytest.mark.parametrize("name", ["A", "a"])
def test_tensors_with_layouts_or_values_of_their_own_are_copied(name):
    assert read_directly(planned(product(), kept={name})[1]) == {"B"}
