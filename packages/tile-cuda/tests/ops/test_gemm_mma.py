"""``cuda.mma.sync`` on the interpreter: every type, size, scope, orientation and number of warps."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tile_core.layout import Layout, strided
from tile_core.lowering.variant import Reject

from .kit import Case, Run, check

pytestmark = pytest.mark.sweep(3)

TYPES = (
    ("float16", "float16", "float32"), ("bfloat16", "bfloat16", "float32"), ("tfloat32", "tfloat32", "float32"),
    ("int8", "int8", "int32"), ("uint8", "int8", "int32"), ("uint8", "uint8", "uint32"),
    ("float8_e4m3fn", "float8_e5m2", "float32"), ("float64", "float64", "float64"),
    ("float16", "float16", "float16"), ("bfloat16", "bfloat16", "bfloat16"), ("float8_e4m3fn", "float16", "float32"),
    ("float16", "bfloat16", "float32"), ("float8_e4m3fnuz", "float8_e5m2fnuz", "float32"),
    ("float16", "float32", "float64"), ("bfloat16", "float8_e5m2", "float16"), ("tfloat32", "float16", "float16"),
)  # fmt: skip


TRANSPOSES = [*itertools.product((False, True), repeat=2)]


@pytest.mark.parametrize("types", TYPES, ids="-".join)
@pytest.mark.parametrize("turned", TRANSPOSES)
def test_types(types: tuple[str, str, str], turned: tuple[bool, bool]) -> None:
    check(m=32, n=24, k=64, types=types, turned=turned, threads=64)
    check(m=17, n=9, k=29, types=types, turned=turned, threads=64)


@pytest.mark.parametrize("n", range(24))
def test_sizes(n: int) -> None:
    sizes = (1, 7, 8, 15, 16, 17, 23, 31, 33, 40, 47, 56)
    depths = (1, 2, 7, 8, 9, 15, 16, 17, 24, 31, 33, 48, 80, 96)
    m, columns, k = sizes[n * 5 % 12], sizes[(n * 7 + 3) % 12], depths[(n * 3 + 1) % 14]
    check(
        m=m, n=columns, k=k, types=TYPES[n % 8], threads=(32, 64, 96, 128, 256, 384)[n % 6], policy=n % 3,
        turned=(n % 2 == 1, n // 2 % 2 == 1), seed=n, scopes=("ssr", "rsr", "srr", "rrr", "sss")[n % 5],
    )  # fmt: skip


@pytest.mark.parametrize("k", [8, 16, 24, 48, 80, 96])
@pytest.mark.parametrize("n", [8, 24, 40, 56])
def test_tails_of_k(k: int, n: int) -> None:
    for types in (TYPES[0], TYPES[3]):
        check(m=64, n=n, k=k, types=types, turned=(False, True))
        check(m=64, n=n, k=k, types=types)


@pytest.mark.parametrize("scopes", ["ssr", "rsr", "srr", "rrr", "sss", "rss"])
@pytest.mark.parametrize("types", TYPES[:10:3], ids="-".join)
def test_scopes(scopes: str, types: tuple[str, str, str]) -> None:
    for clear in (False, True, lambda t: t < 1000, lambda t: t > 1000):
        wanted = clear if isinstance(clear, bool) else None
        run = Run(Case(m=24, n=17, k=40, scopes=scopes, types=types, clear=clear, turned=(True, False)))
        if wanted is None:
            cleared = Run(Case(m=24, n=17, k=40, scopes=scopes, types=types, clear=True, turned=(True, False)))
            kept = Run(Case(m=24, n=17, k=40, scopes=scopes, types=types, turned=(True, False)))
            zero = clear(0)
            want = cleared.want if zero else kept.want
            assert (run.result == want).all()
        else:
            assert (run.result == run.want).all()


@pytest.mark.parametrize("warps", [1, 2, 4, 8, 12])
@pytest.mark.parametrize("policy", [0, 1, 2])
def test_warps(warps: int, policy: int) -> None:
    check(m=16, n=104, k=32, threads=32 * warps, policy=policy)
    check(m=96, n=24, k=16, threads=32 * warps, policy=policy, scopes="rsr")
    check(m=40, n=40, k=16, threads=32 * warps + 5 * 32, policy=policy, scopes="srs")


def test_threads_beyond_the_last_warp_have_no_work() -> None:
    run = check(m=32, n=32, k=16, threads=96)
    assert run.answer.note.startswith("mma_sync_aligned_m16n8k16")
    assert isinstance(Run(Case(m=8, n=8, k=8, threads=31)).answer, Reject)


@pytest.mark.parametrize("types", TYPES[:7:2], ids="-".join)
@pytest.mark.parametrize("turned", TRANSPOSES)
def test_tiles_inside_of_larger_buffers(types: tuple[str, str, str], turned: tuple[bool, bool]) -> None:
    check(m=24, n=24, k=32, types=types, turned=turned, corner=(16, 16), margin=(8, 16), stages=3)
    check(m=24, n=20, k=40, types=types, turned=turned, corner=(3, 5), margin=(1, 4), scopes="sss")
    check(m=20, n=20, k=24, types=types, turned=turned, corner=(8, 0), margin=(4, 12), scopes="sss")


@pytest.mark.parametrize("turned", TRANSPOSES)
def test_corners_that_are_known_at_run_time(turned: tuple[bool, bool]) -> None:
    for corner, margin in ((16, 8), (5, 3)):
        check(m=16, n=16, k=32, turned=turned, corner=(0, corner), margin=(0, margin), runtime=corner)
    # Beyond the buffer elements read as zero.
    run = Run(Case(m=16, n=16, k=16, corner=(0, 16), runtime=20, types=TYPES[3]))
    a, b = run.data["A"][:, 20:].astype(int), run.data["B"][:, 20:].astype(int)
    a, b = np.pad(a, ((0, 0), (0, 4))), np.pad(b, ((0, 0), (0, 4)))
    assert (run.result == a @ b + run.data["C"]).all()


def test_instructions_of_the_usual_tile() -> None:
    run = check(m=128, n=128, k=32, threads=128)
    x4 = "ldmatrix_sync_aligned_m8n8_x4"
    mma = "mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32"
    assert run.machine.used == {f"{x4}_shared_b16", f"{x4}_trans_shared_b16", mma}
    run = check(m=128, n=128, k=64, threads=128, turned=(False, True), types=TYPES[3])
    assert run.machine.used == {f"{x4}_shared_b16", "mma_sync_aligned_m16n8k32_row_col_s32_s8_s8_s32"}


def test_fp8_without_instructions_is_converted() -> None:
    for turned in TRANSPOSES:
        run = check(m=24, n=16, k=40, types=("float8_e4m3fn", "float8_e5m2", "float32"), fp8=False, turned=turned)
        assert any("f16_f16" in name for name in run.machine.used)


def test_float32_is_not_rounded() -> None:
    run = Run(Case(m=16, n=8, k=8, types=("float32", "float32", "float32")))
    assert isinstance(run.answer, Reject)
    assert "nearest legal: tfloat32" in run.answer.reason
    check(m=16, n=8, k=8, types=("float32", "float32", "float64"))


def test_an_accumulator_is_the_left_operand_of_the_next_product() -> None:
    """Reuse C's registers as A's with all warps along the rows."""
    first = check(m=64, n=48, k=32, policy=1, threads=128)
    second = check(m=64, n=32, k=48, scopes="rsr", threads=128)
    c = first.placement.fragments[first.views["C"].buffer]
    a = second.placement.fragments[second.views["A"].buffer]
    assert c.same_as(a)


def test_layouts_that_tear_rows_apart_are_read_by_element() -> None:
    torn = Layout((32, 32), lambda i, j: i + 32 * j)
    padded = Layout((32, 32), strided((32, 32), (40, 1)), span=32 * 40)
    odd = Layout((32, 32), strided((32, 32), (33, 1)), span=32 * 33)
    for layout, by_matrix in ((torn, False), (padded, True), (odd, False)):
        run = check(m=32, n=32, k=32, layouts={"A": layout, "B": layout})
        assert any(name.startswith("ldmatrix") for name in run.machine.used) == by_matrix


@pytest.mark.parametrize("k", [272, 300])
def test_a_deep_tile_loops(k: int) -> None:
    for scopes in ("ssr", "rsr"):
        check(m=16, n=16, k=k, scopes=scopes, threads=32)
        check(m=16, n=16, k=k, scopes=scopes, threads=32, types=TYPES[3])


def test_zero_times_infinity_beside_a_tail() -> None:
    case: dict[str, Any] = {"m": 16, "n": 8, "margin": (8, 8), "corner": (0, 0)}
    for k in (8, 12, 16, 20):
        check(k=k, **case)  # elements beside the tile are NaN
