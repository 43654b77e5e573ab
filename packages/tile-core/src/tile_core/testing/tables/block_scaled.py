"""T.gemm_scaled: products with scales for blocks of K: formats, transposes, tails, NaN scales, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_core.dtypes import DTYPES
from tile_core.testing.case import VALUE, Data, Unit, one, output, refused, scalar, tensor
from tile_core.testing.data import Array, more_fp8, numbers, stored, values

E4M3, E5M2, E2M1, E8M0 = "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "float8_e8m0fnu"
#: (A, B, scales, elements of a block).
FORMATS = (
    (E4M3, E4M3, E8M0, 32), (E2M1, E2M1, E4M3, 16), (E2M1, E2M1, E8M0, 32), (E5M2, E4M3, E8M0, 32),
    (E2M1, E4M3, E8M0, 32), ("float8_e4m3fnuz", "float8_e5m2fnuz", E8M0, 16), (E5M2, E5M2, E8M0, 32),
    (E4M3, E5M2, E4M3, 64), (E4M3, E2M1, E8M0, 32),
)  # fmt: skip


def units() -> list[Unit]:
    """Return the units of this table."""
    found = []
    for n, kind in enumerate(FORMATS):
        found.append(_unit(kind, (16, 24, 64), (n % 2 == 1, n % 3 == 1), stages=n % 4))
    for n, tile in enumerate(((1, 8, 64), (7, 17, 128), (33, 1, 192), (48, 40, 64))):
        found.append(_unit(FORMATS[n], tile, (False, n % 2 == 0), stages=n))
    for n, (kind, columns) in enumerate(zip(FORMATS, (48, 128, 32, 16, 32, 16, 176, 64, 48), strict=True)):
        # The row count of the largest instructions; K of one to three iterations, the last one partly outside.
        found.append(_unit(kind, (128, columns, (128, 256)[n % 2]), (False, True), stages=n % 3, coded=E2M1 in kind))
    for n, kind in enumerate((FORMATS[0], FORMATS[1], FORMATS[4])):  # codes in uint8, turned in every way
        found.append(_unit(kind, (18, 34, 64), (n != 1, n == 2), stages=n, coded=True))
    more = more_fp8(E4M3, E5M2, "float8_e4m3fnuz", "float8_e5m2fnuz")
    found += [_unit((name, E4M3, E8M0, 32), (16, 24, 64), (False, True), stages=2) for name in more]
    found += [_clearing(FORMATS[n], out) for n, out in enumerate(("float16", "bfloat16", "float32"))]
    return [*found, *_refusals()]


def _unit(
    kind: tuple[str, str, str, int], tile: tuple[int, int, int], turned: tuple[bool, bool], stages: int,
    coded: bool = False,
) -> Unit:  # fmt: skip
    (a, b, scale, block), (m, n, depth), (ta, tb) = kind, tile, turned
    each, halved = depth // block, {d: 2 if coded and d == E2M1 else 1 for d in (a, b)}
    stored_a, stored_b = ("uint8" if coded else x for x in (a, b))
    formats = f', A_format="{a}", B_format="{b}"' if coded else ""

    def shape_of(lines: int, extent: int, along: bool, dtype: str) -> tuple[int, int]:
        return (lines, extent // halved[dtype]) if along else (extent, lines // halved[dtype])

    def whole(lines: int, along: bool, dtype: str) -> tuple[int | str, int | str]:
        """Return the shape of a tensor of ``w`` blocks."""
        return (lines, f"w * {block // halved[dtype]}") if along else (f"w * {block}", lines // halved[dtype])

    def corner(extent: int, along: bool, dtype: str) -> str:
        return _at(extent // halved[dtype] if along else extent, along)

    body = f'''
        A_s = T.alloc_shared({shape_of(m, depth, not ta, a)}, "{stored_a}")
        B_s = T.alloc_shared({shape_of(n, depth, tb, b)}, "{stored_b}")
        P_s = T.alloc_shared({_of(m, each, not ta)}, "{scale}")
        Q_s = T.alloc_shared({_of(n, each, tb)}, "{scale}")
        C_f = T.alloc_fragment(({m}, {n}), "float32")
        T.clear(C_f)
        for o in T.Pipelined(T.ceildiv(w, {each}), num_stages={stages}):
            T.copy(A[{corner(depth, not ta, a)}], A_s)
            T.copy(B[{corner(depth, tb, b)}], B_s)
            T.copy(P[{_at(each, not ta)}], P_s)
            T.copy(Q[{_at(each, tb)}], Q_s)
            T.gemm_scaled(A_s, P_s, B_s, Q_s, C_f, transpose_A={ta}, transpose_B={tb}{formats})
        T.copy(C_f, C)
    '''

    def data(rng: np.random.Generator, k: int, how: str) -> Data:
        x, y, p, q = _of(m, k, not ta), _of(n, k, tb), _of(m, k // block, not ta), _of(n, k // block, tb)
        return {"w": k // block, **_given(rng, kind, (x, y, p, q), how, coded)}

    def want(d: Data) -> Array:
        return _product(d, kind, (m, n, int(d["w"]) * block), turned) if d["w"] else np.zeros((m, n))

    sizes = {f"k{k}": (k, "") for k in (depth, 2 * depth, 3 * depth - block)}
    # A row of packed elements is a whole number of bytes and of blocks, so there is no tail of one block.
    sizes |= {"k0": (0, "")} if not stages else {"missing": (depth, "missing")}
    sizes |= {how: (2 * depth, how) for how, types in _FAR_TYPES.items() if scale == E8M0 and {a, b} <= types}
    launches = {name: lambda rng, given=given: data(rng, *given) for name, given in sizes.items()}
    params = [
        tensor("A", stored_a, *whole(m, not ta, a)), tensor("B", stored_b, *whole(n, tb, b)),
        tensor("P", scale, *_of(m, "w", not ta)), tensor("Q", scale, *_of(n, "w", tb)),
        output("C", "float32", m, n),
    ]  # fmt: skip
    marks = "".join("t" if t else "n" for t in turned)
    name = f"{a}-{b}-{scale}-{block}-{m}x{n}x{depth}-{marks}{'-coded' if coded else ''}"
    return one("gemm_scaled", name, params, body, want, launches, VALUE, symbols=("w",))


def _of(lines: Any, extent: Any, along: bool) -> tuple[Any, Any]:
    return (lines, extent) if along else (extent, lines)


def _at(extent: int, along: bool) -> str:
    return f"0, o * {extent}" if along else f"o * {extent}, 0"


def _clearing(kind: tuple[str, str, str, int], out: str) -> Unit:
    """Another accumulator type, cleared first if a runtime value requests it."""
    (a, b, scale, block), (m, n, k) = kind, (20, 16, 64)
    blocks = k // block
    body = f'''
        A_s = T.alloc_shared(({m}, {k}), "{a}")
        B_s = T.alloc_shared(({n}, {k}), "{b}")
        P_s = T.alloc_shared(({m}, {blocks}), "{scale}")
        Q_s = T.alloc_shared(({n}, {blocks}), "{scale}")
        C_s = T.alloc_shared(({m}, {n}), "{out}")
        T.copy(A, A_s)
        T.copy(B, B_s)
        T.copy(P, P_s)
        T.copy(Q, Q_s)
        T.fill(C_s, 3)
        T.gemm_scaled(A_s, P_s, B_s, Q_s, C_s, transpose_B=True, clear_accum=v > 0)
        T.copy(C_s, C)
    '''

    def data(rng: np.random.Generator, v: int) -> Data:
        return {
            "v": v, "A": numbers(rng, (m, k), a, -2, 2), "B": numbers(rng, (n, k), b, -2, 2),
            "P": stored(2.0 ** rng.integers(-1, 1, (m, blocks)), scale), "Q": stored(np.ones((n, blocks)), scale),
        }  # fmt: skip

    def want(d: Data) -> Array:
        return _product(d, kind, (m, n, k), (False, True)) + (0 if d["v"] > 0 else 3)

    params = [
        tensor("A", a, m, k), tensor("B", b, n, k), tensor("P", scale, m, blocks), tensor("Q", scale, n, blocks),
        output("C", out, m, n),
    ]  # fmt: skip
    launches = {f"v{v}": lambda rng, v=v: data(rng, v) for v in (0, 1)}
    return one("gemm_scaled", f"clear-{out}", [*params, scalar("v")], body, want, launches, VALUE)


def _codes(x: Array, coded: bool) -> Array:
    return x.view(np.uint8) if coded else x


def _scales(rng: np.random.Generator, shape: tuple[int, ...], scale: str, missing: bool) -> Array:
    """Powers of two, of either sign where there is one; ``missing`` makes some NaN."""
    exact = 2.0 ** rng.integers(-3, 4, shape)
    if scale == E4M3:
        exact = exact * rng.choice([-1.0, 1.0, 1.5], shape)
    if missing:
        exact = np.where(rng.random(shape) < 0.1, np.nan, exact)
    return stored(exact, scale)


#: Exponents of products of two scales that a float32 does not have, and of elements so small or large that it has the
#: results; and the types that have such elements.
_FAR = {"huge": (129, -9), "tiny": (-152, 14)}
_FAR_TYPES = {
    "huge": {E4M3, E5M2, "float8_e4m3fnuz", "float8_e5m2fnuz"}, "tiny": {E5M2, "float8_e5m2fnuz"},
}  # fmt: skip


def _given(
    rng: np.random.Generator, kind: tuple[str, str, str, int], shapes: tuple[tuple[Any, Any], ...], how: str,
    coded: bool,
) -> Data:  # fmt: skip
    """Return elements and scales: ordinary ones, some that are ``missing``, or those of `_FAR`."""
    types, scale = kind[:2], kind[2]
    elements, powers = shapes[:2], shapes[2:]
    if how not in _FAR:
        x = [numbers(rng, shape, dtype, -3, 3) for shape, dtype in zip(elements, types, strict=True)]
        factors = [_scales(rng, shape, scale, how == "missing") for shape in powers]
    else:
        product, shift = _FAR[how]
        end = 126 if product > 0 else -126  # one of the two scales is at an end of their range
        x = [stored(rng.integers(-3, 4, s) * 2.0**shift, d) for s, d in zip(elements, types, strict=True)]
        parts = zip(rng.permutation([end, product - end]), powers, strict=True)
        factors = [stored(2.0 ** (power + rng.integers(-1, 2, shape)), scale) for power, shape in parts]
    return {"A": _codes(x[0], coded), "B": _codes(x[1], coded), "P": factors[0], "Q": factors[1]}


def _product(d: Data, kind: tuple[str, str, str, int], sizes: tuple[int, int, int], turned: tuple[bool, bool]) -> Array:
    (a, b, scale, block), (m, n, k), found = kind, sizes, []
    for x, p, dtype, lines, along in (("A", "P", a, m, not turned[0]), ("B", "Q", b, n, turned[1])):
        given = d[x].view(DTYPES[dtype].numpy()) if DTYPES[dtype].bits == 8 else d[x]
        matrix = values(given, dtype, (lines, k) if along else (k, lines))
        factors = np.abs(values(d[p], scale))
        matrix, factors = (matrix, factors) if along else (matrix.T, factors.T)
        found.append(matrix * np.repeat(factors, block, 1))
    product: Array = found[0] @ found[1].T
    return product


def _refusals() -> list[Unit]:
    lines = """
        a = T.alloc_shared((16, {k}), "{a}")
        b = T.alloc_shared((16, {k}), "float8_e4m3fn")
        p = T.alloc_shared({p}, "{scale}")
        q = T.alloc_shared((16, 2), "{other}")
        c = T.alloc_fragment((16, 16), "{c}")
        T.gemm_scaled(a, p, b, q, c, transpose_B=True)
    """
    given = {"k": 64, "a": E4M3, "p": (16, 2), "scale": E8M0, "other": E8M0, "c": "float32"}
    cases = (
        ("float16", {"a": "float16"}, "K211"), ("scale", {"scale": "float32"}, "K211"),
        ("scales-differ", {"other": E4M3}, "K211"), ("accumulator", {"c": "int32"}, "K208"),
        ("rows", {"p": (8, 2)}, "K223"), ("blocks-differ", {"p": (16, 4)}, "K223"),
        ("tail", {"k": 80, "p": (16, 3)}, "K223"),
    )  # fmt: skip
    return [
        refused("gemm_scaled", f"illegal-{name}", lines.format(**{**given, **change}), code)
        for name, change, code in cases
    ]
