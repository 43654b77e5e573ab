"""T.argmax, T.argmin, and reductions and scans by a user function.

Element types, ties, NaN, dimensions, several tiles.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_core.dtypes import DTYPES
from tile_core.testing.case import (
    EXACT,
    VALUE,
    Data,
    Launch,
    Part,
    Tolerance,
    Unit,
    one,
    output,
    refused,
    scalar,
    tensor,
)
from tile_core.testing.data import TYPES, Array, from_codes, numbers, stored, values
from tile_core.testing.source import lines

_SHAPES = ((17, 129), (7, 48), (96, 1), (33, 100), (1, 257), (24, 63), (127, 24), (5, 512))
_THREADS = (128, 1, 96, 31, 256, 32)
_SCOPES = ("fragment", "shared")


def units() -> list[Unit]:
    """Return the units of this table."""
    return [*_indices(), *_special(), *_slices(), *_reductions(), *_pairs(), *_scans(), *_logsums(), *_refusals()]


def _indices() -> list[Unit]:
    """Any element type along both dimensions, of few different values; codes of floats include NaN."""
    found = []
    for n, dtype in enumerate(TYPES):
        for dim in (0, 1):
            rows, cols = shape = _SHAPES[(2 * n + dim) % len(_SHAPES)]
            out, kept = ("int32", "int64", "uint32")[n % 3], shape[1 - dim]
            start = f's = T.alloc_{_SCOPES[n % 2]}({shape}, "{dtype}")\nT.copy(A, s)'
            parts = {}
            for kind in ("argmax", "argmin"):
                body = f'''
                    r_{kind} = T.alloc_{_SCOPES[dim]}(({kept},), "{out}")
                    T.{kind}(s, r_{kind}, dim={dim})
                    T.copy(r_{kind}, B_{kind})
                '''
                parts[kind] = Part((output(f"B_{kind}", out, kept),), body, None)

            def data(rng: np.random.Generator, shape: tuple[int, ...] = shape, dtype: str = dtype) -> Data:
                bits = min(DTYPES[dtype].bits, 8)
                codes = rng.integers(0, 2**bits, shape)
                if DTYPES[dtype].is_float and bits == 8 and not DTYPES[dtype].is_narrow:
                    return {"A": numbers(rng, shape, dtype, -2, 3)}
                few = rng.choice(rng.choice(2**bits, min(2**bits, 9), replace=False), shape)
                return {"A": from_codes(np.where(rng.random(shape) < 0.5, codes, few), dtype)}

            name = f"{dtype}-{rows}x{cols}-dim{dim}"
            threads = _THREADS[n % len(_THREADS)]
            params = (tensor("A", dtype, *shape),)
            found.append(Unit("place", name, params, start, parts, {"": Launch(data)}, threads=threads))
    return found


def _special() -> list[Unit]:
    """NaN wins at any index, equal zeros, infinities, subnormals, integer limits; unchanged memory."""
    found = []
    for n, dtype in enumerate(("float32", "float16", "bfloat16", "float64", "int32", "uint64", "int8")):
        body = lines("""
            T.argmax(A, B[0, :], dim=1)
            T.argmin(A, B[1, :], dim=1)
        """)

        def data(rng: np.random.Generator, dtype: str = dtype) -> Data:
            a: Any = rng.choice([0, 1], (12, 70)).astype("int64")
            if DTYPES[dtype].is_integer:
                info = np.iinfo(dtype)
                a = rng.choice(np.array([info.min, info.max, info.min + 1, info.max - 1], dtype), (12, 70))
                a[0], a[1] = info.min, info.max
                return {"A": a}
            least = {"float32": 2.0**-149, "float64": 2.0**-1074, "float16": 2.0**-24, "bfloat16": 2.0**-133}[dtype]
            a = rng.choice([0.0, -0.0, least, -least, 3 * least], (12, 70))
            a[0], a[1], a[2] = -0.0, np.inf, -np.inf
            a[0, 5], a[3, 69], a[3, 31], a[4, 0], a[5] = 0.0, np.nan, -np.nan, np.nan, np.nan
            a[6, 20], a[6, 21], a[7, 64] = np.inf, np.nan, -np.inf
            return {"A": stored(a, dtype)}

        params = [tensor("A", dtype, 12, 70), output("B", "int32", 2, 12)]
        found.append(one("place", f"special-{dtype}", params, body, None, {"": data}, threads=(64, 128, 31)[n % 3]))
    return found


def _slices() -> list[Unit]:
    body = lines("""
        s = T.alloc_shared((40, 80), 'float32')
        one = T.alloc_fragment((1,), 'int32')
        T.copy(A, s)
        T.argmax(s[4:24, 10:77], B, dim=1)
        T.argmin(s[z, 3:67], one)
        T.copy(one, C[0])
        T.argmax(s[z : z + 7, 2], C[1])
    """)

    def want(d: Data) -> dict[str, Array]:
        a, z = values(d["A"], "float32"), d["z"]
        return {"B": a[4:24, 10:77].argmax(1), "C": np.array([a[z, 3:67].argmin(), a[z : z + 7, 2].argmax()])}

    data = {str(z): lambda rng, z=z: {"z": z, "A": numbers(rng, (40, 80), "float32", -3, 3)} for z in (0, 33)}
    params = [tensor("A", "float32", 40, 80), scalar("z"), output("B", "int64", 20), output("C", "int32", 2)]
    return [one("place", "slices", params, body, want, data)]  # type: ignore[arg-type]


def _reductions() -> list[Unit]:
    """One tile: wrapping addition with and without names, a modulo, a signed absolute maximum."""
    found = []
    functions = {
        "sum": ("lambda a, b: a + b", "0"),
        "named": ("named", "0"),
        "modulo": ("lambda a, b: (a + b) % v", "0"),
        "size": (
            "lambda a, b: T.if_then_else(b * b > a * a, b, a)", "0",
        ),
    }  # fmt: skip
    for n, dtype in enumerate(("int32", "float32", "int8", "float16", "uint16", "float64", "bfloat16", "int64")):
        shape = _SHAPES[n]
        parts = {}
        for name, (text, start) in functions.items():
            if (name == "modulo" and dtype not in ("int32", "int64")) or (name == "size" and dtype[0] == "u"):
                continue

            inside = "a" if name != "modulo" else "p"
            body = f'''
                r_{name} = T.alloc_{_SCOPES[n % 2]}(({shape[0]},), "{dtype}")
                def named(p, q):
                    d = q - p
                    a = p + d
                    d = a + p
                    return d
                T.reduce_with({text}, {inside}, r_{name}, dim=1, identity={start})
                T.copy(r_{name}, B_{name})
            '''
            parts[name] = Part((output(f"B_{name}", dtype, shape[0]),), body, None, VALUE)

        def data(rng: np.random.Generator, shape: tuple[int, ...] = shape, dtype: str = dtype) -> Data:
            a = np.asarray(values(numbers(rng, shape, dtype, -3, 3), dtype))
            if dtype[0] != "u":
                a[np.arange(shape[0]), rng.integers(0, shape[1], shape[0])] = rng.choice([-5, 5], shape[0])
            return {"A": stored(a, dtype), "v": 7}

        start = f'''
            a = T.alloc_{_SCOPES[(n + 1) % 2]}({shape}, "{dtype}")
            T.copy(A, a)
        '''
        if "modulo" in parts:
            start += f'''
            p = T.alloc_fragment({shape}, "{dtype}")
            for i, j in T.Parallel{shape}:
                p[i, j] = T.abs(A[i, j])
            '''
        params = (tensor("A", dtype, *shape), scalar("v"))
        threads = _THREADS[n % len(_THREADS)]
        found.append(Unit("fold", f"one-{dtype}", params, lines(start), parts, {"": Launch(data)}, threads=threads))
    return found


def _pairs() -> list[Unit]:
    """Two and three tiles of different types and scopes: a weighted argmax, extremes, totals."""
    found = []
    for n, (rows, cols) in enumerate(_SHAPES):
        for dim in (0, 1):
            kept = (rows, cols)[1 - dim]
            body = lines(f"""
                a = T.alloc_{_SCOPES[n % 2]}(({rows}, {cols}), "float32")
                b = T.alloc_{_SCOPES[(n // 2) % 2]}(({rows}, {cols}), "int16")
                r = T.alloc_{_SCOPES[dim]}(({kept},), "float32")
                q = T.alloc_{_SCOPES[(n + dim) % 2]}(({kept},), "int32")
                s = T.alloc_fragment(({kept},), "int64")
                T.copy(A, a)
                T.copy(X, b)
                T.reduce_with(
                    lambda x, y: (T.max(x[0], y[0]), x[1] + y[1] * v - y[1] * (v - 1), T.min(x[2], y[2])),
                    (a, b, X), (r, q, s), dim={dim}, identity=(-T.infinity("float32"), 0, 2**40),
                )
                T.copy(r, B)
                T.copy(q, C)
                T.copy(s, D)
            """)

            def data(rng: np.random.Generator, shape: tuple[int, int] = (rows, cols)) -> Data:
                x = rng.integers(-900, 900, shape).astype(np.int16)
                return {"A": numbers(rng, shape, "float32", -99, 99), "X": x, "v": int(rng.integers(-5, 5))}

            params = [
                tensor("A", "float32", rows, cols), tensor("X", "int16", rows, cols), scalar("v"),
                output("B", "float32", kept), output("C", "int32", kept), output("D", "int64", kept),
            ]  # fmt: skip
            name, threads = f"three-{rows}x{cols}-dim{dim}", _THREADS[(n + dim) % len(_THREADS)]
            found.append(one("fold", name, params, body, None, {"": data}, EXACT, threads=threads))
    return found


def _scans() -> list[Unit]:
    """Non-commutative functions: compositions of x -> p x + q, in both directions.

    The last element is not 0.
    """
    found = []
    for n, (rows, cols) in enumerate(_SHAPES):
        dim, reverse = n % 2, n % 3 == 0
        body = lines(f"""
            p = T.alloc_{_SCOPES[n % 2]}(({rows}, {cols}), "int32")
            q = T.alloc_{_SCOPES[(n // 2) % 2]}(({rows}, {cols}), "int32")
            s = T.alloc_shared(({rows}, {cols}), "int32")
            T.copy(P, p)
            T.copy(Q, q)
            T.copy(Q, s)
            def joined(a, b):
                q = a[1] * b[0]
                q += b[1]
                return a[0] * b[0], q
            T.scan_with(joined, (p, q), dim={dim}, reverse={reverse}, identity=(1, 0))
            T.scan_with(lambda a, b: T.if_then_else(b != 0, b, a), s, dim={dim}, reverse={reverse}, identity=0)
            T.copy(q, B)
            T.copy(s, C)
        """)

        def data(rng: np.random.Generator, shape: tuple[int, int] = (rows, cols)) -> Data:
            return {"P": rng.integers(-3, 4, shape).astype(np.int32), "Q": rng.integers(-2, 3, shape).astype(np.int32)}

        shape = (rows, cols)
        params = [tensor("P", "int32", *shape), tensor("Q", "int32", *shape)]
        params += [output("B", "int32", *shape), output("C", "int32", *shape)]
        name = f"maps-{rows}x{cols}-dim{dim}{'-back' if reverse else ''}"
        found.append(one("fold", name, params, body, None, {"": data}, threads=_THREADS[n % len(_THREADS)]))
    return found


def _logsums() -> list[Unit]:
    """Log-sum-exp with overflow, infinite lines, NaN, kept extents, and slices."""
    found = []
    for n, dtype in enumerate(("float32", "float16", "bfloat16", "float64", "float32")):
        rows, cols = _SHAPES[n]
        dim, wide = n % 2, "float32" if dtype == "float16" else dtype
        kept = (rows, 1) if dim == 1 else (1, cols)
        body = lines(f"""
            s = T.alloc_{_SCOPES[n % 2]}(({rows}, {cols}), "{dtype}")
            r = T.alloc_{_SCOPES[dim]}({kept}, "{wide}")
            T.copy(A, s)
            T.logsumexp(s, r, dim={dim})
            T.copy(r, B)
            T.logsumexp(A[0, :], C)
        """)

        def data(rng: np.random.Generator, shape: tuple[int, int] = (rows, cols), dtype: str = dtype) -> Data:
            a = rng.standard_normal(shape) * rng.choice([1, 300], (shape[0], 1))
            if min(shape) > 4:
                a[1], a[:, 2], a[3, 3], a[4, 1] = -np.inf, -np.inf, np.nan, np.inf
            return {"A": stored(a, dtype)}

        def want(d: Data, dim: int = dim, dtype: str = dtype) -> dict[str, Array]:
            a = values(d["A"], dtype)
            return {"B": _logsum(a, dim, True), "C": _logsum(a[0], 0, True)}

        rtol = {"bfloat16": 2.0**-8, "float64": 1e-12}.get(dtype, 4e-6)
        params = [tensor("A", dtype, rows, cols), output("B", wide, *kept), output("C", wide, 1)]
        name, threads = f"logsumexp-{dtype}-{rows}x{cols}", _THREADS[n]
        found.append(one("fold", name, params, body, want, {"": data}, Tolerance(rtol, rtol, False), threads=threads))
    return found


def _logsum(a: Array, dim: int, keep: bool) -> Array:
    with np.errstate(all="ignore"):
        top = a.max(dim, keepdims=True)
        total = np.log(np.exp(a - np.where(np.isfinite(top), top, 0)).sum(dim, keepdims=keep))
        return np.asarray(total + np.where(np.isfinite(top), top, 0).reshape(total.shape))


def _refusals() -> list[Unit]:
    def body(call: str, dst: str = "float32", b: tuple[int, ...] = (8,)) -> str:
        return lines(f"""
            s = T.alloc_shared((8, 16), 'float32')
            d = T.alloc_shared({b}, '{dst}')
            T.clear(s)
            T.clear(d)
            {call}
        """)

    add = "lambda a, b: a + b"
    return [
        refused("place", "illegal-type", body("T.argmax(s, d)", "int16"), "K211"),
        refused("place", "illegal-float", body("T.argmin(s, d)"), "K211"),
        refused("place", "illegal-shape", body("T.argmax(s, d, dim=0)", "int32"), "K210"),
        refused("place", "illegal-dim", body("T.argmax(s, d, dim=2)", "int32"), "K209"),
        refused("fold", "illegal-logsumexp", body("T.logsumexp(s, d)", "int32"), "K211"),
        refused("fold", "illegal-logsumexp-shape", body("T.logsumexp(s, d, dim=0)"), "K210"),
        refused("fold", "illegal-function", body("T.reduce_with(3, s, d, identity=0)"), "K231"),
        refused("fold", "illegal-result", body("T.reduce_with(lambda a, b: (a, b), s, d, identity=0)"), "K231"),
        refused("fold", "illegal-count", body(f"T.reduce_with({add}, (s, s), (d,), identity=(0, 0))"), "K231"),
        refused("fold", "illegal-table", body(
            "T.reduce_with(lambda a, b: a + d[T.cast(b, 'int32')], s, d, identity=0)"), "K231"),
        refused("fold", "illegal-store", body(
            "T.reduce_with(lambda a, b: (T.fill(d, 0), a + b)[1], s, d, identity=0)"), "K231"),
        refused("fold", "illegal-identity", body(f"T.reduce_with({add}, s, d, identity=s[0, 0])"), "K212"),
        refused("fold", "illegal-types", body(f"T.reduce_with({add}, s, d, identity=0)", "int32"), "K211"),
        refused("fold", "illegal-narrow", body(f"T.reduce_with({add}, s, d, identity=0)", "float8_e5m2"), "K211"),
        refused("fold", "illegal-destination", body(f"T.reduce_with({add}, s, d, dim=0, identity=0)"), "K210"),
        refused("fold", "illegal-scan", body(f"T.scan_with({add}, s, d, identity=0)"), "K203"),
    ]  # fmt: skip
