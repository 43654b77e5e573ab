"""Products that go on until the program waits for the barrier at which they arrive."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
import tile_emulator
from tile_core import sparse
from tile_core.compiler import lower
from tile_core.dtypes import DTYPES
from tile_core.errors import TileError
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch

from ..emit.nvrtc import assemble

TARGET = "cuda:sm_100a"


def two(trips=4, columns=64, arrivals=1, out="float32"):
    """Two slots: each waits for its previous product, and the read of C for all."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 64 * trips), "float16"), B: T.Tensor((64 * trips, columns), "float16"),
        C: T.Tensor((128, columns), out),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            S, R = T.alloc_shared((2, 128, 64), "float16"), T.alloc_shared((2, 64, columns), "float16")
            acc, done = T.alloc_fragment((128, columns), out), T.alloc_barrier([arrivals] * 2)
            T.clear(acc)
            for k in range(trips):
                if k >= 2:
                    T.mbarrier_wait_parity(done[k % 2], (k // 2 + 1) % 2)
                T.copy(A[0, k * 64], S[k % 2, :, :])
                T.copy(B[k * 64, 0], R[k % 2, :, :])
                T.tcgen05_gemm(S[k % 2, :, :], R[k % 2, :, :], acc, mbar=done[k % 2])
            for last in range(max(0, trips - 2), trips):
                T.mbarrier_wait_parity(done[last % 2], (last // 2) % 2)
            T.copy(acc, C)

    return main


def operands(trips=4, columns=64):
    rng = np.random.default_rng()
    return tuple(rng.integers(-3, 4, s).astype("float16") for s in ((128, 64 * trips), (64 * trips, columns)))


@pytest.mark.parametrize("trips", [1, 2, 3, 5])
@pytest.mark.parametrize(("columns", "out"), [(64, "float32"), (240, "float32"), (48, "float16")])
@pytest.mark.sweep(6)
def test_numbers(trips, columns, out):
    kernel = tile.compile(two(trips, columns, out=out), TARGET, runtime="emulator")
    a, b = operands(trips, columns)
    c = np.full((128, columns), np.nan, out)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype(float) @ b.astype(float))
    for arch in ("sm_100a", "sm_103a"):
        assert "C7" not in assemble(kernel.source, arch)
    kernel.verify(a, b, np.zeros((128, columns), out))


def test_only_explicit_waits_are_emitted():
    text = tile.compile(two(), TARGET, runtime="emulator").source
    inside = text[text.index('extern "C"') :].split("for (int k = ")[1].split("\n  }\n")[0]
    assert re.findall(r"mbarrier_wait_parity\(&(\w+)", inside) == ["done"]
    assert inside.count("tcgen05_commit") == 1
    assert "mbarrier_arrive_shared" not in inside


def sparse_product(trips):
    @T.prim_func
    def main(
        A: T.Tensor((128, 32 * trips), "float16"), E: T.Tensor((128, 4 * trips), "int16"),
        B: T.Tensor((64 * trips, 32), "float16"), C: T.Tensor((128, 32), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            S, M = T.alloc_shared((trips, 128, 32), "float16"), T.alloc_shared((trips, 128, 4), "int16")
            R = T.alloc_shared((trips, 64, 32), "float16")
            acc, done = T.alloc_tmem((128, 32), "float32"), T.alloc_barrier(trips)
            for k in range(trips):
                T.copy(A[0, k * 32], S[k, :, :])
                T.copy(E[0, k * 4], M[k, :, :])
                T.copy(B[k * 64, 0], R[k, :, :])
                T.tcgen05_gemm_sp(S[k, :, :], M[k, :, :], R[k, :, :], acc, clear_accum=k == 0, mbar=done)
            T.mbarrier_wait_parity(done, 0)
            T.copy(acc, C)

    return main


@pytest.mark.parametrize("trips", [1, 2, 5])
@pytest.mark.sweep(6)
def test_sparse_products_in_flight(trips):
    """Double-buffer metadata columns; the product before the last has read its set."""
    kernel = tile.compile(sparse_product(trips), TARGET, runtime="emulator")
    rng = np.random.default_rng()
    dense = rng.integers(-3, 4, (128, 64 * trips)).astype("float16")
    dense.reshape(128, -1, 4)[:, :, rng.permutation(4)[:2]] = 0
    kept, metadata = sparse.compress(dense)
    b, c = rng.integers(-3, 4, (64 * trips, 32)).astype("float16"), np.full((128, 32), np.nan, "float32")
    kernel(kept, metadata, b, c)
    np.testing.assert_array_equal(c, dense.astype(float) @ b.astype(float))
    assert "C7" not in assemble(kernel.source, "sm_100a")


SOURCE = Path(__file__).read_text().splitlines()


def misused(kind):
    @T.prim_func
    def main(A: T.Tensor((128, 128), "float16"), C: T.Tensor((128, 128), "float32")):
        with T.Kernel(1, threads=128):
            S, W = T.alloc_shared((128, 64), "float16"), T.alloc_shared((128, 64), "float16")
            acc, other = T.alloc_fragment((128, 128), "float32"), T.alloc_barrier(1)
            done = T.alloc_barrier(2 if kind == "too few arrivals" else 1)
            T.copy(A[0, 0], S)
            T.copy(A[0, 0], W)
            T.clear(acc)
            T.tcgen05_gemm(S, W, acc, transpose_B=True, mbar=done)
            if kind == "A is written":
                T.copy(A[0, 64], S)
            elif kind == "B is written":
                T.fill(W, 0)
            elif kind == "C is read":
                T.copy(acc, C)
            elif kind == "C is written":
                T.clear(acc)
            elif kind == "two arrivals in a phase":
                T.tcgen05_gemm(S, W, acc, transpose_B=True, mbar=done)
            elif kind == "the last product is not waited for":
                T.tcgen05_gemm(S, W, acc, transpose_B=True, mbar=other)
            if kind != "no wait":
                T.mbarrier_wait_parity(done, 1 if kind == "another phase" else 0)
            T.copy(acc, C)
            if kind == "the last product is not waited for":
                T.mbarrier_wait_parity(other, 0)

    return main


@pytest.mark.parametrize(
    ("kind", "code", "reason"),
    [
        ("A is written", "K229", "S is written here while the asynchronous read"),
        ("B is written", "K229", "W is written here while the asynchronous read"),
        ("C is read", "K233", "acc is used while a product that arrives there may still add to it"),
        ("C is written", "K233", "acc is used while a product that arrives there may still add to it"),
        ("the last product is not waited for", "K233", "the barrier other does not balance: acc is used while"),
        ("two arrivals in a phase", "K233", "the arrival of a product for phase 1 may come before phase 0 has ended"),
        ("another phase", "K233", "a wait for parity 1 does not pass"),
        ("too few arrivals", "K233", "1 of 2 arrivals"),
        ("no wait", "K233", "nothing waits for the copies or products of phase 0"),
    ],
)
def test_misuse_is_refused(kind, code, reason):
    with pytest.raises(TileError) as caught:
        tile.compile(misused(kind), TARGET, runtime="emulator")
    assert caught.value.code == code
    assert reason in str(caught.value)
    if code == "K229":
        line = next(n for n, text in enumerate(SOURCE, 1) if "transpose_B=True, mbar=done)" in text)
        assert f"of line {line} may still be in flight" in str(caught.value)


def of_two_kinds(kind, wait=False):
    """Two products on one accumulator; the second differs in kind, shape or offset."""
    first, second = ("float16", "bfloat16") if kind == "types of one size" else ("float16", "tfloat32")
    sparse, tail = kind == "sparse", kind == "between"

    @T.prim_func
    def main(
        A: T.Tensor((128, 64), first), B: T.Tensor((64, 64), first), X: T.Tensor((128, 64), second),
        Y: T.Tensor((64, 64), second), V: T.Tensor((128, 32), "float16"), E: T.Tensor((128, 4), "int16"),
        C: T.Tensor((128, 64), "float32"), D: T.Tensor((128, 32), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((128, 64), first), T.alloc_shared((64, 64), first)
            x, y = T.alloc_shared((128, 64), second), T.alloc_shared((64, 64), second)
            v, e = T.alloc_shared((128, 32), "float16"), T.alloc_shared((128, 4), "int16")
            c, d = T.alloc_tmem((128, 64), "float32"), T.alloc_tmem((128, 32), "float32")
            one, two, three = T.alloc_barrier(1), T.alloc_barrier(1), T.alloc_barrier(1)
            for source, to in ((A, a), (B, b), (X, x), (Y, y), (V, v), (E, e)):
                T.copy(source, to)
            if not tail:
                T.tcgen05_gemm(a, b[:32, :], d, transpose_B=True, clear_accum=True, mbar=three)
                T.mbarrier_wait_parity(three, 0)
            T.tcgen05_gemm(a, b, c, transpose_B=True, clear_accum=True, mbar=one)
            if tail:
                T.tcgen05_gemm(a, b[:32, :], d, transpose_B=True, clear_accum=True, mbar=three)
            if wait:
                T.mbarrier_wait_parity(three if tail else one, 0)
            if sparse:
                T.tcgen05_gemm_sp(v, e, b, c, transpose_B=True, mbar=two)
            elif tail:
                T.tcgen05_gemm(a, b, c, transpose_B=True, mbar=two)
            else:
                T.tcgen05_gemm(x, y, c, transpose_B=True, mbar=two)
            T.mbarrier_wait_parity(two, 0)
            if tail or not wait:
                T.mbarrier_wait_parity(one, 0)
            if tail and not wait:
                T.mbarrier_wait_parity(three, 0)
            T.copy(c, C)
            T.copy(d, D)

    return main


@pytest.mark.parametrize("kind", ["types of another size", "sparse", "between"])
def test_products_of_two_kinds_in_flight_are_refused(kind):
    """Refuse unordered shapes (PTX ISA, "Pipelined tcgen05 instructions")."""
    with pytest.raises(TileError) as caught:
        tile.compile(of_two_kinds(kind), TARGET, runtime="emulator")
    assert caught.value.code == "K233"
    between = "with one of another kind or shape between them"
    which = between if kind == "between" else "of another kind or shape"
    assert f"a product {which} adds to c while one that arrives there may still add to it" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "wait"),
    [("types of one size", False), ("types of another size", True), ("sparse", True), ("between", True)],
)
@pytest.mark.sweep(2)
def test_waited_or_uniform_products_may_share_an_accumulator(kind, wait):
    kernel = tile.compile(of_two_kinds(kind, wait), TARGET, runtime="emulator")
    rng, second = np.random.default_rng(), "bfloat16" if kind == "types of one size" else "float32"
    dense = rng.integers(-2, 3, (128, 64)).astype("float16")
    dense.reshape(128, -1, 4)[:, :, :2] = 0
    kept, metadata = sparse.compress(dense)
    shapes = (((128, 64), "float16"), ((64, 64), "float16"), ((128, 64), second), ((64, 64), second))
    arrays = [rng.integers(-2, 3, shape).astype(DTYPES[dtype].numpy()) for shape, dtype in shapes]
    kernel.verify(*arrays, kept, metadata, np.zeros((128, 64), "float32"), np.zeros((128, 32), "float32"))


_WAIT = r"\n +mbarrier_wait_parity\(&done[^;]*;"
MISTAKES = {
    "no commit": (r"\n +tcgen05_commit\w+\(&done[^;]*;", ""),
    "the commit stands before the products": (r"((?:\n +tcgen05_mma[^;]*;)+)(\n +tcgen05_commit\w+\(&done[^;]*;)",
                                              r"\2\1"),
    "another object": (r"(tcgen05_commit\w+\(&done\[)k & 1\]", r"\1(k + 1) & 1]"),
    "a slot is freed early": (_WAIT, ""),
    "the wait for a slot is for another phase": (r"(&done\[k & 1\], )\(\(k >> 1\) \+ 1\) & 1", r"\1(k >> 1) & 1"),
    "the last product is not waited for": (r"(for \(int last[^\n]*\n) +mbarrier_wait[^\n]*", r"\1"),
    "all threads commit": (r"\n +tcgen05_commit\w+\(&done[^;]*;(\n    })", r"\1COMMIT"),
}  # fmt: skip


@pytest.fixture(scope="module")
def lowered():
    return lower(two(), make_context(TARGET), installed()).lowered


def found(text, lowered):
    a, b = operands()
    for how in ({"completion": "late"}, {"completion": "early", "order": "random", "seed": 5}):
        given = {"A": a, "B": b, "C": np.full((128, 64), np.nan, "float32")}
        result = tile_emulator.run(text, lowered.facts, given, dialect_of(Arch.of("sm_100a")), **how)
        want = a.astype(float) @ b.astype(float)
        if result.reports or not np.array_equal(result.outputs["C"].reshape(128, 64), want):
            return True
    return False


@pytest.mark.parametrize("mistake", [None, *MISTAKES])
@pytest.mark.sweep(6)
def test_mistakes_are_found(mistake, lowered):
    cut = lowered.text.index('extern "C"')
    head, body = lowered.text[:cut], lowered.text[cut:]
    if mistake is not None:
        pattern, new = MISTAKES[mistake]
        commit = "\n    tcgen05_commit_cta_group_1_mbarrier_arrive_one_shared_cluster_b64(&done[k & 1]);"
        body, count = re.subn(pattern, new.replace("COMMIT", commit), body, count=1)
        assert count, body
    assert found(head + body, lowered) == (mistake is not None)
