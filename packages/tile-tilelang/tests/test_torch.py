"""Tensors of torch: large ones where no kernel is launched, and results of kernels without arrays."""

from __future__ import annotations

import pytest

import tile_tilelang as tilelang
import tile_tilelang.language as T
from tile_tilelang.host_tensors import in_host_memory

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("rank", [1, 2])
def test_large_tensors_have_no_elements_where_no_kernel_is_launched(rank: int) -> None:
    if torch.cuda.is_available():
        pytest.skip("torch has a device")
    with in_host_memory(computed=False):
        large = torch.randn(8, 1 << 10, 1 << 10, device="cuda", dtype=torch.float16).requires_grad_()
        assert large.is_leaf
        assert torch.randn_like(large).is_leaf
        scores = torch.softmax(large.float() @ large.float().transpose(1, 2), -1)
        most, where = scores.max(-1)
        assert (most.shape, where.dtype) == ((8, 1 << 10), torch.int64)
        (scores @ large.float()).half().backward(torch.randn_like(large))
        assert large.grad.shape == large.shape
        written = torch.zeros(rank, 1 << 20)
        written[0] = 1
        written.add_(1)
        assert not written.any()
        assert written.t().stride() == (1, 1 << 20)
        results = torch.zeros(1 << 10, 1 << 10)
        results[:] = large[0].float()
        assert results.requires_grad
        assert torch.arange(5).cuda().sum() == 10
        assert torch.cat([written, written]).shape == (2 * rank, 1 << 20)
        written.unsqueeze_(0)
        assert written.dim() == 3


def test_results_of_kernels_without_arrays_are_tensors() -> None:
    @tilelang.jit(target="cpu")
    def counted(n, dtype="bfloat16"):
        A, B = T.empty((n,), dtype), T.empty((2, n), "int32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                A[i], B[0, i], B[1, i] = i, i, -i
        return A, B

    a, b = counted(7)
    assert a.dtype == torch.bfloat16
    assert a.tolist() == b[0].tolist() == [*range(7)]

    @T.prim_func
    def kernel(n: T.int32, A: T.Tensor((5,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(5):
                A[i] = n

    assert torch.equal(tilelang.compile(kernel, out_idx=[1], target="cpu")(3), torch.full((5,), 3.0))
