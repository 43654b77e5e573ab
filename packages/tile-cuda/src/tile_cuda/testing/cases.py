"""Cases of the conformance suite with products that arrive at a barrier (``mbar=``).

They are right where the target has tensor memory, and refused by name elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tile_core import sparse
from tile_core.dtypes import DTYPES
from tile_core.testing import oracles
from tile_core.testing.case import VALUE, Data, Param, Unit, one, output, refused, tensor
from tile_core.testing.data import Array, numbers, stored, values
from tile_cuda.ptx.table import TABLE, has
from tile_cuda.ptx.tensor import product_name
from tile_cuda.target import TCGEN05

if TYPE_CHECKING:
    from tile_core.target import Target

_WITHOUT = "products in tensor memory, which few architectures have"
M = 128
"""Rows of a product."""
#: Element types of A, B and the accumulator, elements along K of a tile, columns, trip count, and the allocator.
_SLOTS = (
    ("float16", "float16", "float32", 64, 64, 1, "alloc_fragment"),
    ("float16", "float16", "float32", 32, 240, 5, "alloc_tmem"),
    ("bfloat16", "bfloat16", "float32", 16, 48, 2, "alloc_tmem"),
    ("float16", "float16", "float16", 48, 16, 3, "alloc_fragment"),
    ("tfloat32", "tfloat32", "float32", 24, 32, 4, "alloc_fragment"),
    ("int8", "uint8", "int32", 64, 80, 3, "alloc_tmem"),
    ("float8_e4m3fn", "float8_e5m2", "float32", 96, 112, 2, "alloc_fragment"),
)
_E4M3, _E8M0 = "float8_e4m3fn", "float8_e8m0fnu"


def units(target: Target) -> list[Unit]:
    """Return the units for a target."""
    has = bool(target.capabilities.fact(TCGEN05))
    how: dict[str, Any] = {"optional": "" if has else _WITHOUT}
    arch = target.arch
    found = [_slots(*given, **(how if _multiplies(given[0], arch) else {"optional": _WITHOUT})) for given in _SLOTS]
    found += [_each_trip(**how), _held(**how), _roles(**how), _sparse(1, **how), _sparse(3, **how), _scaled(**how)]
    return [*found, _gathered(**how), *(_refusals() if has else [])]


def _multiplies(dtype: str, arch: str) -> bool:
    """Whether tensor memory takes products of a type: sm_103a has none of 8-bit integers."""
    return dtype not in ("int8", "uint8") or has(TABLE[product_name("i8")], arch)


def _slots(a: str, b: str, c: str, k: int, n: int, trips: int, allocator: str, **how: Any) -> Unit:
    """Two slots: each waits for its previous product, and all are waited for before C."""
    turned = DTYPES[a].bits != 16
    tile, whole = ((n, k), (n, k * trips)) if turned else ((k, n), (k * trips, n))
    body = f"""
        S, R = T.alloc_shared((2, {M}, {k}), "{a}"), T.alloc_shared((2, {tile[0]}, {tile[1]}), "{b}")
        acc, done = T.{allocator}(({M}, {n}), "{c}"), T.alloc_barrier([1, 1])
        T.clear(acc)
        for o in range({trips}):
            if o >= 2:
                T.mbarrier_wait_parity(done[o % 2], (o // 2 + 1) % 2)
            T.copy(A[0, o * {k}], S[o % 2, :, :])
            T.copy(B[{f"0, o * {k}" if turned else f"o * {k}, 0"}], R[o % 2, :, :])
            T.tcgen05_gemm(S[o % 2, :, :], R[o % 2, :, :], acc, transpose_B={turned}, mbar=done[o % 2])
        for last in range({max(0, trips - 2)}, {trips}):
            T.mbarrier_wait_parity(done[last % 2], (last // 2) % 2)
        T.copy(acc, C)
    """
    types = {"A": (a, (M, k * trips)), "B": (b, whole)}
    return _dense(f"mbar-slots-{a}-{c}-{n}-{trips}", types, c, n, body, turned, **how)


def _each_trip(**how: Any) -> Unit:
    """A runtime trip count with a wait per product; the first product clears."""
    body = f"""
        S, R = T.alloc_shared(({M}, 32), "float16"), T.alloc_shared((32, 96), "float16")
        acc, done = T.alloc_fragment(({M}, 96), "float32"), T.alloc_barrier(1)
        T.clear(acc)
        for o in range(n):
            T.copy(A[0, o * 32], S)
            T.copy(B[o * 32, 0], R)
            T.tcgen05_gemm(S, R, acc, mbar=done)
            T.mbarrier_wait_parity(done, o % 2)
        T.copy(acc, C)
    """

    def data(rng: np.random.Generator, n: int) -> Data:
        return {"n": n, "A": numbers(rng, (M, 32 * n), "float16", -3, 3), "B": numbers(rng, (32 * n, 96), "float16")}

    def want(d: Data) -> Array:
        shapes = (M, 32 * d["n"]), (32 * d["n"], 96)
        return oracles.gemm(*(values(d[x], "float16", s) for x, s in zip("AB", shapes, strict=True)))

    params = [tensor("A", "float16", M, "32 * n"), tensor("B", "float16", "32 * n", 96), output("C", "float32", M, 96)]
    launches = {f"n{n}": lambda rng, n=n: data(rng, n) for n in (0, 1, 2, 5)}
    return one("gemm", "mbar-each-trip", params, body, want, launches, VALUE, symbols=("n",), **how)


def _held(**how: Any) -> Unit:
    """A is a fragment, which moves to tensor memory beside the accumulator."""
    body = f"""
        A_l, R = T.alloc_fragment(({M}, 64), "float16"), T.alloc_shared((64, 32), "float16")
        acc, done = T.alloc_fragment(({M}, 32), "float32"), T.alloc_barrier(1)
        T.copy(A, A_l)
        T.copy(B, R)
        for i, k in T.Parallel({M}, 64):
            A_l[i, k] = A_l[i, k] + 1
        T.tcgen05_gemm(A_l, R, acc, clear_accum=True, mbar=done)
        T.mbarrier_wait_parity(done, 0)
        T.copy(acc, C)
    """
    types = {"A": ("float16", (M, 64)), "B": ("float16", (64, 32))}
    return _dense("mbar-fragment", types, "float32", 32, body, False, more=1, **how)


def _roles(**how: Any) -> Unit:
    """One role copies and waits for slots, which the products of the other one free."""
    body = f"""
        S, R = T.alloc_shared((2, {M}, 32), "float16"), T.alloc_shared((2, 32, 64), "float16")
        F = T.alloc_fragment(({M}, 64), "float32")
        full, empty = T.alloc_barrier([128, 128]), T.alloc_barrier([1, 1])
        with T.ws(1):
            T.clear(F)
        for o in range(5):
            with T.ws(0):
                T.barrier_wait(empty[o % 2], (o // 2 + 1) % 2)
                T.tma_copy(A[0, o * 32], S[o % 2, :, :], barrier=full[o % 2])
                T.tma_copy(B[o * 32, 0], R[o % 2, :, :], barrier=full[o % 2])
                T.barrier_arrive(full[o % 2])
            with T.ws(1):
                T.barrier_wait(full[o % 2], o // 2 % 2)
                T.tcgen05_gemm(S[o % 2, :, :], R[o % 2, :, :], F, mbar=empty[o % 2])
        with T.ws(1):
            T.barrier_wait(empty[1], 1)
            T.barrier_wait(empty[0], 0)
            T.copy(F, C)
    """
    types = {"A": ("float16", (M, 160)), "B": ("float16", (160, 64))}
    return _dense("mbar-roles", types, "float32", 64, body, False, threads=256, **how)


def _sparse(trips: int, **how: Any) -> Unit:
    """Metadata has two sets of columns, which the product before the last one has read."""
    body = f"""
        S, X = T.alloc_shared(({trips}, {M}, 32), "float16"), T.alloc_shared(({trips}, {M}, 4), "int16")
        R = T.alloc_shared(({trips}, 64, 32), "float16")
        acc, done = T.alloc_tmem(({M}, 32), "float32"), T.alloc_barrier({trips})
        for o in range({trips}):
            T.copy(A[0, o * 32], S[o, :, :])
            T.copy(E[0, o * 4], X[o, :, :])
            T.copy(B[o * 64, 0], R[o, :, :])
            T.tcgen05_gemm_sp(S[o, :, :], X[o, :, :], R[o, :, :], acc, clear_accum=o == 0, mbar=done)
        T.mbarrier_wait_parity(done, 0)
        T.copy(acc, C)
    """

    def data(rng: np.random.Generator) -> Data:
        dense = rng.integers(-3, 4, (M, 16 * trips, 4)).astype("float32")
        dense[rng.random(dense.shape).argsort(axis=-1) < 2] = 0
        kept, metadata = sparse.compress(dense.reshape(M, 64 * trips).astype("float16"))
        return {
            "A": np.asarray(kept), "E": np.asarray(metadata), "dense": dense.reshape(M, 64 * trips),
            "B": numbers(rng, (64 * trips, 32), "float16", -3, 3),
        }  # fmt: skip

    params = [
        tensor("A", "float16", M, 32 * trips), tensor("E", "int16", M, 4 * trips),
        tensor("B", "float16", 64 * trips, 32), output("C", "float32", M, 32),
    ]  # fmt: skip
    return one(
        "gemm", f"mbar-sparse-{trips}", params, body,
        lambda d: d["dense"].astype(float) @ values(d["B"], "float16").astype(float), {"": data}, VALUE, **how,
    )  # fmt: skip


def _scaled(**how: Any) -> Unit:
    """Scales of powers of two for blocks of 32."""
    body = f"""
        S, R = T.alloc_shared(({M}, 128), "{_E4M3}"), T.alloc_shared((32, 128), "{_E4M3}")
        p, q, done = T.alloc_shared(({M}, 4), "{_E8M0}"), T.alloc_shared((32, 4), "{_E8M0}"), T.alloc_barrier(1)
        F = T.alloc_fragment(({M}, 32), "float32")
        for x, y in ((A, S), (B, R), (P, p), (Q, q)):
            T.copy(x, y)
        T.tcgen05_gemm_scaled(S, p, R, q, F, False, True, clear_accum=True, mbar=done)
        T.mbarrier_wait_parity(done, 0)
        T.copy(F, C)
    """

    def data(rng: np.random.Generator) -> Data:
        def scales(lines: int) -> Array:
            return stored(2.0 ** rng.integers(-3, 4, (lines, 4)), _E8M0)

        operands = {"A": numbers(rng, (M, 128), _E4M3, -2, 2), "B": numbers(rng, (32, 128), _E4M3, -2, 2)}
        return {**operands, "P": scales(M), "Q": scales(32)}

    def want(d: Data) -> Array:
        a, b = (
            values(d[x], _E4M3).astype(float) * np.repeat(values(d[s], _E8M0).astype(float), 32, axis=1)
            for x, s in ("AP", "BQ")
        )
        found: Array = a @ b.T
        return found

    params = [
        tensor("A", _E4M3, M, 128), tensor("P", _E8M0, M, 4), tensor("B", _E4M3, 32, 128), tensor("Q", _E8M0, 32, 4),
        output("C", "float32", M, 32),
    ]  # fmt: skip
    return one("gemm", "mbar-scaled", params, body, want, {"": data}, VALUE, **how)


def _gathered(**how: Any) -> Unit:
    """Rows of 320 columns for two instructions of 160: swizzle of 64 bytes, not 128."""
    body = f"""
        S, R = T.alloc_shared(({M}, 16), "float16"), T.alloc_shared((16, 320), "float16")
        F = T.alloc_tmem(({M}, 320), "float32")
        T.copy(A, S)
        T.gather(B, I, R)
        T.tcgen05_gemm(S, R, F, clear_accum=True)
        T.copy(F, C)
    """

    def data(rng: np.random.Generator) -> Data:
        operands = {"A": numbers(rng, (M, 16), "float16", -3, 3), "B": numbers(rng, (40, 320), "float16", -3, 3)}
        return {**operands, "I": rng.integers(0, 40, 16).astype("int32")}

    def want(d: Data) -> Array:
        return oracles.gemm(values(d["A"], "float16"), values(d["B"], "float16")[d["I"]])

    params = [
        tensor("A", "float16", M, 16), tensor("B", "float16", 40, 320), tensor("I", "int32", 16),
        output("C", "float32", M, 320),
    ]  # fmt: skip
    return one("gemm", "gathered-320-columns", params, body, want, {"": data}, VALUE, **how)


def _dense(
    name: str, types: Mapping[str, tuple[str, tuple[int, ...]]], accumulator: str, n: int, body: str, turned: bool,
    more: int = 0, **how: Any,
) -> Unit:  # fmt: skip
    """Return a unit of one launch; ``more`` is added to each element of A."""

    def data(rng: np.random.Generator) -> Data:
        return {x: numbers(rng, shape, kind, 0 if kind == "uint8" else -2, 2) for x, (kind, shape) in types.items()}

    def want(d: Data) -> Array:
        a, b = (values(d[x], *types[x]) for x in "AB")
        return oracles.gemm(a + more if more else a, b, transpose_b=turned)

    inputs = [tensor(x, kind, *shape) for x, (kind, shape) in types.items()]
    params: Sequence[Param] = [*inputs, output("C", accumulator, M, n)]
    return one("gemm", name, params, body, want, {"": data}, VALUE, **how)


#: What stands behind a product, or its barrier, and the code of what is wrong with it.
_MISUSE: dict[str, tuple[str, str]] = {
    "writes-A": ("T.copy(A[0, 64], S)\nT.mbarrier_wait_parity(done, 0)", "K229"),
    "reads-C": ("T.copy(acc, C)\nT.mbarrier_wait_parity(done, 0)", "K233"),
    "writes-C": ("T.clear(acc)\nT.mbarrier_wait_parity(done, 0)", "K233"),
    "arrives-twice": (
        "T.tcgen05_gemm(S, W, acc, transpose_B=True, mbar=done)\nT.mbarrier_wait_parity(done, 0)", "K233",
    ),
    "another-phase": ("T.mbarrier_wait_parity(done, 1)", "K233"),
    "no-wait": ("", "K233"),
    "no-barrier": ("T.tcgen05_gemm(S, W, acc, transpose_B=True, mbar=S)\nT.mbarrier_wait_parity(done, 0)", "K232"),
}  # fmt: skip


def _refusals() -> list[Unit]:
    params = [tensor("A", "float16", M, M), output("C", "float32", M, M)]
    head = f"""
S, W = T.alloc_shared(({M}, 64), "float16"), T.alloc_shared(({M}, 64), "float16")
acc, done = T.alloc_fragment(({M}, {M}), "float32"), T.alloc_barrier(1)
T.copy(A[0, 0], S)
T.copy(A[0, 0], W)
T.clear(acc)
T.tcgen05_gemm(S, W, acc, transpose_B=True, mbar=done)
"""
    return [
        refused("gemm", f"illegal-mbar-{name}", f"{head}{behind}\nT.copy(acc, C)", code, params=params)
        for name, (behind, code) in _MISUSE.items()
    ]
