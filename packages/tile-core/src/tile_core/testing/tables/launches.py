"""Several launches of one call, workspaces between them, and launches without an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_core.testing.case import VALUE, Data, Unit, one, output, refused, scalar, tensor
from tile_core.testing.data import Array, numbers, values
from tile_core.testing.source import lines

TYPES = ("float32", "float16", "bfloat16", "int32", "uint8", "int64", "int4", "bool")


#: Bodies with launches, and what they store from A and v.
_FORMS: dict[str, tuple[str, Any]] = {
    "safe-value": (
        """
        with T.Kernel(threads=32):
            T.annotate_safe_value({A: 5.0})
            for i in T.Parallel(20):
                B[i] = A[i]
        with T.Kernel(threads=32):
            for i in T.Parallel(20):
                B[i + 20] = A[i]
        """,
        lambda a, v: np.concatenate([a, np.full(7, 5.0), a, np.zeros(7)]),
    ),
    "swizzle": (
        """
        with T.Kernel(5, 4, threads=32) as (x, y):
            T.use_swizzle(2)
            B[y * 5 + x] = A[(y * 5 + x) % 13]
        with T.Kernel(20, threads=1) as (x,):
            B[x + 20] = x
        """,
        lambda a, v: np.concatenate([a[np.arange(20) % 13], np.arange(20)]),
    ),
    "empty": (
        """
        with T.Kernel(40, threads=1) as x:
            B[x] = 1
        with T.Kernel(v - 3, threads=32) as x:
            B[x] = 9
        with T.Kernel(0, threads=32) as x:
            B[x] = 8
        with T.Kernel(v, threads=32) as x:
            B[x] = B[x] + A[x]
        """,
        lambda a, v: np.concatenate([1 + a[:v], np.ones(40 - v)]),
    ),
    "threads": (
        """
        W = T.alloc_global((64,), "float32")
        with T.Kernel(2, threads=32) as b:
            t = T.get_thread_binding()
            W[b * 32 + t] = A[t % 13] + b
        with T.Kernel(threads=8):
            for i in T.Parallel(40):
                B[i] = W[63 - i]
        """,
        lambda a, v: (np.tile(a, 5)[np.arange(64) % 32 % 13] + np.arange(64) // 32)[::-1][:40],
    ),
}


def units() -> list[Unit]:
    """Return the units of this table."""
    return [*_split_k(), *_reversed(), *_forms(), *_barriers(), *_refused()]


def _split_k() -> list[Unit]:
    """Partial reductions and their total, the shape of split-K products and decoding attention."""
    body = """
        parts = T.alloc_global((T.ceildiv(m, 16), 24), "float32")
        with T.Kernel(T.ceildiv(m, 16), threads=64) as (bx,):
            x = T.alloc_fragment((16, 24), "float32")
            p = T.alloc_fragment((24,), "float32")
            T.copy(A[bx * 16, 0], x)
            T.reduce_sum(x, p, dim=0)
            T.copy(p, parts[bx, 0])
        with T.Kernel(threads=32):
            total = T.alloc_fragment((24,), "float32")
            T.clear(total)
            for k in T.serial(T.ceildiv(m, 16)):
                for j in T.Parallel(24):
                    total[j] = total[j] + parts[k, j] * v
            T.copy(total, B)
    """
    launches = {
        str(m): lambda rng, m=m: {"m": m, "v": 3, "A": numbers(rng, (m, 24), "float32")} for m in (1, 15, 16, 33, 100)
    }
    params = [tensor("A", "float32", "m", 24), scalar("v"), output("B", "float32", 24)]
    return [
        one("launches", "split-sum", params, body, None, launches, VALUE, symbols=("m",), own_launches=True)
    ]  # fmt: skip


def _reversed() -> list[Unit]:
    """Every launch reads other blocks' writes of the previous launch.

    The last one rereads the first workspace.
    """
    found = []
    for n, dtype in enumerate(TYPES):
        rows, cols = ((9, 16), (17, 8), (3, 34), (40, 6))[n % 4]
        body = f"""
            U = T.alloc_global(({rows}, {cols}), "{dtype}")
            V = T.alloc_global(({rows}, {cols}), "{dtype}")
            with T.Kernel({rows}, threads={(32, 64, 96, 1)[n % 4]}) as b:
                s = T.alloc_shared(({cols},), "{dtype}")
                T.copy(A[{rows - 1} - b, 0], s)
                T.copy(s, U[b, 0])
            with T.Kernel(1, {rows}, threads=32) as (_, b):
                s = T.alloc_shared(({cols},), "{dtype}")
                T.copy(U[({rows - 1} - b + 1) % {rows}, 0], s)
                T.copy(s, V[b, 0])
            with T.Kernel():
                for r in T.serial({rows}):
                    T.copy(V[{rows - 1} - r, 0:{cols}], B[r, 0:{cols}])
                    T.copy(U[r, 0:{cols}], C[r, 0:{cols}])
        """

        launches = {"": lambda rng, s=(rows, cols), dtype=dtype: {"A": numbers(rng, s, dtype)}}
        params = [tensor("A", dtype, rows, cols), output("B", dtype, rows, cols), output("C", dtype, rows, cols)]
        found.append(one("launches", f"reversed-{dtype}", params, body, None, launches, VALUE, own_launches=True))
    return found


def _forms() -> list[Unit]:
    """Annotations, sizes and scalars of single launches, empty grids, thread counts, one shared name."""
    found = []
    for name, (body, meaning) in _FORMS.items():
        params = [tensor("A", "float32", 13), scalar("v"), output("B", "float32", 40)]
        launches = {"": lambda rng: {"A": numbers(rng, (13,), "float32"), "v": 3}}

        def want(d: Data, meaning: Any = meaning) -> Array:
            result: Array = meaning(values(d["A"], "float32"), int(d["v"]))
            return result

        found.append(one("launches", name, params, body, want, launches, VALUE, own_launches=True))
    return found


def _barriers() -> list[Unit]:
    """Grid barriers: blocks read other blocks' writes, names persist, a grid of several axes."""
    body = lines("""
        W = T.alloc_global((m, 16), "float32")
        with T.Kernel(T.ceildiv(m, 8), 2, threads=64) as (bx, by):
            T.use_swizzle(2)
            row, half = bx * 8, by * 8
            a = T.alloc_fragment((8, 8), "float32")
            T.copy(A[row, half], a)
            a *= 2.0
            T.copy(a, W[row, half])
            T.sync_grid()
            b = T.alloc_fragment((8, 8), "float32")
            for i, j in T.Parallel(8, 8):
                b[i, j] = W[m - 1 - T.min(row + i, m - 1), 15 - (half + j)] + v
            T.copy(b, B[row, half])
            T.sync_grid()
            T.sync_grid()
            if bx == 0 and by == 1:
                for j in T.Parallel(16):
                    C[j] = B[0, j] + B[m - 1, j]
    """)

    def want(d: Data) -> dict[str, Array]:
        b = values(d["A"], "float32")[::-1, ::-1] * 2 + d["v"]
        return {"B": b, "C": b[0] + b[-1]}

    launches = {str(m): lambda rng, m=m: {"A": numbers(rng, (m, 16), "float32"), "v": 3, "m": m} for m in (1, 8, 100)}  # type: ignore[misc]
    params = [tensor("A", "float32", "m", 16), scalar("v"), output("B", "float32", "m", 16), output("C", "float32", 16)]
    return [one("launches", "sync-grid", params, body, want, launches, VALUE, symbols=("m",), own_launches=True)]


