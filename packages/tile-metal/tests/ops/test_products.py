"""Products on simdgroup matrices: blocks, steps of K, fragments as operands."""

from __future__ import annotations

import re

import numpy as np
import pytest
from zoo.case import poisoned

import tile_core.language as T

from .kit import TARGETS, numbers, right

pytestmark = pytest.mark.sweep(6)

Policy = T.GemmWarpPolicy
TYPES = ("float16", "bfloat16", "float32")


def product(m, n, k, threads, policy=Policy.Square, dtype="float16"):
    @T.prim_func
    def product(A: T.Tensor((m, k), dtype), B: T.Tensor((k, n), dtype), C: T.Tensor((m, n), "float32")):
        with T.Kernel(1, threads=threads):
            A_shared = T.alloc_shared((m, k), dtype)
            B_shared = T.alloc_shared((k, n), dtype)
            C_local = T.alloc_fragment((m, n), "float32")
            T.copy(A, A_shared)
            T.copy(B, B_shared)
            T.clear(C_local)
            T.gemm(A_shared, B_shared, C_local, policy=policy)
            T.copy(C_local, C)

    return product


def check(program, m, n, k, dtype="float16", target=TARGETS[0]):
    numpy = T.dtype(dtype).numpy()
    a, b = numbers((m, k), numpy), numbers((k, n), numpy, 2)
    found, out = right(program, a, b, poisoned((m, n), "float32"), target=target)
    np.testing.assert_array_equal(out["C"], a.astype("float64") @ b.astype("float64"))
    return found.text


class TestPartition:
    """Simdgroups take whole blocks of 8 rows, and each gets one if available."""

    @pytest.mark.parametrize(
        ("m", "simdgroups", "policy"),
        [
            (m, s, policy)
            for m in (8, 16, 24)
            for s in (1, 2, 3, 4)
            for policy in (Policy.Square, Policy.FullRow, Policy.FullCol)
        ],
    )
    def test_rows(self, m, simdgroups, policy):
        text = check(product(m, 32, 16, simdgroups * 32, policy), m, 32, 16)
        assert "simdgroup_multiply_accumulate" in text
        # 8 x 8 blocks that a simdgroup accumulates, times simdgroups: all of C, and little more for odd shapes.
        (held,) = re.findall(r"float C_local\[(\d+)\]", text)
        blocks = int(held) // 2
        assert m // 8 * 4 <= blocks * simdgroups
        assert blocks == m // 8 * 4 if simdgroups == 1 else blocks < m // 8 * 4

    @pytest.mark.parametrize("policy", [Policy.Square, Policy.FullRow, Policy.FullCol])
    def test_policies_differ(self, policy):
        """Four simdgroups over 32 x 32: two by two, four by rows or columns."""
        text = check(product(32, 32, 16, 128, policy), 32, 32, 16)
        rows, columns = (re.search(rf"const int simd_{what} = (.*);", text)[1] for what in ("row", "column"))
        expected = {
            Policy.Square: (("* 16", "* 16")),
            Policy.FullRow: ("* 8", "0"),
            Policy.FullCol: ("0", "* 8"),
        }[policy]
        assert rows.endswith(expected[0])
        assert columns.endswith(expected[1])


