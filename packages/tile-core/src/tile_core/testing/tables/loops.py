"""T.Parallel and T.Pipelined: guards, branches, widths, private storage, stages, trip counts, races."""

from __future__ import annotations

from textwrap import indent

import numpy as np

from tile_core.testing.case import EXACT, VALUE, Data, Param, Unit, one, output, refused, scalar, tensor
from tile_core.testing.data import numbers, values
from tile_core.testing.source import lines

WIDTHS = (1, 2, 7, 24, 40, 48, 63, 96, 127, 129, 257)
THREADS = (1, 2, 31, 32, 33, 48, 96, 128, 384)


def units() -> list[Unit]:
    """Return the units of this table."""
    return [
        *_widths(),
        *_guards(),
        *_bodies(),
        *_trip_counts(),
        *_changing_bounds(),
        *_private(),
        *_races(),
        *_pipelines(),
        *_siblings(),
        *_pipelined_bodies(),
    ]


def _widths() -> list[Unit]:
    """#2394: a row combined with all rows, of any width; #2957: a shorter loop first."""
    found = []
    for n, width in enumerate(WIDTHS):
        threads = THREADS[n % 9]
        body = f"""
            x = T.alloc_fragment((9, {width}), "float32")
            d = T.alloc_fragment(({width},), "float32")
            T.copy(D, d)
            T.copy(A, x)
            for i, j in T.Parallel(9, {max(1, width // 2)}):
                x[i, j] = x[i, j] + 1.0
            for i, j in T.Parallel(9, {width}):
                x[i, j] = x[i, j] * d[j] * 2
            T.copy(x, B)
        """

        data = {"": lambda rng, w=width: {"A": numbers(rng, (9, w), "float32"), "D": numbers(rng, (w,), "float32")}}  # type: ignore[misc]
        params = [tensor("A", "float32", 9, width), tensor("D", "float32", width), output("B", "float32", 9, width)]
        found.append(
            one("parallel", f"#2394-#2957-width-{width}-{threads}", params, body, None, data, VALUE, threads=threads)
        )
    return found


def _guards() -> list[Unit]:
    """Tiles over matrices of any size: by condition, out-of-range rule, or a shorter trip count."""
    bodies = {
        "condition": """
            for i, j in T.Parallel(16, 24):
                if by * 16 + i < m and bx * 24 + j < n:
                    B[by * 16 + i, bx * 24 + j] = A[by * 16 + i, bx * 24 + j] * 2 + 1
        """,
        "rule": """
            for i, j in T.Parallel(16, 24):
                B[by * 16 + i, bx * 24 + j] = A[by * 16 + i, bx * 24 + j] * 2 + 1
        """,
        "trips": """
            for i, j in T.Parallel(T.min(16, m - by * 16), T.min(24, n - bx * 24)):
                B[by * 16 + i, bx * 24 + j] = A[by * 16 + i, bx * 24 + j] * 2 + 1
        """,
        "choice": """
            for i, j in T.Parallel(16, 24):
                r, c = by * 16 + i, bx * 24 + j
                B[r, c] = T.if_then_else(T.all_of(r < m, c < n), A[r, c] * 2 + 1, 0)
        """,
        "rows-and-columns": """
            row = T.alloc_fragment((24,), "float32")
            T.copy(A[by * 16, bx * 24], row) if False else T.clear(row)
            for i, j in T.Parallel(16, 24):
                B[by * 16 + i, bx * 24 + j] = A[by * 16 + i, bx * 24 + j] * 2 + 1 + row[j]
        """,
    }
    found = []
    for n, (name, body) in enumerate(bodies.items()):
        launches = {
            f"{m}x{k}": lambda rng, m=m, k=k: {"m": m, "n": k, "A": numbers(rng, (m, k), "float32")}
            for m, k in ((1, 1), (16, 24), (17, 23), (15, 49), (31, 100))
        }  # type: ignore[misc]
        params = [tensor("A", "float32", "m", "n"), output("B", "float32", "m", "n")]
        found.append(
            one("parallel", f"guard-{name}", params, body, lambda d: values(d["A"], "float32") * 2 + 1, launches, EXACT,
                threads=(32, 96, 128, 384, 31)[n], grid="T.ceildiv(n, 24), T.ceildiv(m, 16)", axes="(bx, by)",
                symbols=("m", "n"))
        )  # fmt: skip
    return found


