"""Each feature of the engine, with a tiny kernel."""

from typing import ClassVar

import numpy as np
import pytest

from tile_core.abi.kernel_text import LaunchFacts, ParamFact
from tile_emulator.errors import LaunchRefused

from .dialects.mini import CELLS, MINI, MINI_CLUSTERS, MINI_PROXIES, facts_of, floats, kinds, mini_of, run

HEAD = "__global__ void k(const float* a, float* out) {\n"


def run_body(body, n=64, block=64, shared_bytes=0, dialect=None, **how):
    a = np.arange(n, dtype="float32")
    text = HEAD + body + "\n}\n"
    more = {} if dialect is None else {"dialect": dialect}
    return a, run(text, [a, floats(n)], block=(block, 1, 1), shared_bytes=shared_bytes, **more, **how)


class TestPositions:
    def test_of_threads_and_blocks(self):
        text = """\
__global__ void k(int* out) {
  int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[block * 24 + thread] = block * 100 + thread;
}
"""
        result = run(text, [np.full((8, 24), -1, "int32")], grid=(2, 2, 2), block=(4, 3, 2), order="reverse")
        assert result.ok
        np.testing.assert_array_equal(result.outputs["out"], np.arange(8)[:, None] * 100 + np.arange(24))

    def test_no_blocks_write_nothing(self):
        text = "__global__ void k(int* out, int n) { out[blockIdx.x] = n; }"
        facts = facts_of(text, grid=("n", 1, 1))
        result = run(text, [np.array([5], "int32"), 0], facts=facts)
        assert result.ok
        assert result.outputs["out"][0] == 5
        assert result.stats.counters["blocks"] == 0


class TestCounters:
    def test_bytes_and_collectives(self):
        body = """
  extern __shared__ float s[];
  int i = threadIdx.x;
  if (i < 16) *(float4*)&s[i * 4] = *(const float4*)&a[i * 4];
  __syncthreads();
  out[i] = __shfl_xor_sync(~0u, s[i], 1) + __shfl_xor_sync(~0u, s[i], 2);"""
        _, result = run_body(body, shared_bytes=256)
        assert result.ok
        counters = result.stats.counters
        bytes_of = [counters[name] for name in ("array_reads", "array_writes", "shared_reads", "shared_writes")]
        assert bytes_of[:2] == [256, 256]
        assert bytes_of[2] in (256, 512)  # a compiler reads s[i] once or twice
        assert bytes_of[3] == 256
        assert result.stats.met == {"shfl": 4}

    def test_a_model_reads_for_a_thread(self):
        """Accesses by a model's `load` and `store` count like the text's own."""
        n = 32
        text = "__global__ void k(int* out) { atomicAdd(&out[threadIdx.x], 1); }"
        counters = run(text, [np.zeros(n, "int32")], block=(n, 1, 1)).stats.counters
        assert (counters["array_reads"], counters["array_writes"]) == (0, 128)


class TestOrders:
    TEXT = "__global__ void k(int* out, int* turn) { out[threadIdx.x] = atomicAdd(turn, 1); }"

    @pytest.mark.parametrize("order", ["forward", "reverse", "random"])
    def test_who_runs_first(self, order):
        args = [np.full(64, -1, "int32"), np.zeros(1, "int32")]
        found = run(self.TEXT, args, block=(64, 1, 1), order=order, seed=5).outputs["out"]
        again = run(self.TEXT, args, block=(64, 1, 1), order=order, seed=5).outputs["out"]
        np.testing.assert_array_equal(found, again)
        expected = {"forward": range(64), "reverse": range(63, -1, -1)}.get(order)
        if expected is None:
            assert sorted(found) == list(range(64))
            assert not np.array_equal(found, np.sort(found))
        else:
            np.testing.assert_array_equal(found, list(expected))


