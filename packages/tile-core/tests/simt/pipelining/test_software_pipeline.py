"""Pipelined loops against the meaning of the program as it was written: trips, stages, and what must stay in place."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from machine import Machine, element_of

import tile_core.language as T
from tile_core.compat.tvm import ir, tirx
from tile_core.ir import nodes
from tile_core.ir.attributes import ASYNC, COMPLETION, MANAGED, NUM_STAGES, ROLE
from tile_core.ir.visit import StmtRewriter, collect, replace_for
from tile_core.lowering.variant import Accept, Reject
from tile_core.simt.pipelining import staging
from tile_core.simt.pipelining.plan import GROUP, IMMEDIATE, REGISTERS, TRANSACTIONS
from tile_core.simt.pipelining.software_pipeline import plan_pipeline

pytestmark = pytest.mark.sweep(4)

TRIPS = (0, 1, 2, 3, 4, 5, 7)
STAGES = (2, 3, 4)


def plan(program, can_copy=lambda call: True, **kwargs):
    return plan_pipeline(program.func.body, can_copy, **kwargs)


def interpret(program, body, seed, late, **scalars):
    """Run a body on random arrays; return what is in them afterwards, and the machine."""
    rng = np.random.default_rng(seed)
    arrays, values = {}, {}
    for p in program.func.params:
        if not tirx.is_buffer_var(p):
            values[p] = scalars[str(p.name)]
            continue
        kind = element_of(p)
        shape = nodes.shape_of(p)
        low, high = (0, 3) if kind.kind in "iu" else (-8, 8)
        arrays[p] = rng.integers(low, high, shape).astype(kind)
    machine = Machine(arrays=arrays, values=values, late=late, lenient=True)
    machine.run(body)
    return {str(p.name): a for p, a in arrays.items()}, machine


#: How copies complete: all in one way, or those of every other buffer in another.
COMPLETIONS = (GROUP, TRANSACTIONS, IMMEDIATE, (GROUP, TRANSACTIONS), (IMMEDIATE, TRANSACTIONS))


def completing(kinds):
    """Return what a target says whose copies complete so."""
    asked = []

    def can_copy(call):
        asked.append(call)
        return Accept(facts={COMPLETION: kinds if isinstance(kinds, str) else kinds[len(asked) % len(kinds)]})

    return can_copy


def check(program, expect_async, **scalars):
    """The pipelined program does what the program does, however and whenever its copies complete."""
    for kinds in COMPLETIONS[1:]:
        run_both(program, expect_async, completing(kinds), **scalars)
    with mock.patch.object(staging, "MOST_BYTES", 1 << 20):
        run_both(program, expect_async, completing(REGISTERS), threads=1, **scalars)
    return run_both(program, expect_async, lambda call: True, **scalars)


def run_both(program, expect_async, can_copy, threads=4, **scalars):
    body, report = plan(program, can_copy, threads=threads)
    assert any(loop.stages or loop.through for loop in report.loops) == expect_async, str(report)
    for late in (True, False):
        want, _ = interpret(program, program.func.body, 3, late, **scalars)
        got, machine = interpret(program, body, 3, late, **scalars)
        for name, array in want.items():
            np.testing.assert_array_equal(got[name], array, err_msg=name)
    return body, report, machine


def tile_calls(body, name):
    return [c for c in collect(body, ir.Call) if nodes.is_tile_call(c, name)]


def copy_loop(stages, start=0):
    @T.prim_func
    def main(A: T.Tensor((21, 5), "float32"), n: T.int32, B: T.Tensor((3, 5), "float32")):
        with T.Kernel(1, threads=4):
            s = T.alloc_shared((3, 5), "float32")
            f = T.alloc_fragment((3, 5), "float32")
            T.clear(f)
            for k in T.Pipelined(start, n, num_stages=stages):
                T.copy(A[k * 3, 0], s)
                for i, j in T.Parallel(3, 5):
                    f[i, j] = f[i, j] * 2 + s[i, j]
            T.copy(f, B)

    return main


@pytest.mark.parametrize("start", [0, 2])
@pytest.mark.parametrize("stages", STAGES)
def test_runtime_trips(stages, start):
    program = copy_loop(stages, start)
    for trips in (-3, *TRIPS):
        _, report, machine = check(program, True, n=trips + start)
        assert machine.copies.begun == max(0, trips)
    assert [(x.stages, x.buffers, x.name) for x in report.loops] == [(stages, ("s",), "k")]


@pytest.mark.parametrize("stages", [1, *STAGES])
@pytest.mark.parametrize("trips", TRIPS)
def test_static_trips(trips, stages):
    @T.prim_func
    def main(A: T.Tensor((21, 5), "float16"), B: T.Tensor((3, 5), "float16")):
        with T.Kernel(1, threads=4):
            s = T.alloc_shared((3, 5), "float16")
            f = T.alloc_fragment((3, 5), "float16")
            T.clear(f)
            for k in T.Pipelined(trips, num_stages=stages):
                T.copy(A[k * 3, 0], s)
                for i, j in T.Parallel(3, 5):
                    f[i, j] = f[i, j] * 2 + s[i, j]
            T.copy(f, B)

    body, _, machine = check(main, trips > 1 and stages > 1)
    if trips > 1 and stages > 1:
        slots = min(stages, trips)
        assert machine.copies.begun == trips
        (version,) = [a.buffer for a in collect(body, tirx.AllocBuffer) if nodes.scope_of(a.buffer) == "shared"]
        assert nodes.shape_of(version) == [slots, 3, 5]
        # No copy of the prologue needs a guard.
        assert sum(1 for x in collect(body, tirx.IfThenElse)) == 1


def test_one_barrier_per_iteration():
    body, _ = plan(copy_loop(3))
    (loop,) = [x for x in collect(body, tirx.For) if str(x.loop_var.name) == "k"]
    inner = [str(s.value.op.name) for s in loop.body.seq if isinstance(s, tirx.Evaluate)]
    assert inner == ["tile.async_wait", "tile.sync_threads", "tile.async_commit"]
    assert nodes.as_int(tile_calls(loop, "async_wait")[0].args[0]) == 1
    (managed,) = [x for x in collect(body, tirx.AttrStmt) if x.attr_key == MANAGED]
    assert [str(b.name) for b in managed.node] == ["s_stages"]
    # Nothing used shared memory before the loop.
    assert len(tile_calls(body, "sync_threads")) == 2
    copies = [c for c in tile_calls(body, "copy") if ASYNC in c.attrs]
    assert len(copies) == 3


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_gemm_like(stages, trips):
    """Two operands, a remainder at the end of k, a reduction of a slot, and a transposed one."""

    @T.prim_func
    def main(
        A: T.Tensor((4, 13), "float32"), B: T.Tensor((13, 5), "float32"), n: T.int32,
        C: T.Tensor((4, 5), "float32"), R: T.Tensor((4,), "float32"), X: T.Tensor((3, 4), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=4):
            a = T.alloc_shared((4, 3), "float32")
            b = T.alloc_shared((3, 5), "float32")
            c = T.alloc_fragment((4, 5), "float32")
            r = T.alloc_fragment((4,), "float32")
            x = T.alloc_fragment((3, 4), "float32")
            T.clear(c)
            T.clear(r)
            T.clear(x)
            for k in T.Pipelined(n, num_stages=stages):
                T.copy(A[0, k * 3], a)
                T.copy(B[k * 3, 0], b)
                T.gemm(a, b, c)
                T.reduce_sum(a, r, dim=1, clear=False)
                T.transpose(a, x)
            T.copy(c, C)
            T.copy(r, R)
            T.copy(x, X)

    _, report, _ = check(main, True, n=trips)
    assert report.loops[0].buffers == ("a", "b")


@pytest.mark.parametrize(("first", "second"), [(2, 4), (4, 2), (3, 1), (3, 3), (1, 3), (0, 2)])
def test_siblings_share_buffers(first, second):
    """#2309: two loops over the same tile with other numbers of stages."""

    @T.prim_func
    def main(A: T.Tensor((12, 5), "float32"), n: T.int32, B: T.Tensor((3, 5), "float32")):
        with T.Kernel(1, threads=4):
            s = T.alloc_shared((3, 5), "float32")
            f = T.alloc_fragment((3, 5), "float32")
            T.clear(f)
            for k in T.Pipelined(n, num_stages=first):
                T.copy(A[k * 3, 0], s)
                for i, j in T.Parallel(3, 5):
                    f[i, j] += s[i, j]
            for k in T.Pipelined(n, num_stages=second):
                T.copy(A[k * 3, 0], s)
                for i, j in T.Parallel(3, 5):
                    f[i, j] += s[i, j] * s[i, j]
            T.copy(f, B)

    for trips in (0, 1, 4):
        body, report, _ = check(main, True, n=trips)
    assert [x.stages for x in report.loops] == [n if n > 1 else 0 for n in (first, second)]
    names = {str(a.buffer.name): nodes.shape_of(a.buffer) for a in collect(body, tirx.AllocBuffer)}
    assert [n for n in (first, second) if n > 1] == [v[0] for k, v in names.items() if k.startswith("s_stages")]
    assert ("s" in names) == (first < 2 or second < 2)
    assert all(original is not version for version, original in report.versions.items())


