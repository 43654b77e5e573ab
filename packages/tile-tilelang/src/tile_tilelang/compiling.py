"""``tilelang.jit`` and ``tilelang.compile`` over tile's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

import tile_core
from tile_core import decorators
from tile_core.compat.dialects import is_request, wants_fast_math
from tile_core.ir.program import Program
from tile_core.trace.tracer import caller_scope
from tile_core.values.types import TensorType
from tile_tilelang.errors import BadCall
from tile_tilelang.host import runtime, target_of
from tile_tilelang.kernel import JITKernel, detached, made
from tile_tilelang.supply import of_script

#: Keyword -> why it changes nothing. ``pass_configs``, ``compile_flags`` and the like are judged by tile itself.
IGNORED = {
    "target_host": "launches are made by the runtime in this process, no program is built for the host",
    "func": "the decorated function",
    "version": "of the decorator; there is one",
}


def jit(
    func: Callable[..., object] | None = None,
    *,
    out_idx: int | Sequence[int] | None = None,
    target: Any = "auto",
    options: Any = None,
    **hints: Any,
) -> Any:
    """Compile kernels on first use: over a factory of programs, or an eager kernel.

    Parameters
    ----------
    func
        The function.
    out_idx
        Positions of the parameters that a call allocates and returns.
    target
        As of `tile_tilelang.host.target_of`.
    options
        Options of tile's target.
    **hints
        ``pass_configs``, ``execution_backend``, ``verbose``, ``target_host``: checked, of no effect on results, see
        ``tile_core.jit``.

    Returns
    -------
    JITImpl
        Calling it gives a ``JITKernel``, or runs the eager kernel.
    """
    scope = caller_scope(1)
    fast = _fast_math({k: v for k, v in hints.items() if k not in IGNORED})

    def decorate(function: Callable[..., object]) -> JITImpl:
        return JITImpl(function, scope, out_idx, target_of(target), options, fast_math=fast, runtime=runtime())

    return decorate if func is None else decorate(func)


class JITImpl(decorators.JitFunction):
    """A decorated factory or eager kernel whose kernels are ``JITKernel``.

    An eager kernel may be compiled before there are arrays: ``k.compile(M=1024, N=1024)``.
    """

    def __call__(self, *args: object, **keywords: object) -> Any:
        """Return the kernel of a factory's arguments, or run an eager kernel."""
        found = super().__call__(*args, **keywords)
        return found if self.eager else JITKernel(found)

    def compile(self, *args: object, **keywords: object) -> Any:
        """Return the kernel for these arguments without running it."""
        return JITKernel(super().compile(*args, **keywords))

    def _sized(self, args: tuple[object, ...], keywords: Mapping[str, object]) -> Any:
        return super()._sized(tuple(map(_declared, args)), {n: _declared(v) for n, v in keywords.items()})

    def par_compile(self, configs: Iterable[Any], num_workers: int | None = None, **hints: Any) -> list[JITKernel]:
        """Return the kernels of several arguments, each a mapping or a sequence, in order."""
        return [self.compile(**c) if isinstance(c, Mapping) else self.compile(*c) for c in configs]

    def launch(self, kernel: Any, given: Mapping[str, object]) -> Any:
        """Run the kernel of an eager function."""
        if made:
            JITKernel(kernel)
        found = super().launch(kernel, {name: detached(value) for name, value in given.items()})
        return of_script(found, given.values())

    def get_kernel_source(self, *args: object, **keywords: object) -> str:
        """Return the text of the kernel for these arguments."""
        return self.compile(*args, **keywords).kernel_source

    def show_source(self, *args: object, **keywords: object) -> None:
        """Print the text of the kernel for these arguments."""
        self.compile(*args, **keywords).show_source()

    def get_tir(self, *args: object, **keywords: object) -> Program:
        """Return the traced program for these arguments."""
        return self.program(*args, **keywords)


def compile(
    func: Program | Any = None,
    out_idx: int | Sequence[int] | None = None,
    execution_backend: str | None = None,
    target: Any = "auto",
    target_host: Any = None,
    verbose: bool | None = None,
    pass_configs: Mapping[Any, Any] | None = None,
    compile_flags: Any = None,
    *,
    options: Any = None,
) -> JITKernel:
    """Compile a program, as ``tile_core.compile``.

    Parameters
    ----------
    func
        What ``T.prim_func`` made.
    out_idx
        Positions of the parameters that a call allocates and returns.
    target
        As of `tile_tilelang.host.target_of`.
    pass_configs, compile_flags
        Judged as by ``tile_core.jit``.
    execution_backend, target_host, verbose
        Of no effect: tile chooses how it launches.
    options
        Options of tile's target.

    Raises
    ------
    BadCall
        Without a program.
    """
    if func is None:
        expected, instead = "a function decorated with @T.prim_func", "write tilelang.compile(program, ...)"
        raise BadCall(function="compile", name="func", found="None", expected=expected, instead=instead)
    chosen: Any = target_of(target)
    if _fast_math({"pass_configs": pass_configs, "compile_flags": compile_flags}):
        chosen_options = _with_fast_math(chosen, options)
    else:
        chosen_options = options
    return JITKernel(tile_core.compile(func, target=chosen, out_idx=out_idx, options=chosen_options, runtime=runtime()))


def lower(func: Any, target: Any = "auto", **hints: Any) -> Any:
    """Compile a program; return an object with ``kernel_source``, ``params`` and ``target``."""
    kernel = compile(func, target=target)
    return SimpleNamespace(kernel_source=kernel.kernel_source, params=kernel.params, target=kernel.target)


def par_compile(programs: Iterable[Program], num_workers: int | None = None, **keywords: Any) -> list[JITKernel]:
    """Compile several programs in sequence, with the keywords of `compile`.

    ``num_workers`` is a hint.
    """
    return [compile(program, **keywords) for program in programs]


class _DeclaredArray:
    """An array of a later call, by its shape and element type."""

    __dlpack__ = None  # arrays have it; this one is never launched

    def __init__(self, declared: TensorType) -> None:
        self.shape, self.dtype = declared.shape, declared.dtype


def _declared(value: object) -> object:
    """Return an argument; a declaration as the array that it describes."""
    return _DeclaredArray(value) if isinstance(value, TensorType) else value


def _fast_math(hints: Mapping[str, Any]) -> bool:
    """Return whether hints allow approximate functions; other flags of a compiler have no meaning here."""
    flags = " ".join(np.atleast_1d(hints.get("compile_flags") or "").tolist())
    configs = hints.get("pass_configs")
    kept = {k: v for k, v in (configs or {}).items() if not is_request(k)} if isinstance(configs, Mapping) else configs
    others = {k: v for k, v in hints.items() if k not in ("compile_flags", "debug_root_path")}
    return wants_fast_math({**others, "pass_configs": kept}) or "use_fast_math" in flags


def _with_fast_math(target: Any, options: Any) -> Any:
    from tile_core.plugins.manager import installed

    def no_kernel() -> None:
        """Carries the options through ``tile.jit``'s rule for them."""

    rule = decorators.JitFunction(no_kernel, {}, None, target, options, fast_math=True)
    return rule.options_for(installed().resolve_target(target))
