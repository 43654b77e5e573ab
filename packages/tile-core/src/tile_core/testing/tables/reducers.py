"""Reducers: additions, extremes and bits over parallel iterations, in one epoch and in several."""

from __future__ import annotations

from tile_core.testing.case import VALUE, Unit, one, output, refused, tensor
from tile_core.testing.data import numbers


def units() -> list[Unit]:
    """Return the units of this table."""
    return [*_reducers(), *_fragment_reducers(), *_epochs(), *_other_updates(), *_refusals()]


def _reducers() -> list[Unit]:
    found = []
    for dtype in ("float32", "int32", "float16", "int64"):
        body = f'''
            total = T.alloc_reducer((17,), "{dtype}", op="sum")
            top = T.alloc_reducer((17,), "{dtype}", op="max", replication="all")
            low = T.alloc_reducer((17,), "{dtype}", op="min", replication="none")
            for i, j in T.Parallel(17, 40):
                total[i] += A[i, j]
                top[i] = T.max(top[i], A[i, j])
                low[i] = T.min(low[i], A[i, j])
            T.finalize_reducer(total)
            T.finalize_reducer(top)
            T.finalize_reducer(low)
            T.copy(total, B[0, :])
            T.copy(top, B[1, :])
            T.copy(low, B[2, :])
        '''

        data = {"": lambda rng, t=dtype: {"A": numbers(rng, (17, 40), t, -9, 9)}}  # type: ignore[misc]
        params = [tensor("A", dtype, 17, 40), output("B", dtype, 3, 17)]
        found.append(one("reducer", dtype, params, body, None, data, VALUE))
    return found


def _epochs() -> list[Unit]:
    """Reducers with several epochs, of compile-time or runtime count, over small and large tiles."""
    found = []
    for dtype, op in (
        ("int32", "bitand"), ("uint8", "bitor"), ("int64", "bitxor"), ("float32", "sum"), ("float16", "max"),
        ("int16", "min"), ("uint32", "bitand"),
    ):  # fmt: skip
        for rows, count in ((21, "3"), (130, "n"), (9, "n")):
            body = f'''
                r = T.alloc_reducer(({rows},), "{dtype}", "{op}")
                last = T.alloc_fragment(({rows},), "{dtype}")
                T.clear(last)
                for k in T.serial({count}):
                    T.reducer_init(r)
                    for i, j in T.Parallel({rows}, 17):
                        T.reducer_update(r[i], A[k, i, j])
                    for i in T.Parallel({rows}):
                        T.reducer_update(r[i], A[k, i, 0])
                    T.finalize_reducer(r, last)
                    T.copy(last, B[k, 0])
                T.copy(last, C)
            '''

            sizes = {"": 3} if count == "3" else {"four": 4, "one": 1, "none": 0}
            data = {
                name: (lambda rng, n=n, t=dtype, r=rows: {"A": numbers(rng, (n, r, 17), t, -9, 9), "n": n})  # type: ignore[misc]
                for name, n in sizes.items()
            }
            params = [tensor("A", dtype, count, rows, 17), output("B", dtype, count, rows), output("C", dtype, rows)]
            if count == "3":
                data = {"": lambda rng, t=dtype, r=rows: {"A": numbers(rng, (3, r, 17), t, -9, 9)}}  # type: ignore[misc]
                params = [tensor("A", dtype, 3, rows, 17), output("B", dtype, 3, rows), output("C", dtype, rows)]
            name = f"epochs-{dtype}-{op}-{rows}-{count}"
            symbols = ("n",) if count == "n" else ()
            found.append(one("reducer", name, params, body, None, data, VALUE, threads=64, symbols=symbols))
    return found


def _other_updates() -> list[Unit]:
    """Updates that are not the reducer's operation alone: one thread does them in order."""
    updates: dict[str, tuple[str, str]] = {
        "scaled": ("sum", "r[i] = r[i] * 3 + A[i, j]"),
        "nested": ("bitor", "r[i] = A[i, j] | (r[i] | 4)"),
        "counted": ("max", "r[i] = T.max(r[i], A[i, j]) + 1"),
    }
    found = []
    for name, (op, update) in updates.items():
        body = f'''
            r = T.alloc_reducer((24,), "int32", "{op}")
            T.fill(r, 2)
            for i, j in T.Parallel(24, 11):
                {update}
            T.finalize_reducer(r)
            T.copy(r, B)
        '''

        data = {"": lambda rng: {"A": numbers(rng, (24, 11), "int32", -9, 9)}}
        params = [tensor("A", "int32", 24, 11), output("B", "int32", 24)]
        found.append(one("reducer", f"other-updates-{name}", params, body, None, data, threads=64))
    return found


def _fragment_reducers() -> list[Unit]:
    """Reducers over fragments whose extents do not come out even over the threads."""
    found = []
    for rows, columns, threads in ((4, 96, 128), (5, 130, 64), (9, 21, 96), (3, 33, 31)):
        body = f"""
            a = T.alloc_fragment(({rows}, {columns}), "float32")
            total = T.alloc_reducer(({rows},), "float32", op="sum")
            low = T.alloc_reducer(({columns},), "float32", op="min")
            T.copy(A, a)
            for i, j in T.Parallel({rows}, {columns}):
                total[i] += a[i, j]
                low[j] = T.min(low[j], a[i, j])
            T.finalize_reducer(total)
            T.finalize_reducer(low)
            T.copy(total, B)
            T.copy(low, C)
        """

        data = {"": lambda rng, s=(rows, columns): {"A": numbers(rng, s, "float32", 1, 9)}}  # type: ignore[misc]
        params = [tensor("A", "float32", rows, columns), output("B", "float32", rows), output("C", "float32", columns)]
        name = f"fragment-{rows}x{columns}-{threads}"
        found.append(one("reducer", name, params, body, None, data, VALUE, threads=threads))
    return found


def _refusals() -> list[Unit]:
    return [
        refused("reducer", "illegal-bits", "r = T.alloc_reducer((8,), 'float32', op='bitor')", "K123"),
        refused("reducer", "illegal-begin", "f = T.alloc_fragment((8,), 'float32')\nT.reducer_init(f)", "K212"),
        refused("reducer", "illegal-end", "f = T.alloc_fragment((8,), 'float32')\nT.finalize_reducer(f)", "K212"),
        refused("reducer", "illegal-update", "r = T.alloc_reducer((8,), 'int32')\nT.reducer_update(r, 3)", "K212"),
        refused("reducer", "illegal-op", "r = T.alloc_reducer((8,), 'float32', op='mean')", "K123"),
        refused("reducer", "illegal-finalize", "r = T.alloc_fragment((8,), 'float32')\nT.finalize_reducer(r)", "K212"),
    ]
