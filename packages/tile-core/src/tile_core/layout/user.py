"""``T.Layout`` and ``T.Fragment``: layouts as users write them, checked when they are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from tile_core.compat.types import Coordinate
from tile_core.errors.layout import BadDigits, LayoutMismatch, LayoutOutOfRange
from tile_core.layout.base import MAX_ENUMERATION, LayoutMap
from tile_core.layout.digits import AXES, as_shape, row_major_strides, unravel
from tile_core.layout.layout import DigitLayout
from tile_core.layout.proof import prove
from tile_core.layout.recover import recover
from tile_core.layout.swizzle import PYTHON_OPS, Ops
from tile_core.layout.symbolic import symbolic_layout
from tile_core.layout.table import CallableLayout, TableLayout, check_non_negative, evaluate, folded, unwrap


class _UserLayout(LayoutMap):
    """A checked layout; everything is that of ``map``."""

    map: LayoutMap

    @property
    def axes(self) -> tuple[str, ...]:
        """See ``LayoutMap.axes``."""
        return self.map.axes

    @property
    def replicas(self) -> int:
        """See ``LayoutMap.replicas``."""
        return self.map.replicas

    def at(self, flat: Coordinate, replica: Coordinate = 0, ops: Ops = PYTHON_OPS) -> dict[str, Coordinate]:
        """See ``LayoutMap.at``."""
        return self.map.at(flat, replica, ops)

    def _apply(self, coordinate: Sequence[Coordinate], replica: Coordinate, ops: Ops) -> dict[str, Coordinate]:
        return self.map._apply(coordinate, replica, ops)

    def tables(self) -> dict[str, list[int]]:
        """See ``LayoutMap.tables``."""
        return self.map.tables()

    @property
    def sizes(self) -> dict[str, int]:
        """See ``LayoutMap.sizes``."""
        return self.map.sizes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LayoutMap) and self.map == unwrap(other)

    def __hash__(self) -> int:
        return hash(self.map)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self.shape)}, {self.map!r})"


class Layout(_UserLayout):
    """Where the elements of a buffer lie in memory.

    Parameters
    ----------
    shape
        Shape of the buffer, positive integers.
    forward
        A function from one index per dimension to a memory index, or to a tuple of them that is read row-major (its
        extents are those reached); or digits (text or tuples); or any layout onto memory.
    span
        Elements of memory to use. By default the layout has to fill its memory without gaps; with
        ``span`` it may leave some, as a padded layout does.
    note
        Why this layout was chosen, for reports.

    Raises
    ------
    LayoutCollision
        If two coordinates map to one address; both are named.
    LayoutOutOfRange
        If a coordinate maps outside of that memory.
    BadLayoutFunction
        If the function fails or does not return integers.
    """

    def __init__(self, shape: Sequence[int], forward: object, *, span: int | None = None, note: str = "") -> None:
        self.shape = as_shape(shape)
        inner = _memory_map(self.shape, forward)
        self.note = note or inner.note
        proof = prove(inner)
        if proof.collision is not None:
            raise proof.collision.error(self.shape)
        _check_range(inner, "memory", self.numel if span is None else span, "pass span=n for a layout with gaps")
        # One-to-one, and inside of as many positions as elements: a bijection.
        self.map, self._span = inner, self.numel if span is None else span

    @property
    def span(self) -> int:
        """The elements of memory that the buffer takes."""
        return self._span


class Fragment(_UserLayout):
    """A fragment's map from elements to threads and registers.

    Parameters
    ----------
    shape
        Shape of the fragment, positive integers.
    forward_fn
        A function from one index per dimension to (thread, register); or digits on the axes ``thread`` (or ``warp``
        and ``lane``) and ``register``; or any layout onto these.
    forward_thread_fn
        A function from one index per dimension to the thread, instead of ``forward_fn``.
    forward_index_fn
        A function from one index per dimension to the register. Without it the elements of a thread are numbered in
        row-major order.
    replicate
        How many threads hold a copy of each element; the functions for threads get the number of the copy as their
        last argument.
    width
        Lanes per warp, where the digits use warps and lanes.
    threads
        The number of threads; by default those that the layout reaches.

    Raises
    ------
    LayoutCollision
        If two elements share a register of a thread.
    LayoutOutOfRange
        If an index is negative, or a thread beyond ``threads``.
    """

    def __init__(
        self,
        shape: Sequence[int],
        forward_fn: Callable[..., object] | LayoutMap | str | None = None,
        forward_thread_fn: Callable[..., object] | None = None,
        replicate: int = 1,
        forward_index_fn: Callable[..., object] | None = None,
        *,
        width: int = 32,
        threads: int | None = None,
    ) -> None:
        self.shape, self.width = as_shape(shape), width
        if not isinstance(replicate, int) or isinstance(replicate, bool) or replicate < 1:
            found = f"replicate={replicate!r}"
            raise LayoutMismatch(operation="Fragment", found=found, expected="replicate as an int of at least 1")
        inner = _fragment_map(self.shape, forward_fn, forward_thread_fn, forward_index_fn, replicate)
        proof = prove(inner)
        if proof.collision is not None:
            raise proof.collision.error(self.shape)
        if "lane" in inner.axes:
            _check_range(inner, "lane", width, "use the warp axis for further lanes")
        self.map, self.note = inner, inner.note
        self.threads = self._reached() if threads is None else threads
        if threads is not None and self._reached() > threads:
            position = _first(self._threads_table(), lambda v: v >= threads) // self.replicas
            where = unravel(position, self.shape)
            raise LayoutOutOfRange(
                shape=self.shape, coordinate=where, image=self.thread(*where), axis="thread", size=threads,
                reserve="launch more threads",
            )  # fmt: skip

    @property
    def registers(self) -> int:
        """Number of elements per thread."""
        return self.size("register")

    def thread(self, *coordinate: Coordinate, replica: Coordinate = 0, ops: Ops = PYTHON_OPS) -> Coordinate:
        """The thread that holds the element at ``coordinate``."""
        return self._thread(self.apply(*coordinate, replica=replica, ops=ops), ops)

    def register(self, *coordinate: Coordinate, ops: Ops = PYTHON_OPS) -> Coordinate:
        """The register of that thread."""
        return self.apply(*coordinate, ops=ops).get("register", 0)

    def _thread(self, position: dict[str, Coordinate], ops: Ops) -> Coordinate:
        total: Coordinate = 0
        for axis, times in (("warp", self.width), ("lane", 1), ("thread", 1)):
            value = position.get(axis, 0)
            if not (isinstance(value, int) and value == 0):
                term = value if times == 1 else ops.mul(value, times)
                total = term if isinstance(total, int) and total == 0 else ops.add(total, term)
        return total

    def _reached(self) -> int:
        axes = self.axes
        top = self.size("thread") + self.size("lane") - 1
        return top + (self.size("warp") - 1) * self.width if axes else 1

    def _threads_table(self) -> list[int]:
        tables = self.tables()
        rows = zip(*(tables[a] for a in self.axes), strict=True)
        return [self._thread(dict(zip(self.axes, row, strict=True)), PYTHON_OPS) for row in rows]


def _memory_map(shape: tuple[int, ...], forward: object) -> LayoutMap:
    given = unwrap(forward)
    if isinstance(given, LayoutMap):
        if given.shape != shape or given.axes != ("memory",) or given.replicas != 1:
            found = f"a layout of shape {given.shape} onto {', '.join(given.axes)}"
            raise LayoutMismatch(operation="Layout", found=found, expected=f"one of shape {shape} onto memory")
        return given
    if not callable(forward):
        return _on_axes(DigitLayout(shape, forward), ("memory",))
    if prod(shape) > MAX_ENUMERATION:
        large = symbolic_layout(shape, forward)
        if large is not None:
            return large
    columns = evaluate(shape, forward)
    check_non_negative(shape, columns)
    extents = [max(column) + 1 for column in columns]
    if len(extents) == 1:
        inner = CallableLayout(shape, forward)
    else:
        strides = row_major_strides(extents)

        def flat(*coordinate: Coordinate) -> Coordinate:
            terms = [v if s == 1 else v * s for v, s in zip(forward(*coordinate), strides, strict=True)]
            return sum(terms[1:], terms[0])

        inner = CallableLayout(shape, flat)
    inner.__dict__["_tables"] = {"memory": folded(columns)}
    return recover(inner) or inner


def _fragment_map(
    shape: tuple[int, ...],
    both: Callable[..., object] | LayoutMap | str | None,
    thread: Callable[..., object] | None,
    index: Callable[..., object] | None,
    replicate: int,
) -> LayoutMap:
    if (both is None) == (thread is None):
        found = "neither" if both is None else "both"
        raise LayoutMismatch(operation="Fragment", found=found, expected="either forward_fn or forward_thread_fn")
    allowed = ("thread", "warp", "lane", "register")
    given = unwrap(both)
    if isinstance(given, LayoutMap):
        if given.shape != shape:
            found = f"a layout of shape {given.shape}"
            raise LayoutMismatch(operation="Fragment", found=found, expected=f"shape {shape}")
        return _on_axes(given, allowed)
    if both is not None and not callable(both):
        return _on_axes(DigitLayout(shape, both), allowed)
    full = (*shape, replicate) if replicate > 1 else shape
    if both is not None:
        columns = evaluate(full, both, ("thread", "register"))
        function = both
    else:
        assert thread is not None
        threads = evaluate(full, thread, ("thread",))[0]
        if index is None:
            columns = [threads, _numbered(threads, replicate)]
            return _recovered(TableLayout(shape, _named(shape, columns, replicate), replicate))
        registers = evaluate(shape, index, ("register",))[0]
        columns = [threads, [r for r in registers for _ in range(replicate)]]
        rank = len(shape)

        def function(*c: Coordinate) -> Coordinate:
            return thread(*c), index(*c[:rank])

    inner = CallableLayout(shape, function, ("thread", "register"), replicate)
    inner.__dict__["_tables"] = _named(shape, columns, replicate)
    return _recovered(inner)


def _recovered(layout: LayoutMap) -> LayoutMap:
    return recover(layout) or layout


def _named(shape: tuple[int, ...], columns: list[list[int]], copies: int) -> dict[str, list[int]]:
    check_non_negative(shape, columns, copies)
    return dict(zip(("thread", "register"), columns, strict=True))


def _numbered(threads: list[int], copies: int) -> list[int]:
    """Return registers in row-major order of the elements, equal for the copies of an element."""
    used: dict[int, int] = {}
    found = []
    for begin in range(0, len(threads), copies):
        holders = threads[begin : begin + copies]
        register = max(used.get(t, 0) for t in holders)
        used.update(dict.fromkeys(holders, register + 1))
        found += [register] * copies
    return found


def _on_axes(layout: LayoutMap, allowed: tuple[str, ...]) -> LayoutMap:
    wrong = [a for a in layout.axes if a not in allowed and layout.size(a) > 1]
    if wrong:
        reason = f"axis {wrong[0]!r} is not allowed; allowed: {', '.join(allowed)}"
        raise BadDigits(digits=repr(layout), shape=layout.shape, reason=reason, axes=", ".join(AXES))
    return layout


def _check_range(layout: LayoutMap, axis: str, size: int, reserve: str) -> None:
    if layout.size(axis) <= size:
        return
    table = layout.tables()[axis]
    position = _first(table, lambda v: v >= size)
    where = unravel(position // layout.replicas, layout.shape)
    raise LayoutOutOfRange(
        shape=layout.shape, coordinate=where, image=table[position], axis=axis, size=size, reserve=reserve
    )  # fmt: skip


def _first(table: Sequence[int], test: Callable[[int], bool]) -> int:
    return next(i for i, v in enumerate(table) if test(v))
