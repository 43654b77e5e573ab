"""Support of each tile op on each target, from the backends' legality tables and the dispatcher.

A *row* is one tile op with element types and scopes; ``chosen`` returns the variant that lowers it on a target. A test
compiles the row's program for every target and compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from pages.columns import targets
from pages.support_rows import THREADS, Row, support
from tile_core.errors import UnsupportedError
from tile_core.ir.program import Program
from tile_core.lowering.dispatch import Selection
from tile_core.lowering.legality import Asked
from tile_core.lowering.variant import Variant
from tile_core.passes.spine import SPINE, Plan
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.target import ABSENT, Target


def chosen(row: Row, target: Target) -> str:
    """Return a row's variant with default options; empty if rejected.

    It follows from the tables, except for products for whose types a variant with an option exists: whether it is
    chosen depends on an estimate.
    """
    found = next((v.name for v in _legal(row, target) if not v.option), "")
    types = tuple(row.types.get(operand, "") for operand in "ABC")
    optional = [v.legality for v in variants(target) if row.build and v.op == row.op and v.option]
    estimated = any(types in atom.dtypes for table in optional for atom in table.atoms)
    return _dispatched(row, target, "") if found and estimated else found


def requested(row: Row, target: Target) -> tuple[str, str]:
    """Return a better variant that an option requires, and the option; empty if there is none."""
    first = chosen(row, target)
    if row.name == "copy":  # its program also has copies to and from the row's scopes
        return "", ""
    alike = next(t for t, *others in columns().values() if target.text in (targets()[t].text, *others))
    for option in dict.fromkeys(v.option for v in _legal(row, target) if v.option and v.name != first):
        # Only products differ between targets with equal tables.
        found = _dispatched(row, target if row.build else targets()[alike], option)
        if found not in ("", first):
            return found, option
    return "", ""


def dispatched(program: Program, op: str, target: Target, options: Mapping[str, str] | None = None) -> list[Selection]:
    """Return the dispatcher's choices for a program's calls of an op; empty if it is rejected."""
    ctx = make_context(target, options, plugins=installed())
    plan = Plan.of(program, installed().lowerings(target))
    try:
        for step in installed().pipeline(target, SPINE).passes:
            plan = step(plan, ctx)
            if plan.choices:
                break
    except UnsupportedError:
        return []
    return [c.selection for c in plan.choices if c.selection.variant.op == op]


@cache
def fitted(row: Row, target: Target) -> Row:
    """Return a row with sizes for the instructions of a target: `wgmma` has 64 rows, `tcgen05` 128.

    Where an instruction needs more than the usual sizes, no axis has less than 64, twice that
    along K of sparse operands.
    """
    types = tuple(row.types.get(operand, "") for operand in "ABC")
    mine = [v.legality for v in variants(target) if v.op == row.op and row.build]
    atoms = [atom for table in mine for atom in table.atoms if not atom.dtypes or types in atom.dtypes]
    least = {axis: max([e.extents()[axis].least for e in atoms if axis in e.sizes], default=0) for axis in row.sizes}
    if not any(least[axis] > size for axis, size in row.sizes.items()):
        return row
    usual = {"M": 64, "N": 64, "K": 128 if row.op == "gemm_sp" else 64}
    sizes = {axis: max(size, least[axis]) for axis, size in usual.items()}
    return _sized(row, tuple(sizes.items()))


@cache
def _sized(row: Row, sizes: tuple[tuple[str, int], ...]) -> Row:
    return row.at(dict(sizes))


@cache
def _dispatched(row: Row, target: Target, option: str) -> str:
    """Return the variant that lowers a row's op; empty if it is rejected."""
    options = {option: "always"} if option else None
    return next((s.variant.name for s in dispatched(_program(fitted(row, target)), row.op, target, options)), "")


@cache
def _program(row: Row) -> Program:
    return row.program()


def _legal(row: Row, target: Target) -> list[Variant]:
    """Return the variants whose tables accept a row, the first choice first."""
    absent = {str(name) for name in target.capabilities.fact(ABSENT)}
    if absent & {*row.types.values(), row.op}:
        return []
    if row.op == "atomic" and not target.capabilities.supports_atomic(
        row.name.removeprefix("atomic_"), row.types["dst"]
    ):
        return []
    types, scopes = {**row.others, **row.types}, {**dict.fromkeys(row.others, "global"), **row.scopes}
    asked = Asked(sizes=fitted(row, target).sizes, dtypes=types, scopes=scopes, threads=THREADS)
    return [v for v in variants(target) if v.op == row.op and not v.legality.check(asked, v.name)]


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
        tables = ((v.name, v.option, *v.legality.rows()) for v in variants(target))
        found.setdefault((target.kind, *tables), []).append(text)
    return {mine[0]: tuple(mine) for mine in found.values()}


@cache
def rows() -> tuple[Row, ...]:
    """Return all rows, in the order of the page."""
    return support()
