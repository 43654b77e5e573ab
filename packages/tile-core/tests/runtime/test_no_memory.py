"""Test that tensors without enough memory are refused by every runtime (K425)."""

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.launch import UnsupportedArray

torch = pytest.importorskip("torch")


@T.prim_func
def double(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
    with T.Kernel(1):
        for i in T.Parallel(8):
            B[i] = A[i] * T.float32(2)


@pytest.fixture(scope="module")
def kernel():
    return tile.compile(double, "cpu", out_idx=-1)


def resized(size):
    tensor = torch.ones(8)
    tensor.untyped_storage().resize_(size)
    return tensor


def fake(_):
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode().from_tensor(torch.ones(8))


CALLS = {
    "freed": lambda k: k(resized(0)),
    "smaller than it says": lambda k: k(resized(16)),
    "vmap": lambda k: torch.vmap(k)(torch.ones(3, 8)),
    "a gradient": lambda k: torch.func.grad(lambda x: k(x).sum())(torch.ones(8)),
    "a derivative": lambda k: torch.func.jvp(k, (torch.ones(8),), (torch.ones(8),)),
    "functionalised": lambda k: torch.func.functionalize(k)(torch.ones(8)),
    "nested": lambda k: k(torch.nested.nested_tensor([torch.ones(4), torch.ones(4)])),
    "jagged": lambda k: k(torch.nested.nested_tensor([torch.ones(4), torch.ones(4)], layout=torch.jagged)),
    "fake": lambda k: k(fake(k)),
    "meta": lambda k: k(torch.ones(8, device="meta")),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_no_memory(kernel, name):
    fresh = tile.compile(double, "cpu", out_idx=-1)
    with pytest.raises(UnsupportedArray, match="K425"):
        CALLS[name](fresh)
    np.testing.assert_array_equal(fresh(torch.ones(8)), np.full(8, 2, "float32"))


@pytest.mark.parametrize("name", [name for name in CALLS if name != "smaller than it says"])
@pytest.mark.filterwarnings("ignore")
def test_no_memory_where_others_had_some(kernel, name):
    """Calls of a form that was seen before are checked for what can change between them."""
    for _ in range(5):
        kernel(torch.ones(8))
    with pytest.raises(UnsupportedArray, match="K425"):
        CALLS[name](kernel)


def test_views_of_storages_that_are_large_enough(kernel):
    base = torch.arange(20, dtype=torch.float32)
    np.testing.assert_array_equal(kernel(base[12:]), 2 * np.arange(12, 20, dtype="float32"))


@pytest.mark.filterwarnings("ignore")
def test_in_a_compiled_function(kernel):
    compiled = torch.compile(lambda x: kernel(x) + 1, backend="eager")
    np.testing.assert_array_equal(compiled(torch.ones(8)), np.full(8, 3, "float32"))
