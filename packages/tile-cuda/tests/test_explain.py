"""Output of ``explain`` for a target with threads, on a machine without a device."""

from __future__ import annotations

import json
import warnings
from types import SimpleNamespace

import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compiler import lower
from tile_core.passes.performance import PerformanceNote
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.reports import explain, explain_facts, report_json, slow
from tile_core.reports.slow import SlowFallback, SlowTiles
from tile_cuda import build
from tile_cuda_runtime import driver
from tile_cuda_runtime.errors import NoNvrtc


def product(dtype="float16", size=256, stages=3, variant=None):
    block = 64

    @T.prim_func
    def gemm(A: T.Tensor((size, size), dtype), B: T.Tensor((size, size), dtype), C: T.Tensor((size, size), "float32")):
        with T.Kernel(T.ceildiv(size, block), T.ceildiv(size, block), threads=128) as (bx, by):
            A_s = T.alloc_shared((block, 64), dtype)
            B_s = T.alloc_shared((64, block), dtype)
            C_f = T.alloc_fragment((block, block), "float32")
            T.clear(C_f)
            for k in T.Pipelined(T.ceildiv(size, 64), num_stages=stages):
                T.copy(A[by * block, k * 64], A_s)
                T.copy(B[k * 64, bx * block], B_s)
                if variant:
                    T.gemm(A_s, B_s, C_f, variant=variant)
                else:
                    T.gemm(A_s, B_s, C_f)
            T.copy(C_f, C[by * block, bx * block])

    return gemm


def turned():
    """Through shared memory, and through a fragment that every thread looks into."""
    m = T.dynamic("m")

    @T.prim_func
    def reverse(X: T.Tensor((m, 30), "float32"), Y: T.Tensor((m,), "float32")):
        with T.Kernel(T.ceildiv(m, 32), threads=64) as bx:
            tile_s = T.alloc_shared((32, 32), "float32")
            held = T.alloc_fragment((32,), "float32")
            T.copy(X[bx * 32, 0], tile_s)
            for i in T.Parallel(32):
                held[i] = tile_s[31 - i, i]
            for i in T.Parallel(32):
                Y[bx * 32 + i] = held[31 - i]

    return reverse


@pytest.fixture(scope="module")
def facts():
    return explain_facts(product(), "cuda:sm_90a", {"tma": "never", "epilogue": "never"})


class TestBlock:
    def test_needs_no_driver(self, monkeypatch):
        def refuse():
            raise AssertionError("the driver was asked")

        monkeypatch.setattr(driver, "open_driver", refuse)
        assert "cuda.wgmma" in explain(product(), "cuda:sm_90a")

    def test_fragments(self, facts):
        (c,) = facts.block.fragments
        assert (c.name, c.dtype, c.shape, c.threads, c.registers, c.replicas, c.vector) == (
            "C_f", "float32", (64, 64), 128, 32, 1, 2,
        )  # fmt: skip
        assert c.digits.count("@thread") >= 4
        assert c.digits.count("; ") == 1

    def test_shared_memory(self, facts):
        a, b = facts.block.shared
        assert (a.name, a.shape, a.bytes, b.name) == ("A_s", (3, 64, 64), 3 * 64 * 64 * 2, "B_s")
        assert sorted([a.offset, b.offset]) == [0, a.bytes]
        assert facts.shared_bytes == facts.block.shared_bytes == a.bytes + b.bytes
        assert a.why == "declared; 3 slots of the pipeline"
        assert "128-byte swizzle" in a.layout
        assert a.conflicts == 0
        assert a.first.startswith(__file__)
        assert a.last.startswith(__file__)
        assert int(a.first.rpartition(":")[2]) <= int(a.last.rpartition(":")[2])

    def test_operands_in_flight_live_until_their_line_or_longer(self):
        found = explain_facts(product(), "cuda:sm_90a", {"wgmma": "always"})
        (loop,) = found.block.loops
        assert "use the slots, asynchronous until waited for" in " ".join(loop.schedule)
        rings = [b for b in found.block.shared if b.name in ("A_s", "B_s")]
        assert len(rings) == 2
        for buffer in rings:
            assert int(buffer.first.rpartition(":")[2]) < int(buffer.last.rpartition(":")[2])

    def test_pipeline(self, facts):
        (loop,) = facts.block.loops
        assert (loop.name, loop.stages, loop.buffers, loop.kept, loop.reason) == ("k", 3, ("A_s", "B_s"), (), "")

    def test_a_loop_that_is_not_pipelined(self):
        (loop,) = explain_facts(product(stages=1), "cuda:sm_80").block.loops
        assert loop.stages == 0
        assert loop.reason == "num_stages is 1"
        assert "not pipelined: num_stages is 1" in explain(product(stages=1), "cuda:sm_80")

    def test_global_memory(self, facts):
        reads = {a.buffer: a for a in facts.block.accesses if a.action.startswith("cp_async")}
        assert set(reads) == {"A", "B"}
        assert [a.bytes for a in facts.block.accesses if (a.buffer, a.action) == ("C", "write")] == [(8,)]

    def test_assumptions(self, facts):
        found = {p.name: (p.multiple, p.is_address) for p in facts.block.assumptions}
        assert found == dict.fromkeys("ABC", (16, True))

    def test_barriers_and_fragments_that_moved(self):
        block = explain_facts(turned(), "cuda:sm_80").block
        by_name = {b.name: b for b in block.shared}
        assert by_name["tile_s"].why == "declared"
        assert by_name["tile_s"].layout == "row-major"
        assert by_name["tile_s"].conflicts == 7
        assert by_name["held"].why.startswith("no fragment: ")
        assert by_name["held"].conflicts is None
        assert [f.name for f in block.fragments] == []
        kinds = {(b.source, b.sink, b.hazard) for b in block.barriers}
        assert ("tile_s", "tile_s", "write, read") in kinds
        assert ("held", "held", "write, read") in kinds
        for barrier in block.barriers:
            assert barrier.after.startswith(__file__)
            assert barrier.before.startswith(__file__)
        widths = {(a.buffer, a.action): a.bytes for a in block.accesses}
        assert widths["Y", "write"] == (4,)
        assert all(w <= 8 for w in widths["X", "read"])  # rows of 30 float32

    def test_the_host_has_none(self):
        assert explain_facts(product(), "cpu").block is None