class TestWarps:
    def test_a_barrier_of_a_warp_orders_its_memory(self):
        body = """
  extern __shared__ float s[];
  s[threadIdx.x] = a[threadIdx.x];
  __syncwarp();
  out[threadIdx.x] = s[threadIdx.x ^ 31];"""
        a, result = run_body(body, shared_bytes=256)
        assert result.ok
        np.testing.assert_array_equal(result.outputs["out"], a[np.arange(64) ^ 31])

    def test_a_shuffle_does_not(self):
        body = """
  extern __shared__ float s[];
  s[threadIdx.x] = a[threadIdx.x];
  __shfl_sync(0xffffffffu, 0.0f, 0);
  out[threadIdx.x] = s[threadIdx.x ^ 31];"""
        assert "race" in kinds(run_body(body, shared_bytes=256)[1])

    def test_lanes_may_leave_a_collective_by_its_mask(self):
        body = """
  float v = a[threadIdx.x];
  if (threadIdx.x % 32 < 16) v = __shfl_xor_sync(0xffffu, v, 1);
  out[threadIdx.x] = v;"""
        a, result = run_body(body)
        assert result.ok
        expected = np.where(np.arange(64) % 32 < 16, a[np.arange(64) ^ 1], a)
        np.testing.assert_array_equal(result.outputs["out"], expected)

    def test_the_last_warp_may_be_short(self):
        a, result = run_body("out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, a[threadIdx.x], 1);", n=40, block=40)
        assert result.ok
        np.testing.assert_array_equal(result.outputs["out"], a[np.arange(40) ^ 1])

    @pytest.mark.parametrize(("warps", "size"), [(1, 32), (2, 64), (0, 128)])
    def test_groups_of_warps(self, warps, size):
        a, result = run_body(f"out[threadIdx.x] = group_sum({warps}, a[threadIdx.x]);", n=128, block=128)
        assert result.ok
        np.testing.assert_array_equal(result.outputs["out"], np.repeat(a.reshape(-1, size).sum(1), size))

    def test_lanes_at_two_sites_diverged(self):
        body = """
  float v = a[threadIdx.x];
  if (threadIdx.x < 16) v = __shfl_xor_sync(0xffffffffu, v, 1);
  else v = __shfl_xor_sync(0xffffffffu, v, 1);
  out[threadIdx.x] = v;"""
        (report,) = run_body(body, n=32, block=32)[1].reports
        assert report.kind == "divergence"
        assert "4 and 5" in report.detail


class TestBarriers:
    def test_halves_meet_at_barriers_of_their_own(self):
        body = """
  extern __shared__ float s[];
  s[threadIdx.x] = a[threadIdx.x];
  bar_sync(1 + threadIdx.x / 64, 64);
  out[threadIdx.x] = s[threadIdx.x ^ 63];"""
        a, result = run_body(body, n=128, block=128, shared_bytes=512)
        assert result.ok
        np.testing.assert_array_equal(result.outputs["out"], a[np.arange(128) ^ 63])

    def test_one_half_arrives_and_the_other_waits(self):
        body = """
  extern __shared__ float s[];
  if (threadIdx.x < 32) {
    s[threadIdx.x] = a[threadIdx.x];
    bar_arrive(3, 64);
  } else {
    bar_sync(3, 64);
    out[threadIdx.x] = s[threadIdx.x - 32];
  }"""
        a, result = run_body(body, shared_bytes=128, order="reverse")
        assert result.ok
        np.testing.assert_array_equal(result.outputs["out"][32:], a[:32])

    @pytest.mark.parametrize(
        ("body", "detail"),
        [
            ("bar_sync(1, threadIdx.x < 32 ? 32 : 64);", "is used for"),
            ("bar_sync(64, 32);", "there is no barrier 64"),
            ("bar_sync(2, 96);", "waits for 96 threads, the block has 64"),
        ],
    )
    def test_wrong_use_is_named(self, body, detail):
        _, result = run_body("if (threadIdx.x < 32) bar_arrive(1, 64);\n" + body if "?" in body else body)
        (report,) = result.reports
        assert report.kind == "barrier"
        assert detail in report.detail

    def test_a_deadlock_says_who_waits_where(self):
        body = "  if (threadIdx.x != 7) __syncthreads();\n  else bar_sync(1, 2);"
        (report,) = run_body(body)[1].reports
        assert report.kind == "deadlock"
        first, second = report.waiting
        assert first.threads == ((0, 6), (8, 63))
        assert first.what == "at barrier 0, where 63 of 64 threads have arrived"
        assert (first.location.line, first.location.where.line) == (2, 102)
        assert second.threads == ((7, 7),)
        assert second.what == "at barrier 1, where 1 of 2 threads have arrived"
        assert (second.location.line, second.location.text) == (3, "else bar_sync(1, 2);")
        assert "threads 0-6, 8-63 of block (0, 0, 0): at barrier 0" in str(report)


