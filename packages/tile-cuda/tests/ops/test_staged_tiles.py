"""Tiles that threads convert from global memory are staged in shared memory, as if the program copied them."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

ASYNC = ("cuda:sm_80", "cuda:sm_90a", "cuda:sm_100a")
TILES = ((16, 64, 128, 128), (128, 128, 64, 128), (128, 128, 64, 256), (256, 64, 64, 256))


def program(m, n, k, tile_of, stages=3, group=32, copied=False, trips=None, depth=None):
    """A product with 4-bit weights, scaled by groups, that are copied or read by threads."""
    bm, bn, bk, threads = tile_of
    steps = -(-k // bk) if trips is None else trips

    @T.prim_func
    def main(
        A: T.Tensor((m, k), "float16"), W: T.Tensor((n, k), "int4"), S: T.Tensor((n, -(-k // group)), "float16"),
        C: T.Tensor((m, n), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (bx, by):
            a = T.alloc_shared((bm, bk), "float16")
            w = T.alloc_shared((bn, bk), "float16")
            c = T.alloc_fragment((bm, bn), "float32")
            if copied:
                W_tile = T.alloc_shared((bn, bk), "int4")
            T.clear(c)
            for o in T.Pipelined(steps, num_stages=stages):
                T.copy(A[by * bm, o * bk], a)
                if copied:
                    T.copy(W[bx * bn, o * bk], W_tile)
                for i, j in T.Parallel(bn, bk):
                    x = T.cast(W_tile[i, j] if copied else W[bx * bn + i, o * bk + j], "float16")
                    w[i, j] = x * S[bx * bn + i, (o * bk + j) // group]
                T.gemm(a, w, c, transpose_B=True)
            T.copy(c, C[by * bm, bx * bn])

    return main


@pytest.mark.sweep(4)
@pytest.mark.parametrize("target", ASYNC)
@pytest.mark.parametrize("tile_of", TILES)
@pytest.mark.parametrize(("m", "n", "k"), [(256, 4096, 4096), (17, 101, 4160)])
def test_the_text_is_that_of_a_program_with_copies(target, tile_of, m, n, k):
    texts = [tile.compile(program(m, n, k, tile_of, copied=x), target).source for x in (False, True)]
    # The order of declarations is that of the allocations.
    assert sorted(texts[0].splitlines()) == sorted(texts[1].splitlines())
    assert "W_tile_stages[" in texts[0]


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("target", ASYNC)
@pytest.mark.parametrize(
    ("k", "group", "trips"), [(160, 32, None), (320, 48, None), (352, 100, 3), (64, 32, 0), (64, 32, 1)]
)
@pytest.mark.parametrize(("m", "n", "tile_of"), [(9, 67, (16, 64, 64, 128)), (70, 41, (64, 32, 64, 256))])
def test_tails_of_all_dimensions(target, k, group, trips, m, n, tile_of):
    kernel = tile.compile(program(m, n, k, tile_of, 3, group, trips=trips), target, runtime="emulator", options={})
    rng = np.random.default_rng()
    a, codes = rng.integers(-3, 4, (m, k)).astype(np.float16), rng.integers(0, 16, (n, k))
    s = np.exp2(rng.integers(-1, 2, (n, -(-k // group)))).astype(np.float16)
    c = np.full((m, n), np.nan, np.float32)
    kernel(a, (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8), s, c)
    depth = k if trips is None else min(k, trips * tile_of[2])
    w = ((codes ^ 8) - 8) * np.repeat(s.astype(float), group, 1)[:, :k]
    np.testing.assert_array_equal(c, a[:, :depth].astype(float) @ w[:, :depth].T)
    assert ("W_tile" in kernel.source) == (trips not in (0, 1))


@pytest.mark.parametrize("target", ["metal", "rocm:gfx942"])
def test_targets_without_asynchronous_copies_stage_nothing(target):
    kernel = tile.compile(program(256, 256, 256, (64, 64, 64, 128), 2), target)
    assert "W_tile" not in kernel.source


def direct(shape, dtype, load, n=64, k=64, stages=3, value=lambda x: T.cast(x, "float16"), after=False):
    """A product of 8 iterations whose operand is loaded from ``W``."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 8 * k), "float16"), W: T.Tensor(shape, dtype), E: T.Tensor((4,), "int32"),
        C: T.Tensor((64, 4 * n), "float32"),
    ):  # fmt: skip
        with T.Kernel(4, threads=128) as bx:
            a = T.alloc_shared((64, k), "float16")
            w = T.alloc_shared((n, k), "float16")
            c = T.alloc_fragment((64, n), "float32")
            T.clear(c)
            for o in T.Pipelined(8, num_stages=stages):
                T.copy(A[0, o * k + E[0] * 0], a)
                for i, j in T.Parallel(n, k):
                    w[i, j] = value(load(W, E, bx * n + i, o * k + j))
                T.gemm(a, w, c, transpose_B=True)
            T.copy(c, C[0, bx * n])
            if after:
                W[bx * n, 0] = 0

    return main


