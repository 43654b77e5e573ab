"""T.copy: scopes, awkward tiles, windows at any corner, strides, ranks, overlaps, hints."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_core.dtypes import DTYPES
from tile_core.testing import oracles
from tile_core.testing.case import Data, Launch, Param, Part, Unit, one, output, refused, scalar, tensor
from tile_core.testing.data import TYPES, Array, anything, numbers, values
from tile_core.testing.source import lines

SCOPES = ("shared", "fragment", "local")
SIZES = (1, 7, 8, 17, 24, 48, 63, 96, 127, 129)
THREADS = (1, 2, 31, 32, 33, 96, 128, 384)


def units() -> list[Unit]:
    """Return the units of this table."""
    return [
        *_scopes(),
        *_tiles(),
        *_windows(),
        *_threads(),
        *_offsets(),
        *_strided(),
        *_shapes(),
        *_packed(),
        *_hints(),
        *_refusals(),
    ]


def _scopes() -> list[Unit]:
    """Global, one scratch buffer, another one, global."""
    shape = (7, 18)
    found = []
    for n, dtype in enumerate(TYPES):
        parts = {}
        for first in SCOPES:
            second = SCOPES[(SCOPES.index(first) + n) % 3]
            body = f'''
                x_{first} = T.alloc_{first}({shape}, "{dtype}")
                y_{first} = T.alloc_{second}({shape}, "{dtype}")
                T.copy(A, x_{first})
                T.copy(x_{first}, y_{first})
                T.copy(y_{first}, B_{first})
            '''
            parts[f"{first}-{second}"] = Part((output(f"B_{first}", dtype, *shape),), body, None)
        parts["direct"] = Part((output("C", dtype, *shape),), "T.copy(A, C)", None)
        launches = {"": Launch(lambda rng, t=dtype: {"A": anything(rng, shape, t)})}  # type: ignore[misc]
        found.append(Unit("copy", f"scopes-{dtype}", (tensor("A", dtype, *shape),), "", parts, launches, threads=96))
    return found


def _tiles() -> list[Unit]:
    """A grid of tiles over any matrix; the last tile exposes reads outside."""
    found = []
    types = [t for t in TYPES if not DTYPES[t].is_packed and t != "bool"]
    for n, dtype in enumerate(types):
        rows, cols = SIZES[n * 3 % 10], SIZES[n * 7 % 10]
        scope, threads = SCOPES[n % 3], THREADS[n % 8]
        body = f'''
            s = T.alloc_{scope}(({rows}, {cols}), "{dtype}")
            T.fill(s, 1)
            T.copy(A[by * {rows}, bx * {cols}], s)
            T.copy(s, B[by * {rows}, bx * {cols}])
            if T.all_of(bx == T.ceildiv(n, {cols}) - 1, by == T.ceildiv(m, {rows}) - 1):
                T.copy(s, P)
        '''

        def want(d: Data, rows: int = rows, cols: int = cols, dtype: str = dtype) -> dict[str, Array]:
            data = values(d["A"], dtype)
            corner = ((d["m"] - 1) // rows * rows, (d["n"] - 1) // cols * cols)
            last = oracles.copy_region(data, corner, (rows, cols), DTYPES[dtype].fill)
            return {"B": data, "P": last}

        launches = {}
        for m, k in ((1, 1), (rows, cols), (rows + 1, max(1, cols - 1)), (2 * rows + 3, 3 * cols + 7)):
            launches[f"{m}x{k}"] = lambda rng, m=m, k=k, t=dtype: {"m": m, "n": k, "A": anything(rng, (m, k), t)}
        params = [tensor("A", dtype, "m", "n"), output("B", dtype, "m", "n"), output("P", dtype, rows, cols)]
        found.append(
            one("copy", f"tiles-{rows}x{cols}-{dtype}-{scope}", params, body, want, launches, threads=threads,
                grid=f"T.ceildiv(n, {cols}), T.ceildiv(m, {rows})", axes="(bx, by)", symbols=("m", "n"))
        )  # fmt: skip
    return found


def _windows() -> list[Unit]:
    """A window at any corner, read and written; both may lie partly or wholly outside."""
    rows, cols = 5, 18
    corners = (
        (-6, 0),
        (-5, -17),
        (-1, -1),
        (0, 0),
        (1, 3),
        (7, 22),
        (11, 39),
        (12, 40),
        (112, -18),
        (2**31 - 20, 2**31 - 40),
    )
    found = []
    for dtype in ("float32", "int8", "bfloat16", "int64"):
        body = f'''
            s = T.alloc_shared(({rows}, {cols}), "{dtype}")
            T.copy(A[i, j], s)
            T.copy(s, R)
            T.copy(A[i : i + {rows}, j : j + {cols}], s)
            T.copy(s, W[i : i + {rows}, j : j + {cols}])
        '''

        launches = {}
        for i, j in corners:
            launches[f"{i},{j}"] = lambda rng, i=i, j=j, t=dtype: {
                "i": i, "j": j, "A": anything(rng, (12, 40), t), "W": numbers(rng, (12, 40), t)
            }  # fmt: skip
        params = [
            tensor("A", dtype, 12, 40), scalar("i"), scalar("j"), output("R", dtype, rows, cols),
            output("W", dtype, 12, 40)
        ]  # fmt: skip
        found.append(one("copy", f"windows-{dtype}", params, body, None, launches, threads=32))
    return found


def _threads() -> list[Unit]:
    """#2562: every thread count stores all elements; #2529: a length not divisible by the block."""
    found = []
    for threads in THREADS:
        body = """
            s = T.alloc_shared((256,), "float16")
            T.copy(A[bx * 256], s)
            T.copy(s, B[bx * 256])
        """
        launches = {
            str(n): lambda rng, n=n: {"n": n, "A": anything(rng, (n,), "float16")} for n in (1, 255, 256, 257, 1000)
        }  # type: ignore[misc]
        params = [tensor("A", "float16", "n"), output("B", "float16", "n")]
        found.append(
            one("copy", f"#2529-#2562-threads-{threads}", params, body, None, launches,
                threads=threads, grid="T.ceildiv(n, 256)", symbols=("n",))
        )  # fmt: skip
    return found