def large(threads):
    @T.prim_func
    def rows(A: T.Tensor((128, 128), "float32"), B: T.Tensor((128, 128), "float32")):
        with T.Kernel(1, threads=threads):
            a = T.alloc_fragment((128, 128), "float32")
            T.copy(A, a)
            for i, j in T.Parallel(128, 128):
                a[i, j] = T.exp(a[i, j])
            for _ in T.unroll(1 << 20):
                B[0, 0] = B[0, 0] + 1.0
            T.copy(a, B)

    return rows


class TestLoopsThatStayLoops:
    def test_warnings_have_values(self):
        block = explain_facts(large(32), "cuda:sm_80").block
        assert 0 < block.operations < 20_000
        reasons = " ".join(x.reason for x in block.rolled)
        assert "1,048,576 iterations of" in reasons
        text = explain(large(32), "cuda:sm_80")
        assert "loops that are not unrolled" in text
        assert "test_explain.py:" in text.split("loops that are not unrolled")[1]

    @pytest.mark.sweep(1)
    def test_code_of_many_accesses_assumes_nothing_of_its_parameters(self):
        def program(count):
            @T.prim_func
            def main(A: T.Tensor((count,), "float32"), B: T.Tensor((count,), "float32")):
                with T.Kernel(1, threads=32):
                    for i in T.static_range(count):
                        B[i] = A[i] * 2.0

            return main

        ctx = make_context("cuda:sm_80")
        texts = [lower(program(n), ctx, installed()).lowered.text for n in (16, 1200)]
        assert ["__restrict__" in text for text in texts] == [True, False]


class TestPrivateArrays:
    def kernel(self, count, threads=1):
        @T.prim_func
        def main(A: T.Tensor((count,), "float32"), B: T.Tensor((count,), "float32")):
            with T.Kernel(1, threads=threads):
                T.get_thread_binding(0)
                L = T.alloc_local((count,), "float32")
                for i in T.serial(count):
                    L[i] = A[i]
                for i in T.serial(count):
                    B[i] = L[count - 1 - i]

        return main

    def test_reserved_memory_of_a_launch_is_reported(self):
        """Report the local memory that launches reserve: 73 GB less free on an H100."""
        warning = r"each thread has 270,000 bytes of arrays, and a launch reserves as much for each of the 270,336 thr"
        with pytest.warns(slow.TakesMemory, match=warning):
            report = tile.compile(self.kernel(67500), "cuda:sm_90a").explain()
        assert "arrays of a thread: 270,000 bytes; a launch reserves 73.0 GB of the largest device" in report
        assert "73 GB; a part of a T.alloc_global for each thread" in " ".join(report.split())

    def test_little_is_not(self):
        for count, target, shown in ((7000, "cuda:sm_90a", True), (200, "cuda:sm_90a", False), (67500, "cpu", False)):
            report = tile.compile(self.kernel(count), target).explain()
            assert ("arrays of a thread: " in report) == shown


