"""Tracing: run a kernel function once and collect its program."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from tile_core.compat.tvm import reason_of, tirx, tvm
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.errors import InternalError, TileError, Where
from tile_core.errors.language import (
    BadParameter,
    BadReturn,
    EscapedVariable,
    PythonError,
    UnboundSymbol,
    annotate,
)
from tile_core.ir import nodes
from tile_core.ir.program import ParamInfo, Program
from tile_core.trace.parameters import Pointer, declaration_of, declare
from tile_core.trace.python_errors import python_error
from tile_core.trace.source import definition, rewritten
from tile_core.trace.thread_ranges import with_roles
from tile_core.values.builder import SUPPORT, Builder
from tile_core.values.checks import shown
from tile_core.values.types import is_symbol
from tile_runtime.compat.exits import check_thread
from tile_runtime.errors.interrupts import passed_on, watched

if TYPE_CHECKING:
    from tile_core.values.value import Buffer, Value


def trace(fn: Callable[..., object], scope: Mapping[str, object] | None = None) -> Program:
    """Return the program of a function whose parameters are all annotated.

    Parameters
    ----------
    fn
        The kernel function.
    scope
        Names in the scope that defines it.

    Raises
    ------
    KernelError
        If the function is not a kernel; every such error carries the user's file and line.
    """
    where = definition(fn).where
    builder = Builder(fn.__name__)
    with watched(), located(where), builder.active():
        declared = [declare(builder, n, a) for n, a in _annotations(fn, builder, scope).items()]
        result = run(rewritten(fn, scope), [d[1] for d in declared])
        if result is not None:
            raise BadReturn(
                kernel=fn.__name__,
                found=f"an object of type {type(result).__name__}",
                expected="nothing: results are written to parameters",
                fix="remove the `return`; compile with out_idx=-1 to have calls return the last parameter",
                where=return_of(fn),
            )
        return finish(builder, [d[0] for d in declared], [d[2] for d in declared], where)


def run(
    fn: Callable[..., object],
    arguments: Sequence[Buffer | Pointer | Value],
    keywords: Mapping[str, object] | None = None,
) -> object:
    """Run rewritten code, with the user's line in errors, and Python errors converted."""
    check_thread()
    try:
        return fn(*arguments, **(keywords or {}))
    except TileError as error:
        raise error.at(_location(error)) from error.__cause__
    except Exception as error:
        passed_on(error)
        raise _translated(error) from error


def finish(
    builder: Builder, params: list[Var], infos: list[ParamInfo], where: Where, outputs: tuple[int, ...] = ()
) -> Program:
    """Return the program that a builder has collected."""
    body = with_roles(nodes.seq(builder.scope.statements))
    workspaces = tuple(info.name for _, info in builder.workspaces)
    params, infos = [*params, *(v for v, _ in builder.workspaces)], [*infos, *(i for _, i in builder.workspaces)]
    _check_variables(builder, params, body)
    attrs = builder.launches[0] if len(builder.launches) == 1 else builder.attrs
    func = tirx.PrimFunc(params, body).with_attr("global_symbol", builder.name)
    func = _single_definitions(func)
    _check_scopes(builder, func)
    if builder.symbols:
        func = func.with_attr("tile.symbols", list(builder.symbols.values()))
    for key, value in attrs.items():
        func = func.with_attr(f"tile.{key}", value)
    return Program(
        func, builder.name, tuple(infos), dict(builder.symbols), outputs, where,
        {str(b.var.name): layout for b, layout in builder.layouts.items()}, dict(builder.reducers), dict(attrs),
        tuple(builder.launches), workspaces,
    )  # fmt: skip