def _refused() -> list[Unit]:
    nested = "with T.Kernel(2) as b:\n    with T.Kernel(3) as c:\n        B[b] = c"
    inside = 'with T.Kernel(2) as b:\n    W = T.alloc_global((4,), "float32")\n    B[b] = W[b]'
    after = "with T.Kernel(2) as b:\n    x = T.alloc_shared((4,), 'float32')\nwith T.Kernel(2) as b:\n    B[b] = x[0]"
    named = "with T.Kernel(threads=32) as b:\n    B[0] = b"
    barrier = "with T.Kernel(2) as b:\n    for k in T.serial(2):\n        T.sync_grid()\n    B[b] = 1"
    branch = "with T.Kernel(2) as b:\n    if b == 0:\n        T.sync_grid()"
    kept = lines("""
        with T.Kernel(2) as b:
            x = T.alloc_shared((4,), "int32")
            x[0] = 1
            T.sync_grid()
            B[b] = x[0]
    """)
    counted = "with T.Kernel(2) as b:\n    x = T.alloc_var('int32', 1)\n    T.sync_grid()\n    B[b] = x"
    read = "with T.Kernel(2) as b:\n    x = B[b]\n    T.sync_grid()\n    B[b + 2] = x"
    texts = {
        "grid-barrier-loop": (barrier, "K145"), "grid-barrier-branch": (branch, "K145"),
        "grid-barrier-kept": (kept, "K145"), "grid-barrier-counted": (counted, "K145"),
        "grid-barrier-read": (read, "K145"), "grid-barrier-outside": ("T.sync_grid()", "K145"),
        "nested": (nested, "K121"), "inside": (inside, "K135"),
        "after": (after, "K110"), "named": (named, "K120"),
    }  # fmt: skip
    params = [output("B", "float32", 4)]
    return [
        refused("launches", name, body, code, params=params, own_launches=True)
        for name, (body, code) in texts.items()
    ]  # fmt: skip
