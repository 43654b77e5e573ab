"""Work of a part of a block's threads (``T.ws``): results equal those without it."""

from __future__ import annotations

import numpy as np

from tile_core.testing.case import Data, Reference, Unit, one, output, refused, tensor
from tile_core.testing.source import lines

M, N = 24, 33
#: A target may lack barriers of parts of a block.
_OPTIONAL = "barriers of parts of a block"


def units() -> list[Unit]:
    """Return the units of this table."""
    return [*_work(), *_refusals()]


def _numbers(rng: np.random.Generator) -> Data:
    return {name: rng.integers(-9, 10, (M, N)).astype(np.float32) for name in "AD"}


def _unit(name: str, body: str, threads: int = 128, want: Reference | None = None) -> Unit:
    params = [tensor("A", "float32", M, N), tensor("D", "float32", M, N), output("B", "float32", M, N)]
    start = "".join(f's{k} = T.alloc_shared(({M}, {N}), "float32")\n' for k in range(2))
    start += "".join(f'f{k} = T.alloc_fragment(({M}, {N}), "float32")\n' for k in range(2))
    text = start + lines(body.replace("ALL", f"T.Parallel({M}, {N})").replace("LAST", str(M - 1)))
    return one("roles", name, params, text, want, {"": _numbers}, threads=threads, optional=_OPTIONAL)


def _work() -> list[Unit]:
    return [
        # Two roles that do not depend on each other, and what both have made.
        _unit("apart", """
            with T.ws(0, size=64):
                T.copy(A, s0)
                T.copy(s0, f0)
                for i, j in ALL:
                    f0[i, j] = f0[i, j] * 2
                T.copy(f0, s0)
            with T.ws(1, size=64):
                T.copy(D, s1)
                T.copy(s1, f1)
                for i, j in ALL:
                    s1[i, j] = f1[LAST - i, j]
            for i, j in ALL:
                B[i, j] = s0[i, j] + s1[i, j]
        """),
        # One role passes a tile to another one in each iteration of a loop.
        _unit("turns", """
            T.clear(f0)
            for k in T.serial(3):
                with T.ws(1, size=32):
                    for i, j in ALL:
                        s0[i, j] = A[i, j] + T.cast(k, "float32")
                with T.ws(2, 3, size=32):
                    for i, j in ALL:
                        s1[i, j] = s0[LAST - i, j] + D[i, j]
                for i, j in ALL:
                    f0[i, j] = f0[i, j] + s1[i, j]
            T.copy(f0, B)
        """),
        # A tile in registers that a role fills and the block reads, and a reduction by a role.
        _unit("fragments", """
            m = T.alloc_fragment((24,), "float32")
            with T.ws(0, 1, size=32):
                T.copy(A, f0)
            with T.ws(2, size=32):
                T.copy(D, f1)
                T.reduce_max(f1, m, dim=1)
            for i, j in ALL:
                B[i, j] = f0[i, j] - m[i]
        """, 96),
        # All threads, a variable that only a role uses, and a condition.
        _unit("all", """
            with T.ws(0):
                n = T.alloc_var("int32", init=2)
                for k in T.serial(3):
                    if k == 1:
                        n = n + k
                for i, j in ALL:
                    s0[i, j] = D[LAST - i, j] + T.cast(n, "float32") - 3
            for i, j in ALL:
                B[i, j] = A[i, j] * 2 + s0[i, j]
        """),
        _by_thread(),
        _numbered(),
        _product(),
        *(_slots(k, role) for k, role in ((32, 1), (16, 0))),
    ]  # fmt: skip


def _by_thread() -> Unit:
    """Roles that are named by thread indices."""
    return _unit("by_thread", """
        tx = T.get_thread_binding()
        warp = tx // 32
        T.clear(f0)
        for k in T.serial(3):
            if warp == 1:
                for i, j in ALL:
                    s0[i, j] = A[i, j] + T.cast(k, "float32")
            elif tx >= 64 and k != 1:
                for i, j in ALL:
                    s1[i, j] = s0[LAST - i, j] + D[i, j]
            for i, j in ALL:
                f0[i, j] = f0[i, j] + s1[i, j]
        if tx < 96:
            T.copy(f0, s1)
        else:
            T.copy(D, s0)
        for i, j in ALL:
            B[i, j] = s0[i, j] + s1[i, j]
    """, want=lambda d: d["D"] + 3 * (d["A"][::-1] + d["D"]) + 2)  # fmt: skip


def _numbered() -> Unit:
    """Barriers of roles, and of all threads, with numbers."""
    return _unit("numbered", """
        with T.ws(1, size=64):
            T.copy(A, s0)
            T.sync_threads(1, 64)
            T.copy(s0, f0)
            for i, j in ALL:
                f0[i, j] = f0[i, j] * 2
            T.copy(f0, s0)
        with T.ws(0, size=64):
            T.copy(D, s1)
            T.sync_threads(4, 64)
            T.copy(s1, f1)
            T.sync_threads(4, 64)
            for i, j in ALL:
                s1[i, j] = f1[LAST - i, j]
        T.sync_threads(2, 128)
        for i, j in ALL:
            B[i, j] = s0[i, j] + s1[i, j]
    """)  # fmt: skip


