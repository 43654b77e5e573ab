"""Tiles with rows of whole 16 bytes, in every copy and update of shared memory.

Some are rows by number, which such engines move too.

Targets whose copy engines move boxes of a tensor take these programs, and few of the others, whose sizes are awkward.
"""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import strategies as st

from tile_core.dtypes import DTYPES
from tile_core.testing.case import VALUE, Unit, output, tensor
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import patterns, randoms, themed

_TYPES = (
    "uint8", "int8", "float8_e4m3fn", "float16", "bfloat16", "int16", "float32", "int32", "uint32", "int64", "uint64",
    "float64",
)  # fmt: skip
_ATOMIC = ("float32", "float16", "bfloat16", "int32", "uint32", "int64", "uint64")
_ATOMICS = {t: ("add",) if t.startswith(("float", "bfloat")) else ("add", "min", "max", "or", "xor") for t in _ATOMIC}
_AXES = ("i", "j", "k", "l")


@st.composite
def boxes(draw: Draw) -> Unit:
    """Draw a loop that moves tiles along the first dimension in and out."""
    dtype = draw(st.sampled_from(_TYPES))
    wide = 128 // DTYPES[dtype].bits
    block = (
        draw(st.sampled_from((1, 2, 4, 8, 16))),
        *draw(st.lists(st.sampled_from((1, 2, 3, 4)), max_size=2)),
        wide * draw(st.sampled_from((1, 2, 4, 8, 12, 16))),
    )
    while prod(block) * DTYPES[dtype].bits < 1024:
        block = (block[0] * 2, *block[1:])
    trips, blocks = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    if draw(st.integers(0, 5)) == 0:
        return _whole_rows(draw, dtype, trips, blocks)
    rows = max(1, block[0] * trips * blocks - draw(st.integers(0, block[0])))
    shape = (
        rows,
        *(n + draw(st.integers(-1, 2)) or 1 for n in block[1:-1]),
        block[-1] + wide * draw(st.integers(0, 2)),
    )
    first, rest = f"(bx * {trips} + t) * {block[0]}", ", 0" * (len(block) - 1)
    body = [_entering(draw, block, first, rest)]
    if dtype in _ATOMICS and draw(st.booleans()):
        index = ", ".join(_AXES[: len(block)])
        body.append(f"for {index} in T.Parallel{block}:\n    s[{index}] = s[{index}] + 1")
    body.append(f"T.copy(s, B[{first}{rest}])")
    kind = draw(st.sampled_from(_ATOMICS.get(dtype, ("",))))
    if kind and draw(st.booleans()):
        body.append(f"T.atomic_{kind}(C[0{rest}], s)")
    loop = draw(st.sampled_from((f"T.serial({trips})", f"T.Pipelined({trips}, num_stages={draw(st.integers(1, 3))})")))
    inner = "\n".join(f"    {line}" for line in "\n".join(body).splitlines())
    text = f's = T.alloc_shared({block}, "{dtype}")\nfor t in {loop}:\n{inner}'
    params = [tensor("A", dtype, *shape), output("B", dtype, *shape), output("C", dtype, *block)]
    make = randoms if dtype in _ATOMICS else patterns
    data = {"A": make(draw, shape, dtype), "B": make(draw, shape, dtype), "C": make(draw, block, dtype)}
    needs = frozenset({f"atomic:{kind}:{dtype}"} if kind else set())
    threads = draw(st.sampled_from((1, 32, 64, 96, 256)))
    return themed("boxes", draw, params, text, {"": data}, grid=str(blocks), threads=threads, needs=needs)


def _whole_rows(draw: Draw, dtype: str, trips: int, blocks: int) -> Unit:
    """Draw a loop over tiles of whole rows, possibly longer than any box."""
    height, width = 16 * draw(st.integers(1, 2)), draw(st.integers(1, 40))
    part = f"(bx * {trips} + t) * {height} : (bx * {trips} + t + 1) * {height}"
    text = f"""\
s = T.alloc_shared(({height}, {width}), "{dtype}")
for t in T.serial({trips}):
    T.copy(A[{part}, :], s)
    T.copy(s, B[{part}, :])"""
    shape = (height * trips * blocks, width)
    params = [tensor("A", dtype, *shape), output("B", dtype, *shape)]
    data = {"A": patterns(draw, shape, dtype), "B": patterns(draw, shape, dtype)}
    threads = draw(st.sampled_from((1, 32, 96)))
    return themed("boxes", draw, params, text, {"": data}, grid=str(blocks), threads=threads)


@st.composite
def numbered_rows(draw: Draw) -> Unit:
    """Draw rows gathered by index, stored by row or by index, or multiplied."""
    dtype = draw(st.sampled_from(_TYPES))
    wide = 128 // DTYPES[dtype].bits
    count, width = draw(st.sampled_from((8, 4, 7, 18, 32, 128))), wide * draw(st.sampled_from((8, 4, 2, 1)))
    corner, height = wide * draw(st.integers(0, 2)), draw(st.sampled_from((37, 150)))
    columns = corner + width + wide * draw(st.integers(0, 2))
    known = count <= 32 and draw(st.booleans())
    # Blocks take their part of the numbers, and the last one fewer than there are rows in its tile.
    blocks, missing = (1, 0) if known else (draw(st.integers(1, 2)), draw(st.sampled_from((0, 0, 1, 3))))
    total = count * blocks - missing
    numbers = draw(st.lists(st.integers(0, height - 1), min_size=total, max_size=total, unique=known))
    lines = [f's = T.alloc_shared(({count}, {width}), "{dtype}")']
    part = f"[0:{height}, {corner}:{corner + width}]"
    lines += [f"T.gather(A{part}, {numbers if known else f'R[bx * {count} : bx * {count} + {count}]'}, s)"]
    params = [tensor("A", dtype, height, columns), tensor("R", "int32", total)]
    data = {"A": patterns(draw, (height, columns), dtype), "R": np.array(numbers, "int32")}
    if count == 128 and dtype == "float16" and width >= 16:
        lines += [f'w = T.alloc_shared((32, {width}), "{dtype}")', 'c = T.alloc_fragment((128, 32), "float32")']
        lines += [
            "T.copy(W, w)",
            "T.gemm(s, w, c, transpose_B=True, clear_accum=True)",
            f"T.copy(c, B[bx * {count}, 0])",
        ]
        params += [tensor("W", dtype, 32, width), output("B", "float32", total, 32)]
        data |= {"A": randoms(draw, (height, columns), dtype, -2, 2), "W": randoms(draw, (32, width), dtype, -2, 2)}
    else:
        spread = known and draw(st.booleans())
        lines.append(f"T.scatter(s, B{part}, {numbers})" if spread else f"T.copy(s, B[bx * {count}, 0])")
        shape = (height, columns) if spread else (total, width)
        params.append(output("B", dtype, *shape))
        data["B"] = patterns(draw, shape, dtype)
    threads = draw(st.sampled_from((32, 96, 128, 128)))
    body = "\n".join(lines)
    return themed("numbered-rows", draw, params, body, {"": data}, VALUE, threads=threads, grid=str(blocks))


def _entering(draw: Draw, block: tuple[int, ...], first: str, rest: str) -> str:
    """Return how a tile enters: from a corner, or by a slice."""
    if draw(st.booleans()):
        return f"T.copy(A[{first}{rest}], s)"
    others = "".join(f", 0 : {n}" for n in block[1:])
    return f"T.copy(A[{first} : {first} + {block[0]}{others}], s)"
