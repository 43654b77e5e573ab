"""Every kind of access to global memory, at the end of tensors with more than 2**31 elements, on all targets."""

from __future__ import annotations

import numpy as np
import pytest

from .large_programs import PROGRAMS
from .targets import compiled

pytestmark = pytest.mark.sweep(2)

COPIES = {"cuda:sm_80": "cp_async_cg_16", "cuda:sm_90a": "tensor_3d"}
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
