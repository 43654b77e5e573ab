"""Programs with regions of numerics: exact arithmetic, and statements of any strategy."""

from __future__ import annotations

import ast
import dataclasses
import re
import textwrap

import numpy as np
from hypothesis import strategies as st

from tile_core.testing.case import Unit, output, tensor
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import randoms, themed

_TYPES = ("float32", "float32", "float32", "float16", "bfloat16", "float64")
_FORMS = (
    "{0} * {1} + {2}", "{0} * {1} - {2}", "{2} - {0} * {1}", "-{0} * {1} + {2}", "{0} * {1}", "{0} + {2}", "{0} / 3",
    "{0} * {1} + {2} * {2}",
)  # fmt: skip
#: Text around statements that stay strict.
_AROUND = (
    'with T.numerics("strict"):\n    {0}', 'with T.numerics("strict"):\n    {0}',
    'with T.numerics("fast"):\n    with T.numerics("strict"):\n        {0}',
    'with T.numerics("strict"):\n    with T.numerics("standard"):\n        w{2} = {1}\n    {0}',
)  # fmt: skip
#: What a level changes in more than roundings; variants of a given name add in an order of their own.
_APPROXIMATE = re.compile(r"/|T\.(?!copy|fill|clear|Parallel|serial|alloc_|cast|gemm\b|ceildiv|if_then_else)\w+|\*\*|%")
_NAMED = re.compile(r"variant=|T\.\w+_gemm")


@st.composite
def regions(draw: Draw) -> Unit:
    """Draw arithmetic of strict regions, whose result fusing would change."""
    dtype, n = draw(st.sampled_from(_TYPES)), draw(st.sampled_from((1, 7, 32, 70)))
    lines, names = [f"for i in T.Parallel({n}):"], ["A[i]", "B[i]", "C[i]"]
    for number in range(draw(st.integers(1, 4))):
        operands = draw(st.permutations(names))[:3] if draw(st.booleans()) else ["A[i]", "B[i]", "C[i]"]
        statement = f"v{number} = {draw(st.sampled_from(_FORMS)).format(*operands)}"
        around = draw(st.sampled_from(_AROUND))
        if draw(st.integers(0, 3)) == 0:
            statement = f"acc{number} = acc{number} * {operands[0]} + {operands[1]}"
            lines.append(f'    acc{number} = T.alloc_var("{dtype}", init=1)\n    for j in T.serial(3):')
            lines += [
                textwrap.indent(around.format(statement, operands[2], number), " " * 8),
                f"    v{number} = acc{number} + 0",
            ]
        else:
            lines.append(textwrap.indent(around.format(statement, operands[2], number), " " * 4))
        names.append(f"v{number}")
    lines.append(f"    O[i] = {names[-1]}")
    a, b, c = (randoms(draw, (n,), dtype) for _ in range(3))
    if dtype in ("float32", "float64"):
        rng = np.random.default_rng(draw(st.integers(0, 10**6)))
        a, b = (rng.standard_normal((n,)).astype(dtype) for _ in range(2))
        c = -(a * b)
    params = [tensor("A", dtype, n), tensor("B", dtype, n), tensor("C", dtype, n), output("O", dtype, n)]
    threads = draw(st.sampled_from((1, 32, 128)))
    return themed("regions", draw, params, "\n".join(lines), {"": {"A": a, "B": b, "C": c}}, threads=threads)


def with_regions(unit: Unit) -> st.SearchStrategy[Unit]:
    """Return a strategy of a program, a fourth of the time with a region."""
    return st.sampled_from((False, False, False, True)).flatmap(
        lambda wanted: _within(unit) if wanted else st.just(unit)
    )


@st.composite
def _within(draw: Draw, unit: Unit) -> Unit:
    """Draw consecutive statements of a part, and the level of a region around them."""
    name = draw(st.sampled_from(sorted(unit.parts)))
    part = unit.parts[name]
    body = textwrap.dedent(part.body).strip("\n")
    blocks = _blocks(body)
    if not blocks or unit.illegal or unit.reported or "T.numerics" in unit.text():
        return unit
    block = draw(st.sampled_from(blocks))
    first = draw(st.integers(0, len(block) - 1))
    last = draw(st.integers(first, len(block) - 1))
    lines = body.splitlines()
    start, end = block[first].lineno - 1, block[last].end_lineno or 0
    text = "\n".join(lines[start:end])
    # A program of a strict kernel may be compared exactly: only its roundings may change.
    levels = [*(() if _NAMED.search(text) else ("strict",))]
    levels += () if _APPROXIMATE.search(text) else ("standard", "fast")
    if not levels:
        return unit
    indent = lines[start][: len(lines[start]) - len(lines[start].lstrip())]
    head = f'{indent}with T.numerics("{draw(st.sampled_from(levels))}"):'
    lines[start:end] = [head, *textwrap.indent(text, "    ").splitlines()]
    changed = dataclasses.replace(part, body="\n".join(lines))
    return dataclasses.replace(unit, name=f"{unit.name}-region", parts={**unit.parts, name: changed})


def _blocks(body: str) -> list[list[ast.stmt]]:
    """Return the blocks of a kernel's text whose statements have lines of their own."""
    found = [getattr(node, field, None) for node in ast.walk(ast.parse(body)) for field in ("body", "orelse")]
    blocks = [b for b in found if isinstance(b, list) and b and isinstance(b[0], ast.stmt)]
    lines = body.splitlines()

    def is_apart(s: ast.stmt) -> bool:
        line = lines[s.lineno - 1]
        return not line[: s.col_offset].strip() and not line[s.col_offset :].startswith("elif")

    return [b for b in blocks if all(map(is_apart, b))]