def _offsets() -> list[Unit]:
    """#2527, #2584: starts without vector alignment; #2581: a tile wider than the copy."""
    found = []
    for dtype in ("int32", "float16", "uint8"):
        body = f'''
            s = T.alloc_shared((32, 40), "{dtype}")
            T.fill(s, 1)
            T.copy(A[0:32, at : at + 32], s[:, 3:35])
            T.copy(s[:, 3:35], B[0:32, at : at + 32])
            v = T.alloc_shared((70,), "{dtype}")
            T.copy(A[3, at : at + 61], v[5:66])
            T.copy(v[6:66], C[at : at + 60])
            T.copy(s[:, 0:36], D)
        '''

        launches = {
            str(at): lambda rng, at=at, t=dtype: {
                "at": at, "A": anything(rng, (32, 70), t), "B": numbers(rng, (32, 70), t), "C": numbers(rng, (70,), t)
            }
            for at in (0, 1, 2, 3, 4, 7, 8, 16, 33)
        }  # type: ignore[misc]  # fmt: skip
        params = [
            tensor("A", dtype, 32, 70), scalar("at"), output("B", dtype, 32, 70), output("C", dtype, 70),
            output("D", dtype, 32, 36),
        ]  # fmt: skip
        found.append(one("copy", f"#2527-#2581-#2584-offset-{dtype}", params, body, None, launches))
    return found


def _strided() -> list[Unit]:
    """Tensors that are not contiguous: transposed, every other column, a pitch."""
    found = []
    for dtype in ("float32", "float16", "int8"):
        for name, strides, of in (
            ("transposed", (1, 7), lambda a: a.T[:6]), ("columns", (18, 2), lambda a: a[:6, ::2]),
            ("pitch", (11, 1), lambda a: a[:6, :9]),
        ):  # fmt: skip
            shape = {"transposed": (9, 7), "columns": (6, 18), "pitch": (6, 11)}[name]
            body = f'''
                s = T.alloc_shared((8, 16), "{dtype}")
                T.copy(A[0, 0], s)
                T.copy(s, B[0, 0])
                T.copy(s, C)
            '''

            def data(
                rng: np.random.Generator, of: Any = of, shape: tuple[int, ...] = shape, dtype: str = dtype
            ) -> Data:
                return {"A": of(anything(rng, shape, dtype)), "B": of(numbers(rng, shape, dtype))}

            params = [
                Param("A", dtype, (6, 9), strides=strides), Param("B", dtype, (6, 9), out=True, strides=strides),
                output("C", dtype, 8, 16),
            ]  # fmt: skip
            found.append(one("copy", f"strided-{name}-{dtype}", params, body, None, {"": data}, threads=32))
    return found