def _bodies() -> list[Unit]:
    """Stencils, strides, indices from memory, branches on data (#2616), selections in lanes (#2682)."""
    n = 63
    a, index = tensor("A", "float32", n), tensor("I", "int32", n)

    def data(rng: np.random.Generator) -> Data:
        i = rng.permutation(np.arange(-40, 100))[:n].astype(np.int32)
        return {"A": numbers(rng, (n,), "float32", -9, 9), "I": i, "v": 4}

    cases: dict[str, str] = {
        "stencil": "B[i] = A[i - 1] + A[i + 1]",
        "stride": "B[i] = A[2 * i]",
        "backwards": "B[62 - i] = A[i]",
        "gathered": "B[i] = A[I[i]]",
        "scattered": "B[I[i]] = A[i]",
        "quotients": "B[i] = A[i // 2] + A[i % 7]",
        "#2616-nested": lines("""
            if A[i] > 0:
                if i % 4 == 0:
                    B[i] = A[i]
                elif v > 3:
                    B[i] = -A[i]
        """),
        "#2616-else": lines("""
            if A[i] > 0:
                B[i] = A[i]
            else:
                B[i] = A[i] * 2
        """),
        "#2682-select": "B[i] = T.Select(A[i] > 0, A[i], A[i] + 1)",
        "reads-itself": "B[i] = B[i] + A[i]",
        "offset": "B[i - 5] = A[i]",
    }  # fmt: skip
    found = []
    for k, (name, code) in enumerate(cases.items()):
        body = f"for i in T.{'vectorized' if name == '#2682-select' else 'Parallel'}({n}):\n" + indent(code, "    ")
        launches = {"": lambda rng: {**data(rng), "B": np.full(n, 100, np.float32)}}
        params = [a, index, scalar("v"), output("B", "float32", n)]
        found.append(one("parallel", name, params, body, None, launches, VALUE, threads=THREADS[k % 9]))
    return found


def _trip_counts() -> list[Unit]:
    body = "for i, j in T.Parallel(p, q):\n    B[i, j] = i * 100 + j"
    launches = {f"{p}x{q}": lambda rng, p=p, q=q: {"p": p, "q": q, "B": np.full((20, 30), -1, np.int32)}
                for p, q in ((0, 5), (1, 1), (2, 0), (2, 2), (20, 30), (25, 40), (-3, 4), (7, 29))}  # fmt: skip

    params = [scalar("p"), scalar("q"), output("B", "int32", 20, 30)]
    return [one("parallel", "trip-counts", params, body, None, launches, threads=32)]  # type: ignore[arg-type]


def _changing_bounds() -> list[Unit]:
    """Bounds that read a variable changed by the body: evaluated once, before the first iteration."""
    body = """
        n = T.alloc_var("int32", init=p)
        c = T.alloc_var("int32", init=0)
        for _ in range(n):
            c += 1
            n = 2
        B[0] = c
        n = p
        for i in range(n, 12):
            c += i
            n = 11
        B[1] = c
        n = p
        for _i, _j in T.grid(n, 2):
            c += 1
            n = n + 1
        B[2] = c
    """

    launches = {str(p): (lambda rng, p=p: {"p": p}) for p in (-3, 0, 1, 5, 13)}
    params = [scalar("p"), output("B", "int32", 3)]
    return [one("parallel", "changing-bounds", params, body, None, launches, threads=32)]  # type: ignore[arg-type]


def _private() -> list[Unit]:
    """Private arrays and variables per iteration; inner loops with trip counts from memory."""
    body = """
        for i in T.Parallel(17):
            own = T.alloc_local((9,), "float32")
            total = T.alloc_var("float32", 0.0)
            for j in range(9):
                own[j] = A[i, 8 - j]
            for j in T.serial(N[i]):
                total = total + own[j]
            B[i] = total
            for j in T.unroll(9):
                C[i, j] = own[j]
    """

    def data(rng: np.random.Generator) -> Data:
        return {"A": numbers(rng, (17, 9), "float32"), "N": rng.integers(-2, 12, 17).astype(np.int32)}

    params = [
        tensor("A", "float32", 17, 9),
        tensor("N", "int32", 17),
        output("B", "float32", 17),
        output("C", "float32", 17, 9),
    ]
    return [one("parallel", "private", params, body, None, {"": data}, VALUE, threads=t) for t in (32,)]


def _races() -> list[Unit]:
    start = lines("""
        s = T.alloc_shared((8, 8), 'float32')
        T.clear(s)
        for i, j in T.Parallel(8, 8):
            {}
        T.copy(s, A)
    """)
    a = [tensor("A", "float32", 8, 8)]
    codes = {
        "one-element": "s[0, 0] = A[i, j]", "a-row": "s[i, 0] = A[i, j]", "a-sum": "s[i, 0] = s[i, 0] + A[i, j]",
        "neighbour": "s[i, j] = s[i, j - 1] + 1.0",
    }  # fmt: skip
    found = [refused("parallel", f"illegal-race-{k}", start.format(v), "K214", params=a) for k, v in codes.items()]
    found.append(refused("parallel", "illegal-extent", "for i in T.Parallel(-1):\n    A[0, 0] = 1.0", "K119", params=a))
    found.append(
        refused(
            "parallel",
            "illegal-float-extent",
            lines("""
        for i in T.Parallel(2.5):
            A[i, 0] = 1.0
    """),
            "K119",
            params=a,
        )
    )
    return found


