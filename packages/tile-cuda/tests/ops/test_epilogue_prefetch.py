"""Epilogue operand prefetch: conditions, rejection reasons, and results at awkward sizes."""

from __future__ import annotations

import re
from typing import Any

import hypothesis
import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from zoo.launch import lowered

import tile_core as tile
import tile_core.language as T
from tile_core import sparse
from tile_core.errors import TileError
from tile_core.plugins.contexts import make_context
from tile_core.reports import report_json
from tile_core.testing.run import load
from tile_core.testing.strategies import STRATEGIES
from tile_cuda.epilogue.operand_prefetch import OperandChoices

pytestmark = pytest.mark.sweep(3)

TARGET = "cuda:sm_90a"
ALWAYS = {"wgmma": "always", "numerics": "fast"}
NUMPY = {name: getattr(ml_dtypes, name) for name in ("bfloat16", "float8_e4m3fn")}


def nest(how, n, block, before):
    """Return the epilogue of one accumulator element; ``how`` is decided while tracing."""
    bm, bn, _ = block

    @T.macro
    def scale(C_f, R, V, W, E, D, e, column, bx, by, i, j):
        if how == "":
            C_f[i, j] = C_f[i, j] * R[by * bm + i - before] + V[bx * bn + j - before]
        elif how == "columns":
            C_f[i, j] = C_f[i, j] * V[column + j]
        elif how == "rows":
            C_f[i, j] = C_f[i, j] * R[by * bm + i - before]
        elif how == "a row of a matrix":
            C_f[i, j] += W[by % 3, j + column] * W[2, column + j]
        elif how == "a value":
            C_f[i, j] += W[e, column + j] + W[E[bx % 2], column + j]
        elif how == "a name":
            at = column + j
            C_f[i, j] += V[at] * V[at]
        elif how == "a condition":
            C_f[i, j] += T.if_then_else(bx * bn + j < n - 9, V[column + j], 2)
        elif how == "a branch":
            if i % 3 == 0:
                C_f[i, j] += V[column + j]
        elif how == "to the tensor":
            D[by * bm + i, bx * bn + j] = C_f[i, j] * R[by * bm + i] + V[bx * bn + j]
        elif how == "another step":
            C_f[i, j] += V[column + 2 * j]
        elif how == "turned":
            C_f[i, j] += V[column - j]
        elif how == "both":
            C_f[i, j] += V[i + j]
        elif how == "inside":
            for s in T.serial(3):
                C_f[i, j] += W[s, column + j]
        elif how in ("written", "written by an op"):
            C_f[i, j] += V[column + j]
        elif how == "moved":
            if i % 2 == 0:
                C_f[i + 1, j] = C_f[i, j] + V[column + j]
        elif how == "three":
            C_f[i, j] = C_f[i, j] * V[column + j] + W[0, column + j] * W[1, column + j] * R[by * bm + i]
        elif how == "of the accumulator":
            C_f[i, j] += V[T.cast(C_f[i, j], "int32") + j]
        else:
            C_f[i, j] = C_f[i, j] * V[column + j]

    return scale


def rest(how, block):
    """Return the statements between that nest and the copy of the accumulators."""
    bm, bn, _ = block

    @T.macro
    def follow(C_f, R, V, D, column, bx, by):
        if how == "written":
            for i in T.Parallel(bn):
                V[bx * bn + i] = 1
        if how == "written by an op":
            T.copy(R[bx * bn : bx * bn + 8], V[bx * bn])
        if how == "twice":
            for i, j in T.Parallel(bm, bn):
                C_f[i, j] = C_f[i, j] + V[column + j] * R[by * bm + i]
        if how == "another part":
            for i, j in T.Parallel(bm, bn):
                C_f[i, j] = C_f[i, j] + V[column + j + 1]
        if how == "halves":
            H_f = T.alloc_fragment((bm, bn), "float16")
            T.copy(C_f, H_f)
            for i, j in T.Parallel(bm, bn):
                H_f[i, j] = H_f[i, j] + V[column + j + 1]
            T.copy(H_f, D[by * bm, bx * bn])
        if how == "a copy between":
            T.copy(C_f, D[by * bm, bx * bn])
            for i, j in T.Parallel(bm, bn):
                C_f[i, j] = C_f[i, j] + V[column + j]

    return follow


