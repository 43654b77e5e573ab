"""Programs and operators of several tests: ``y = x * x * w`` with its gradient, in any float type."""

from __future__ import annotations

import functools
import itertools

import torch

import tile_core.language as T
import tile_torch

_numbers = itertools.count()


@functools.cache
def square(N, dtype="float32", block=32):
    m = T.dynamic("m")

    @T.prim_func
    def square_mul(X: T.Tensor((m, N), dtype), w: T.Tensor((N,), dtype), Y: T.Tensor((m, N), dtype)):
        with T.Kernel(T.ceildiv(m, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                Y[bx * block + i, j] = X[bx * block + i, j] * X[bx * block + i, j] * w[j]

    return square_mul


@functools.cache
def square_gradient(N, dtype="float32", block=32):
    m = T.dynamic("m")

    @T.prim_func
    def square_mul_gradient(
        G: T.Tensor((m, N), dtype),
        X: T.Tensor((m, N), dtype),
        w: T.Tensor((N,), dtype),
        DX: T.Tensor((m, N), dtype),
        DW: T.Tensor((m, N), dtype),
    ):
        with T.Kernel(T.ceildiv(m, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                DX[bx * block + i, j] = G[bx * block + i, j] * X[bx * block + i, j] * w[j] * T.cast(2, dtype)
                DW[bx * block + i, j] = G[bx * block + i, j] * X[bx * block + i, j] * X[bx * block + i, j]

    return square_mul_gradient


def name(stem="f"):
    """Return the name of an operator that no other test has."""
    return f"tile_tests::{stem}{next(_numbers)}"


@functools.cache
def operator(N=16, dtype="float32", batch="m"):
    """Return the operator ``x * x * w`` with its gradient."""
    forward = tile_torch.op(name(), square(N, dtype), batch=batch)
    gradient = tile_torch.op(name("g"), square_gradient(N, dtype), batch=batch)

    def backward(ctx, g):
        dx, dw = gradient(g.contiguous(), *ctx.saved_tensors)
        return dx, dw.sum(0)

    forward.register_backward(backward)
    return forward


def reference(x, w):
    return x * x * w


def inputs(m=37, N=16, dtype=torch.float32, requires_grad=False):
    """Return random arguments."""
    return (
        torch.randn(m, N, dtype=dtype, requires_grad=requires_grad),
        torch.randn(N, dtype=dtype, requires_grad=requires_grad),
    )
