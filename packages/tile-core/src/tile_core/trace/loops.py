"""Loops: the iterables of ``for`` in a kernel."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from tile_core.compat.tvm import ir
from tile_core.errors.language import BadLoop
from tile_core.ir import attributes, nodes
from tile_core.ir.attributes import AttrDict, Attrs
from tile_core.ir.visit import collect, loads_of
from tile_core.trace.trip_counts import bound_of, trip_count, type_of
from tile_core.values.builder import Builder, Scope
from tile_core.values.checks import flag, int_lists, no_loop_layout, python_int, shown
from tile_core.values.checks import hints as check_hints
from tile_core.values.intervals import interval
from tile_core.values.value import Buffer, Index, Value, as_value, constant_of, to_index

_ROLES = {
    "serial": "serial", "range": "serial", "grid": "serial", "Parallel": "parallel", "Pipelined": "pipelined",
    "unroll": "unroll", "vectorized": "vectorized",
}  # fmt: skip
_BARRIERS = frozenset({"tile.barrier_arrive", "tile.barrier_wait", "tile.barrier_announce"})


def serial(
    start: Index, stop: Index | None = None, step: int = 1, *, annotations: Mapping[str, object] | None = None
) -> LoopNest:
    """Iterate sequentially: ``for i in T.serial(n)``, ``T.serial(start, stop, step)``.

    Parameters
    ----------
    start, stop
        Bounds as for ``range``: Python ints or runtime integers.
    step
        A Python int other than 0; negative steps count down.
    annotations
        A dict of hints of other dialects, without effect.

    Raises
    ------
    BadLoop
        If a bound is not an integer, or the step not a Python int.
    """
    _check_annotations("serial", annotations)
    return _counted("serial", start, stop, step, {})


def loop_range(start: Index, stop: Index | None = None, step: int = 1) -> LoopNest:
    """``for i in range(...)`` in a kernel: the same as ``serial``."""
    return _counted("range", start, stop, step, {})


def static_range(*bounds: int) -> range:
    """Return Python's ``range``: the body is traced once per iteration, with Python ints."""
    if not 1 <= len(bounds) <= 3 or (len(bounds) == 3 and python_int(bounds[2]) == 0):
        found, expected = shown(0) if bounds else "missing", "1 to 3 bounds, the step not 0"
        raise BadLoop(loop="static_range", what="a bound", found=found, expected=expected, instead="as of range")
    return builtins.range(*(_python_int("static_range", "a bound", b) for b in bounds))


def Parallel(
    *extents: Index, coalesced_width: int | None = None, loop_layout: None = None, **hints: object
) -> LoopNest:
    """Iterate over a domain of independent iterations, in any order or in parallel.

    Parameters
    ----------
    *extents
        One per dimension: Python ints or runtime integers.
    coalesced_width
        Elements per vector access that the lowering should try; a hint.
    loop_layout
        Refused: loops follow the layouts of the tiles that they access (`T.annotate_layout`).
    **hints
        ``annotations`` and ``prefer_async`` of other dialects; no effect on the meaning.

    Raises
    ------
    BadLoop
        If there are no extents, or one is negative or not an integer.
    BadArgument
        If a loop layout is given, or a hint is invalid.
    """
    known = check_hints("Parallel", hints, ("annotations", "prefer_async"))
    if "prefer_async" in known:
        flag("Parallel", "prefer_async", known["prefer_async"])
    no_loop_layout("Parallel", loop_layout)
    notes: AttrDict = {}
    if coalesced_width is not None:
        notes[attributes.LOOP_COALESCED_WIDTH] = _python_int("Parallel", "coalesced_width", coalesced_width, low=1)
    return _domain("Parallel", extents, notes)


def grid(*extents: Index) -> LoopNest:
    """Iterate sequentially over several dimensions, the last one fastest."""
    return _domain("grid", extents, {})


def Pipelined(
    start: Index, stop: Index | None = None, num_stages: int = 0, order: Any = None, stage: Any = None, **hints: object
) -> LoopNest:
    """Iterate as a software pipeline: loads of later iterations overlap the work of earlier ones.

    Parameters
    ----------
    start, stop
        Bounds: Python ints or runtime integers.
    num_stages
        Iterations in flight: a Python int of at least 0; 0 and 1 mean no overlap. A loop with barriers of the program
        is serial.
    order, stage
        Schedule per statement of the body; hints.
    **hints
        ``sync`` and ``group`` of other dialects; no effect on the meaning.
    """
    known = check_hints("Pipelined", hints, ("sync", "group", "annotations"))
    for name in known.keys() & {"sync", "group"}:
        int_lists("Pipelined", name, known[name])
    stages = _python_int("Pipelined", "num_stages", num_stages, low=0)
    notes: AttrDict = {attributes.NUM_STAGES: stages}
    for key, value in ((attributes.STATEMENT_ORDER, order), (attributes.STATEMENT_STAGE, stage)):
        if value is not None:
            if not isinstance(value, (tuple, list)):
                found, instead = shown(value), "give one int per statement of the body"
                raise BadLoop(loop="Pipelined", what=key[5:], found=found, expected="a list of ints", instead=instead)
            notes[key] = [_python_int("Pipelined", key[5:], v) for v in value]
    return _counted("Pipelined", start, stop, 1, notes)


