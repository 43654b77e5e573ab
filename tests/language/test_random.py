"""Random numbers are bit-identical on every target, with the right distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core.language as T
from tile_core.errors.language import NoGenerator

from .targets import TARGETS, compiled


def numbers(count: int) -> Any:
    @T.prim_func
    def main(
        seed: T.int64, W: T.Tensor((count, 4), "uint32"), U: T.Tensor((count,), "float32"),
        N: T.Tensor((2, count), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(count, 96), threads=64) as bx:
            for t in T.Parallel(96):
                i = bx * 96 + t
                w = T.philox(seed, i, 5)
                for j in T.static_range(4):
                    W[i, j] = w[j]
                U[i] = T.uniform_of(w[0])
                a, b = T.normal_of(w[1], w[2])
                N[0, i] = a
                N[1, i] = b

    return main


def drawn(count: int, seed: int, target: str) -> list[Any]:
    kinds = {"W": ((count, 4), "uint32"), "U": ((count,), "float32"), "N": ((2, count), "float32")}
    out = [np.full(shape, 0xFF, dtype) for shape, dtype in kinds.values()]
    compiled(numbers(count), target, options={"numerics": "strict"})(seed, *out)
    return out


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", [t for t in TARGETS if t != "cpu"])
def test_bits_are_those_of_the_processor(target: str) -> None:
    seed = int(np.random.default_rng().integers(-(2**63), 2**63))
    for here, there in zip(drawn(1001, seed, "cpu"), drawn(1001, seed, target), strict=True):
        np.testing.assert_array_equal(here.view(np.uint32), there.view(np.uint32))


@pytest.mark.sweep(0.25)
def test_distributions() -> None:
    """Moments, extremes and the correlation of neighbours, within six standard errors."""
    count = 200_000
    words, uniform, normal = drawn(count, int(np.random.default_rng().integers(0, 2**31)), "cpu")
    error = 6 / np.sqrt(count)
    assert abs(uniform.mean() - 0.5) < 0.29 * error
    assert abs(uniform.var() - 1 / 12) < 0.075 * error
    assert 0 < uniform.min() < 1e-3
    assert 1 - 1e-3 < uniform.max() < 1
    for z in normal.astype(np.float64):
        assert abs(z.mean()) < error
        assert abs(z.var() - 1) < 1.5 * error
        assert abs((z**3).mean()) < 4 * error
        assert abs((z**4).mean() - 3) < 10 * error
        assert 3.5 < np.abs(z).max() < 6
        assert abs((z[1:] * z[:-1]).mean()) < error
    assert abs((normal[0].astype(np.float64) * normal[1]).mean()) < error
    bits = (words[:, :, None] >> np.arange(32, dtype=np.uint32)) & 1
    assert np.abs(bits.mean(0) - 0.5).max() < 0.5 * error


def test_a_closed_block_ends_its_sequence() -> None:
    with pytest.raises(NoGenerator) as caught:

        @T.prim_func
        def main(B: T.Tensor((4,), "uint32")):
            with T.Kernel(1, threads=32):
                for k in T.serial(2):
                    T.rng_init(1, k)
                    B[k] = T.rng_rand()
                B[3] = T.rng_rand()

    assert caught.value.code == "K149"
    assert "T.rng_init(seed, seq) before it" in str(caught.value)