def test_late_read():
    """#3039: what the last iteration left is read after the loop."""

    @T.prim_func
    def main(
        A: T.Tensor((12, 5), "float32"), n: T.int32, B: T.Tensor((3, 5), "float32"), C: T.Tensor((3, 5), "float32")
    ):
        with T.Kernel(1, threads=4):
            s = T.alloc_shared((3, 5), "float32")
            o = T.alloc_shared((3, 5), "float32")
            f = T.alloc_fragment((3, 5), "float32")
            T.clear(f)
            T.fill(s, 5)
            for k in T.Pipelined(n, num_stages=3):
                T.copy(A[k * 3, 0], s)
                T.copy(A[k * 3, 0], o)
                for i, j in T.Parallel(3, 5):
                    f[i, j] += s[i, j] + o[i, j]
            T.copy(f, B)
            T.copy(s, C)

    for trips in (0, 1, 2, 4):
        _, report, _ = check(main, True, n=trips)
    assert report.loops[0].buffers == ("o",)
    assert dict(report.loops[0].kept)["s"] == "s is used outside of the loop too"


def test_conditions_and_variables():
    """#2876: a copy under a condition from memory; #1792: a variable as index; a corner from an index tensor."""

    @T.prim_func
    def main(A: T.Tensor((12, 5), "float32"), M: T.Tensor((4,), "int32"), n: T.int32, B: T.Tensor((3, 5), "float32")):
        with T.Kernel(1, threads=4):
            s = T.alloc_shared((3, 5), "float32")
            t = T.alloc_shared((3, 5), "float32")
            u = T.alloc_shared((3, 5), "float32")
            f = T.alloc_fragment((3, 5), "float32")
            at = T.alloc_var("int32", init=0)
            T.clear(f)
            for k in T.Pipelined(n, num_stages=3):
                row = M[k] * 3
                T.copy(A[row, 0], u)
                T.copy(A[at, 0], t)
                at = 9 - k * 3
                for i, j in T.Parallel(3, 5):
                    f[i, j] += t[i, j] * (k + 1) - u[i, j]
                if M[k] != 0:
                    T.copy(A[k * 3, 0], s)
                    for i, j in T.Parallel(3, 5):
                        f[i, j] += s[i, j]
            T.copy(f, B)

    for trips in (0, 1, 2, 4):
        _, report, _ = check(main, True, n=trips)
    assert report.loops[0].buffers == ("u",)
    kept = dict(report.loops[0].kept)
    assert kept["t"] == "its corner depends on at, which the loop writes"
    assert kept["s"] == "it is nested in a condition or an inner loop"


