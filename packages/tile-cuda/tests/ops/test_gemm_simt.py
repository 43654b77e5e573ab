"""``cuda.simt.gemm`` on the interpreter."""

from __future__ import annotations

import pytest

from tile_core.layout import LayoutMap
from tile_core.simt.ops.gemm import grid_of

from .kit import Case, Run, check

TYPES = (
    ("float32", "float32", "float32"), ("bfloat16", "float32", "float32"), ("int16", "int8", "int32"),
    ("int64", "int8", "int64"), ("float16", "float16", "float16"), ("float64", "float32", "float64"),
)  # fmt: skip


@pytest.mark.parametrize("types", TYPES, ids="-".join)
@pytest.mark.parametrize("scopes", ["ssr", "sss"])
def test_types(types: tuple[str, str, str], scopes: str) -> None:
    for turned in ((False, False), (True, True)):
        check(m=32, n=24, k=16, types=types, scopes=scopes, turned=turned, simt=True, threads=64)
        check(m=9, n=11, k=7, types=types, scopes=scopes, turned=turned, simt=True, threads=31)


@pytest.mark.parametrize("threads", [1, 31, 32, 96, 128])
def test_threads(threads: int) -> None:
    for m, n in ((16, 12), (7, 17), (1, 1)):
        check(m=m, n=n, k=9, types=TYPES[0], simt=True, threads=threads, clear=True)
        check(m=m, n=n, k=8, types=TYPES[0], simt=True, threads=threads, corner=(2, 4), margin=(1, 3), scopes="sss")


def test_runtime_clear_and_corner() -> None:
    for limit in (0, 1000):
        run = Run(Case(m=9, n=11, k=16, types=TYPES[0], simt=True, clear=lambda t, limit=limit: t < limit))
        want = run.want - run.data["C"] if limit else run.want
        assert (run.result == want).all()
    check(m=16, n=16, k=16, types=TYPES[0], simt=True, corner=(0, 4), runtime=4)


def test_fragments_of_a_and_b_are_moved_to_shared_memory() -> None:
    run = check(m=16, n=16, k=16, types=TYPES[0], simt=True, scopes="rsr")
    wants = run.variant.layouts(run.call, None)
    assert set(wants) == {0, 2}
    assert isinstance(wants[0], LayoutMap)


def test_the_grid_of_the_usual_tile() -> None:
    g = grid_of(128, 128, 256)
    assert (g.each_m * g.each_n, g.vector) == (64, 4)
