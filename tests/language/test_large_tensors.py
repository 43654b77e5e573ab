"""Every kind of access to global memory, at the end of tensors with more than 2**31 elements, on all targets."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core.language as T

from .large_programs import PROGRAMS, untouched
from .targets import compiled

pytestmark = pytest.mark.sweep(2)

COPIES = {"cuda:sm_80": "cp_async_cg_shared_global_16", "cuda:sm_90a": "tensor_3d"}
"""What copies the tiles of a product, by target."""
TARGETS = ("cpu", "cuda:sm_80", "cuda:sm_90a", "metal", "rocm:gfx942")


@pytest.mark.parametrize("seed", [1])
@pytest.mark.parametrize("sizes", ["constant", "symbolic"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_last_elements_of_a_large_tensor(name: str, target: str, sizes: str, seed: int) -> None:
    program, arguments, results = PROGRAMS[name](np.random.default_rng(seed), sizes == "symbolic")
    kernel = compiled(program, target)
    kernel(*arguments)
    for found, expected in results():
        np.testing.assert_array_equal(found, expected)
    if name == "products" and target != "cpu":
        assert COPIES.get(target, "") in kernel.source


@pytest.mark.parametrize("target", TARGETS)
def test_a_line_of_64_bit_size(target: str) -> None:
    n = T.dynamic("n", "int64")

    @T.prim_func
    def main(A: T.Tensor((n,), "int16"), B: T.Tensor((n,), "int16")):
        with T.Kernel(2, threads=32) as bx:
            for i in T.Parallel(64):
                B[n - 128 + bx * 64 + i] = A[n - 128 + bx * 64 + i] + 1

    a, b = untouched((2**31 + 4096,), "int16"), untouched((2**31 + 4096,), "int16")
    a[-128:] = np.arange(128)
    compiled(main, target)(a, b)
    np.testing.assert_array_equal(b[-130:], [0, 0, *range(1, 129)])


@pytest.mark.parametrize("target", TARGETS[1:])
def test_calls_with_small_arrays_keep_32_bit_offsets(target: str) -> None:
    program, large, results = PROGRAMS["copies"](np.random.default_rng(3), True)
    kernel = compiled(program, target)
    small = [np.ones((128, 128), "int8"), np.zeros((128, 128), "int8")]
    for _ in range(3):
        kernel(*small)
        kernel(*large)
        for found, expected in results():
            np.testing.assert_array_equal(found, expected)
        assert (small[1][-64:, -64:] == 1).all()
    assert "long" not in kernel.source


@pytest.mark.parametrize("target", TARGETS)
def test_a_tensor_at_an_address_is_large(target: str) -> None:
    import tile_core as tile

    @T.prim_func
    def main(P: T.Tensor((1,), T.ptr("int8")), S: T.Tensor((2,), "int32"), B: T.Tensor((64,), "int8")):
        with T.Kernel(1, threads=32):
            A = T.make_tensor(P[0], (S[0], S[1]))
            for i in T.Parallel(64):
                B[i] = A[S[0] - 1, S[1] - 64 + i]

    a = untouched((70000, 65536), "int8")
    a[-1, -64:] = np.arange(64)
    b = np.zeros(64, "int8")
    compiled(main, target)(tile.pointers([a]), np.array([70000, 65536], "int32"), b)
    np.testing.assert_array_equal(b, np.arange(64))
