"""Persistent kernels with a producer warp: conditions, rejection reasons, results."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from zoo import programs

import tile_core as tile
import tile_core.language as T
from tile_core.reports import report_json

pytestmark = pytest.mark.sweep(2)

TARGET = "cuda:sm_90a"
ALWAYS = {"wgmma": "always", "persistent": 3, "numerics": "fast"}
NUMPY = {"bfloat16": ml_dtypes.bfloat16, "float8_e4m3fn": ml_dtypes.float8_e4m3fn}


def gemm(
    sizes=(200, 136, 160), block=(64, 64, 32), types=("float16", "float16"), *, threads=128, stages=3, turned=True,
    panel=0, where="", batch=0,
):  # fmt: skip
    (m, n, k), (bm, bn, bk), (dtype, out) = sizes, block, types
    of_c = (batch, m, n) if batch else (m, n)
    of_b = (n, k) if turned else (k, n)

    @T.prim_func
    def main(
        A: T.Tensor((m, k), dtype), B: T.Tensor(of_b, dtype), S: T.Tensor((m,), "float32"), C: T.Tensor(of_c, out)
    ):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), *([batch] if batch else []), threads=threads) as found:
            bx, by = found[0], found[1]
            A_s = T.alloc_shared((bm, bk), dtype)
            B_s = T.alloc_shared((bn, bk) if turned else (bk, bn), dtype)
            C_l = T.alloc_fragment((bm, bn), "float32")
            if panel:
                T.use_swizzle(panel)
            row = by * bm
            if where == "shared":
                S_s = T.alloc_shared((bm,), "float32")
                T.copy(S[row], S_s)
            T.clear(C_l)
            for t in T.Pipelined(T.ceildiv(k, bk), num_stages=stages):
                at = t * bk
                T.copy(A[row, at], A_s)
                if turned:
                    T.copy(B[bx * bn, at], B_s)
                else:
                    T.copy(B[at, bx * bn], B_s)
                T.gemm(A_s, B_s, C_l, transpose_B=turned)
            if where == "scaled":
                for i, j in T.Parallel(bm, bn):
                    C_l[i, j] = C_l[i, j] * S[row + i]
            if where == "shared":
                for i, j in T.Parallel(bm, bn):
                    C_l[i, j] = C_l[i, j] * S_s[i]
            if where == "staged":
                C_s = T.alloc_shared((bm, bn), out)
                T.copy(C_l, C_s)
                T.copy(C_s, C[row, bx * bn])
            elif batch:
                T.copy(C_l, C[found[2], row, bx * bn])
            else:
                T.copy(C_l, C[row, bx * bn])

    return main


def check(
    sizes=(200, 136, 160), *, options=ALWAYS, types=("float16", "float16"), turned=True, batch=0, where="", **how
):
    program = gemm(sizes, types=types, turned=turned, batch=batch, where=where, **how)
    kernel = tile.compile(program, TARGET, runtime="emulator", options=options)
    (m, n, k), rng = sizes, np.random.default_rng()
    a, b = (rng.integers(-3, 4, shape).astype(NUMPY.get(types[0], types[0])) for shape in ((m, k), (k, n)))
    s = rng.integers(1, 3, m).astype("float32")
    c = np.full((batch, m, n) if batch else (m, n), 85, NUMPY.get(types[1], types[1]))
    kernel(a, np.ascontiguousarray(b.T) if turned else b, s, c)
    scaled = where in ("scaled", "shared")
    want = a.astype("float64") @ b.astype("float64") * (s[:, None] if scaled else 1)
    # Accumulators are exact; a result of few bits is rounded once.
    np.testing.assert_array_equal(c.astype("float64"), np.broadcast_to(want, c.shape).astype(c.dtype).astype("float64"))
    return kernel


def shares(kernel):
    return "const int worker = blockIdx.x" in kernel.source


CASES = {
    "plain": {},
    "one tile": {"sizes": (64, 64, 160)},
    "a tile in part": {"sizes": (1, 8, 96)},
    "fewer tiles than blocks": {"sizes": (128, 64, 160)},
    "as many": {"sizes": (192, 64, 160)},
    "many": {"sizes": (500, 264, 64), "stages": 2},
    "two trips": {"sizes": (200, 136, 64), "stages": 2},
    "more trips than slots, no multiple": {"sizes": (200, 136, 224), "stages": 4},
    "a part of a trip": {"sizes": (200, 136, 152)},
    "B as it is": {"turned": False},
    "two groups": {"block": (128, 64, 32), "threads": 256},
    "two groups beside each other": {"block": (64, 128, 32), "threads": 256, "sizes": (130, 264, 96)},
    "panels": {"panel": 3, "sizes": (460, 264, 64)},
    "panels of columns beyond the end": {"panel": 3, "block": (64, 96, 32), "sizes": (460, 264, 64)},
    "a batch": {"batch": 3},
    "float32": {"types": ("float16", "float32")},
    "bfloat16": {"types": ("bfloat16", "bfloat16")},
    "8-bit floats": {"types": ("float8_e4m3fn", "bfloat16"), "block": (64, 64, 64), "sizes": (200, 136, 192)},
    "scales": {"where": "scaled"},
    "results by way of its own tile": {"where": "staged"},
    "a tile of its own": {"where": "shared"},
    "stored directly": {"options": {**ALWAYS, "epilogue": "never"}},
}


@pytest.mark.parametrize("name", CASES)
def test_right(name):
    assert shares(check(**CASES[name]))


@pytest.mark.parametrize("k", [128, 320, 448])
def test_sparse_products(k):
    case = programs.gemm_sp_turned_case(136, 136, k, (64, 64, 64))
    kernel = tile.compile(case.program, TARGET, runtime="emulator", options=ALWAYS)
    assert shares(kernel)
    args = [a.copy() for a in case.args]
    kernel(*args)
    assert all(w.holds(args[w.index]) for w in case.wanted)


#: Why each tile has a block of its own, and the nearest program whose blocks stay.
RULES = {
    "the option": ({}, {"persistent": "never"}, "the option persistent", {}, {}),
    "one wave": ({"block": (128, 256, 64), "threads": 256, "stages": 4, "sizes": (1024, 1024, 512)},
                 {"persistent": "auto"}, "all 32 blocks run at a time",
                 {"block": (128, 256, 64), "threads": 256, "stages": 4, "sizes": (4096, 4096, 512)},
                 {"persistent": "auto"}),
    "several blocks at a time": ({"sizes": (4096, 2048, 160)}, {"persistent": "auto"}, "already overlap copies",
                                 {"sizes": (4096, 2048, 160)}, {"persistent": "always"}),
    "three stages": ({"block": (128, 256, 64), "threads": 256, "stages": 3, "sizes": (4096, 4096, 512)},
                     {"persistent": "auto"}, "it was not faster with 3 stages",
                     {"block": (128, 256, 64), "threads": 256, "stages": 3, "sizes": (4096, 4096, 512)},
                     {"persistent": "always"}),
    "five stages": ({"block": (128, 192, 64), "threads": 256, "stages": 5, "sizes": (4096, 4096, 512)},
                    {"persistent": "auto"}, "it was not faster with 5 stages",
                    {"block": (128, 192, 128), "threads": 256, "stages": 5, "sizes": (4096, 4096, 512),
                     "types": ("float8_e4m3fn", "bfloat16")}, {"persistent": "auto", "numerics": "fast"}),
    "threads": ({"block": (192, 64, 32), "threads": 384}, {}, "its block has 384 threads",
                {"block": (128, 64, 32), "threads": 256}, {}),
    "no stages": ({"stages": 1}, {}, "num_stages is 1", {"stages": 2}, {}),
    "one trip": ({"sizes": (200, 136, 32)}, {}, "it has 1 iterations", {"sizes": (200, 136, 64)}, {}),
    "a copy by threads": ({"sizes": (200, 136, 156)}, {}, "its copies do not complete on transaction barriers",
                          {"sizes": (200, 136, 160)}, {}),
    "no bulk copies": ({}, {"tma": "never"}, "its copies do not complete on transaction barriers", {}, {}),
    "room": ({"block": (128, 256, 64), "threads": 256, "stages": 4, "where": "staged",
              "sizes": (200, 136, 512)}, {}, "shared-memory budget exceeded",
             {"block": (128, 256, 64), "threads": 256, "stages": 3, "where": "shared"}, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_each_rule_has_two_sides(name):
    how, options, reason, nearest, others = RULES[name]
    alone = report_json(gemm(**how), TARGET, options={**ALWAYS, **options})
    shared = report_json(gemm(**nearest), TARGET, options={**ALWAYS, **others})
    said = [" ".join(map(str, x["block"]["loops"])) for x in (alone, shared)]
    assert "persistent blocks process" not in said[0]
    assert reason in said[0], said[0]
    assert "persistent blocks process" in said[1]


@pytest.mark.sweep(0.25)
def test_the_default():
    (loop,) = report_json(gemm((4096, 4096, 512), (128, 256, 64), threads=256, stages=4), TARGET)["block"]["loops"]
    assert ("t", "132 persistent blocks process 512 tiles") in map(tuple, loop["notes"])