def _shapes() -> list[Unit]:
    """Ranks, rows, columns, elements; sides that overlap; a safe value."""
    a = tensor("A", "float32", 2, 3, 9, 20)
    cases = {
        "plane": ((9, 20), lines("""
            s = T.alloc_shared((9, 20), 'float32')
            T.copy(A[1, z, 0:9, 0:20], s)
            T.copy(s, B)
        """)),
        "row": ((20,), lines("""
            s = T.alloc_shared((1, 20), 'float32')
            T.copy(A[z, 1, 4, :], s)
            T.copy(s, B)
        """)),
        "column": ((9,), lines("""
            s = T.alloc_fragment((9, 1), 'float32')
            T.copy(A[0, z, :, 7], s)
            T.copy(s[:, 0], B)
        """)),
        "element": ((1,), "T.copy(A[z, 1, 3, 5], B)"),
        "outer": ((3, 20), "T.copy(A[z, 0:3, 8, :], B)"),
        "overlap-up": ((20,), lines("""
            s = T.alloc_shared((20,), 'float32')
            T.copy(A[0, 0, z, :], s)
            T.copy(s[0:15], s[3:18])
            T.copy(s, B)
        """)),
        "overlap-down": ((20,), lines("""
            s = T.alloc_shared((20,), 'float32')
            T.copy(A[0, 0, z, :], s)
            T.copy(s[3:18], s[0:15])
            T.copy(s, B)
        """)),
        "safe-value": ((12,), lines("""
            T.annotate_safe_value({A: -7.0})
            s = T.alloc_shared((12,), 'float32')
            T.copy(A[z, 2, 8, 14], s)
            T.copy(s, B)
        """)),
        "safe-infinity": ((12,), lines("""
            T.annotate_safe_value({A: -T.infinity('float32')})
            T.copy(A[z, 2, 8, 14], B)
        """)),
    }  # fmt: skip
    found = []
    for name, (shape, body) in cases.items():
        launches = {f"{z}": lambda rng, z=z: {"z": z, "A": anything(rng, (2, 3, 9, 20), "float32")} for z in (0, 1)}  # type: ignore[misc]
        params = [a, scalar("z"), output("B", "float32", *shape)]
        found.append(one("copy", name, params, body, None, launches, threads=32))  # type: ignore[misc]
    return found


def _packed() -> list[Unit]:
    """Packed elements at odd places."""
    found = []
    for dtype in ("int4", "uint4", "float4_e2m1fn"):
        body = f'''
            s = T.alloc_shared((4, 6), "{dtype}")
            T.copy(A[0, 3], s)
            T.copy(s, B[0, j])
        '''

        launches = {
            f"{j}": lambda rng, j=j, t=dtype: {"j": j, "A": anything(rng, (4, 16), t), "B": anything(rng, (4, 16), t)}
            for j in (-1, 0, 1, 10, 13)
        }  # type: ignore[misc]
        params = [tensor("A", dtype, 4, 16), output("B", dtype, 4, 16), scalar("j")]
        found.append(one("copy", f"packed-{dtype}", params, body, None, launches, threads=32))
    return found


def _hints() -> list[Unit]:
    """#3007: hints are never errors."""
    body = """
        s = T.alloc_shared((17,), "float32")
        T.copy(A, s, coalesced_width={width})
        T.copy(s, B, coalesced_width={width}, disable_tma=True, eviction_policy="evict_first")
    """
    params = [tensor("A", "float32", 17), output("B", "float32", 17)]
    data = {"": lambda rng: {"A": anything(rng, (17,), "float32")}}
    return [one("copy", f"#3007-width-{w}", params, body.format(width=w), None, data) for w in (1, 2, 3, 64)]


def _refusals() -> list[Unit]:
    a = [tensor("A", "float32", 8, 16)]
    return [
        refused("copy", "illegal-shapes", "s = T.alloc_shared((8, 15), 'float32')\nT.copy(A, s)", "K203", params=a),
        refused("copy", "illegal-runtime-extent", "T.copy(A[0:bx, :], A[0:bx, :])", "K202", params=a),
        refused("copy", "illegal-scalar", "T.copy(3, A)", "K201", params=a),
    ]
