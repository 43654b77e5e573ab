"""Blocks that race or nearly race, decided by enumerating all blocks and elements."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from textwrap import indent
from typing import Any

from hypothesis import strategies as st

from tile_core.testing.case import Unit, output, tensor
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import randoms, themed

_SIZE = 48
#: Where a block begins: texts of Python and of the language.
_CORNERS = (
    "bx * {a} + by * {b} + {c}", "(bx + by * {a}) * {b}", "bx * {a} + {c}", "by * {a}", "(bx * {a} + by) % {b} * {c}",
    "bx // {a} * {b} + by * {c}", "(bx ^ {a}) * {b}", "{c} + {a}", "40 - bx * {a} - by * {b}", "bx * 30 + by * {a}",
    "(bx % {a}) * {b} + bx // {a} * {c}",
)  # fmt: skip
_GUARDS = (
    "", "", "", "bx < {a}", "by == {a}", "bx == {a} and by == 0", "bx % {a} == 0", "bx * 2 + by < {b}",
    "bx + by * {a} < {b}", "by * 4 + bx >= {a}",
)  # fmt: skip
#: What a block writes, by the block indices on which that depends.
_VALUES = (("bx * 8 + by + 1", "bx by"), ("by", "by"), ("7", ""), ("A[0]", ""))
_STORES = (
    "for i in T.Parallel({n}):\n    B[{at} + i] = {value}",
    "for i in T.serial({n}):\n    B[{at} + i] = {value}",
    "t = T.alloc_shared(({n},), 'int32')\nT.fill(t, {value})\nT.copy(t, B[{at}:{at} + {n}])",
    "T.fill(B[{at}:{at} + {n}], {value})",
)
_UPDATE = "for i in T.Parallel({n}):\n    B[{at} + i] += {value}"
_ATOMIC = "for i in T.Parallel({n}):\n    T.atomic_add(B[{at} + i], {value})"


@st.composite
def block_races(draw: Draw) -> Unit:
    """Draw a launch whose blocks write parts of one tensor, and may read it."""
    extents = [draw(st.integers(1, 5)), draw(st.integers(1, 3))]
    at, guard = _drawn(draw, _CORNERS), _drawn(draw, _GUARDS)
    n, (value, needs) = draw(st.integers(1, 6)), draw(st.sampled_from(_VALUES))
    form = draw(st.sampled_from((*_STORES, _UPDATE, _ATOMIC)))
    lines = [form.format(n=n, at=f"({at})", value=value)]
    if guard:
        lines = [f"if {_condition(guard)}:", indent(lines[0], "    ")]
    read = _drawn(draw, _CORNERS) if draw(st.integers(0, 3)) == 0 else ""
    if read:
        lines.append(f"O[bx, by] = B[{read}]")
    elif draw(st.booleans()):
        lines.append("O[bx, by] = A[(bx + by) % 4]")
    blocks = [{"bx": x, "by": y} for y in range(extents[1]) for x in range(extents[0])]
    value_of = None if form is _UPDATE else "atomic" if form is _ATOMIC else needs
    written = _written(blocks, at, guard, n, value_of)
    races = _race(written, [(b, _at(read, b)) for b in blocks] if read else [])
    params = [tensor("A", "int32", 4), output("B", "int32", _SIZE), output("O", "int32", 5, 3)]
    shapes = {"A": (4,), "B": (_SIZE,), "O": (5, 3)}
    data = {name: randoms(draw, shape, "int32") for name, shape in shapes.items()}
    unit = themed(
        "block-races", draw, params, "\n".join(lines), {"": data}, grid=", ".join(map(str, extents)), axes="(bx, by)",
        threads=draw(st.sampled_from((1, 32, 96))), needs=frozenset({"atomic:add:int32"}),
    )  # fmt: skip
    return replace(unit, illegal=("K214",)) if races else unit


def _drawn(draw: Draw, texts: Sequence[str]) -> str:
    numbers = {"a": draw(st.integers(1, 4)), "b": draw(st.integers(1, 12)), "c": draw(st.integers(0, 6))}
    return str(draw(st.sampled_from(texts))).format(**numbers)


def _condition(guard: str) -> str:
    return f"T.all_of({guard.replace(' and ', ', ')})" if " and " in guard else guard


def _at(text: str, block: Mapping[str, int]) -> int:
    return int(eval(text, {}, dict(block)))


#: By element: the blocks that write it, each with the value as far as it is known.
_Writes = dict[int, list[tuple[Mapping[str, int], Any]]]


def _written(blocks: Sequence[Mapping[str, int]], at: str, guard: str, n: int, needs: str | None) -> _Writes:
    """Return the writer of each element.

    With ``needs`` of ``None`` every block has a value of its own.
    """
    found: _Writes = {}
    for block in blocks:
        if guard and not eval(guard, {}, dict(block)):
            continue
        names = ("bx", "by") if needs is None else needs.split()
        value: Any = needs if needs == "atomic" else tuple(block[v] for v in names)
        for i in range(n):
            element = _at(at, block) + i
            if 0 <= element < _SIZE:
                found.setdefault(element, []).append((block, value))
    return found


def _race(written: _Writes, reads: Sequence[tuple[Mapping[str, int], int]]) -> bool:
    pairs = (pair for writes in written.values() for pair in itertools.combinations(writes, 2))
    if any(one != two for (_, one), (_, two) in pairs):
        return True
    for block, element in reads:
        writes = written.get(element, [])
        own = any(b == block and value != "atomic" for b, value in writes)
        if not own and any(b != block for b, _ in writes):
            return True
    return False
