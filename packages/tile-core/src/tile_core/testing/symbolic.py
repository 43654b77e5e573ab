"""Symbolic twins of the kit's kernels: sizes become symbols, and corners values of the kernel.

A twin computes the same results as its original. Every constant extent of a tensor becomes a symbol of its own, a
tensor that is an operand becomes a slice of the original's extents, and every index has a summand that is 0 in every
launch but not while compiling.
"""

from __future__ import annotations

import ast
import itertools
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tile_core.testing.case import Data, Launch, Param, Part, Unit, scalar, tensor

EXTENTS = ("constant", "int32", "int64", "mixed")
"""Types of the extents of a twin's tensors; ``"mixed"`` alternates ``int32`` and ``int64``."""

CORNERS: Mapping[str, tuple[str, str]] = {
    "constant": ("", "0"),
    "scalar": ("", "zero_"),
    "read": ("", "zeros_[0]"),
    "computed": ("", "(zero_ * 3 - zero_)"),
    "variable": ('at_ = T.alloc_var("int32", init=0)\nat_ = zero_', "at_"),
}
"""By name: statements of the kernel, and the summand of every index."""

#: Tiles have constant extents (K202), equal ones within an expression (K144); views are of whole tensors (K216) and
#: have the same bit count (K215); tiles of packed weights begin at known multiples (K151).
_REFUSALS = ("K202", "K144", "K215", "K216", "K151")
#: Functions that take tensors and no parts of them.
_WHOLE = ("T.annotate_", "T.view", "T.reshape", "T.address_of")
_GIVEN = (scalar("zero_"), tensor("zeros_", "int32", 2))


def twin(unit: Unit, extents: str, corner: str) -> Unit | None:
    """Return the twin of a unit, or ``None`` if it would be the same program.

    Parameters
    ----------
    unit
        A legal unit.
    extents, corner
        Of ``EXTENTS`` and ``CORNERS``.
    """
    every = [*unit.params, *(p for part in unit.parts.values() for p in part.params)]
    known = {p.name: p for p in every if p.shape and not p.of}
    start, at = CORNERS[corner]
    if unit.illegal or not known or (unit.own_launches and start):
        return None
    kinds = itertools.cycle(("int32", "int64") if extents == "mixed" else (extents,))
    symbols = {} if extents == "constant" else {name: next(kinds) for name in unit.symbols}
    params = {name: _symbolic(p, kinds, symbols, name in unit.packed) for name, p in known.items()}
    moved = _Moved({name: p for name, p in known.items() if name not in unit.whole}, at)

    def own(given: tuple[Param, ...]) -> tuple[Param, ...]:
        return tuple(params.get(p.name, p) for p in given)

    parts = {k: Part(own(x.params), moved.text(x.body), x.want, x.tolerance, x.needs) for k, x in unit.parts.items()}
    body = "\n".join(filter(None, (start, moved.text(unit.body))))
    if not symbols and at == "0":
        return None
    sizes = {f"{name}_{d}": n for name, p in known.items() for d, n in enumerate(p.shape or ()) if isinstance(n, int)}
    declared = "\n".join(f'{name} = T.dynamic("{name}", "{kind}")' for name, kind in symbols.items())
    before = "\n".join(filter(None, (textwrap.dedent(unit.before).strip("\n"), declared)))
    launches = {k: Launch(_with(x, sizes), x.parts) for k, x in unit.launches.items()}
    name = f"{unit.name}@{extents}-{corner}"
    left = unit.symbols if extents == "constant" else ()
    return replace(
        unit, name=name, params=(*own(unit.params), *_GIVEN), body=body, parts=parts, launches=launches, before=before,
        symbols=left, refusals=_REFUSALS, optional=unit.optional or "sizes that are symbols have no known divisors",
    )  # fmt: skip


def _symbolic(p: Param, kinds: Iterator[str], symbols: dict[str, str], packed: bool) -> Param:
    """Return a parameter with symbols as extents.

    The last one of packed weights stays.
    """
    shape: list[int | str] = []
    for d, n in enumerate(p.shape or ()):
        is_kept = packed and d == len(p.shape or ()) - 1
        kind = next(kinds) if isinstance(n, int) and not is_kept else "constant"
        if kind != "constant":
            symbols[f"{p.name}_{d}"] = kind
        shape.append(n if kind == "constant" else f"{p.name}_{d}")
    return replace(p, shape=tuple(shape))


def _with(launch: Launch, sizes: Mapping[str, int]) -> Any:
    def data(rng: Any) -> Data:
        return {**launch.data(rng), **sizes, "zero_": 0, "zeros_": np.zeros(2, np.int32)}

    return data


class _Moved(ast.NodeTransformer):
    """Transformer that adds a summand to tensor indices, and slices tensor operands."""

    def __init__(self, params: Mapping[str, Param], at: str) -> None:
        self.params, self.at = params, at

    def text(self, body: str) -> str:
        """Return statements rewritten."""
        return ast.unparse(ast.fix_missing_locations(self.visit(ast.parse(textwrap.dedent(body).strip("\n")))))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Keep calls that name whole tensors: annotations and views."""
        return node if ast.unparse(node.func).startswith(_WHOLE) else self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return node if isinstance(node.value, ast.Name) else self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        p = self.params.get(node.id)
        if p is None:
            return node
        parts = (f"{self.at}:{self.at} + {n}" for n in p.shape or ())
        return ast.parse(f"{node.id}[{', '.join(parts)}]", mode="eval").body

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if not (isinstance(node.value, ast.Name) and node.value.id in self.params):
            return self.generic_visit(node)
        index = self.visit(node.slice)
        items = index.elts if isinstance(index, ast.Tuple) else [index]
        if self.at == "0":
            return ast.Subscript(node.value, index, node.ctx)
        items = [self.item(x) for x in items]
        return ast.Subscript(node.value, ast.Tuple(items, ast.Load()) if len(items) > 1 else items[0], node.ctx)

    def item(self, x: ast.expr) -> ast.expr:
        if isinstance(x, ast.Slice):
            ends = [None if e is None else self.moved(e) for e in (x.lower, x.upper)]
            return ast.Slice(ends[0], ends[1], x.step) if None not in ends else x
        return x if isinstance(x, ast.Constant) and x.value in (None, ...) else self.moved(x)

    def moved(self, x: ast.expr) -> ast.expr:
        return ast.BinOp(x, ast.Add(), ast.parse(self.at, mode="eval").body)