def scaled(
    sizes=(130, 136, 96), block=(64, 64, 32), types=("float16", "float32"), vectors="float32", *, threads=128,
    stages=3, how="", before=0, dynamic="", extent=0, kept=0, safe=None,
):  # fmt: skip
    """A product with scaled rows and columns; ``how`` names scales and other operands."""
    (m, n, k), (bm, bn, bk), (dtype, acc) = sizes, block, types
    if dynamic:
        m, n, k = (T.dynamic(x) if x in dynamic else size for x, size in zip("mnk", sizes, strict=True))
    rows, columns = extent or m, extent or n
    scale, follow = nest(how, n, block, before), rest(how, block)

    @T.prim_func
    def main(
        A: T.Tensor((m, k), dtype), B: T.Tensor((n, k), dtype), R: T.Tensor((rows,), vectors),
        V: T.Tensor((columns,), vectors), W: T.Tensor((3, columns), vectors), E: T.Tensor((4,), "int32"),
        C: T.Tensor((m, n), acc), D: T.Tensor((m, n), acc),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (bx, by):
            A_s = T.alloc_shared((bm, bk), dtype)
            B_s = T.alloc_shared((bn, bk), dtype)
            C_f = T.alloc_fragment((bm, bn), acc)
            if safe is not None:
                T.annotate_safe_value({V: safe, R: safe})
            if kept:
                K_s = T.alloc_shared((kept,), "uint8")
                for i in T.Parallel(kept):
                    K_s[i] = 1
            T.clear(C_f)
            e = E[by] if how == "a value" else 0
            for t in T.Pipelined(T.ceildiv(k, bk), num_stages=stages):
                T.copy(A[by * bm, t * bk], A_s)
                T.copy(B[bx * bn, t * bk], B_s)
                T.gemm(A_s, B_s, C_f, transpose_B=True)
            column = bx * bn - before
            for i, j in T.Parallel(bm, bn):
                scale(C_f, R, V, W, E, D, e, column, bx, by, i, j)
            follow(C_f, R, V, D, column, bx, by)
            T.copy(C_f, C[by * bm, bx * bn])
            if kept:
                for i in T.Parallel(kept):
                    if K_s[i] != 1:
                        C[0, 0] = 0

    return main


def operands(sizes, types, vectors, extent=0):
    """Return small integers: accumulators and scales are exact."""
    (m, n, k), rng = sizes, np.random.default_rng()

    def drawn(shape, dtype):
        return rng.integers(0 if dtype == "uint8" else -2, 3, shape).astype(NUMPY.get(dtype, dtype))

    shapes = ((extent or m,), (extent or n,), (3, extent or n))
    made = [drawn((m, k), types[0]), drawn((n, k), types[0]), *(drawn(s, vectors) for s in shapes)]
    return [*made, rng.integers(0, 3, 4).astype("int32"), *(np.full((m, n), 85, types[1]) for _ in range(2))]


def check(*, options=ALWAYS, sizes=(130, 136, 96), types=("float16", "float32"), vectors="float32", **how):
    """Compare a kernel with the CPU's, and return it."""
    program = scaled(sizes, types=types, vectors=vectors, **how)
    kernel = tile.compile(program, TARGET, runtime="emulator", options=options)
    given = operands(sizes, types, vectors, how.get("extent", 0))
    found, want = ([x.copy() for x in given] for _ in range(2))
    kernel(*found)
    tile.compile(program, "cpu")(*want)
    for a, b in zip(found, want, strict=True):
        np.testing.assert_array_equal(a, b)
    return kernel


def lines(kernel):
    """Return how many vectors a kernel prefetches through shared memory, and directly."""
    tiles = set(re.findall(r"\b\w+_line(?:_\d+)?\b(?= = \()", kernel.source))
    held = set(re.findall(r"^  [\w ]+ ((?!A_|B_)\w+_ahead(?:_\d+)?)(?:\[\d+\])?;$", kernel.source, re.MULTILINE))
    return len(tiles), len(held)


def stays(kernel):
    return "const int worker = blockIdx.x" in kernel.source


#: Programs, and how many vectors go through shared memory and are prefetched in all.
CASES = {
    "rows and columns": ({}, (1, 2)),
    "columns": ({"how": "columns"}, (1, 1)),
    "rows": ({"how": "rows"}, (0, 1)),
    "corners below zero": ({"before": 7}, (1, 2)),
    "vectors that end early": ({"extent": 71}, (1, 2)),
    "vectors that end before they begin": ({"extent": 3, "before": 80}, (1, 2)),
    "safe values": ({"safe": 2, "before": 7, "extent": 100}, (1, 2)),
    "primes": ({"sizes": (131, 137, 89)}, (1, 2)),
    "one element": ({"sizes": (1, 1, 1)}, (1, 2)),
    "one trip": ({"sizes": (130, 136, 32)}, (1, 2)),
    "no slots": ({"stages": 0}, (1, 2)),
    "two groups": ({"threads": 256, "block": (128, 64, 32)}, (1, 2)),
    "two groups beside each other": ({"threads": 256, "block": (64, 128, 32)}, (1, 2)),
    "more threads than columns": ({"threads": 256, "block": (128, 8, 32)}, (1, 2)),
    "more columns than threads": ({"block": (64, 192, 32), "sizes": (70, 400, 64)}, (1, 2)),
    "a row of a matrix": ({"how": "a row of a matrix"}, (2, 2)),
    "a number from a tensor": ({"how": "a value"}, (2, 2)),
    "a name": ({"how": "a name"}, (1, 1)),
    "a condition": ({"how": "a condition", "before": 3}, (1, 1)),
    "a branch": ({"how": "a branch"}, (1, 1)),
    "to the tensor": ({"how": "to the tensor"}, (1, 2)),
    "three": ({"how": "three"}, (3, 4)),
    "two nests": ({"how": "twice"}, (1, 2)),
    "two parts": ({"how": "another part"}, (2, 2)),
    "a copy of the accumulator": ({"how": "halves"}, (2, 2)),
    "a copy between nests": ({"how": "a copy between", "options": {**ALWAYS, "epilogue": "never"}}, (1, 1)),
    "bfloat16": ({"vectors": "bfloat16", "types": ("bfloat16", "float32")}, (1, 2)),
    "float16": ({"vectors": "float16", "before": 1}, (1, 2)),
    "float64": ({"vectors": "float64"}, (1, 2)),
    "8-bit vectors": ({"vectors": "int8"}, (1, 2)),
    "8-bit floats as vectors": ({"vectors": "float8_e4m3fn", "before": 1}, (1, 2)),
    "bools": ({"vectors": "bool"}, (1, 2)),
    "integers": ({"types": ("int8", "int32"), "vectors": "int32"}, (1, 2)),
    "8-bit floats": ({"types": ("float8_e4m3fn", "float32")}, (1, 2)),
    "sizes of a launch": ({"dynamic": "mn"}, (1, 2)),
    "trips of a launch": ({"dynamic": "k"}, (1, 2)),
    "columns of a launch, corners below zero": ({"dynamic": "n", "before": 9, "how": "columns"}, (1, 1)),
    "results by way of shared memory": ({"options": {**ALWAYS, "epilogue": "always"}}, (1, 2)),
    # What is left alone.
    "another step": ({"how": "another step"}, (0, 0)),
    "turned": ({"how": "turned"}, (0, 0)),
    "both variables": ({"how": "both"}, (0, 0)),
    "a loop inside": ({"how": "inside"}, (0, 0)),
    "a vector that is written": ({"how": "written", "sizes": (64, 136, 64)}, (0, 0)),
    "a vector that a copy writes": ({"how": "written by an op", "sizes": (64, 136, 64)}, (0, 0)),
    "accumulators at other coordinates": ({"how": "moved"}, (0, 0)),
    "a coordinate from the accumulator": ({"how": "of the accumulator"}, (0, 0)),
    "products of warps": ({"options": {"wgmma": "never"}}, (0, 0)),
}  # fmt: skip


@pytest.mark.parametrize("stay", [False, True], ids=["", "stays"])
@pytest.mark.parametrize("name", CASES)
def test_right_and_as_many_as_can_be(name, stay):
    how, want = CASES[name]
    options = {**how.get("options", ALWAYS), "persistent": 2 if stay else "never"}
    kernel = check(**{**how, "options": options})
    assert lines(kernel) == want
    if not stay:
        assert not stays(kernel)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("persistent", [3, "never"])
def test_sparse_products(persistent, turned):
    m, n, k, (bm, bn, bk) = 136, 130, 256, (64, 64, 64)

    @T.prim_func
    def main(
        A: T.Tensor((m, k // 2), "float16"), E: T.Tensor((k // 16, m) if turned else (m, k // 16), "int16"),
        B: T.Tensor((n, k), "float16"), R: T.Tensor((m,), "float32"), V: T.Tensor((n,), "float16"),
        C: T.Tensor((m, n), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=128) as (bx, by):
            A_s = T.alloc_shared((bm, bk // 2), "float16")
            E_s = T.alloc_shared((bk // 16, bm) if turned else (bm, bk // 16), "int16")
            B_s = T.alloc_shared((bn, bk), "float16")
            C_f = T.alloc_fragment((bm, bn), "float32")
            T.clear(C_f)
            for t in T.Pipelined(k // bk, num_stages=3):
                T.copy(A[by * bm, t * bk // 2], A_s)
                if turned:
                    T.copy(E[t * bk // 16, by * bm], E_s)
                else:
                    T.copy(E[by * bm, t * bk // 16], E_s)
                T.copy(B[bx * bn, t * bk], B_s)
                T.gemm_sp(A_s, E_s, B_s, C_f, transpose_E=turned, transpose_B=True)
            for i, j in T.Parallel(bm, bn):
                C_f[i, j] = C_f[i, j] * R[by * bm + i] + V[bx * bn + j]
            T.copy(C_f, C[by * bm, bx * bn])

    kernel = tile.compile(main, TARGET, runtime="emulator", options={**ALWAYS, "persistent": persistent})
    assert lines(kernel) == (1, 2)
    rng = np.random.default_rng()
    dense, b, r, v = (rng.integers(-3, 4, s) for s in ((m, k), (n, k), (m,), (n,)))
    pruned = sparse.prune(dense.astype("float16"))
    values, metadata = sparse.compress(pruned, meta_dtype="int16")
    c = np.full((m, n), 85, "float32")
    given = (np.ascontiguousarray(metadata.T) if turned else metadata, b.astype("float16"), r.astype("float32"))
    kernel(values, *given, v.astype("float16"), c)
    np.testing.assert_array_equal(c, pruned.astype("float64") @ b.T * r[:, None] + v)


def around(where, k=64):
    """A product whose loop and nest stand in something else, or have something between them."""

    bm, n, threads = (128, 256, 256) if where in ("a loop", "a loop before", "a branch") else (64, 64, 128)

    @T.prim_func
    def main(
        A: T.Tensor((2 * bm, k), "float16"), B: T.Tensor((n, k), "float16"), V: T.Tensor((2 * n,), "float32"),
        C: T.Tensor((2 * bm, n), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=256 if where == "a role" else threads) as _:
            A_s = T.alloc_shared((bm, k), "float16")
            B_s = T.alloc_shared((n, k), "float16")
            C_f = T.alloc_fragment((bm, n), "float32")

            def tile_of(by, at=0):
                T.clear(C_f)
                for t in T.Pipelined(1 if where == "a wait" else k // 32, num_stages=2):
                    if where == "a wait":
                        T.fill(A_s, 1)
                        T.fill(B_s, 2)
                        T.gemm(A_s, B_s, C_f, transpose_B=True)
                    else:
                        T.copy(A[by * bm, t * 32], A_s[:, :32])
                        T.copy(B[0, t * 32], B_s[:, :32])
                        T.gemm(A_s[:, :32], B_s[:, :32], C_f, transpose_B=True)
                if where == "a wait":
                    T.pdl_sync()
                for i, j in T.Parallel(bm, n):
                    C_f[i, j] = C_f[i, j] * V[at + j]
                T.copy(C_f, C[by * bm, 0])

            if where == "a role":
                with T.ws(0):
                    for by in T.serial(2):
                        tile_of(by)
            elif where == "a loop before":
                tile_of(0, 3)
                tile_of(1, 5)
            elif where == "a loop":
                for by in T.serial(2):
                    tile_of(by, by * 5)
            elif where == "a branch":
                for by in T.serial(2):
                    if by == 1:
                        tile_of(by, n - 3)
            else:
                tile_of(0)

    return main


@pytest.mark.parametrize(
    ("where", "count"),
    [("", 1), ("a loop", 1), ("a branch", 1), ("a loop before", 2), ("a role", 0), ("a wait", 0)],
    ids=lambda x: str(x),
)
def test_right_inside_of_other_statements(where, count):
    program = around(where)
    kernel = tile.compile(program, TARGET, runtime="emulator", options=ALWAYS)
    assert "  wgmma_m64" in kernel.source
    assert len(re.findall(r"^ +float V_ahead(?:_1)?;", kernel.source, re.MULTILINE)) == count
    rng = np.random.default_rng()
    given = [rng.integers(-3, 4, tuple(p.shape)).astype(str(p.dtype)) for p in program.params]
    found, want = ([x.copy() for x in given] for _ in range(2))
    kernel(*found)
    tile.compile(program, "cpu")(*want)
    np.testing.assert_array_equal(found[-1], want[-1])


#: What is decided about large products: tiles, stages, other shared memory and options.
DECISIONS = {
    "persistent": ((128, 256, 64), 4, 0, {}),
    "persistent, narrow tiles": ((128, 192, 64), 4, 0, {"persistent": "always"}),
    "a place of their own": ((128, 256, 64), 3, 0, {"persistent": "never"}),
    "two at a time": ((128, 128, 64), 3, 0, {}),
    "three at a time": ((128, 64, 64), 3, 0, {"persistent": "never"}),
    "little shared memory": ((128, 256, 64), 4, 31_600, {}),
    "no shared memory": ((128, 256, 64), 4, 31_744, {}),
    "no shared memory, not persistent": ((128, 256, 64), 4, 35_800, {"persistent": "never"}),
    "shared memory for two": ((128, 128, 64), 3, 17_000, {}),
    "as much as two have": ((128, 128, 64), 3, 17_400, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", DECISIONS)
def test_nothing_else_is_decided_otherwise(name, monkeypatch):
    block, stages, kept, options = DECISIONS[name]
    program = scaled((4096, 4096, 512), block, threads=256, stages=stages, kept=kept)
    found = report_json(program, TARGET, options=options)
    monkeypatch.setattr(OperandChoices, "chosen", lambda self: [])
    without = report_json(program, TARGET, options=options)
    for key in ("grid", "threads"):
        assert found[key] == without[key]
    sizes = [r["block"]["shared_bytes"] for r in (found, without)]
    lines = [b["bytes"] for b in found["block"]["shared"] if b["name"] == "V_line"]
    assert any(f["name"] == "R_ahead" for f in found["block"]["fragments"])
    assert bool(lines) == (name not in ("no shared memory", "little shared memory"))
    notes = [[note for loop in r["block"]["loops"] for note in loop["notes"]] for r in (found, without)]
    assert notes[0] == notes[1]
    stay = any("persistent blocks process" in text for _, text in notes[0])
    assert stay == (name in ("persistent", "persistent, narrow tiles", "little shared memory", "no shared memory"))
    assert sizes[0] - sizes[1] == (sum(lines) if stay else 0)
    assert [233_472 // (size + 1024) for size in sizes[:1]] == [233_472 // (size + 1024) for size in sizes[1:]]


def _drawn(count):
    units: list[Any] = []

    @hypothesis.seed(1)
    @settings(max_examples=count, deadline=None, database=None, phases=(Phase.generate,),
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @hypothesis.given(STRATEGIES["tall-products"][0])
    def draw(unit) -> None:
        units.append(unit)

    draw()
    return units


def _text(unit, options):
    """Return a program's text, or the code of the error that refuses it."""
    try:
        return lowered(load(unit.text()), make_context(TARGET, options)).text
    except TileError as error:
        return error.code


@pytest.mark.sweep(3)
def test_the_fuzzer_draws_them_and_none_is_refused_for_it(monkeypatch):
    units = _drawn(80)
    texts = [_text(unit, ALWAYS) for unit in units]
    assert sum(bool(re.search(r"\bV_line\b", text)) for text in texts) >= 5
    assert sum(bool(re.search(r"\bU_ahead\b", text)) for text in texts) >= 3
    monkeypatch.setattr(OperandChoices, "chosen", lambda self: [])
    for unit, text in zip(units, texts, strict=True):
        if len(text) < 9 or "_ahead" in text:
            assert (len(text) < 9) == (len(_text(unit, ALWAYS)) < 9)
