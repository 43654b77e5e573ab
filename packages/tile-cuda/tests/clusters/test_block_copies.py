"""Block-to-block copies of shared tiles: results, waits, and refusals."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
import tile_emulator
from tile_core import reference
from tile_core.compiler import lower
from tile_core.errors import TileError
from tile_core.errors.lowering import ClusterUnsupported, VariantRefused
from tile_core.errors.ops import BadAttribute, BadBarrier, BadCluster, ScopeNotAllowed, UnbalancedBarrier
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch

TARGET = "cuda:sm_90a"
ORDERS = (
    {"completion": "early"}, {"completion": "late"}, {"completion": "early", "order": "random", "seed": 5},
    {"completion": "late", "order": "reverse"},
)  # fmt: skip
BULK, STORE = "  cp_async_bulk_shared_cluster_shared_cta", "  st_shared_cluster_"


def turned(shape, dtype, blocks=2, by=1, counted=True, part=None, threads=64, dims=None):
    """Copy each block's tile, or its part, to the block ``by`` ranks further on."""
    at = [slice(0, n) for n in shape] if part is None else [slice(low, low + n) for low, n in part]
    count = blocks if dims is None else int(np.prod(dims))

    @T.prim_func
    def main(A: T.Tensor((2 * count, *shape), dtype), B: T.Tensor((2 * count, *shape), dtype)):
        with T.ClusterKernel(2 * count, cluster_dims=count, threads=threads) as bx:
            S = T.alloc_shared(shape, dtype)
            R = T.alloc_shared(shape, dtype)
            arrived = T.alloc_cluster_barrier(1)
            T.copy(A[(bx, *(slice(None) for _ in shape))], S)
            T.clear(R)
            T.cluster_sync()
            to = (T.block_rank_in_cluster() + by) % count
            if counted:
                T.copy_cluster(S[tuple(at)], R[tuple(at)], dst_block=to, remote_barrier=arrived)
                T.mbarrier_wait_parity(arrived, 0)
            else:
                T.copy_cluster(S[tuple(at)], R[tuple(at)], dst_block=to)
                T.cluster_sync()
            T.copy(R, B[(bx, *(slice(None) for _ in shape))])

    return main


def numbers(shape, dtype):
    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    return np.random.default_rng().integers(0, 2 if dtype == "bool" else 100, shape).astype(kind)


def rotated(a, blocks, by, part=None):
    """Return the expected output."""
    found = np.zeros_like(a)
    at = tuple(slice(low, low + n) for low, n in part) if part else ()
    for b in range(len(a)):
        to = b // blocks * blocks + (b + by) % blocks
        found[(to, *at)] = a[(b, *at)]
    return found


def results(program, how, values, out="B"):
    lowered = lower(program, make_context(TARGET, {}), installed()).lowered
    dialect = dialect_of(Arch.of(TARGET.removeprefix("cuda:")))
    found = tile_emulator.run(lowered.text, lowered.facts, values, dialect, **how)
    assert not found.reports, found.reports
    return found.outputs.get(out, values[out])


@pytest.mark.sweep(12)
@pytest.mark.parametrize(
    ("shape", "dtype", "part"),
    [
        ((4, 32), "float32", None),
        ((16, 8), "float16", None),
        ((1024,), "uint8", None),
        ((3, 2, 8), "float64", None),
        ((4, 16), "bfloat16", ((0, 4), (8, 8))),
        ((8, 32), "int32", ((2, 3), (0, 32))),
        ((64,), "int64", ((4, 2),)),
        ((2, 3, 16), "float8_e4m3fn", ((1, 1), (0, 3), (0, 16))),
        ((5, 16), "float16", ((1, 3), (0, 8))),
    ],
)
@pytest.mark.parametrize(("blocks", "by"), [(2, 1), (4, 3), (3, 1), (8, 5), (2, 0), (1, 0)])
def test_tiles_that_a_barrier_counts_arrive(shape, dtype, part, blocks, by):
    program = turned(shape, dtype, blocks, by, part=part)
    kernel = tile.compile(program, TARGET, runtime="emulator")
    assert BULK in kernel.source
    a = numbers((2 * blocks, *shape), dtype)
    b = np.ones_like(a)
    kernel(a, b)
    assert (b == rotated(a, blocks, by, part)).all()
    again = np.ones_like(a)
    view = (lambda x: x.view("uint8") if dtype.startswith("float8") else x.view("uint16")) if dtype in (
        "bfloat16", "float8_e4m3fn") else (lambda x: x)  # fmt: skip
    reference.execute(program, [view(a), view(again)])
    assert (again == b).all()


