"""``tile.tilings``: configurations of a factory's tile parameters, best estimate first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tile_core.errors import InternalError, TileError
from tile_core.errors.language import BadArgument
from tile_core.errors.launch import NoWorkingConfig
from tile_core.lowering.tilings import TileShape
from tile_core.lowering.variant import Reject
from tile_core.records import dataclass
from tile_core.runtime.settings import count_of
from tile_runtime.traces import short_traces

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.ir.program import Program
    from tile_core.plugins.manager import Plugins
    from tile_core.target import Target
    from tile_core.tiling.parameters import Parameters


class Tiling(dict[str, Any]):
    """A configuration: values of a factory's tile parameters, by name.

    Attributes
    ----------
    microseconds
        Estimated time; ``None`` if the target has no estimate for this program.
    reason
        The limit of the estimate, or the reason against an estimate.
    """

    def __init__(self, config: Mapping[str, Any], microseconds: float | None, reason: str) -> None:
        super().__init__(config)
        self.microseconds = microseconds
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return Tiling, (dict(self), self.microseconds, self.reason)

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.items())
        time = "" if self.microseconds is None else f"about {self.microseconds:.3g} us, "
        return f"{shown}: {time}{self.reason}"


@short_traces
def tilings(
    factory: Any,
    shapes: Mapping[str, Any] | None = None,
    *,
    target: Target | str | None = None,
    options: object = None,
    sizes: Mapping[str, int] | None = None,
    most: int = 4,
    **arguments: Any,
) -> list[Tiling]:
    """Rank configurations of a factory's tile parameters by estimated time, without a device.

    The factory is traced: element types, transposed operands, 2:4 sparsity and batches follow from its program, and its
    a tile parameter changes the tiles, threads, stages or splits of its products, and none of its tensors.
    Each returned configuration passes all compiler passes of the target.

    Parameters
    ----------
    factory
        A function that returns a ``T.prim_func``, or an object of ``tile.jit``. Tile parameters are ints, or ints in a
        tuple, dict or dataclass; those without a default have a conventional name, such as ``block_M`` or ``threads``.
    shapes
        The arguments of the problem, by name: sizes, element types. They are never changed.
    target, options
        As of ``tile.compile``; by default those of the ``tile.jit`` object, else ``"auto"``.
    sizes
        Typical values of dynamic dimensions, by name; 4096 for others.
    most
        Length of the list at most. Each entry has another tile, and takes a compilation to source code.
    **arguments
        More of ``shapes``.

    Returns
    -------
    list[Tiling]
        Dicts of the factory's arguments, the best first. A target without an estimate for the program returns the
        factory's defaults with that reason.

    Raises
    ------
    NoProducts, NoTileParameters, UnboundParameter
        If there is nothing to rank, or parameters are not recognized.
    NoWorkingConfig
        If the target can run no configuration.
    """
    from tile_core.plugins.contexts import make_context
    from tile_core.plugins.manager import installed
    from tile_core.tiling.factory import Factory
    from tile_core.tiling.parameters import Parameters

    most = count_of("tilings", "most", most, 1)
    given = {**_mapping("shapes", shapes), **arguments}
    plugins = installed()
    target, options = _where(factory, target, options)
    ctx = make_context(target, options, plugins=plugins)
    traced = Factory.of(factory)
    parameters = Parameters(traced, given, _mapping("sizes", sizes))
    return _legal(traced.name, _ranked(parameters, ctx, plugins), most, ctx, plugins)


def _mapping(name: str, value: Mapping[str, Any] | None) -> dict[str, Any]:
    if value is None or isinstance(value, Mapping):
        return dict(value or {})
    expected, instead = "a dict of arguments by name", "write dict(M=4096, N=4096, K=4096)"
    raise BadArgument(function="tilings", name=name, found=repr(value), expected=expected, instead=instead)


def _where(factory: Any, target: Target | str | None, options: object) -> tuple[Target | str, object]:
    """Return target and options, by default those of an object of ``tile.jit``."""
    from tile_core.decorators import JitFunction
    from tile_core.plugins.manager import installed

    own = getattr(factory, "function", None)
    jit = factory if isinstance(factory, JitFunction) else own if isinstance(own, JitFunction) else None
    if target is None:
        target = "auto" if jit is None else jit.target
    if options is None and jit is not None:
        options = jit.options_for(installed().resolve_target(target))
    return target, options


@dataclass(frozen=True)
class _Candidate:
    """A configuration with an estimate, its program, and its tile without depth and stages."""

    tiling: Tiling
    program: Program
    tile: tuple[int, ...]


def _ranked(parameters: Parameters, ctx: Context, plugins: Plugins) -> list[_Candidate]:
    """Return all configurations with an estimate, the best first, else the defaults."""
    model, base = plugins.tilings(ctx.target), parameters.base
    if model is None:
        return _smaller(parameters, f": backend {ctx.target.backend!r} has no estimate of tile shapes")
    found: list[_Candidate] = []
    rejected = ""
    for one in parameters.traced(model.shapes(base.workload, parameters.fixed, ctx)):
        estimate = model.estimate(one.workload, ctx)
        if isinstance(estimate, Reject):
            rejected = rejected or estimate.reason
            continue
        first = one.workload.first
        key = first.m, first.n, one.workload.threads, one.workload.blocks
        found.append(_Candidate(Tiling(one.config, estimate.microseconds, estimate.reason), one.program, key))
    if not found:
        return _smaller(parameters, f", without an estimate: {rejected}")
    return sorted(found, key=lambda c: c.tiling.microseconds or 0.0)


def _smaller(parameters: Parameters, why: str) -> list[_Candidate]:
    """Return the defaults, then smaller tiles: the first that is legal is taken."""
    base = parameters.base
    first, threads = base.workload.first, base.workload.threads
    m, n, k = first.m, first.n, first.k
    shapes = [TileShape(m, n, k, threads, stages) for stages in range(first.stages - 1, 0, -1)]
    halves = ((m, n, k // 2), (m, n // 2, k), (m // 2, n, k), (m // 2, n // 2, k), (m // 2, n // 2, k // 2))
    shapes += [TileShape(*tile, threads, 1) for tile in halves if all(tile)]
    smaller = [one for one in parameters.traced(shapes) if one.config != base.config]
    found = [_Candidate(Tiling(base.config, None, f"the factory's defaults{why}"), base.program, ())]
    reason = f"smaller than the factory's defaults, which the target refuses{why}"
    return [*found, *(_Candidate(Tiling(one.config, None, reason), one.program, ()) for one in smaller)]


def _legal(name: str, ranked: list[_Candidate], most: int, ctx: Context, plugins: Plugins) -> list[Tiling]:
    """Return the first configurations that the target's passes accept, each tile once."""
    found: list[Tiling] = []
    seen: set[tuple[int, ...]] = set()
    refused: dict[str, str] = {}  # the first configuration for each reason
    for one in ranked:
        if len(found) == most:
            break
        if one.tile in seen:
            continue
        error = _refusal(one.program, ctx, plugins)
        if error is None:
            found.append(one.tiling)
            seen.add(one.tile)
        else:
            shown = ", ".join(f"{name}={value!r}" for name, value in one.tiling.items())
            refused.setdefault(f"[{error.code}] {error.message}", shown)
    if not found:
        reasons = "\n".join(f"  {shown}: {reason}" for reason, shown in refused.items())
        raise NoWorkingConfig(function=name, count=len(ranked), reasons=reasons)
    return found


def _refusal(program: Program, ctx: Context, plugins: Plugins) -> TileError | None:
    """Return the error with which a target refuses a program, if it does."""
    from tile_core.compiler import lower

    try:
        for stage in program.stages:
            lower(stage, ctx, plugins)
    except InternalError:
        raise
    except TileError as error:
        return error
    return None
