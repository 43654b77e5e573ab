"""T.sort and T.topk: element types, dimensions, directions, ties, NaN and zeros, long lines, slices, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_core.dtypes import DTYPES
from tile_core.testing.case import EXACT, Data, Launch, Part, Unit, one, output, refused, tensor
from tile_core.testing.data import TYPES, Array, from_codes, stored, values
from tile_core.testing.source import lines

_SHAPES = ((5, 33), (8, 64), (31, 7), (1, 100), (12, 1), (3, 257), (16, 16))
_THREADS = (128, 1, 96, 31, 64)
_SCOPES = ("shared", "fragment")


def units() -> list[Unit]:
    """Return the units of this table."""
    return [*_sorts(), *_tops(), *_zeros(), *_long(), *_slices(), *_refusals()]


def _codes(dtype: str, shape: tuple[int, ...]) -> Any:
    """Bit patterns with many equal ones and without -0.

    Floats of 16 bits and more are few values and NaN.
    """

    def data(rng: np.random.Generator) -> Data:
        d = DTYPES[dtype]
        if d.is_float and d.bits > 8:
            return {"A": stored(rng.choice([np.nan, np.inf, -np.inf, 0.0, 1.5, -2.0, 3.0, 2.0**-14], shape), dtype)}
        found = rng.choice(rng.choice(2 ** min(d.bits, 8), min(2 ** min(d.bits, 8), 20), replace=False), shape)
        zero = 1 << (min(d.bits, 8) - 1)
        return {"A": from_codes(np.where((found == zero) & d.is_float, 1, found), dtype)}

    return data


def _order(d: Data, dtype: str, shape: tuple[int, ...], dim: int, largest: bool) -> tuple[Array, Array]:
    """Values and indices in sorted order.

    NaN is the largest; equal values are in order of their indices.
    """
    a = values(d["A"], dtype, shape)
    rank = np.unique(np.where(np.isnan(a), np.inf, a) if a.dtype.kind == "f" else a, return_inverse=True)[1]
    rank = rank.reshape(shape) * 2 + (np.isnan(a) if a.dtype.kind == "f" else 0)
    return a, np.argsort(-rank if largest else rank, axis=dim, kind="stable")


def _sorts() -> list[Unit]:
    found = []
    for n, dtype in enumerate(TYPES):
        shape, dim = _SHAPES[n % len(_SHAPES)], n % 2
        parts = {}
        for descending in (False, True):
            name = "down" if descending else "up"
            body = f'''
                r_{name} = T.alloc_{_SCOPES[descending]}({shape}, "{dtype}")
                T.sort(s, r_{name}, dim={dim}, descending={descending})
                T.copy(r_{name}, B_{name})
            '''

            parts[name] = Part((output(f"B_{name}", dtype, *shape),), body, None)
        start = f's = T.alloc_{_SCOPES[n % 2]}({shape}, "{dtype}")\nT.copy(A, s)'
        params = (tensor("A", dtype, *shape),)
        name = f"{dtype}-{shape[0]}x{shape[1]}-dim{dim}"
        launch, threads = Launch(_codes(dtype, shape)), _THREADS[n % len(_THREADS)]
        found.append(Unit("sort", name, params, start, parts, {"": launch}, threads=threads))
    return found


def _tops() -> list[Unit]:
    found = []
    for n, dtype in enumerate(TYPES):
        shape, dim, largest = _SHAPES[(n + 2) % len(_SHAPES)], (n + 1) % 2, n % 3 > 0
        k = min(shape[dim], 1 + n % 6)
        result = (k, shape[1]) if dim == 0 else (shape[0], k)
        body = lines(f"""
            s = T.alloc_{_SCOPES[n % 2]}({shape}, "{dtype}")
            v = T.alloc_{_SCOPES[(n // 2) % 2]}({result}, "{dtype}")
            p = T.alloc_{_SCOPES[(n // 4) % 2]}({result}, "int64")
            T.copy(A, s)
            T.topk(s, v, p, dim={dim}, largest={largest})
            T.copy(v, B)
            T.copy(p, C)
        """)

        params = [tensor("A", dtype, *shape), output("B", dtype, *result), output("C", "int64", *result)]
        name, threads = f"{dtype}-{shape[0]}x{shape[1]}-dim{dim}-{k}", _THREADS[n % len(_THREADS)]
        found.append(one("topk", name, params, body, None, {"": _codes(dtype, shape)}, EXACT, threads=threads))
    return found


def _zeros() -> list[Unit]:
    """Sorting puts -0 before +0, top-k is stable, and subnormals have an order."""
    found = []
    for dtype, least in (("float32", 2.0**-149), ("float16", 2.0**-24), ("float64", 2.0**-1074)):
        body = lines("""
            T.sort(A, B, dim=1)
            T.topk(A, C, D, dim=1)
        """)

        def data(rng: np.random.Generator, dtype: str = dtype, least: float = least) -> Data:
            return {"A": stored(rng.choice([0.0, -0.0, least, -least, 2 * least, np.nan], (6, 40)), dtype)}

        def want(d: Data, dtype: str = dtype) -> dict[str, Array]:
            a = values(d["A"], dtype)
            b = np.stack([sorted(row, key=lambda x: (x != x, x, not np.signbit(x))) for row in a])
            _, order = _order(d, dtype, (6, 40), 1, True)
            return {"B": b, "C": np.take_along_axis(a, order[:, :7], 1), "D": order[:, :7]}

        params = [tensor("A", dtype, 6, 40), output("B", dtype, 6, 40), output("C", dtype, 6, 7)]
        params.append(output("D", "int32", 6, 7))
        found.append(one("sort", f"zeros-{dtype}", params, body, want, {"": data}, threads=64))
    return found


def _long() -> list[Unit]:
    """Lines of many distinct keys, exchanged a part at a time."""
    found = []
    for rows, length in ((2, 3000), (5, 1025), (1, 2048)):
        body = lines("""
            T.sort(A, B)
            T.sort(A, dim=1, descending=True)
            T.topk(C, D, E)
        """)

        def data(rng: np.random.Generator, shape: tuple[int, int] = (rows, length)) -> Data:
            a = rng.permutation(shape[0] * shape[1]).reshape(shape).astype(np.int32)
            return {"A": a, "C": rng.permutation(a.size).reshape(shape).astype(np.float32)}

        shape = (rows, length)
        params = [output("A", "int32", *shape), tensor("C", "float32", *shape), output("B", "int32", *shape)]
        params += [output("D", "float32", rows, 9), output("E", "uint32", rows, 9)]
        needs = frozenset({f"shared:{4 * rows * 4096}"})
        name = f"long-{rows}x{length}"
        found.append(one("sort", name, params, body, None, {"": data}, threads=128, needs=needs))
    return found


def _slices() -> list[Unit]:
    body = lines("""
        s = T.alloc_shared((20, 6, 30), 'int16')
        T.copy(A, s)
        T.sort(s[3:17, 2, 5:28], dim=0)
        T.sort(s[0, :, 4:9], s[1, :, 20:25], dim=-1, descending=True)
        T.copy(s, B)
    """)

    data = {"": lambda rng: {"A": rng.integers(-99, 99, (20, 6, 30)).astype(np.int16)}}
    params = [tensor("A", "int16", 20, 6, 30), output("B", "int16", 20, 6, 30)]
    return [one("sort", "slices", params, body, None, data)]


def _refusals() -> list[Unit]:
    def body(call: str, dst: str = "float32", shape: tuple[int, ...] = (8, 4)) -> str:
        return lines(f"""
            s = T.alloc_shared((8, 16), 'float32')
            d = T.alloc_shared({shape}, '{dst}')
            p = T.alloc_shared((8, 4), 'int32')
            T.clear(s)
            {call}
        """)

    inside = "for i in T.Parallel(8):\n                T.sort(s[i, :])"
    return [
        refused("sort", "illegal-dim", body("T.sort(s, dim=2)"), "K209"),
        refused("sort", "illegal-type", body("T.sort(s, d)", "int32", (8, 16)), "K211"),
        refused("sort", "illegal-shape", body("T.sort(s, d)"), "K203"),
        refused("sort", "illegal-loop", body(inside), "K204"),
        refused("sort", "illegal-private", "a = T.alloc_local((8,), 'int32')\nT.sort(a)", "K204"),
        refused("topk", "illegal-count", body("T.topk(s, d, p, dim=0)"), "K203"),
        refused("topk", "illegal-type", body("T.topk(s, d, p)", "int32"), "K211"),
        refused("topk", "illegal-indices", body("T.topk(s, d, d)"), "K211"),
        refused("topk", "illegal-indices-shape", body("T.topk(s, d, p[0:4, :])"), "K203"),
        refused("topk", "illegal-k", body("T.topk(s[:, 0:2], d, p)"), "K212"),
    ]
