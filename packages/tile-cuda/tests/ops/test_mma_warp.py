"""Products on ``tcgen05`` by an MMA warp, between a producer warp and the epilogue."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
import tile_emulator
from tile_core.compiler import lower
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.reports import report_json
from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch

from ..emit.nvrtc import assemble

TARGET = "cuda:sm_100a"
ALWAYS = {"tcgen05": "always", "persistent": 3}
NUMPY = {
    "bfloat16": ml_dtypes.bfloat16, "float8_e4m3fn": ml_dtypes.float8_e4m3fn, "tfloat32": "float32",
}  # fmt: skip


def gemm(
    sizes=(200, 136, 160), block=(128, 64, 32), types=("float16", "float16"), stages=3, turned=True, panel=0, where="",
    batch=0, threads=128, total="float32",
):  # fmt: skip
    (m, n, k), (bm, bn, bk), (dtype, out) = sizes, block, types
    of_c, of_b = ((batch, m, n) if batch else (m, n)), ((n, k) if turned else (k, n))

    @T.prim_func
    def main(
        A: T.Tensor((m, k), dtype), B: T.Tensor(of_b, dtype), S: T.Tensor((m,), "float32"), C: T.Tensor(of_c, out)
    ):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), *([batch] if batch else []), threads=threads) as found:
            bx, by = found[0], found[1]
            A_s, B_s = T.alloc_shared((bm, bk), dtype), T.alloc_shared((bn, bk) if turned else (bk, bn), dtype)
            C_l = T.alloc_fragment((bm, bn), total)
            if panel:
                T.use_swizzle(panel)
            if where == "fixed":
                D_s = T.alloc_shared((bm, bk), dtype)
                T.copy(A[by * bm, 0], D_s)
            T.fill(C_l, 1 if where == "ones" else 0)
            for t in T.Pipelined(T.ceildiv(k, bk), num_stages=stages):
                T.copy(A[by * bm, t * bk], A_s)
                T.copy(B[bx * bn, t * bk] if turned else B[t * bk, bx * bn], B_s)
                T.gemm(D_s if where == "fixed" else A_s, B_s, C_l, transpose_B=turned)
                if where == "doubled":
                    for i, j in T.Parallel(bm, bn):
                        C_l[i, j] = C_l[i, j] * 1
            if where == "scaled":
                for i, j in T.Parallel(bm, bn):
                    C_l[i, j] = C_l[i, j] * S[by * bm + i]
            if where == "reduced":
                top = T.alloc_fragment((bm,), total)
                T.reduce_max(C_l, top, dim=1)
            if where == "staged":
                C_s = T.alloc_shared((bm, bn), out)
                T.copy(C_l, C_s)
                T.copy(C_s, C[by * bm, bx * bn])
            else:
                T.copy(C_l, C[found[2], by * bm, bx * bn] if batch else C[by * bm, bx * bn])

    return main


def operands(sizes=(200, 136, 160), types=("float16", "float16"), turned=True, batch=0, **_):
    (m, n, k), rng = sizes, np.random.default_rng()
    a, b = (rng.integers(-3, 4, shape).astype(NUMPY.get(types[0], types[0])) for shape in ((m, k), (k, n)))
    s, c = rng.integers(1, 3, m).astype("float32"), np.full((batch, m, n) if batch else (m, n), 85)
    return a, np.ascontiguousarray(b.T) if turned else b, s, c.astype(NUMPY.get(types[1], types[1]))


def meaning(a, b, s, turned=True, where="", **_):
    want = a.astype("float64") @ (b.T if turned else b).astype("float64")
    return want * s[:, None] if where == "scaled" else want


def check(options=ALWAYS, target=TARGET, **how):
    kernel = tile.compile(gemm(**how), target, runtime="emulator", options=options)
    a, b, s, c = operands(**how)
    kernel(a, b, s, c)
    want = np.broadcast_to(meaning(a, b, s, **how), c.shape)
    np.testing.assert_array_equal(c.astype("float64"), want.astype(c.dtype).astype("float64"))
    return kernel


def is_split(kernel):
    return "the MMA warp" in kernel.explain()


CASES = {
    "plain": {},
    "one tile": {"sizes": (128, 64, 160)},
    "a tile in part": {"sizes": (1, 8, 96)},
    "fewer tiles than blocks": {"sizes": (256, 64, 160)},
    "one block": {"options": {**ALWAYS, "persistent": 1}},
    "many": {"sizes": (500, 264, 64), "stages": 2},
    "two trips": {"sizes": (200, 136, 64), "stages": 2},
    "fewer trips than slots": {"sizes": (200, 136, 64), "stages": 4},
    "more trips than slots, no multiple": {"sizes": (200, 136, 224), "stages": 4},
    "a part of a trip": {"sizes": (200, 136, 152)},
    "B as it is": {"turned": False},
    "panels": {"panel": 2, "sizes": (460, 264, 64)},
    "a batch": {"batch": 2, "sizes": (200, 72, 96)},
    "float32": {"types": ("float16", "float32")},
    "bfloat16": {"types": ("bfloat16", "bfloat16")},
    "8-bit floats": {"types": ("float8_e4m3fn", "bfloat16"), "block": (128, 64, 64), "sizes": (200, 136, 192)},
    "integers": {"types": ("int8", "int32"), "block": (128, 64, 64), "sizes": (200, 136, 192), "total": "int32"},
    "tf32": {"types": ("tfloat32", "float32")},
    "scales": {"where": "scaled"},
    "results by way of their own tile": {"where": "staged"},
    "all columns": {"block": (256, 256, 32), "sizes": (300, 264, 64), "stages": 2},
    "half the columns": {"block": (128, 256, 32), "sizes": (300, 264, 64), "stages": 2, "where": "staged"},
    "an odd number of columns": {"block": (128, 112, 32), "sizes": (200, 272, 64)},
    "as many blocks as the device runs": {"options": {"tcgen05": "always"}},
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.sweep(8)
def test_right(name):
    kernel = check(**CASES[name])
    assert is_split(kernel)
    for arch in ("sm_100a", "sm_103a") if "integers" not in name else ("sm_100a",):
        assert "C7" not in assemble(kernel.source, arch)


def loops(kernel_or_text):
    """Return the bodies of the kernel's role branches, by their conditions."""
    text = kernel_or_text[kernel_or_text.index('extern "C"') :]
    found = re.split(r"\n  if \((warp == \d+ && elect_sync\(\) != 0u|tid == \d+|tid < 128)\) \{\n", text)
    return {head: body.split("\n  }\n")[0] for head, body in zip(found[1::2], found[2::2], strict=False)}


