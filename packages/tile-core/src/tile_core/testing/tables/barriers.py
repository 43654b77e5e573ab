"""Explicit barriers: results equal those without them, and unbalanced ones are rejected."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_core.testing.case import Data, Param, Unit, one, output, refused, scalar, tensor
from tile_core.testing.data import Array
from tile_core.testing.source import lines

R, C, MOST = 6, 20, 5
#: A target may lack barriers with phases, and roles.
_OPTIONAL = "barriers with phases"
#: Names that a package besides the core adds to ``T``.
NAMES = frozenset({"name:alloc_barrier"})


def units() -> list[Unit]:
    """Return the units of this table."""
    return [*_handed_over(), *_in_loops(), _threads(), *_refusals()]


def _params(dtype: str) -> list[Param]:
    return [tensor("A", dtype, MOST * R, C), output("B", dtype, MOST * R, C), scalar("n")]


def _handed_over() -> list[Unit]:
    """A producer role fills a ring of slots for a consumer role.

    Rings of several lengths, constant and unknown trip counts.
    """
    found = []
    for stages, dtype in ((1, "float32"), (2, "int32"), (3, "float16")):
        for trips in ("n", "0", "1", "2", "5"):
            body = lines(f"""
                s = T.alloc_shared(({stages}, {R}, {C}), "{dtype}")
                full = T.alloc_barrier([64] * {stages})
                empty = T.alloc_barrier([32] * {stages})
                for k in T.serial({trips}):
                    with T.ws(0, 1, size=32):
                        T.barrier_wait(empty[k % {stages}], (k // {stages} + 1) % 2)
                        T.copy(A[k * {R}, 0], s[k % {stages}, :, :])
                        T.barrier_arrive(full[k % {stages}])
                    with T.ws(2, size=32):
                        T.barrier_wait(full[k % {stages}], k // {stages} % 2)
                        for i, j in T.Parallel({R}, {C}):
                            B[k * {R} + i, j] = s[k % {stages}, {R - 1} - i, {C - 1} - j]
                        T.barrier_arrive(empty[k % {stages}])
            """)

            launches = {
                str(n): lambda rng, n=n, dtype=dtype: {**_data(rng, dtype), "n": n}
                for n in (range(MOST + 1) if trips == "n" else (0,))
            }
            name = f"slots-{stages}-{trips}"
            how: dict[str, Any] = {"threads": 96, "optional": _OPTIONAL, "needs": NAMES}
            found.append(one("barriers", name, _params(dtype), body, None, launches, **how))
    return found


def _in_loops() -> list[Unit]:
    """The same with loops inside of the roles, whose iterations alternate."""
    found = []
    for stages, dtype in ((1, "float32"), (2, "float16"), (3, "int32")):
        body = lines(f"""
            s = T.alloc_shared(({stages}, {R}, {C}), "{dtype}")
            full = T.alloc_barrier([64] * {stages})
            empty = T.alloc_barrier([32] * {stages})
            with T.ws(0, 1, size=32):
                for k in T.serial(n):
                    T.barrier_wait(empty[k % {stages}], (k // {stages} + 1) % 2)
                    T.copy(A[k * {R}, 0], s[k % {stages}, :, :])
                    T.barrier_arrive(full[k % {stages}])
            with T.ws(2, size=32):
                for m in T.serial(n):
                    T.barrier_wait(full[m % {stages}], m // {stages} % 2)
                    for i, j in T.Parallel({R}, {C}):
                        B[m * {R} + i, j] = s[m % {stages}, {R - 1} - i, {C - 1} - j]
                    T.barrier_arrive(empty[m % {stages}])
        """)

        def want(d: Data) -> Array:
            turned = d["A"].reshape(MOST, R, C)[:, ::-1, ::-1].reshape(MOST * R, C)
            return np.concatenate([turned[: d["n"] * R], d["B"][d["n"] * R :]])

        launches = {str(n): lambda rng, n=n, dtype=dtype: {**_data(rng, dtype), "n": n} for n in range(MOST + 1)}
        made = one(
            "barriers", f"turns-{stages}", _params(dtype), body, want, launches, threads=96, optional=_OPTIONAL,
            needs=NAMES,
        )  # fmt: skip
        found.append(made)
    return found


def _data(rng: np.random.Generator, dtype: str) -> Data:
    return {name: rng.integers(-9, 10, (MOST * R, C)).astype(dtype) for name in "AB"}


def _threads() -> Unit:
    """Threads that name themselves, with one phase for each direction."""
    body = lines(f"""
        t = T.get_thread_binding(0)
        s = T.alloc_shared((64,), "int32")
        full, read = T.alloc_barrier(64), T.alloc_barrier(64)
        for k in range({MOST}):
            s[t] = A[k, t]
            T.barrier_arrive(full)
            T.barrier_wait(full, k % 2)
            B[k, t] = s[63 - t]
            T.barrier_arrive(read)
            T.barrier_wait(read, k & 1)
    """)
    params = [tensor("A", "int32", MOST, 64), output("B", "int32", MOST, 64)]
    data = {"": lambda rng: {"A": rng.integers(-99, 100, (MOST, 64)).astype(np.int32)}}
    return one(
        "barriers", "threads", params, body, lambda d: d["A"][:, ::-1], data, threads=64, optional=_OPTIONAL,
        needs=NAMES | {"threads"},
    )  # fmt: skip


def _refusals() -> list[Unit]:
    loop = "b = T.alloc_barrier(64)\nfor k in range(n):\n    "
    bodies = {
        "no-arrival": ("b = T.alloc_barrier(64)\nT.barrier_wait(b, 0)", "K233"),
        "too-few": ("b = T.alloc_barrier(65)\nT.barrier_arrive(b)\nT.barrier_wait(b, 0)", "K233"),
        "too-many": ("b = T.alloc_barrier(63)\nT.barrier_arrive(b)\nT.barrier_wait(b, 0)", "K233"),
        "left-open": ("b = T.alloc_barrier(128)\nT.barrier_arrive(b)", "K233"),
        "overtaken": (loop + "T.barrier_arrive(b)", "K233"),
        "parity": (loop + "T.barrier_arrive(b)\n    T.barrier_wait(b, 0)", "K233"),
        "unknown-parity": (loop + "T.barrier_arrive(b)\n    T.barrier_wait(b, n)", "K232"),
        "in-parallel": ("b = T.alloc_barrier(64)\nfor i in T.Parallel(64):\n    T.barrier_arrive(b)", "K232"),
        "in-loop": ("for k in range(n):\n    b = T.alloc_barrier(64)", "K232"),
        "object": ("b = T.alloc_barrier([64, 64])\nT.barrier_arrive(b[2])", "K232"),
        "count": ("b = T.alloc_barrier(n)", "K128"),
    }
    return [
        refused("barriers", f"illegal-{k}", body, code, params=[scalar("n")], threads=64, needs=NAMES)
        for k, (body, code) in bodies.items()
    ]
