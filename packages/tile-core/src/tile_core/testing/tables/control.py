"""Control flow, variables, macros and launches, and refusals of the language."""

from __future__ import annotations

import numpy as np

from tile_core.testing.case import Data, Unit, one, output, refused, scalar, tensor
from tile_core.testing.data import Array
from tile_core.testing.source import lines

N = 20


def units() -> list[Unit]:
    """Return the units of this table."""
    return [*_branches(), *_serial(), *_names(), *_loops(), *_launches(), *_refusals()]


def _blockwise(name: str, code: str, before: str = "") -> Unit:
    """Return a unit whose block b computes B[b] from ``x`` and ``y``.

    ``x`` is A[b] and ``y`` is D[b].
    """

    def data(rng: np.random.Generator) -> Data:
        return {
            "A": rng.integers(0, 12, N).astype(np.int32),
            "D": rng.integers(-3, 5, N).astype(np.int32),
            "B": np.full(N, -1, np.int32),
        }

    params = [tensor("A", "int32", N), tensor("D", "int32", N), output("B", "int32", N)]
    body = "x = A[bx]\ny = D[bx]\n" + code
    return one("control", name, params, body, None, {"": data}, grid=str(N), threads=32, before=before)


_ZERO = "c = T.alloc_var('int32', init=0)\n"


def _branches() -> list[Unit]:
    return [
        _blockwise("if", "if x > 5:\n    B[bx] = y"),
        _blockwise("else", lines("""
            if x > y:
                B[bx] = x
            else:
                B[bx] = y
        """)),
        _blockwise("elif", lines("""
            if x < 3:
                B[bx] = 1
            elif x < 6:
                B[bx] = 2
            elif y > 0:
                B[bx] = 3
            else:
                B[bx] = 4
        """)),
        # A remainder with the divisor's sign takes statements of its own.
        _blockwise("elif-of-statements", lines("""
            if x < 3:
                B[bx] = 1
            elif (x - 6) % (y - 9) == 0:
                B[bx] = 2
            elif (x - 7) // (y - 11) == 0:
                B[bx] = 3
            else:
                B[bx] = 4
        """)),
        _blockwise("nested-if", lines("""
            if x > 2:
                if y > 1:
                    B[bx] = 1
                else:
                    B[bx] = 2
        """)),
        _blockwise("and-or-not", lines("""
            if (x > 3 and not y > 2) or x == 0:
                B[bx] = 1
            else:
                B[bx] = 0
        """)),
        _blockwise("chained", lines("""
            if 2 < x <= 7:
                B[bx] = 1
            else:
                B[bx] = 0
        """)),
        _blockwise("choice", "B[bx] = T.if_then_else(y > 0, x // T.max(y, 1), -x)"),
    ]  # fmt: skip


def _serial() -> list[Unit]:
    return [
        _blockwise("while", "n = T.alloc_var('int32', init=x)\n" + _ZERO + lines("""
            while n > 1:
                if n % 2 == 0:
                    n = n // 2
                else:
                    n = 3 * n + 1
                c += 1
            B[bx] = c
        """)),
        _blockwise("#2202-while-false", _ZERO + "while x < 0:\n    c += 1\nB[bx] = c"),
        _blockwise("#2539-two-conditions", _ZERO + lines("""
            for i in T.serial(4):
                if x < 2:
                    c += i
                if y < 2:
                    c += 10 * i
            B[bx] = c
        """)),
        _blockwise("break-continue", _ZERO + lines("""
            for i in T.serial(10):
                if i == x:
                    break
                if i % 2 == 0:
                    continue
                c += i
            B[bx] = c
        """)),
        _blockwise("#3026-break-unrolled", _ZERO + lines("""
            for i in T.unroll(10):
                if i == x:
                    break
                if i % 2 == 0:
                    continue
                c += i
            B[bx] = c
        """)),
        _blockwise("nested-break", _ZERO + lines("""
            for i in T.serial(5):
                for j in T.serial(5):
                    if i * j > x:
                        break
                    c += 1
                if i > y + 3:
                    break
            B[bx] = c
        """)),
        _blockwise("while-break", _ZERO + lines("""
            while c < 100:
                c += x + 1
                if c > 20:
                    break
            B[bx] = c
        """)),
    ]  # fmt: skip


