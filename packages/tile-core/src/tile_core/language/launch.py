"""``T.Kernel`` and the shape of the launch."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt, Var
from tile_core.errors.base import Where
from tile_core.errors.language import BadLaunch, BadLoop, NoGridBarrier, SecondLaunch
from tile_core.ir import nodes
from tile_core.ir.attributes import AXIS, CLUSTER, SHARING_ROLES, THREADS, AttrDict
from tile_core.ir.grammar import MOST_THREADS
from tile_core.ir.visit import collect, substitute
from tile_core.language.regions import note_regions
from tile_core.values import extremes
from tile_core.values.builder import Builder, Scope, StatementSlot, current
from tile_core.values.checks import python_int, shown
from tile_core.values.intervals import interval
from tile_core.values.value import Index, Value, as_value, constant_of, to_index

#: Default number of threads of a block.
DEFAULT_THREADS = 128


class KernelLaunch:
    """The launch of a kernel: ``with T.Kernel(gx, gy, threads=128) as (bx, by):``.

    Parameters
    ----------
    *grid
        At most three extents, Python ints or runtime integers; the first is the fastest axis. An extent of 0 launches
        nothing; without extents there is one block.
    threads
        Threads of a block: an int, or up to three of them. Default: 128, or 1 with ``is_cpu``.
    is_cpu
        Whether the kernel was written for one thread per block.

    Raises
    ------
    OutsideKernel, BadLaunch, SecondLaunch
        Outside a kernel function; for other grids and threads; inside of another launch.

    Notes
    -----
    A function may launch several times. The launches run one after the other: what one wrote, the next one reads.

    Blocks of a launch have no order. A block may not read or write an element that another block writes, except by an
    atomic, behind ``T.sync_grid`` or with the same value. Launches that provably do are refused (K214).
    """

    def __init__(self, *grid: Index, threads: int | Sequence[int] | None = None, is_cpu: bool = False) -> None:
        self.builder: Builder = current("T.Kernel")
        self._check_outside()
        self.names_hint: Sequence[str] = ()
        #: Blocks along x, y and z that run together, see `tile_core.target.Capabilities.max_cluster`.
        self.cluster = (1, 1, 1)
        #: Whether the target is a tuple, of one name too: ``as (bx,)``.
        self.unpacked = False
        self.grid = [_extent(d, e) for d, e in enumerate(_flat(grid))]
        if len(self.grid) > 3:
            found, instead = f"{len(self.grid)} axes", "fold axes into one and take it apart with // and %"
            raise BadLaunch(what="the grid", found=found, expected="at most 3 axes", instead=instead)
        self.threads = _threads(threads, is_cpu)
        self.scope: Scope | None = None

    def _check_outside(self) -> None:
        if self.builder.scope.kind != "function":
            raise SecondLaunch(kernel=self.builder.name)

    def __enter__(self) -> Value | tuple[Value, ...]:
        builder = self.builder
        self._check_outside()
        builder.threads = self.threads
        self.outer = builder.attrs
        self._annotate()
        if builder.eager is not None:
            builder.eager.launching()
        self.span = builder.span()
        self._check_targets()
        one = () if self.grid else ("block",)
        self.grid = self.grid or [1]
        names = (
            one or self.names_hint
            if len(one or self.names_hint) == len(self.grid)
            else ("bx", "by", "bz")[: len(self.grid)]
        )
        builder.launch = self
        self.names, self.extents = list(names), [to_index(e) for e in self.grid]
        self.parts: list[Stmt] = []
        self.late: list[StatementSlot] = []
        self.barrier: Where | None = None
        self.first = self._count()
        self.scope = builder.push("kernel", runtime=False)
        values = () if one else tuple(as_value(v) for v in self.first)
        return values[0] if len(values) == 1 and not self.unpacked else values

    def _count(self) -> list[Var]:
        """Make the indices of the launch's blocks."""
        builder, pairs = self.builder, list(zip(self.names, self.extents, strict=True))
        self.vars = [nodes.fresh(builder.unique(n), nodes.dtype_of(e)) for n, e in pairs]
        builder.ranges |= {v: (0, max(0, interval(e)[1] - 1)) for v, e in zip(self.vars, self.extents, strict=True)}
        return self.vars

    def _check_targets(self) -> None:
        """Refuse another number of names than axes; one name may hold the tuple."""
        axes, names = len(self.grid), self.names_hint
        if len(names) == axes or not names or (axes > 1 and len(names) == 1 and not self.unpacked):
            return
        instead = "name every axis of the grid, and give T.Kernel an extent for every name"
        expected = f"{axes}, one for each axis" if axes > 1 else "one: the grid has one axis"
        if axes == 0:
            expected, instead = "none: the grid has no axis", "leave `as` out, or write T.Kernel(1)"
        count = f"{len(names)} name{'s'[: len(names) - 1]}"
        raise BadLaunch(what=f"as ({', '.join(names)})", found=count, expected=expected, instead=instead)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None or self.scope is None:
            return
        self._emit(self.builder.pop(self.scope))
        self.builder.attrs, self.builder.launch = self.outer, None

    def go_on(self) -> None:
        """End the launch, and go on in another one of the same grid.

        Raises
        ------
        NoGridBarrier
            In a loop or a branch, or if a scratch buffer or a value of one part is used in another (when that ends).
        """
        if self.builder.scope is not self.scope:
            what = f"a {self.builder.scope.kind}" if self.builder.scope.kind != "parallel" else "a parallel loop"
            raise NoGridBarrier(problem=f"is in {what}", fix="write it between statements of the launch itself")
        assert self.scope is not None
        self.barrier = self.builder.where()
        self.late += self.builder.forget()
        self.late += [s for s in self.scope.statements if isinstance(s, StatementSlot)]
        self._emit(self.scope.taken())
        self._annotate()
        self._count()

    def _annotate(self) -> None:
        """Begin the annotations of a launch."""
        self.builder.attrs = dict(self.outer)
        note_regions(self.builder)
        if self.cluster != (1, 1, 1):
            self.builder.attrs[CLUSTER] = list(self.cluster)

    def _emit(self, body: Stmt) -> None:
        """Add a launch of these statements to the function."""
        if self.parts:
            body = substitute(body, dict(zip(self.first, self.vars, strict=True)))
            self._check_kept(body)
        self.parts.append(body)
        self.builder.launches.append(self.builder.attrs)
        last = len(self.vars) - 1
        for axis, (var, extent) in enumerate(zip(self.vars, self.extents, strict=True)):
            notes: AttrDict = {AXIS: axis}
            if axis == last:
                notes[THREADS] = list(self.threads)
            body = nodes.for_loop(var, extent, body, "grid", annotations=notes, span=self.span)
        from tile_core.passes.role_loops import merge_role_loops

        body, shared = merge_role_loops(body, self.cluster)
        if shared:
            self.builder.attrs[SHARING_ROLES] = list(shared)
        # The function scope takes no other statement, see Builder.emit.
        assert self.scope is not None
        assert self.scope.parent is not None
        self.scope.parent.statements.append(body)

    def _check_kept(self, body: Stmt) -> None:
        """Refuse what would have to live on over a barrier of the grid."""
        used = set(collect(body, tirx.Var))
        late = nodes.seq([s for slot in self.late for s in slot.statements])
        for part in (*self.parts, late):
            for d in collect(part, (tirx.AllocBuffer, tirx.DeclBuffer)):
                if d.buffer in used:
                    fix = f"make {d.buffer.name} again after it; T.alloc_global keeps data between launches"
                    problem = f"is between the buffer {d.buffer.name} and its use"
                    raise NoGridBarrier(problem=problem, fix=fix).at(self.barrier)
            if any(b.var in used for b in collect(part, tirx.Bind)):
                fix = "compute it again after it; T.alloc_global keeps data between launches"
                problem = "is between the computation of a value and its use"
                raise NoGridBarrier(problem=problem, fix=fix).at(self.barrier)


