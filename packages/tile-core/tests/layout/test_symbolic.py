"""Layout functions of large tensors, decided by calling them with symbols."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.layout import BadLayoutFunction, LayoutCollision, LayoutTooLarge
from tile_core.layout.base import MAX_ENUMERATION
from tile_core.layout.layout import DigitLayout
from tile_core.layout.symbolic import symbolic_layout
from tile_core.layout.table import evaluate, folded
from tile_core.layout.user import Layout

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "row-major": lambda i, j: i * 48 + j,
    "column-major": lambda i, j: j * 24 + i,
    "blocks": lambda i, j: (i // 8, j // 16, i % 8, j % 16),
    "interleaved": lambda i, j: i // 8 * 8 * 48 + j * 8 + i % 8,
    "backwards": lambda i, j: (23 - i, (47 - j) // 6, (47 - j) % 6),
    "twice": lambda i, j: (i // 12, j // 4 % 3, i // 3 % 4, j // 12, i % 3, j % 4),
    "flat": lambda i, j: ((i * 48 + j) // 96, (i * 48 + j) % 96),
    "shifts": lambda i, j: (i >> 2) * 192 + (j << 2) + (i & 3),
    "divmod": lambda i, j: (*divmod(j, 8), i),
    "padding": lambda i, j: i * 50 + j + 7,
    "constant": lambda i, j: (0, i, 3, j),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_symbols_say_what_numbers_say(name: str) -> None:
    found = symbolic_layout((24, 48), FUNCTIONS[name])
    assert isinstance(found, DigitLayout)
    assert found.tables()["memory"] == folded(evaluate((24, 48), FUNCTIONS[name]))


@pytest.mark.parametrize("seed", range(20))
def test_random_cuts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.choice([1, 5, 8, 12, 16, 36], 3))
    cuts = [int(rng.choice([d for d in range(1, n + 1) if n % d == 0])) for n in shape]
    parts = [(d, k) for d in range(3) for k in range(2)]
    order = [parts[k] for k in rng.permutation(6)]

    def function(*c: Any) -> Any:
        return tuple(divmod(c[d], cuts[d])[k] for d, k in order)

    found = symbolic_layout(shape, function)
    assert found is not None
    assert found.tables()["memory"] == folded(evaluate(shape, function))


@pytest.mark.parametrize(
    "function",
    [
        lambda i, j: i * 48 + (j if i < 8 else 47 - j),
        lambda i, j: i * 48 + (j ^ 1),
        lambda i, j: (i * 3 // 2) * 48 + j,
        lambda i, j: (i // 7, j, i % 7),
        lambda i, j: (i + j) % 24 * 48 + j,
        lambda i, j: i * 48 + j if isinstance(i, int) else i * 96 + j * 2,
        lambda i, j: "nothing",
        lambda i, j: i & 5,
        lambda i, j: i // 0,
        lambda i, j: i * 0.5,
        lambda i, j: j - i * j,
        lambda i, j: (i == 3) * 48 + j,
    ],
)
def test_what_is_no_sum_of_digits(function: Callable[..., Any]) -> None:
    assert symbolic_layout((24, 48), function) is None


def test_errors_of_large_layouts() -> None:
    shape = (4096, 1024)
    assert shape[0] * shape[1] > MAX_ENUMERATION
    with pytest.raises(BadLayoutFunction, match=r"\(4095, 0\).*-4095"):
        Layout(shape, lambda i, j: j - i)
    with pytest.raises(LayoutCollision):
        Layout(shape, lambda i, j: (i // 8, j))
    with pytest.raises(LayoutTooLarge):
        Layout(shape, lambda i, j: i * 1024 + j if i else j)


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", "metal"])
def test_a_kernel_reads_a_large_tensor(target: str) -> None:
    n = 1040

    @T.prim_func
    def rows(A: T.Tensor((n, n), "int32"), B: T.Tensor((13, n), "int32")):
        with T.Kernel(T.ceildiv(n, 128), threads=64) as bx:
            T.annotate_layout({A: T.Layout(A.shape, lambda i, j: (i // 8, j // 4, i % 8, j % 4))})
            for i, j in T.Parallel(13, 128):
                if bx * 128 + j < n:
                    B[i, bx * 128 + j] = A[i * 80 + 3, bx * 128 + j]

    a = np.arange(n * n, dtype=np.int32).reshape(n // 8, n // 4, 8, 4)
    how = {} if target == "cpu" else {"runtime": "emulator"}
    b = tile.compile(rows, target, out_idx=1, **how)(a.reshape(n, n))
    np.testing.assert_array_equal(b, a.transpose(0, 2, 1, 3).reshape(n, n)[3::80])
