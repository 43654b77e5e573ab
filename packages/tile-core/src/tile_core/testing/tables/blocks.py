"""Reductions over a whole block: many groups of threads, and values that nearly tie."""

from __future__ import annotations

import numpy as np

from tile_core.testing.case import EXACT, VALUE, Data, Unit, one, output, tensor
from tile_core.testing.data import Array, anything, numbers, stored

_SIZES = ((1, 1024, 256), (2, 777, 512), (3, 640, 192), (1, 4096, 1024))


def units() -> list[Unit]:
    """Return the units of this table."""
    return [*_rows(), *_vectors(), *_tiny()]


def _rows() -> list[Unit]:
    """A row of a block of up to 32 groups, with and without a reducer.

    All threads use the result.
    """
    found = []
    for n, dtype in enumerate(("float32", "float16", "int32", "uint32", "int8", "int64")):
        rows, columns, threads = _SIZES[n % len(_SIZES)]
        wide = "float32" if dtype == "float16" else dtype
        body = f"""
            a = T.alloc_fragment(({rows}, {columns}), "{wide}")
            low = T.alloc_fragment(({rows},), "{wide}")
            high = T.alloc_fragment(({rows},), "{wide}")
            total = T.alloc_reducer(({rows},), "{wide}", op="sum")
            T.copy(A, a)
            T.reduce_max(a, high, dim=1)
            T.reduce_min(a, low, dim=1)
            for i, j in T.Parallel({rows}, {columns}):
                total[i] += a[i, j]
            T.finalize_reducer(total)
            for i, j in T.Parallel({rows}, {columns}):
                a[i, j] = T.max(T.min(a[i, j] + a[i, j], high[i]), low[i])
            T.copy(a, B)
            T.copy(total, C)
        """

        few = {"": lambda rng, s=(rows, columns), t=dtype: {"A": numbers(rng, s, t, -3, 3)}}  # type: ignore[misc]
        every = {**few, "all": lambda rng, s=(rows, columns), t=dtype: {"A": anything(rng, s, t)}}  # type: ignore[misc]
        params = [
            tensor("A", dtype, rows, columns), output("B", wide, rows, columns), output("C", wide, rows),
        ]  # fmt: skip
        data = every if dtype in ("int32", "uint32", "int64") else few
        name = f"block-{dtype}-{rows}x{columns}-{threads}"
        found.append(one("reduce", name, params, body, None, data, VALUE, threads=threads))
    return found


def _vectors() -> list[Unit]:
    """A vector times a matrix: reducer rows per thread group, vector loads, scales per group."""
    found = []
    for dtype in ("int4", "uint4", "int8", "float8_e4m3fn", "float16", "float4_e2m1fn"):
        for rows, columns, block, step, threads in ((16, 1024, 8, 512, 64), (10, 1000, 4, 256, 128)):
            body = f"""
                x = T.alloc_fragment(({step},), "float16")
                total = T.alloc_reducer(({block},), "float32", "sum")
                T.fill(total, 1)
                for k in T.serial({-(-columns // step)}):
                    T.copy(X[k * {step}], x)
                    for i, j in T.Parallel({block}, {step}):
                        r, c = bx * {block} + i, k * {step} + j
                        total[i] += T.cast(x[j], "float32") * T.cast(W[r, c], "float32") * S[r, c // 8]
                T.finalize_reducer(total)
                T.copy(total, B[bx * {block}])
            """

            def data(rng: np.random.Generator, dtype: str = dtype, shape: tuple[int, int] = (rows, columns)) -> Data:
                rows, columns = shape
                scales = numbers(rng, (rows, columns // 8), "float32", 1, 2)
                w = numbers(rng, shape, dtype, -3, 3)
                return {"X": numbers(rng, (columns,), "float16", -3, 3), "W": w, "S": scales}

            params = [
                tensor("X", "float16", columns), tensor("W", dtype, rows, columns),
                tensor("S", "float32", rows, columns // 8), output("B", "float32", rows),
            ]  # fmt: skip
            name, grid = f"vector-{dtype}-{columns}-{threads}", str(-(-rows // block))
            found.append(one("reducer", name, params, body, None, {"": data}, VALUE, threads=threads, grid=grid))
    return found


def _tiny() -> list[Unit]:
    """Signed zeros and subnormals keep their order, also on devices that flush them.

    Results are compared by bits.
    """
    found = []
    for kind in ("max", "min"):
        for rows, columns, threads in ((9, 70, 64), (9, 1200, 256)):
            body = f"""
                a = T.alloc_fragment(({rows}, {columns}), "float32")
                r = T.alloc_fragment(({rows},), "float32")
                T.copy(A, a)
                T.reduce_{kind}(a, r, dim=1)
                for i in T.Parallel({rows}):
                    B[i] = T.reinterpret(r[i], "int32")
            """

            def want(d: Data, kind: str = kind) -> Array:
                return _extreme_bits(kind, np.asarray(d["A"], np.float32))

            data = {"": lambda rng, s=(rows, columns): {"A": _small(rng, s)}}  # type: ignore[misc]
            params = [tensor("A", "float32", rows, columns), output("B", "int32", rows)]
            name = f"tiny-{kind}-{columns}-{threads}"
            found.append(one("reduce", name, params, body, want, data, EXACT, threads=threads))
    return found


def _extreme_bits(kind: str, a: Array) -> Array:
    """Return the bits of each row's largest or smallest value, in the order of bits."""
    bits = a.view(np.int32).astype(np.int64)
    order = np.where(bits < 0, -(bits & 0x7FFFFFFF) - 1, bits)
    none = np.iinfo(np.int64).min if kind == "max" else np.iinfo(np.int64).max
    order = np.where(np.isnan(a), none, order)
    at = order.argmax(1) if kind == "max" else order.argmin(1)
    found: Array = a[np.arange(len(a)), at].view(np.int32)
    return found


def _small(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Return rows of zeros and subnormals, of either sign or one, some with larger values."""
    a = rng.choice(np.array([0.0, -0.0, 1e-45, -1e-45, 3e-40, -3e-40, 1.1e-38, -1.1e-38], np.float32), shape)
    a[1], a[2] = -np.abs(a[1]), np.abs(a[2])
    a[3] = rng.choice(np.array([0.0, -0.0], np.float32), shape[1])
    a[4, :5], a[5, :5] = 2.0, -2.0
    a[6] = np.where(rng.random(shape[1]) < 0.5, np.float32(np.nan), a[6])
    a[7] = np.float32(-0.0)
    return stored(a, "float32")