def return_of(fn: Callable[..., object]) -> Where:
    """Return the location of a function's last ``return`` with a value, or its definition."""
    found = definition(fn)
    own = [s for s in _statements(found.node.body) if isinstance(s, ast.Return) and s.value is not None]
    return Where(found.where.file, own[-1].lineno) if own else found.where


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a function in order, without those of nested functions."""
    for s in body:
        yield s
        if not isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for part in ast.iter_child_nodes(s):
                if isinstance(part, ast.stmt):
                    yield from _statements([part])


class located:
    """Set this location on errors that have none yet."""

    def __init__(self, where: Where) -> None:
        self.where = where

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, TileError):
            error.at(self.where)
        elif isinstance(error, Exception):
            passed_on(error)
            raise _translated(error).at(self.where) from error


def _annotations(fn: Callable[..., object], builder: Builder, scope: Mapping[str, object] | None) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, parameter in inspect.signature(fn).parameters.items():
        expected = "an annotation that declares it"
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            fix = "write one parameter for each tensor and scalar"
            raise BadParameter(name=name, kernel=builder.name, found="variadic", expected=expected, fix=fix)
        if parameter.annotation is parameter.empty:
            method = name in ("self", "cls") and not found
            fix = (
                "a method is not a kernel: define the kernel inside of the method, and return it"
                if method
                else annotate(name)
            )
            raise BadParameter(name=name, kernel=builder.name, found="not annotated", expected=expected, fix=fix)
        if parameter.default is not parameter.empty:
            default = f"has the default {shown(parameter.default)}, which calls of a compiled kernel do not have"
            around = f"def make({name}={shown(parameter.default)})"
            fix = f"remove it; a constant is a parameter of the function around the kernel: {around}"
            raise BadParameter(name=name, kernel=builder.name, found=default, expected="a declaration alone", fix=fix)
        found[name] = evaluate(parameter.annotation, fn, scope)
    return found


def evaluate(annotation: object, fn: Callable[..., object], scope: Mapping[str, object] | None) -> object:
    """Return the declaration of an annotation, evaluated in its scope if it is text."""
    if not isinstance(annotation, str):
        return declaration_of(annotation)
    if annotation in DTYPES:
        return DTYPES[annotation]
    cells = zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)
    closure = {name: cell.cell_contents for name, cell in cells if name != SUPPORT}
    names = ChainMap(closure, dict(scope or {}), fn.__globals__)
    try:
        return declaration_of(eval(annotation, dict(names)))  # the text is the user's own source
    except TileError:
        raise
    except Exception as error:
        passed_on(error)
        text = " in an annotation that `from __future__ import annotations` keeps as text: it sees the module, and what"
        seen = f"{text} the function around the kernel binds or uses" if isinstance(error, NameError) else ""
        raise PythonError(kind=type(error).__name__, detail=f"{error}{seen}") from error


def _check_variables(builder: Builder, params: list[Var], body: Stmt) -> None:
    symbols = list(builder.symbols.values())
    for var in tirx.analysis.undefined_vars(body, [*params, *symbols]):
        if any(var.same_as(s) for s in symbols):
            continue
        name = str(var.name)
        if is_symbol(var):
            raise UnboundSymbol(name=name, kernel=builder.name)
        raise EscapedVariable(name=name, kernel=builder.name)


def _single_definitions(func: Expr) -> Expr:
    """Rename ``let`` variables of values that a kernel uses several times without a name."""
    if tirx.analysis.verify_well_formed(func, False):
        return func
    module = tvm.IRModule({"main": func})
    return tirx.transform.ConvertSSA()(module)["main"]


def _check_scopes(builder: Builder, func: Expr) -> None:
    """Refuse a variable used outside its block, for instance from a Python list."""
    if tirx.analysis.verify_well_formed(func, False):
        return
    try:
        tirx.analysis.verify_well_formed(func, True)
    except Exception as error:
        passed_on(error)
        found = re.search(r"undefined variable (\S+) at", str(error))
        if found is None:
            raise InternalError(stage="the frontend", detail=reason_of(error)) from error
        raise EscapedVariable(name=found.group(1), kernel=builder.name) from None


def _location(error: BaseException) -> Where | None:
    """Return the innermost line of rewritten code in an error's traceback."""
    found = None
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if SUPPORT in code.co_freevars:
            found = Where(code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    return found


def _translated(error: Exception) -> TileError:
    location = _location(error)
    # In an infinite recursion of the user's, the last call may be one of ours.
    if _module_of(error).startswith(("tile_core", "tile_runtime", "tvm")) and not isinstance(error, RecursionError):
        return InternalError(stage="the frontend", detail=reason_of(error), where=location)
    return python_error(error, location)


#: Modules whose functions call the user's functions, or the language's on the user's behalf.
_WRAPPERS = ("tile_core.trace", "tile_core.errors.locations", "tile_core.errors.naming", "tile_core.values.elementwise")


def _module_of(error: BaseException) -> str:
    """Return the module of the function that raised, or the user's module for support code."""
    trace = error.__traceback__
    module = ""
    while trace is not None:
        name = str(trace.tb_frame.f_globals.get("__name__", ""))
        if SUPPORT in trace.tb_frame.f_code.co_freevars:
            module = ""
        elif name and (trace.tb_next is not None or not name.startswith(_WRAPPERS)):
            # Without a name: C++ frames that TVM puts into its tracebacks.
            module = name
        trace = trace.tb_next
    return module


def caller_scope(depth: int) -> dict[str, object]:
    """Return the local names of the function ``depth`` calls up, empty at module level."""
    frame = sys._getframe(depth + 1)
    return {} if frame.f_locals is frame.f_globals else dict(frame.f_locals)
