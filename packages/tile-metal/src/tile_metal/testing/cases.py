"""List the 40 kernels of the self-test, with references and functions of MLX."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

import tile_core.language as T
from tile_core.records import dataclass
from tile_metal.testing import kernels

if TYPE_CHECKING:
    from tile_core.ir.program import Program

Array = Any

UNITS = {"float32": 2.0**-18, "float16": 2.0**-9, "bfloat16": 2.0**-6}
"""Tolerances, relative to the largest element of a result: two units of a 16-bit type, additions in another order."""

LETTERS = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}


@dataclass(frozen=True)
class Case:
    """A kernel of the self-test.

    Attributes
    ----------
    name
        Kind, element type and sizes.
    make
        Returns the program; its last parameter is the result.
    shapes
        Of the arguments, all of the same element type, except for a last one of row numbers.
    dtype
        Of arguments and result.
    reference
        Returns the result from arguments of float64.
    theirs
        Returns the result by ``mlx.core`` and its arrays.
    indices
        The number of rows that a last argument selects among; 0 without one.
    """

    name: str
    make: Callable[[], Program]
    shapes: tuple[tuple[int, ...], ...]
    dtype: str
    reference: Callable[..., Array]
    theirs: Callable[..., Array]
    indices: int = 0

    def arguments(self, seed: int = 0) -> list[Array]:
        """Return random arguments."""
        rng = np.random.default_rng(seed)
        kind = np.dtype(getattr(ml_dtypes, self.dtype, self.dtype))
        made = [rng.standard_normal(shape, "float32").astype(kind) for shape in self.shapes]
        if self.indices:
            made[-1] = rng.integers(0, self.indices, self.shapes[-1]).astype("int32")
        return made

    def wrong(self, found: Array, arguments: Sequence[Array]) -> str:
        """Return how a result differs from the reference, or an empty text."""
        wide = [x if x.dtype == np.int32 else x.astype("float64") for x in arguments]
        expected = np.asarray(self.reference(*wide))
        if found.shape != expected.shape:
            return f"its shape is {found.shape}, not {expected.shape}"
        off = np.abs(found.astype("float64") - expected)
        allowed = UNITS[self.dtype] * float(np.abs(expected).max(initial=1e-30))
        bad = ~(off <= allowed)  # NaN too
        if not bad.any():
            return ""
        return f"{int(bad.sum())} of {bad.size} elements differ by up to {np.nanmax(off):.3g}, {allowed:.3g} is allowed"


def cases(small: bool = False) -> tuple[Case, ...]:
    """Return all cases, with small sizes for the emulator."""
    return (*_products(small), *_attention(small), *_rows(small), *_elements(small), *_memory(small))


def _products(small: bool) -> Iterator[Case]:
    kinds: list[tuple[str, tuple[int, int, int], dict[str, bool]]] = [
        (dtype, (n, n, n), {}) for dtype in UNITS for n in ((40, 64, 72) if small else (256, 1024, 2048))
    ]
    one = (48, 40, 70) if small else (1024, 1024, 1024)
    kinds += [(dtype, one, {"transposed": True}) for dtype in ("float16", "bfloat16")]
    kinds += [("float16", (37, 41, 43) if small else (1000, 1001, 999), {})]
    kinds += [("float16", (16, 72, 80) if small else (32, 4096, 4096), {"transposed": True})]
    kinds += [("float16", one, {"activated": True})]
    for dtype, (M, N, K), how in kinds:
        label = "".join(f", {word}" for word in how)
        is_transposed, is_activated = how.get("transposed", False), how.get("activated", False)

        def reference(a: Array, b: Array, bias: Array, t: bool = is_transposed, s: bool = is_activated) -> Array:
            c = a @ (b.T if t else b)
            return (c + bias) / (1 + np.exp(-c - bias)) if s else c

        def theirs(mx: Any, a: Array, b: Array, bias: Array, t: bool = is_transposed, s: bool = is_activated) -> Array:
            c = a @ (b.T if t else b)
            return (c + bias) * mx.sigmoid(c + bias) if s else c

        shapes = ((M, K), (N, K) if is_transposed else (K, N), (N,))
        make = functools.partial(kernels.product, M, N, K, dtype, **how)
        yield Case(f"product {LETTERS[dtype]} {M}x{N}x{K}{label}", make, shapes, dtype, reference, theirs)
    N, K = (24, 520) if small else (4096, 4096)
    for dtype in ("float16", "bfloat16"):
        yield Case(
            f"vector {LETTERS[dtype]} {N}x{K}", functools.partial(kernels.vector, N, K, dtype), ((K,), (N, K)), dtype,
            lambda x, w: w @ x, lambda mx, x, w: w @ x,
        )  # fmt: skip


def _attention(small: bool) -> Iterator[Case]:
    length = 70 if small else 2048
    heads = 2 if small else 16
    kinds = [("float16", dim, length, causal) for dim in (64, 128) for causal in (False, True)]
    kinds += [("bfloat16", 128, length, True), ("float16", 128, 1, False)]
    for dtype, dim, queries, causal in kinds:

        def reference(q: Array, k: Array, v: Array, causal: bool = causal) -> Array:
            s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
            if causal:
                s = np.where(np.tri(*s.shape[-2:]) > 0, s, -np.inf)
            w = np.exp(s - s.max(-1, keepdims=True))
            return w / w.sum(-1, keepdims=True) @ v

        def theirs(mx: Any, q: Array, k: Array, v: Array, causal: bool = causal) -> Array:
            how = {"mask": "causal"} if causal else {}
            four = [x.reshape(1, *x.shape) for x in (q, k, v)]
            scale = 1 / math.sqrt(q.shape[-1])
            return mx.fast.scaled_dot_product_attention(*four, scale=scale, **how).reshape(q.shape)

        name = f"attention {LETTERS[dtype]} {heads}x{queries}x{length}, dim {dim}{', causal' if causal else ''}"
        make = functools.partial(kernels.attention, heads, queries, length, dim, causal, dtype)
        shapes = ((heads, queries, dim), (heads, length, dim), (heads, length, dim))
        yield Case(name, make, shapes, dtype, reference, theirs)


def _rows(small: bool) -> Iterator[Case]:
    M, N = (6, 200) if small else (4096, 1024)

    def softmax(x: Array, w: Array) -> Array:
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    def norm(x: Array, w: Array) -> Array:
        return x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * w

    functions: dict[str, tuple[Callable[..., Array], Callable[..., Array]]] = {
        "softmax": (softmax, lambda mx, x, w: mx.softmax(x, axis=1, precise=True)),
        "rms_norm": (norm, lambda mx, x, w: mx.fast.rms_norm(x, w, 1e-5)),
        "layer_norm": (
            lambda x, w: norm(x - x.mean(1, keepdims=True), w),
            lambda mx, x, w: mx.fast.layer_norm(x, w, None, 1e-5),
        ),
        "cumsum": (lambda x, w: np.cumsum(x, 1), lambda mx, x, w: mx.cumsum(x, axis=1)),
    }
    kinds = [(kind, dtype) for kind in ("softmax", "rms_norm") for dtype in UNITS]
    for kind, dtype in [*kinds, ("layer_norm", "float16"), ("cumsum", "float32")]:
        make = functools.partial(kernels.rows, M, N, dtype, kind)
        yield Case(f"{kind} {LETTERS[dtype]} {M}x{N}", make, ((M, N), (N,)), dtype, *functions[kind])
    for kind, dtype in (("sum", "float32"), ("max", "float16")):
        yield Case(
            f"{kind} of rows {LETTERS[dtype]} {M}x{N}", functools.partial(kernels.reduction, M, N, dtype, kind),
            ((M, N),), dtype, lambda x, kind=kind: getattr(x, kind)(1),
            lambda mx, x, kind=kind: getattr(mx, kind)(x, axis=1),
        )  # fmt: skip


def _elements(small: bool) -> Iterator[Case]:
    n = 2100 if small else 1 << 24
    table: list[tuple[str, str, Callable[..., Any], Callable[..., Array], Callable[..., Array]]] = [
        ("scale", "float32", lambda x, y: x * 2.0, lambda x, y: x * 2, lambda mx, x, y: x * 2.0),
        ("add", "float16", lambda x, y: x + y, lambda x, y: x + y, lambda mx, x, y: x + y),
        ("add", "bfloat16", lambda x, y: x + y, lambda x, y: x + y, lambda mx, x, y: x + y),
        ("exp", "float32", lambda x, y: T.exp(x), lambda x, y: np.exp(x), lambda mx, x, y: mx.exp(x)),
        ("tanh", "float32", lambda x, y: T.tanh(x), lambda x, y: np.tanh(x), lambda mx, x, y: mx.tanh(x)),
        (
            "gate", "float16", lambda x, y: x * T.sigmoid(x) * y, lambda x, y: x / (1 + np.exp(-x)) * y,
            lambda mx, x, y: x * mx.sigmoid(x) * y,
        ),
    ]  # fmt: skip
    for kind, dtype, function, reference, theirs in table:
        make = functools.partial(kernels.elements, n, dtype, function)
        yield Case(f"{kind} {LETTERS[dtype]} {n}", make, ((n,), (n,)), dtype, reference, theirs)


def _memory(small: bool) -> Iterator[Case]:
    M, N = (70, 45) if small else (4096, 2048)
    yield Case(
        f"transpose f16 {M}x{N}", functools.partial(kernels.transposed, M, N, "float16"), ((M, N),), "float16",
        lambda x: x.T, lambda mx, x: mx.contiguous(x.T),
    )  # fmt: skip
    count = 37 if small else 2048
    yield Case(
        f"rows by number f16 {count} of {M}x{N}", functools.partial(kernels.gathered, M, N, count, "float16"),
        ((M, N), (count,)), "float16", lambda x, at: x[at], lambda mx, x, at: x[at], M,
    )  # fmt: skip
