"""``T.Kernel`` and the shape of the launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tile_core.errors.language import BadLaunch, BadLoop, SecondLaunch
from tile_core.ir import nodes
from tile_core.values.builder import Builder, Scope, current
from tile_core.values.checks import python_int, shown
from tile_core.values.value import Index, Value, as_value, constant_of, to_index

#: Threads of a block if the kernel does not say.
DEFAULT_THREADS = 128
#: Threads of a block along an axis that no target has.
MOST_THREADS = 65536


class Kernel:
    """The launch: ``with T.Kernel(gx, gy, threads=128) as (bx, by):``.

    Parameters
    ----------
    *grid
        One to three extents, Python ints or runtime integers; the first is the fastest axis. An extent of 0 launches
        nothing.
    threads
        Threads of a block: an int, or up to three of them. Default: 128, or 1 with ``is_cpu``.
    is_cpu
        Whether the kernel was written for one thread per block.

    Raises
    ------
    OutsideKernel, BadLaunch, SecondLaunch
        Outside a kernel function; for other grids and threads; at the second launch of a function.
    """

    def __init__(self, *grid: Index, threads: Any = None, is_cpu: bool = False) -> None:
        self.builder: Builder = current("T.Kernel")
        if self.builder.launched:
            raise SecondLaunch(kernel=self.builder.name)
        self.names_hint: Sequence[str] = ()
        self.grid = [_extent(d, e) for d, e in enumerate(_flat(grid))]
        if not 1 <= len(self.grid) <= 3:
            found, instead = f"{len(self.grid)} axes", "fold axes into one and take it apart with // and %"
            raise BadLaunch(what="the grid", found=found, expected="1 to 3 axes", instead=instead)
        self.threads = _threads(threads, is_cpu)
        self.scope: Scope | None = None

    def __enter__(self) -> Any:
        builder = self.builder
        if builder.launched or builder.scope.kind != "function":
            raise SecondLaunch(kernel=builder.name)
        builder.launched, builder.threads = True, self.threads
        if builder.eager is not None:
            builder.eager.launching()
        self.span = builder.span()
        if len(self.names_hint) not in (0, 1, len(self.grid)):
            found, axes = f"{len(self.names_hint)} names", len(self.grid)
            instead = "name every axis of the grid, and give T.Kernel an extent for every name"
            expected = f"{axes}, one for each axis" if axes > 1 else "one: the grid has one axis"
            raise BadLaunch(what=f"as ({', '.join(self.names_hint)})", found=found, expected=expected, instead=instead)
        names = self.names_hint if len(self.names_hint) == len(self.grid) else ("bx", "by", "bz")[: len(self.grid)]
        extents = [to_index(e) for e in self.grid]
        self.extents = extents
        self.vars = [nodes.fresh(builder.unique(n), nodes.dtype_of(e)) for n, e in zip(names, extents, strict=True)]
        builder.ranges |= {
            v: (0, max(0, e - 1)) for v, e in zip(self.vars, self.grid, strict=True) if isinstance(e, int)
        }
        self.scope = builder.push("kernel", runtime=False)
        values = tuple(as_value(v) for v in self.vars)
        return values[0] if len(values) == 1 else values

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is not None or self.scope is None:
            return
        body = self.builder.pop(self.scope)
        last = len(self.vars) - 1
        for axis, (var, extent) in enumerate(zip(self.vars, self.extents, strict=True)):
            notes: dict[str, Any] = {nodes.AXIS: axis}
            if axis == last:
                notes[nodes.THREADS] = list(self.threads)
            body = nodes.for_loop(var, extent, body, "grid", annotations=notes, span=self.span)
        # The function scope takes no other statement, see Builder.emit.
        self.builder.scope.statements.append(body)


class Persistent:
    """Sweep a domain of tiles with fewer blocks: ``for bx, by in T.Persistent((gx, gy), wave, block)``.

    Parameters
    ----------
    domain
        Extents; the last one is the fastest.
    wave_size
        Number of blocks that sweep together.
    index
        Index of this block, from 0 to ``wave_size - 1``.
    group_size
        Accepted for other dialects' kernels: the order of the tiles is not part of the meaning.
    """

    kind = "Persistent"

    def __init__(self, domain: Sequence[Index], wave_size: Index, index: Index, group_size: int = 8) -> None:
        from tile_core.trace.loops import _bound

        if not isinstance(domain, (tuple, list)) or not domain:
            instead = "write T.Persistent([T.ceildiv(M, bm), T.ceildiv(N, bn)], blocks, block)"
            raise BadLoop(
                loop=self.kind, what="domain", found=repr(domain), expected="a list of extents", instead=instead
            )
        self.domain = [_bound(self.kind, f"extent {d}", e) for d, e in enumerate(domain)]
        for d, extent in enumerate(self.domain):
            if isinstance(extent, int) and extent < 0:
                what, expected = f"extent {d}", "an int >= 0"
                raise BadLoop(loop=self.kind, what=what, found=extent, expected=expected, instead="nearest: 0")
        self.wave = _bound(self.kind, "wave_size", wave_size)
        self.index = _bound(self.kind, "index", index)
        if isinstance(self.wave, int) and self.wave <= 0:
            raise BadLoop(
                loop=self.kind, what="wave_size", found=self.wave, expected="an int > 0", instead="nearest: 1"
            )

    def open_loop(self, builder: Builder, names: Sequence[str]) -> _OpenPersistent:
        """Open the loop over waves and the guard of the last one."""
        return _OpenPersistent(self, builder, names)


class _OpenPersistent:
    single = True

    def __init__(self, spec: Persistent, builder: Builder, names: Sequence[str]) -> None:
        from tile_core.compat.tvm import tirx
        from tile_core.language.integers import ceildiv
        from tile_core.trace.loops import LoopNest, check_names

        check_names(spec.kind, spec.domain, names)
        total: Any = 1
        for extent in spec.domain:
            total = extent * total
        self.builder = builder
        self.loop = LoopNest("serial", [ceildiv(total, spec.wave)], {}).open_loop(builder, ["wave"])
        tile = self.loop.targets * spec.wave + spec.index
        number = as_value(builder.bind("tile", tile.expr))
        self.condition = tirx.LT(number.expr, to_index(total))
        self.scope = builder.push("branch")
        rest: Any = number
        coordinates: list[Any] = []
        for extent in reversed(spec.domain[1:]):
            coordinates.append(rest % extent)
            rest = rest // extent
        values = tuple(reversed([*coordinates, rest]))
        self.targets: Any = values[0] if len(values) == 1 else values

    def close(self) -> None:
        from tile_core.compat.tvm import tirx

        body = self.builder.pop(self.scope)
        self.builder.emit(tirx.IfThenElse(self.condition, body, None, self.loop.span))
        self.loop.close()


def _flat(grid: Sequence[Any]) -> Sequence[Any]:
    return grid[0] if len(grid) == 1 and isinstance(grid[0], (tuple, list)) else grid


def _extent(axis: int, x: Any) -> Index:
    constant = constant_of(x)
    if constant is not None and not isinstance(x, bool):
        if constant < 0:
            raise BadLaunch(what=f"grid axis {axis}", found=constant, expected="an int >= 0", instead="nearest: 0")
        if constant >= 2**31:
            expected, instead = f"an int < {2**31}", "fold the axes differently, or loop inside of the block"
            raise BadLaunch(what=f"grid axis {axis}", found=shown(constant), expected=expected, instead=instead)
        return constant
    if isinstance(x, Value) and x.dtype.is_integer:
        if x.reads:
            instead = "pass it as a scalar parameter"
            raise BadLaunch(what=f"grid axis {axis}", found="read from memory", expected="a scalar", instead=instead)
        return x
    if not isinstance(x, int) and (number := python_int(x)) is not None:
        return _extent(axis, number)
    found = f"a {x.dtype} value" if isinstance(x, Value) else shown(x)
    instead = "use T.ceildiv(M, block_M) for quotients"
    raise BadLaunch(what=f"grid axis {axis}", found=found, expected="an integer", instead=instead)


def _threads(threads: Any, is_cpu: bool) -> tuple[int, int, int]:
    if threads is None:
        threads = 1 if is_cpu else DEFAULT_THREADS
    counts = list(threads) if isinstance(threads, (tuple, list)) else [threads]
    if not 1 <= len(counts) <= 3:
        instead = "give an int or a tuple (x, y, z)"
        raise BadLaunch(what="threads", found=f"{len(counts)} counts", expected="1 to 3", instead=instead)
    counts = [c if (number := python_int(c)) is None else number for c in counts]
    for count in counts:
        if not isinstance(count, int) or isinstance(count, bool):
            found = "a runtime value" if isinstance(count, Value) else repr(count)
            raise BadLaunch(what="threads", found=found, expected="a Python int", instead="use a constant such as 128")
        if count < 1:
            raise BadLaunch(what="threads", found=count, expected="an int >= 1", instead="nearest legal value: 1")
        if count > MOST_THREADS:
            expected, instead = f"an int <= {MOST_THREADS}", f"nearest legal value: {MOST_THREADS}"
            raise BadLaunch(what="threads", found=shown(count), expected=expected, instead=instead)
    x, y, z = [*counts, 1, 1][:3]
    return x, y, z
