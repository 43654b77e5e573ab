"""Runtime sizes, strides and corners of every integer type, mixed, and read from memory."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tile_core.testing.case import VALUE, Data, Param, Unit, one, output, scalar, tensor
from tile_core.testing.data import numbers
from tile_core.testing.source import lines

#: Types of symbolic sizes; ``""`` for a constant one.
KINDS = ("", "int32", "int64")


def units() -> list[Unit]:
    """Return the units of this table."""
    return [*_atomic_tiles(), *_rows(), *_bounds(), *_strides(), *_copies(), *_grids()]


def _declared(**kinds: str) -> str:
    """Return the lines that declare symbols."""
    return "\n".join(f'{name} = T.dynamic("{name}", "{kind}")' for name, kind in kinds.items() if kind)


def _atomic_tiles() -> list[Unit]:
    """A tile is added at a corner of a tensor, and partly beyond it."""
    found = []
    corners = {"constant": "1", "block": "bx * 8", "read": "first[bx]", "computed": "z[bx] * 2 - 1", "variable": "at"}
    for number, (kind, (name, at)) in enumerate(itertools.product(KINDS, corners.items())):
        op, dtype = ("add", "max", "min")[number % 3], ("float32", "int32")[number % 2]
        scope = ("fragment", "shared")[number // 2 % 2]
        body = lines(f"""
            s = T.alloc_{scope}((8, 16), "{dtype}")
            T.copy(S, s)
            at = T.alloc_var("int32", init=0)
            at = first[bx]
            T.atomic_{op}(A[{at}, 0], s)
        """)

        def data(rng: np.random.Generator, dtype: str = dtype) -> Data:
            first = rng.integers(-4, 38, 2).astype(np.int32)
            s, a = numbers(rng, (8, 16), dtype, -9, 9), numbers(rng, (37, 16), dtype, -5, 5)
            return {"m": 37, "S": s, "A": a, "first": first, "z": rng.integers(-2, 20, 2).astype(np.int32)}

        params = [
            tensor("S", dtype, 8, 16), tensor("first", "int32", 2), tensor("z", "int32", 2),
            output("A", dtype, "m" if kind else 37, 16),
        ]  # fmt: skip
        rest = {"grid": "2", "before": _declared(m=kind), "needs": frozenset({f"atomic:{op}:{dtype}"})}
        found.append(one("atomic", f"tile-{kind or 'fixed'}-{name}", params, body, None, {"": data}, VALUE, **rest))
    return found


def _rows() -> list[Unit]:
    """Tables of symbolic height and width."""
    found = []
    for kind, other in itertools.product(KINDS, KINDS):
        before = _declared(m=kind, n=other)
        shape = ("m" if kind else 29, "n" if other else 24)
        data = {
            "": lambda rng: {
                "m": 29, "n": 24, "A": numbers(rng, (29, 24), "float32"),
                "R": rng.permutation(np.arange(-5, 35))[:12].astype(np.int32),
            }
        }  # fmt: skip
        body = lines("""
            s = T.alloc_shared((4, 24), "float32")
            T.gather(A[:, 0:24], R[bx * 4 : bx * 4 + 4], s)
            T.copy(s, B[bx * 4, 0])
            T.scatter(s, C[:, 0:24], R[bx * 4 : bx * 4 + 4])
        """)

        params = [
            tensor("A", "float32", *shape), tensor("R", "int32", 12), output("B", "float32", 12, 24),
            output("C", "float32", *shape),
        ]  # fmt: skip
        full = {"": lambda rng, d=data[""]: {**d(rng), "C": np.zeros((29, 24), np.float32)}}
        name = f"table-{kind or 'fixed'}-{other or 'fixed'}"
        found.append(one("gather", name, params, body, None, full, VALUE, grid="3", before=before))
    return found


def _bounds() -> list[Unit]:
    """Thread loops with negative, loaded or scalar bounds, and reads of unindexed tensors."""
    found = []
    lows = {"0": "0", "-1": "-1", "read": "V[2]", "scalar": "n", "index": "i - 2"}
    for kind, (name, low) in itertools.product(KINDS, lows.items()):
        body = lines(f"""
            for i, j in T.Parallel(8, 8):
                v = T.alloc_var("int32", init=0)
                for q in T.serial({low}, V[5]):
                    v = v + A[bx * 8 + i, j] * 3 + A[q, j] + q
                O[i, j] = v
        """)

        def data(rng: np.random.Generator, n: int) -> Data:
            v = np.full(8, 3, np.int32)
            v[2], v[5] = n, 4
            return {"m": 41, "n": n, "V": v, "A": numbers(rng, (41, 16), "int32", -99, 99)}

        launches = {f"{n}": lambda rng, n=n: data(rng, n) for n in (-3, 0, 4, 9)}
        params = [
            tensor("A", "int32", "m" if kind else 41, 16), tensor("V", "int32", 8), scalar("n"),
            output("O", "int32", 8, 8),
        ]  # fmt: skip
        rest: Any = {"threads": 32, "before": _declared(m=kind)}
        found.append(one("serial", f"bounds-{kind or 'fixed'}-{name}", params, body, None, launches, **rest))
    return found


def _strides() -> list[Unit]:
    """Extents and strides of one tensor in all pairs of types."""
    found = []
    for kinds in itertools.product(KINDS, repeat=3):
        m, n, s = kinds
        body = lines("""
            T.copy(A[bx, 0:8], B[bx, 0:8])
            for j in T.Parallel(8):
                C[bx, j] = A[bx, j]
        """)

        def data(rng: np.random.Generator) -> Data:
            return {"m": 3, "n": 9, "s": 20, "A": numbers(rng, (3, 20), "int8")[:, :9]}

        shape = ("m" if m else 3, "n" if n else 9)
        a = Param("A", "int8", shape, strides=("s" if s else 20, 1))
        params = [a, output("B", "int8", shape[0], 8), output("C", "int8", shape[0], 8)]
        rest: Any = {"grid": str(shape[0]), "threads": 32, "before": _declared(m=m, n=n, s=s)}
        name = "strided-" + "-".join(kind or "fixed" for kind in kinds)
        found.append(one("shapes", name, params, body, None, {"": data}, **rest))
    return found


def _copies() -> list[Unit]:
    """A tensor corner beside a symbolic tensor: the tile has the other operand's extents."""
    found: list[Unit] = []
    for kind in KINDS[1:]:
        body = lines("""
            s = T.alloc_shared((4, 8), "float32")
            T.copy(A[z[bx], z[1]], s)
            T.copy(s, B[bx * 4, 0])
        """)

        def data(rng: np.random.Generator) -> Data:
            return {"m": 11, "n": 13, "A": numbers(rng, (11, 13), "float32"), "z": np.array([9, 7, -2], np.int32)}

        params = [tensor("A", "float32", "m", "n"), tensor("z", "int32", 3), output("B", "float32", 12, 8)]
        rest = {"grid": "3", "before": _declared(m=kind, n="int64")}
        found.append(one("copy", f"corner-{kind}", params, body, None, {"": data}, VALUE, **rest))
    return found


def _grids() -> list[Unit]:
    """Blocks of grids of each type along each axis, in swizzled order."""
    found: list[Unit] = []
    for (m, n), order in itertools.product(itertools.product(KINDS, KINDS), ("row", "column")):
        shape = ("m" if m else 5, "n" if n else 3)
        body = f"T.use_swizzle(2, order={order!r})\nT.atomic_add(B[bx, by], A[bx, by])"

        def data(rng: np.random.Generator) -> Data:
            return {"m": 5, "n": 3, "A": numbers(rng, (5, 3), "int32"), "B": np.ones((5, 3), np.int32)}

        params = [tensor("A", "int32", *shape), output("B", "int32", *shape)]
        rest: Any = {"grid": f"{shape[0]}, {shape[1]}", "axes": "(bx, by)", "before": _declared(m=m, n=n)}
        rest |= {"threads": 32, "needs": frozenset({"atomic:add:int32"})}
        name = f"swizzled-{m or 'fixed'}-{n or 'fixed'}-{order}"
        found.append(one("launches", name, params, body, None, {"": data}, **rest))
    return found
