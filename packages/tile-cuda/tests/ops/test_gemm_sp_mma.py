"""``cuda.mma.sp`` on the interpreter: every type, width of metadata, orientation and tail of K."""

from __future__ import annotations

import itertools

import pytest

from tile_core.dtypes import DTYPES
from tile_core.lowering.variant import Reject
from tile_core.sparse.layouts import make_metadata_layout

from .kit import Case, Run, check

pytestmark = pytest.mark.sweep(6)

TYPES = (
    ("float16", "float16", "float32"), ("bfloat16", "bfloat16", "float32"), ("tfloat32", "tfloat32", "float32"),
    ("int8", "int8", "int32"), ("uint8", "int8", "uint32"), ("float8_e4m3fn", "float8_e5m2", "float32"),
    ("float16", "float8_e4m3fn", "float16"), ("tfloat32", "bfloat16", "float32"),
    ("float8_e4m3fnuz", "float8_e5m2", "bfloat16"),
)  # fmt: skip


def unit(dtype: str, meta: str) -> int:
    """Elements of K that an element of metadata describes."""
    return DTYPES[meta].bits // 4 * (2 if DTYPES[dtype].bits == 32 else 4)


@pytest.mark.parametrize("types", TYPES, ids="-".join)
@pytest.mark.parametrize("meta", ["int8", "int16", "uint32"])
def test_types(types: tuple[str, str, str], meta: str) -> None:
    check(m=32, n=24, k=64, types=types, meta=meta, threads=64)
    for turned in itertools.product((False, True), repeat=3):
        k = 3 * unit(types[0], meta)
        check(m=17, n=9, k=k, types=types, meta=meta, turned=turned[:2], turned_e=turned[2], threads=64)


