"""Named integers and bools with many uses: indices, guards, values and bounds."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from tile_core.testing.case import Param, Unit, output, scalar, tensor
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import Drawn, randoms, themed

#: Values of names. ``{a}`` and ``{b}`` are integers, ``v`` is a parameter, ``w`` an extent of a tensor.
INTEGERS = (
    "{a} // w", "{a} % w", "({a} + v) % w", "{a} // v", "{a} % v", "v % 7 + ({a} // 3) * v", "{a} * v + {b} * 3 + 5",
    "({a} + v) * ({b} - v)", "T.min({a} * 3, v) + T.max({b}, v)", "{a} // w * 4 + {b} % 5", "({a} + v) // 5 * 7 + {b}",
    "({a} ^ 5) + v", "T.cast({a}, 'int64') * v",
)  # fmt: skip
BOOLS = ("0 <= {a} < w", "({a} - v >= 0) and ({b} + v < 9)", "{a} % v == 0 or {b} > v")
#: Statements with a name ``{t}``, which write row ``{r}`` of the result; ``{k}`` differs between them.
USES = {
    "index": "B[{r}, p] = A[{t} + {k}]",
    "row": "B[{r}, p] = D[{t}, {k} % 3]",
    "column": "B[{r}, p] = D[{k} % 3, {t}]",
    "value": "B[{r}, p] = T.cast({t} * {k} + 1, 'int32')",
    "guard": "if {t} < {k}:\n    B[{r}, p] = A[{k}]",
    "choice": "B[{r}, p] = T.if_then_else({t} > {k}, A[{t} - {k}], {k})",
    "updates": "\n".join(["B[{r}, p] = B[{r}, p] * v + T.cast({t}, 'int32')"] * 2),
    "bound": "for k{k} in T.serial({t} % 3):\n    B[{r}, p] = A[{t} + k{k} + {k}]",
    "unrolled": "s{k} = 0\nfor k in T.static_range(3):\n    s{k} = s{k} + A[{t} + k * {k}]\nB[{r}, p] = s{k}",
}  # fmt: skip
CONDITIONS = {
    "branch": "if {t}:\n    B[{r}, p] = A[{k}]",
    "selected": "B[{r}, p] = T.if_then_else({t}, A[p + {k}], {k})",
    "both": "if {t} and p > {k}:\n    B[{r}, p] = {k}",
}
#: Loops, with the number of their point, and their variable.
_LOOPS = {
    "for i in T.Parallel({n}):": ("bx * {n} + i", "i"),
    "for j, i in T.Parallel(2, {n}):": ("bx * 2 * {n} + j * {n} + i", "i + j"),
    "for i in T.serial({n}):": ("bx * {n} + i", "i"),
    "for i in T.vectorized({n}):": ("bx * {n} + i", "i"),
    "for i in T.unroll({n}):": ("bx * {n} + i", "i"),
    "": ("bx", "bx"),
}
ROWS = 3
_SIZE = 29


@st.composite
def names(draw: Draw) -> Unit:
    """Draw a kernel with named integers and bools, derived from each other, of many uses."""
    choose = Drawn(draw)
    head = choose.pick(tuple(_LOOPS))
    n, blocks = choose.pick((1, 3, 5, 8, 16) if "vectorized" not in head else (2, 4, 8)), choose.integer(1, 3)
    point, counter = (x.format(n=n) for x in _LOOPS[head])
    terms = ["p", counter, "v"]
    before: list[str] = []
    inside = [f"p = {point}"]
    for at in range(choose.integer(1, 3)):
        outer = bool(head) and choose.integer(0, 2) == 0
        given = ["bx", "v"] if outer else terms
        made = choose.pick(INTEGERS).format(a=choose.pick(given), b=choose.pick(given))
        (before if outer else inside).append(f"t{at} = {made}")
        terms.append(f"t{at}")
    made = choose.pick(BOOLS).format(a=choose.pick(terms), b=choose.pick(terms))
    inside += [f"ok = {made}", *used(choose, terms[3:], choose.integer(4, 9))]
    body = [*before, head.format(n=n), *("    " + x for x in inside)] if head else inside
    points = blocks * n * (2 if "j, i" in head else 1) if head else blocks
    h, w = choose.integer(1, 4), choose.integer(1, 9)
    data = {
        str(k): {
            "A": randoms(draw, (_SIZE,), "int32", 1, 99), "D": randoms(draw, (h, w), "int32", 1, 99), "h": h, "w": w,
            "v": choose.pick((-5, -1, 0, 1, 2, 7)), "B": randoms(draw, (ROWS, points), "int32"),
        }
        for k in range(2)
    }  # fmt: skip
    threads = choose.pick((1, 32, 64))
    params = [*parameters(), output("B", "int32", ROWS, points)]
    return themed("names", draw, params, "\n".join(body), data, grid=str(blocks), threads=threads, symbols=("h", "w"))


def parameters() -> list[Param]:
    """Return the inputs of such kernels."""
    return [tensor("A", "int32", _SIZE), tensor("D", "int32", "h", "w"), scalar("v")]


def used(choose: Drawn, integers: Sequence[str], count: int) -> list[str]:
    """Draw lines that use names."""
    lines: list[str] = []
    for k in range(1, count + 1):
        form, name = choose.pick(tuple(USES)), choose.pick(integers)
        if choose.integer(0, 3) == 0:
            form, name = choose.pick(tuple(CONDITIONS)), "ok"
        lines += use(form, name, k)
    return lines


def use(form: str, name: str, k: int) -> list[str]:
    """Return the lines of one use of a name."""
    return (USES | CONDITIONS)[form].format(t=name, k=k, r=k % ROWS).splitlines()