class TestFragments:
    @pytest.mark.parametrize("dtype", TYPES)
    @pytest.mark.parametrize("k", [8, 40, 72])
    def test_k_of_many_blocks(self, k, dtype):
        """Every block along K is added, not only the first."""
        text = check(product(16, 16, k, 32, dtype=dtype), 16, 16, k, dtype)
        assert k == 8 or f"k_step < {k // 8}" in text

    @pytest.mark.parametrize("k", [5, 13, 20])
    def test_k_of_no_whole_blocks(self, k):
        check(product(16, 24, k, 64), 16, 24, k)

    @pytest.mark.parametrize("shape", [(8, 8), (24, 40), (64, 8)])
    def test_copies_of_many_blocks(self, shape):
        """A tile of several blocks is loaded and stored as a whole, in both memories."""
        m, n = shape

        @T.prim_func
        def moved(X: T.Tensor((m, n), "float32"), Y: T.Tensor((m, n), "float32"), Z: T.Tensor((m, n), "float16")):
            with T.Kernel(1, threads=64):
                A_shared = T.alloc_shared((m, 8), "float16")
                B_shared = T.alloc_shared((8, n), "float16")
                staged = T.alloc_shared((m, n), "float16")
                C_local = T.alloc_fragment((m, n), "float32")
                T.clear(A_shared)
                T.clear(B_shared)
                T.copy(X, C_local)
                T.gemm(A_shared, B_shared, C_local)
                T.copy(C_local, Y)
                T.copy(C_local, staged)
                T.copy(staged, Z)

        x = numbers(shape, "float32")
        _, out = right(moved, x, poisoned(shape, "float32"), poisoned(shape, "float16"))
        np.testing.assert_array_equal(out["Y"], x)
        np.testing.assert_array_equal(out["Z"], x)

    @pytest.mark.parametrize("threads", [32, 64, 128])
    @pytest.mark.parametrize("target", TARGETS)
    def test_the_result_is_the_next_operand(self, threads, target):
        """A fragment of many blocks along K is the next product's A, without memory."""

        @T.prim_func
        def chained(
            A: T.Tensor((32, 16), "float16"), B: T.Tensor((16, 24), "float16"), D: T.Tensor((24, 16), "float16"),
            C: T.Tensor((32, 16), "float32"),
        ):  # fmt: skip
            with T.Kernel(1, threads=threads):
                A_shared = T.alloc_shared((32, 16), "float16")
                B_shared = T.alloc_shared((16, 24), "float16")
                D_shared = T.alloc_shared((24, 16), "float16")
                first = T.alloc_fragment((32, 24), "float32")
                middle = T.alloc_fragment((32, 24), "float16")
                last = T.alloc_fragment((32, 16), "float32")
                T.copy(A, A_shared)
                T.copy(B, B_shared)
                T.copy(D, D_shared)
                T.clear(first)
                T.clear(last)
                T.gemm(A_shared, B_shared, first, policy=Policy.FullRow)
                T.copy(first, middle)
                T.gemm(middle, D_shared, last, policy=Policy.FullRow)
                T.copy(last, C)

        a, b, d = numbers((32, 16)), numbers((16, 24), seed=2), numbers((24, 16), seed=3)
        found, out = right(chained, a, b, d, poisoned((32, 16), "float32"), target=target)
        np.testing.assert_array_equal(out["C"], a.astype("float64") @ b.astype("float64") @ d.astype("float64"))
        # One barrier: between the copies and the first product. Of four simdgroups tensor operations of 16 rows would
        # leave two idle in the second product, which takes others and finds its operand in memory.
        mixed = threads == 128 and "metal4" in target
        assert found.text.count("threadgroup_barrier") == (2 if mixed else 1)


class TestBarriers:
    @pytest.mark.parametrize("how", [{}, {"order": "reverse"}, {"order": "random", "seed": 3}])
    def test_after_stores_that_other_simdgroups_read(self, how):
        """A fragment stored to threadgroup memory is an operand after one barrier."""

        @T.prim_func
        def staged(
            A: T.Tensor((32, 32), "float16"), B: T.Tensor((32, 32), "float16"), C: T.Tensor((32, 32), "float32")
        ):
            with T.Kernel(1, threads=128):
                A_shared = T.alloc_shared((32, 32), "float16")
                B_shared = T.alloc_shared((32, 32), "float16")
                between = T.alloc_shared((32, 32), "float16")
                first = T.alloc_fragment((32, 32), "float32")
                last = T.alloc_fragment((32, 32), "float32")
                T.copy(A, A_shared)
                T.copy(B, B_shared)
                T.clear(first)
                T.gemm(A_shared, B_shared, first)
                T.copy(first, between)
                T.clear(last)
                T.gemm(between, B_shared, last)
                T.copy(last, C)

        a, b = numbers((32, 32)), numbers((32, 32), seed=2)
        found, out = right(staged, a, b, poisoned((32, 32), "float32"), **how)
        np.testing.assert_array_equal(out["C"], a.astype("float64") @ b.astype("float64") @ b.astype("float64"))
        stored = re.search(r"\*\(threadgroup uchar4\*\)&between\[", found.text).start()
        loaded = re.search(r"\(&\w+\[.*?\], &between\[", found.text).start()
        assert found.text[stored:loaded].count("threadgroup_barrier(mem_flags::mem_threadgroup);") == 1


class TestStages:
    @staticmethod
    def pipelined(stages, trip_count=5):
        @T.prim_func
        def pipelined(A: T.Tensor((32, trip_count * 16), "float16"), B: T.Tensor((trip_count * 16, 32), "float16"),
                      C: T.Tensor((32, 32), "float32")):  # fmt: skip
            with T.Kernel(1, threads=128):
                A_shared = T.alloc_shared((32, 16), "float16")
                B_shared = T.alloc_shared((16, 32), "float16")
                C_local = T.alloc_fragment((32, 32), "float32")
                T.clear(C_local)
                for k in T.Pipelined(trip_count, num_stages=stages):
                    T.copy(A[0, k * 16], A_shared)
                    T.copy(B[k * 16, 0], B_shared)
                    T.gemm(A_shared, B_shared, C_local)
                T.copy(C_local, C)

        return pipelined

    @pytest.mark.parametrize("stages", [1, 2, 3, 4])
    def test_a_tile_waits_in_registers(self, stages):
        a, b = numbers((32, 80)), numbers((80, 32), seed=2)
        found, out = right(self.pipelined(stages), a, b, poisoned((32, 32), "float32"))
        np.testing.assert_array_equal(out["C"], a.astype("float64") @ b.astype("float64"))
        sizes = {s.name: s.bytes for s in found.facts.shared}
        assert sizes == {"A_shared": 32 * 24 * 2, "B_shared": 16 * 40 * 2}
        loop = found.text[found.text.index("for (int k = ") :]
        moves = re.findall(r"\*\((\w+) \w+\*\)&(\w+)\[.*?\] = \*\((\w+) const \w+\*\)&(\w+)\[", loop)
        if stages == 1:
            assert moves[:2] == [("threadgroup", f"{x}_shared", "device", x) for x in "AB"]
            return
        stores = [("threadgroup", f"{x}_shared", "thread", f"{x}_shared_ahead") for x in "AB"]
        assert moves[:4] == [*stores, *(("thread", f"{x}_shared_ahead", "device", x) for x in "AB")]
        # Only the product stands between the loads and the stores of the next iteration.
        assert loop.index("if (k + 1 < 5)") < loop.index("simdgroup_multiply_accumulate")

    @pytest.mark.parametrize("stages", [2, 3, 4])
    def test_fewer_iterations_than_stages(self, stages):
        a, b = numbers((32, 16)), numbers((16, 32), seed=2)
        _, out = right(self.pipelined(stages, 1), a, b, poisoned((32, 32), "float32"), order="random", seed=1)
        np.testing.assert_array_equal(out["C"], a.astype("float64") @ b.astype("float64"))


