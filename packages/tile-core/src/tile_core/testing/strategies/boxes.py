"""Tiles as boxes: rows of whole 16 bytes, that enter and leave shared memory in every way, by copies and updates.

Targets whose copy engines move boxes of a tensor take these programs, and few of the others, whose sizes are awkward.
"""

from __future__ import annotations

from math import prod

from hypothesis import strategies as st

from tile_core.dtypes import DTYPES
from tile_core.testing.case import Unit, output, tensor
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import patterns, randoms, themed

_TYPES = (
    "uint8", "int8", "float8_e4m3fn", "float16", "bfloat16", "int16", "float32", "int32", "uint32", "int64", "uint64",
    "float64",
)  # fmt: skip
_SUMS = ("float32", "float16", "bfloat16", "int32", "uint32", "int64", "uint64")
_ATOMICS = {t: ("add",) if t.startswith(("float", "bfloat")) else ("add", "min", "max", "or", "xor") for t in _SUMS}
_AXES = ("i", "j", "k", "l")


@st.composite
def boxes(draw: Draw) -> Unit:
    """Draw a loop over tiles along the first dimension that moves each of them in and out."""
    dtype = draw(st.sampled_from(_TYPES))
    wide = 128 // DTYPES[dtype].bits
    block = (
        draw(st.sampled_from((1, 2, 4, 8, 16))),
        *draw(st.lists(st.sampled_from((1, 2, 3, 4)), max_size=2)),
        wide * draw(st.sampled_from((1, 2, 4, 8, 12, 16))),
    )
    while prod(block) * DTYPES[dtype].bits < 1024:
        block = (block[0] * 2, *block[1:])
    turns, blocks = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    rows = max(1, block[0] * turns * blocks - draw(st.integers(0, block[0])))
    shape = (
        rows,
        *(n + draw(st.integers(-1, 2)) or 1 for n in block[1:-1]),
        block[-1] + wide * draw(st.integers(0, 2)),
    )
    first, rest = f"(bx * {turns} + t) * {block[0]}", ", 0" * (len(block) - 1)
    body = [_entering(draw, block, first, rest)]
    if dtype in _ATOMICS and draw(st.booleans()):
        index = ", ".join(_AXES[: len(block)])
        body.append(f"for {index} in T.Parallel{block}:\n    s[{index}] = s[{index}] + 1")
    body.append(f"T.copy(s, B[{first}{rest}])")
    kind = draw(st.sampled_from(_ATOMICS.get(dtype, ("",))))
    if kind and draw(st.booleans()):
        body.append(f"T.atomic_{kind}(C[0{rest}], s)")
    loop = draw(st.sampled_from((f"T.serial({turns})", f"T.Pipelined({turns}, num_stages={draw(st.integers(1, 3))})")))
    inner = "\n".join(f"    {line}" for line in "\n".join(body).splitlines())
    text = f's = T.alloc_shared({block}, "{dtype}")\nfor t in {loop}:\n{inner}'
    params = [tensor("A", dtype, *shape), output("B", dtype, *shape), output("C", dtype, *block)]
    make = randoms if dtype in _ATOMICS else patterns
    data = {"A": make(draw, shape, dtype), "B": make(draw, shape, dtype), "C": make(draw, block, dtype)}
    needs = frozenset({f"atomic:{kind}:{dtype}"} if kind else set())
    threads = draw(st.sampled_from((1, 32, 64, 96, 256)))
    return themed("boxes", draw, params, text, {"": data}, grid=str(blocks), threads=threads, needs=needs)


def _entering(draw: Draw, block: tuple[int, ...], first: str, rest: str) -> str:
    """Return how a tile enters: from a corner, or by a slice."""
    if draw(st.booleans()):
        return f"T.copy(A[{first}{rest}], s)"
    others = "".join(f", 0 : {n}" for n in block[1:])
    return f"T.copy(A[{first} : {first} + {block[0]}{others}], s)"