@pytest.mark.sweep(12)
@pytest.mark.parametrize(
    ("shape", "dtype", "part"),
    [
        ((7, 13), "float32", None),
        ((1,), "float16", None),
        ((257,), "uint8", None),
        ((3, 2, 5), "float64", None),
        ((5, 11), "bfloat16", ((1, 3), (1, 7))),
        ((9, 3), "bool", None),
        ((31,), "int64", ((5, 1),)),
        ((6, 5), "float8_e5m2", ((0, 5), (1, 4))),
        ((4, 2), "float32", ((0, 4), (1, 1))),
    ],
)
@pytest.mark.parametrize(("blocks", "by"), [(2, 1), (4, 3), (3, 1), (8, 5), (2, 0)])
@pytest.mark.parametrize("threads", [1, 64, 96])
def test_elements_that_threads_store_arrive(shape, dtype, part, blocks, by, threads):
    kernel = tile.compile(turned(shape, dtype, blocks, by, False, part, threads), TARGET, runtime="emulator")
    assert STORE in kernel.source
    a = numbers((2 * blocks, *shape), dtype)
    b = np.ones_like(a)
    kernel(a, b)
    assert (b == rotated(a, blocks, by, part)).all()


def relayed(trips, slots=2, free=True, dynamic=False):
    """The first block of a cluster loads tiles and forwards them; the second stores them."""

    @T.prim_func
    def main(
        A: T.Tensor((max(trips, 1), 4, 32), "float32"), B: T.Tensor((max(trips, 1), 4, 32), "float32"), n: T.int32
    ):
        with T.ClusterKernel(2, cluster_dims=2, threads=64):
            S = T.alloc_shared((slots, 4, 32), "float32")
            R = T.alloc_shared((slots, 4, 32), "float32")
            full, done = T.alloc_cluster_barrier([1] * slots), T.alloc_cluster_barrier([64] * slots)
            rank = T.block_rank_in_cluster()
            for k in range(n if dynamic else trips):
                slot, phase = k % slots, k // slots
                if rank == 0:
                    if free:
                        T.mbarrier_wait_parity(done[slot], (phase + 1) % 2)
                    T.copy(A[k, :, :], S[slot, :, :])
                    T.sync_threads()  # all have waited for `done`
                    T.copy_cluster(S[slot, :, :], R[slot, :, :], dst_block=1, remote_barrier=full[slot])
                if rank == 1:
                    T.mbarrier_wait_parity(full[slot], phase % 2)
                    T.copy(R[slot, :, :], B[k, :, :])
                    T.mbarrier_arrive(done[slot], cta_id=0)

    return main


@pytest.mark.sweep(6)
@pytest.mark.parametrize("trips", [0, 1, 2, 5])
@pytest.mark.parametrize("slots", [1, 2, 3])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("how", ORDERS, ids=lambda how: "-".join(map(str, how.values())))
def test_2927_a_barrier_for_each_slot(trips, slots, dynamic, how):
    """Copy in a loop with another barrier in each iteration: data were overwritten."""
    a = np.random.default_rng().standard_normal((max(trips, 1), 4, 32)).astype("float32")
    b = np.full_like(a, 7)
    out = results(relayed(trips, slots, dynamic=dynamic), how, {"A": a, "B": b.copy(), "n": trips}).reshape(a.shape)
    assert (out == (a if trips else b)).all()


