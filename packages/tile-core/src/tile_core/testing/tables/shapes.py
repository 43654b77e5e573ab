"""Parameters: symbolic sizes and strides, scalars of every type, rank 0, pointers, ranks, many parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_core.testing.case import VALUE, Data, Param, Unit, one, output, refused, scalar, tensor
from tile_core.testing.data import anything, numbers, stored
from tile_core.testing.source import lines


def units() -> list[Unit]:
    """Return the units of this table."""
    return [*_symbolic(), *_scalars(), *_ranks(), *_strides(), *_large(), *_refusals()]


def _symbolic() -> list[Unit]:
    """Sizes in several parameters and in arithmetic; #3017: an output that precedes its sizing input."""
    body = """
        for i, j in T.Parallel(32, 32):
            O[by * 32 + i, bx * 32 + j] = X[by * 32 + i] * Y[bx * 32 + j] * s
    """

    launches = {
        f"{m}x{n}": lambda rng, m=m, n=n: {
            "m": m, "n": n, "s": 0.5, "X": numbers(rng, (m,), "float32"), "Y": numbers(rng, (n,), "float32")
        }
        for m, n in ((1, 1), (33, 65), (32, 31), (0, 4), (5, 0), (100, 7))
    }  # type: ignore[misc]  # fmt: skip
    params = [
        output("O", "float32", "m", "n"),
        tensor("X", "float32", "m"),
        tensor("Y", "float32", "n"),
        scalar("s", "float32"),
    ]
    grid = {"grid": "T.ceildiv(n, 32), T.ceildiv(m, 32)", "axes": "(bx, by)", "symbols": ("m", "n")}
    found = [one("shapes", "#3017-outer", params, body, None, launches, VALUE, **grid)]  # type: ignore[arg-type]
    body = """
        for i in T.Parallel(64):
            if bx * 64 + i < 2 * n:
                B[bx * 64 + i] = A[(bx * 64 + i) // 2] + n
    """

    launches = {str(n): lambda rng, n=n: {"n": n, "A": numbers(rng, (n,), "int32")} for n in (0, 1, 31, 32, 33, 500)}  # type: ignore[misc]
    params = [tensor("A", "int32", "n"), output("B", "int32", "2 * n")]
    sized = {"grid": "T.ceildiv(2 * n, 64)", "symbols": ("n",)}
    for name, more in (("twice", []), ("twice-named", [scalar("n")])):  # a parameter with the name of a size
        found.append(one("shapes", name, [*params, *more], body, None, launches, **sized))  # type: ignore[arg-type]
    body = lines("""
        r = T.alloc_fragment((1,), 'float32')
        T.clear(r)
        for i in T.serial(n):
            r[0] = r[0] + A[i]
        B[0] = r[0]
    """)
    launches = {str(n): lambda rng, n=n: {"n": n, "A": numbers(rng, (n,), "float32")} for n in (0, 1, 77)}  # type: ignore[misc]
    params = [tensor("A", "float32", "n"), output("B", "float32", 1)]
    found.append(one("shapes", "serial-sum", params, body, None, launches, VALUE, symbols=("n",)))  # type: ignore[arg-type]
    return found


def _scalars() -> list[Unit]:
    found = []
    samples: dict[str, tuple[int, int]] = {
        "int8": (-128, 127), "int16": (-32768, 5), "int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**40),
        "uint8": (0, 255),
        "uint16": (65535, 1), "uint32": (2**32 - 1, 7), "uint64": (2**63, 3), "float32": (1.5, float("inf")),
        "float64": (1e300, -0.0), "float16": (65504.0, 0.25), "bfloat16": (1.5, -3.0), "bool": (True, False),
    }  # fmt: skip
    for dtype, picks in samples.items():
        launches = {f"{v}": lambda rng, v=v: {"v": v} for v in picks}
        params = [scalar("v", dtype), output("B", dtype, 3)]
        found.append(one("shapes", f"scalar-{dtype}", params, "T.fill(B, v)", None, launches, threads=32))  # type: ignore[arg-type]
    return found