class TestCopyGroups:
    @pytest.mark.parametrize("completion", ["early", "late"])
    def test_the_rest_is_zero_and_not_read(self, completion):
        body = """
  extern __shared__ float s[];
  cp_async16_zfill(s + threadIdx.x * 4, a + threadIdx.x * 4, threadIdx.x == 3 ? 8 : threadIdx.x > 3 ? 0 : 16);
  cp_async_commit();
  cp_async_wait(0);
  for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = s[threadIdx.x * 4 + i];"""
        text = HEAD + body + "\n}\n"
        a = np.arange(1, 15, dtype="float32")
        result = run(text, [a, floats(32)], block=(8, 1, 1), shared_bytes=128, completion=completion)
        assert result.ok
        np.testing.assert_array_equal(result.outputs["out"], np.pad(a, (0, 18)))

    @pytest.mark.parametrize(("completion", "seen"), [("early", 5.0), ("late", np.nan)])
    def test_completion_is_at_issue_or_at_the_wait(self, completion, seen):
        body = """
  extern __shared__ float s[];
  cp_async4(s, a + 5);
  cp_async_commit();
  out[0] = s[0];
  cp_async_wait(0);
  out[1] = s[0];"""
        _, result = run_body(body, block=1, shared_bytes=16, checks=(), completion=completion)
        np.testing.assert_array_equal(result.outputs["out"][:2], [seen, 5.0])

    def test_groups_complete_in_order(self):
        body = """
  extern __shared__ float s[];
  for (int i = 0; i < 3; i++) {
    cp_async4(s + i, a + i);
    cp_async_commit();
  }
  cp_async_wait(1);
  out[0] = s[0] + s[1];
  out[1] = s[2];
  cp_async_wait(0);"""
        _, result = run_body(body, block=1, shared_bytes=16)
        assert {(r.kind, r.line) for r in result.reports} == {("race", 10)}


class TestPhaseBarriers:
    def test_a_copy_group_arrives(self):
        body = """
  extern __shared__ float s[];
  char* bar = (char*)s;
  if (threadIdx.x == 0) mbar_init(bar, 64);
  __syncthreads();
  cp_async4(s + 4 + threadIdx.x, a + threadIdx.x);
  cp_async_arrive(bar);
  mbar_wait(bar, 0);
  out[threadIdx.x] = s[4 + (threadIdx.x ^ 63)];
  cp_async_wait(0);
  cp_async_commit();
  cp_async_wait(0);"""
        for completion in ("early", "late"):
            a, result = run_body(body, shared_bytes=16 + 256, completion=completion)
            assert result.ok, str(result.reports[0])
            np.testing.assert_array_equal(result.outputs["out"], a[::-1])

    @pytest.mark.sweep(0.25)
    @pytest.mark.parametrize(
        ("body", "detail"),
        [
            ("mbar_wait(s, 0);", "never initialised"),
            ("mbar_init(s, 1); mbar_init(s, 1);", "initialised twice"),
            ("mbar_init(s, 0);", "for no arrivals"),
            ("mbar_init((char*)s + 4, 1);", "aligned to 8"),
            ("mbar_init(s, 1); mbar_inval(s); mbar_arrive(s);", "never initialised"),
            ("mbar_init(s, 2); mbar_expect(s, 16); mbar_arrive(s); mbar_arrive(s);", "too many"),
        ],
    )
    def test_wrong_use_is_named(self, body, detail):
        (report,) = run_body(f"extern __shared__ float s[];\n{body}", block=1, shared_bytes=64)[1].reports
        assert report.kind == "phase"
        assert detail in report.detail
        assert report.line == 3