def _names() -> list[Unit]:
    """Rebound names, macros, constants of the trace, and assumptions."""
    return [
        _blockwise("#3231-name-again", lines("""
            i = T.alloc_var('int32', init=x)
            B[bx] = i
            for j in T.serial(3):
                i = i + j
            B[bx] = i
        """)),
        _blockwise("#2594-read-before", lines("""
            v = A[bx]
            if y > 0:
                B[bx] = v + y
        """)),
        _blockwise("macro", "B[bx] = twice(x) + twice(y)", lines("""
            @T.macro
            def twice(v):
                return v + v
        """)),
        _blockwise("macro-branch", lines("""
            c = T.alloc_var('int32', init=y)
            raised(c, x)
            B[bx] = c
        """),
                   lines("""
                       @T.macro
                       def raised(c: T.Ref, v):
                           if v > c:
                               c = v
                   """)),
        _blockwise("helper", "B[bx] = mixed(x, y)", "def mixed(a, b):\n    return a * 3 - b"),
        _blockwise("tuple-swap", lines("""
            p = T.alloc_var('int32', init=x)
            q = T.alloc_var('int32', init=y)
            p, q = q, p
            B[bx] = p * 100 + q
        """)),
        _blockwise("#3019-assert", "assert N > 3\nB[bx] = x", "N = 20"),
        _blockwise("python-if", lines("""
            if FLAG:
                B[bx] = x
            else:
                B[bx] = undefined_name
        """), "FLAG = True"),
        _blockwise("static-range", _ZERO + lines("""
            for i in T.static_range(4):
                c += x * i
            B[bx] = c
        """)),
        _blockwise("assume", "T.assume(x >= 0)\nB[bx] = x % 4"),
        _blockwise("#2886-unroll-nothing", _ZERO + lines("""
            for i in T.unroll(0, 0, 2):
                c += 1
            B[bx] = c
        """)),
    ]  # fmt: skip


def _loops() -> list[Unit]:
    """Bounds and steps, from Python and at run time."""
    found = []
    for start, stop, step in ((0, 0, 1), (0, 1, 1), (2, 11, 3), (10, 0, -3), (5, 5, -1), (-4, 4, 2), (7, 3, 1)):
        body = f"""
            c = T.alloc_var("int32", init=0)
            for i in T.serial({start}, {stop}, {step}):
                c = c * 3 + i
            B[0] = c
            c = 0
            for i in range(p, q, {step}):
                c = c * 3 + i
            B[1] = c
            c = 0
            for i in T.unroll({start}, {stop}, {step}):
                c = c * 3 + i
            B[2] = c
        """
        data = {"": lambda rng, p=start, q=stop: {"p": p, "q": q}}  # type: ignore[misc]
        params = [scalar("p"), scalar("q"), output("B", "int32", 3)]
        found.append(one("control", f"range-{start},{stop},{step}", params, body, None, data, threads=32))
    body = "for i, j, k in T.grid(2, 3, 4):\n    B[i, j, k] = i * 100 + j * 10 + k"
    params = [output("B", "int32", 2, 3, 4)]
    return [*found, one("control", "grid", params, body, None, {"": lambda rng: {}})]


def _launches() -> list[Unit]:
    """Grids of one to three axes, runtime size and none; persistent blocks; swizzled rasterization."""
    cells = "B[{0}] = B[{0}] + 1"
    found = []
    for name, grid, axes, at, shape in (
        ("1d", "7", "bx", "bx", (7,)), ("2d", "5, 3", "(bx, by)", "by, bx", (3, 5)),
        ("3d", "2, 3, 4", "(bx, by, bz)", "bz, by, bx", (4, 3, 2)),
    ):  # fmt: skip
        data = {"": lambda rng, s=shape: {"B": np.zeros(s, np.int32)}}  # type: ignore[misc]
        b = [output("B", "int32", *shape)]
        found.append(one("control", f"launch-{name}", b, cells.format(at), None, data, grid=grid, axes=axes))
    for n in (0, 1, 5):
        data = {"": lambda rng, n=n: {"n": n, "B": np.zeros(8, np.int32)}}  # type: ignore[misc]
        params = [scalar("n"), output("B", "int32", 8)]
        found.append(one("control", f"launch-runtime-{n}", params, cells.format("bx"), None, data, grid="n"))
    body = "T.use_swizzle(4)\n" + cells.format("by, bx")
    data = {"": lambda rng: {"B": np.zeros((9, 13), np.int32)}}
    b = [output("B", "int32", 9, 13)]
    found.append(one("control", "swizzle", b, body, lambda d: np.ones((9, 13)), data, grid="13, 9", axes="(bx, by)"))
    body = "for by, bz in T.Persistent((9, 13), 4, bx):\n    B[by, bz] = B[by, bz] + 1"
    found.append(one("control", "persistent", b, body, lambda d: np.ones((9, 13)), data, grid="4"))
    return [*found, *_schedulers()]


