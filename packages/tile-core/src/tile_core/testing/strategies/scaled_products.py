"""Pipelined products with scales per block of K, and code after the accumulation.

Formats are those of hardware and others.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tile_core.testing.case import VALUE, Unit, output, tensor
from tile_core.testing.data import Array, stored, values
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import randoms, themed

_E4M3, _E5M2, _E2M1, _E8M0 = "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "float8_e8m0fnu"
#: (A, B, scales, elements of a block).
_FORMATS = (
    (_E4M3, _E4M3, _E8M0, 32), (_E4M3, _E5M2, _E8M0, 32), (_E5M2, _E4M3, _E8M0, 32), (_E5M2, _E5M2, _E8M0, 32),
    (_E2M1, _E2M1, _E8M0, 32), (_E2M1, _E2M1, _E4M3, 16), (_E2M1, _E2M1, _E8M0, 16), (_E4M3, _E2M1, _E8M0, 32),
    (_E4M3, _E4M3, _E4M3, 64),
)  # fmt: skip
#: What has products of two scales that a float32 does not have, and results that it has: types, and exponents by which
#: elements and scales are multiplied.
_FAR: dict[str, tuple[set[str], int, tuple[int, int]]] = {
    "huge": ({_E4M3, _E5M2}, -9, (123, 4)), "tiny": ({_E5M2}, 13, (-124, -26)),
}  # fmt: skip
_BEHIND = ("", "", "c[i, j] = c[i, j] * 2", "c[i, j] = T.max(c[i, j], 0)")


@st.composite
def scaled_products(draw: Draw) -> Unit:
    """Draw a loop of such products."""
    large = draw(st.booleans())
    a, b, scale, block = draw(st.sampled_from(_FORMATS[:7] if large else _FORMATS))
    m = draw(st.sampled_from((128, 128, 256) if large else (1, 16, 17, 32, 64)))
    n = draw(st.sampled_from((16, 32, 48, 64) if large else (8, 16, 24, 33)))
    k = draw(st.sampled_from((128, 256) if large else (64, 128)))
    if m * n > 128 * 64:
        m = 128
    ta = not large and draw(st.booleans())
    tb = large or draw(st.booleans())
    trips, stages, each = draw(st.integers(1, 3)), draw(st.integers(0, 3)), k // block
    low = draw(st.sampled_from((0, block))) if trips > 1 else 0  # missing from the last iteration
    depth = k * trips - low

    def of(lines: int, extent: int, along: bool) -> tuple[int, int]:
        return (lines, extent) if along else (extent, lines)

    def at(extent: int, along: bool) -> str:
        return f"0, o * {extent}" if along else f"o * {extent}, 0"

    # Rows of two elements in a byte have an even number of them.
    even = not (ta and m % 2) and not (not tb and n % 2)
    coded = _E2M1 in (a, b) and even and (large or draw(st.booleans()))

    def stored_as(shape: tuple[int, int], dtype: str) -> tuple[int, int]:
        """Halve the last dimension of codes of 4 bits in bytes."""
        return (shape[0], shape[1] // 2) if coded and dtype == _E2M1 else shape

    def corner(extent: int, along: bool, dtype: str) -> str:
        return at(extent // 2 if along and coded and dtype == _E2M1 else extent, along)

    types = ("uint8", "uint8") if coded else (a, b)
    formats = f', A_format="{a}", B_format="{b}"' if coded else ""
    lines = [f's = T.alloc_shared({stored_as(of(m, k, not ta), a)}, "{types[0]}")']
    lines += [f't = T.alloc_shared({stored_as(of(n, k, tb), b)}, "{types[1]}")']
    lines += [f'p = T.alloc_shared({of(m, each, not ta)}, "{scale}")']
    lines += [f'q = T.alloc_shared({of(n, each, tb)}, "{scale}")', f'c = T.alloc_fragment(({m}, {n}), "float32")']
    far = draw(st.sampled_from(("", *(how for how, (legal, *_) in _FAR.items() if scale == _E8M0 and legal >= {a, b}))))
    lines += [
        # Next to huge terms a float32 accumulator cannot hold 2, which remains where they cancel each other.
        draw(st.sampled_from(("T.clear(c)", "T.fill(c, 2)"))) if far != "huge" else "T.clear(c)",
        f"for o in T.Pipelined({trips}, num_stages={stages}):",
    ]
    lines += [f"    T.copy(X[{corner(k, not ta, a)}], s)", f"    T.copy(Y[{corner(k, tb, b)}], t)"]
    lines += [f"    T.copy(P[{at(each, not ta)}], p)", f"    T.copy(Q[{at(each, tb)}], q)"]
    lines += [f"    T.gemm_scaled(s, p, t, q, c, transpose_A={ta}, transpose_B={tb}{formats})"]
    behind = draw(st.sampled_from(_BEHIND))
    lines += [f"for i, j in T.Parallel({m}, {n}):\n    {behind}"] if behind else []
    shapes = of(m, depth, not ta), of(n, depth, tb), of(m, depth // block, not ta), of(n, depth // block, tb)
    held = stored_as(shapes[0], a), stored_as(shapes[1], b), shapes[2], shapes[3]
    params = [tensor(*one[:2], *one[2]) for one in zip("XYPQ", (*types, scale, scale), held, strict=True)]
    data = _data(draw, (a, b, scale), shapes, coded, far)
    threads = 128 if large else draw(st.sampled_from((32, 64, 128, 160)))
    body = "\n".join([*lines, "T.copy(c, B)"])
    return themed(
        "scaled-products", draw, [*params, output("B", "float32", m, n)], body, {"": data}, VALUE, threads=threads,
        needs=frozenset({"gemm_scaled"}),
    )  # fmt: skip


def _data(
    draw: Draw, types: tuple[str, str, str], shapes: tuple[tuple[int, int], ...], coded: bool, far: str
) -> dict[str, Array]:
    """Return the elements of A and B, and their scales."""
    *elements, scale = types
    _, shift, powers = _FAR[far] if far else ((), 0, (0, 0))
    data = {}
    for name, shape, dtype in zip("XY", shapes[:2], elements, strict=True):
        x = stored(values(randoms(draw, shape, dtype, -2, 2), dtype, shape) * 2.0**shift, dtype)
        data[name] = x.view(np.uint8) if coded else x
    for name, shape, power in zip("PQ", shapes[2:], draw(st.permutations(powers)), strict=True):
        data[name] = _scales(draw, shape, scale, power)
    return data


def _scales(draw: Draw, shape: tuple[int, ...], scale: str, power: int) -> Array:
    """Return powers of two near one, rarely one that is NaN."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    exact = 2.0 ** (power + rng.integers(-2, 3, shape))
    if draw(st.integers(0, 5)) == 0:
        exact.flat[int(rng.integers(exact.size))] = np.nan
    return stored(exact, scale)