def test_no_thread_waits_for_a_product_in_the_loop():
    parts = loops(check().source)
    copies = next(body for body in parts.values() if "cp_async_bulk_tensor" in body and "tcgen05_mma" not in body)
    products = next(body for body in parts.values() if "tcgen05_mma" in body)
    results = next(body for body in parts.values() if "tcgen05_ld" in body)
    assert re.findall(r"mbarrier_wait_parity\(&(\w+)", products) == ["sums_free", "t_arrived"]
    assert re.findall(r"tcgen05_commit\w+\(&(\w+)", products) == ["t_free", "sums_ready"]
    assert "t_free" in copies
    assert re.findall(r"mbarrier_\w+\(&(\w+)", results) == ["sums_ready", "sums_free"]
    for body in parts.values():
        assert "__syncthreads" not in body


@pytest.mark.parametrize(
    ("block", "several"), [((128, 256, 32), True), ((256, 128, 32), True), ((256, 256, 32), False)]
)
def test_accumulators_are_double_buffered_where_columns_suffice(block, several):
    source = tile.compile(gemm((600, 600, 64), block, stages=2), TARGET, runtime="emulator", options=ALWAYS).source
    assert ("sums_ready[1], 1)" in source) == several
    assert "shared_cta_b32(&tensor_columns[0], 512)" in source


