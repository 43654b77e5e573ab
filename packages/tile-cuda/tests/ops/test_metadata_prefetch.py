"""Metadata prefetch from global memory for sparse products: results, conditions, machine code."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core import sparse
from tile_core.dtypes import DTYPES
from tile_cuda import pipeline
from tile_cuda.ops.metadata_prefetch import MetadataPrefetch
from tile_emulator.errors import FaultFound
from tile_runtime.texts.choose import Assumptions

from ..emit.nvrtc import assemble
from .test_gemm_wgmma import NUMPY, TARGET

pytestmark = pytest.mark.sweep(12)

F16 = ("float16", "float32")


def factor(dtype, meta):
    """Elements of K that one of metadata describes."""
    return DTYPES[meta].bits // 4 * (2 if DTYPES[dtype].bits == 32 else 4)


def program(
    m=64, n=64, k=1024, bk=64, types=F16, meta="int16", *, tiles=(64, 64), threads=128, stages=2, turned=False,
    twice=False, first=0, skipped=0, written=False, named=False, copied=False,
):  # fmt: skip
    """A product of tiles; ``skipped`` elements of metadata precede the first iteration."""
    (a_type, c_type), (bm, bn), f = types, tiles, factor(types[0], meta)
    described, part = k // f + skipped, bk // f

    @T.prim_func
    def main(
        A: T.Tensor((m, k // 2), a_type), E: T.Tensor((described, m) if turned else (m, described), meta),
        B: T.Tensor((n, k), a_type), C: T.Tensor((m, n), c_type),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (bx, by):
            A_s = T.alloc_shared((bm, bk // 2), a_type)
            E_s = T.alloc_shared((part, bm) if turned else (bm, part), meta)
            B_s, C_l = T.alloc_shared((bn, bk), a_type), T.alloc_fragment((bm, bn), c_type)
            T.clear(C_l)
            for _ in T.serial(2 if twice else 1):
                for t in T.Pipelined(first, T.ceildiv(k, bk), num_stages=stages):
                    at = t * part + skipped
                    T.copy(A[by * bm, t * bk // 2], A_s)
                    if turned:
                        T.copy(E[at, by * bm], E_s)
                    else:
                        T.copy(E[by * bm, at], E_s)
                    T.copy(B[bx * bn, t * bk], B_s)
                    T.gemm_sp(A_s, E_s, B_s, C_l, transpose_E=turned, transpose_B=True)
                    if written:
                        E[0, 0] = E[0, 0]
                    if copied:
                        T.copy(E_s, E[by * bm, at])
            T.copy(C_l, C[by * bm, bx * bn])

    return main


def compiled(*args, options=None, **how):
    return tile.compile(program(*args, **how), TARGET, runtime="emulator", options=options)


def is_prefetched(kernel):
    return "turn_metadata" in kernel.source


def check(kernel, m, n, k, types=F16, meta="int16", *, first=0, times=1, skipped=0, turned=False):
    """Compare with exact values."""
    rng = np.random.default_rng()
    low = 0 if "uint8" in types else -3
    dense, b = (rng.integers(low, 4, s).astype(NUMPY.get(types[0], types[0])) for s in ((m, k), (n, k)))
    pruned = sparse.prune(dense)
    kept, metadata = sparse.compress(pruned, meta_dtype=meta)
    metadata = np.pad(np.asarray(metadata), ((0, 0), (skipped, 0)), constant_values=0x44)
    out = np.full((m, n), 85, NUMPY.get(types[1], types[1]))
    kernel(kept, np.ascontiguousarray(metadata.T) if turned else metadata, b, out)
    expected = pruned[:, first:].astype(np.float64) @ b[:, first:].astype(np.float64).T
    assert np.array_equal(out.astype(np.float64), times * expected)


_ALWAYS = {"wgmma": "always"}
OPTIONS = [_ALWAYS, *({**_ALWAYS, **more} for more in (
    {"persistent": "always"}, {"tma": "never"}, {"clusters": "always"},
))]  # fmt: skip
TYPES = [F16, ("bfloat16", "float32"), ("int8", "int32"), ("uint8", "int32"), ("float8_e5m2", "float32")]
#: Each type and extent along K with each of the options, and these cycling through the widths of metadata.
CASES = [
    (bk, types, ("int8", "int16", "uint32")[at % 3], options)
    for at, (options, types, bk) in enumerate(product(OPTIONS, TYPES, (64, 128, 256)))
]


@pytest.mark.parametrize(("bk", "types", "meta", "options"), CASES)
def test_types_and_widths(bk, types, meta, options):
    k = 1024 + (256 if bk < 256 else 0)
    given = {**options, **({"numerics": "fast"} if types[0].startswith("float8") else {})}
    kernel = compiled(64, 72, k, bk, types, meta, options=given)
    assert is_prefetched(kernel)
    check(kernel, 64, 72, k, types, meta)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(("m", "n", "k", "tiles", "threads", "bk"), [
    (200, 72, 640, (128, 64), 256, 64), (1, 8, 128, (128, 64), 256, 64), (130, 264, 1920, (128, 128), 256, 64),
    (300, 136, 896, (256, 64), 256, 128), (127, 64, 2048, (64, 64), 128, 256),
])  # fmt: skip
def test_tails_of_rows_columns_and_k(m, n, k, tiles, threads, bk, options):
    kernel = compiled(m, n, k, bk, tiles=tiles, threads=threads, stages=3, options=options)
    assert is_prefetched(kernel)
    check(kernel, m, n, k)


@pytest.mark.parametrize("options", OPTIONS[:3], ids=str)
@pytest.mark.parametrize("bk", [64, 128])
def test_any_trip_count(bk, options):
    kernel = compiled(T.dynamic("m"), 64, T.dynamic("trips") * 128, bk, stages=3, options=options)
    assert is_prefetched(kernel)
    for m, trips in ((64, 0), (65, 1), (1, 2), (64, 3), (130, 4), (64, 5), (128, 9)):
        check(kernel, m, 64, 128 * trips)


@pytest.mark.parametrize("meta", ["int8", "int16", "int32"])
def test_a_k_of_which_nothing_is_known(meta):
    """Select the version of prefetched metadata at the launch, by the alignment of rows."""
    described = factor("float16", meta)
    kernel = compiled(T.dynamic("m"), 64, T.dynamic("k"), 64, meta=meta, stages=3, options=_ALWAYS)
    assert is_prefetched(kernel)
    for m, k in (
        (64, 0),
        (65, 128),
        (70, 64),
        (64, 512),
        (64, 576),
        (3, 1152),
        (64, 9 * described),
        (64, 1024 + described),
    ):
        check(kernel, m, 64, k, meta=meta)


@pytest.mark.sweep(0.25)
def test_rows_that_are_taken_for_aligned_are_found(monkeypatch):
    kernel = compiled(64, 64, T.dynamic("k"), 64, stages=3, options=_ALWAYS)
    check(kernel, 64, 64, 1152)
    monkeypatch.setattr(Assumptions, "hold", lambda self, values: True)
    with pytest.raises(FaultFound, match="E"):
        check(kernel, 64, 64, 576 + 16)


@pytest.mark.sweep(0.25)
def test_a_loop_that_is_entered_again():
    kernel = compiled(k=640, twice=True, stages=3, options=_ALWAYS)
    assert is_prefetched(kernel)
    check(kernel, 64, 64, 640, times=2)


@pytest.mark.sweep(0.25)
def test_a_loop_with_a_nonzero_start():
    kernel = compiled(k=1152, first=2, stages=3, options=_ALWAYS)
    assert is_prefetched(kernel)
    check(kernel, 64, 64, 1152, first=128)


# Conditions of a copy and of a prefetch.
RULES = {
    "rows along K": ({"turned": True}, {}),
    "rows of multiples of 16 bytes": ({"k": 576}, {"k": 640}),
    "a corner at a multiple of 16 bytes": ({"skipped": 4, "k": 960}, {"skipped": 8, "k": 896}),
    "a loop that begins there": ({"first": 1}, {"first": 2}),
    "64 of K or more": ({"bk": 32}, {"bk": 64}),
    "fewer than 512 of K": ({"bk": 512}, {"bk": 256}),
    "instructions of 8 or 16 bits": ({"types": ("tfloat32", "float32"), "bk": 64}, {}),
    "registers": ({"n": 192, "tiles": (256, 192), "threads": 256, "m": 256}, {"n": 128, "tiles": (256, 128),
                                                                           "threads": 256, "m": 256}),
    "without a writer": ({"written": True}, {}),
    "nothing else reads its tile": ({"copied": True}, {}),
    "a product of warpgroups": ({"options": {"wgmma": "never"}}, {}),
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_rules(rule):
    against, within = RULES[rule]
    said = "threads prefetch metadata, 512 of K"
    copied, prefetched = (compiled(**{"options": _ALWAYS, **how}) for how in (against, within))
    assert not is_prefetched(copied)
    assert said not in " ".join(str(copied.explain()).split())
    assert is_prefetched(prefetched)
    assert said in " ".join(str(prefetched.explain()).split())


@pytest.mark.parametrize(
    "how", [{"turned": True}, {"skipped": 4, "k": 960}, {"first": 1}, {"bk": 512}, {"bk": 32}], ids=str
)
def test_results_of_copied_metadata(how):
    kernel = compiled(**how, options=_ALWAYS)
    check(kernel, 64, 64, how.get("k", 1024), first=64 * how.get("first", 0), skipped=how.get("skipped", 0),
          turned=how.get("turned", False))  # fmt: skip


@pytest.mark.parametrize("bk", [64, 128])
def test_metadata_that_the_instructions_of_a_warp_read(bk, monkeypatch):
    """Read metadata word by word where a product has no warpgroup instruction."""
    monkeypatch.setattr(pipeline, "reads_directly", lambda operand, *_: operand.position == 1)
    kernel = compiled(k=1152, bk=bk, stages=3, options={"wgmma": "never", "tma": "never"})
    assert "E_s" not in kernel.source
    check(kernel, 64, 64, 1152)


@pytest.mark.sweep(0.25)
def test_registers_that_are_filled_too_early_are_found(monkeypatch):
    """Find registers of the last iteration filled before the wait of the reading iteration."""
    registers = MetadataPrefetch.registers
    monkeypatch.setattr(MetadataPrefetch, "registers", lambda self, alone, free: registers(self, alone, True))
    kernel = compiled(k=1152, stages=3, options=_ALWAYS)
    with pytest.raises(FaultFound, match="metadata"):
        check(kernel, 64, 64, 1152)


@pytest.mark.parametrize("k", [1024, 1152, "any"])
@pytest.mark.parametrize("options", OPTIONS[:3], ids=str)
def test_the_assembler_lets_products_overlap(k, options):
    size = T.dynamic("trips") * 128 if k == "any" else k
    kernel = tile.compile(program(512, 512, size, 64, tiles=(128, 256), threads=256, stages=4), TARGET, options=options)
    assert is_prefetched(kernel)
    assert assemble(kernel.source, "sm_90a") == ""


@pytest.mark.parametrize(("bk", "groups"), [(64, 8), (128, 4), (256, 2)])
def test_registers_have_a_reader_after_the_wait(bk, groups):
    """Keep registers alive until the wait: the assembler would reuse them after the issue."""
    made = program(k=4 * 512, bk=bk, stages=3)
    text = tile.compile(made, TARGET, options={**_ALWAYS, "persistent": "never"}).source
    each = 8 // groups
    trips = text.split("wgmma_fence_sync_aligned();")[-groups:]
    for group, trip in enumerate(trips):
        issued, behind = trip.split("wgmma_wait_group_sync_aligned_1();")[:2]
        used = {int(n) for n in re.findall(r"&metadata\[(\d)\], \d\)", issued)}
        assert used == set(range(group * each, (group + 1) * each))
        before = (group - 1) % groups * each
        assert behind.lstrip().startswith(f"read_metadata_{each}(&metadata[{before}]);")
        if not group:  # registers of the last iteration are filled when the iteration before has read them
            assert f"metadata[{before}] = metadata_turned[{before}]" in behind
            assert f"metadata[{before}] = " not in issued


def test_few_loads_and_exchanges():
    """Load two chunks and exchange eight words per thread for 512 elements of K."""
    text = compiled(k=2048, stages=3, options={**_ALWAYS, "persistent": "never"}).source
    body = text[text.index('extern "C"') :]
    assert body.count("turn_metadata_b16(&") == 1
    assert body.count("*(const uint4*)&E[") == 4  # before the loop, and in it
    function = text[text.index("void turn_metadata_b16(") :]
    assert function[: function.index("\n}\n")].count("shfl_sync_bfly_b32(") == 8