def tiled(m, n, k, trans, dtype, block, stages=2):
    bm, bn, bk = block

    @T.prim_func
    def tiled(
        A: T.Tensor((k, m) if trans[0] else (m, k), dtype),
        B: T.Tensor((n, k) if trans[1] else (k, n), dtype),
        C: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=128) as (bx, by):
            A_shared = T.alloc_shared((bk, bm) if trans[0] else (bm, bk), dtype)
            B_shared = T.alloc_shared((bn, bk) if trans[1] else (bk, bn), dtype)
            C_local = T.alloc_fragment((bm, bn), "float32")
            T.clear(C_local)
            for i in T.Pipelined(T.ceildiv(k, bk), num_stages=stages):
                if trans[0]:
                    T.copy(A[i * bk, by * bm], A_shared)
                else:
                    T.copy(A[by * bm, i * bk], A_shared)
                if trans[1]:
                    T.copy(B[bx * bn, i * bk], B_shared)
                else:
                    T.copy(B[i * bk, bx * bn], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_A=trans[0], transpose_B=trans[1])
            T.copy(C_local, C[by * bm, bx * bn])

    return tiled


class TestDirectOperands:
    """Tensor operations read tiles from device memory; codes, and what many simdgroups read, are staged."""

    @pytest.mark.parametrize("trans", [(False, False), (False, True), (True, False), (True, True)])
    @pytest.mark.parametrize("size", [(64, 64, 32), (65, 39, 37), (33, 30, 72)])
    @pytest.mark.parametrize("dtype", ["float16", "float32", "float8_e4m3fn"])
    def test_numbers(self, trans, size, dtype):
        m, n, k = size
        numpy = T.dtype(dtype).numpy()
        a, b = numbers((m, k), numpy), numbers((k, n), numpy, 2)
        given = [np.ascontiguousarray(x.T) if turned else x for x, turned in zip((a, b), trans, strict=True)]
        program = tiled(m, n, k, trans, dtype, (32, 64, 16))
        found, out = right(program, *given, poisoned((m, n), "float32"), target=TARGETS[1])
        np.testing.assert_array_equal(out["C"], a.astype("float64") @ b.astype("float64"))
        coded = dtype == "float8_e4m3fn"
        assert [s.name for s in found.facts.shared] == (["A_shared", "B_shared"] if coded else [])
        assert ("threadgroup_barrier" in found.text) == coded

    def test_what_many_simdgroups_read_is_staged(self):
        """Of 8 simdgroups below each other each reads all of B."""

        @T.prim_func
        def tall(
            A: T.Tensor((128, 64), "float16"), B: T.Tensor((64, 32), "float16"), C: T.Tensor((128, 32), "float32")
        ):
            with T.Kernel(1, threads=256):
                A_shared = T.alloc_shared((128, 16), "float16")
                B_shared = T.alloc_shared((16, 32), "float16")
                C_local = T.alloc_fragment((128, 32), "float32")
                T.clear(C_local)
                for i in T.Pipelined(4, num_stages=2):
                    T.copy(A[0, i * 16], A_shared)
                    T.copy(B[i * 16, 0], B_shared)
                    T.gemm(A_shared, B_shared, C_local)
                T.copy(C_local, C)

        a, b = numbers((128, 64)), numbers((64, 32), seed=2)
        found, out = right(tall, a, b, poisoned((128, 32), "float32"), target=TARGETS[1])
        np.testing.assert_array_equal(out["C"], a.astype("float64") @ b.astype("float64"))
        assert [s.name for s in found.facts.shared] == ["B_shared"]

    def test_simdgroup_matrices_are_staged(self):
        program = tiled(64, 64, 32, (False, False), "float16", (32, 64, 16))
        args = numbers((64, 32)), numbers((32, 64), seed=2), poisoned((64, 64), "float32")
        assert len(right(program, *args)[0].facts.shared) == 2