class TestSpills:
    def test_warnings(self):
        (note,) = slow.notes_of_build({"spill_bytes": 376, "registers": 255})
        assert note.kind == "spills"
        assert note.text.startswith("each thread spills 376 bytes to memory beside its 255 registers; use more ")
        assert slow.notes_of_build({"spill_bytes": 0, "registers": 255}) == slow.notes_of_build({}) == ()

    def test_once_for_a_kernel(self, monkeypatch):
        monkeypatch.setattr(slow, "_given", set())
        with pytest.warns(slow.Spills, match=r"^k for cuda:sm_80: each thread spills 8 bytes"):
            slow.warn_of_build("k", "cuda:sm_80", {"spill_bytes": 8})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            slow.warn_of_build("k", "cuda:sm_80", {"spill_bytes": 8})

    def test_of_a_binary_are_in_the_report(self):
        """Few registers for a large product."""
        pytest.importorskip("cuda.bindings.nvrtc")
        text = explain(product(), "cuda:sm_80", options={"max_registers": 32})
        assert "warning: each thread spills " in text


class TestBinary:
    def test_numbers_of_the_toolchain(self, facts):
        assert facts.built["registers"] > 32
        assert facts.built["spill_bytes"] == 0
        # 48 KiB of shared memory and one more that the system takes, of 228.
        assert facts.built["blocks_by_shared_memory"] == 4
        assert 1 <= facts.built["blocks_by_registers"] <= 16

    def test_without_a_toolchain(self, monkeypatch):
        monkeypatch.setattr(build, "toolchain", lambda: "")
        found = explain_facts(product(), "cuda:sm_90a")
        assert found.built == {}
        assert found.block is not None

    def test_failing_builds_are_left_out(self, monkeypatch):
        def refuse(*_):
            raise NoNvrtc(target="cuda", reason="it is not there", advice="install it")

        monkeypatch.setattr(build, "build", refuse)
        assert explain_facts(product(), "cuda:sm_90a").built == {}


class TestText:
    def test_sections(self):
        text = explain(product(), "cuda:sm_90a", {"tma": "never"})
        for title in (
            "tile ops", "fragments in registers", "shared memory of a block", "layouts of shared memory",
            "pipelined loops", "global memory", "assumptions that each launch checks", "binary", "passes",
        ):  # fmt: skip
            assert f"\n{title}" in text
        assert "3 stages of A_s, B_s" in text
        assert "no bank conflicts" in text
        assert text.count("T.copy(A[by * block, k * 64], A_s)") == 1
        assert all(len(line) <= 120 for line in text.splitlines())
        assert "warning" not in text

    def test_json(self):
        data = json.loads(json.dumps(report_json(product(), "cuda:sm_90a")))
        assert data["block"]["loops"][0]["stages"] == 3
        assert data["block"]["shared"][0]["name"] == "A_s"
        assert data["built"]["registers"] > 0
        assert data["warnings"] == []


class TestSlow:
    def test_in_the_report(self):
        text = explain(product("float32"), "cuda:sm_90a")
        assert "warning: gemm (test_explain.py:" in text
        assert "uses the fallback cuda.simt.gemm; cuda.wgmma: " in " ".join(text.split())
        assert "; cuda.mma.sync: the instruction would round float32" in " ".join(text.split())
        assert [w.kind for w in explain_facts(product("float32"), "cuda:sm_90a").warnings] == ["fallback"]

    def test_a_product_without_anything_better(self):
        found = explain_facts(product("float32"), "cuda:sm_80").ops
        assert [op.fallback for op in found if op.op == "gemm"] == [True]

    def test_once_when_it_is_compiled(self, monkeypatch):
        monkeypatch.setattr(slow, "_given", set())
        with tile.disable_cache():
            with pytest.warns(SlowFallback, match="^gemm for cuda:sm_90a: gemm .* uses the fallback cuda.simt") as seen:
                tile.compile(product("float32"), "cuda:sm_90a")
            assert seen[0].filename == __file__
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                tile.compile(product("float32"), "cuda:sm_90a")
                tile.compile(product("float16"), "cuda:sm_90a")

    def test_each_kernel_is_warned_about(self, monkeypatch):
        """Warn once per kernel, even when messages repeat."""
        monkeypatch.setattr(slow, "_given", set())
        note = PerformanceNote("tiles", "tiles of 64 x 64 are slow")
        for name in ("gemm", "other"):
            plan = SimpleNamespace(program=SimpleNamespace(name=name), choices=(), slow=(note,))
            with pytest.warns(SlowTiles, match=f"^{name} for cuda:sm_90a: {note.text}"):
                slow.warn_of_plan(plan, make_context("cuda:sm_90a", {}))

    def test_explicit_choices_are_not_reported(self):
        assert explain_facts(product(variant="cuda.simt.gemm"), "cuda:sm_90a").warnings == ()

    def test_the_host_has_one_way(self):
        assert explain_facts(product("float32"), "cpu").warnings == ()


def test_slots_that_do_not_fit_have_the_line_of_their_allocation():
    program = product(size=1024, stages=12)
    with pytest.raises(tile.TileError) as refused:
        lower(program, make_context("cuda:sm_80"), installed())
    assert refused.value.code == "U301"
    assert "A_s = T.alloc_shared" in str(refused.value) or "B_s = T.alloc_shared" in str(refused.value)
    assert "num_stages=" in str(refused.value)