Kernel = KernelLaunch
KernelLaunch.__init__.__qualname__ = "Kernel.__init__"  # the public name, which Python's own errors print


def sync_grid() -> None:
    """Wait for all blocks of the launch, and make their writes visible to all.

    The launch ends here, and another one of the same grid and threads goes on with the statements behind it. So it
    works on every target, and any number of blocks may wait. Scratch memory, variables and values that are read from
    memory do not live on.

    Raises
    ------
    NoGridBarrier
        In a loop or a branch; where something that would have to live on is used behind it; outside of a launch.
    """
    launch = current("T.sync_grid").launch
    if launch is None:
        raise NoGridBarrier(problem="is outside a launch", fix="write it inside `with T.Kernel(...)`")
    launch.go_on()


class Persistent:
    """Iterate over tiles with persistent blocks: ``for bx, by in T.Persistent((gx, gy), wave, block)``.

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
        from tile_core.trace.trip_counts import type_of

        check_names(spec.kind, spec.domain, names)
        kind, domain = tile_numbers(spec)
        total: Index = 1
        for extent in domain:
            total = extent * total
        self.builder = builder
        self.loop = LoopNest("serial", [ceildiv(total, spec.wave)], {}).open_loop(builder, ["wave"])
        tile = self.loop.targets.astype(kind) * spec.wave + spec.index
        number = as_value(builder.bind("tile", tile.expr))
        self.condition = tirx.LT(number.expr, to_index(total))
        self.scope = builder.push("branch")
        rest: Value = number
        coordinates: list[Value] = []
        for extent in reversed(domain[1:]):
            coordinates.append(rest % extent)
            rest = rest // extent
        own = type_of(*spec.domain, spec.wave, spec.index)
        values = tuple(x.astype(own) for x in reversed([*coordinates, rest]))
        self.targets: Value | tuple[Value, ...] = values[0] if len(values) == 1 else values

    def close(self) -> None:
        from tile_core.compat.tvm import tirx

        body = self.builder.pop(self.scope)
        self.builder.emit(tirx.IfThenElse(self.condition, body, None, self.loop.span))
        self.loop.close()


def tile_numbers(spec: Persistent) -> tuple[str, list[Index]]:
    """Return a type for all tile numbers and the domain in that type.

    A runtime extent below 0 is one of 0: the product of two would be a number of tiles.
    """
    domain: list[Index] = []
    most = 1
    for e in spec.domain:
        low, high = interval(to_index(e))
        domain.append(as_value(extremes.max(e, 0)) if low < 0 else e)
        most *= max(high, 0)
    numbers = most + interval(to_index(spec.wave))[1] + interval(to_index(spec.index))[1]
    if numbers < 2**31:
        return "int32", domain
    return "int64", [e if isinstance(e, int) else e.astype("int64") for e in domain]


def _flat(grid: Sequence[Index | Sequence[Index]]) -> Sequence[object]:
    return grid[0] if len(grid) == 1 and isinstance(grid[0], (tuple, list)) else grid


def _extent(axis: int, x: object) -> Index:
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


def _threads(threads: int | Sequence[int] | None, is_cpu: bool) -> tuple[int, int, int]:
    if threads is None:
        threads = 1 if is_cpu else DEFAULT_THREADS
    given: Sequence[object] = threads if isinstance(threads, (tuple, list)) else (threads,)
    if not 1 <= len(given) <= 3:
        instead = "give an int or a tuple (x, y, z)"
        raise BadLaunch(what="threads", found=f"{len(given)} counts", expected="1 to 3", instead=instead)
    counts = []
    for item in given:
        count = python_int(item)
        if count is None:
            found = "a runtime value" if isinstance(item, Value) else repr(item)
            raise BadLaunch(what="threads", found=found, expected="a Python int", instead="use a constant such as 128")
        if count < 1:
            raise BadLaunch(what="threads", found=count, expected="an int >= 1", instead="nearest legal value: 1")
        if count > MOST_THREADS:
            expected, instead = f"an int <= {MOST_THREADS}", f"nearest legal value: {MOST_THREADS}"
            raise BadLaunch(what="threads", found=shown(count), expected=expected, instead=instead)
        counts.append(count)
    x, y, z = [*counts, 1, 1][:3]
    return x, y, z
