"""The source of a user's function, and its rewritten form as a function.

The rewritten function shares globals, closure cells and defaults with the user's, so names defined later are seen, and
its code has the user's file name and line numbers, so tracebacks and spans point at the user's lines.
"""

from __future__ import annotations
import __future__

import ast
import functools
import types
import weakref
from collections.abc import Callable, Mapping

from tile_core.errors import Where
from tile_core.errors.language import NoSource, SourceChanged
from tile_core.records import dataclass
from tile_core.trace.rewrite import function_node, rewrite_function
from tile_core.trace.source_text import copy_of, definition_of, is_text_of, lines_of
from tile_core.values.builder import SUPPORT

_MAKER = "__tile_make__"
_FUNCTION = "__tile_function__"


@dataclass(frozen=True)
class Definition:
    """A user's function definition.

    Attributes
    ----------
    node
        Its syntax tree, with the line numbers of its file.
    where
        The line of its ``def``.
    """

    node: ast.FunctionDef
    where: Where


def is_rewritten(fn: Callable[..., object]) -> bool:
    """Whether a function consists of rewritten code, as part of a rewritten function."""
    return SUPPORT in fn.__code__.co_freevars


@dataclass
class _Known:
    """Cached data of a code object: its definition, names in annotations, and compiled forms."""

    definition: Definition
    annotated: frozenset[str]
    compiled: dict[tuple[str, ...], types.CodeType]


# Keyed by identity: code objects of a file before and after an edit may be equal.
_cache: dict[int, tuple[weakref.ref[types.CodeType], _Known]] = {}


def definition(fn: Callable[..., object]) -> Definition:
    """Return the definition of a function; the tree is shared, do not change it.

    Raises
    ------
    NoSource
        If the source cannot be found, or is not a plain ``def``.
    SourceChanged
        If the source is not what the function was compiled from.
    """
    return _known(fn).definition


def _known(fn: Callable[..., object]) -> _Known:
    if not isinstance(fn, types.FunctionType):
        name = getattr(fn, "__name__", repr(fn))
        raise NoSource(name=name, reason=f"it is of type {type(fn).__name__}, not a function")
    code = fn.__code__
    known = _cache.get(id(code))
    if known is None or known[0]() is not code:
        found = _parse(fn)
        own = {*code.co_freevars, *code.co_varnames, *code.co_cellvars}
        made = _Known(found, _annotated(found.node) - own, {})
        known = (weakref.ref(code, functools.partial(_cache.pop, id(code))), made)
        _cache[id(code)] = known
    return known[1]


def _parse(fn: types.FunctionType) -> Definition:
    code, name = fn.__code__, fn.__name__
    where = Where(code.co_filename, code.co_firstlineno)
    lines = lines_of(fn)
    if not lines:
        raise NoSource(name=name, reason=f"the text of {code.co_filename} is not available", where=where)
    changed = SourceChanged(name=name, file=code.co_filename, line=code.co_firstlineno, where=where)
    try:
        node = definition_of(fn, lines)
    except SyntaxError as error:
        if code.co_name == "<lambda>":
            raise NoSource(name=name, reason=f"its text cannot be parsed ({error})", where=where) from error
        raise changed from error
    if code.co_name == "<lambda>" or isinstance(node, ast.AsyncFunctionDef):
        raise NoSource(name=name, reason="it is not written as a plain `def`", where=where)
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name or not is_text_of(node, fn, lines):
        raise changed
    return Definition(node, Where(code.co_filename, node.lineno))


def rewritten(fn: Callable[..., object], scope: Mapping[str, object] | None = None) -> Callable[..., object]:
    """Return the rewritten form of a function.

    Parameters
    ----------
    fn
        A plain Python function.
    scope
        Names in the scope that defines the function, for those that only occur in its annotations, which Python does
        not put into the closure.

    Raises
    ------
    NoSource, SourceChanged, RefusedSyntax
        If there is no source, it is not the function's, or it uses statements that a kernel cannot have.
    """
    if is_rewritten(fn):
        return fn
    code = fn.__code__
    known = _known(fn)
    extra = tuple(sorted(n for n in known.annotated if n in (scope or {}) and n not in fn.__globals__))
    if extra not in known.compiled:
        known.compiled[extra] = _compile(fn, copy_of(known.definition.node), extra)
    new = known.compiled[extra]
    from tile_core.trace import support

    cells = dict(zip(code.co_freevars, fn.__closure__ or (), strict=True))
    cells[SUPPORT] = types.CellType(support)
    for name in set(new.co_freevars) - set(cells):
        cells[name] = types.CellType((scope or {})[name])
    closure = tuple(cells[name] for name in new.co_freevars)
    result = types.FunctionType(new, fn.__globals__, fn.__name__, fn.__defaults__, closure)
    result.__kwdefaults__ = fn.__kwdefaults__
    result.__qualname__ = fn.__qualname__
    result.__dict__.update({k: v for k, v in fn.__dict__.items() if k != "__wrapped__"})
    return result


def _compile(fn: Callable[..., object], node: ast.FunctionDef, extra: tuple[str, ...]) -> types.CodeType:
    code = fn.__code__
    body = rewrite_function(node, code.co_filename)
    # Under its own name it would be a local of the wrapper, and a recursive call would not find the user's object.
    body.name = _FUNCTION
    names = [SUPPORT, *code.co_freevars, *extra]
    arguments = ast.arguments(
        posonlyargs=[], args=[ast.arg(n) for n in names], kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    maker = function_node(_MAKER, arguments, [body])
    module = ast.Module(body=[ast.copy_location(maker, body)], type_ignores=[])
    ast.fix_missing_locations(module)
    flags = code.co_flags & __future__.annotations.compiler_flag
    outer = compile(module, code.co_filename, "exec", flags=flags, dont_inherit=True)
    return _named(_named(outer, _MAKER), _FUNCTION).replace(co_name=code.co_name)


def _named(code: types.CodeType, name: str) -> types.CodeType:
    return next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name)


def _annotated(node: ast.FunctionDef) -> frozenset[str]:
    notes = [n.annotation for n in ast.walk(node) if isinstance(n, ast.AnnAssign)]
    return frozenset(n.id for note in notes for n in ast.walk(note) if isinstance(n, ast.Name))