def test_what_an_iteration_needs_of_the_one_before():
    @T.prim_func
    def main(A: T.Tensor((12, 5), "float32"), n: T.int32, B: T.Tensor((12, 5), "float32")):
        with T.Kernel(1, threads=4):
            carried = T.alloc_shared((3, 5), "float32")
            written = T.alloc_shared((3, 5), "float32")
            ring = T.alloc_shared((6, 5), "float32")
            mine = T.alloc_shared((3, 5), "float32")
            good = T.alloc_shared((3, 5), "float32")
            f = T.alloc_fragment((3, 5), "float32")
            T.clear(f)
            for k in T.Pipelined(n, num_stages=3):
                T.copy(A[k * 3, 0], good)
                if k > 0:
                    for i, j in T.Parallel(3, 5):
                        f[i, j] += carried[i, j]
                T.copy(A[k * 3, 0], carried)
                T.copy(A[k * 3, 0], written)
                for i, j in T.Parallel(3, 5):
                    written[i, j] = written[i, j] + good[i, j]
                T.copy(A[k * 3, 0], ring[k % 2 * 3, 0])
                T.copy(B[k * 3, 0], mine)
                for i, j in T.Parallel(3, 5):
                    B[k * 3 + 3 + i, j] = mine[i, j] + f[i, j] + ring[i, j] + written[i, j]
            T.copy(f, B[0:3, 0:5])

    for trips in (1, 2, 4):
        _, report, _ = check(main, True, n=trips)
    (loop,) = report.loops
    assert loop.buffers == ("good",)
    assert dict(loop.kept) == {
        "carried": "it is read before it is copied, so the value of the iteration before is needed",
        "written": "another statement writes it",
        "ring": "the part of the buffer that it writes changes",
        "mine": "the loop writes B",
    }


