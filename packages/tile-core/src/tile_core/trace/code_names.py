"""Collect the names that a function's code reads: globals, closures, modules and attributes."""

from __future__ import annotations
import __future__

import ast
import dis
import functools
import re
import types
from collections.abc import Callable, Iterator

from tile_core.errors import TileError
from tile_core.records import dataclass
from tile_core.trace.source import definition
from tile_core.trace.source_text import nested_code

#: Functions and attributes that read attributes by names that the code does not show.
REFLECTIVE = frozenset({
    "getattr", "hasattr", "vars", "dir", "eval", "exec", "globals", "locals", "attrgetter", "methodcaller", "__dict__",
    "__getattribute__", "__slots__", "__mro__", "__bases__", "__subclasses__", "__members__", "__closure__",
})  # fmt: skip

_GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_DEREF = frozenset({"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
_CHAIN = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_LOOSE = _CHAIN | {"LOAD_SUPER_ATTR", "IMPORT_FROM"}
_SILENT = frozenset({"CACHE", "EXTENDED_ARG", "PUSH_NULL", "NOP"})
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*")


@dataclass(frozen=True)
class Names:
    """Names that code reads; that of nested functions included.

    Attributes
    ----------
    globals, cells
        Names of the module and of enclosing functions, with the attributes that directly follow:
        ``("cfg", "tile", "m")`` for ``cfg.tile.m``.
    texts
        The same in annotations that are kept as text, which may be of either kind.
    attributes
        Attributes of objects that have no such name.
    imports
        Modules that it imports; the name of a relative one lacks its package.
    reflective
        Whether it may read attributes by computed names.
    """

    globals: frozenset[tuple[str, ...]]
    cells: frozenset[tuple[str, ...]]
    texts: frozenset[tuple[str, ...]]
    attributes: frozenset[str]
    imports: frozenset[str]
    reflective: bool


@functools.lru_cache(maxsize=4096)
def names_of(code: types.CodeType) -> Names:
    """Return the names that a function's code reads."""
    outer: set[tuple[str, ...]] = set()
    cells: set[tuple[str, ...]] = set()
    texts: set[tuple[str, ...]] = set()
    attributes: set[str] = set()
    imports: set[str] = set()
    for one in nested_code(code):
        found = [i for i in dis.get_instructions(one) if i.opname not in _SILENT]
        following = 0
        for at, instruction in enumerate(found):
            name = instruction.argval
            if at < following:
                continue
            if instruction.opname in _GLOBAL:
                chain = (name, *_following(found, at + 1))
                outer.add(chain)
                following = at + len(chain)
            elif instruction.opname in _DEREF and name in code.co_freevars:
                # The attributes count for all objects, too: a variable of a nested function may have the same name.
                cells.add((name, *_following(found, at + 1)))
            elif instruction.opname in _LOOSE:
                attributes.add(str(name))
            elif instruction.opname == "IMPORT_NAME":
                imports.add(name)
            elif instruction.opname == "MATCH_CLASS":
                attributes.add("__dict__")
        if one.co_flags & __future__.annotations.compiler_flag:
            texts.update(chain for text in _texts(one.co_consts) for chain in chains_in(text))
    used = {part for chain in (*outer, *cells) for part in chain} | attributes
    return Names(
        frozenset(outer),
        frozenset(cells),
        frozenset(texts),
        frozenset(attributes),
        frozenset(imports),
        not used.isdisjoint(REFLECTIVE),
    )


def annotated_names(fn: Callable[..., object]) -> frozenset[tuple[str, ...]]:
    """Return names with attributes in a kernel's annotations, which its code omits."""
    texts = [a for a in getattr(fn, "__annotations__", {}).values() if isinstance(a, str)]
    try:
        node = definition(fn).node
    except TileError:
        return frozenset()
    texts += [ast.unparse(n.annotation) for n in ast.walk(node) if isinstance(n, ast.AnnAssign)]
    return frozenset(chain for text in texts for chain in chains_in(text))


def chains_in(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the names with attributes in the text of an expression."""
    for found in _DOTTED.findall(text):
        yield tuple(part.strip() for part in found.split("."))


def _following(found: list[dis.Instruction], at: int) -> Iterator[str]:
    """Yield the attributes that instructions read one after the other."""
    while at < len(found) and found[at].opname in _CHAIN:
        yield str(found[at].argval)
        at += 1


def _texts(constants: tuple[object, ...]) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple):
            yield from _texts(constant)
