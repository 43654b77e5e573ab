"""Programs in which one role passes tiles to another, ordered by explicit barriers."""

from __future__ import annotations

import re

from hypothesis import strategies as st

from tile_core.testing.case import Unit, output, scalar, tensor
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import randoms, spelled, themed

_TYPES = ("int32", "float32", "float16", "int8", "int64")
#: Threads of a block, and size and numbers of groups of the role that fills and the one that reads.
_SPLITS = (
    (64, 32, "0", "1"), (96, 32, "0, 1", "2"), (128, 32, "3", "0, 1, 2"), (256, 128, "0", "1"), (256, 128, "1", "0"),
)  # fmt: skip


@st.composite
def barriers(draw: Draw) -> Unit:
    """Draw a program: slots, trip counts, the first waits, and tiles outside the barriers' order."""
    threads, size, first, second = draw(st.sampled_from(_SPLITS))
    stages, most, trips = draw(st.integers(1, 4)), draw(st.integers(1, 7)), draw(st.integers(0, 7))
    rows, cols = draw(st.sampled_from((1, 3, 8, 16))), draw(st.sampled_from((5, 16, 32, 33)))
    dtype, known = draw(st.sampled_from(_TYPES)), draw(st.booleans())
    trips = min(trips, most)
    fills, reads = (size * len(g.split(",")) for g in (first, second))
    slot, cycle = f"k % {stages}", f"k // {stages}"
    late = draw(st.booleans())
    free = f"T.barrier_wait(empty[{slot}], ({cycle} + 1) % 2)"
    if late:
        free = f"if k >= {stages}:\n            T.barrier_wait(empty[{slot}], ({cycle} - 1) % 2)"
    fill = f"T.copy(A[k * {rows}, 0], s[{slot}, :, :])"
    if draw(st.booleans()):
        fill = (
            f"for i, j in T.Parallel({rows}, {cols}):\n"
            f"            s[{slot}, i, j] = A[k * {rows} + i, j] + {draw(st.integers(-2, 2))}"
        )
    beside = draw(st.booleans())
    extra = f"T.copy(A[k * {rows}, 0], r)" if beside else "pass"
    value = f"s[{slot}, {rows - 1} - i, j]" + (f" + r[i, {cols - 1} - j]" if beside else "")
    by_thread = draw(st.booleans())

    def role(groups: str) -> str:
        if not by_thread:
            return f"with T.ws({groups}, size={size}):"
        low, high = int(groups[0]) * size, (int(groups[-1]) + 1) * size
        return f"if {low} <= T.get_thread_binding() < {high}:"

    body = f"""\
s = T.alloc_shared(({stages}, {rows}, {cols}), {spelled(draw, dtype)})
r = T.alloc_shared(({rows}, {cols}), {spelled(draw, dtype)})
full = T.alloc_barrier([{fills}] * {stages})
empty = T.alloc_barrier([{reads}] * {stages})
for k in range({trips if known else "n"}):
    {role(first)}
        {free}
        {fill}
        T.barrier_arrive(full[{slot}])
        {extra}
    {role(second)}
        T.barrier_wait(full[{slot}], {cycle} % 2)
        for i, j in T.Parallel({rows}, {cols}):
            B[bx, k * {rows} + i, j] = {value}
        T.barrier_arrive(empty[{slot}])"""
    blocks = draw(st.integers(1, 2))
    params = [tensor("A", dtype, most * rows, cols), output("B", dtype, blocks, most * rows, cols), scalar("n")]
    data = {
        "A": randoms(draw, (most * rows, cols), dtype), "B": randoms(draw, (blocks, most * rows, cols), dtype),
        "n": trips,
    }  # fmt: skip
    return themed(
        "barriers", draw, params, body, {"": data}, grid=str(blocks), threads=threads,
        needs=frozenset({"name:alloc_barrier"}), optional="barriers with phases",
        plainly=lambda text: re.sub(r"if \d+ <= T.get_thread_binding\(\) < \d+:", "with T.ws(0):", text),
    )  # fmt: skip
