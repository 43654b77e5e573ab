"""``T.fp8_scaled_matmul``: every pair of codes, every form of scale, every scope, and what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.dtypes import dtype as to_dtype
from tile_core.errors.ops import Fp8Operand, ScaleShape
from tile_core.numerics import codecs

pytestmark = pytest.mark.sweep(5)

FORMATS = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"]


@pytest.mark.parametrize(("a_format", "b_format"), list(itertools.product(FORMATS, FORMATS)))
def test_every_pair_of_codes(a_format: str, b_format: str) -> None:
    """All 65,536 products of one element by one element, from ``uint8`` storage."""

    @T.prim_func
    def outer(
        A: T.Tensor((256, 1), "uint8"),
        B: T.Tensor((1, 256), "uint8"),
        S: T.Tensor((1,), "float32"),
        C: T.Tensor((256, 256), "float32"),
    ):
        with T.Kernel(1, threads=128):
            T.fp8_scaled_matmul(A, S, B, S, C, A_format=a_format, B_format=b_format)

    codes = np.arange(256, dtype=np.uint8)
    c = np.zeros((256, 256), np.float32)
    tile.compile(outer, target="cpu")(codes[:, None], codes[None], np.ones(1, np.float32), c)
    a, b = (codecs.decode(codes, f).astype(np.float64) for f in (a_format, b_format))
    with np.errstate(all="ignore"):
        want = (a[:, None] * b[None] + 0.0).astype(np.float32)
    assert np.array_equal(c, want, equal_nan=True)


def kernel(
    m: int, n: int, k: int, scales: tuple[Any, Any], *, out: str = "float32", scale: str = "float32",
    trans: bool = False, staged: bool = True,
) -> Any:  # fmt: skip
    b_shape = (n, k) if trans else (k, n)

    @T.prim_func
    def matmul(
        A: T.Tensor((m, k), "float8_e4m3fn"),
        SA: T.Tensor(scales[0], scale),
        B: T.Tensor(b_shape, "float8_e5m2"),
        SB: T.Tensor(scales[1], scale),
        C: T.Tensor((m, n), out),
    ):
        with T.Kernel(1, threads=128):
            if staged:
                A_s = T.alloc_shared((m, k), "float8_e4m3fn")
                B_s = T.alloc_shared(b_shape, "float8_e5m2")
                T.copy(A, A_s)
                T.copy(B, B_s)
                T.fp8_scaled_matmul(A_s, SA, B_s, SB, C, trans)
            else:
                T.fp8_scaled_matmul(A, SA, B, SB, C, trans)

    return matmul


def inputs(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return rng.integers(-4, 5, shape).astype(to_dtype(dtype).numpy())


@pytest.mark.parametrize("kind", ["tensor", "row", "block", "mixed"])
@pytest.mark.parametrize("staged", [True, False])
@pytest.mark.parametrize(
    ("m", "n", "k"), [(16, 24, 64), (7, 9, 96), (1, 33, 128), (33, 1, 64), (5, 6, 224), (8, 8, 400)]
)
def test_scales(kind: str, staged: bool, m: int, n: int, k: int) -> None:
    trans, block = m % 2 == 1, 200 if k == 400 else 32
    per_block = (n, k // block) if trans else (k // block, n)
    shapes = {
        "tensor": ((1,), (1,)), "row": ((m,), (n,)), "block": ((m, k // block), per_block), "mixed": ((1,), per_block),
    }[kind]  # fmt: skip
    rng = np.random.default_rng(m * 100 + n)
    a, b = inputs(rng, (m, k), "float8_e4m3fn"), inputs(rng, (n, k) if trans else (k, n), "float8_e5m2")
    sa, sb = (2.0 ** rng.integers(-3, 4, s).astype(np.float32) for s in shapes)
    c = np.full((m, n), np.nan, np.float32)
    tile.compile(kernel(m, n, k, shapes, trans=trans, staged=staged), target="cpu")(a, sa, b, sb, c)
    left, right = a.astype(np.float64), b.astype(np.float64)
    left = left * (np.repeat(sa, block, 1) if kind == "block" else sa[:, None] if kind == "row" else sa)
    right = right.T if trans else right
    if kind in ("block", "mixed"):
        right = right * np.repeat(sb.T if trans else sb, block, 0)
    else:
        right = right * (sb[None] if kind == "row" else sb)
    assert np.array_equal(c, left @ right)


@pytest.mark.parametrize("out", ["float32", "float16", "bfloat16"])
def test_e8m0_block_scales_and_output_types(out: str) -> None:
    m, n, k, block = 8, 16, 128, 32
    rng = np.random.default_rng(5)
    a, b = inputs(rng, (m, k), "float8_e4m3fn"), inputs(rng, (k, n), "float8_e5m2")
    e8m0 = to_dtype("float8_e8m0fnu").numpy()
    sa, sb = (2.0 ** rng.integers(-3, 4, s) for s in ((m, k // block), (k // block, n)))
    c = np.full((m, n), 7, to_dtype(out).numpy())
    program = kernel(m, n, k, (sa.shape, sb.shape), scale="float8_e8m0fnu", out=out)
    tile.compile(program, target="cpu")(a, sa.astype(e8m0), b, sb.astype(e8m0), c)
    want = (a.astype(np.float64) * np.repeat(sa, block, 1)) @ (b.astype(np.float64) * np.repeat(sb, block, 0))
    assert np.array_equal(c.astype(np.float64), want.astype(c.dtype).astype(np.float64))


@pytest.mark.parametrize("powers", [(120, 10), (-120, -36), (-110, 100)])
@pytest.mark.parametrize("blocked", [True, False])
def test_products_of_powers_of_two_are_exact(powers: tuple[int, int], blocked: bool) -> None:
    """They may leave float32 though the result does not."""
    m, n, k = 4, 8, 64
    shift = (-8, -16) if sum(powers) > 100 else (6, 12) if sum(powers) < -100 else (0, 0)
    rng = np.random.default_rng(7)
    a, b = (
        (rng.integers(-1, 2, shape) * 2.0**s).astype(to_dtype(dtype).numpy())
        for shape, dtype, s in (((m, k), "float8_e4m3fn", shift[0]), ((k, n), "float8_e5m2", shift[1]))
    )
    shapes = ((m, 2), (2, n)) if blocked else ((1,), (n,))
    e8m0 = to_dtype("float8_e8m0fnu").numpy()
    sa, sb = (np.full(shape, 2.0**power).astype(e8m0) for shape, power in zip(shapes, powers, strict=True))
    c = np.full((m, n), 7, np.float32)
    tile.compile(kernel(m, n, k, shapes, scale="float8_e8m0fnu"), target="cpu")(a, sa, b, sb, c)
    assert np.array_equal(c, (a.astype(np.float64) @ b.astype(np.float64)) * 2.0 ** sum(powers))


@pytest.mark.parametrize("scale", [0.0, np.inf, -np.inf, np.nan])
def test_scales_that_are_no_ordinary_numbers(scale: float) -> None:
    m, n, k = 4, 5, 32
    rng = np.random.default_rng(6)
    a, b = inputs(rng, (m, k), "float8_e4m3fn"), inputs(rng, (k, n), "float8_e5m2")
    sa, sb = np.full(1, scale, np.float32), np.ones(1, np.float32)
    c = np.full((m, n), 7, np.float32)
    tile.compile(kernel(m, n, k, ((1,), (1,))), target="cpu")(a, sa, b, sb, c)
    with np.errstate(all="ignore"):
        want = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32) * np.float32(scale)
    assert np.array_equal(c, want, equal_nan=True)


@pytest.mark.parametrize("wrong", ["float16", "uint8", "int8", "float32"])
def test_other_operand_types_are_refused_as_type_errors_while_tracing(wrong: str) -> None:
    with pytest.raises(Fp8Operand) as refused:

        @T.prim_func
        def matmul(A: T.Tensor((8, 32), wrong), B: T.Tensor((32, 8), "float8_e5m2"), S: T.Tensor((1,), "float32")):
            with T.Kernel(1, threads=128):
                c = T.alloc_fragment((8, 8), "float32")
                T.fp8_scaled_matmul(A, S, B, S, c)  # here

    assert isinstance(refused.value, TypeError)
    assert refused.value.code == "K222"
    assert f"A has element type {wrong}" in str(refused.value)
    assert ("A_format=" in str(refused.value)) == (wrong == "uint8")
    assert refused.value.where is not None
    assert refused.value.where.source.endswith("# here")


@pytest.mark.parametrize("shapes", [((3,), (1,)), ((8, 3), (1,)), ((8, 2), (4, 8)), ((2, 2, 2), (1,))])
def test_scales_of_other_shapes_are_refused(shapes: tuple[Any, Any]) -> None:
    with pytest.raises(ScaleShape) as refused:
        kernel(8, 8, 64, shapes)
    assert refused.value.code == "K223"
    assert "has shape" in str(refused.value)