class TestProxies:
    BODY = """
  extern __shared__ float s[];
  s[threadIdx.x] = a[threadIdx.x] + 1;
  fence_proxy();
  __syncthreads();
  if (threadIdx.x == 0) {
    bulk_store(out, s, 256);
    bulk_commit();
    bulk_wait(0);
  }"""

    def test_a_fence_shows_writes_to_the_other_proxy(self):
        for completion in ("early", "late"):
            a, result = run_body(self.BODY, shared_bytes=256, dialect=MINI_PROXIES, completion=completion)
            assert result.ok, str(result.reports[0])
            np.testing.assert_array_equal(result.outputs["out"], a + 1)

    def test_a_missing_one_is_found(self):
        body = self.BODY.replace("fence_proxy();", "")
        (report,) = run_body(body, shared_bytes=256, dialect=MINI_PROXIES)[1].reports
        assert report.kind == "race"
        assert "need a fence between the proxies" in report.detail
        assert run_body(body, shared_bytes=256)[1].ok  # a language without proxies

    def test_a_store_that_is_not_waited_for_is_found(self):
        (report,) = run_body(self.BODY.replace("bulk_wait(0);", ""), shared_bytes=256)[1].reports
        assert report.kind == "async"
        assert report.line == 8


class TestVotes:
    TEXT = """\
__global__ void k(unsigned long long* yes, unsigned long long* all) {
  int t = threadIdx.x;
  simt::Votes found = votes(t % 3 == 1);
  yes[t] = found.yes;
  all[t] = found.all;
}
"""

    @pytest.mark.parametrize("threads", [16, 64, 100])
    @pytest.mark.parametrize("warp", [16, 32, 64])
    def test_every_lane_has_a_bit(self, warp, threads):
        params = tuple(ParamFact(name, "pointer", "uint64", "write") for name in ("yes", "all"))
        facts = LaunchFacts("k", params, (1, 1, 1), (threads, 1, 1))
        result = run(self.TEXT, [np.zeros(threads, np.uint64)] * 2, facts=facts, dialect=mini_of(warp))
        assert result.ok
        for t in range(threads):
            lanes = range(t // warp * warp, min(t // warp * warp + warp, threads))
            bits = {n: 1 << (n - lanes[0]) for n in lanes}
            assert int(result.outputs["all"][t]) == sum(bits.values())
            assert int(result.outputs["yes"][t]) == sum(b for n, b in bits.items() if n % 3 == 1)


class TestClusters:
    TEXT = """\
__global__ void k(float* out) {
  extern __shared__ float s[];
  s[threadIdx.x] = blockIdx.x * 100 + threadIdx.x;
  cluster_sync();
  out[blockIdx.x * 32 + threadIdx.x] = *in_block(s + threadIdx.x, cluster_rank() ^ 1);
  cluster_sync();
}
"""

    def run(self, text, cluster=(2, 1, 1)):
        grid = tuple(4 if n > 1 else 1 for n in cluster)
        facts = facts_of(text, grid=grid, shared_bytes=128, cluster=cluster)
        return run(text, [floats(4, 32)], facts=facts, dialect=MINI_CLUSTERS)

    def test_blocks_read_each_others_memory(self):
        result = self.run(self.TEXT)
        assert result.ok
        np.testing.assert_array_equal(result.outputs["out"], (np.arange(4) ^ 1)[:, None] * 100 + np.arange(32))

    @pytest.mark.parametrize(
        ("dialect", "cluster", "message"),
        [
            (MINI, (2, 1, 1), r"a cluster.*at most 1 blocks"),
            (MINI_CLUSTERS, (16, 1, 1), r"a cluster.*at most 8 blocks"),
            (MINI_CLUSTERS, (8, 2, 1), r"a cluster.*at most 8 blocks"),
        ],
    )
    def test_clusters_that_are_not_modelled(self, dialect, cluster, message):
        facts = facts_of(self.TEXT, grid=(16, 2, 1), shared_bytes=128, cluster=cluster)
        with pytest.raises(LaunchRefused, match=message):
            run(self.TEXT, [floats(32, 32)], facts=facts, dialect=dialect)

    @pytest.mark.parametrize("axis", ["y", "z"])
    def test_they_lie_along_any_axis(self, axis):
        cluster = (1, 2, 1) if axis == "y" else (1, 1, 2)
        result = self.run(self.TEXT.replace("blockIdx.x", f"blockIdx.{axis}"), cluster)
        assert result.ok
        np.testing.assert_array_equal(result.outputs["out"], (np.arange(4) ^ 1)[:, None] * 100 + np.arange(32))

    def test_a_missing_barrier_is_found(self):
        assert "race" in kinds(self.run(self.TEXT.replace("cluster_sync();", "__syncthreads();", 1)))


class TestMemory:
    def test_polling_for_a_flag(self):
        text = """\
__global__ void k(int* flag, float* out) {
  if (threadIdx.x == 31) { out[0] = 7; atomicAdd(flag, 1); }
  else while (atomicAdd(flag, 0) == 0) __nanosleep(20);
}
"""
        result = run(text, [np.zeros(1, "int32"), floats(1)])
        assert result.ok
        assert result.outputs["out"][0] == 7

    def test_polling_for_a_flag_that_never_comes(self):
        text = "__global__ void k(int* flag) { while (atomicAdd(flag, 0) == 0) __nanosleep(20); }"
        (report,) = run(text, [np.zeros(1, "int32")]).reports
        assert report.kind == "deadlock"
        assert report.waiting[0].what == "polling"

    @pytest.mark.parametrize("missing", [None, 0, 1])
    def test_fences_order_what_another_block_wrote(self, missing):
        fences = ["" if i == missing else "__threadfence();" for i in range(2)]
        text = (
            "__global__ void k(int* data, int* count, int* out) { data[blockIdx.x] = 3; %s\n"
            "int n = atomicAdd(count, 1); %s\nif (n == 2) out[0] = data[0] + data[1] + data[2]; }"
        )
        args = {"data": np.zeros(3, np.int32), "count": np.zeros(1, np.int32), "out": np.zeros(1, np.int32)}
        result = run(text % tuple(fences), args, grid=(3, 1, 1), block=(1, 1, 1))
        assert {r.kind for r in result.reports} == (set() if missing is None else {"race"})
        assert np.asarray(result.outputs["out"])[0] == 9

    def test_atomics_race_with_plain_accesses(self):
        text = "__global__ void k(int* n) { if (threadIdx.x) atomicAdd(n, 1); else n[0] += 1; }"
        (*_, report) = run(text, [np.zeros(1, "int32")]).reports
        assert report.kind == "race"

    #: Accesses of `x`, and whether they are atomic and write.
    ACCESSES: ClassVar[dict[str, tuple[str, bool, bool]]] = {
        "read": ("out[t] = *x;", False, False), "write": ("*x = 1 + t;", False, True),
        "atomic read": ("out[t] = atomic_read(x);", True, False), "atomic write": ("atomic_write(x, 1);", True, True),
        "update": ("atomicAdd(x, 1);", True, True),
    }  # fmt: skip

    @pytest.mark.sweep(0.25)
    @pytest.mark.parametrize("first", ACCESSES)
    @pytest.mark.parametrize("second", ACCESSES)
    @pytest.mark.parametrize("between", ["threads", "a barrier", "blocks", "shared"])
    def test_two_accesses_race_if_one_writes_and_not_both_are_atomic(self, first, second, between):
        (one, atomic_1, writes_1), (two, atomic_2, writes_2) = self.ACCESSES[first], self.ACCESSES[second]
        t = "blockIdx.x" if between == "blocks" else "threadIdx.x"
        barrier = "__syncthreads();" if between == "a barrier" else ""
        shared = "__shared__ int s; if (t == 0) s = 0; __syncthreads(); int* x = &s;" if between == "shared" else ""
        text = (
            f"__global__ void k(int* n, int* out) {{ int t = {t}; {shared or 'int* x = n;'}\n"
            f"if (t == 0) {{ {one} }} {barrier}\nif (t == 1) {{ {two} }}\n}}"
        )
        grid, block = ((2, 1, 1), (1, 1, 1)) if between == "blocks" else ((1, 1, 1), (2, 1, 1))
        args = [np.zeros(1, "int32"), np.zeros(2, "int32")]
        races = between != "a barrier" and (writes_1 or writes_2) and not (atomic_1 and atomic_2)
        for order in ("forward", "reverse"):
            assert kinds(run(text, args, grid=grid, block=block, order=order)) == (["race"] if races else [])

    @pytest.mark.parametrize("value", ["7", "blockIdx.x", "blockIdx.x << 8"])
    def test_blocks_may_store_the_same_value(self, value):
        text = f"__global__ void k(int* n) {{ n[1] = {value}; }}"
        found = kinds(run(text, [np.zeros(2, "int32")], grid=(3, 1, 1), block=(1, 1, 1)))
        assert found == ([] if value == "7" else ["race"])

    def test_a_plain_read_races_with_an_earlier_block_although_another_thread_reads_atomically(self):
        text = (
            "__global__ void k(int* n, int* out) { if (blockIdx.x == 0) { if (threadIdx.x == 0) atomicAdd(n, 1); }\n"
            "else if (threadIdx.x == 0) out[0] = atomic_read(n); else out[1] = %s; }"
        )
        for read, found in (("atomic_read(n)", []), ("*n", ["race"])):
            args = [np.zeros(1, "int32"), np.zeros(2, "int32")]
            assert kinds(run(text % read, args, grid=(2, 1, 1), block=(2, 1, 1))) == found

    def test_an_atomic_read_of_unwritten_memory_is_no_fault(self):
        """Compare-and-swap loops read the word around a small element, which may be unwritten."""
        text = "__global__ void k(int* out) { __shared__ int s[1]; if (atomic_read(s) == 7) s[0] = 7; out[0] = 1; }"
        assert "uninitialised" not in kinds(run(text, [np.zeros(1, "int32")], block=(1, 1, 1)))

    def test_an_overrun_of_an_own_array_is_found(self):
        body = "int own[4]; for (int i = 0; i < n; i++) own[i] = i; out[0] = own[n - 1];"
        text = f"__global__ void k(int* out, int n) {{ {body} }}"
        assert run(text, [np.zeros(1, "int32"), 4], block=(1, 1, 1)).ok
        (report,) = run(text, [np.zeros(1, "int32"), 5], block=(1, 1, 1)).reports
        assert report.kind == "bounds"
        assert "index 4" in report.detail

    def test_a_promise_of_alignment_is_all_that_holds(self):
        text = "__global__ void k(const float* a, float* out) { *(float4*)out = *(float4*)a; }"
        facts = facts_of(text, block=(1, 1, 1))
        a = np.arange(4, dtype="float32")
        assert run(text, [a, floats(4)], facts=facts).ok
        loose = tuple(ParamFact(p.name, p.kind, p.dtype, p.access, 0) for p in facts.params)
        facts = LaunchFacts("k", loose, (1, 1, 1), (1, 1, 1))
        assert kinds(run(text, [a, floats(4)], facts=facts)) == ["misaligned"]

    @pytest.mark.parametrize("offset", [-1, 4])
    def test_leaving_an_array_is_noticed_without_checks(self, offset):
        text = "__global__ void k(float* out, int i) { out[i * 1000000] = 1; }"
        (report,) = run(text, [floats(4), offset], checks=(), block=(1, 1, 1)).reports
        assert report.kind in ("bounds", "crash")
        assert report.array == "out"
        assert report.index == (offset * 1000000,)
        assert report.line == 1

    def test_arrays_are_far_apart(self):
        text = "__global__ void k(const float* a, float* out, int i) { out[0] = a[i]; }"
        (report,) = run(text, [floats(4), floats(4), 1 << 30], block=(1, 1, 1)).reports
        assert (report.kind, report.array, report.index) == ("bounds", "a", (1 << 30,))


class TestAnotherLanguage:
    TEXT = """\
kernel void flip(device float* a, uint3 p) {
  static float s[32];
  s[p.x] = a[p.x];
  barrier_all();
  a[p.x] = s[31 - p.x];
}
"""

    def test_passes_positions_as_arguments(self):
        facts = LaunchFacts("flip", (ParamFact("a", "pointer", "float32"),), (1, 1, 1), (32, 1, 1))
        a = np.arange(32, dtype="float32")
        result = run(self.TEXT, {"a": a}, dialect=CELLS, facts=facts)
        assert result.ok
        np.testing.assert_array_equal(result.outputs["a"], a[::-1])