@pytest.mark.parametrize("n", range(16))
def test_sizes(n: int) -> None:
    sizes = (1, 7, 8, 15, 16, 17, 33, 40, 63)
    types, meta = TYPES[n % 6], ("int8", "int16", "int32")[n % 3]
    check(
        m=sizes[n * 5 % 9], n=sizes[(n * 7 + 3) % 9], k=(n % 8 + 1) * unit(types[0], meta), types=types, meta=meta,
        threads=(32, 64, 96, 128, 256)[n % 5], policy=n % 3, turned=(n % 2 == 1, n // 2 % 2 == 1), seed=n,
        turned_e=n % 4 == 1, scopes=("ssr", "rsr", "srr", "rrr", "sss")[n % 5], clear=n % 7 == 0,
    )  # fmt: skip


@pytest.mark.parametrize("types", TYPES[:6], ids="-".join)
def test_tails_of_k(types: tuple[str, str, str]) -> None:
    for count in range(1, 14):
        check(m=16, n=8, k=count * unit(types[0], "int8"), types=types, meta="int8", threads=32, seed=count)


@pytest.mark.parametrize("types", TYPES[:6], ids="-".join)
@pytest.mark.parametrize("kind", ["cutlass_sm80", "cutlass_sm90"])
def test_metadata_in_other_orders(types: tuple[str, str, str], kind: str) -> None:
    meta = "uint8" if kind == "cutlass_sm90" else "int32" if DTYPES[types[0]].bits == 8 else "int16"
    layout = make_metadata_layout((64, 128 // unit(types[0], meta)), meta, kind, types[0], 128)
    check(m=64, n=16, k=128, types=types, meta=meta, layouts={"E": layout})


def test_instructions_of_the_usual_tile() -> None:
    run = check(m=128, n=128, k=64, meta="int16", threads=128)
    x4 = "ldmatrix_sync_aligned_m8n8_x4"
    mma = "mma_sp_ordered_metadata_sync_aligned_m16n8k32_row_col_f32_f16_f16_f32"
    assert run.machine.used == {f"{x4}_shared_b16", f"{x4}_trans_shared_b16", f"{mma}_0", f"{mma}_1"}
    assert "m16n8k32" in run.answer.note


@pytest.mark.parametrize("types", TYPES, ids="-".join)
def test_metadata_along_k_is_read_by_matrices(types: tuple[str, str, str]) -> None:
    group = 4 * unit(types[0], "int16")
    for m, threads, per in (
        (8, 32, {1}),
        (16, 32, {1}),
        (40, 32, {2, 1}),
        (64, 32, {4}),
        (128, 128, {2}),
        (112, 32, {4, 2, 1}),
    ):
        run = check(m=m, n=16, k=group, types=types, meta="int16", threads=threads, turned_e=True, policy=1, seed=m)
        loads = {n for n in run.machine.used if n.startswith("ldmatrix") and "trans" in n}
        assert {f"ldmatrix_sync_aligned_m8n8_x{x}_trans_shared_b16" for x in per} <= loads
    for count in range(1, 14):  # the last group may be read by element
        check(
            m=40,
            n=8,
            k=count * unit(types[0], "int16"),
            types=types,
            meta="int16",
            threads=64,
            turned_e=True,
            seed=count,
        )
    for m in (1, 9, 36):  # no whole rows of matrices
        check(m=m, n=8, k=group, types=types, meta="int16", threads=32, turned_e=True)


@pytest.mark.parametrize("types", TYPES, ids="-".join)
@pytest.mark.parametrize("scopes", ["ssr", "rsr", "rrr", "sss"])
def test_two_groups_of_metadata_are_read_by_matrices(types: tuple[str, str, str], scopes: str) -> None:
    both = 8 * unit(types[0], "int16")
    wide = DTYPES[types[0]].bits == 8 and "8" in types[1] and types[2] != "bfloat16"
    for m, threads in ((16, 32), (41, 64), (64, 32)):
        run = check(m=m, n=16, k=both, types=types, meta="int16", threads=threads, policy=1, scopes=scopes, seed=m)
        found = {n for n in run.machine.used if n.startswith("ldmatrix") and "trans" not in n}
        assert found or wide or scopes[:2] == "rr"
    for count in (1, 2, 3, 5):
        k = count * both // 2
        check(m=24, n=9, k=k, types=types, meta="int16", threads=32, scopes=scopes, seed=count)
        check(m=24, n=8, k=k, types=types, meta="int16", corner=(16, 16), margin=(8, 16), stages=2, scopes=scopes)


@pytest.mark.parametrize("stages", [0, 2, 3])
@pytest.mark.parametrize("types", TYPES[:6], ids="-".join)
def test_metadata_along_k_in_pipelines_and_larger_buffers(types: tuple[str, str, str], stages: int) -> None:
    group = 4 * unit(types[0], "int16")
    for corner, margin in (((0, 0), (0, 0)), ((16, 16), (8, 16)), ((3, 5), (1, 4))):
        for k in (group, 2 * group, 3 * group // 2):
            check(
                m=64,
                n=24,
                k=k,
                types=types,
                meta="int16",
                turned_e=True,
                corner=corner,
                margin=margin,
                stages=stages,
                threads=64,
            )


def test_a_tail_uses_the_small_shape_with_its_selector() -> None:
    run = check(m=16, n=8, k=48, meta="int16", threads=32)
    head = "mma_sp_ordered_metadata_sync_aligned"
    found = {name for name in run.machine.used if name.startswith("mma")}
    assert found == {f"{head}_m16n8k32_row_col_f32_f16_f16_f32_0", f"{head}_m16n8k16_row_col_f32_f16_f16_f32_2"}


def test_fp8_without_instructions_is_converted() -> None:
    for turned in itertools.product((False, True), repeat=2):
        types = ("float8_e4m3fn", "float8_e5m2", "float32")
        run = check(m=24, n=16, k=96, types=types, meta="int8", fp8=False, turned=turned)
        assert any("f16_f16" in name for name in run.machine.used)


def test_rejection_reasons() -> None:
    for types in (("float32", "float32", "float32"), ("float16", "tfloat32", "float32"), ("int8", "int8", "int64")):
        assert isinstance(Run(Case(m=16, n=8, k=32, types=types, meta="int8")).answer, Reject)


def test_tiles_inside_of_larger_buffers() -> None:
    for turned in itertools.product((False, True), repeat=2):
        check(m=24, n=24, k=64, meta="int16", turned=turned, corner=(16, 16), margin=(8, 16), stages=2)
        check(m=24, n=24, k=32, meta="int16", turned=turned, corner=(3, 5), margin=(1, 4), scopes="sss")
        check(m=24, n=24, k=64, meta="int16", turned=turned, corner=(0, 5), margin=(0, 3), runtime=5)
