"""The page of tile ops: what each means, and what each target does with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from functools import cache
from itertools import combinations, product

import tile_core.language as T
from pages.columns import targets
from pages.docstrings import docstring_of
from pages.support import chosen, columns, computes, fallback, requested, rows, variants
from pages.support_rows import Row
from tile_core.dtypes import DTYPES
from tile_core.ops.registry import OPS

LOOPS = "loops"
REFUSED = "refused"


@cache
def pages() -> dict[str, str]:
    """Return the pages as Markdown, by their paths below ``docs``."""
    return {"reference/support.md": _support(), "reference/variants.md": _variants()}


def cell(row: Row, text: str) -> str:
    """Return the cell of a target: a variant with its types, or a word; then a variant that an option requires."""
    target = targets()[text]
    name, (better, option) = chosen(row, target), requested(row, target)
    loops = fallback(target, name) and name.endswith(".loops")
    types = "" if loops or not name else _codes(_different(computes(row, target)))
    parts = [REFUSED if not name else LOOPS if loops else f"`{_short(name)}`", f"as {types}" if types else ""]
    return "<br>".join([*filter(None, parts), *([f'`{option}="always"`: `{_short(better)}`'] if better else [])])


def _short(name: str) -> str:
    """Return a variant's name without the kind of its target."""
    return name.partition(".")[2]


def anchor(name: str) -> str:
    """Return the part of a link to an op after ``#``."""
    return name.replace(" ", "-")


def _support() -> str:
    names = list(dict.fromkeys(row.name for row in rows()))
    parts = [_HEAD, _overview(names)]
    for name in names:
        parts.append(_section(name, [row for row in rows() if row.name == name]))
    return "\n".join(parts)


def _overview(names: Sequence[str]) -> str:
    lines = [_head(["op"], _titles())]
    for name in names:
        mine = [row for row in rows() if row.name == name]
        cells = []
        for text in targets():
            taken = sum(bool(chosen(row, targets()[text])) for row in mine)
            cells.append("all" if taken == len(mine) else f"{taken} of {len(mine)}" if taken else "none")
        lines.append(f"| {_link(name)} | {' | '.join(cells)} |")
    return "## How many combinations each target takes\n\n" + "\n".join(lines) + "\n"


def _titles() -> list[str]:
    """Return the titles of the targets' columns; a kind and its architecture stand on two lines."""
    return [f"`{text.replace(':', ':`<br>`')}`" for text in targets()]


def _section(name: str, mine: Sequence[Row]) -> str:
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Row]] = {}
    for row in mine:
        cells = tuple(cell(row, text) for text in targets())
        groups.setdefault((tuple(row.scopes.values()), cells), []).append(row)
    merged: dict[tuple[str, tuple[str, ...]], list[Row]] = {}
    scopes_of: dict[tuple[object, ...], set[tuple[str, ...]]] = {}  # by a row's cells and types
    for (scopes, cells), same in groups.items():
        merged.setdefault((_types(same, mine), cells), []).extend(same)
        for row in same:
            scopes_of.setdefault((cells, tuple(row.types.items())), set()).add(scopes)
    lines = [_head(["element types", "scopes"], _titles())]
    for (types, cells), same in merged.items():
        everywhere = set.intersection(*(scopes_of[cells, tuple(row.types.items())] for row in same))
        lines.append(f"| {types} | {_scopes(same, everywhere)} | {' | '.join(cells)} |")
    return f"## {_title(name)} {{ #{anchor(name)} }}\n\n{_meaning(name, mine[0].op)}\n\n" + "\n".join(lines) + "\n"


def _meaning(name: str, op: str) -> str:
    function = getattr(T, name, None)
    parts = [docstring_of(function).summary] if function else ["A copy in a `T.Pipelined` loop, which may run ahead."]
    loops = docstring_of(OPS[op].meaning).summary if op in OPS else ""
    loops = loops.removeprefix("Return the reference semantics").lstrip(".: ")
    return " ".join([*parts, f"In loops: {loops}" if loops and OPS[op].name == name else ""]).strip()


def _types(same: Sequence[Row], mine: Sequence[Row]) -> str:
    """Return the element types of rows that are done alike, in a cell."""
    if "C" in same[0].types:
        return "<br>".join(_products(same))
    found = _different(next(iter(row.types.values())) for row in same)
    every = _different(next(iter(row.types.values())) for row in mine)
    results = {list(row.types.values())[-1] for row in mine}
    into = f" into `{results.pop()}`" if len(every) > 1 == len(results) else ""
    return _among(found, every) + into


def _among(found: Sequence[str], every: Sequence[str]) -> str:
    if len(found) == len(every) > 1:
        return "all" if len(every) == len(DTYPES) else "all of the op: " + _codes(every)
    left = [t for t in every if t not in found]
    return "all but " + _codes(left) if len(left) * 3 < len(every) else _codes(found)


