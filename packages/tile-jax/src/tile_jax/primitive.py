"""``tile_call``: JAX's primitive for a call of an operator, with its rules."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from tile_jax import handlers
from tile_jax.errors import Undecided
from tile_jax.launching import TARGETS, no_target
from tile_runtime.errors.operators import NoGradient

if TYPE_CHECKING:
    from tile_jax.checking import Abstract, Number
    from tile_jax.launching import JaxKernel

tile_call = Primitive("tile_call")
tile_call.multiple_results = True


def abstract(array: Any) -> Abstract:
    """Return shape and element type of an array or its abstract value."""
    return tuple(array.shape), str(array.dtype.name if hasattr(array.dtype, "name") else array.dtype)


def _results(*avals: Any, kernel: JaxKernel, numbers: tuple[Number, ...]) -> list[jax.core.ShapedArray]:
    checked = kernel.check([abstract(a) for a in avals], numbers)
    return [jax.core.ShapedArray(shape, jax.numpy.dtype(name)) for shape, name in checked.results]


@functools.cache
def _compiled(kernel: JaxKernel, numbers: tuple[Number, ...], key: tuple[str, ...]) -> Callable[..., Any]:
    return jax.jit(functools.partial(tile_call.bind, kernel=kernel, numbers=numbers))


def _called(*arrays: Any, kernel: JaxKernel, numbers: tuple[Number, ...]) -> Any:
    with jax.disable_jit(False):  # where it is disabled, this rule would call itself
        return _compiled(kernel, numbers, tuple(map(repr, numbers)))(*arrays)  # 0.0 == -0.0


def _lowering(platform: str) -> Callable[..., Any]:
    """Return the rule that makes a call of XLA's foreign function interface."""

    def lower(ctx: Any, *operands: Any, kernel: JaxKernel, numbers: tuple[Number, ...]) -> Any:
        target, symbols = kernel.name, list[int]()
        if is_present(platform):  # a function may be exported for another machine
            compiled = kernel.compiled(platform)
            checked = kernel.check([abstract(a) for a in ctx.avals_in], numbers, compiled)
            target = handlers.register(kernel, platform, checked.wide)
            if compiled.machine_code():
                symbols = [_constant(kernel, name, checked.symbols[name]) for name in compiled.hidden]
        rule = jax.ffi.ffi_lowering(target, operand_output_aliases=kernel.aliases)
        return rule(ctx, *operands, **handlers.attributes(kernel, numbers, symbols))

    return lower


def _constant(kernel: JaxKernel, name: str, value: Any) -> int:
    """Return the value of a symbol that compiled code holds as a constant.

    Raises
    ------
    Undecided
        It is symbolic.
    """
    if jax.export.is_symbolic_dim(value):
        reason = f"symbol {name} of the program is not an extent by itself"
        raise Undecided(operator=kernel.name, found=value, reason=reason)
    return int(value)


@functools.cache
def is_present(platform: str) -> bool:
    """Return whether this process has devices of a platform of JAX."""
    try:
        return bool(jax.devices(platform))
    except RuntimeError:
        return False


def _refuse_platform(ctx: Any, *operands: Any, kernel: JaxKernel, numbers: tuple[Number, ...]) -> Any:
    raise no_target(kernel.name, ", ".join(ctx.module_context.platforms))


def _refuse_gradient(primals: Any, tangents: Any, *, kernel: JaxKernel, numbers: tuple[Number, ...]) -> Any:
    raise NoGradient(operator=kernel.name, instead="pass jax.lax.stop_gradient(x)")


def _batched(
    arrays: Sequence[Any], axes: Sequence[int | None], *, kernel: JaxKernel, numbers: tuple[Number, ...]
) -> tuple[list[Any], list[int]]:
    """Fold a batch into the rows of one call if possible, else loop."""
    bind = functools.partial(tile_call.bind, kernel=kernel, numbers=numbers)
    front = [a if axis is None else jax.numpy.moveaxis(a, axis, 0) for a, axis in zip(arrays, axes, strict=True)]
    batched = [n for n, axis in enumerate(axes) if axis is not None]
    size = front[batched[0]].shape[0]
    if kernel.leading.issuperset(batched):
        results = _folded(bind, kernel.leading, size, front, batched)
    else:

        def example(chosen: list[Any]) -> Any:
            values = dict(zip(batched, chosen, strict=True))
            return bind(*(values.get(n, a) for n, a in enumerate(front)))

        results = jax.lax.map(example, [front[n] for n in batched])
    return results, [0] * len(results)


def _folded(
    bind: Callable[..., Any], leading: frozenset[int], size: int, front: Sequence[Any], batched: Sequence[int]
) -> list[Any]:
    """Call once, with the batch folded into the first axis of its arrays."""
    rows = front[batched[0]].shape[1]
    given = list(front)
    for n in leading:
        whole = front[n] if n in batched else jax.numpy.broadcast_to(front[n], (size, *front[n].shape))
        given[n] = whole.reshape(size * rows, *whole.shape[2:])
    return [r.reshape(size, rows, *r.shape[1:]) for r in bind(*given)]


tile_call.def_abstract_eval(_results)
tile_call.def_impl(_called)
ad.primitive_jvps[tile_call] = _refuse_gradient
batching.primitive_batchers[tile_call] = _batched
mlir.register_lowering(tile_call, _refuse_platform)
for _platform in TARGETS:
    mlir.register_lowering(tile_call, _lowering(_platform), platform=_platform)
