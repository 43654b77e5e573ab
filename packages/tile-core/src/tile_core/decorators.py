"""``tile.jit``: from a Python function to kernels that are compiled when they are first needed."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from tile_core.errors.language import BadArgument, BadReturn, PythonError

if TYPE_CHECKING:
    from tile_core.ir.program import Program
    from tile_core.runtime.kernel import Kernel
    from tile_core.target import Target


@overload
def jit(function: Callable[..., Any]) -> JitFunction: ...
@overload
def jit(
    *, out_idx: int | Sequence[int] | None = None, target: Any = "auto", options: Any = None, **hints: Any
) -> Callable[[Callable[..., Any]], JitFunction]: ...
def jit(
    function: Callable[..., Any] | None = None,
    *,
    out_idx: int | Sequence[int] | None = None,
    target: Any = "auto",
    options: Any = None,
    **hints: Any,
) -> Any:
    """Compile kernels when they are first needed.

    Parameters
    ----------
    function
        A factory, which returns a ``T.prim_func``: calling it gives a ``Kernel``. Or an eager kernel, which declares
        its tensors in its body: calling it with arrays runs it.
    out_idx
        Positions of the kernel's parameters that a call allocates and returns. Factories only.
    target
        A target or its text; ``"auto"`` finds the best device of this machine.
    options
        The backend's options.
    **hints
        ``pass_configs`` and the like of other dialects. They are checked; ``TL_ENABLE_FAST_MATH`` sets the option
        ``fast_math`` of targets that have it, the others have no effect on results.

    Raises
    ------
    BadArgument
        For any other keyword, and for hints that have another form here.
    """
    from tile_core.trace.tracer import caller_scope

    scope = caller_scope(1)
    fast_math = False
    if hints:
        from tile_core.compat.dialects import wants_fast_math

        fast_math = wants_fast_math(hints)
    if function is not None:
        return JitFunction(function, scope, out_idx, target, options, fast_math=fast_math)
    return lambda f: JitFunction(f, scope, out_idx, target, options, fast_math=fast_math)


class JitFunction:
    """A decorated factory or eager kernel.

    Attributes
    ----------
    function
        The user's function.
    eager
        Whether it is an eager kernel.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        scope: Mapping[str, Any],
        out_idx: Any,
        target: Any,
        options: Any,
        *,
        fast_math: bool = False,
    ) -> None:
        from tile_core.errors.language import NoSource
        from tile_core.runtime.memo import Memo
        from tile_core.trace.source_text import remember

        if not inspect.isfunction(function):
            name, reason = getattr(function, "__name__", repr(function)), "not a function"
            raise NoSource(name=name, reason=f"it is of type {type(function).__name__}, {reason}")
        # The text that was just imported; the file may be another one when the first kernel is traced.
        remember(function)
        functools.update_wrapper(self, function)
        self.function = function
        self._scope = scope
        self._out_idx = out_idx
        self._target = target
        self._options = options
        self._fast_math = fast_math
        self._signature = inspect.signature(function)
        self._memo: Memo[Any] = Memo()

    @property
    def out_idx(self) -> int | Sequence[int] | None:
        """Positions of the parameters that a call allocates and returns, as they were given to ``tile.jit``."""
        given: int | Sequence[int] | None = self._out_idx
        return given

    def instead_of_program(self) -> str:
        """Return what to write where a traced program is wanted and this was given."""
        from tile_core.runtime.settings import call_text

        call, program = call_text(self.function), call_text(self.function, ".program")
        return f"a factory compiles itself: kernel = {call}; tile.compile takes {program}"

    def options_for(self, target: Target) -> Any:
        """Return the options that kernels for a target are compiled with: those given, faster if hints allow it."""
        from tile_core.plugins.manager import installed

        given = self._options
        if not self._fast_math or not (given is None or isinstance(given, Mapping)):
            return given
        known = installed().manifest(target.backend).options
        has = known is not None and any(f.name == "fast_math" for f in dataclasses.fields(known))
        return {"fast_math": True, **(given or {})} if has else given

    @functools.cached_property
    def eager(self) -> bool:
        """Whether the function is an eager kernel."""
        from tile_core.trace.eager import is_eager

        found = is_eager(self.function)
        if found and self._out_idx is not None:
            instead = "leave it out: an eager kernel returns what T.empty made"
            expected = "None for an eager kernel"
            raise BadArgument(
                function="jit", name="out_idx", found=repr(self._out_idx), expected=expected, instead=instead
            )
        return found

    @property
    def target(self) -> Any:
        """The target, or its text, that kernels are compiled for."""
        return self._target

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Return the kernel of a factory's arguments, or run an eager kernel."""
        kernel = self.compile(*args, **keywords)
        if not self.eager:
            return kernel
        given = self._arguments(args, keywords)
        names = {p.name for p in kernel.program.params}
        return kernel(*[v for n, v in given.items() if n in names])

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Return the function bound to an object, where a class defines it."""
        return self if instance is None else types.MethodType(self, instance)

    def compile(self, *args: Any, **keywords: Any) -> Kernel:
        """Return the kernel for these arguments without running it.

        Raises
        ------
        TileError
            Whatever tracing and compiling refuse.
        """
        from tile_core.plugins.manager import installed
        from tile_core.runtime.memo import make_key

        given = self._arguments(args, keywords)
        shown = {n: _described(v, self.eager) for n, v in given.items()}
        target = installed().resolve_target(self._target)
        options = self.options_for(target)
        decided = (self._out_idx, options)
        key = make_key(self.function, shown, target=target.text, options=decided)
        return self._memo.get(key, lambda: self._build(given, options))

    def program(self, *args: Any, **keywords: Any) -> Program:
        """Return the traced program for these arguments, without compiling it."""
        return self._trace(self._arguments(args, keywords))

    def _build(self, given: Mapping[str, Any], options: Any) -> Kernel:
        from tile_core.compiler import compile as compile_program

        program = self._trace(given)
        outputs = program.outputs if self.eager else self._out_idx
        return compile_program(program, target=self._target, out_idx=outputs, options=options)

    def _trace(self, given: Mapping[str, Any]) -> Program:
        if self.eager:
            from tile_core.trace.eager import trace_eager

            return trace_eager(self.function, given, self._scope)
        from tile_core.ir.program import Program

        bound = self._signature.bind_partial()
        bound.arguments.update(given)
        result = self.function(*bound.args, **bound.kwargs)
        if not isinstance(result, Program):
            name, found = self.function.__name__, f"an object of type {type(result).__name__}"
            raise BadReturn(
                kernel=f"the factory {name}", found=found, expected="a function decorated with @T.prim_func"
            )
        return result

    def _arguments(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> dict[str, Any]:
        try:
            bound = self._signature.bind(*args, **keywords)
        except TypeError as error:
            raise PythonError(kind="TypeError", detail=f"{self.function.__name__}(): {error}") from error
        bound.apply_defaults()
        return dict(bound.arguments)


def _described(argument: Any, eager: bool) -> Any:
    """Return the specialisation of a kernel: a symbol's name, or the shape and type of an eager kernel's arrays."""
    from tile_core.dtypes import dtype
    from tile_core.trace.eager import is_array
    from tile_core.values.value import Value

    if isinstance(argument, Value):
        return ("symbol", str(argument.expr), str(argument.dtype))
    if isinstance(argument, (tuple, list)):
        return type(argument)(_described(a, eager) for a in argument)
    if not eager or not is_array(argument):
        return argument
    return ("array", tuple(int(d) for d in argument.shape), str(dtype(getattr(argument.dtype, "name", argument.dtype))))