def nibble(x, at):
    return x >> at % 8 * 4 & 15


FORMS = {
    "rows": ((256, 512), "int8", lambda W, E, n, k: W[n, k]),
    "columns": ((512, 256), "int8", lambda W, E, n, k: W[k, n]),
    "an expert": ((9, 256, 512), "int8", lambda W, E, n, k: W[E[2], n, k]),
    "words along K": ((256, 64), "int32", lambda W, E, n, k: nibble(W[n, k // 8], k)),
    "words along N": ((512, 32), "int32", lambda W, E, n, k: nibble(W[k, n // 8], n)),
    "shifted rows": ((200, 512), "int8", lambda W, E, n, k: W[n - 3, k]),
    "two tiles": ((256, 512), "int8", lambda W, E, n, k: W[n, k] + W[n, k - 64]),
}


@pytest.mark.sweep(2)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
@pytest.mark.parametrize("form", FORMS)
def test_forms_of_tiles(form, target):
    shape, dtype, load = FORMS[form]
    kernel = tile.compile(direct(shape, dtype, load), target, runtime="emulator", options={})
    report = str(kernel.explain())
    assert "W: staged in shared memory as W_tile, which threads convert" in report
    assert ("W_tile_1" in report) == (form == "two tiles")
    rng = np.random.default_rng()
    kind = np.iinfo(dtype)
    limits = (-3, 4) if dtype == "int8" else (kind.min, kind.max)
    w = rng.integers(*limits, shape, dtype=dtype)
    a, e = rng.integers(-3, 4, (64, 512)).astype(np.float16), rng.integers(-1, 10, 4).astype(np.int32)
    c = np.full((64, 256), np.nan, np.float32)
    kernel(a, w, e, c)

    class Padded:
        """A tensor whose elements outside are zero."""

        def __getitem__(self, at):
            at = np.broadcast_arrays(*at)
            inside = np.logical_and.reduce([(i >= 0) & (i < size) for i, size in zip(at, shape, strict=True)])
            return np.where(inside, w[tuple(np.clip(i, 0, s - 1) for i, s in zip(at, shape, strict=True))], 0)

    n, k = np.meshgrid(np.arange(256), np.arange(512), indexing="ij")
    np.testing.assert_array_equal(c, a.astype(float) @ load(Padded(), e, n, k).astype(float).T)


REASONS = {
    "odd rows": (((256, 509), "int8", lambda W, E, n, k: W[n, k]), {}, "rows of W are aligned to 1 bytes"),
    "it is written": (((256, 512), "int8", lambda W, E, n, k: W[n, k]), {"after": True}, "the kernel writes it"),
    "too large": (
        ((1024, 1024), "float32", lambda W, E, n, k: W[n, k]), {"n": 256, "k": 128}, "with its slots shared memory has",
    ),
}  # fmt: skip


@pytest.mark.parametrize("why", REASONS)
def test_reasons_against_a_tile(why):
    form, how, reason = REASONS[why]
    report = " ".join(str(tile.compile(direct(*form, **how), "cuda:sm_80").explain()).split())
    assert f"W: threads read it where they convert it: {reason}" in report


UNSEEN = {
    "each element of a group": (((256, 64), "float16", lambda W, E, n, k: W[n, k // 8]), {"value": lambda x: x * 2}),
    "strides": (((256, 1024), "int8", lambda W, E, n, k: W[n, 2 * k]), {}),
    "a diagonal": (((256, 512), "int8", lambda W, E, n, k: W[n, k + n]), {}),
    "a copy": (((256, 512), "float16", lambda W, E, n, k: W[n, k]), {"value": lambda x: x}),
    "no stages": (((256, 512), "int8", lambda W, E, n, k: W[n, k]), {"stages": 1}),
}


@pytest.mark.parametrize("what", UNSEEN)
def test_other_loads_are_no_tiles(what):
    form, how = UNSEEN[what]
    report = " ".join(str(tile.compile(direct(*form, **how), "cuda:sm_80").explain()).split())
    assert "W_tile" not in report
    assert "where they convert it" not in report


def weights(m, n, k, copied, block_M=64, block_N=64, block_K=64, threads=128, num_stages=3):
    """Factory of programs with or without copies."""
    return program(m, n, k, (block_M, block_N, block_K, threads), num_stages, copied=copied)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_tilings_count_the_slots_of_tiles(target):
    shapes = {"m": 512, "n": 1024, "k": 1024}
    direct, copied = (tile.tilings(weights, {**shapes, "copied": x}, target=target, most=2) for x in (False, True))
    assert [(dict(a), a.microseconds) for a in direct] == [(dict(a), a.microseconds) for a in copied]
