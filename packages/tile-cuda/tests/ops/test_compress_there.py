"""``sparse.compress`` in device memory, under the emulator, and tiles read across their rows."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core import sparse
from tile_core.errors.sparse import BadSparseDType, BadSparseExtent, NotAMatrix
from tile_core.sparse.device import compress_there
from tile_runtime.calls.arrays import facts_of

CASES = [
    ("float16", "int16", (5, 48)), ("bfloat16", "int8", (33, 40)), ("int8", "int32", (37, 96)),
    ("int8", "int8", (3, 24)), ("float8_e4m3fn", "int16", (7, 48)), ("float32", "int16", (7, 24)),
    ("float16", None, (64, 256)), ("int8", None, (1, 32)),
]  # fmt: skip


def on_emulator(a, meta=None, dtype=None, checked=True):
    return compress_there(a, facts_of(a), meta, dtype, checked, "cuda:sm_80", "emulator")


@pytest.mark.sweep(3)
@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize(("dtype", "meta", "shape"), CASES)
def test_same_as_on_the_host(dtype, meta, shape, checked):
    a = sparse.randn_semi_sparse(shape, dtype, seed=np.random.default_rng().integers(1 << 30))
    a.reshape(-1)[0] = 0
    if dtype in ("float16", "float32"):
        a.reshape(-1)[::16] *= -1  # zeros with a sign among them, which are lost
    values, codes, refused = on_emulator(a, meta, checked=checked)
    expected, right = sparse.compress(a, meta_dtype=meta)
    assert values.dtype == expected.dtype
    assert values.tobytes() == expected.tobytes()
    assert (codes.dtype, codes.shape, codes.tobytes()) == (right.dtype, right.shape, right.tobytes())
    assert not refused


def test_groups_with_too_many():
    """Report a group of all ones, wherever it is, in the checking kernel only."""
    for at in ((0, 0), (2, 44), (4, 20)):
        a = sparse.randn_semi_sparse((5, 48), "float16", seed=1)
        a[at[0], at[1] : at[1] + 4] = 1
        assert on_emulator(a)[2]
        assert not on_emulator(a, checked=False)[2]


def test_codes_in_integers():
    a = sparse.randn_semi_sparse((8, 32), "float8_e5m2", seed=2)
    codes = a.view("uint8")
    values, meta, refused = on_emulator(codes, dtype="float8_e5m2")
    expected, right = sparse.compress(codes, dtype="float8_e5m2")
    assert not refused
    assert (values == expected).all()
    assert (meta == right).all()


def test_refusals():
    with pytest.raises(NotAMatrix, match="3 dimensions"):
        on_emulator(np.zeros((2, 4, 16), "float16"))
    with pytest.raises(NotAMatrix, match="empty"):
        on_emulator(np.zeros((0, 16), "float16"))
    with pytest.raises(BadSparseDType):
        on_emulator(np.zeros((4, 16), "float64"))
    with pytest.raises(BadSparseExtent):
        on_emulator(np.zeros((4, 24), "float16"))


@pytest.mark.sweep(3)
@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (61, 64), (64, 37), (100, 129)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
def test_transposed_through_a_swizzled_tile(rows, columns, dtype):
    @T.prim_func
    def main(X: T.Tensor((rows, columns), dtype), Y: T.Tensor((columns, rows), dtype)):
        with T.Kernel(T.ceildiv(columns, 64), T.ceildiv(rows, 64), threads=128) as (bx, by):
            x = T.alloc_shared((64, 64), dtype)
            T.copy(X[by * 64, bx * 64], x)
            for i, j in T.Parallel(64, 64):
                Y[bx * 64 + i, by * 64 + j] = x[j, i]

    kernel = tile.compile(main, target="cuda:sm_80", out_idx=-1, runtime="emulator")
    x = np.random.default_rng().integers(-50, 50, (rows, columns)).astype(dtype)
    assert (kernel(x) == x.T).all()
    if rows == columns == 64:
        assert "of the turns of a row-major tile" in kernel.explain()
