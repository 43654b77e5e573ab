"""Support of each tile op on each target, from the backends' legality tables.

A *row* is one tile op with element types and scopes; ``chosen`` reads from the tables
of a target the variant that lowers it. A test compiles the row's program for every target and compares.
"""

from __future__ import annotations

from functools import cache

from pages.columns import targets
from pages.support_rows import THREADS, Row, support
from tile_core.lowering.legality import Asked
from tile_core.lowering.variant import Variant
from tile_core.plugins.manager import installed
from tile_core.target import ABSENT, Target


def chosen(row: Row, target: Target) -> str:
    """Return a row's variant without options from the tables; empty if rejected."""
    absent = {str(name) for name in target.capabilities.fact(ABSENT)}
    if absent & {*row.types.values(), row.op}:
        return ""
    if row.op == "atomic" and not target.capabilities.supports_atomic(
        row.name.removeprefix("atomic_"), row.types["dst"]
    ):
        return ""
    asked = Asked(sizes=row.sizes, dtypes=row.types, scopes=row.scopes, threads=THREADS)
    mine = (v for v in variants(target) if v.op == row.op and not v.option)
    return next((v.name for v in mine if not v.legality.check(asked, v.name)), "")


def computes(row: Row, target: Target) -> tuple[str, ...]:
    """Return the instruction's types of A and B, if they differ from the row's."""
    name = chosen(row, target)
    if not name or "C" not in row.types:
        return ()
    asked = tuple(row.types[operand] for operand in "ABC")
    table = next(v.legality for v in variants(target) if v.name == name)
    found = next((atom.computes[:2] for atom in table.atoms if asked in atom.dtypes), ())
    return found if found != asked[:2] else ()


def fallback(target: Target, name: str) -> bool:
    """Return whether a variant is the op's plain loops."""
    return any(v.name == name and v.fallback for v in variants(target))


@cache
def variants(target: Target) -> tuple[Variant, ...]:
    """Return the variants of a target, the first choice first."""
    return tuple(sorted(installed().lowerings(target), key=lambda v: -v.priority))


@cache
def columns() -> dict[str, tuple[str, ...]]:
    """Return targets with distinct tables, each with its equivalents."""
    found: dict[tuple[object, ...], list[str]] = {}
    for text, target in targets().items():
        answers = ((chosen(row, target), computes(row, target)) for row in rows())
        found.setdefault((target.kind, *answers), []).append(text)
    return {mine[0]: tuple(mine) for mine in found.values()}


@cache
def rows() -> tuple[Row, ...]:
    """Return all rows, in the order of the page."""
    return support()
