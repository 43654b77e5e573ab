"""Launches: mixed, dynamic and empty grids, persistent blocks, rank-0 tensors, no tensors."""

from __future__ import annotations

from textwrap import indent

from hypothesis import strategies as st

from tile_core.testing.case import VALUE, Data, Unit, output, scalar, tensor
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
    index = ", ".join(names)
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
    lines.append(body.format(p=index, first=draw(st.sampled_from(names))))
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
    axis_names = names[0] if len(names) == 1 else f"({index})"
    return themed(
        "grids", draw, params, "\n".join(lines), launches, grid=", ".join(axes), axes=axis_names, threads=threads,
        symbols=("m",), needs=frozenset({"atomic:add:int32"}),
    )  # fmt: skip


@st.composite
def launches(draw: Draw) -> Unit:
    """Draw rare launches: several kernels, persistent blocks, rank-0 tensors, no tensors."""
    form = draw(st.sampled_from((_several, _several, _synced, _persistent, _rank_0, _no_tensors)))
    made: Unit = form(draw)
    return made


#: How a launch makes a workspace of the one before: as (axes, target, statement for row ``r`` of ``m``).
_ROWS = (
    "{new}[r, :] = {old}[m - 1 - r, :] + r",
    "for j in T.serial(5):\n    {new}[r, j] = {old}[r, 4 - j] * 3",
    "for j in T.Parallel(5):\n    {new}[r, j] = {old}[(r + 1) % m, j] - v",
    "t = T.alloc_shared((5,), {dtype!r})\nT.copy({old}[r, 0:5], t)\nT.copy(t, {new}[r, 0:5])",
)


def _several(draw: Draw) -> Unit:
    """Draw two to four launches that share workspaces, each reading other blocks' rows."""
    dtype = draw(st.sampled_from(("int32", "uint8", "float32", "int64", "int16")))
    count = draw(st.integers(1, 3))
    lines = [f"W{n} = T.alloc_global((m, 5), {spelled(draw, dtype)})" for n in range(count)]
    old = "A"
    for n in range(count + 1):
        new = "B" if n == count else f"W{n}"
        threads = draw(st.sampled_from((1, 31, 32, 64, 128)))
        head, row = draw(st.sampled_from((
            ("with T.Kernel(m, threads={}) as r:", ""), ("with T.Kernel(m, threads={}) as (r,):", ""),
            ("with T.Kernel(threads={}):", "for r in T.serial(m):"),
            ("with T.Kernel(3, threads={}) as b:", "for r in T.serial(T.ceildiv(m - b, 3)):"),
            ("with T.Kernel(2, m, threads={}) as (b, r):", "if b == 1:"),
        )))  # fmt: skip
        body = draw(st.sampled_from(_ROWS)).format(new=new, old=old, dtype=dtype)
        if "Kernel(3" in head:
            body = "\n".join(["q = b + r * 3", *body.replace("[r,", "[q,").replace("+ r", "+ q").splitlines()])
            body = body.replace("(r + 1)", "(q + 1)").replace("- 1 - r", "- 1 - q")
        inner = f"{row}\n{indent(body, '    ')}" if row else body
        lines += [head.format(threads), indent(inner, "    ")]
        old = new
    m = draw(st.integers(1, 9))
    data = {"m": m, "v": draw(st.integers(0, 5)), "A": randoms(draw, (m, 5), dtype, 0, 4)}
    params = [tensor("A", dtype, "m", 5), scalar("v"), output("B", dtype, "m", 5)]
    body = "\n".join(lines)
    return themed("several", draw, params, body, {"": data}, VALUE, symbols=("m",), own_launches=True)


def _synced(draw: Draw) -> Unit:
    """Draw a launch with grid barriers, after which blocks read other blocks' rows."""
    dtype, count = draw(st.sampled_from(("int32", "uint8", "float32"))), draw(st.integers(1, 3))
    lines = [f"W{n} = T.alloc_global((m, 5), {spelled(draw, dtype)})" for n in range(count)]
    lines.append(f"with T.Kernel(m, threads={draw(st.sampled_from((1, 32, 64)))}) as r:")
    old = "A"
    for n in range(count + 1):
        new = "B" if n == count else f"W{n}"
        body = draw(st.sampled_from(_ROWS)).format(new=new, old=old, dtype=dtype)
        lines.append(indent(body.replace("t = ", f"t{n} = ").replace("t)", f"t{n})").replace("(t,", f"(t{n},"), "    "))
        lines += ["    T.sync_grid()"] * (n < count)
        old = new
    m = draw(st.integers(0, 9))
    data = {"m": m, "v": draw(st.integers(0, 5)), "A": randoms(draw, (m, 5), dtype, 0, 4)}
    params = [tensor("A", dtype, "m", 5), scalar("v"), output("B", dtype, "m", 5)]
    return themed("synced", draw, params, "\n".join(lines), {"": data}, VALUE, symbols=("m",), own_launches=True)


def _persistent(draw: Draw) -> Unit:
    blocks, gx, gy = (draw(st.integers(1, 5)) for _ in range(3))
    domain = draw(st.sampled_from((f"({gx}, {gy})", f"[T.ceildiv(m, 4), {gy}]")))
    body = f"for i, j in T.Persistent({domain}, {blocks}, bx):\n    B[i, j] = A[i] * 10 + j + 1"
    if draw(st.booleans()):
        rest = draw(st.sampled_from(("", f", {blocks}, bx", f", wave_size={blocks}")))
        body = (
            f"s = T.PersistentTileScheduler({domain[1:-1]}{rest})\n"
            "while s.valid():\n    B[s.m_idx, s.n_idx] = A[s.m_idx] * 10 + s.n_idx + 1\n    s.next_tile()"
        )
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