def summed(blocks, between="T.cluster_sync"):
    """All blocks get the sum of all, in a ring."""

    @T.prim_func
    def main(A: T.Tensor((blocks, 4, 8), "int32"), B: T.Tensor((blocks, 4, 8), "int32")):
        with T.ClusterKernel(blocks, cluster_dims=blocks, threads=32) as bx:
            S = T.alloc_shared((2, 4, 8), "int32")
            F = T.alloc_fragment((4, 8), "int32")
            got = T.alloc_cluster_barrier([1] * 2)
            rank = T.block_rank_in_cluster()
            T.copy(A[bx, :, :], S[0, :, :])
            T.copy(S[0, :, :], F)
            for h in range(blocks - 1):
                T.copy_cluster(
                    S[h % 2, :, :], S[(h + 1) % 2, :, :], dst_block=(rank + 1) % blocks, remote_barrier=got[h % 2]
                )
                T.mbarrier_wait_parity(got[h % 2], h // 2 % 2)
                for i, j in T.Parallel(4, 8):
                    F[i, j] = F[i, j] + S[(h + 1) % 2, i, j]
                if between == "T.cluster_sync":
                    T.cluster_sync()
            T.copy(F, B[bx, :, :])

    return main


@pytest.mark.sweep(6)
@pytest.mark.parametrize("blocks", [2, 3, 4, 8])
@pytest.mark.parametrize("how", ORDERS[1:], ids=lambda how: "-".join(map(str, how.values())))
def test_a_ring_of_blocks_accumulates(blocks, how):
    a = np.random.default_rng().integers(-99, 99, (blocks, 4, 8)).astype("int32")
    out = results(summed(blocks), how, {"A": a, "B": np.zeros_like(a)}).reshape(a.shape)
    assert (out == a.sum(0)).all()
    again = np.zeros_like(a)
    reference.execute(summed(blocks), [a, again])
    assert (out == again).all()


def test_a_role_forwards_tiles_of_another_role():
    @T.prim_func
    def main(A: T.Tensor((4, 8, 16), "float32"), B: T.Tensor((4, 8, 16), "float32")):
        with T.ClusterKernel(4, cluster_dims=2, threads=96) as bx:
            S = T.alloc_shared((8, 16), "float32")
            R = T.alloc_shared((8, 16), "float32")
            full, got = T.alloc_barrier(32), T.alloc_cluster_barrier(1)
            with T.ws(0, size=32):
                T.copy(A[bx, :, :], S)
                T.barrier_arrive(full)
            with T.ws(1, size=32):
                T.barrier_wait(full, 0)
                T.copy_cluster(S, R, dst_block=1 - T.block_rank_in_cluster(), remote_barrier=got)
            with T.ws(2, size=32):
                T.mbarrier_wait_parity(got, 0)
                T.copy(R, B[bx, :, :])

    a = np.random.default_rng().standard_normal((4, 8, 16)).astype("float32")
    for how in ORDERS:
        out = results(main, how, {"A": a, "B": np.zeros_like(a)}).reshape(a.shape)
        assert (out == a[[1, 0, 3, 2]]).all()


@pytest.mark.parametrize("size", [12, 20, 16])
def test_2506_sizes_that_are_no_multiple_of_16_bytes(size):
    """The receiver waited for ever."""
    program = turned((size,), "uint8")
    if size % 16:
        with pytest.raises(VariantRefused, match=f"{size} bytes are contiguous in S and R; bulk copies take multiples"):
            tile.compile(program, TARGET)
        program = turned((size,), "uint8", counted=False)
    a = numbers((4, size), "uint8")
    b = np.ones_like(a)
    tile.compile(program, TARGET, runtime="emulator")(a, b)
    assert (b == rotated(a, 2, 1)).all()


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("start", [0, 1, 2, 4])
def test_2564_parts_that_begin_between_chunks(start):
    """A misaligned address."""
    part = ((start, 8),)
    program = turned((16,), "float32", part=part)
    if start % 4:
        with pytest.raises(VariantRefused, match="it does not begin at multiples of 16 bytes of S"):
            tile.compile(program, TARGET)
        program = turned((16,), "float32", counted=False, part=part)
    a = numbers((4, 16), "float32")
    b = np.ones_like(a)
    tile.compile(program, TARGET, runtime="emulator")(a, b)
    assert (b == rotated(a, 2, 1, part)).all()


def sent(body, threads=64, blocks=2, dtype="float32"):
    """A kernel whose ``body`` uses tiles S and R of a cluster, and barriers."""
    inside = T.macro(body)

    @T.prim_func
    def main(A: T.Tensor((4, 4, 32), dtype), B: T.Tensor((4, 4, 32), dtype), n: T.int32):
        with T.ClusterKernel(4, cluster_dims=blocks, threads=threads) as bx:
            S = T.alloc_shared((4, 32), dtype)
            R = T.alloc_shared((4, 32), dtype)
            got, own = T.alloc_cluster_barrier(1), T.alloc_barrier(threads)
            T.copy(A[bx, :, :], S)
            inside(A, B, S, R, got, own, bx, n)
            T.copy(R, B[bx, :, :])

    return main


def other():
    return 1 - T.block_rank_in_cluster()


def _no_wait(A, B, S, R, got, own, bx, n):
    T.copy_cluster(S, R, dst_block=other(), remote_barrier=got)


def _no_cluster_wait(A, B, S, R, got, own, bx, n):
    T.copy_cluster(S, R, dst_block=other())
    T.sync_threads()


def _relaxed(A, B, S, R, got, own, bx, n):
    T.copy_cluster(S, R, dst_block=other())
    T.cluster_arrive_relaxed()
    T.cluster_wait()


def _source_written(A, B, S, R, got, own, bx, n):
    T.copy_cluster(S, R, dst_block=other(), remote_barrier=got)
    T.mbarrier_wait_parity(got, 0)
    T.clear(S)


def _still_read(A, B, S, R, got, own, bx, n):
    for k in range(2):
        T.copy_cluster(S, R, dst_block=other(), remote_barrier=got)
        T.mbarrier_wait_parity(got, k)
        T.copy(R, B[bx, :, :])


def _still_written(A, B, S, R, got, own, bx, n):
    T.clear(R)
    T.copy_cluster(S, R, dst_block=other(), remote_barrier=got)
    T.mbarrier_wait_parity(got, 0)


def _still_stored(A, B, S, R, got, own, bx, n):
    T.clear(R)
    T.copy_cluster(S, R, dst_block=other())
    T.cluster_sync()


def _twice(A, B, S, R, got, own, bx, n):
    T.copy_cluster(S, R, dst_block=0, remote_barrier=got)
    if T.block_rank_in_cluster() == 0:
        T.mbarrier_wait_parity(got, 0)


def _one_phase_early(A, B, S, R, got, own, bx, n):
    T.copy_cluster(S, R, dst_block=other(), remote_barrier=got)
    T.mbarrier_wait_parity(got, 1)


def _by_an_arrival(A, B, S, R, got, own, bx, n):
    """Stores are made known by the barrier of the cluster only."""
    T.copy_cluster(S, R, dst_block=other())
    T.barrier_arrive(own)
    T.barrier_wait(own, 0)


def _over_itself(A, B, S, R, got, own, bx, n):
    T.clear(R)
    T.cluster_sync()
    T.copy_cluster(S, S, dst_block=other(), remote_barrier=got)
    T.mbarrier_wait_parity(got, 0)


def _in_a_pipeline(A, B, S, R, got, own, bx, n):
    for _ in T.Pipelined(2, num_stages=2):
        T.copy_cluster(S, R, dst_block=other(), remote_barrier=got)


def _by_some_threads(A, B, S, R, got, own, bx, n):
    if T.get_lane_idx() == 0:
        T.copy_cluster(S, R, dst_block=other(), remote_barrier=got)


def _who_knows(A, B, S, R, got, own, bx, n):
    T.copy_cluster(S, R, dst_block=n, remote_barrier=got)
    T.mbarrier_wait_parity(got, 0)


def _beyond(A, B, S, R, got, own, bx, n):
    T.copy_cluster(S, R, dst_block=T.block_rank_in_cluster() + 1, remote_barrier=got)
    T.mbarrier_wait_parity(got, 0)


@pytest.mark.parametrize(
    ("body", "error", "says"),
    [
        (_no_wait, UnbalancedBarrier, "got does not balance: R may be read while a copy to another block still"),
        (_no_cluster_wait, UnbalancedBarrier, "of the cluster does not balance: R may be read while a copy to"),
        (_relaxed, UnbalancedBarrier, "of the cluster does not balance: R may be read while a copy to"),
        (_source_written, UnbalancedBarrier, "S may be written while a copy to another block still reads it"),
        (_still_read, UnbalancedBarrier, "arrival with expected bytes for phase 1 may come before phase 0 has ended"),
        (_still_written, UnbalancedBarrier, "a copy to another block may write R while it is in use there"),
        (_still_stored, UnbalancedBarrier, "a copy to another block may write R while it is in use there"),
        (_twice, UnbalancedBarrier, "got"),
        (_one_phase_early, UnbalancedBarrier, "a wait for parity 1 does not pass"),
        (_by_an_arrival, UnbalancedBarrier, "R may be read while a copy to another block still writes it"),
        (_over_itself, UnbalancedBarrier, "S may be|may write S while"),
        (_in_a_pipeline, BadBarrier, "used here, but a pipelined loop inserts its own barriers"),
        (_by_some_threads, BadBarrier, "used here, but not all threads execute it together"),
        (_who_knows, BadBarrier, "the rank is not an expression of constants and loop variables"),
        (_beyond, BadBarrier, "rank 2 is outside of the cluster's 2 blocks"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)  # fmt: skip
def test_missing_synchronization_between_blocks_is_refused(body, error, says):
    with pytest.raises(error, match=says):
        tile.compile(sent(body), TARGET)


OPERANDS = {
    "a fragment": (lambda S, R, F, G, got, own: T.copy_cluster(F, R, dst_block=1, remote_barrier=got), ScopeNotAllowed),
    "a tensor": (lambda S, R, F, G, got, own: T.copy_cluster(S, G[0, :, :], dst_block=1), ScopeNotAllowed),
    "another type": (lambda S, R, F, G, got, own: T.copy_cluster(S, F, dst_block=1), TileError),
    "another shape": (lambda S, R, F, G, got, own: T.copy_cluster(S[0:2, :], R, dst_block=1), TileError),
    "a rank beyond": (lambda S, R, F, G, got, own: T.copy_cluster(S, R, dst_block=2), BadCluster),
    "a negative rank": (lambda S, R, F, G, got, own: T.copy_cluster(S, R, dst_block=-1), BadCluster),
    "a rank that is no integer": (lambda S, R, F, G, got, own: T.copy_cluster(S, R, dst_block=0.5), TileError),
    "no block": (lambda S, R, F, G, got, own: T.copy_cluster(S, R), BadAttribute),
    "a block and a mask": (lambda S, R, F, G, got, own: T.copy_cluster(S, R, dst_block=0, cluster_mask=3),
                           BadAttribute),
    "a barrier of the block": (
        lambda S, R, F, G, got, own: T.copy_cluster(S, R, dst_block=1, remote_barrier=own), BadCluster),
    "no barrier": (lambda S, R, F, G, got, own: T.copy_cluster(S, R, dst_block=1, remote_barrier=3), BadBarrier),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERANDS)
def test_operands_are_checked(name):
    body, error = OPERANDS[name]

    def main(A: T.Tensor((4, 4, 32), "float32")):
        with T.ClusterKernel(4, cluster_dims=2, threads=32) as bx:
            S, R = T.alloc_shared((4, 32), "float32"), T.alloc_shared((4, 32), "float32")
            F = T.alloc_fragment((4, 32), "float32")
            got, own = T.alloc_cluster_barrier(1), T.alloc_barrier(32)
            T.copy(A[bx, :, :], S)
            body(S, R, F, A, got, own)

    with pytest.raises(error):
        T.prim_func(main)


def test_targets_without_clusters_refuse_it():
    for target in ("cpu", "metal", "cuda:sm_80"):
        with pytest.raises(ClusterUnsupported, match="has no clusters"):
            tile.compile(turned((4, 32), "float32"), target)


def test_a_mask_of_blocks_is_that_of_a_copy_for_several():
    @T.prim_func
    def main(A: T.Tensor((16, 64), "float16"), C: T.Tensor((4, 16, 64), "float16")):
        with T.ClusterKernel(4, cluster_dims=2, threads=64) as bx:
            S = T.alloc_shared((16, 64), "float16")
            T.copy_cluster(A, S, cluster_mask=3)
            T.copy(S, C[bx, :, :])

    kernel = tile.compile(main, TARGET, runtime="emulator")
    assert "multicast_cluster(&" in kernel.source
    a, c = np.random.default_rng().standard_normal((16, 64)).astype("float16"), np.zeros((4, 16, 64), "float16")
    kernel(a, c)
    assert (c == a).all()


def test_tiles_have_their_bytes_to_themselves():
    """Reserve the bytes of remotely written tiles: no other buffer shares their storage."""

    @T.prim_func
    def main(A: T.Tensor((4, 8, 32), "float32"), B: T.Tensor((4, 8, 32), "float32")):
        with T.ClusterKernel(4, cluster_dims=2, threads=64) as bx:
            X = T.alloc_shared((8, 32), "float32")
            S = T.alloc_shared((8, 32), "float32")
            R = T.alloc_shared((8, 32), "float32")
            Y = T.alloc_shared((8, 32), "float32")
            got = T.alloc_cluster_barrier(1)
            T.copy(A[bx, :, :], X)
            for i, j in T.Parallel(8, 32):
                S[i, j] = X[i, 31 - j]
            T.copy_cluster(S, R, dst_block=other(), remote_barrier=got)
            T.mbarrier_wait_parity(got, 0)
            for i, j in T.Parallel(8, 32):
                Y[i, j] = R[7 - i, j]
            for i, j in T.Parallel(8, 32):
                B[bx, i, j] = Y[i, 31 - j]

    a = np.random.default_rng().standard_normal((4, 8, 32)).astype("float32")
    for how in ORDERS:
        out = results(main, how, {"A": a, "B": np.zeros_like(a)}).reshape(a.shape)
        assert (out == a[[1, 0, 3, 2]][:, ::-1]).all()
    text = tile.compile(main, TARGET, runtime="emulator").source
    offsets = dict(re.findall(r"float\* const (\w) = \(float\*\)\(?smem(?: \+ (\d+))?", text))
    assert len({offsets["S"], offsets["R"], offsets["X"]}) == 3, offsets
    assert offsets["Y"] == offsets["X"]
