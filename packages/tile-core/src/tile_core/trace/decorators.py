"""``T.prim_func`` and ``T.macro``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tile_core.errors import TileError
from tile_core.errors.language import OutsideKernel
from tile_core.trace.by_name import ByName
from tile_core.trace.source import definition, rewritten
from tile_core.trace.tracer import caller_scope, trace
from tile_core.values.builder import tracing
from tile_core.values.checks import hints
from tile_runtime.traces import short_traces, shorten


def prim_func(fn: Callable[..., object] | None = None, **options: object) -> Any:
    """Trace a kernel function.

    Parameters
    ----------
    fn
        A plain function whose parameters are annotated with ``T.Tensor(...)``, element types or ``T.ptr``.
    **options
        ``private`` and similar options of other dialects; no effect.

    Returns
    -------
    Program
        The program, to be passed to ``tile.compile``.

    Raises
    ------
    KernelError
        K1xx and K2xx, each with the file and line of the statement.
    """
    hints("prim_func", options, ("private", "check_well_formed", "tirx", "s_tir"))
    scope = caller_scope(1)
    if fn is None:
        return short_traces(lambda f: trace(f, scope))
    try:
        return trace(fn, scope)
    except TileError as error:
        shorten(error)
        raise error


class Macro(ByName):
    """A function of the kernel language: called in a kernel, it emits its statements there.

    Its names are its own. Arguments are evaluated once; a scalar variable is passed by value unless the parameter is
    annotated with ``T.Ref``.
    """

    def __init__(self, fn: Callable[..., object], scope: dict[str, object]) -> None:
        functools.update_wrapper(self, fn)
        self.fn = fn
        self.scope = scope
        self._rewritten: Callable[..., object] | None = None

    def __call__(self, *args: object, **keywords: object) -> object:
        """Emit the macro's statements and return its value."""
        builder = tracing()
        if builder is None:
            raise OutsideKernel(what=f"the macro {self.fn.__name__}")
        if self._rewritten is None:
            self._rewritten = rewritten(self.fn, self.scope)
        from tile_core.trace.macro_arguments import bound_arguments

        args, keywords = bound_arguments(self.fn, args, keywords)
        builder.hints = []
        return self._rewritten(*args, **keywords)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def macro(fn: Callable[..., object] | None = None, **options: object) -> Any:
    """Make a function part of the kernel language, with its control flow and assignments.

    Parameters
    ----------
    fn
        A plain function. It may return values and tuples, and may call itself under conditions that are known while
        tracing.
    **options
        ``hygienic`` of other dialects; macros are always hygienic.
    """
    hints("macro", options, ("hygienic",))
    if fn is None:
        scope = caller_scope(1)
        return lambda f: _macro(f, scope)
    return _macro(fn, caller_scope(1))


def _macro(fn: Callable[..., object], scope: dict[str, object]) -> Macro:
    definition(fn)  # refuses a function without source here, not at the first call
    return Macro(fn, scope)