def _ranks() -> list[Unit]:
    """Rank 0 to 5, an extent of 1 in every place, many parameters."""
    found = []
    for shape in ((), (1,), (5,), (1, 7), (7, 1), (2, 3, 5), (1, 1, 1), (2, 1, 3, 4), (2, 3, 1, 2, 3)):
        count = int(np.prod(shape, dtype=int))
        index = ", ".join(f"i{k}" for k in range(len(shape)))
        loop = f"for {index} in T.grid({', '.join(map(str, shape))}):\n    B[{index}] = A[{index}] + {count}"
        if len(shape) == 1:
            loop = loop.replace("T.grid", "T.serial")
        body = loop if shape else "B[()] = A[()] + 1"
        data = {"": lambda rng, s=shape: {"A": np.asarray(numbers(rng, s, "int32")).reshape(s)}}  # type: ignore[misc]
        params = [tensor("A", "int32", *shape), output("B", "int32", *shape)]
        found.append(one("shapes", f"rank-{'x'.join(map(str, shape)) or 0}", params, body, None, data))
    many = [tensor(f"A{k}", "float32", 3) for k in range(24)]
    body = "for i in T.Parallel(3):\n    B[i] = " + " + ".join(f"A{k}[i] * {k}" for k in range(24))
    data = {"": lambda rng: {f"A{k}": numbers(rng, (3,), "float32") for k in range(24)}}
    return [*found, one("shapes", "24-parameters", [*many, output("B", "float32", 3)], body, None, data, VALUE)]


def _strides() -> list[Unit]:
    """Symbolic strides: the same kernel on rows, columns and every other element."""
    body = "for i, j in T.Parallel(6, 9):\n    B[i, j] = A[i, j] * 2"
    params = [Param("A", "float32", (6, 9), strides=("p", "q")), output("B", "float32", 6, 9)]
    forms: dict[str, Any] = {
        "rows": (lambda a: a[:6, :9], (30, 1)), "transposed": (lambda a: a.T[:6, :9], (1, 30)),
        "steps": (lambda a: a[: 6 * 2 : 2, : 9 * 3 : 3], (60, 3)),
    }  # fmt: skip

    def data(rng: np.random.Generator, view: Any, p: int, q: int) -> Data:
        return {"A": view(numbers(rng, (30, 30), "float32")), "p": p, "q": q}

    launches = {k: lambda rng, v=v: data(rng, v[0], *v[1]) for k, v in forms.items()}
    return [one("shapes", "strides", params, body, None, launches, symbols=("p", "q"))]


def _large() -> list[Unit]:
    """#3027: a product of indices that nearly fills 32 bits; #2554: a negative runtime offset."""
    body = "for i in T.serial(4):\n    B[i] = A[i * 600000000]"
    params = [tensor("A", "int8", "n"), output("B", "int8", 4)]
    data = {"": lambda rng: {"n": 5, "A": stored(np.arange(1, 6), "int8")}}
    found = [one("shapes", "#3027-stride", params, body, lambda d: np.array([1, 0, 0, 0]), data, symbols=("n",))]
    body = "for i in T.vectorized(4):\n    B[i] = A[t - 2 + i]"
    launches = {str(t): lambda rng, t=t: {"t": t, "A": anything(rng, (16,), "int32")} for t in (0, 1, 2, 5, 14)}

    params = [tensor("A", "int32", 16), scalar("t"), output("B", "int32", 4)]
    found.append(one("shapes", "#2554-negative", params, body, None, launches))  # type: ignore[arg-type]
    return found


def _refusals() -> list[Unit]:
    body = "A[0] = 0.0"
    return [
        refused("shapes", "illegal-negative", body, "K122", "K124", params=[tensor("A", "float32", -4)]),
        refused("shapes", "illegal-type", body, "K101", "K124", params=[tensor("A", "float99", 4)]),
        refused("shapes", "illegal-symbol", body, "K125", params=[tensor("A", "float32", 4)], symbols=("n",), grid="n"),
    ]
