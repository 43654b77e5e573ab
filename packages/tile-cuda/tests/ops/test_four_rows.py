"""Copies of four rows: round trips, both sides of each rule, ``T.gather`` and ``T.scatter``."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError

from ..emit.nvrtc import assemble

TARGET = "cuda:sm_100a"
GATHERS = "tile_gather4"
SCATTERS = "tile_scatter4"
ALWAYS = {"tma": "always"}


def at(code: str) -> str:
    return code[code.index('extern "C"') :]


def rolls(width=64, dtype="float16", column=0, rows=None, height=37, columns=64):
    """Four rows there and back, rows known when it runs if none are given."""

    @T.prim_func
    def main(A: T.Tensor((height, columns), dtype), R: T.Tensor((4,), "int32"), C: T.Tensor((height, columns), dtype)):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((4, width), dtype)
            full = T.alloc_barrier(64)
            picked = [R[0], R[1], R[2], R[3]] if rows is None else rows
            T.tma_gather4(A, S, column, picked, barrier=full)
            T.mbarrier_arrive(full)
            T.mbarrier_wait_parity(full, 0)
            T.tma_scatter4(S, C, column, picked)

    return main


def values(shape, dtype, seed=0):
    return np.random.default_rng(seed).integers(0, 99, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "uint8", "float32", "int64"])
@pytest.mark.parametrize("width", [16, 32, 64, 128])
@pytest.mark.parametrize("column", [0, 16])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.sweep(4)
def test_four_rows_go_there_and_back(dtype, width, column, known):
    rows = [36, 0, 17, 5]
    columns = 256 // np.dtype(dtype).itemsize + 64
    program = rolls(width, dtype, column, rows if known else None, columns=columns)
    a, c = values((37, columns), dtype), values((37, columns), dtype, 1)
    expected = c.copy()
    expected[rows, column : column + width] = a[rows, column : column + width]
    if np.dtype(dtype).itemsize * width < 32 or width > 256:
        return
    kernel = tile.compile(program, TARGET, runtime="emulator")
    kernel(a, np.array(rows, "int32"), c)
    np.testing.assert_array_equal(c, expected)
    kernel.verify(a, np.array(rows, "int32"), values((37, columns), dtype, 1), allow="unwritten")
    assert GATHERS in at(kernel.source)
    assert SCATTERS in at(kernel.source)


def test_the_swizzle_follows_from_the_tile():
    for width, swizzle in ((64, 128), (32, 64), (16, 32), (24, 0), (128, 128)):
        kernel = tile.compile(rolls(width, columns=192), TARGET, runtime="emulator")
        text = kernel.explain()
        assert (f"rows of {swizzle} bytes" if swizzle else "plain rows") in text or width == 24, text


@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a", "sm_110a"])
def test_the_text_becomes_machine_code(arch):
    kernel = tile.compile(rolls(), f"cuda:{arch}", runtime="emulator")
    assert assemble(kernel.source, arch) == ""


@pytest.mark.parametrize("arch", ["sm_100", "sm_120", "sm_120a"])
def test_newer_architectures_gather_into_own_shared_memory(arch):
    kernel = tile.compile(gathers(8, 64, "float16"), f"cuda:{arch}", runtime="emulator", options=ALWAYS)
    assert "shared_cta_global_tile_gather4" in at(kernel.source)
    assert assemble(kernel.source, arch) == ""
    with pytest.raises(TileError) as caught:
        tile.compile(rolls(), f"cuda:{arch}", runtime="emulator")
    assert caught.value.code == "U103"
    assert "cuda.scatter.tma4" in str(caught.value)


@pytest.mark.parametrize("target", ["cuda:sm_90a", "cuda:sm_80", "cpu"])
def test_other_targets_refuse_it(target):
    with pytest.raises(TileError) as caught:
        tile.compile(one(lambda A, S, *_: T.tma_gather4(A, S, 0, ROWS)), target)
    assert caught.value.code == "U103"


# Rows and columns outside


@pytest.mark.parametrize("rows", [[36, 37, -1, 0], [-(2**31), 2**31 - 1, 5, 5], [1000, -1000, 38, -37]])
def test_rows_outside_are_zero(rows):
    @T.prim_func
    def main(A: T.Tensor((37, 64), "float16"), R: T.Tensor((4,), "int32"), C: T.Tensor((4, 64), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((4, 64), "float16")
            T.tma_gather4(A, S, 0, R)
            T.copy(S, C)

    a, c, r = values((37, 64), "float16"), np.full((4, 64), np.nan, "float16"), np.array(rows, "int32")
    kernel = tile.compile(main, TARGET, runtime="emulator")
    kernel(a, r, c)
    inside = (r >= 0) & (r < 37)
    np.testing.assert_array_equal(c, np.where(inside[:, None], a[np.where(inside, r, 0)], 0))
    kernel.verify(a, r, c)


@pytest.mark.parametrize("rows", [[36, 37, -1, 0], [-(2**31), 2**31 - 1, 5, 6], [1000, -1000, 38, -37]])
def test_rows_outside_are_dropped(rows):
    @T.prim_func
    def main(A: T.Tensor((4, 64), "float16"), R: T.Tensor((4,), "int32"), C: T.Tensor((37, 64), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((4, 64), "float16")
            T.copy(A, S)
            T.tma_scatter4(S, C, 0, R)

    a, c, r = values((4, 64), "float16"), values((37, 64), "float16", 1), np.array(rows, "int32")
    expected = c.copy()
    for row, given in zip(rows, a, strict=True):
        if 0 <= row < 37:
            expected[row] = given
    kernel = tile.compile(main, TARGET, runtime="emulator")
    kernel(a, r, c)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("column", [-16, -8, 0, 40, 56, 64, 80])
def test_columns_outside_are_zero(column):
    @T.prim_func
    def main(A: T.Tensor((37, 64), "float16"), C: T.Tensor((4, 32), "float16"), n: T.int32):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((4, 32), "float16")
            T.tma_gather4(A, S, n * 8, [3, 1, 1, 0])
            T.copy(S, C)

    a, c = values((37, 64), "float16"), np.full((4, 32), np.nan, "float16")
    tile.compile(main, TARGET, runtime="emulator")(a, c, column // 8)
    wide = np.zeros((37, 64 + 256), "float16")
    wide[:, 64:128] = a
    np.testing.assert_array_equal(c, wide[[3, 1, 1, 0], 64 + column : 96 + column])


def test_a_slot_of_a_ring_and_rows_of_any_origin():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), R: T.Tensor((12,), "int16"), C: T.Tensor((12, 64), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((3, 4, 64), "float16")
            Q = T.alloc_shared((12,), "int16")
            T.copy(R, Q)
            for k in range(3):
                T.tma_gather4(A, S[k, :, :], 0, Q[k * 4 : k * 4 + 4])
                for i, j in T.Parallel(4, 64):
                    C[k * 4 + i, j] = S[k, i, j]

    a, r = values((64, 64), "float16"), np.random.default_rng(2).integers(0, 64, 12).astype("int16")
    c = np.full((12, 64), np.nan, "float16")
    kernel = tile.compile(main, TARGET, runtime="emulator")
    kernel(a, r, c)
    np.testing.assert_array_equal(c, a[r])


# What is refused, beside the nearest thing that is accepted


def one(body, a=(64, 64), dtype="float16", tile_shape=(4, 64), tile_dtype=None, store=False):
    @T.prim_func
    def main(
        A: T.Tensor(a, dtype), R: T.Tensor((4,), "int32"), L: T.Tensor((4,), "int64"), Q: T.Tensor((5,), "int32"),
        F: T.Tensor((4,), "float32"), n: T.int32,
    ):  # fmt: skip
        with T.Kernel(1, threads=64):
            S = T.alloc_shared(tile_shape, tile_dtype or dtype)
            G = T.alloc_fragment(tile_shape, tile_dtype or dtype)
            P = T.alloc_fragment((4,), "int32")
            T.clear(P)
            if store:
                T.clear(S)
            body(A, S, G, R, L, Q, F, P, n)

    return main


def outcome(program, target=TARGET):
    try:
        tile.compile(program(), target, runtime="emulator")
    except TileError as error:
        return error.code, str(error)
    return "", ""


ROWS = [3, 1, 2, 0]
CASES = {
    "rank of the matrix": ({"a": (64, 2, 64)}, {}, "K212", "3 dimensions"),
    "element types": ({"tile_dtype": "float32"}, {}, "K211", "float16, that of src"),
    "leading extent": ({"tile_shape": (8, 64)}, {}, "K212", "a tile of 4 rows"),
    "rank of the tile": ({"tile_shape": (4, 2, 32)}, {}, "K212", "a tile of 4 rows"),
    "bytes of a row of the tile": ({"tile_shape": (4, 12)}, {"tile_shape": (4, 16)}, "U104", "not a multiple of 16"),
    "places in shared memory": ({"tile_shape": (4, 24)}, {"tile_shape": (4, 32)}, "", ""),
    "bytes between rows": ({"a": (64, 68)}, {"a": (64, 72)}, "U104", "rows of A are 136 bytes apart"),
    "elements of a box": ({"tile_shape": (4, 264), "a": (64, 512)}, {"tile_shape": (4, 320), "a": (64, 512)}, "U104",
                          "longer than the 256 of a box"),
    "element type of the map": ({"dtype": "float4_e2m1fn"}, {"dtype": "uint8", "tile_shape": (4, 64)}, "U104",
                                "no tensor map has elements"),
}  # fmt: skip


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("store", [False, True])
def test_each_rule_of_shapes_and_types_from_both_sides(case, store):
    wrong, right, code, text = CASES[case]

    @T.macro
    def move(A, S, G, R, L, Q, F, P, n):
        if store:
            T.tma_scatter4(S, A, 0, ROWS)
        else:
            T.tma_gather4(A, S, 0, ROWS)

    if not code:
        assert (
            outcome(lambda: one(move, **wrong, store=store))[0]
            == outcome(lambda: one(move, **right, store=store))[0]
            == ""
        )
        return
    found = outcome(lambda: one(move, **wrong, store=store))
    assert found[0] == code, found
    assert (text.replace("src", "dst") if store else text) in found[1], found[1]
    assert outcome(lambda: one(move, **right, store=store)) == ("", "")


def _operands():
    gather = {
        "scope of the tile": (lambda A, S, G, R, L, Q, F, P, n: T.tma_gather4(A, G, 0, ROWS), "K204"),
        "scope of the matrix": (lambda A, S, G, R, L, Q, F, P, n: T.tma_gather4(S, S, 0, ROWS), "K204"),
        "a part of the matrix": (lambda A, S, G, R, L, Q, F, P, n: T.tma_gather4(A[0:8, :], S, 0, ROWS), "K201"),
        "three rows": (lambda A, S, G, R, L, Q, F, P, n: T.tma_gather4(A, S, 0, [1, 2, 3]), "K221"),
        "five rows": (lambda A, S, G, R, L, Q, F, P, n: T.tma_gather4(A, S, 0, [1, 2, 3, 4, 5]), "K221"),
        "a buffer of five": (lambda A, S, G, R, L, Q, F, P, n: T.tma_gather4(A, S, 0, Q), "K221"),
        "one number": (lambda A, S, G, R, L, Q, F, P, n: T.tma_gather4(A, S, 0, n), "K221"),
        "floats": (lambda A, S, G, R, L, Q, F, P, n: T.tma_gather4(A, S, 0, F), "K211"),
        "numbers of 64 bits": (lambda A, S, G, R, L, Q, F, P, n: T.tma_gather4(A, S, 0, L), "K211"),
        "values of 64 bits": (lambda A, S, G, R, L, Q, F, P, n: T.tma_gather4(A, S, 0, [L[0], 1, 2, 3]), "K211"),
        "a constant of 33 bits": (lambda A, S, G, R, L, Q, F, P, n: T.tma_gather4(A, S, 0, [2**31, 1, 2, 3]), "K221"),
        "numbers in a fragment": (lambda A, S, G, R, L, Q, F, P, n: T.tma_gather4(A, S, 0, P), "K204"),
        "a column between chunks": (lambda A, S, G, R, L, Q, F, P, n: T.tma_gather4(A, S, 4, ROWS), "U104"),
        "any column": (lambda A, S, G, R, L, Q, F, P, n: T.tma_gather4(A, S, n, ROWS), "U104"),
        "no barrier": (lambda A, S, G, R, L, Q, F, P, n: T.tma_gather4(A, S, 0, ROWS, barrier=3), "K232"),
        "a policy": (lambda A, S, G, R, L, Q, F, P, n: T.tma_gather4(A, S, 0, ROWS, eviction_policy="soon"), "K212"),
        "part of the tile": (lambda A, S, G, R, L, Q, F, P, n: T.tma_gather4(A, S[:, 0:32], 0, ROWS), "U104"),
        "scattered: equal rows": (lambda A, S, G, R, L, Q, F, P, n: T.tma_scatter4(S, A, 0, [1, 2, 1, 3]), "K220"),
        "scattered: before the first column": (
            lambda A, S, G, R, L, Q, F, P, n: T.tma_scatter4(S, A, n * 8, ROWS), "U104"),
        "scattered: scope": (lambda A, S, G, R, L, Q, F, P, n: T.tma_scatter4(G, A, 0, ROWS), "K204"),
    }  # fmt: skip
    right = {
        "a buffer of four": lambda A, S, G, R, L, Q, F, P, n: T.tma_gather4(A, S, 0, R),
        "a slice of four": lambda A, S, G, R, L, Q, F, P, n: T.tma_gather4(A, S, 0, Q[1:5]),
        "any multiple of a chunk": lambda A, S, G, R, L, Q, F, P, n: T.tma_gather4(A, S, n * 8, ROWS),
        "values and constants": lambda A, S, G, R, L, Q, F, P, n: T.tma_gather4(A, S, 0, [n, 3, n + 1, R[0]]),
        "a column further on": lambda A, S, G, R, L, Q, F, P, n: T.tma_gather4(A, S, 8, ROWS),
        "equal rows": lambda A, S, G, R, L, Q, F, P, n: T.tma_gather4(A, S, 0, [1, 1, 1, 1]),
        "a policy": lambda A, S, G, R, L, Q, F, P, n: T.tma_gather4(A, S, 0, ROWS, eviction_policy="evict_first"),
        "scattered: a column": lambda A, S, G, R, L, Q, F, P, n: T.tma_scatter4(S, A, 8, ROWS),
        "scattered: values": lambda A, S, G, R, L, Q, F, P, n: T.tma_scatter4(S, A, 0, [n, n + 1, 5, 6]),
    }
    return gather, {name: (body, "") for name, body in right.items()}


WRONG, RIGHT = _operands()


@pytest.mark.parametrize("case", WRONG)
def test_other_operands_are_refused(case):
    body, code = WRONG[case]
    found = outcome(lambda: one(body, store=case.startswith("scattered")))
    assert found[0] == code, found


@pytest.mark.parametrize("case", RIGHT)
def test_the_operands_beside_them_are_accepted(case):
    assert outcome(lambda: one(RIGHT[case][0], store=case.startswith("scattered"))) == ("", "")


@pytest.mark.parametrize("knob", ["swizzle", "dtype"])
def test_swizzle_and_type_are_no_knobs(knob):
    def body(A, S, G, R, L, Q, F, P, n):
        T.tma_gather4(A, S, 0, ROWS, **{knob: 128})

    assert outcome(lambda: one(body))[0] != ""


def test_strides_of_a_tensor_are_checked():
    def of(strides, rows=8):
        @T.prim_func
        def main(A: T.StridedTensor((rows, 64), strides, "float16"), C: T.Tensor((4, 64), "float16")):
            with T.Kernel(1, threads=64):
                S = T.alloc_shared((4, 64), "float16")
                T.tma_gather4(A, S, 0, ROWS)
                T.copy(S, C)

        return main

    assert outcome(lambda: of((72, 1))) == ("", "")
    assert "rows of A are not contiguous" in outcome(lambda: of((128, 2)))[1]
    assert "rows of A are 136 bytes apart" in outcome(lambda: of((68, 1)))[1]
    assert "boxes need fewer than 1099511627776" in outcome(lambda: of((2**39, 1), 1))[1]
    assert outcome(lambda: of((2**39 - 8, 1), 1))[0] == ""


def test_a_layout_that_was_annotated_is_obeyed_or_refused():
    def of(layout):
        @T.prim_func
        def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((4, 64), "float16")):
            with T.Kernel(1, threads=64):
                S = T.alloc_shared((4, 64), "float16")
                T.annotate_layout({S: layout})
                T.tma_gather4(A, S, 0, ROWS)
                T.copy(S, C)

        return main

    plain = of(T.Layout((4, 64), lambda i, j: i * 64 + j))
    a, c = values((64, 64), "float16"), np.full((4, 64), np.nan, "float16")
    kernel = tile.compile(plain, TARGET, runtime="emulator")
    kernel(a, c)
    np.testing.assert_array_equal(c, a[ROWS])
    assert "plain rows" in kernel.explain()
    code, text = outcome(lambda: of(T.Layout((4, 64), lambda i, j: j * 4 + i)))
    assert code == "U104"
    assert "no copy of rows has the layout" in text


def test_bytes():
    assert T.tma_gather4_bytes(64, "float16") == 512
    assert T.tma_gather4_bytes(1, T.float8_e4m3fn) == 4
    for columns, element in ((0, "float16"), (-1, "int8"), (2.5, "int8"), (64, "int4")):
        with pytest.raises(TileError) as caught:
            T.tma_gather4_bytes(columns, element)
        assert caught.value.code == "K212"


@pytest.mark.parametrize("size", [512, 256, 1024])
def test_expected_transaction_bytes_must_match(size):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((4, 64), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((4, 64), "float16")
            full = T.alloc_barrier(64)
            T.mbarrier_expect_tx(full, size)
            T.tma_gather4(A, S, 0, ROWS, barrier=full)
            T.mbarrier_arrive(full)
            T.mbarrier_wait_parity(full, 0)
            T.copy(S, C)

    code, text = outcome(lambda: main)
    assert code == ("" if size == T.tma_gather4_bytes(64, "float16") else "K233"), text


# T.gather and T.scatter


def gathers(count, width, dtype, columns=None, rows="int32"):
    @T.prim_func
    def main(
        A: T.Tensor((37, columns or width), dtype), R: T.Tensor((count,), rows), C: T.Tensor((count, width), dtype)
    ):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((count, width), dtype)
            T.gather(A[0, 0], R, S)
            T.copy(S, C)

    return main


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7, 8, 13, 32, 61])
@pytest.mark.parametrize(
    ("width", "dtype"), [(64, "float16"), (128, "float16"), (32, "uint8"), (24, "float32"), (256, "int8")]
)
@pytest.mark.sweep(5)
def test_gathers_of_any_count_are_right(count, width, dtype):
    kernel = tile.compile(gathers(count, width, dtype), TARGET, runtime="emulator", options=ALWAYS)
    rng = np.random.default_rng(count)
    a, r = values((37, width), dtype), rng.integers(-3, 41, count).astype("int32")
    c = values((count, width), dtype, 7)
    kernel(a, r, c)
    inside = (r >= 0) & (r < 37)
    np.testing.assert_array_equal(c, np.where(inside[:, None], a[np.where(inside, r, 0)], 0))
    text = at(kernel.source)
    rows_left = count % 4
    if GATHERS in text:
        per_row = text.count("_2d_shared_cluster_global_tile_mbarrier")
        groups = text.count(GATHERS)
        assert per_row * (count // 4) == groups * rows_left or count < 4
    else:
        assert width * np.dtype(dtype).itemsize % 128 or count < 4 or count == 61, kernel.explain()


def test_gathers_use_them_where_the_tail_fits():
    for count, width, uses in ((4, 16, True), (5, 16, True), (6, 16, False), (6, 64, True), (7, 128, True)):
        kernel = tile.compile(gathers(count, width, "float16"), TARGET, runtime="emulator", options=ALWAYS)
        assert (GATHERS in at(kernel.source)) is uses, (count, width)


def test_gathers_without_them_report_the_reason():
    kernel = tile.compile(gathers(8, 64, "float16", rows="int64"), TARGET, runtime="emulator", options=ALWAYS)
    assert GATHERS not in at(kernel.source)
    assert "row numbers of int64 are not all numbers of 32 bits" in kernel.explain()
    kernel = tile.compile(gathers(8, 64, "float16"), TARGET, runtime="emulator")
    assert GATHERS not in at(kernel.source)


def scatters(rows, width=64, dtype="float16"):
    @T.prim_func
    def main(
        A: T.Tensor((len(rows), width), dtype), R: T.Tensor((len(rows),), "int32"), C: T.Tensor((37, width), dtype)
    ):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((len(rows), width), dtype)
            T.copy(A, S)
            if isinstance(rows, list):
                T.scatter(S, C, rows)
            else:
                T.scatter(S, C, R)

    return main


@pytest.mark.sweep(1)
@pytest.mark.parametrize("count", [1, 3, 4, 7, 8, 12, 13])
@pytest.mark.parametrize("known", [True, False])
def test_scatters_of_rows_that_differ(count, known):
    rows = np.random.default_rng(count).permutation(np.arange(-2, 40))[:count].tolist()
    kernel = tile.compile(scatters(rows if known else tuple(rows)), TARGET, runtime="emulator", options=ALWAYS)
    a, c = values((count, 64), "float16"), values((37, 64), "float16", 1)
    expected = c.copy()
    for row, given in zip(rows, a, strict=True):
        if 0 <= row < 37:
            expected[row] = given
    kernel(a, np.array(rows, "int32"), c)
    np.testing.assert_array_equal(c, expected)
    assert (SCATTERS in at(kernel.source)) is (known and count >= 4)
    if not known:
        assert "its rows may be equal, and then the last has to win" in kernel.explain()


def test_rows_of_a_part_of_a_tensor_are_its_own():
    @T.prim_func
    def main(A: T.Tensor((37, 64), "float16"), R: T.Tensor((8,), "int32"), C: T.Tensor((8, 64), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((8, 64), "float16")
            T.gather(A[5, 0], R, S)
            T.copy(S, C)

    kernel = tile.compile(main, TARGET, runtime="emulator", options=ALWAYS)
    a, r, c = values((37, 64), "float16"), np.arange(-4, 4, dtype="int32"), values((8, 64), "float16", 2)
    kernel(a, r, c)
    np.testing.assert_array_equal(c, np.where((r >= 0)[:, None], a[5 + r], 0))
    assert "it takes a part of the rows of A" in kernel.explain()


def test_a_product_of_gathered_rows():
    """A mixture of experts: rows by an index, and then a product."""

    @T.prim_func
    def main(
        A: T.Tensor((37, 128), "float16"), R: T.Tensor((64,), "int32"), B: T.Tensor((128, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((64, 64), "float16")
            W = T.alloc_shared((64, 64), "float16")
            F = T.alloc_fragment((64, 64), "float32")
            T.clear(F)
            for k in range(2):
                T.gather(A[0, k * 64], R, S)
                T.copy(B[k * 64, 0], W)
                T.gemm(S, W, F)
            T.copy(F, C)

    rng = np.random.default_rng(3)
    a, b = (rng.integers(-3, 4, s).astype("float16") for s in ((37, 128), (128, 64)))
    r, c = rng.integers(0, 37, 64).astype("int32"), np.full((64, 64), np.nan, "float32")
    kernel = tile.compile(main, TARGET, runtime="emulator", options=ALWAYS)
    kernel(a, r, b, c)
    np.testing.assert_array_equal(c, a[r].astype("float32") @ b.astype("float32"))
    assert at(kernel.source).count(GATHERS) == 16
    assert assemble(kernel.source, "sm_100a") == ""
