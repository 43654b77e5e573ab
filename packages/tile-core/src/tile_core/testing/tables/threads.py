"""Explicit threads and warps: indices, barriers, shuffles, votes, warp reductions, divergence."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_core.testing.case import VALUE, Data, Launch, Part, Unit, one, output, refused, tensor
from tile_core.testing.data import Array, anything, numbers, stored, values
from tile_core.testing.source import lines

THREADS = (1, 7, 31, 32, 48, 64, 96, 384)
NEEDS = frozenset({"threads"})
WARPS = frozenset({"threads", "warps"})


def units() -> list[Unit]:
    """Return the units of this table."""
    return [
        *_indices(), *_barriers(), *_halves(), *_warps(), *_matches(), *_votes_of_blocks(), *_shuffles(), *_refusals(),
    ]  # fmt: skip


def _indices() -> list[Unit]:
    found = []
    for threads in (1, 31, 128, (2, 5, 3), (32, 4, 1), (8, 8)):
        dims = (threads, 1, 1) if isinstance(threads, int) else (*threads, 1, 1)[:3]
        shape = dims[::-1]
        body = lines("""
            x, y, z = T.get_thread_bindings()
            B[z, y, x] = z * 10000 + y * 100 + x
            C[z, y, x] = T.get_thread_binding(0)
        """)
        params = [output("B", "int32", *shape), output("C", "int32", *shape)]
        name, data = f"indices-{'x'.join(map(str, dims))}", {"": lambda rng: {}}
        found.append(one("threads", name, params, body, None, data, threads=threads, needs=NEEDS))
    return found


def _barriers() -> list[Unit]:
    """Exchange through shared memory, trees, private storage, #2556 and #2612: reads inside divergent branches."""
    found = []
    for threads in THREADS:
        a = tensor("A", "float32", threads)
        b = output("B", "float32", threads)
        data = {"": lambda rng, n=threads: {"A": numbers(rng, (n,), "float32"), "B": np.full(n, -1, np.float32)}}  # type: ignore[misc]
        body = f"""
            tx = T.get_thread_binding(0)
            s = T.alloc_shared(({threads},), "float32")
            s[tx] = A[tx]
            T.sync_threads()
            B[tx] = s[{threads - 1} - tx]
        """
        found.append(one("threads", f"exchange-{threads}", [a, b], body, None, data, threads=threads, needs=NEEDS))
        active = max(1, threads * 3 // 4)
        body = f"""
            tx = T.get_thread_binding(0)
            s = T.alloc_shared(({threads},), "float32")
            if tx < {active}:
                s[tx] = A[tx]
                B[tx] = s[{active - 1} - tx]
        """

        def reversed_part(d: Data, active: int = active) -> Array:
            out = np.full(len(d["A"]), -1.0)
            out[:active] = values(d["A"], "float32")[:active][::-1]
            return out

        found.append(
            one("threads", f"#2556-branch-{threads}", [a, b], body, reversed_part, data, threads=threads, needs=NEEDS)
        )
    return [*found, *_counts(), *_trees(), *_loops(), *_tiles()]


def _counts() -> list[Unit]:
    """Return kernels with effects of each thread that a condition selects."""
    found = []
    for threads, some in ((32, 10), (64, 32), (48, 1)):
        body = f"""
            if T.get_thread_binding(0) < {some}:
                T.atomic_add(C[0], 1)
            else:
                T.atomic_add(C[1], 1)
        """

        def want(d: Data, some: int = some, rest: int = threads - some) -> Array:
            return d["C"] + np.array([some, rest], np.int32)

        data = {"": lambda rng: {"C": numbers(rng, (2,), "int32")}}
        params = [output("C", "int32", 2)]
        needs = NEEDS | {"atomic:add:int32"}
        found.append(one("threads", f"counts-{threads}", params, body, want, data, threads=threads, needs=needs))
    return found


def _trees() -> list[Unit]:
    found = []
    for steps in (1, 5, 7):
        n = 2**steps
        body = f"""
            tx = T.get_thread_binding(0)
            s = T.alloc_shared(({n},), "float32")
            s[tx] = A[tx]
            T.sync_threads()
            for step in T.serial({steps}):
                if tx < ({n // 2} >> step):
                    s[tx] = s[tx] + s[tx + ({n // 2} >> step)]
                T.sync_threads()
            if tx == 0:
                B[0] = s[0]
        """
        data = {"": lambda rng, n=n: {"A": numbers(rng, (n,), "float32")}}  # type: ignore[misc]
        params = [tensor("A", "float32", n), output("B", "float32", 1)]
        found.append(one("threads", f"tree-{n}", params, body, None, data, VALUE, threads=n, needs=NEEDS))
    return found


def _loops() -> list[Unit]:
    n = 64
    found = []
    for name, condition in (("mask", "M[tx] != 0"), ("modulo", "tx % 4 == 0")):
        body = f"""
            tx = T.get_thread_binding(0)
            s = T.alloc_shared(({n},), "int32")
            s[tx] = A[tx]
            if {condition}:
                for k in T.serial(3):
                    s[tx] = s[(tx + 4) % {n}] + 1
                B[tx] = s[(tx + 8) % {n}]
        """

        def want(d: Data) -> Array:
            s = d["A"].copy()
            at = np.arange(0, n, 4)
            for _ in range(3):
                s[at] = s[(at + 4) % n] + 1
            out = np.full(n, -1)
            out[at] = s[(at + 8) % n]
            return out

        def data(rng: np.random.Generator) -> Data:
            return {
                "M": (np.arange(n) % 4 == 0).astype(np.int32),
                "A": numbers(rng, (n,), "int32"),
                "B": np.full(n, -1, np.int32),
            }

        params = [tensor("M", "int32", n), tensor("A", "int32", n), output("B", "int32", n)]
        found.append(one("threads", f"#2612-{name}", params, body, want, {"": data}, threads=n, needs=NEEDS))
    return found


def _tiles() -> list[Unit]:
    body = """
        tx = T.get_thread_binding(0)
        s = T.alloc_shared((64, 16), "float32")
        r = T.alloc_local((16,), "float32")
        T.copy(A, s)
        total = T.alloc_var("float32", init=0.0)
        for j in T.serial(16):
            r[j] = s[tx, 15 - j]
            T.sync_threads()
            total += s[tx, j]
        for i, j in T.Parallel(64, 16):
            s[i, j] = s[i, j] + 1.0
        for j in T.serial(16):
            total += s[tx, j] + r[j]
        B[tx] = total
    """
    rows = {"": lambda rng: {"A": numbers(rng, (64, 16), "float32")}}
    params = [tensor("A", "float32", 64, 16), output("B", "float32", 64)]
    return [one("threads", "tiles-and-threads", params, body, None, rows, VALUE, threads=64, needs=NEEDS)]


def _halves() -> list[Unit]:
    """Bytes whose halves belong to different threads, or blocks."""
    found = []
    tx = "tx = T.get_thread_binding(0)\n"
    for dtype in ("int4", "uint4", "float4_e2m1fn"):
        value = f'T.cast(A[at], "{dtype}")'
        kinds = {
            "threads": ("1", tx + f"at = tx\nB[at] = {value}", 64),
            "turned": ("1", tx + f"at = 63 - tx\nB[at] = {value}", 64),
            "blocks": ("64", f"at = bx\nB[at] = {value}", 32),
            "tiles": (
                "13",
                lines(f"""
                for i in T.Parallel(5):
                    at = bx * 5 + i
                    B[at] = {value}
            """),
                32,
            ),
        }
        for name, (grid, body, threads) in kinds.items():
            data = {"": lambda rng: {"A": numbers(rng, (64,), "float32", 0, 4)}}
            params = [tensor("A", "float32", 64), output("B", dtype, 64)]
            needs = NEEDS if name in ("threads", "turned") else frozenset()
            how: dict[str, Any] = {"grid": grid, "threads": threads, "needs": needs}
            found.append(one("threads", f"halves-{dtype}-{name}", params, body, None, data, **how))
    return found


def _warps() -> list[Unit]:
    """#2599: warps that are not full; only the lanes that exist take part."""
    table: dict[str, tuple[str, str]] = {
        "sum": ("T.warp_reduce_sum(A[tx])", "int32"),
        "max": ("T.warp_reduce_max(A[tx])", "int32"),
        "min": ("T.warp_reduce_min(A[tx])", "int32"),
        "bitand": ("T.warp_reduce_bitand(A[tx])", "int32"),
        "bitor": ("T.warp_reduce_bitor(A[tx])", "int32"),
        "any": ("T.any_sync(A[tx] > 3)", "bool"),
        "all": ("T.all_sync(A[tx] < 4)", "bool"),
        "ballot": ("T.ballot(A[tx] > 0)", "uint64"),
        "active": ("T.activemask()", "uint64"),
        "match-all": ("T.match_all_sync(A[tx] // 9)", "uint64"),
        "match-any": ("T.match_any_sync(A[tx])", "uint64"),
    }
    found = []
    for threads in (1, 7, 31, 32, 48, 96):
        parts = {
            k: Part((output(f"B{n}", t, threads),), f"B{n}[tx] = {e}", None)
            for n, (k, (e, t)) in enumerate(table.items())
        }
        lane = "L[tx] = T.get_warp_idx() * 100 + T.get_lane_idx()"
        parts["lane"] = Part((output("L", "int32", threads),), lane, None)
        launch = Launch(lambda rng, n=threads: {"A": numbers(rng, (n,), "int32", -4, 4)})  # type: ignore[misc]
        params = (tensor("A", "int32", threads),)
        found.append(
            Unit(
                "warps",
                f"#2599-{threads}",
                params,
                "tx = T.get_thread_binding(0)",
                parts,
                {"": launch},
                threads=threads,
                needs=WARPS,
            )
        )
    return found


def _matches() -> list[Unit]:
    """Values of every width matched by bits, in full, partial and several warps."""
    found = []
    for dtype, threads in (("float16", 48), ("uint8", 31), ("float32", 64), ("int64", 33), ("float64", 32)):
        body = "tx = T.get_thread_binding(0)\nB[tx] = T.match_any_sync(A[tx])\nC[tx] = T.match_all_sync(A[tx])"

        def data(rng: np.random.Generator, n: int = threads, dtype: str = dtype) -> Data:
            chosen = stored(rng.choice([0.0, -0.0, 3.0, 7.0], n), dtype)
            chosen[32:] = chosen[0]
            return {"A": chosen}

        params = [tensor("A", dtype, threads), output("B", "uint64", threads), output("C", "uint64", threads)]
        found.append(one("warps", f"match-{dtype}", params, body, None, {"": data}, threads=threads, needs=WARPS))
    return found


def _votes_of_blocks() -> list[Unit]:
    """Votes of a block's threads, in a loop that they end, ordering shared memory."""
    body = lines("""
        t = T.get_thread_binding(0) + T.get_thread_binding(1) * X
        s = T.alloc_shared((N,), "int32")
        v = T.alloc_var("int32", init=A[bx, t])
        B[0, bx, t] = T.syncthreads_count(v > 3)
        s[t] = v
        B[1, bx, t] = T.cast(T.syncthreads_and(v >= 0), "int32") + s[N - 1 - t] * 2
        for k in T.serial(9):
            if not T.syncthreads_or(v > k):
                break
            B[2, bx, t] = k
    """)
    found = []
    for shape in ((1,), (31,), (64,), (16, 5), (96,)):
        n = int(np.prod(shape))

        def data(rng: np.random.Generator, n: int = n) -> Data:
            a = numbers(rng, (3, n), "int32", -1, 6)
            a[0] = np.abs(a[0])
            a[:, rng.integers(0, n)] = 7, 5, 9
            return {"A": a}

        text = body.replace("N", str(n)).replace("X", str(shape[0]))
        params = [tensor("A", "int32", 3, n), output("B", "int32", 3, 3, n)]
        name = f"block-votes-{'x'.join(map(str, shape))}"
        found.append(one("threads", name, params, text, None, {"": data}, grid="3", threads=shape,
                         needs=WARPS | {"threads", "atomic:add:int32"}))  # fmt: skip
    return found


def _shuffles() -> list[Unit]:
    """#2569: shuffles of every width of element."""
    n = 64
    table: dict[str, str] = {
        "xor": "T.shfl_xor(v, 5)",
        "up": "T.shfl_up(v, 3)",
        "down16": "T.shfl_down(v, 3, 16)",
        "sync": "T.shfl_sync(v, tx + 1)",
    }
    found = []
    for dtype in ("float16", "bfloat16", "int16", "int32", "float32", "int64", "float64", "uint8"):
        parts = {}
        for name, code in table.items():
            body = f"B_{name}[tx] = {code}"

            parts[name] = Part((output(f"B_{name}", dtype, n),), body, None)
        launch = Launch(lambda rng, dtype=dtype: {"A": anything(rng, (n,), dtype)})  # type: ignore[misc]
        params = (tensor("A", dtype, n),)
        start = "tx = T.get_thread_binding(0)\nv = A[tx]"
        found.append(
            Unit("warps", f"#2569-shuffle-{dtype}", params, start, parts, {"": launch}, threads=n, needs=WARPS)
        )
    return found


def _refusals() -> list[Unit]:
    a = [tensor("A", "float32", 64), tensor("Q", "bool", 64)]
    tx = "tx = T.get_thread_binding(0)\n"
    return [
        refused(
            "threads",
            "illegal-divergent-barrier",
            tx
            + lines("""
            if tx < 32:
                A[tx] = 0.0
                T.sync_threads()
        """),
            "K218",
            params=a,
            threads=64,
            needs=NEEDS,
        ),
        refused(
            "threads",
            "illegal-divergent-tile-op",
            tx
            + lines("""
            s = T.alloc_shared((64,), 'float32')
            if tx < 32:
                T.copy(A, s)
            A[tx] = s[tx]
        """),
            "K218",
            params=a,
            threads=64,
            needs=NEEDS,
        ),
        refused("threads", "illegal-axis", "tx = T.get_thread_binding(3)\nA[tx] = 0.0", "K128", params=a, needs=NEEDS),
        refused(
            "warps",
            "#2599-bits-of-floats",
            tx + "A[tx] = T.warp_reduce_bitand(A[tx])",
            "K128",
            params=a,
            threads=64,
            needs=WARPS,
        ),
        refused(
            "warps", "illegal-width", tx + "A[tx] = T.shfl_xor(A[tx], 1, 24)", "K128", params=a, threads=64, needs=WARPS
        ),
        refused(
            "warps", "illegal-bool", tx + "Q[tx] = T.shfl_xor(Q[tx], 1)", "K128", params=a, threads=64, needs=WARPS
        ),
    ]