def _product() -> Unit:
    """A pipelined product by one role while the other one reduces rows, pipelined too."""
    params = [tensor("A", "float16", 64, 48), tensor("D", "float16", 48, 32), output("B", "float32", 64, 32)]
    body = lines("""
        s = T.alloc_shared((64, 16), "float16")
        t = T.alloc_shared((16, 32), "float16")
        u = T.alloc_shared((64, 16), "float16")
        c = T.alloc_fragment((64, 32), "float32")
        f = T.alloc_fragment((64, 16), "float32")
        r = T.alloc_fragment((64,), "float32")
        with T.ws(1):
            T.clear(c)
            for k in T.Pipelined(3, num_stages=2):
                T.copy(A[0, k * 16], s)
                T.copy(D[k * 16, 0], t)
                T.gemm(s, t, c)
        with T.ws(0):
            T.clear(r)
            for k in T.Pipelined(3, num_stages=3):
                T.copy(A[0, k * 16], u)
                for i, j in T.Parallel(64, 16):
                    f[i, j] = T.cast(u[i, j], "float32")
                T.reduce_sum(f, r, dim=1, clear=False)
        for i, j in T.Parallel(64, 32):
            B[i, j] = c[i, j] + r[i]
    """)

    def data(rng: np.random.Generator) -> Data:
        return {n: rng.integers(-3, 4, s).astype(np.float16) for n, s in (("A", (64, 48)), ("D", (48, 32)))}

    return one("roles", "product", params, body, None, {"": data}, threads=256, optional=_OPTIONAL)


def _slots(k: int, role: int) -> Unit:
    """A product by one role, of slots that the other fills, with the largest tiles."""
    columns, trips = 32, 3
    body = lines(f"""
        s = T.alloc_shared((2, 128, {k}), "float16")
        t = T.alloc_shared((2, {columns}, {k}), "float16")
        c = T.alloc_fragment((128, {columns}), "float32")
        full = T.alloc_barrier([128] * 2)
        empty = T.alloc_barrier([128] * 2)
        with T.ws({role}):
            T.clear(c)
        for o in T.serial({trips}):
            with T.ws({1 - role}):
                T.barrier_wait(empty[o % 2], (o // 2 + 1) % 2)
                T.copy(A[0, o * {k}], s[o % 2, :, :])
                T.copy(D[0, o * {k}], t[o % 2, :, :])
                T.barrier_arrive(full[o % 2])
            with T.ws({role}):
                T.barrier_wait(full[o % 2], o // 2 % 2)
                T.gemm(s[o % 2, :, :], t[o % 2, :, :], c, transpose_B=True)
                T.barrier_arrive(empty[o % 2])
        with T.ws({role}):
            for i, j in T.Parallel(128, {columns}):
                B[i, j] = c[i, j] + j
    """)

    def data(rng: np.random.Generator) -> Data:
        return {n: rng.integers(-3, 4, (m, k * trips)).astype(np.float16) for n, m in (("A", 128), ("D", columns))}

    params = [tensor("A", "float16", 128, k * trips), tensor("D", "float16", columns, k * trips)]
    params.append(output("B", "float32", 128, columns))
    needs = frozenset({"name:alloc_barrier"})
    return one("roles", f"slots-{k}", params, body, None, {"": data}, threads=256, optional=_OPTIONAL, needs=needs)


def _refusals() -> list[Unit]:
    a = [tensor("A", "float32", 64)]
    within = "with T.ws(0, size=32):\n"
    bodies = {
        "nested": within + "    with T.ws(0, size=32):\n        A[0] = 1.0",
        "in-parallel": "for i in T.Parallel(64):\n    with T.ws(0, size=32):\n        A[i] = 1.0",
        "more-threads": "with T.ws(1, size=64):\n    A[0] = 1.0",
        "names-threads": within + "    A[T.get_thread_binding(0)] = 1.0",
        "private": "n = T.alloc_var('int32', init=0)\n" + within + "    n = n + 1\nA[n] = 1.0",
    }
    found = [refused("roles", f"illegal-{k}", body, "K230", params=a, threads=64) for k, body in bodies.items()]
    leaves = "for k in T.serial(3):\n    with T.ws(0, size=32):\n        if A[k] > 0.0:\n            break"
    found.append(refused("roles", "illegal-break", leaves, "K115", params=a, threads=64))
    # Barriers of parts need whole warps, of at most 64 threads. Half a warp of any width is refused.
    group = "with T.ws(0, size=64):\n"
    parts = {
        "other-count": group + "    T.sync_threads(1, 128)",
        "two-parts": group + "    T.sync_threads(1, 64)\nwith T.ws(1, size=64):\n    T.sync_threads(1, 64)",
        "unknown-part": "if A[T.get_thread_binding(0) % 64] > 0.0:\n    T.sync_threads(1, 64)",
        "half-a-warp": "if T.get_thread_binding(0) < 5:\n    T.sync_threads(1, 5)",
    }
    found += [refused("roles", f"illegal-{k}", body, "K232", params=a, threads=128) for k, body in parts.items()]
    found.append(refused("roles", "illegal-number", "T.sync_threads(0, 64)", "K128", params=a, threads=64))
    found += [
        refused("roles", f"illegal-{k}", f"with T.ws({groups}):\n    A[0] = 1.0", "K128", params=a, threads=64)
        for k, groups in (("gap", "0, 2, size=16"), ("negative", "-1"), ("none", ""), ("size", "0, size=0"))
    ]
    return found