#: Why a thread of its own does not issue products, and the nearest program where one does.
RULES = {
    "the option": ({}, {"persistent": "never", "tma": "always"}, "the option persistent", {}, {}),
    "threads": ({"threads": 256}, {}, "256 threads execute it; blocks of 128 move accumulators", {}, {}),
    "no stages": ({"stages": 1}, {}, "num_stages is 1", {"stages": 2}, {}),
    "one trip": ({"sizes": (200, 136, 32)}, {}, "it has 1 iterations", {"sizes": (200, 136, 64)}, {}),
    "copies by threads": ({"sizes": (200, 136, 156)}, {}, "its copies do not complete on transaction barriers", {}, {}),
    "no bulk copies": ({}, {"tma": "never"}, "its copies do not complete on transaction barriers", {}, {}),
    "an accumulator that begins with ones": ({"where": "ones"}, {}, "C_l is not initialized with zeros", {}, {}),
    "more than products": ({"where": "doubled"}, {}, "C_l is used elsewhere in the loop", {}, {}),
    "an operand of the block": ({"where": "fixed"}, {}, "D_s is not copied in its loop", {}, {}),
    "the accumulator as a whole": ({"where": "reduced"}, {}, "registers hold all of it", {"where": "scaled"}, {}),
    "an epilogue that is never divided": ({}, {"subtiling": "never", "tma": "always"},
                                    "registers hold all of it", {}, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
@pytest.mark.sweep(6)
def test_each_rule_has_two_sides(name):
    how, options, reason, nearest, others = RULES[name]
    alone = report_json(gemm(**how), TARGET, options={**ALWAYS, **options})
    shared = report_json(gemm(**nearest), TARGET, options={**ALWAYS, **others})
    said = [" ".join(map(str, (*x["block"]["loops"], *x["ops"]))) for x in (alone, shared)]
    assert "the MMA warp" not in said[0]
    assert reason in said[0], said[0]
    assert "the MMA warp" in said[1]


@pytest.mark.parametrize(
    "name", ["copies by threads", "no bulk copies", "an accumulator that begins with ones", "more than products"]
)
@pytest.mark.sweep(6)
def test_kernels_without_roles_are_right(name):
    how, options, *_ = RULES[name]
    kernel = tile.compile(gemm(**how), TARGET, runtime="emulator", options={**ALWAYS, **options})
    a, b, s, c = operands(**how)
    kernel(a, b, s, c)
    ones = 1 if how.get("where") == "ones" else 0
    np.testing.assert_array_equal(c.astype("float64"), meaning(a, b, s) + ones)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(
    ("block", "blocks"), [((128, 64, 32), 4), ((128, 80, 32), 2), ((128, 128, 32), 2), ((128, 208, 32), 1)]
)
def test_persistent_blocks_are_all_resident(block, blocks):
    how = {"sizes": (128 * 50, block[1] * 20, 64), "block": block, "stages": 2}
    made = lower(gemm(**how), make_context(TARGET, {"tcgen05": "always"}), installed()).lowered
    assert made.facts.grid == (148 * blocks, 1, 1)
    (columns,) = re.findall(r"tcgen05_alloc_\w+\(.*?, (\d+)\);", made.text)
    assert blocks * int(columns) <= 512


SHAPE = {"sizes": (384, 136, 96), "types": ("float16", "float32")}
_COMMIT = r"\n +tcgen05_commit\w+\(&{}\[[^;]*;"
_WAIT = r"\n +mbarrier_wait_parity\(&{}\[[^;]*;"
MISTAKES = {
    "slots are never free": (_COMMIT.format("t_free"), ""),
    "the accumulator is never ready": (_COMMIT.format("sums_ready"), ""),
    "a slot is free before its product": (r"((?:\n +tcgen05_mma[^;]*;)+)" f"({_COMMIT.format('t_free')})", r"\2\1"),
    "a slot is filled early": (_WAIT.format("t_free"), ""),
    "a slot is read early": (_WAIT.format("t_arrived"), ""),
    "the accumulator is used early": (_WAIT.format("sums_ready"), ""),
    "the accumulator is overwritten early": (_WAIT.format("sums_free"), ""),
    "the accumulator is free before it is read": (
        r"((?:\n +tcgen05_ld_sync[^;]*;)+\n +tcgen05_wait_ld[^;]*;)((?s:.*?))"
        r"(\n +mbarrier_arrive_shared_cta_b64\(&sums_free[^;]*;)", r"\3\1\2"
    ),
    "the accumulator is never free": (r"\n +mbarrier_arrive_shared_cta_b64\(&sums_free[^;]*;", ""),
    "the wait for a slot is for another phase": (r"(mbarrier_wait_parity\(&t_arrived\[[^,]*, )(.*)\);",
                                                 r"\1(\2) ^ 1);"),
    "the wait for the accumulator is for another phase": (r"(mbarrier_wait_parity\(&sums_ready\[[^,]*, )(.*)\);",
                                               r"\1(\2) ^ 1);"),
    "the wait for a free accumulator is for another phase": (r"(mbarrier_wait_parity\(&sums_free\[[^,]*, )(.*)\);",
                                                    r"\1(\2) ^ 1);"),
    "one accumulator buffer": (r"(tensor_columns\[0\] \+ \(unsigned\))\((turn_1) & 1\)", r"\1(0)"),
    "another slot": (r"(tcgen05_mma\w+\(columns, &A_s_stages\[)slot_1", r"\1((slot_1 + 1) % 3)"),
    "products are added to the accumulator of the tile before": (r"(\w+) == 0 \? 0 : 1", "1"),
    "a trip less": (r"(t_issued = 0; t_issued < )3", r"\g<1>2"),
    "every thread of the warp multiplies": (r"tid == 160", "tid >= 160"),
}  # fmt: skip


@pytest.fixture(scope="module")
def lowered():
    return lower(gemm(**SHAPE), make_context(TARGET, {**ALWAYS, "persistent": 2}), installed()).lowered


def found(text, lowered):
    for how in ({"completion": "late"}, {"completion": "early", "order": "random", "seed": 5}):
        a, b, s, c = operands(**SHAPE)
        given = {p.name: {"A": a, "B": b, "S": s, "C": c}[p.name] for p in lowered.facts.given}
        result = tile_emulator.run(text, lowered.facts, given, dialect_of(Arch.of("sm_100a")), **how)
        if result.reports or not np.array_equal(result.outputs["C"].reshape(c.shape), meaning(a, b, s)):
            return True
    return False


@pytest.mark.parametrize("mistake", [None, *MISTAKES])
@pytest.mark.sweep(8)
def test_mistakes_are_found(mistake, lowered):
    cut = lowered.text.index('extern "C"')
    head, body = lowered.text[:cut], lowered.text[cut:]
    if mistake is not None:
        pattern, new = MISTAKES[mistake]
        body, count = re.subn(pattern, new, body, count=1)
        assert count, body
    assert found(head + body, lowered) == (mistake is not None)