@pytest.mark.parametrize("trips", [0, 1, 3])
def test_nested(trips):
    """A pipelined loop in a pipelined loop, both in a serial one; the outer loop's copies survive the inner waits."""

    @T.prim_func
    def main(A: T.Tensor((12, 5), "float32"), n: T.int32, B: T.Tensor((3, 5), "float32")):
        with T.Kernel(1, threads=4):
            s = T.alloc_shared((3, 5), "float32")
            f = T.alloc_fragment((3, 5), "float32")
            T.clear(f)
            for o in T.serial(2):
                for k in T.Pipelined(n, num_stages=3):
                    inner = T.alloc_shared((3, 5), "float32")
                    T.copy(A[k * 3, 0], s)
                    for q in T.Pipelined(n, num_stages=2):
                        T.copy(A[q * 3 + o, 0], inner)
                        for i, j in T.Parallel(3, 5):
                            f[i, j] += inner[i, j] * s[i, j] + q
            T.copy(f, B)

    body, report, _ = check(main, True, n=trips)
    assert [(x.name, x.stages) for x in report.loops] == [("q", 2), ("k", 3)]
    # Both loops begin with a barrier: they may follow an iteration that read the same memory.
    assert len(tile_calls(body, "sync_threads")) == 6


def test_jumps_keep_the_loop():
    """The language has no jumps out of such a loop; passes might leave one."""

    @T.prim_func
    def main(A: T.Tensor((12, 5), "float32"), n: T.int32, B: T.Tensor((3, 5), "float32")):
        with T.Kernel(1, threads=4):
            s = T.alloc_shared((3, 5), "float32")
            f = T.alloc_fragment((3, 5), "float32")
            T.clear(f)
            for k in T.serial(n):
                T.copy(A[k * 3, 0], s)
                if k == 2:
                    break
                for i, j in T.Parallel(3, 5):
                    f[i, j] += s[i, j]
            T.copy(f, B)

    class Pipelined(StmtRewriter):
        def visit_For(self, s):
            new = super().visit_For(s)
            notes = {ROLE: "pipelined", NUM_STAGES: 3}
            return replace_for(new, new.body, annotations=notes) if str(s.loop_var.name) == "k" else new

    body = Pipelined().stmt(main.func.body)
    new, report = plan_pipeline(body, lambda call: True)
    assert new.same_as(body)
    assert report.loops[0].reason == "it is left by a jump"


def test_views_and_whole_tables():
    """A second view of the tile, or an op that takes the whole buffer, keeps it where it is."""

    @T.prim_func
    def main(A: T.Tensor((12, 4), "float32"), n: T.int32, B: T.Tensor((3, 4), "float32")):
        with T.Kernel(1, threads=4):
            s = T.alloc_shared((3, 4), "float32")
            v = T.reshape(s, (4, 3))
            t = T.alloc_shared((3, 4), "float32")
            rows = T.alloc_fragment((3,), "int32")
            f = T.alloc_fragment((3, 4), "float32")
            g = T.alloc_fragment((3, 4), "float32")
            T.clear(f)
            for i in T.Parallel(3):
                rows[i] = 2 - i
            for k in T.Pipelined(n, num_stages=2):
                T.copy(A[k * 3, 0], s)
                T.copy(A[k * 3, 0], t)
                T.gather(t, rows, g)
                for i, j in T.Parallel(3, 4):
                    f[i, j] += v[j, i] + g[i, j]
            T.copy(f, B)

    for trips in (0, 1, 4):
        _, report, _ = check(main, False, n=trips)
    assert dict(report.loops[0].kept) == {
        "s": "another view shares its storage", "t": "gather takes whole buffers",
    }  # fmt: skip


def test_the_target_decides():
    program = copy_loop(3)
    body, report = plan(program, lambda call: Reject("rows of 20 bytes"))
    assert body.same_as(program.func.body)
    assert report.loops[0].kept == (("s", "rows of 20 bytes"),)
    assert "not pipelined" in str(report)
    body, report = plan(program, lambda call: Accept(facts={"async_bytes": 4}))
    copies = [c for c in tile_calls(body, "copy") if ASYNC in c.attrs]
    assert {int(c.attrs["async_bytes"]) for c in copies} == {4}
    _, report = plan(program, safe_values={"A": 1.0})
    assert report.loops[0].kept == (("s", "reads outside of A do not give zero"),)


def test_long_trip_counts():
    """A loop over 64-bit numbers, a trip count from memory, and a tile of one dimension."""

    @T.prim_func
    def main(A: T.Tensor((9, 5), "float32"), N: T.Tensor((1,), "int64"), B: T.Tensor((5,), "float32")):
        with T.Kernel(1, threads=4):
            s = T.alloc_shared((5,), "float32")
            f = T.alloc_fragment((5,), "float32")
            T.clear(f)
            for k in T.Pipelined(N[0] + 1, num_stages=3):
                T.copy(A[k, 0], s)
                for i in T.Parallel(5):
                    f[i] = f[i] * 2 + s[4 - i]
            T.copy(f, B)

    body, _, _ = check(main, True)
    (bind,) = [x for x in collect(body, tirx.Bind) if str(x.var.name).startswith("bound")]
    assert nodes.dtype_of(bind.var) == "int64"
