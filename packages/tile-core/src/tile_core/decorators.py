"""``tile.jit``: from a Python function to kernels that are compiled when they are first needed."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import operator
import types
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from tile_core.errors import TileError
from tile_core.errors.language import BadArgument, BadReturn, PythonError
from tile_core.numerics.levels import FAST
from tile_core.trace.by_name import ByName
from tile_core.trace.source import definition
from tile_runtime.traces import short_traces, shorten

if TYPE_CHECKING:
    from tile_core.ir.program import Program
    from tile_core.runtime.kernel import Kernel
    from tile_core.runtime.reads import Reads
    from tile_core.target import Target


@overload
def jit(function: Callable[..., object]) -> JitFunction: ...
@overload
def jit(
    *,
    out_idx: int | Sequence[int] | None = None,
    target: str | Target = "auto",
    options: Any = None,
    runtime: str | None = None,
    **hints: Any,
) -> Callable[[Callable[..., object]], JitFunction]: ...
def jit(
    function: Callable[..., object] | None = None,
    *,
    out_idx: int | Sequence[int] | None = None,
    target: str | Target = "auto",
    options: Any = None,
    runtime: str | None = None,
    **hints: object,
) -> JitFunction | Callable[[Callable[..., object]], JitFunction]:
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
    runtime
        As of ``tile.compile``: ``"emulator"`` runs kernels of any target here.
    **hints
        ``pass_configs`` and the like of other dialects. They are checked; ``TL_ENABLE_FAST_MATH`` sets the option
        ``numerics="fast"`` of targets that have levels, the others have no effect on results.

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
        return JitFunction(function, scope, out_idx, target, options, fast_math=fast_math, runtime=runtime)
    return lambda f: JitFunction(f, scope, out_idx, target, options, fast_math=fast_math, runtime=runtime)


class JitFunction(ByName):
    """A decorated factory or eager kernel. It is pickled by its name.

    Attributes
    ----------
    function
        The user's function.
    eager
        Whether it is an eager kernel.
    traced_keys
        Of programs that searches traced: their keys in databases of results.
    """

    def __init__(
        self,
        function: Callable[..., object],
        scope: Mapping[str, object],
        out_idx: int | Sequence[int] | None,
        target: str | Target,
        options: Any,
        *,
        fast_math: bool = False,
        runtime: str | None = None,
    ) -> None:
        from tile_core.errors.language import NoSource
        from tile_core.runtime.memo import Memo
        from tile_core.runtime.reads import Reads
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
        self._runtime = runtime
        self._known_signature: tuple[tuple[object, ...], inspect.Signature] | None = None
        self._memo: Memo[Kernel] = Memo()
        self.traced_keys: Memo[str] = Memo()
        self._readable = Reads()

    def changed(self, *, target: str | Target | None = None, options: Any = None) -> JitFunction:
        """Return the same function for another target or with other options; what is ``None`` stays."""
        target, options = self._target if target is None else target, self._options if options is None else options
        kept: dict[str, Any] = {"fast_math": self._fast_math, "runtime": self._runtime}
        return JitFunction(self.function, self._scope, self._out_idx, target, options, **kept)

    @property
    def out_idx(self) -> int | Sequence[int] | None:
        """Positions of the parameters that a call allocates and returns, as given to ``tile.jit``."""
        return self._out_idx

    @property
    def _signature(self) -> inspect.Signature:
        """The function's signature, whose defaults may be replaced."""
        function: Any = self.function
        facts = (function.__code__, function.__defaults__, function.__kwdefaults__)
        known = self._known_signature
        if known is None or any(map(operator.is_not, known[0], facts)):
            self._known_signature = known = facts, inspect.signature(function)
        return known[1]

    def instead_of_program(self) -> str:
        """Return the fix for a misused object where a traced program is required."""
        from tile_core.runtime.settings import call_text

        call, program = call_text(self.function), call_text(self.function, ".program")
        return f"a factory compiles itself: kernel = {call}; tile.compile takes {program}"

    def options_for(self, target: Target) -> Any:
        """Return the compile options for a target: those given, faster if hints allow it."""
        from tile_core.plugins.manager import installed

        given = self._options
        if isinstance(given, Mapping):
            from tile_core.plugins.contexts import with_current_names

            given = with_current_names(installed().manifest(target.backend), given)
        if not self._fast_math or not (given is None or isinstance(given, dict)):
            return given
        known = installed().manifest(target.backend).options
        has = known is not None and any(f.name == "numerics" for f in dataclasses.fields(known))
        return {"numerics": FAST, **(given or {})} if has else given

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
    def runtime(self) -> str | None:
        """The runtime that loads kernels, as given to ``tile.jit``."""
        return self._runtime

    @property
    def target(self) -> Any:
        """The target, or its text, that kernels are compiled for."""
        return self._target

    def __call__(self, *args: object, **keywords: object) -> Any:
        """Return the kernel of a factory's arguments, or run an eager kernel."""
        try:
            if not self.eager:
                return self._kernel(*self._sized(args, keywords))
            given = self.arguments(args, keywords)
            return self.launch(self._kernel(given, {}), given)
        except TileError as error:
            shorten(error)
            raise error

    def launch(self, kernel: Kernel, given: Mapping[str, object]) -> Any:
        """Call a kernel of an eager function with the arguments that it takes."""
        return kernel(*self.values(kernel, (), given))

    def values(self, kernel: Kernel, args: tuple[object, ...], keywords: Mapping[str, object]) -> tuple[Any, ...]:
        """Return the arguments that a kernel takes; empty if a later call gives them."""
        assert kernel.program is not None, "a kernel that was just compiled has its program"
        return self.values_of(kernel.program, args, keywords)

    def values_of(self, program: Program, args: tuple[object, ...], keywords: Mapping[str, object]) -> tuple[Any, ...]:
        """Return the arguments that a program takes; empty if a later call gives them."""
        from tile_core.trace.eager import DEFERRED

        if not self.eager:
            return ()
        given, _ = self._sized(args, keywords)
        names = {p.name for p in program.params}
        found = tuple(v for n, v in given.items() if n in names)
        return () if any(v is DEFERRED for v in found) else found

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Return the function bound to an object, where a class defines it."""
        return self if instance is None else types.MethodType(self, instance)

    @short_traces
    def compile(self, *args: object, **keywords: object) -> Kernel:
        """Return the kernel for these arguments without running it.

        Parameters
        ----------
        *args, **keywords
            Those of the function. An eager kernel may be compiled before there are arrays: these are left out, and
            the names of its ``T.const`` are given, as ints or as symbols of ``T.dynamic``: ``k.compile(M=64, N=32)``.

        Raises
        ------
        TileError
            Whatever tracing and compiling refuse.
        """
        return self._kernel(*self._sized(args, keywords))

    @short_traces
    def program(self, *args: object, **keywords: object) -> Program:
        """Return the traced program for these arguments, as `compile` takes them, without compiling it."""
        return self._trace(*self._sized(args, keywords))

    def _kernel(self, given: Mapping[str, object], sizes: Mapping[str, Any]) -> Kernel:
        from tile_core.plugins.manager import installed
        from tile_core.runtime.memo import make_key

        shown = {n: described(v, self.eager) for n, v in given.items()}
        if sizes:
            shown["sizes"] = tuple((n, described(v, self.eager)) for n, v in sorted(sizes.items()))
        target = installed().resolve_target(self._target)
        options = self.options_for(target)
        key = make_key(self.function, shown, target=target.text, options=(self._out_idx, options, self._runtime))
        traced: list[Program] = []

        def identity() -> Hashable:
            from tile_core.runtime.cache_key import identity_of

            traced[:] = [self._trace(given, sizes)]
            return identity_of(traced[0], key.parts[-2:])

        return self._memo.get(key, lambda: self._build(traced[0], options), lambda: self.reads(given), identity)

    def reads(self, given: Mapping[str, object]) -> Reads:
        """Return the locations that a trace with these arguments can read, and their objects."""
        from tile_core.runtime.readable import readable

        if not self._readable.complete:  # the search takes long, and every call traces anyway
            return self._readable
        leaves = [leaf for v in given.values() for leaf in _read(v, self.eager)]
        self._readable = readable(self.function, self._scope, leaves)
        return self._readable

    def _sized(
        self, args: tuple[object, ...], keywords: Mapping[str, object]
    ) -> tuple[dict[str, object], dict[str, Any]]:
        """Return the arguments, and the sizes that stand for arrays of later calls."""
        if not self.eager:
            return self.arguments(args, keywords), {}
        from tile_core.trace.eager import DEFERRED

        params = self._signature.parameters
        sizes = {n: _size(n, v) for n, v in keywords.items() if n not in params}
        if not sizes and args:
            return self.arguments(args, keywords), {}
        own = {n: v for n, v in keywords.items() if n in params}
        missing = [p.name for p in list(params.values())[len(args) :] if p.default is p.empty and p.name not in own]
        return self.arguments(args, {**own, **dict.fromkeys(missing, DEFERRED)}), sizes

    def _build(self, program: Program, options: Any) -> Kernel:
        from tile_core.compiler import compile as compile_program

        outputs = program.outputs if self.eager else self._out_idx
        return compile_program(program, target=self._target, out_idx=outputs, options=options, runtime=self._runtime)

    def _trace(self, given: Mapping[str, object], sizes: Mapping[str, Any]) -> Program:
        if self.eager:
            from tile_core.trace.eager import trace_eager

            return trace_eager(self.function, given, self._scope, sizes)
        from tile_core.ir.program import Program

        bound = self._signature.bind_partial()
        bound.arguments.update(given)
        result = self.function(*bound.args, **bound.kwargs)
        if not isinstance(result, Program):
            name, found = self.function.__name__, f"an object of type {type(result).__name__}"
            fix = "end the factory with `return kernel`, the function that it decorates"
            facts = {"kernel": f"the factory {name}", "expected": "a function decorated with @T.prim_func", "fix": fix}
            raise BadReturn(found=found, where=definition(self.function).where, **facts)
        return result

    def arguments(self, args: tuple[object, ...], keywords: Mapping[str, object]) -> dict[str, object]:
        """Return the arguments of a call by name, with defaults."""
        try:
            bound = self._signature.bind(*args, **keywords)
        except TypeError as error:
            name, fix = self.function.__name__, {}
            if not self.eager and any(hasattr(a, "__dlpack__") for a in (*args, *keywords.values())):
                usage = f"{name}({', '.join(self._signature.parameters)})(...)"
                fix = {"fix": f"{name} makes a kernel: give it its own arguments, and arrays to the kernel: {usage}"}
            where = definition(self.function).where
            raise PythonError(kind="TypeError", detail=f"{name}(): {error}", where=where, **fix) from error
        bound.apply_defaults()
        return dict(bound.arguments)


def _size(name: str, value: Any) -> Any:
    """Return a size as a Python int or a symbol.

    Raises
    ------
    BadArgument
        If it is neither.
    """
    from tile_core.values.checks import python_int, shown
    from tile_core.values.value import Value

    number = python_int(value)
    if number is not None and 0 <= number < 2**48:
        return number
    if isinstance(value, Value) and value.dtype in ("int32", "int64"):
        return value
    expected, instead = "an int of at least 0, or a symbol of T.dynamic", "give the extent of the arrays of later calls"
    raise BadArgument(function="jit", name=name, found=shown(value), expected=expected, instead=instead)


def described(argument: Any, eager: bool) -> object:
    """Return the specialization key of an argument: a symbol's name, or shape and type."""
    from tile_core.dtypes import dtype
    from tile_core.trace.eager import DEFERRED, is_array
    from tile_core.values.value import Value

    if argument is DEFERRED:
        return ("later",)
    if isinstance(argument, Value):
        return ("symbol", str(argument.expr), str(argument.dtype))
    if isinstance(argument, (tuple, list)):
        return type(argument)(described(a, False) for a in argument)
    if not eager or not is_array(argument):
        return argument
    return ("array", tuple(int(d) for d in argument.shape), str(dtype(getattr(argument.dtype, "name", argument.dtype))))


def _read(argument: Any, eager: bool) -> Iterator[object]:
    """Yield the objects of an argument whose attributes a key may lack.

    Arrays of an eager kernel are not read.
    """
    from tile_core.trace.eager import DEFERRED, is_array

    if isinstance(argument, (tuple, list)):
        for element in argument:
            yield from _read(element, False)
    elif argument is not DEFERRED and not (eager and is_array(argument)):
        yield argument