def unroll(
    start: Index, stop: Index | None = None, step: int = 1, *, explicit: bool = False, unroll_factor: int | None = None
) -> LoopNest:
    """Iterate sequentially, with the loop unrolled.

    The bounds are Python ints, unless ``unroll_factor`` is given.
    """
    loop = _counted("unroll", start, stop, step, {})
    if unroll_factor is not None:
        loop.notes[attributes.UNROLL_FACTOR] = _python_int("unroll", "unroll_factor", unroll_factor, low=1)
    elif not isinstance(loop.extents[0], int):
        raise BadLoop(
            loop="unroll", what="the trip count", found="a runtime value", expected="a Python int",
            instead="use T.serial, or give unroll_factor",
        )  # fmt: skip
    return loop


def vectorized(start: Index, stop: Index | None = None, *, annotations: Mapping[str, object] | None = None) -> LoopNest:
    """Iterate with vector instructions: the iterations are independent, the bounds Python ints."""
    _check_annotations("vectorized", annotations)
    loop = _counted("vectorized", start, stop, 1, {})
    if not isinstance(loop.extents[0], int):
        found, instead = "a runtime value", "use T.Parallel or T.serial"
        raise BadLoop(loop="vectorized", what="the trip count", found=found, expected="a Python int", instead=instead)
    return loop


class LoopNest:
    """A loop of the kernel that ``for`` can open.

    Attributes
    ----------
    kind
        Name of the language function that made it.
    extents
        Trip counts, outermost first: Python ints or values.
    start, step
        Of a loop over one dimension.
    notes
        Annotations of the outermost loop.
    type
        Element type of the numbers of a loop over one dimension; empty for that of the extents.
    """

    def __init__(
        self,
        kind: str,
        extents: Sequence[Index],
        notes: AttrDict,
        start: Index = 0,
        step: int = 1,
        dtype: str = "",
    ) -> None:
        self.kind = kind
        self.extents = list(extents)
        self.notes = notes
        self.start = start
        self.step = step
        self.type = dtype

    def open_loop(self, builder: Builder, names: Sequence[str]) -> OpenNest:
        """Open the scope of the body."""
        return OpenNest(self, builder, names)

    def __iter__(self) -> NoReturn:
        raise BadLoop(
            loop=self.kind, what="its iterable", found="used by plain Python code", expected="a `for` statement",
            instead="iterate with `for` inside of a kernel or T.macro, or use T.static_range",
        )  # fmt: skip


class OpenNest:
    """A loop whose body is being traced.

    Attributes
    ----------
    scope
        The scope of the body.
    targets
        The value of the loop's names: one value, or a tuple.
    single
        Whether there is one dimension.
    """

    def __init__(self, spec: LoopNest, builder: Builder, names: Sequence[str]) -> None:
        self.spec = spec
        self.builder = builder
        self.span = builder.span()
        self.single = len(spec.extents) == 1
        check_names(spec.kind, spec.extents, names)
        if len(names) != len(spec.extents):
            names = [names[0] if len(names) == 1 and self.single else f"i{d}" for d in range(len(spec.extents))]
        start, *extents = (_evaluated_once(builder, e) for e in (spec.start, *spec.extents))
        bounds = [to_index(e) for e in (start, *extents)]
        self.type = "int64" if any(nodes.dtype_of(b) == "int64" for b in bounds) else "int32"
        self.extents = [nodes.cast(b, self.type) for b in bounds[1:]]
        self.vars = [nodes.fresh(builder.unique(n), self.type) for n in names]
        builder.ranges |= {
            v: (0, builtins.max(0, interval(e)[1] - 1)) for v, e in zip(self.vars, self.extents, strict=True)
        }
        values = [as_value(v) for v in self.vars]
        if spec.step != 1 or constant_of(spec.start) != 0:
            values = [start + values[0] * spec.step if spec.step != 1 else values[0] + start]
        if spec.type:
            values = [values[0].astype(spec.type)]  # trips may be more than the numbers of their type
        self.targets: Any = values[0] if self.single else tuple(values)
        self.scope: Scope = builder.push("parallel" if spec.kind in ("Parallel", "vectorized") else "loop")
        self.scope.loop, self.scope.counters = spec.kind, tuple(self.vars)

    def close(self) -> None:
        """Emit the loops."""
        body = self.builder.pop(self.scope)
        if any(nodes.as_int(e) == 0 for e in self.extents):
            return
        role, all_notes = _ROLES[self.spec.kind], self.spec.notes
        if role == "pipelined" and any(nodes.operator_name(c) in _BARRIERS for c in collect(body, ir.Call)):
            role, all_notes = "serial", {}  # what overlaps is the program's own choice
        for d, (var, extent) in reversed(list(enumerate(zip(self.vars, self.extents, strict=True)))):
            notes = all_notes if d == 0 else {}
            body = nodes.for_loop(var, extent, body, role, annotations=notes, span=self.span)
        self.builder.emit(body)


