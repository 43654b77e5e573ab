"""Programs that may be illegal: of any strategy, with one number, type or name exchanged."""

from __future__ import annotations

import dataclasses
import re

from hypothesis import strategies as st

from tile_core.testing.case import Unit
from tile_core.testing.strategies.draws import TYPES, Draw

_TOKEN = re.compile(
    r'(?<![\w.])\d+(?![\w.])|"\w+"|\b[tXO]\d+\b|True|False|\b[A-Z]\b(?=\[)|\b[a-z]\b(?=\[)|\b(?:tx|bx|by|v|m)\b'
)
MANY = 70_000
"""More than 16 bits hold; as a trip count, longer than a mutant may run."""
_NUMBERS = ("0", "1", "-1", "5", "13", "49", "2.5", "v", "bx", "300", "m", str(MANY))
_KINDS = ("float8_e4m3fn", "int4", "bool", "float12", "uint4", "float4_e2m1fn", "tfloat32", "uint64")


def mutants_of(programs: st.SearchStrategy[Unit]) -> st.SearchStrategy[Unit]:
    """Return programs with one token changed: right or rejected, never an internal error.

    A token is a number, a type or a name.
    """

    @st.composite
    def mutants(draw: Draw) -> Unit:
        unit = draw(programs)
        name, part = next(iter(unit.parts.items()))
        body = part.body
        tokens = list(_TOKEN.finditer(body))
        if not tokens:
            return unit
        chosen = draw(st.sampled_from(tokens))
        new = _other(draw, chosen.group(), {m.group() for m in tokens})
        changed = dataclasses.replace(part, body=body[: chosen.start()] + new + body[chosen.end() :])
        return dataclasses.replace(unit, name=f"{unit.name}-mutant", parts={name: changed})

    return mutants()


def _other(draw: Draw, old: str, tokens: set[str]) -> str:
    """Return the replacement of a token."""
    if old.isdigit():
        return str(draw(st.sampled_from(_NUMBERS)))
    if old.startswith('"'):
        return f'"{draw(st.sampled_from((*TYPES, *_KINDS)))}"'
    if old in ("True", "False"):
        return str(draw(st.sampled_from(("True", "False", "v > 0", "None"))))
    names = sorted(t for t in tokens if t.isidentifier() and t not in ("True", "False"))
    return str(draw(st.sampled_from([*names, "t1", "v", "0"])))