def _products(same: Sequence[Row]) -> list[str]:
    """Return lines such as ``float16, bfloat16 → float32``; inputs with the same accumulators share one."""
    pairs = {(row.types["A"], row.types["B"]) for row in same}
    lefts = _different(a for a, _ in pairs)
    if len(lefts) > 2 and len(pairs) == len(lefts) ** 2:
        return [f"any two of {_codes(sorted(lefts))} → {_codes(_different(row.types['C'] for row in same))}"]
    by_inputs: dict[str, list[str]] = {}
    for row in same:
        a, b, e = row.types["A"], row.types["B"], row.types.get("E", "int16")
        inputs = (f"`{a}`" if a == b else f"`{a}` × `{b}`") + ("" if e == "int16" else f" with `{e}` metadata")
        by_inputs.setdefault(inputs, []).append(row.types["C"])
    by_totals: dict[tuple[str, ...], list[str]] = {}
    for inputs, totals in by_inputs.items():
        by_totals.setdefault(tuple(totals), []).append(inputs)
    return [f"{', '.join(inputs)} → {_codes(totals)}" for totals, inputs in by_totals.items()]


def _scopes(same: Sequence[Row], everywhere: Set[tuple[str, ...]]) -> str:
    """Return the scopes of rows in few lines that hold for all their types."""
    operands = tuple(same[0].scopes)
    left = {tuple(row.scopes.values()) for row in same}
    allowed = left | everywhere
    choices = [_different(scope[i] for scope in sorted(allowed, key=_order)) for i in range(len(operands))]
    lines = []
    while left:  # the largest box of scopes per operand, then the next
        parts = ([c for n in range(len(one), 0, -1) for c in combinations(one, n)] for one in choices)
        boxes = [box for box in product(*parts) if set(product(*box)) <= allowed]
        best = max(boxes, key=lambda box: len(set(product(*box)) & left))
        left -= set(product(*best))
        lines.append(", ".join(f"{o}&nbsp;{'/'.join(scopes)}" for o, scopes in zip(operands, best, strict=True)))
    return "<br>".join(lines)


def _order(scopes: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(("shared", "fragment", "global").index(scope) for scope in scopes)


def _variants() -> str:
    parts = [_VARIANTS_HEAD]
    for first, alike in columns().items():
        title = ", ".join(f"`{text}`" for text in alike)
        parts.append(f"\n## {title}\n\n| op | variant | what its table says |\n| --- | --- | --- |")
        for v in sorted(variants(targets()[first]), key=lambda v: (v.op, -v.priority)):
            option = [("only with the option", f"`{v.option}`")] if v.option else []
            parts.append(f"| {v.op} | `{v.name}` | {_facts([*option, *v.legality.rows()])} |")
    return "\n".join(parts) + "\n"


def _facts(table: Iterable[tuple[str, str]]) -> str:
    """Return a table in a cell; of many combinations of types only their number."""
    facts: dict[str, list[str]] = {}
    for what, legal in table:
        facts.setdefault(what, []).append(legal)
    types = facts.pop("types", [])
    if types:
        facts = {"types": types if len(types) <= 4 else [f"{len(types)} combinations"], **facts}
    return "<br>".join(f"{what}: {'; '.join(legal)}" for what, legal in facts.items()) or "no limits"


def _head(first: Sequence[str], others: Sequence[str]) -> str:
    titles = [*first, *others]
    return f"| {' | '.join(titles)} |\n|{' --- |' * len(titles)}"


def _title(name: str) -> str:
    return f"`T.{name}`" if hasattr(T, name) else "`T.copy` in `T.Pipelined`"


def _link(name: str) -> str:
    return f"[{_title(name)}](#{anchor(name)})"


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _different(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


_HEAD = """\
---
hide: [toc]
---

# Support

Which target does what with each tile op. A cell names the variant that lowers the op, without the kind of the target:
`wgmma` in the column of `cuda:sm_90a` is the variant `cuda.wgmma`, and `variant="cuda.wgmma"` of a product requires it.

- *as* names the element types that the instruction multiplies, where these are not the kernel's: operands are converted
  as they are read, without rounding.
- *loops* are the op's plain loops, distributed over the threads where a target has threads.
- *refused* is a typed error when the kernel is compiled.
- `tcgen05="always"`: a second line names the variant that this option requires. First lines are those of default
  options, under which an estimate for the tile's shape chooses between legal instructions.

The kernels of this page have 128 threads and tiles of 32 by 32 elements, rows of 256 for reductions and scans. Tiles of
products are larger where the target's instructions are: 64 by 64 for `wgmma`, 128 by 64 for `tcgen05`. B of `tfloat32`,
or of fewer than 16 bits, is transposed.

The page is generated from the [legality tables](variants.md) of the installed backends when the site is built. Tests
compare every cell with the dispatcher, and compile programs for it. `tile explain` gives the same answer for your own
kernel, with the reasons.
"""

_VARIANTS_HEAD = """\
---
hide: [toc]
---

# Legality tables

A backend offers *variants* for tile ops. Each has a table of what it can lower; the first variant whose table (and
whose further conditions, which `tile explain` tells) allow a call lowers it. Variants of an op are listed in the order
in which they are asked. [Support](support.md) shows what follows for combinations of element types and scopes;
[Writing a backend](../backends.md) describes the tables themselves.
"""