def _evaluated_once(builder: Builder, bound: Index) -> Index:
    """Return a bound evaluated before the loop, whose body may change its memory."""
    index = to_index(bound)
    return as_value(builder.bind("bound", index)) if not isinstance(index, int) and loads_of(index) else bound


def check_names(kind: str, extents: Sequence[Index], names: Sequence[str]) -> None:
    """Refuse ``for i, j in`` a loop with another number of dimensions.

    One name may hold the whole tuple.

    Raises
    ------
    BadLoop
        If there are several names, and not one for each extent.
    """
    dims = len(extents)
    if len(names) in (0, 1, dims):
        return
    wanted = ", ".join([*names, *[f"i{d}" for d in range(len(names), dims)]][:dims])
    expected = "one name for each extent" if dims > 1 else "one name: the loop has one extent"
    instead = f"write `for {wanted} in T.{kind}(...)`, or give an extent for every name"
    raise BadLoop(
        loop=kind, what=f"for {', '.join(names)}", found=f"{len(names)} names for {dims} extent{'s'[: dims - 1]}",
        expected=expected, instead=instead,
    )  # fmt: skip


def _counted(kind: str, start: Index, stop: Index | None, step: int, notes: Attrs) -> LoopNest:
    low: Index = 0
    high = _bound(kind, "a bound", start)
    if stop is not None:
        low, high = high, _bound(kind, "a bound", stop)
    elif isinstance(high, int) and high < 0:
        raise BadLoop(loop=kind, what="its extent", found=high, expected="an int >= 0", instead="nearest: 0")
    step = _python_int(kind, "step", step)
    if step == 0:
        raise BadLoop(loop=kind, what="step", found=0, expected="an int other than 0", instead="use step=1")
    return LoopNest(kind, [trip_count(low, high, step)], dict(notes), low, step, type_of(low, high))


def _domain(kind: str, extents: Sequence[Index], notes: AttrDict) -> LoopNest:
    if len(extents) == 1 and isinstance(extents[0], (tuple, list)):
        extents = extents[0]
    if not extents:
        raise BadLoop(loop=kind, what="its domain", found="empty", expected="at least one extent", instead="add one")
    checked = [_bound(kind, f"extent {d}", e) for d, e in enumerate(extents)]
    for d, extent in enumerate(checked):
        if isinstance(extent, int) and extent < 0:
            raise BadLoop(loop=kind, what=f"extent {d}", found=extent, expected="an int >= 0", instead="nearest: 0")
    return LoopNest(kind, checked, notes)


def _bound(kind: str, what: str, x: object) -> Index:
    constant = constant_of(x) if isinstance(x, Value) else python_int(x)
    found, instead = shown(x), "convert it with int(...), or T.ceildiv for quotients"
    if constant is not None:
        if -(2**63) <= constant < 2**63:
            return constant
        instead = "use a number of at most 64 bits"
    elif isinstance(x, Value) or (isinstance(x, Buffer) and x.is_scalar):
        value = as_value(x)
        if value.dtype.is_integer:
            return bound_of(value)
        found, instead = f"a {value.dtype} value", 'convert it with T.cast(x, "int32"), or use T.ceildiv for quotients'
    raise BadLoop(loop=kind, what=what, found=found, expected="an integer", instead=instead)


def _python_int(kind: str, what: str, x: object, low: int = -(2**31)) -> int:
    constant = constant_of(x) if isinstance(x, Value) else python_int(x)
    if constant is None:
        found = "a runtime value" if isinstance(x, Value) else shown(x)
        instead = "pass it as an argument of the function that makes the kernel"
        raise BadLoop(loop=kind, what=what, found=found, expected="a Python int", instead=instead)
    if not low <= constant < 2**31:
        expected = f"an int >= {low}" if constant < low else "an int of 32 bits"
        nearest = f"nearest: {low if constant < low else 2**31 - 1}"
        raise BadLoop(loop=kind, what=what, found=shown(constant), expected=expected, instead=nearest)
    return constant


def _check_annotations(kind: str, annotations: Mapping[str, object] | None) -> None:
    """Check annotations of other dialects, which have no effect on the meaning."""
    if annotations is None:
        return
    if not isinstance(annotations, Mapping) or not all(isinstance(k, str) for k in annotations):
        found, instead = shown(annotations), "leave it out"
        raise BadLoop(loop=kind, what="annotations", found=found, expected="a dict with text as keys", instead=instead)
    for key, value in annotations.items():
        if not isinstance(value, (str, int, float)):
            what, expected = f"annotations[{key!r}]", "text or a number"
            raise BadLoop(loop=kind, what=what, found=shown(value), expected=expected, instead="leave it out")
