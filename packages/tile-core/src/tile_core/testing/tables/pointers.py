"""Tables of addresses: tensors at elements of a T.Tensor((n,), T.ptr)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_core.testing.case import Data, Param, Tolerance, Unit, one, output, refused, tensor
from tile_core.testing.data import anything, numbers
from tile_core.testing.source import lines

TYPES = (
    "float32", "float16", "bfloat16", "float64", "int8", "uint16", "int32", "int64", "float8_e4m3fn", "bool",
)  # fmt: skip
#: Elements of the tensors at three addresses; the shortest ends inside of a tile.
SIZES = (3, 40, 65)


def units() -> list[Unit]:
    """Return the units of this table."""
    return [*_copies(), *_loops(), _strided(), *_products(), *_refusals()]


def table(name: str, dtype: str, *of: str) -> Param:
    """Return a table of the addresses of other parameters."""
    return Param(name, dtype, (len(of),), of=of)


def _numbered(name: str, count: int = 3) -> list[str]:
    return [f"{name}{n}" for n in range(count)]


def _copies() -> list[Unit]:
    """Each block copies between the tensors at two addresses, by tile and by element."""
    found = []
    for n, dtype in enumerate(TYPES):
        scope = ("shared", "fragment")[n % 2]
        body = lines(f"""
            x = T.make_tensor(P[bx], (N[bx],){f', "{dtype}"' if n % 3 else ""})
            y = T.make_tensor(Q[(bx + 1) % 3], (N[bx],))
            z = T.make_tensor(R[bx], (64,), align={max(1, np.dtype(np.float64).itemsize if "64" in dtype else 1)})
            s = T.alloc_{scope}((64,), "{dtype}")
            T.copy(x[0:64], s)
            T.copy(s, y[0:64])
            for i in T.Parallel(64):
                z[i] = x[63 - i]
        """)
        body = body.replace(", align=1", "")
        xs, ys, zs = _numbered("X"), _numbered("Y"), _numbered("Z")
        params = [tensor(x, dtype, k) for x, k in zip(xs, SIZES, strict=True)]
        params += [output(y, dtype, SIZES[(k - 1) % 3]) for k, y in enumerate(ys)]
        params += [output(z, dtype, 64) for z in zs]
        params += [table("P", dtype, *xs), table("Q", dtype, *ys), table("R", dtype, *zs), tensor("N", "int32", 3)]

        def data(rng: Any, t: str = dtype) -> Data:
            given = {x: anything(rng, (k,), t) for x, k in zip(_numbered("X"), SIZES, strict=True)}
            poison = {f"Y{k}": anything(rng, (SIZES[(k - 1) % 3],), t) for k in range(3)}
            return {**given, **poison, "N": np.array(SIZES, np.int32)}

        launches = {"": data}
        found.append(one("pointers", f"copy-{dtype}", params, body, None, launches, grid="3", threads=(64, 31)[n % 2]))
    return found


def _loops() -> list[Unit]:
    """One block iterates over all addresses, indexed by a loop variable or by memory."""
    found = []
    for name, element in (("variable", "g"), ("memory", "T.cast(O[g], 'int32')")):
        body = lines(f"""
            total = T.alloc_fragment((33,), "float32")
            T.clear(total)
            for g in T.serial(3):
                x = T.make_tensor(P[{element}], (N[{element}],), "float32")
                total += x[0:33]
                if N[{element}] > 33:
                    for i in T.Parallel(33):
                        total[i] += x[i + 1] * 2
            T.copy(total, B)
        """)
        xs = _numbered("X")
        params = [tensor(x, "float32", k) for x, k in zip(xs, SIZES, strict=True)]
        params += [
            table("P", "float32", *xs),
            tensor("N", "int32", 3),
            tensor("O", "int64", 3),
            output("B", "float32", 33),
        ]

        def data(rng: Any) -> Data:
            given = {x: numbers(rng, (k,), "float32") for x, k in zip(_numbered("X"), SIZES, strict=True)}
            return {**given, "N": np.array(SIZES, np.int32), "O": np.array([2, 0, 2])}

        found.append(one("pointers", f"loop-{name}", params, body, None, {"": data}, Tolerance(1e-5, 1e-5)))
    return found


def _strided() -> Unit:
    body = lines("""
        x = T.make_tensor(P[bx], (H[bx], 7), "int16", strides=(9, 1))
        for i, j in T.Parallel(8, 8):
            B[bx, i, j] = x[i, j]
    """)

    def data(rng: Any) -> Data:
        return {
            "X0": numbers(rng, (99,), "int16"),
            "X1": numbers(rng, (34,), "int16"),
            "H": np.array([11, 4], np.int32),
        }

    params = [tensor("X0", "int16", 99), tensor("X1", "int16", 34), table("P", "int16", "X0", "X1")]
    params += [tensor("H", "int32", 2), output("B", "int16", 2, 8, 8)]
    return one("pointers", "strided", params, body, None, {"": data}, grid="2", threads=32)


def _products() -> list[Unit]:
    """Grouped products: groups of any number of rows, none among them."""
    found = []
    for dtype, n, k in (("float16", 40, 33), ("float32", 24, 16)):
        body = lines(f"""
            x = T.make_tensor(P[bz], (M[bz], {k}), "{dtype}")
            w = T.make_tensor(Q[bz], ({k}, {n}), "{dtype}")
            y = T.make_tensor(R[bz], (M[bz], {n}), "float32")
            a = T.alloc_shared((32, 16), "{dtype}")
            b = T.alloc_shared((16, 32), "{dtype}")
            c = T.alloc_fragment((32, 32), "float32")
            if by * 32 < M[bz]:
                T.clear(c)
                for k in T.Pipelined({-(-k // 16)}, num_stages=2):
                    T.copy(x[by * 32, k * 16], a)
                    T.copy(w[k * 16, bx * 32], b)
                    T.gemm(a, b, c)
                T.copy(c, y[by * 32, bx * 32])
        """)
        rows = (5, 1, 70)
        xs, ws, ys = _numbered("X"), _numbered("W"), _numbered("Y")
        params = [tensor(x, dtype, m, k) for x, m in zip(xs, rows, strict=True)]
        params += [tensor(w, dtype, k, n) for w in ws] + [
            output(y, "float32", m, n) for y, m in zip(ys, rows, strict=True)
        ]
        params += [table("P", dtype, *xs), table("Q", dtype, *ws), table("R", "float32", *ys), tensor("M", "int32", 3)]

        def data(rng: Any, dtype: str = dtype, n: int = n, k: int = k, rows: tuple[int, ...] = rows) -> Data:
            given = {f"X{g}": numbers(rng, (m, k), dtype) for g, m in enumerate(rows)}
            return {**given, **{f"W{g}": numbers(rng, (k, n), dtype) for g in range(3)}, "M": np.array(rows, np.int32)}

        launches, grid = {"": data}, f"{-(-n // 32)}, 3, 3"
        name = f"grouped-{dtype}"
        made = one(
            "pointers", name, params, body, None, launches, Tolerance(1e-4, 1e-3), grid=grid, axes="(bx, by, bz)"
        )
        found.append(made)
    return found


def _refusals() -> list[Unit]:
    params = [tensor("A", "int64", 8), tensor("B", "float32", 8)]

    def body(call: str) -> str:
        return f"x = {call}\nT.copy(x, B)"

    return [
        refused("pointers", "illegal-integer", body("T.make_tensor(A[bx], (8,), 'float32')"), "K128", params=params),
        refused("pointers", "illegal-tensor", body("T.make_tensor(A, (8,), 'float32')"), "K128", params=params),
    ]
