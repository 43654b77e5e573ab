"""Pipelined loops of products inside of conditions and loops, with bounds that are data."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tile_core.testing.case import VALUE, Unit, output, tensor
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import randoms, themed

_KINDS = ("float16", "float16", "bfloat16", "float8_e4m3fn")
_TILES = ((64, 32), (64, 32), (64, 16), (128, 32), (32, 24))
_THREADS = (128, 128, 256, 96)
#: Bounds of a loop: a begin and a trip count, from data of its expert, coordinates, and variables.
_BOUNDS = (
    ("0", "{trips}"), ("0", "{trips}"), ("0", "N[e]"), ("0", "T.min(N[e] + bx, {trips})"), ("F[e]", "N[e]"),
    ("0", "most"), ("T.max(F[e] - by, 0)", "{trips} - 1"), ("0", "by * 2 + bx"), ("0", "T.max({trips} - by * 2, 0)"),
)  # fmt: skip
#: Conditions around a loop.
_GUARDS = ("N[e] > by", "first < end", "e != 1", "F[e] == 0 and end > 0", "bx + by > 0")
#: Stores of the accumulator.
_STORES = (
    "T.copy(c, B[by * {m}, bx * {n}])",
    "for i, j in T.Parallel({m}, {n}):\n    if first + i < end:\n        B[first + i, bx * {n} + j] = c[i, j]",
    "for i, j in T.Parallel({m}, {n}):\n    B[by * {m} + i, bx * {n} + j] = c[i, j] * 2 + i",
    "for i, j in T.Parallel({m}, {n}):\n    if i != 3:\n        B[by * {m} + i, bx * {n} + j] = c[i, j] - V[j]",
)


@st.composite
def nested_loops(draw: Draw) -> Unit:
    """Draw products of experts, in conditions, in loops, or one after the other."""
    kind, out = draw(st.sampled_from(_KINDS)), draw(st.sampled_from(("float32", "float16")))
    (m, n), k = draw(st.sampled_from(_TILES)), draw(st.sampled_from((16, 32, 32)))
    trips, stages = draw(st.integers(1, 4)), draw(st.sampled_from((2, 2, 3, 4)))
    high, wide = draw(st.sampled_from((1, 2, 2, 3))), draw(st.sampled_from((1, 1, 2)))
    rows, columns, depth = m * high - draw(st.sampled_from((0, 0, 5))), n * wide, k * trips
    names = {"m": m, "n": n, "k": k, "trips": trips}
    lines = [f'x = T.alloc_shared(({m}, {k}), "{kind}")', f'w = T.alloc_shared(({n}, {k}), "{kind}")']
    lines += [f'c = T.alloc_fragment(({m}, {n}), "float32")', 'e = T.alloc_var("int32", init=G[by])']
    lines += ['first = T.alloc_var("int32", init=0)', 'end = T.alloc_var("int32", init=0)']
    lines += [f"for g in T.serial({high}):", "    if g == by:", f"        first = g * {m}", "        end = E[g]"]
    lines += [f"most = T.min(N[e], {trips})", "T.clear(c)"]
    form = draw(st.sampled_from(("one", "one", "experts", "two", "tiles")))
    loops = [_loop(draw, names, stages, "x", "w")]
    if form == "experts":
        loops = [["for e2 in T.serial(3):", "    e = e2", *_inside(_guarded(draw, loops[0]))]]
    elif form != "one":
        tiles = ("x", "w") if form == "two" else ("y", "z")
        lines += [f'y = T.alloc_shared(({m}, {k}), "{kind}")', f'z = T.alloc_shared(({n}, {k}), "{kind}")']
        loops.append(_loop(draw, names, stages, *tiles))
    store = draw(st.sampled_from(_STORES)).format(**names).splitlines()
    body = [line for loop in loops for line in _guarded(draw, loop)]
    lines += ["if first < end:", *_inside([*body, *store])] if draw(st.booleans()) else [*body, *store]
    params = [tensor("X", kind, rows, depth), tensor("W", kind, 3, columns, depth), tensor("V", "float32", n)]
    params += [tensor(name, "int32", size) for name, size in (("G", high), ("E", high), ("N", 3), ("F", 3))]
    params += [output("B", out, rows, columns)]
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    numbers = {"G": (high, 0, 3), "E": (high, 0, m * high + 1), "N": (3, -1, trips + 2), "F": (3, 0, trips + 1)}
    data = {name: rng.integers(low, top, size).astype(np.int32) for name, (size, low, top) in numbers.items()}
    given = {"X": randoms(draw, (rows, depth), kind, -2, 2), "W": randoms(draw, (3, columns, depth), kind, -2, 2)}
    data |= given | {"V": randoms(draw, (n,), "float32", -2, 2)}
    threads, grid = draw(st.sampled_from(_THREADS)), f"{wide}, {high}"
    return themed(
        "nested-loops", draw, params, "\n".join(lines), {"": data}, VALUE, threads=threads, grid=grid, axes="(bx, by)"
    )


def _loop(draw: Draw, names: dict[str, int], stages: int, x: str, w: str) -> list[str]:
    """Draw a pipelined loop of a product."""
    begin, count = (text.format(**names) for text in draw(st.sampled_from(_BOUNDS)))
    at = f"(o + {begin}) * {names['k']}" if begin != "0" else f"o * {names['k']}"
    lines = [f"for o in T.Pipelined({count}, num_stages={stages}):"]
    lines += [f"    T.copy(X[by * {names['m']}, {at}], {x})", f"    T.copy(W[e, bx * {names['n']}, {at}], {w})"]
    return [*lines, f"    T.gemm({x}, {w}, c, transpose_B=True)"]


def _guarded(draw: Draw, loop: list[str]) -> list[str]:
    """Draw a condition around a loop, or none."""
    if draw(st.booleans()):
        return loop
    return [f"if {draw(st.sampled_from(_GUARDS))}:", *_inside(loop)]


def _inside(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]
