"""``T.ws``: who does the work, the barriers of parts of a block, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from machine import Machine

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import ir, tirx
from tile_core.errors.lowering import RoleUnsupported
from tile_core.errors.ops import BadRole
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect

from . import whole

pytestmark = pytest.mark.sweep(2)

M, N = 16, 12


def planned(program, last="barriers", width=32, **capabilities):
    return whole.planned(program, width, last, **{"partial_barriers": 15, **capabilities})


def barriers(body):
    """Return the barriers in order: 0 for the block, otherwise the number of the role's barrier and its threads."""
    found = []
    for s in collect(body, tirx.Evaluate):
        if nodes.is_tile_call(s.value, "sync_threads"):
            found.append(0)
        elif nodes.is_tile_call(s.value, "sync_part"):
            found.append(tuple(int(nodes.as_int(a)) for a in s.value.args))
    return found


def scattered(plan, body, data, seed):
    block = plan.block
    tensors = [p for p in plan.params if hasattr(p, "shape")]
    memory = {p: a.copy() for p, a in zip(tensors, data, strict=True)}
    Machine(block.extents, block.thread, memory, width=32).scatter(body, seed)
    return [memory[p] for p in tensors]


@T.prim_func
def apart(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
    with T.Kernel(1, threads=96):
        s = T.alloc_shared((M, N), "float32")
        r = T.alloc_shared((M, N), "float32")
        with T.ws(0, size=32):
            for i, j in T.Parallel(M, N):
                s[i, j] = A[i, j] * 2
            for i, j in T.Parallel(M, N):
                B[i, j] = s[M - 1 - i, j]
        with T.ws(1, 2, size=32):
            for i, j in T.Parallel(M, N):
                r[i, j] = A[i, j] + 1
            for i, j in T.Parallel(M, N):
                s[i, j] = r[i, N - 1 - j]
        for i, j in T.Parallel(M, N):
            B[i, j] = B[i, j] + s[i, j]


@T.prim_func
def alternating(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((M, N), "float32")
        f = T.alloc_fragment((M, N), "float32")
        with T.ws(1, size=32):
            T.clear(f)
        for k in T.serial(3):
            with T.ws(0, size=32):
                for i, j in T.Parallel(M, N):
                    s[i, j] = A[i, j] + T.cast(k, "float32")
            with T.ws(1, size=32):
                for i, j in T.Parallel(M, N):
                    f[i, j] = f[i, j] + s[M - 1 - i, j]
        with T.ws(1, size=32):
            for i, j in T.Parallel(M, N):
                B[i, j] = f[i, j]


@T.prim_func
def alone(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((M, N), "float32")
        r = T.alloc_shared((M, N), "float32")
        with T.ws(0, size=32):
            for i, j in T.Parallel(M, N):
                s[i, j] = A[i, j]
            for i, j in T.Parallel(M, N):
                B[i, j] = s[M - 1 - i, j]
        with T.ws(1, size=32):
            for i, j in T.Parallel(M, N):
                r[i, j] = A[i, j]
            for _ in T.serial(2):
                for i, j in T.Parallel(M, N):
                    r[i, j] = r[i, j] + 1


def meaning(program, a):
    b = {
        "apart": a[::-1] * 2 + (a + 1)[:, ::-1], "alternating": sum((a + k)[::-1] for k in range(3)), "alone": a[::-1],
    }  # fmt: skip
    return b[program.name]


PROGRAMS = (apart, alternating, alone)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_threads_in_any_order_do_what_the_kernel_means(program):
    a = np.random.default_rng(3).integers(-9, 10, (M, N)).astype(np.float32)
    plan = planned(program)
    for seed in range(3):
        b = np.full((M, N), np.nan, np.float32)
        np.testing.assert_array_equal(scattered(plan, plan.body, [a, b], seed)[1], meaning(program, a))
    on_cpu = np.full((M, N), np.nan, np.float32)
    tile.compile(program, "cpu")(a, on_cpu)
    np.testing.assert_array_equal(on_cpu, meaning(program, a))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_every_barrier_is_needed(program):
    rng = np.random.default_rng(4)
    plan = planned(program)
    assert barriers(plan.body)
    for n in range(len(barriers(plan.body))):
        left = _Without(n).stmt(plan.body)
        assert len(barriers(left)) == len(barriers(plan.body)) - 1
        assert any(not _right(program, plan, left, rng, seed) for seed in range(12)), n


def _right(program, plan, body, rng, seed):
    a = rng.integers(-9, 10, (M, N)).astype(np.float32)
    try:
        found = scattered(plan, body, [a, np.full((M, N), np.nan, np.float32)], seed)[1]
    except AssertionError:  # threads wait for each other in different places
        return False
    return np.array_equal(found, meaning(program, a))


class _Without(StmtRewriter):
    def __init__(self, n):
        self.left = n

    def visit_Evaluate(self, s):
        if barriers(s):
            self.left -= 1
            return nodes.seq([]) if self.left == -1 else s
        return s


def test_barriers_are_those_of_the_threads_that_depend_on_each_other():
    # Each role by itself needs one; before the second one writes what the first one reads, the block waits.
    plan = planned(apart)
    assert barriers(plan.body) == [(1, 32), 0, (2, 64), 0]
    assert sorted(b.role for b in plan.barriers) == ["", "", "threads 0-31", "threads 32-95"]
    # The second role of a turn reads what the first one has written, and the other way round in the next turn.
    assert barriers(planned(alternating).body) == [0, 0]
    # What a thread reads and writes again is its own.
    assert barriers(planned(alone).body) == [(1, 32)]


def test_a_tile_in_registers_belongs_to_the_role_that_uses_it():
    layouts = {str(b.name): layout for b, layout in planned(alternating).placement.placement.fragments.items()}
    assert layouts["f"].threads == 32

    @T.prim_func
    def own(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(1, threads=96):
            f = T.alloc_fragment((M, N), "float32")
            with T.ws(1, 2, size=32):
                T.copy(A, f)
                T.copy(f, B)

    layouts = {str(b.name): layout for b, layout in planned(own).placement.placement.fragments.items()}
    assert layouts["f"].threads == 64

    @T.prim_func
    def common(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(1, threads=96):
            f = T.alloc_fragment((M, N), "float32")
            with T.ws(1, 2, size=32):
                T.copy(A, f)
            T.copy(f, B)

    plan = planned(common)
    assert not plan.placement.placement.fragments
    assert set(plan.demoted.values()) == {"threads of several roles use it"}


def test_loops_of_a_role_are_pipelined_by_its_threads():
    @T.prim_func
    def main(A: T.Tensor((64, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(1, threads=96):
            s = T.alloc_shared((M, N), "float32")
            f = T.alloc_fragment((M, N), "float32")
            with T.ws(1, 2, size=32):
                T.clear(f)
                for k in T.Pipelined(4, num_stages=2):
                    T.copy(A[k * M, 0], s)
                    for i, j in T.Parallel(M, N):
                        f[i, j] = f[i, j] + s[M - 1 - i, j]
                T.copy(f, B)

    plan = planned(main)
    (found,) = plan.pipeline.loops
    assert (found.stages, found.buffers) == (2, ("s",))
    assert [p.role.count for p in found.schedule.programs] == [64]
    assert set(barriers(plan.body)) == {(1, 64)}


def test_targets_without_such_barriers_refuse():
    with pytest.raises(RoleUnsupported) as caught:
        planned(apart, partial_barriers=0)
    text = str(caught.value)
    assert "[U117] T.ws of threads 0-31: parts of a block have no barrier on wide:any" in text
    assert "leave T.ws out: the block's threads then share all work" in text
    with pytest.raises(RoleUnsupported, match="there are 1 barriers of parts of a block"):
        planned(apart, partial_barriers=1)
    with pytest.raises(RoleUnsupported, match="threads execute in groups of 64 on wide:any"):
        planned(apart, width=64)


def trace(body, threads=64):
    """Return the program of a kernel with statements."""
    text = "import tile_core.language as T\n@T.prim_func\ndef main(A: T.Tensor((64,), 'float32')):\n"
    text += f"    with T.Kernel(1, threads={threads}):\n" + "\n".join("        " + x for x in body)
    from tile_core.testing.run import load

    return tile.compile(load(text + "\n"), "cpu")


@pytest.mark.parametrize(
    ("body", "found", "fix"),
    [
        (["with T.ws(1, size=48):", "    A[0] = 1.0"],
         "T.ws names threads 48 to 95, the block has 0 to 63", "threads=96"),
        (["with T.ws(0, size=8):", "    with T.ws(0, size=8):", "        A[0] = 1.0"],
         "inside another T.ws", "close that"),
        (["for i in T.Parallel(8):", "    with T.ws(0, size=8):", "        A[i] = 1.0"],
         "inside a data-parallel loop", "close that first"),
        (["with T.ws(0, size=8):", "    A[T.get_thread_binding(0)] = 1.0"],
         "in a kernel that names its threads", "not both"),
        (["n = T.alloc_var('int32', init=0)", "with T.ws(0, size=8):", "    n = 1", "A[n] = 1.0"],
         "n is private to each thread and written in T.ws, but other threads use it", "keep n inside of T.ws"),
        (["r = T.alloc_reducer((8,), 'float32', 'sum')", "T.clear(r)", "with T.ws(0, size=8):",
          "    for i in T.Parallel(8):", "        r[i] += A[i]", "T.finalize_reducer(r)", "T.copy(r, A[0:8])"],
         "T.ws uses the reducer r", "T.reduce_"),
    ],
)  # fmt: skip
def test_what_a_role_cannot_do(body, found, fix):
    with pytest.raises(BadRole) as caught:
        trace(body)
    text = str(caught.value)
    assert "[K230]" in text
    assert found in text
    assert fix in text


def test_names_bound_inside_end_with_it():
    from tile_core.errors.language import UsedAfterScope

    with pytest.raises(UsedAfterScope):
        trace(["with T.ws(0, size=8):", "    x = A[0] + 1.0", "A[1] = x"])


def test_a_role_of_all_threads_has_no_condition():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64), T.ws(0, size=64):
            for i in T.Parallel(64):
                A[i] = A[i] + 1

    body = planned(main).body
    assert not [c for c in collect(body, ir.Call) if nodes.is_tile_call(c, "sync_part")]
    assert not collect(body, tirx.IfThenElse)
