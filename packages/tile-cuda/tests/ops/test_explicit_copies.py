"""``T.async_copy``: copies by ``cp.async`` that a program waits for itself."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError
from tile_core.errors.lowering import VariantMissing, VariantRefused
from tile_core.errors.ops import BadBarrier, NotWaitedFor, ScopeNotAllowed

TARGETS = ("cuda:sm_80", "cuda:sm_90a")


def doubled(body, rows=24, columns=40, dtype="float16"):
    """Twice A, through a tile that ``body`` fills."""
    filled = T.macro(body)

    @T.prim_func
    def main(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype)):
        with T.Kernel(3, threads=64) as bx:
            S = T.alloc_shared((8, columns), dtype)
            R = T.alloc_shared((8, columns), dtype)
            T.clear(R)
            filled(A, S, R, bx)
            for i, j in T.Parallel(8, columns):
                B[bx * 8 + i, j] = S[i, j] * 2

    return main


def _waited(A, S, R, bx):
    T.async_copy(A[bx * 8 : bx * 8 + 8, :], S)
    T.ptx_commit_group()
    T.fill(R, 1)
    T.ptx_wait_group(0)


def _in_a_loop(A, S, R, bx):
    for _ in range(3):
        T.async_copy(A[bx * 8 : bx * 8 + 8, :], S)
        T.ptx_wait_group(0)


def _two(A, S, R, bx):
    T.async_copy(A[0:8, :], R)
    T.async_copy(A[bx * 8 : bx * 8 + 8, :], S)
    T.ptx_wait_group(1)
    for i, j in T.Parallel(8, S.shape[1]):
        R[i, j] = R[i, j] - R[i, j]
    T.ptx_wait_group(0)
    for i, j in T.Parallel(8, S.shape[1]):
        S[i, j] += R[i, j]


@pytest.mark.sweep(16)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("body", [_waited, _in_a_loop, _two])
@pytest.mark.parametrize(("rows", "columns"), [(24, 40), (24, 41), (23, 40), (17, 2)])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_they_are_right(target, body, rows, columns, dtype):
    program = doubled(body, rows, columns, dtype)
    if columns * np.dtype(dtype).itemsize % 4:
        with pytest.raises(VariantRefused, match=r"cp\.async needs 4"):
            tile.compile(program, target, runtime="emulator")
        return
    kernel = tile.compile(program, target, runtime="emulator")
    assert "  cp_async_" in kernel.source[kernel.source.index('extern "C"') :]
    a = np.random.default_rng().integers(-9, 10, (rows, columns)).astype(dtype)
    b = np.zeros_like(a)
    kernel(a, b)
    assert (b == a * 2).all()


def _unwaited(A, S, R, bx):
    T.async_copy(A[bx * 8 : bx * 8 + 8, :], S)


def _written(A, S, R, bx):
    T.async_copy(A[bx * 8 : bx * 8 + 8, :], S)
    T.fill(S, 0)
    T.ptx_wait_group(0)


def _role(A, S, R, bx):
    with T.ws(0, size=32):
        T.async_copy(A[bx * 8 : bx * 8 + 8, :], S)
    T.ptx_wait_group(0)


def _role_waits(A, S, R, bx):
    T.async_copy(A[bx * 8 : bx * 8 + 8, :], S)
    with T.ws(0, size=32):
        T.ptx_wait_group(0)


def _pipelined(A, S, R, bx):
    for _ in T.Pipelined(3, num_stages=2):
        T.async_copy(A[bx * 8 : bx * 8 + 8, :], S)
        T.copy(S, R)


def _stored(A, S, R, bx):
    T.async_copy(R, A[0:8, :])


def _many(A, S, R, bx):
    T.ptx_wait_group(8)


@pytest.mark.parametrize(
    ("body", "error", "says"),
    [
        (_unwaited, NotWaitedFor, "S is read here while the asynchronous write"),
        (_written, NotWaitedFor, "S is written here while the asynchronous write"),
        (_role, VariantRefused, "only the threads of a role would wait for it"),
        (_role_waits, BadBarrier, "T.ptx_wait_group stands where only the threads of a role"),
        (_pipelined, VariantRefused, "pipelined loops count groups of their own"),
        (_stored, ScopeNotAllowed, "src is in scope shared"),
        (_many, TileError, "num"),
    ],
)
def test_missing_waits_are_refused(body, error, says):
    with pytest.raises(error, match=says):
        tile.compile(doubled(body), "cuda:sm_90a", runtime="emulator")


def test_targets_without_it_refuse():
    for target in ("metal", "cpu"):
        with pytest.raises(VariantMissing):
            tile.compile(doubled(_waited), target)


def test_waits_for_stores_are_placed():
    @T.prim_func
    def main(A: T.Tensor((16, 64), "float16"), B: T.Tensor((16, 64), "float16")):
        with T.Kernel(2, threads=64) as bx:
            S = T.alloc_shared((8, 64), "float16")
            T.copy(A[bx * 8, 0], S)
            T.tma_copy(S, B[bx * 8, 0])
            T.tma_store_wait(0, read=True)
            T.clear(S)

    kernel = tile.compile(main, "cuda:sm_90a", runtime="emulator")
    a, b = np.random.default_rng().standard_normal((16, 64)).astype("float16"), np.zeros((16, 64), "float16")
    kernel(a, b)
    assert (a == b).all()


def doubling(body, dtype="float32", columns=40):
    """A kernel whose ``body`` doubles six tiles of A, through two shared buffers."""
    doubles = T.macro(body)

    @T.prim_func
    def main(A: T.Tensor((6, 8, columns), dtype), B: T.Tensor((6, 8, columns), dtype)):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((8, columns), dtype)
            R = T.alloc_shared((8, columns), dtype)
            doubles(A, B, S, R)

    return main


@T.macro
def double(B, t, S):
    for i, j in T.Parallel(8, S.shape[1]):
        B[t, i, j] = S[i, j] * 2


def _two_prefetched(A, B, S, R):
    T.async_copy(A[0, :, :], S)
    T.async_copy(A[1, :, :], R)
    for t in range(2):
        T.ptx_wait_group(1)
        double(B, 2 * t, S)
        T.async_copy(A[2 * t + 2, :, :], S)
        T.ptx_wait_group(1)
        double(B, 2 * t + 1, R)
        T.async_copy(A[2 * t + 3, :, :], R)
    T.ptx_wait_group(1)
    double(B, 4, S)
    T.ptx_wait_group(0)
    double(B, 5, R)


def _groups_of_two(A, B, S, R):
    for t in range(3):
        T.async_copy(A[2 * t, :, :], S)
        T.async_copy(A[2 * t + 1, :, :], R)
        T.ptx_commit_group()
        T.ptx_wait_group(0)
        double(B, 2 * t, S)
        double(B, 2 * t + 1, R)


def _an_empty_group(A, B, S, R):
    for t in range(6):
        T.async_copy(A[t, :, :], S)
        T.ptx_commit_group()
        T.ptx_commit_group()
        T.ptx_wait_group(1)
        double(B, t, S)


def _one_side(A, B, S, R):
    for t in range(6):
        T.async_copy(A[t, :, :], S)
        if t % 2 == 0:
            T.async_copy(A[0, :, :], R)
        T.ptx_wait_group(0)
        double(B, t, S)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("body", [_two_prefetched, _groups_of_two, _an_empty_group, _one_side])
@pytest.mark.parametrize("target", TARGETS)
def test_the_latest_groups_stay_in_flight(body, target):
    kernel = tile.compile(doubling(body), target, runtime="emulator")
    if body in (_two_prefetched, _an_empty_group):
        assert "  cp_async_wait_group_1()" in kernel.source
    if body is _groups_of_two:
        assert kernel.source.count("  cp_async_commit_group();") == 1
    a = np.random.default_rng().integers(-9, 10, (6, 8, 40)).astype("float32")
    b = np.zeros_like(a)
    kernel(a, b)
    assert (b == a * 2).all()


def _too_few(A, B, S, R):
    T.async_copy(A[0, :, :], S)
    T.async_copy(A[1, :, :], R)
    T.ptx_wait_group(1)
    double(B, 1, R)


def _one_group(A, B, S, R):
    T.async_copy(A[0, :, :], S)
    T.async_copy(A[1, :, :], R)
    T.ptx_commit_group()
    T.ptx_wait_group(1)
    double(B, 0, S)


def _on_one_side(A, B, S, R):
    for t in range(6):
        T.async_copy(A[t, :, :], S)
        if t % 2 == 0:
            T.async_copy(A[0, :, :], R)
        T.ptx_wait_group(1)
        double(B, t, S)


def _around_a_loop(A, B, S, R):
    for t in range(3):
        T.async_copy(A[2 * t, :, :], S)
        T.ptx_wait_group(1)
    double(B, 0, S)


def _left(A, B, S, R):
    T.clear(R)
    T.async_copy(A[0, :, :], S)
    T.ptx_wait_group(1)
    double(B, 0, R)


def _in_a_pipeline(A, B, S, R):
    for t in T.Pipelined(6, num_stages=2):
        T.copy(A[t, :, :], S)
        T.ptx_commit_group()
        double(B, t, S)


@pytest.mark.parametrize(
    ("body", "error", "says"),
    [
        (_too_few, NotWaitedFor, "R is read here while the asynchronous write"),
        (_one_group, NotWaitedFor, "S is read here while"),
        (_on_one_side, NotWaitedFor, "S is read here while"),
        (_around_a_loop, NotWaitedFor, "S is written here while"),
        (_left, NotWaitedFor, "S is given up at the end of the block while"),
        (_in_a_pipeline, BadBarrier, "T.ptx_commit_group stands where pipelined loops count groups"),
    ],
)
def test_tiles_in_flight_are_not_touched(body, error, says):
    with pytest.raises(error, match=says):
        tile.compile(doubling(body), TARGETS[1])


@pytest.mark.parametrize("pending", [0, 1])
def test_an_unread_tile_keeps_its_storage_until_the_wait(pending):
    def body(A, B, S, R):
        T.async_copy(A[0, :, :], S)
        if pending:
            T.async_copy(A[0, :, :], S)
        T.fill(R, 1)
        double(B, 0, R)
        T.ptx_wait_group(0)

    if pending:
        with pytest.raises(NotWaitedFor, match="S is written here while"):
            tile.compile(doubling(body), TARGETS[1])
        return
    kernel = tile.compile(doubling(body), TARGETS[1], runtime="emulator")
    a, b = np.ones((6, 8, 40), "float32"), np.zeros((6, 8, 40), "float32")
    kernel(a, b)
    assert (b[0] == 2).all()