def _schedulers() -> list[Unit]:
    """A block's tile scheduler as state in a multi-tile loop, with sizes from memory."""
    loop = lines("""
        while s.valid():
            B[s.m_idx, s.n_idx] = B[s.m_idx, s.n_idx] + s.m_idx * 100 + s.n_idx
            s.next_tile()
    """)
    found = []
    for name, grid, made, shape in (
        ("launch", "4", "T.PersistentTileScheduler(9, 13)", (9, 13)),
        ("given", "3", "T.PersistentTileScheduler(9, 13, wave_size=3, index=bx)", (9, 13)),
        ("more-blocks", "40", "T.PersistentTileScheduler(5, 7, group_size=4)", (5, 7)),
        ("late", "v", "T.PersistentTileScheduler(v + 1, T.ceildiv(v, 2), v, bx)", (6, 3)),
        ("empty", "2", "T.PersistentTileScheduler(v - 9, 3)", (6, 3)),
    ):
        body = f"s = {made}\n{loop}"

        def want(d: Data, name: str = name, shape: tuple[int, int] = shape) -> Array:
            i, j = np.indices(shape)
            return np.zeros(shape) if name == "empty" else i * 100 + j

        start = {"": lambda rng, s=shape: {"B": np.zeros(s, np.int32), "v": 5}}  # type: ignore[misc]
        params = [scalar("v"), output("B", "int32", *shape)]
        found.append(one("control", f"scheduler-{name}", params, body, want, start, grid=grid, threads=32))
    return found


def _refusals() -> list[Unit]:
    a = [tensor("A", "float32", 8), tensor("N", "int32", 8), scalar("n")]
    codes: dict[str, tuple[str, tuple[str, ...], str]] = {
        "#2977-rebound": (
            lines("""
            v = A[0]
            if n > 0:
                v = 1.0
            A[1] = v
        """),
            ("K111",),
            "1",
        ),
        "#2946-for-else": (
            lines("""
            for i in T.serial(4):
                if N[i] > 0:
                    break
            else:
                A[0] = 1.0
        """),
            ("K117",),
            "1",
        ),
        "#2946-while-else": (
            lines("""
            while N[0] > 0:
                N[0] = N[0] - 1
                if N[1] > 0:
                    break
            else:
                A[0] = 1.0
        """),
            ("K117",),
            "1",
        ),
        "runtime-unroll": ("for i in T.unroll(n):\n    A[i] = 0.0", ("K119",), "1"),
        "zero-step": ("for i in T.serial(0, 4, 0):\n    A[i] = 0.0", ("K119",), "1"),
        "constant-index": ("A[8] = 0.0", ("K106",), "1"),
        "rank": ("A[0, 0] = 0.0", ("K107",), "1"),
        "step-slice": ("T.clear(A[0:8:2])", ("K108",), "1"),
        "unknown-name": ("T.no_such_function(A)", ("K129",), "1"),
        "runtime-return": ("if n > 0:\n    return", ("K116",), "1"),
        "shape": ("s = T.alloc_shared((0, 4), 'float32')", ("K122",), "1"),
        "runtime-shape": ("s = T.alloc_shared((n,), 'float32')", ("K122",), "1"),
        "dtype": ("s = T.alloc_shared((4,), 'float12')", ("K101",), "1"),
        "grid": ("A[0] = 0.0", ("K120",), "-1"),
        "four-axes": ("A[0] = 0.0", ("K120",), "1, 1, 1, 1"),
        "global-workspace": ("w = T.alloc_global((4,), 'float32')", ("K135",), "1"),
        "yield": ("x = [A[i] for i in T.serial(4)]", ("K113", "K119", "K128"), "1"),
    }
    found = [refused("control", f"illegal-{k}", body, *c, params=a, grid=g) for k, (body, c, g) in codes.items()]
    for threads in (0, -32):
        found.append(refused("control", f"illegal-threads-{threads}", "A[0] = 0.0", "K120", params=a, threads=threads))
    return found
