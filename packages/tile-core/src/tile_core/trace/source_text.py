"""The source that a function was compiled from, and whether it has changed since.

Python keeps no source: it is read from the file when a kernel is traced, which may be long after the file was imported
and edited. ``remember`` keeps the lines of a decorated function, and of functions nested in it, as of its decoration.
``definition_of`` reads a function's ``def``, compiles it, and compares the result with the function.
"""

from __future__ import annotations
import __future__

import ast
import functools
import inspect
import linecache
import operator
import tokenize
import types
import weakref
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from typing import Any, TypeVar

_Node = TypeVar("_Node", bound=ast.AST)
_FUNCTION = "__tile_compared__"
_FUTURE: int = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
# Flags that depend on the function's context: `types.coroutine` sets the second one.
_OUTSIDE: int = inspect.CO_NESTED | inspect.CO_ITERABLE_COROUTINE

# Keyed by identity: code objects of a file before and after an edit may be equal.
_remembered: dict[int, tuple[weakref.ref[types.CodeType], list[str]]] = {}


def remember(fn: types.FunctionType) -> None:
    """Keep the current source of a function, and of those that it defines."""
    lines = _lines(fn)
    for code in nested_code(fn.__code__):
        _remembered[id(code)] = (weakref.ref(code, functools.partial(_remembered.pop, id(code))), lines)


def lines_of(fn: types.FunctionType) -> list[str]:
    """Return the lines of a function's file: as of its decoration, or current."""
    known = _remembered.get(id(fn.__code__))
    kept = known[1] if known is not None and known[0]() is fn.__code__ else []
    return kept or _lines(fn)


def definition_of(fn: types.FunctionType, lines: list[str]) -> ast.stmt | None:
    """Return the statement at a function's line, numbered as in its file, or ``None``.

    Raises
    ------
    SyntaxError
        The text there is not a statement.
    """
    first = fn.__code__.co_firstlineno
    if len(lines) < first:
        return None
    try:
        block = inspect.getblock(lines[first - 1 :])
    except (tokenize.TokenError, IndexError) as error:
        raise SyntaxError(str(error)) from error
    # The extra line keeps an indented definition legal without touching the text of its strings.
    tree = ast.parse("if 1:\n" + "".join(block) if block[0][:1].isspace() else "\n" + "".join(block))
    ast.increment_lineno(tree, first - 2)
    found = tree.body[0].body[0] if isinstance(tree.body[0], ast.If) else tree.body[0] if tree.body else None
    return found


def copy_of(node: _Node) -> _Node:
    """Return a copy of a syntax tree, many times faster than ``copy.deepcopy``."""
    made = type(node).__new__(type(node))
    for name, value in vars(node).items():
        if isinstance(value, list):
            value = [copy_of(part) if isinstance(part, ast.AST) else part for part in value]
        setattr(made, name, copy_of(value) if isinstance(value, ast.AST) else value)
    return made


def is_text_of(node: ast.FunctionDef, fn: types.FunctionType, lines: list[str]) -> bool:
    """Whether a function is what its definition compiles to.

    Python does not compile annotations of local names, so this cannot see them; ``remember`` covers those.
    """
    code = fn.__code__
    if _is_transformed(fn):
        return _is_part(_compiled(_without_assertions(node), code), code)
    alone = _compiled(node, code)
    if alone is not None and _facts(alone) == _facts(code):
        return True
    # Only the whole source shows how an enclosing class or type parameter changes the function's names.
    return any(_facts(other) == _facts(code) for other in _same_location("".join(lines), code))


def _lines(fn: types.FunctionType) -> list[str]:
    linecache.checkcache(fn.__code__.co_filename)
    return linecache.getlines(fn.__code__.co_filename, fn.__globals__)


def nested_code(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield the code of a function and of all functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from nested_code(constant)


def _compiled(node: ast.FunctionDef, code: types.CodeType) -> types.CodeType | None:
    """Return the code of a definition from a function's closure variables, or ``None``."""
    # Under its own name it would be a local of the wrapper, not a global, where it calls itself.
    inner = _replaced(node, name=_FUNCTION, decorator_list=[])
    made = ast.parse(f"def maker({', '.join(code.co_freevars)}): pass")
    maker: Any = made.body[0]
    maker.body = [inner]
    ast.fix_missing_locations(made)
    try:
        outer = compile(made, code.co_filename, "exec", flags=code.co_flags & _FUTURE, dont_inherit=True)
    except SyntaxError:
        return None
    return next((c for c in nested_code(outer) if c.co_name == _FUNCTION), None)


def _same_location(text: str, code: types.CodeType) -> list[types.CodeType]:
    """Functions in the source with the name and line of a given one."""
    try:
        whole = compile(text, code.co_filename, "exec", flags=code.co_flags & _FUTURE, dont_inherit=True)
    except (SyntaxError, ValueError):
        return []
    return [c for c in nested_code(whole) if (c.co_name, c.co_firstlineno) == (code.co_name, code.co_firstlineno)]


def _facts(code: types.CodeType) -> tuple[object, ...]:
    """Everything that determines a function's behaviour, without its name and location."""
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & ~_OUTSIDE)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return (code.co_code, counts, names, tuple(_constant(c) for c in code.co_consts))


def _constant(value: object) -> object:
    """A key of a constant that distinguishes 0, 0.0, -0.0 and False."""
    if isinstance(value, types.CodeType):
        return (value.co_name, _facts(value))
    if isinstance(value, (tuple, frozenset)):
        parts = [_constant(part) for part in value]
        return (type(value), tuple(parts if isinstance(value, tuple) else sorted(parts, key=repr)))
    return (type(value), repr(value))


def _is_transformed(fn: types.FunctionType) -> bool:
    """Whether a foreign import hook, such as pytest's, changed the source."""
    loader = fn.__globals__.get("__loader__")
    changed = getattr(type(loader), "source_to_code", None) is not SourceFileLoader.source_to_code
    return hasattr(loader, "exec_module") and not isinstance(loader, type) and changed


def _is_part(part: types.CodeType | None, whole: types.CodeType) -> bool:
    """Whether a function has all names and constants of another, plus added code."""
    if part is None:
        return False
    own, other = (
        [{*c.co_names, *c.co_varnames, *c.co_freevars, *map(_plain, c.co_consts)} for c in nested_code(code)]
        for code in (part, whole)
    )
    return set().union(*own) <= set().union(*other)


def _plain(value: object) -> object:
    return value.co_name if isinstance(value, types.CodeType) else _constant(value)


def _without_assertions(node: ast.FunctionDef) -> ast.FunctionDef:
    class RuleTransformer(ast.NodeTransformer):
        def visit_Assert(self, node: ast.Assert) -> ast.stmt:
            return ast.copy_location(ast.Pass(), node)

    changed: ast.FunctionDef = RuleTransformer().visit(copy_of(node))
    return changed


def _replaced(node: ast.FunctionDef, **fields: Any) -> ast.FunctionDef:
    changed = {**{name: getattr(node, name, None) for name in node._fields}, **fields}
    return ast.copy_location(ast.FunctionDef(**changed), node)
