"""Late epilogues, overlapped with the next tile of a block: conditions, refusals, results."""

from __future__ import annotations

import contextlib
import re

import hypothesis
import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from zoo.launch import lowered

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError
from tile_core.plugins.contexts import make_context
from tile_core.reports import report_json
from tile_core.simt.pipelining import late_epilogue, persistent_writer
from tile_core.testing.run import load
from tile_core.testing.strategies.tall_products import leaving_products
from tile_emulator.errors import FaultFound

pytestmark = pytest.mark.sweep(2)

TARGET = "cuda:sm_90a"
NUMPY = {"bfloat16": ml_dtypes.bfloat16, "float8_e4m3fn": ml_dtypes.float8_e4m3fn}
SHARED = {"wgmma": "always", "persistent": 3, "numerics": "fast"}


def where_units_leave_it(i, j):
    """Return thread and register of an accumulator element of two warpgroups."""
    thread = i // 64 * 128 + i % 64 // 16 * 32 + i % 8 * 4 + j % 8 // 2
    return thread, j // 8 * 4 + i % 16 // 8 * 2 + j % 2


def product(sizes, block, types=("float16", "float16"), *, turned=True, threads=256, stages=2, how=""):
    """A product with a late epilogue; ``how`` names other properties."""
    (m, n, k), (bm, bn, bk), (dtype, out) = sizes, block, types

    @T.prim_func
    def main(
        A: T.Tensor((m, k), dtype), B: T.Tensor((n, k) if turned else (k, n), dtype), V: T.Tensor((n,), "float32"),
        C: T.Tensor((m, n), out), D: T.Tensor((m, n), out),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (bx, by):
            A_s = T.alloc_shared((bm, bk), dtype)
            B_s = T.alloc_shared((bn, bk) if turned else (bk, bn), dtype)
            C_f = T.alloc_fragment((bm, bn), "int32" if dtype == "int8" else "float32")
            row = by * bm
            if how == "waits for a launch":
                T.pdl_sync()
            if how == "a variable":
                row = T.alloc_var("int32")
                row = by * bm
            if how == "an array":
                at = T.alloc_local((1,), "int32")
                at[0] = by * bm
            if how == "annotated":
                T.annotate_layout({C_f: T.Fragment((bm, bn), where_units_leave_it)})
            T.clear(C_f)
            for t in T.Pipelined(T.ceildiv(k, bk), num_stages=stages):
                T.copy(A[row, t * bk], A_s)
                if turned:
                    T.copy(B[bx * bn, t * bk], B_s)
                else:
                    T.copy(B[t * bk, bx * bn], B_s)
                T.gemm(A_s, B_s, C_f, transpose_B=turned)
            if how == "scaled":
                for i, j in T.Parallel(bm, bn):
                    C_f[i, j] = C_f[i, j] * V[bx * bn + j]
            if how == "named behind the loop":
                column = bx * bn + 0 * row
                T.copy(C_f, C[row, column])
            elif how == "read and written":
                for i, j in T.Parallel(bm, bn):
                    C_f[i, j] += T.cast(C[row + i, bx * bn + j], "float32")
                T.copy(C_f, C[row, bx * bn])
            elif how == "something behind":
                T.copy(C_f, C[row, bx * bn])
                for i in T.Parallel(bn):
                    D[row, bx * bn + i] = 1
            elif how == "an array":
                T.copy(C_f, C[at[0], bx * bn])
            elif how == "two tensors":
                T.copy(C_f, C[row, bx * bn])
                T.copy(C_f, D[row, bx * bn])
            else:
                T.copy(C_f, C[row, bx * bn])

    return main


def compiled(*args, options=SHARED, **how):
    return tile.compile(product(*args, **how), TARGET, runtime="emulator", options=options)


def operands(sizes, types, turned):
    (m, n, k), rng = sizes, np.random.default_rng()

    def drawn(shape):
        return rng.integers(-2, 3, shape).astype(NUMPY.get(types[0], types[0]))

    results = [np.full((m, n), 85, NUMPY.get(types[1], types[1])) for _ in range(2)]
    return [drawn((m, k)), drawn((n, k) if turned else (k, n)), rng.integers(1, 3, n).astype("float32"), *results]


def check(sizes, block, types=("float16", "float16"), *, turned=True, options=SHARED, **how):
    """Compare a kernel with the CPU's, and return it."""
    kernel = compiled(sizes, block, types, turned=turned, options=options, **how)
    given = operands(sizes, types, turned)
    found, want = ([x.copy() for x in given] for _ in range(2))
    kernel(*found)
    tile.compile(product(sizes, block, types, turned=turned, **how), "cpu")(*want)
    for a, b in zip(found, want, strict=True):
        np.testing.assert_array_equal(a.astype("float64"), b.astype("float64"))
    return kernel


def has_late_epilogue(kernel):
    """Whether results are exchanged in the loop over K."""
    return _exchanges_in_loop(kernel.source)


def _exchanges_in_loop(text):
    """Whether lanes exchange results before the wait for the product before."""
    exchange, wait = "turn_kept_quad_b32", "wgmma_wait_group_sync_aligned_1"
    calls = re.findall(rf"^ +({exchange}|{wait})\(", text, re.MULTILINE)
    return exchange in calls and wait in calls and calls.index(exchange) < calls.index(wait)


CASES = {
    "whole tiles": ((512, 256, 128), (128, 128, 32), {}),
    "tails of both": ((391, 264, 200), (128, 96, 32), {}),
    "a tail of a piece": ((600, 232, 288), (128, 256, 32), {}),
    "the first piece only": ((900, 8, 128), (128, 64, 32), {}),
    "as many trips as subtiles": ((400, 256, 128), (128, 128, 32), {}),
    "two subtiles in a trip": ((391, 264, 64), (128, 128, 32), {}),
    "two subtiles in a trip, one in the last": ((391, 200, 64), (128, 96, 32), {}),
    "columns of B adjacent": ((391, 200, 160), (128, 128, 32), {"turned": False}),
    "scaled": ((391, 200, 160), (128, 128, 32), {"how": "scaled"}),
    "bfloat16": ((260, 264, 160), (128, 64, 32), {"types": ("bfloat16", "bfloat16")}),
    "8-bit floats": ((260, 136, 160), (128, 64, 64), {"types": ("float8_e4m3fn", "bfloat16")}),
    "two rows of tiles": ((600, 136, 160), (256, 64, 32), {}),
    "deep": ((391, 200, 224), (128, 64, 32), {"stages": 4}),
    "clusters": ((512, 256, 160), (128, 64, 32), {"options": {**SHARED, "persistent": 4, "clusters": 2}}),
    "one block for all tiles": ((391, 200, 160), (128, 64, 32), {"options": {**SHARED, "persistent": 1}}),
}


@pytest.mark.parametrize("name", CASES)
def test_late_epilogues(name):
    sizes, block, how = CASES[name]
    kernel = check(sizes, block, **how)
    assert has_late_epilogue(kernel), kernel.source
    assert "setmaxnreg_inc" in kernel.source


NOT = {
    "more than two subtiles for a trip": ((391, 520, 64), (128, 256, 32), {}),
    "one warpgroup": ((391, 264, 160), (64, 64, 32), {"threads": 128}),
    "warpgroups beside each other": ((200, 264, 160), (64, 128, 32), {}),
    "results of 32 bits": ((391, 264, 160), (128, 64, 32), {"types": ("float16", "float32")}),
    "read and written": ((391, 264, 160), (128, 64, 32), {"how": "read and written"}),
    "something behind": ((391, 264, 160), (128, 64, 32), {"how": "something behind"}),
    "few registers": ((391, 264, 160), (128, 64, 32), {"options": {**SHARED, "max_registers": 128}}),
    "blocks that do not stay": ((391, 264, 160), (128, 64, 32), {"options": {**SHARED, "persistent": "never"}}),
    "rows that are not aligned": ((391, 263, 160), (128, 64, 32), {}),
    "a block for each tile": ((256, 128, 160), (128, 64, 32), {"options": {**SHARED, "persistent": 4}}),
    "annotated": ((391, 264, 160), (128, 64, 32), {"how": "annotated"}),
    "a variable": ((391, 264, 160), (128, 64, 32), {"how": "a variable"}),
    "an array": ((391, 264, 160), (128, 64, 32), {"how": "an array"}),
    "an array, one block": ((391, 264, 160), (128, 64, 32),
                            {"how": "an array", "options": {**SHARED, "persistent": 1, "epilogue": "lanes"}}),
    "waits for a launch": ((391, 264, 160), (128, 64, 32), {"how": "waits for a launch"}),
    "promoted": ((260, 136, 160), (128, 64, 64),
                 {"types": ("float8_e4m3fn", "bfloat16"), "options": {**SHARED, "numerics": "standard"}}),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT)
def test_results_that_do_not(name):
    sizes, block, how = NOT[name]
    assert not has_late_epilogue(check(sizes, block, **how))


@pytest.mark.parametrize("persistent", [3, "always"])
def test_a_wait_for_the_launch_before_is_one_of_the_thread_that_copies(persistent):
    options = {**SHARED, "persistent": persistent}
    source = compiled((391, 264, 160), (128, 64, 32), how="waits for a launch", options=options).source
    calls = re.findall(r"^ +(griddepcontrol_wait|cp_async_bulk_tensor_2d_shared\w+)\(", source, re.MULTILINE)
    assert calls[0] == "griddepcontrol_wait"
    assert "k_free" not in source
    assert "t_free" not in source


@pytest.mark.parametrize("staged", ["lanes", "auto"])
@pytest.mark.parametrize("form", ["last", "last of several", "first"])
def test_results_of_three_dimensions(form, staged):
    m, n, k = 391, 264, 160
    shape = {"last": (m, n, 1), "last of several": (m, n, 2), "first": (2, m, n)}[form]

    @T.prim_func
    def main(A: T.Tensor((m, k), "float16"), B: T.Tensor((n, k), "float16"), C: T.Tensor(shape, "float16")):
        with T.Kernel(T.ceildiv(n, 64), T.ceildiv(m, 128), threads=256) as (bx, by):
            A_s = T.alloc_shared((128, 32), "float16")
            B_s = T.alloc_shared((64, 32), "float16")
            C_f = T.alloc_fragment((128, 64), "float32")
            T.clear(C_f)
            for t in T.Pipelined(k // 32, num_stages=2):
                T.copy(A[by * 128, t * 32], A_s)
                T.copy(B[bx * 64, t * 32], B_s)
                T.gemm(A_s, B_s, C_f, transpose_B=True)
            if form == "first":
                T.copy(C_f, C[1, by * 128, bx * 64])
            else:
                T.copy(C_f, C[by * 128 : by * 128 + 128, bx * 64 : bx * 64 + 64, 0])

    a, b = operands((m, n, k), ("float16", "float16"), True)[:2]
    found, want = (np.full(shape, 85, "float16") for _ in range(2))
    tile.compile(main, TARGET, runtime="emulator", options={**SHARED, "epilogue": staged})(a, b, found)
    tile.compile(main, "cpu")(a, b, want)
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("how", ["named behind the loop", "two tensors"])
def test_forms_are_right(how):
    check((391, 264, 160), (128, 64, 32), how=how)


def test_explained():
    program = product((391, 264, 160), (128, 64, 32))
    said = str(report_json(program, TARGET, options=SHARED))
    assert "the epilogue of a tile overlaps the main loop of the next one" in said


@pytest.mark.sweep(0.25)
def test_a_missing_epilogue_of_the_last_tile_is_found(monkeypatch):
    monkeypatch.setattr(persistent_writer.PersistentWriter, "last_epilogue", lambda self: [])
    monkeypatch.setenv("TILE_DISABLE_CACHE", "1")
    with pytest.raises(AssertionError):
        check((391, 264, 160), (128, 64, 32))


@pytest.mark.sweep(0.25)
def test_results_of_the_wrong_tile_are_found(monkeypatch):
    """Find names of the current tile in the late epilogue of the previous one."""
    old = late_epilogue.in_iterations
    monkeypatch.setattr(
        persistent_writer, "in_iterations", lambda subtiles, trips, k, mapping: old(subtiles, trips, k, {})
    )
    monkeypatch.setenv("TILE_DISABLE_CACHE", "1")
    with pytest.raises((AssertionError, FaultFound)):
        check((391, 264, 160), (128, 64, 32))


@pytest.mark.parametrize("persistent", [1, 3])
def test_variable_offsets_of_results_would_be_wrong(monkeypatch, persistent):
    monkeypatch.setattr(late_epilogue, "_corners", lambda s: [])
    monkeypatch.setenv("TILE_DISABLE_CACHE", "1")
    with pytest.raises((AssertionError, FaultFound)):
        check((391, 264, 160), (128, 64, 32), how="an array", options={**SHARED, "persistent": persistent})


def _drawn(count):
    """Return how many of the fuzzer's programs have late epilogues."""
    found: list[bool] = []

    @hypothesis.seed(1)
    @settings(max_examples=count, deadline=None, database=None, phases=(Phase.generate,),
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @hypothesis.given(leaving_products())
    def draw(unit) -> None:
        with contextlib.suppress(TileError):
            made = lowered(load(unit.text()), make_context(TARGET, {**SHARED, "persistent": 1}))
            found.append(_exchanges_in_loop(made.text))

    draw()
    return sum(found)


@pytest.mark.sweep(1)
def test_the_fuzzer_draws_late_epilogues_and_variable_offsets(monkeypatch):
    right = _drawn(40)
    assert right >= 3
    monkeypatch.setattr(late_epilogue, "_corners", lambda s: [])
    assert _drawn(40) > right
