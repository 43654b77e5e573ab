"""Test ``tile.explain``: ops, variants, rejections, memory, launch, vectors, passes."""

from __future__ import annotations

import dataclasses
import json

import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.lowering.variant import Reject, Variant
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.reports import explain, explain_facts, report_json
from tile_core.reports.facts import gather
from tile_core.reports.report import as_text, facts_of
from tile_core.reports.timing import timed


def kernel(M=100, dtype="float16"):
    N = 48

    @T.prim_func
    def product(A: T.Tensor((M, N), dtype), B: T.Tensor((N, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, 32), 2, threads=(64, 2)) as (bx, _by):
            A_s = T.alloc_shared((32, N), dtype)
            nibbles = T.alloc_shared((3, 6), "int4")
            B_s = T.alloc_shared((N, N), dtype)
            C_f = T.alloc_fragment((32, N), "float32")
            T.fill(nibbles, 1)
            T.copy(A[bx * 32, 0], A_s)
            T.copy(B, B_s)
            # Other uses of the tiles keep their copies.
            for i, j in T.Parallel(32, N):
                A_s[i, j] = -A_s[i, j]
            for i, j in T.Parallel(N, N):
                B_s[i, j] = -B_s[i, j]
            T.gemm(A_s, B_s, C_f, clear_accum=True)
            T.copy(C_f, C[bx * 32, 0])

    return product


@pytest.fixture(scope="module")
def facts():
    return explain_facts(kernel(), "cpu")


class TestFacts:
    def test_launch(self, facts):
        assert facts.kernel == "product"
        assert facts.target.startswith("cpu:")
        assert facts.grid == ("4", "2")
        assert facts.threads == (64, 2, 1)
        assert facts.where.rpartition(":")[0] == __file__

    def test_a_symbolic_grid(self):
        (axis, other) = explain_facts(kernel(T.dynamic("m")), "cpu").grid
        assert "m" in axis
        assert other == "2"

    def test_every_op_with_its_line(self, facts):
        assert [op.op for op in facts.ops] == ["fill", "copy", "copy", "gemm", "copy"]
        gemm = facts.ops[3]
        assert gemm.source == "T.gemm(A_s, B_s, C_f, clear_accum=True)"
        assert gemm.location.startswith(__file__)
        assert gemm.operands[0] == "A_s: float16[32, 48] in shared"
        assert gemm.variant.startswith("cpu.gemm.")
        assert not gemm.forced

    def test_memory_by_scope(self, facts):
        assert [(b.scope, b.name, b.bytes) for b in facts.buffers] == [
            ("shared", "A_s", 32 * 48 * 2),
            ("shared", "nibbles", 9),
            ("shared", "B_s", 48 * 48 * 2),
            ("local.fragment", "C_f", 32 * 48 * 4),
        ]
        assert facts.shared_bytes == 32 * 48 * 2 + 9 + 48 * 48 * 2

    def test_vectors(self, facts):
        assert all(lanes > 1 for v in facts.vectors for lanes in v.lanes)
        assert explain_facts(kernel(), "cpu", {"generic": True}).vectors == ()

    def test_loops_without_vectors(self):
        @T.prim_func
        def some(X: T.Tensor((64,), "float32"), K: T.Tensor((64,), "int32"), Y: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(64):
                    if K[i] > 0:
                        Y[i] = X[i]
                for i in T.Parallel(64):
                    Y[i] = Y[i] + X[i]

        conditional, plain = explain_facts(some, "cpu").vectors
        assert conditional.lanes == ()
        assert plain.lanes
        assert "no common form" in tile.compile(some, "cpu").explain()

    def test_passes_are_timed_in_order(self, facts):
        names = [p.name for p in facts.passes]
        assert names[0] == "check"
        assert "lower_ops" in names
        assert all(p.seconds >= 0 for p in facts.passes)

    def test_the_builder_is_timed_step_by_step(self, facts):
        names = [p.name for p in facts.building]
        assert names[0] == "flatten"
        assert names[-1] == "LLVM"
        assert "tirx.VectorizeLoop" in names
        assert all(p.seconds >= 0 for p in facts.building)

    def test_refusals_and_fallback(self):
        class Picky(Variant):
            name, op, priority = "cpu.copy.picky", "copy", 1000

            def accepts(self, call, ctx):
                return Reject("needs 7 threads, found 128")

            def lower(self, call, ctx):
                raise AssertionError("it refused")

        class Plugins:
            def lowerings(self, target):
                return (*installed().lowerings(target), Picky())

            def pipeline(self, target, spine):
                return installed().pipeline(target, spine)

        ctx = make_context("cpu")
        found = gather(timed(kernel(), ctx, Plugins()), ctx)
        op = found.ops[1]
        assert [dataclasses.astuple(r) for r in op.rejected] == [("cpu.copy.picky", "needs 7 threads, found 128")]
        assert op.fallback
        text = as_text(found)
        assert "plain loops; better variants rejected" in text
        assert "better variants that were rejected" in text
        assert "needs 7 threads, found 128" in text

    def test_forced(self):
        @T.prim_func
        def product(A: T.Tensor((16, 16), "float32"), C: T.Tensor((16, 16), "float32")):
            with T.Kernel(1, threads=32):
                T.gemm(A, A, C, variant="cpu.gemm.loops")

        found = explain_facts(product, "cpu")
        assert found.ops[0].forced
        assert found.ops[0].variant == "cpu.gemm.loops"
        assert "requested by the program" in as_text(found)

    def test_nothing_to_say(self):
        @T.prim_func
        def nothing(A: T.Tensor((4,), "float32")):
            with T.Kernel(1, threads=1):
                A[0] = 1.0

        text = explain(nothing, "cpu")
        assert "grid 1, threads 1 x 1 x 1" in text
        assert "tile ops" not in text


class TestText:
    def test_is_plain(self):
        text = explain(kernel(), "cpu")
        assert "\x1b" not in text
        assert all(line == line.rstrip() and len(line) <= 120 for line in text.splitlines())
        assert "T.copy(A[bx * 32, 0], A_s)" in text
        assert "shared memory: 7,689 of" in text

    def test_no_markup_is_read(self):
        @T.prim_func
        def marked(A: T.Tensor((4,), "float32")):
            with T.Kernel(1, threads=1) as bx:
                T.fill(A, [0.0, 1.0][bx.dtype == "red"])  # [red]x[/red]

        assert "# [red]x[/red]" in explain(marked, "cpu")

    def test_a_plan_without_times_runs_again(self):
        from tile_core.compiler import lower

        plugins, ctx = installed(), make_context("cpu")
        text = as_text(facts_of(lower(kernel(), ctx, plugins), ctx))
        assert "lower_ops" in text

    def test_a_compiled_kernel_says_the_same(self):
        compiled = tile.compile(kernel(), "cpu")

        def table(text):
            return text[text.index("tile ops") : text.index("passes")]

        assert table(compiled.explain()) == table(tile.explain(kernel(), "cpu")) == table(tile.explain(compiled, "cpu"))


class TestJson:
    def test_is_json(self):
        data = report_json(kernel(), "cpu", {"parallel": False})
        again = json.loads(json.dumps(data))
        assert again["ops"][3]["operands"] == list(data["ops"][3]["operands"])
        assert data["schema"] == 2
        assert data["options"]["parallel"] is False
        assert data["ops"][3]["op"] == "gemm"
