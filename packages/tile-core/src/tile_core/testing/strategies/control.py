"""Control flow: loops of every kind and count, while, break, continue, branches, variables, macros."""

from __future__ import annotations

import re

from hypothesis import strategies as st

from tile_core.testing.case import Unit, output, scalar, tensor
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import randoms, spelled, themed

_MACROS = """
@T.macro
def raised(c: T.Ref, limit):
    if limit > c:
        c = limit


@T.macro
def mixed(a, b):
    return a * 3 - b


@T.macro
def stored(buffer, at, value):
    for k in T.serial(2):
        buffer[at] = value + k


def helper(a):
    return a + a
"""


@st.composite
def control(draw: Draw) -> Unit:
    """Draw a kernel whose blocks count in variables, under loops, branches, breaks and continues."""
    n = draw(st.integers(1, 9))
    lines = ["x = A[bx]", f"c = T.alloc_var({spelled(draw, 'int32')}, init=x)", 'd = T.alloc_var("int64", 0)']
    for _ in range(draw(st.integers(1, 3))):
        lines += _statement(draw, 2)
    lines.append("B[bx] = c + T.cast(d, 'int32')")
    params = [tensor("A", "int32", n), scalar("v"), scalar("w", "int64"), output("B", "int32", n)]
    launches = {
        str(k): {
            "A": randoms(draw, (n,), "int32", -9, 20),
            "v": draw(st.integers(-5, 12)),
            "w": draw(st.integers(-3, 9)),
            "B": randoms(draw, (n,), "int32"),
        }
        for k in range(2)
    }
    return themed(
        "control",
        draw,
        params,
        "\n".join(lines),
        launches,
        grid=str(n),
        threads=draw(st.sampled_from((1, 32))),
        before=_MACROS,
    )


def _statement(draw: Draw, depth: int) -> list[str]:
    forms = [_assign, _assign] if depth == 0 else [_assign, _assign, _loop, _loop, _while, _branch]
    return draw(st.sampled_from(forms))(draw, depth)


def _assign(draw: Draw, depth: int) -> list[str]:
    return [draw(st.sampled_from((
        "c += 1", "c = c - x", "d += c", "d = d * 2 + 1", "c = T.max(c, v)", "c, d = c + 1, d - 1", "c = c ^ 5",
        "raised(c, v)", "c = mixed(c, v)", "stored(B, bx, c)", "c = helper(c)", "c = T.if_then_else(c > v, c - v, v)",
        "T.assume(v > -100)", "T.device_assert(c == c, 'same')", "d += T.Select(d > w, 1, 2)", "c = c % 1000",
    )))]  # fmt: skip


def _condition(draw: Draw) -> str:
    return str(draw(st.sampled_from((
        "c > v", "x % 2 == 0", "v < 3 and c > 0", "not c > 5", "0 <= v < 5", "T.any_of(c == 1, v == 1)", "d != w",
        "T.all_of(c > 0, x > 0)", "c < 3 or d > 4",
    ))))  # fmt: skip


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def _loop(draw: Draw, depth: int) -> list[str]:
    k = f"k{depth}"
    head, unrolled = draw(st.sampled_from((
        ("T.serial(v)", False), ("T.serial(v - 4)", False), ("range(v)", False), ("T.serial(-2, v)", False),
        ("T.serial(w)", False),
        ("T.serial(v, -3, -2)", False), ("T.serial(0, 7, 3)", False), ("T.unroll(3)", True), ("T.unroll(0)", True),
        ("T.unroll(v, unroll_factor=2)", False), ("T.static_range(3)", True), ("T.serial(0)", False),
        ("T.serial(5, 2)", False),
        ("T.Pipelined(v, num_stages=2)", True), ("T.Pipelined(4)", True), ("T.vectorized(0)", True),
    )))  # fmt: skip
    body = [draw(st.sampled_from((f"c += {k}", f"c = c + x * {k}", f"d = d - {k}")))]
    if "vectorized" in head:
        return [f"for {k} in {head}:", "    B[bx] = 1"]
    if not unrolled:
        body += draw(
            st.sampled_from(([], [], [f"if {_condition(draw)}:", "    break"], [f"if {k} % 2 == 1:", "    continue"]))
        )
    body += _statement(draw, depth - 1)
    if "static_range" in head:
        # Its names are those of the code around it: another runtime loop must not bind them again.
        body = [re.sub(r"\bn(\d)\b", r"s\1", line) for line in body]
    return [f"for {k} in {head}:", *_indented(body)]


def _while(draw: Draw, depth: int) -> list[str]:
    n = f"n{depth}"
    test = draw(st.sampled_from((f"{n} > 0", f"{n} > 0 and c < 500", f"{n} > v")))
    body = [f"{n} -= 1"] if test != f"{n} > v" else [f"{n} = {n} - 2"]
    if draw(st.booleans()):
        body += [f"if {_condition(draw)}:", f"    {draw(st.sampled_from(('break', 'continue')))}"]
    body += _statement(draw, 0)
    return [f"{n} = T.alloc_var('int32', init=c % 9)", f"while {test}:", *_indented(body)]


def _branch(draw: Draw, depth: int) -> list[str]:
    lines = [f"if {_condition(draw)}:", *_indented(_statement(draw, depth - 1))]
    if draw(st.booleans()):
        lines += [f"elif {_condition(draw)}:", *_indented(_statement(draw, 0))]
    if draw(st.booleans()):
        lines += ["else:", *_indented(_statement(draw, depth - 1))]
    return lines
