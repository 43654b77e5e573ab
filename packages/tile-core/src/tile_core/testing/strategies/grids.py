"""Launches: mixed and dynamic grids, empty ones, persistent blocks, tensors of rank 0, kernels without tensors."""

from __future__ import annotations

from hypothesis import strategies as st

from tile_core.testing.case import Data, Unit, output, scalar, tensor
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import randoms, spelled, themed


@st.composite
def grids(draw: Draw) -> Unit:
    """Draw a kernel whose grid mixes sizes, scalar parameters and constants, zero among them."""
    axes = draw(
        st.lists(
            st.sampled_from(("m", "T.ceildiv(m, 4)", "3", "1", "v", "v + 1", "0", "m // 3")), min_size=1, max_size=3
        )
    )
    names = ("bx", "by", "bz")[: len(axes)]
    place = ", ".join(names)
    threads = draw(st.sampled_from((1, 7, 32, 64)))
    lines = [f"T.use_swizzle({draw(st.integers(1, 4))}, order={draw(st.sampled_from(('row', 'column')))!r})"] * draw(
        st.integers(0, 1)
    )
    body = draw(st.sampled_from((
        "for i in T.Parallel(5):\n    B[{p}, i] = A[{first}, i] + i",
        "T.copy(A[{first}, 0:5], B[{p}, 0:5])",
        "t = T.alloc_shared((5,), 'int32')\nT.fill(t, {first})\nT.copy(t, B[{p}, 0:5])",
        "B[{p}, 2] = A[{first}, 1] * 3",
        "if {first} % 2 == 0:\n    for i in T.serial(5):\n        B[{p}, i] = {first} - i",
    )))  # fmt: skip
    lines.append(body.format(p=place, first=draw(st.sampled_from(names))))
    if draw(st.booleans()):
        lines.append("T.atomic_add(C[()], 1)")
    dims = (9, 9, 9)[: len(axes)]
    params = [tensor("A", "int32", "m", 5), scalar("v"), output("B", "int32", *dims, 5), output("C", "int32")]
    launches: dict[str, Data] = {}
    for m, v in (
        (draw(st.integers(0, 8)), draw(st.integers(-2, 7))),
        (draw(st.integers(1, 8)), draw(st.integers(0, 7))),
    ):
        launches[f"m={m},v={v}"] = {
            "m": m, "v": v, "A": randoms(draw, (m, 5), "int32"), "B": randoms(draw, (*dims, 5), "int32"),
            "C": randoms(draw, (), "int32"),
        }  # fmt: skip
    axis_names = names[0] if len(names) == 1 else f"({place})"
    return themed(
        "grids", draw, params, "\n".join(lines), launches, grid=", ".join(axes), axes=axis_names, threads=threads,
        symbols=("m",), needs=frozenset({"atomic:add:int32"}),
    )  # fmt: skip


@st.composite
def launches(draw: Draw) -> Unit:
    """Draw a launch of a rare form: persistent blocks, tensors of rank 0, no tensors at all."""
    form = draw(st.sampled_from((_persistent, _rank_0, _no_tensors)))
    made: Unit = form(draw)
    return made


def _persistent(draw: Draw) -> Unit:
    blocks, gx, gy = (draw(st.integers(1, 5)) for _ in range(3))
    domain = draw(st.sampled_from((f"({gx}, {gy})", f"[T.ceildiv(m, 4), {gy}]")))
    body = f"for i, j in T.Persistent({domain}, {blocks}, bx):\n    B[i, j] = A[i] * 10 + j + 1"
    params = [tensor("A", "int32", "m"), output("B", "int32", 6, 6)]
    m = draw(st.integers(0, 20))
    data = {"m": m, "A": randoms(draw, (m,), "int32"), "B": randoms(draw, (6, 6), "int32")}
    return themed("persistent", draw, params, body, {"": data}, grid=str(blocks), threads=32, symbols=("m",))


def _rank_0(draw: Draw) -> Unit:
    dtype = draw(st.sampled_from(("int32", "float32", "int64", "uint8", "float16")))
    body = draw(st.sampled_from((
        "O[()] = A[()]", "O[()] = A[()] + A[()]", "T.copy(A, O)", "T.fill(O, 3)",
        "x = T.alloc_var({d}, init=A[()])\nO[()] = x + 1",
        "for i in T.serial(3):\n    O[()] = O[()] + A[()]", "if A[()] > 1:\n    O[()] = 2",
    ))).format(d=spelled(draw, dtype))  # fmt: skip
    data = {"A": randoms(draw, (), dtype), "O": randoms(draw, (), dtype)}
    params = [tensor("A", dtype), output("O", dtype)]
    return themed("rank-0", draw, params, body, {"": data}, threads=draw(st.sampled_from((1, 32, 128))))


def _no_tensors(draw: Draw) -> Unit:
    body = draw(st.sampled_from((
        "x = T.alloc_shared((4,), 'int32')\nT.fill(x, v)", "y = T.alloc_var('int32', init=v)\ny = y + 1",
        "T.device_assert(bx < 100, 'too many blocks')", "for i in T.Parallel(8):\n    T.assume(i < 9)",
    )))  # fmt: skip
    grid = draw(st.sampled_from(("1", "v", "T.ceildiv(v, 2)", "0")))
    return themed("no-tensors", draw, [scalar("v")], body, {"": {"v": draw(st.integers(0, 9))}}, grid=grid, threads=32)
