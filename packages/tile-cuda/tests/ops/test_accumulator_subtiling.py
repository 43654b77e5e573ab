"""Accumulator subtiling: results of each use, and rejection reasons of accumulators that cannot be divided."""

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
OPTIONS = {"tcgen05": "always"}
M, N, K = 128, 240, 96


def program(use, m=M, n=N, whole=None):
    """Accumulate F over K in steps of 32; ``use`` names the uses of the accumulators."""
    rows, columns = whole or (m, n)

    @T.prim_func
    def main(
        A: T.Tensor((m, K), "float16"), B: T.Tensor((n, K), "float16"), trips: T.int32,
        C: T.Tensor((rows, columns), "float32"), D: T.Tensor((n,), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            S, R = T.alloc_shared((m, 32), "float16"), T.alloc_shared((n, 32), "float16")
            F, bias = T.alloc_fragment((m, n), "float32"), T.alloc_shared((n,), "float32")
            T.copy(D, bias)
            if use == "filled with ones":
                T.fill(F, 1)
            elif use == "written":
                for i, j in T.Parallel(m, n):
                    F[i, j] = bias[j]
            else:
                T.clear(F)
            for t in T.serial(3 if use == "known trips" else trips):
                T.copy(A[0, t * 32], S)
                T.copy(B[0, t * 32], R)
                if use == "scaled in the loop":
                    for i, j in T.Parallel(m, n):
                        F[i, j] = F[i, j] * 0.5
                if use == "written under a condition":
                    for i, j in T.Parallel(m, n):
                        if j % 2 == 0:
                            F[i, j] = 0.0
                T.gemm(S, R, F, transpose_B=True)
            results(use, F, C, bias, trips, m, n)

    return main


@T.macro
def results(use, F, C, bias, trips, m, n):
    """Return the uses of accumulators behind the loop."""
    if use in ("converted", "twice"):
        H = T.alloc_fragment((m, n), "float16")
        T.copy(F, H)
    if use == "added":
        scale = T.alloc_fragment((m,), "float32")
        for i in T.Parallel(m):
            scale[i] = T.cast(i, "float32")
        for i, j in T.Parallel(m, n):
            F[i, j] = F[i, j] * scale[i] + bias[j]
    if use == "in a branch":  # noqa: SIM102
        if trips > 1:
            for i, j in T.Parallel(m, n):
                F[i, j] = T.max(F[i, j], 0.0)
    if use == "converted":
        for i, j in T.Parallel(m, n):
            H[i, j] = T.max(H[i, j], T.float16(0))
        T.copy(H, C[0:m, 0:n])
    elif use in ("staged", "twice"):
        W = T.alloc_shared((m, n), "float16")
        T.copy(F if use == "staged" else H, W)
        T.copy(W, C[0:m, 0:n])
        if use == "twice":
            for i, j in T.Parallel(m, n):
                C[i, j] = F[i, j] - C[i, j]
    elif use == "atomic":
        T.atomic_add(C[0:m, 0:n], F)
    else:
        T.copy(F, C[0:m, 0:n])


def meaning(use, a, b, d, trips, before):
    parts = [a[:, t * 32 : t * 32 + 32].astype(float) @ b[:, t * 32 : t * 32 + 32].T.astype(float) for t in range(3)]
    f = np.zeros((len(a), len(b)))
    f += {"filled with ones": 1, "written": d}.get(use, 0)
    for t in range(3 if use == "known trips" else trips):
        f *= 0.5 if use == "scaled in the loop" else 1
        if use == "written under a condition":
            f[:, ::2] = 0
        f += parts[t]
    if use == "added":
        f = f * np.arange(len(a))[:, None] + d
    if use == "converted" or (use == "in a branch" and trips > 1):
        f = np.maximum(f, 0)
    if use == "twice":
        f -= f.astype("float16")
    return f + before if use == "atomic" else f


USES = (
    "copied", "known trips", "filled with ones", "written", "scaled in the loop", "written under a condition", "added",
    "in a branch", "converted", "staged", "atomic", "twice",
)  # fmt: skip


def arrays(m=M, n=N, whole=None):
    rng = np.random.default_rng()
    a, b = (rng.integers(-2, 3, s).astype("float16") for s in ((m, K), (n, K)))
    return a, b, rng.integers(-3, 4, n).astype("float32"), rng.integers(-3, 4, whole or (m, n)).astype("float32")


@pytest.mark.parametrize("use", USES)
@pytest.mark.sweep(6)
def test_uses(use):
    kernel = tile.compile(program(use), TARGET, runtime="emulator", options=OPTIONS)
    assert "tcgen05_mma" in kernel.source
    assert not re.search(rf"float F\[{N}\]", kernel.source)
    for arch in ("sm_100a", "sm_103a"):
        assert "C7" not in assemble(kernel.source, arch)
    for trips in (0, 1, 3):
        a, b, d, c = arrays()
        want = meaning(use, a, b, d, trips, c)
        kernel(a, b, trips, c, d)
        np.testing.assert_array_equal(c, want)


SHAPES = (
    (128, 256, (127, 250)), (256, 256, (201, 256)), (256, 112, None), (128, 288, (127, 281)), (128, 320, None),
    (128, 384, (128, 383)),
)  # fmt: skip


@pytest.mark.parametrize(("m", "n", "whole"), SHAPES)
@pytest.mark.sweep(6)
def test_shapes(m, n, whole):
    kernel = tile.compile(program("copied", m, n, whole), TARGET, runtime="emulator", options=OPTIONS)
    assert "F_piece" in kernel.source
    a, b, d, c = arrays(m, n, whole)
    want = (a.astype(float) @ b.T.astype(float))[: c.shape[0], : c.shape[1]]
    kernel(a, b, 3, c, d)
    np.testing.assert_array_equal(c, want)


def test_known_trip_counts_initialize_accumulators():
    texts = [lower(program(use), make_context(TARGET, OPTIONS), installed()).lowered.text for use in USES[:2]]
    bodies = [text[text.index('extern "C"') :] for text in texts]
    assert ["tcgen05_st_sync" in body for body in bodies] == [True, False]


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("option", "divided"), [("never", False), ("auto", False), ("always", True)])
def test_narrow_accumulators_are_divided_by_option(option, divided):
    made = program("added", n=96)
    kernel = tile.compile(made, TARGET, runtime="emulator", options={**OPTIONS, "subtiling": option})
    assert ("F_piece" in kernel.source) == divided
    a, b, d, c = arrays(n=96)
    want = meaning("added", a, b, d, 2, c)
    kernel(a, b, 2, c, d)
    np.testing.assert_array_equal(c, want)


def refused(use):
    @T.prim_func
    def main(A: T.Tensor((128, 64), "float16"), B: T.Tensor((256, 64), "float16"), C: T.Tensor((128, 256), "float32")):
        with T.Kernel(1, threads=128):
            S, R = T.alloc_shared((128, 64), "float16"), T.alloc_shared((256, 64), "float16")
            F, G = T.alloc_fragment((128, 256), "float32"), T.alloc_fragment((128,), "float32")
            W = T.alloc_fragment((128, 256), "float32") if use == "too many columns" else F
            V = T.alloc_fragment((128, 256), "float32") if use == "too many columns" else F
            T.copy(A, S)
            T.copy(B, R)
            T.clear(F)
            for f in dict.fromkeys((F, W, V)):
                T.tcgen05_gemm(S, R, f, False, True, clear_accum=True)
            if use == "reduced":
                T.reduce_max(F, G, dim=1)
            elif use == "a neighbour":
                for i, j in T.Parallel(128, 256):
                    C[i, j] = F[i, (j + 1) % 256]
            elif use == "a part":
                T.copy(F[:, 0:128], C[:, 0:128])
            elif use == "one element":
                C[0, 0] = F[3, 3]
            elif use == "turned":
                for j, i in T.Parallel(256, 128):
                    C[i, j] = F[i, j]
            for f in dict.fromkeys((F, W, V)):
                T.copy(f, C)

    return main


@pytest.mark.parametrize(
    ("use", "reason"),
    [
        ("reduced", "T.reduce_max in line"), ("a neighbour", "uses an element at another position"),
        ("a part", "uses a part of it"), ("one element", "single elements of it"),
        ("turned", "is not over its 128 x 256 elements"),
        ("too many columns", "256 more columns of tensor memory are not left of 512"),
    ],
)  # fmt: skip
def test_rejection_reasons_of_indivisible_accumulators(use, reason):
    with pytest.raises(TileError) as caught:
        tile.compile(refused(use), TARGET, runtime="emulator")
    assert caught.value.code == "U104"
    assert "needs more than 208 registers of each thread, and it is not subtiled" in str(caught.value)
    assert reason in str(caught.value)


def test_more_columns_than_there_are_are_refused():
    @T.prim_func
    def main(A: T.Tensor((384, 16), "float16"), C: T.Tensor((384, 256), "float32")):
        with T.Kernel(1, threads=128):
            S, F = T.alloc_shared((384, 16), "float16"), T.alloc_fragment((384, 256), "float32")
            T.copy(A, S)
            T.tcgen05_gemm(S, S[0:256, :], F, False, True, clear_accum=True)
            T.copy(F, C)

    with pytest.raises(TileError, match="needs 768 columns of tensor memory, which has 512"):
        tile.compile(main, TARGET, runtime="emulator")


@pytest.mark.parametrize(("n", "legal"), [(272, "256 and 288"), (496, "480 and 512")])
def test_columns_that_instructions_of_one_width_cannot_share_are_refused(n, legal):
    """Refuse alternating products of two widths: their order is undefined."""

    @T.prim_func
    def main(A: T.Tensor((128, 32), "float16"), B: T.Tensor((n, 32), "float16"), C: T.Tensor((128, n), "float32")):
        with T.Kernel(1, threads=128):
            S, R = T.alloc_shared((128, 32), "float16"), T.alloc_shared((n, 32), "float16")
            F = T.alloc_fragment((128, n), "float32")
            T.copy(A, S)
            T.copy(B, R)
            T.tcgen05_gemm(S, R, F, False, True, clear_accum=True)
            T.copy(F, C)

    with pytest.raises(TileError, match=f"{n} columns are not a multiple of 32, .*: {legal} are"):
        tile.compile(main, TARGET, runtime="emulator")


def test_a_product_that_no_descriptor_describes_is_refused():
    """Refuse an operand offset that no descriptor expresses; its accumulators exceed the registers."""

    @T.prim_func
    def main(A: T.Tensor((128, 64), "float16"), B: T.Tensor((264, 64), "float16"), C: T.Tensor((128, 256), "float32"),
             n: T.int32):  # fmt: skip
        with T.Kernel(1, threads=128):
            S, R = T.alloc_shared((128, 64), "float16"), T.alloc_shared((264, 64), "float16")
            F = T.alloc_fragment((128, 256), "float32")
            T.copy(A, S)
            T.copy(B, R)
            T.clear(F)
            T.gemm(S, R[n : n + 256, :], F, transpose_B=True)
            T.copy(F, C)

    with pytest.raises(TileError) as caught:
        tile.compile(main, TARGET, runtime="emulator", options=OPTIONS)
    assert caught.value.code == "U104"


MISTAKES = {
    "another piece": (r"(tcgen05_ld_sync\w+\(&F_piece_\d\[0\],.*)(piece_\d) \* 64", r"\1\2 * 32"),
    "a piece less": (r"(piece\w*) < 3", r"\1 < 2"),
    "no wait for a piece": (r" *tcgen05_wait_ld_sync_aligned\(\);\n", ""),
    "no wait for a piece that is written": (r" *tcgen05_wait_st_sync_aligned\(\);\n", ""),
    "a piece is not written": (r" *tcgen05_st_sync\w+\(.*\n", ""),
    "it is written before it is read": (r"((?: *tcgen05_ld_sync.*\n)+)((?:.*\n)*?)((?: *tcgen05_st_sync.*\n)+)",
                                        r"\3\2\1"),
    "columns of others": (r"(tcgen05_alloc\w+\(.*, )256\)", r"\g<1>128)"),
    "foreign rows": (r">> 5\) & 3\)", ">> 5) + 1 & 3)"),
}  # fmt: skip

EVERYWHERE = ("foreign rows", "no wait for a piece that is written")


@pytest.fixture(scope="module")
def lowered():
    return lower(program("scaled in the loop"), make_context(TARGET, OPTIONS), installed()).lowered


def found(text, lowered):
    dialect = dialect_of(Arch.of("sm_100a"))
    a, b, d, c = arrays()
    want = meaning("scaled in the loop", a, b, d, 2, c)
    given = {"A": a, "B": b, "trips": 2, "C": c, "D": d}
    result = tile_emulator.run(text, lowered.facts, given, dialect, completion="late")
    return bool(result.reports) or not np.array_equal(result.outputs["C"].reshape(M, N), want)


@pytest.mark.parametrize("mistake", [None, *MISTAKES])
@pytest.mark.sweep(6)
def test_mistakes_are_found(mistake, lowered):
    cut = lowered.text.index('extern "C"')
    head, body = lowered.text[:cut], lowered.text[cut:]
    if mistake is not None:
        pattern, new = MISTAKES[mistake]
        body, count = re.subn(pattern, new, body, count=0 if mistake in EVERYWHERE else 1)
        assert count, body
    assert found(head + body, lowered) == (mistake is not None)
