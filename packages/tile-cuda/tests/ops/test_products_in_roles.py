"""Products on ``tcgen05`` in a program's own roles: a warpgroup issues them and subtiles accumulators."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
import tile_emulator
from tile_core.compiler import lower
from tile_core.errors import TileError
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch

from ..emit.nvrtc import assemble

TARGET = "cuda:sm_100a"


def handed_over(trips=5, arrives=True, columns=64, role=1):
    """One warpgroup copies, one multiplies; slots are released by completion or after waits."""
    producer = 1 - role

    @T.prim_func
    def main(
        A: T.Tensor((128, 32 * trips), "float16"), B: T.Tensor((32 * trips, columns), "float16"),
        C: T.Tensor((128, columns), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=256):
            S, R = T.alloc_shared((2, 128, 32), "float16"), T.alloc_shared((2, 32, columns), "float16")
            F = T.alloc_fragment((128, columns), "float32")
            full, empty = T.alloc_barrier([128] * 2), T.alloc_barrier([1 if arrives else 128] * 2)
            with T.ws(role):
                T.clear(F)
            for k in range(trips):
                slot, phase = k % 2, k // 2
                with T.ws(producer):
                    T.barrier_wait(empty[slot], (phase + 1) % 2)
                    T.tma_copy(A[0, k * 32], S[slot, :, :], barrier=full[slot])
                    T.tma_copy(B[k * 32, 0], R[slot, :, :], barrier=full[slot])
                    T.barrier_arrive(full[slot])
                with T.ws(role):
                    T.barrier_wait(full[slot], phase % 2)
                    if arrives:
                        T.tcgen05_gemm(S[slot, :, :], R[slot, :, :], F, mbar=empty[slot])
                    else:
                        T.tcgen05_gemm(S[slot, :, :], R[slot, :, :], F)
                        T.barrier_arrive(empty[slot])
            with T.ws(role):
                if arrives:
                    for last in range(max(0, trips - 2), trips):
                        T.barrier_wait(empty[last % 2], (last // 2) % 2)
                T.copy(F, C)

    return main


def operands(trips=5, columns=64, **_):
    rng = np.random.default_rng()
    a, b = (rng.integers(-3, 4, s).astype("float16") for s in ((128, 32 * trips), (32 * trips, columns)))
    return a, b, np.full((128, columns), np.nan, "float32")


@pytest.mark.parametrize("how", [
    {}, {"arrives": False}, {"trips": 1}, {"trips": 2, "role": 0}, {"trips": 3, "columns": 240},
    {"role": 0, "arrives": False},
])  # fmt: skip
@pytest.mark.sweep(6)
def test_numbers(how):
    kernel = tile.compile(handed_over(**how), TARGET, runtime="emulator")
    a, b, c = operands(**how)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype(float) @ b.astype(float))
    kernel.verify(a, b, np.zeros_like(c))
    for arch in ("sm_100a", "sm_103a"):
        assert "C7" not in assemble(kernel.source, arch)


def test_no_thread_waits_for_a_product_that_frees_its_slot():
    text = tile.compile(handed_over(), TARGET, runtime="emulator").source
    inside = text[text.index('extern "C"') :].split("for (int k = ")[1].split("\n  }\n")[0]
    assert re.findall(r"tcgen05_commit\w+\(&(\w+)", inside) == ["empty"]
    assert "product_done" not in text
    assert "__syncthreads" not in inside


def refused(kind):
    @T.prim_func
    def main(A: T.Tensor((128, 64), "float16"), C: T.Tensor((2, 128, 128), "float32")):
        with T.Kernel(1, threads=384):
            S = T.alloc_shared((128, 64), "float16")
            F, G = T.alloc_fragment((128, 128), "float32"), T.alloc_fragment((128, 128), "float32")
            top = T.alloc_fragment((128,), "float32")
            T.copy(A, S)
            with T.ws(1):
                T.tcgen05_gemm(S, S, F, False, True, clear_accum=True)
                if kind == "reduced":
                    T.reduce_max(F, top, dim=1)
                T.copy(F, C[0, :, :])
            with T.ws(2):
                if kind == "two roles multiply":
                    T.tcgen05_gemm(S, S, G, False, True, clear_accum=True)
                    T.copy(G, C[1, :, :])
                elif kind == "another role reads":
                    T.copy(F, C[1, :, :])

    return main


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("reduced", "with divided accumulators: T.reduce_max in line"),
        ("two roles multiply", "in a role that is not one warpgroup"),
        ("another role reads", "threads of several roles use it"),
    ],
)
def test_illegal_roles_are_refused(kind, reason):
    with pytest.raises(TileError) as caught:
        tile.compile(refused(kind), TARGET, runtime="emulator")
    assert caught.value.code == "U104"
    assert reason in str(caught.value)


_MEETS = r"(tcgen05_fence_before_thread_sync\(\);(?:\n +fence[^;]*;)*)\n +bar_sync[^;]*;"
MISTAKES = {
    "slots are never free": (r"\n +tcgen05_commit\w+\(&empty[^;]*;", ""),
    "slots are free before the product": (
        r"((?:\n +tcgen05_mma[^;]*;)+)(\n +tcgen05_commit\w+\(&empty[^;]*;)", r"\2\1"
    ),
    "a slot is filled early": (r"\n +mbarrier_wait_parity\(&empty\[k & 1\][^;]*;", ""),
    "a slot is read early": (r"\n +mbarrier_wait_parity\(&full[^;]*;", ""),
    "accumulators are read early": (r"(for \(int last[^\n]*\n) +mbarrier_wait[^\n]*", r"\1"),
    "the role does not meet before its product": (_MEETS, r"\1"),
    "the block meets where the role does": (_MEETS, r"\1 __syncthreads();"),
}  # fmt: skip


@pytest.fixture(scope="module")
def lowered():
    return lower(handed_over(), make_context(TARGET), installed()).lowered


def found(text, lowered):
    for how in ({"completion": "late"}, {"completion": "early", "order": "random", "seed": 5}):
        a, b, c = operands()
        given = {"A": a, "B": b, "C": c}
        result = tile_emulator.run(text, lowered.facts, given, dialect_of(Arch.of("sm_100a")), **how)
        want = a.astype(float) @ b.astype(float)
        if result.reports or not np.array_equal(result.outputs["C"].reshape(c.shape), want):
            return True
    return False


@pytest.mark.parametrize("mistake", [None, *MISTAKES])
@pytest.mark.sweep(6)
def test_mistakes_are_found(mistake, lowered):
    cut = lowered.text.index('extern "C"')
    head, body = lowered.text[:cut], lowered.text[cut:]
    if mistake is not None:
        pattern, new = MISTAKES[mistake]
        body, count = re.subn(pattern, new, body, count=1)
        assert count, body
    assert found(head + body, lowered) == (mistake is not None)
