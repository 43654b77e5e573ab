"""The language's features on the reference, each against NumPy or plain Python."""

import ctypes

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.launch import DeviceAssertFailed
from tile_core.numerics.codecs import pack4, unpack4
from tile_core.reference import execute


def test_lanes_leave_loops_at_different_times():
    @T.prim_func
    def k(A: T.Tensor((64,), "int32"), steps: T.Tensor((64,), "int32"), odd: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                n = T.alloc_var("int32", init=A[i])
                count = T.alloc_var("int32", init=0)
                while n > 1:
                    if n % 2 == 0:
                        n = n // 2
                    else:
                        n = 3 * n + 1
                    count += 1
                    if count >= 50:
                        break
                steps[i] = count
                total = T.alloc_var("int32", init=0)
                for j in T.serial(A[i]):
                    if j % 2 == 0:
                        continue
                    if j > 20:
                        break
                    total += j
                odd[i] = total

    def collatz(n):
        count = 0
        while n > 1 and count < 50:
            n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
        return count

    a, steps, odd = np.arange(64, dtype="int32"), np.zeros(64, "int32"), np.zeros(64, "int32")
    execute(k, [a, steps, odd])
    assert steps.tolist() == [collatz(n) for n in range(64)]
    assert odd.tolist() == [sum(j for j in range(min(n, 21)) if j % 2) for n in range(64)]


def test_threads_have_variables_and_arrays_of_their_own():
    @T.prim_func
    def k(A: T.Tensor((3, 40), "int32"), B: T.Tensor((3, 40), "int32")):
        with T.Kernel(3, threads=40) as bx:
            t = T.get_thread_binding(0)
            mine = T.alloc_local((4,), "int32")
            v = T.alloc_var("int32", init=t)
            T.fill(mine, t)
            for j in T.serial(t % 4):
                mine[j] = A[bx, t] * j
                v += 1
            if t % 3 == 0:
                v = -v
            B[bx, t] = mine[0] + mine[1] + mine[2] + mine[3] + v

    a = np.arange(120, dtype="int32").reshape(3, 40)
    b = np.zeros_like(a)
    execute(k, [a, b])
    for (block, t), found in np.ndenumerate(b):
        mine = [a[block, t] * j if j < t % 4 else t for j in range(4)]
        v = t + t % 4
        assert found == sum(mine) + (-v if t % 3 == 0 else v)


def test_private_arrays_around_a_parallel_loop_belong_to_its_iterations():
    @T.prim_func
    def k(A: T.Tensor((16,), "int32"), B: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=16):
            pair = T.alloc_local((2,), "int32")
            scale = T.alloc_var("int32", init=3)
            for i in T.Parallel(16):
                pair[0] = A[i]
                pair[1] = A[15 - i]
                B[i] = pair[0] - scale * pair[1]

    a, b = np.arange(16, dtype="int32"), np.zeros(16, "int32")
    execute(k, [a, b])
    assert (b == a - 3 * a[::-1]).all()


@pytest.mark.parametrize("width", [16, 32, 64])
def test_warps(width):
    @T.prim_func
    def k(A: T.Tensor((72,), "float32"), out: T.Tensor((5, 72), "float32"), bits: T.Tensor((72,), "uint64")):
        with T.Kernel(1, threads=72):
            t = T.get_thread_binding(0)
            x = A[t]
            out[0, t] = T.shfl_xor(x, 1)
            out[1, t] = T.shfl_down(x, 3)
            out[2, t] = T.warp_reduce_sum(x)
            out[3, t] = T.warp_reduce_max(x)
            out[4, t] = T.get_lane_idx() + 100 * T.get_warp_idx()
            bits[t] = T.ballot(x > 30)

    a = np.random.default_rng(0).permutation(72).astype("float32")
    out, bits = np.zeros((5, 72), "float32"), np.zeros(72, "uint64")
    execute(k, [a, out, bits], width=width)
    for t in range(72):
        warp = a[t // width * width : (t // width + 1) * width]
        lane = t % width
        partner, down = lane ^ 1, lane + 3
        assert out[0, t] == (warp[partner] if partner < len(warp) else a[t])
        assert out[1, t] == (warp[down] if down < len(warp) else a[t])
        assert (out[2, t], out[3, t]) == (warp.sum(), warp.max())
        assert out[4, t] == lane + 100 * (t // width)
        assert bits[t] == sum(1 << n for n, x in enumerate(warp) if x > 30)


@pytest.mark.parametrize("dtype", ["int32", "float32", "float16", "bfloat16"])
def test_atomics_return_what_was_there(dtype):
    @T.prim_func
    def k(C: T.Tensor((3,), dtype), before: T.Tensor((30,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(30):
                before[i] = T.atomic_add(C[i % 3], T.cast(1, dtype), return_prev=True)

    kind = getattr(ml_dtypes, dtype, dtype)
    c, before = np.array([5, 6, 7], kind), np.zeros(30, kind)
    execute(k, [c, before])
    assert c.astype("float64").tolist() == [15, 16, 17]
    for first in range(3):
        assert sorted(before[first::3].astype("int64")) == list(range(5 + first, 15 + first))


def test_atomics_of_threads_and_of_a_block():
    @T.prim_func
    def threads(C: T.Tensor((1,), "int32")):
        with T.Kernel(5, threads=32):
            if T.get_thread_binding(0) < 10:
                T.atomic_add(C[0], 1)

    @T.prim_func
    def block(C: T.Tensor((1,), "int32"), D: T.Tensor((4, 4), "float32")):
        with T.Kernel(5, threads=32):
            T.atomic_add(C[0], 1)
            T.atomic_add(D[1:3, 0:4], 2.0)

    c, d = np.zeros(1, "int32"), np.zeros((4, 4), "float32")
    execute(threads, [c])
    assert c[0] == 50
    execute(block, [c, d])
    assert c[0] == 55
    assert d.tolist() == [[0] * 4, [10] * 4, [10] * 4, [0] * 4]


@pytest.mark.parametrize("op", ["sum", "max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
def test_reducers(op, dtype):
    @T.prim_func
    def k(A: T.Tensor((7, 33), dtype), B: T.Tensor((7,), dtype)):
        with T.Kernel(1, threads=64):
            r = T.alloc_reducer((7,), dtype, op=op)
            for i, j in T.Parallel(7, 33):
                if j % 5 != 0:
                    if op == "sum":
                        r[i] += A[i, j]
                    elif op == "max":
                        r[i] = T.max(A[i, j], r[i])
                    else:
                        r[i] = T.min(r[i], A[i, j])
            T.finalize_reducer(r)
            T.copy(r, B)

    a = np.random.default_rng(1).integers(-9, 9, (7, 33)).astype(dtype)
    b = np.zeros(7, dtype)
    execute(k, [a, b])
    assert b.tolist() == getattr(np, op)(a[:, np.arange(33) % 5 != 0], axis=1).tolist()


def test_a_reducer_that_is_read_between_is_updated_in_order():
    @T.prim_func
    def k(A: T.Tensor((9,), "int32"), B: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=32):
            r = T.alloc_reducer((1,), "int32", op="max")
            for i in T.Parallel(9):
                old = r[0]
                if A[i] > old:
                    r[0] = A[i]
            T.finalize_reducer(r)
            B[0] = r[0]

    a, b = np.array([3, 9, 1, 8, 2, 9, 0, 4, 5], "int32"), np.zeros(1, "int32")
    execute(k, [a, b])
    assert b[0] == 9


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_4_bit_elements_and_the_padding_of_odd_rows(dtype):
    @T.prim_func
    def k(A: T.Tensor((3, 5), dtype), B: T.Tensor((3, 5), dtype)):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(3, 5):
                if j != 1:
                    B[i, 4 - j] = A[i, j] + A[i, j]

    codes = np.arange(15, dtype="uint8").reshape(3, 5)
    a, b = pack4(codes), np.full((3, 3), 0x5A, "uint8")
    execute(k, [a, b])
    found = unpack4(b, 6)
    for i, j in np.ndindex(3, 5):
        assert found[i, 4 - j] == (codes[i, j] * 2 & 15 if j != 1 else (0xA, 0x5)[(4 - j) % 2])
    assert (found[:, 5] == 5).all()


def test_views_share_bytes():
    @T.prim_func
    def k(A: T.Tensor((4, 6), "float32"), B: T.Tensor((4, 12), "uint16")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((4, 6), "float32")
            halves = T.view(s, dtype="uint16")
            T.copy(A, s)
            for i, j in T.Parallel(4, 12):
                halves[i, j] = halves[i, j] ^ 1
            T.copy(T.reshape(s, (24,)), T.reshape(A, (24,)))
            T.copy(T.view(A, dtype="uint16"), B)

    a = np.random.default_rng(2).standard_normal((4, 6), dtype="float32")
    want, b = a.view("uint16") ^ 1, np.zeros((4, 12), "uint16")
    execute(k, [a, b])
    np.testing.assert_array_equal(b, want)
    np.testing.assert_array_equal(a.view("uint16"), want)


def test_pointers_and_scalars():
    @T.prim_func
    def k(p: T.ptr("float32"), n: T.int32, x: T.bfloat16, flag: T.bool, out: T.Tensor((2,), "float32")):
        with T.Kernel(1, threads=32):
            A = T.make_tensor(p, (n, 2), "float32")
            for i in T.Parallel(2):
                out[i] = A[n - 1, i] * T.cast(x, "float32") if flag else 0.0

    data, out = np.arange(8, dtype="float32"), np.zeros(2, "float32")
    for pointer in (data, data.ctypes.data, ctypes.c_void_p(data.ctypes.data)):
        execute(k, [pointer, 4, 1.5, True, out])
        assert out.tolist() == [9.0, 10.5]


def test_rank_0_safe_values_strides_and_empty_grids():
    n = T.dynamic("n")

    @T.prim_func
    def k(A: T.StridedTensor((4, 3), (1, 8), "int32"), S: T.Tensor((), "int32"), B: T.Tensor((n,), "int32")):
        with T.Kernel(n, threads=32) as bx:
            T.annotate_safe_value({A: -7})
            B[bx] = A[bx - 1, 1] + S[()]
            S[()] = S[()] + 1

    storage = np.arange(24, dtype="int32")
    a = np.lib.stride_tricks.as_strided(storage, (4, 3), (4, 32))
    s, b = np.array(100, "int32"), np.zeros(6, "int32")
    execute(k, [a, s, b], check=False)  # blocks race for S
    assert b.tolist() == [93, 109, 111, 113, 115, 98]
    assert s == 106
    execute(k, [a, s, np.zeros(0, "int32")])
    assert s == 106


def test_layouts_of_tensors_are_memory_offsets():
    layout = tile.layout.Layout((4, 8), lambda i, j: j * 4 + i)

    @T.prim_func
    def k(A: T.Tensor((4, 8), "int32"), B: T.Tensor((4, 8), "int32")):
        with T.Kernel(1, threads=32):
            T.annotate_layout({A: layout})
            s = T.alloc_shared((2, 8), "int32")
            T.copy(A[2:4, 0:8], s)
            for i, j in T.Parallel(4, 8):
                B[i, j] = s[i - 2, j] if i >= 2 else A[i, j]

    data = np.arange(32, dtype="int32").reshape(4, 8)
    placed, b = data.T.reshape(4, 8).copy(), np.zeros((4, 8), "int32")
    execute(k, [placed, b])
    np.testing.assert_array_equal(b, data)


def test_more_iterations_than_run_side_by_side(monkeypatch):
    @T.prim_func
    def k(A: T.Tensor((30, 41), "int32"), B: T.Tensor((30, 41), "int32"), C: T.Tensor((30,), "int32")):
        with T.Kernel(1, threads=32):
            r = T.alloc_reducer((30,), "int32")
            for i, j in T.Parallel(30, 41):
                B[i, j] = A[i, j] + 100 * i + j
                r[i] += A[i, j]
            for i in T.Parallel(30):
                for j in T.Parallel(i):
                    B[i, j] = -1
            T.finalize_reducer(r)
            T.copy(r, C)

    monkeypatch.setattr("tile_core.reference.parallel._MOST", 100)
    a = np.random.default_rng(3).integers(0, 9, (30, 41), dtype="int32")
    b, c = np.zeros_like(a), np.zeros(30, "int32")
    execute(k, [a, b, c])
    i, j = np.indices((30, 41))
    np.testing.assert_array_equal(b, np.where(j < i, -1, a + 100 * i + j))
    np.testing.assert_array_equal(c, a.sum(1))


def test_persistent_blocks_cover_the_domain():
    @T.prim_func
    def k(B: T.Tensor((5, 7), "int32")):
        with T.Kernel(4, threads=32) as block:
            for i, j in T.Persistent((5, 7), 4, block):
                B[i, j] = 10 * i + j

    b = np.zeros((5, 7), "int32")
    execute(k, [b])
    np.testing.assert_array_equal(b, 10 * np.arange(5)[:, None] + np.arange(7))


def test_assertions_speak_of_their_line():
    @T.prim_func
    def k(A: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=4):
            for i in T.Parallel(4):
                if i < 3:
                    T.device_assert(A[i] > 0, "positive")
            T.print("done", A[0])

    execute(k, [np.array([1, 1, 1, 0], "int32")])
    with pytest.raises(DeviceAssertFailed, match=r"positive \(test_language.py:\d+ block 0, i 1\)") as info:
        execute(k, [np.array([1, 0, 1, 0], "int32")])
    assert info.value.where.source.startswith("T.device_assert")


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn"])
def test_copies_of_narrow_floats_keep_every_bit(dtype):
    packed = dtype == "float4_e2m1fn"

    @T.prim_func
    def k(A: T.Tensor((16, 16), dtype), B: T.Tensor((16, 16), dtype)):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((16, 16), dtype)
            T.copy(A, s)
            for i, j in T.Parallel(16, 16):
                if i < 8:
                    B[i, j] = s[i, j]
                else:
                    B[i, j] = A[i, j]

    codes = np.arange(256, dtype="uint8").reshape(16, 16)
    a = pack4(codes & 15) if packed else codes
    b = np.zeros_like(a)
    execute(k, [a, b])
    np.testing.assert_array_equal(a, b)