def _pipelines() -> list[Unit]:
    """Stages 0 to 4, trip counts from 0; contents of the last stage (#3039)."""
    found = []
    for stages in range(5):
        body = f"""
            s = T.alloc_shared((16, 24), "float16")
            f = T.alloc_fragment((16, 24), "float32")
            T.clear(f)
            T.fill(s, 5)
            for k in T.Pipelined(trips, num_stages={stages}):
                T.copy(A[k * 16, 0], s)
                for i, j in T.Parallel(16, 24):
                    f[i, j] = f[i, j] + s[i, j]
            T.copy(f, B)
            T.copy(s, C)
        """

        launches = {
            f"trips-{t}": lambda rng, t=t: {"trips": t, "A": numbers(rng, (128, 24), "float16")}
            for t in (0, 1, 2, 3, 8)
        }
        params = [
            tensor("A", "float16", 128, 24),
            scalar("trips"),
            output("B", "float32", 16, 24),
            output("C", "float16", 16, 24),
        ]
        found.append(one("pipelined", f"#2566-#3039-stages-{stages}", params, body, None, launches, VALUE))  # type: ignore[arg-type]
    return found


_TILES = tensor("A", "float32", 64, 24), output("B", "float32", 16, 24)


def _tiles(rng: np.random.Generator) -> Data:
    return {"A": numbers(rng, (64, 24), "float32"), "M": np.array([1, 0, 1, 1], np.int32)}


def _siblings() -> list[Unit]:
    """#2309: two loops over the same tiles."""
    found = []
    for first, second in ((2, 4), (4, 2), (3, 1), (3, 3)):
        body = f"""
            s = T.alloc_shared((16, 24), "float32")
            f = T.alloc_fragment((16, 24), "float32")
            T.clear(f)
            for k in T.Pipelined(4, num_stages={first}):
                T.copy(A[k * 16, 0], s)
                for i, j in T.Parallel(16, 24):
                    f[i, j] += s[i, j]
            for k in T.Pipelined(4, num_stages={second}):
                T.copy(A[k * 16, 0], s)
                for i, j in T.Parallel(16, 24):
                    f[i, j] += s[i, j] * s[i, j]
            T.copy(f, B)
        """

        found.append(one("pipelined", f"#2309-{first}-{second}", list(_TILES), body, None, {"": _tiles}, VALUE))
    return found


def _pipelined_bodies() -> list[Unit]:
    """#2876: a condition; #1792: a variable as index; writes to the source."""
    found, (a, b) = [], _TILES
    bodies: dict[str, tuple[str, tuple[Param, ...]]] = {
        "#2876-condition": (
            lines("""
                if M[k] != 0:
                    T.copy(A[k * 16, 0], s)
                    for i, j in T.Parallel(16, 24):
                        f[i, j] += s[i, j]
            """),
            (tensor("M", "int32", 4),),
        ),
        "#1792-variable": (
            lines("""
                T.copy(A[at, 0], s)
                at = 48 - k * 16
                for i, j in T.Parallel(16, 24):
                    f[i, j] += s[i, j] * (k + 1)
            """),
            (),
        ),
        "carried": (
            lines("""
                for i, j in T.Parallel(16, 24):
                    s[i, j] = f[i, j] + A[k * 16 + i, j]
                for i, j in T.Parallel(16, 24):
                    f[i, j] = s[15 - i, j]
            """),
            (),
        ),
    }  # fmt: skip
    for name, (code, more) in bodies.items():
        indented = code.replace("\n", "\n                ")
        body = f"""
            s = T.alloc_shared((16, 24), "float32")
            f = T.alloc_fragment((16, 24), "float32")
            at = T.alloc_var("int32", init=0)
            T.clear(f)
            for k in T.Pipelined(4, num_stages=3):
                {indented}
            T.copy(f, B)
        """
        found.append(one("pipelined", name, [a, *more, b], body, None, {"": _tiles}, VALUE))
    found.append(
        refused(
            "pipelined",
            "illegal-stages",
            "for k in T.Pipelined(4, num_stages=-1):\n    A[0, 0] = 1.0",
            "K119",
            params=[a],
        )
    )
    return found
