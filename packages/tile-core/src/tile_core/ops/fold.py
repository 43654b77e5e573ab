"""Reductions and scans with a user's function over one or several tiles, argmax and argmin.

A fold combines *states*: one value per tile. Its function is traced once, with variables for the two
states, and becomes an attribute of the call; values of the kernel that it uses become operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.dtypes import DTYPES, DType
from tile_core.errors.ops import BadAttribute, BadDestination, BadElementType, BadFunction
from tile_core.ir import nodes
from tile_core.ir.attributes import COUNT, DIM, FUNCTION, INPUTS, KIND, REVERSE, Attrs
from tile_core.ir.visit import collect, loads_of, map_expr, renamed_lets, statements, substitute
from tile_core.numerics.order_keys import key_of, key_type, wide_type
from tile_core.ops import operands
from tile_core.ops.base import OpCall, TileOp, View
from tile_core.ops.copy import convert
from tile_core.ops.reduce import axis
from tile_core.records import dataclass
from tile_core.values.builder import current
from tile_core.values.value import Region, Scalar, Tile, Value, as_value

#: The most tiles that one fold combines.
MOST_TILES = 8


def reduce_with(
    function: Callable[..., object],
    src: Tile | Sequence[Tile],
    dst: Tile | Sequence[Tile],
    dim: int = -1,
    *,
    identity: Scalar | Sequence[Scalar],
) -> None:
    """Reduce along a dimension with a function: ``dst[i] = function(function(src[i, 0], src[i, 1]), …)``.

    Parameters
    ----------
    function
        Of two values, which returns one. With several tiles, of two tuples of values, and it returns a tuple. It is
        associative and commutative: elements are combined in any order. It may use values of the kernel, such as scalar
        parameters; it stores nothing.
    src
        A tile, or a tuple of tiles of one shape.
    dst
        A tile without the dimension, or with extent 1 there, or a tuple of them. An element of ``src`` is converted to
        the element type of its destination, which has at least 16 bits if it is a float.
    dim
        The dimension to reduce; negative ones count from the end.
    identity
        A number, or a tuple of them, with ``function(identity, x) == x`` for all ``x``: what parts of a tile that are
        empty count as. It is not checked.

    Raises
    ------
    BadFunction, BadDim, BadDestination, BadElementType, BadAttribute, ShapesDiffer, NotATile, RuntimeExtent
        If function and operands do not fit together.

    Examples
    --------
    >>> T.reduce_with(lambda a, b: T.max(T.abs(a), T.abs(b)), F, v, dim=1, identity=0)
    """
    _emit("reduce_with", function, src, dst, dim, identity, None)


def scan_with(
    function: Callable[..., object],
    src: Tile | Sequence[Tile],
    dst: Tile | Sequence[Tile] | None = None,
    dim: int = 0,
    reverse: bool = False,
    *,
    identity: Scalar | Sequence[Scalar],
) -> None:
    """Inclusive scan with a function along a dimension.

    ``dst[.., i, ..]`` combines ``src[.., 0, ..]`` to ``src[.., i, ..]``.

    The function must be associative; it need not be commutative, its first argument is what comes first. See
    ``reduce_with`` for it and for ``identity``, and ``cumsum`` for the other parameters.

    Examples
    --------
    >>> T.scan_with(lambda a, b: T.if_then_else(b != 0, b, a), S, dim=1, identity=0)
    """
    flag = operands.flag("scan_with", "reverse", reverse)
    _emit("scan_with", function, src, src if dst is None else dst, dim, identity, flag)


def argmax(src: Tile, dst: Tile, dim: int = -1) -> None:
    """Index of the largest element along a dimension, the lowest of equal ones.

    Parameters
    ----------
    src
        Source tile, of any element type.
    dst
        Destination of integers of 32 or 64 bits, without the dimension or with extent 1 there.
    dim
        The dimension; negative ones count from the end.

    Raises
    ------
    BadDim, BadDestination, BadElementType, NotATile, RuntimeExtent
        If the operands do not fit together.

    Notes
    -----
    As in NumPy, the first NaN wins over all numbers, and -0 and +0 are equal.

    Examples
    --------
    >>> T.argmax(F, n, dim=1)
    """
    _arg_fold("argmax", src, dst, dim)


def argmin(src: Tile, dst: Tile, dim: int = -1) -> None:
    """Index of the smallest element along a dimension, ties resolved as in ``argmax``.

    Examples
    --------
    >>> T.argmin(F, n, dim=1)
    """
    _arg_fold("argmin", src, dst, dim)


def _arg_fold(op: str, src: Tile, dst: Tile, dim: int) -> None:
    source, out = operands.as_region(op, "src", src), operands.as_region(op, "dst", dst)
    if not out.dtype.is_integer or out.dtype.bits < 32:
        raise BadElementType(op=op, role="dst", found=out.dtype, legal="int32, int64, uint32, uint64")
    at = axis(op, source, dim)
    operands.static_shape(op, "src", source)
    _check_destination(op, source, out, at, dim)
    source = operands.apart(op, source, out, aligned=False)
    none = Value(nodes.int_const(0), DTYPES["int32"])
    operands.emit("fold", [source, none, none, out], [out], {KIND: op, DIM: source.kept[at], COUNT: 2})


def _emit(
    op: str, function: Callable[..., object], src: Any, dst: Any, dim: int, identity: Any, reverse: bool | None
) -> None:
    sources = [operands.as_region(op, "src", x) for x in _several(src)]
    outs = [operands.as_region(op, "dst", x) for x in _several(dst)]
    starts = _several(identity)
    if not 1 <= len(sources) <= MOST_TILES or not len(sources) == len(outs) == len(starts):
        found = f"{len(sources)} sources, {len(outs)} destinations and {len(starts)} numbers of identity"
        raise BadFunction(op=op, what=f"gets {found}", expected=f"equal numbers of each, from 1 to {MOST_TILES}")
    at = axis(op, sources[0], dim)
    for source, out in zip(sources, outs, strict=True):
        operands.same_shape(op, ("src", "src"), sources[0], source)
        _check_types(op, source.dtype, out.dtype)
        if reverse is not None:
            operands.same_shape(op, ("src", "dst"), source, out)
        else:
            _check_destination(op, sources[0], out, at, dim)
    dtypes = [out.dtype for out in outs]
    traced = _trace(op, function, dtypes, isinstance(src, (tuple, list)))
    first = [_identity(op, x, d) for x, d in zip(starts, dtypes, strict=True)]
    for n in range(len(sources)):
        for out in outs:
            sources[n] = operands.apart(op, sources[n], out, aligned=False)
    reducer = tirx.CommReducer(traced.lhs, traced.rhs, traced.results, first)
    attrs: Attrs = {
        KIND: "", FUNCTION: reducer, INPUTS: traced.inputs, DIM: sources[0].kept[at], COUNT: len(outs),
        **({} if reverse is None else {REVERSE: reverse}),
    }  # fmt: skip
    pairs: list[Region | Value] = [x for pair in zip(sources, outs, strict=True) for x in pair]
    operands.emit("fold" if reverse is None else "fold_scan", [*pairs, *traced.given], outs, attrs)


def _several(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (tuple, list)) else [x]


def _check_types(op: str, src: DType, dst: DType) -> None:
    if src.is_float and not dst.is_float:
        raise BadElementType(op=op, role="dst", found=dst, legal="floating-point types, since src is one")
    if not dst.is_computed or (dst.bits < 8 and dst != "bool"):
        raise BadElementType(
            op=op, role="dst", found=dst, legal="bool, integers of 8 bits and floats of 16 bits or more"
        )


def _check_destination(op: str, src: Region, out: Region, at: int, dim: int) -> None:
    shape = tuple(src.shape)
    expected = (*shape[:at], *shape[at + 1 :])
    if operands.static_shape(op, "dst", out) != (tuple(e for e in expected if e != 1) or (1,)):
        keep = (*shape[:at], 1, *shape[at + 1 :])
        raise BadDestination(op=op, found=out.shape, src=shape, dim=dim, expected=expected or (1,), keep=keep)


def _identity(op: str, x: Any, dtype: DType) -> Expr:
    value = operands.scalar(x, dtype).expr
    if not isinstance(value, (tirx.IntImm, tirx.FloatImm)):
        raise BadAttribute(op=op, name="identity", found=operands.named(x), legal="numbers known while tracing")
    return value


@dataclass(frozen=True)
class _Traced:
    """A function of two states as expressions, whose ``inputs`` represent the ``given`` kernel values."""

    lhs: list[Var]
    rhs: list[Var]
    results: list[Expr]
    inputs: list[Var]
    given: list[Value]


def _trace(op: str, function: Callable[..., object], dtypes: Sequence[DType], is_tuple: bool) -> _Traced:
    if not callable(function):
        raise BadFunction(op=op, what=f"is {operands.named(function)!r}", expected="a Python function of two arguments")
    builder = current(f"T.{op}")
    lhs, rhs = ([tirx.Var(f"{side}{n}", d.container) for n, d in enumerate(dtypes)] for side in "ab")
    a, b = (tuple(Value(v, d) for v, d in zip(side, dtypes, strict=True)) for side in (lhs, rhs))
    scope = builder.push("parallel")
    answer: Any = function(a, b) if is_tuple else function(a[0], b[0])
    names = _FoldNames(op, builder.pop(scope))
    found = list(answer) if isinstance(answer, (tuple, list)) else [answer]
    if len(found) != len(dtypes) or is_tuple != isinstance(answer, (tuple, list)):
        wanted = f"a tuple of {len(dtypes)} values" if is_tuple else "one value"
        raise BadFunction(op=op, what=f"returns {operands.named(answer)!r}", expected=f"return {wanted}")
    results = [names.around(operands.scalar(x, d).expr) for x, d in zip(found, dtypes, strict=True)]
    return _closed(op, lhs, rhs, results)


class _FoldNames:
    """The names of a function's values in order, one per assignment for scalars."""

    def __init__(self, op: str, body: Stmt) -> None:
        self.lets: list[tuple[Var, Expr]] = []
        self._cells: list[tuple[BufferVar, Var | None]] = []
        for s in statements(body):
            if type(s) is tirx.Bind:
                self.lets.append((s.var, self._read(s.value)))
            elif type(s) is tirx.AllocBuffer and s.buffer.scope() == "local.var":
                self._cells.append((s.buffer, None))
            elif type(s) is tirx.BufferStore and any(s.buffer.same_as(b) for b, _ in self._cells):
                var = tirx.Var(str(s.buffer.name), nodes.dtype_of(s.value))
                self.lets.append((var, self._read(s.value)))
                self._cells = [(b, var if s.buffer.same_as(b) else v) for b, v in self._cells]
            elif not nodes.is_nop(s):
                what, expected = "stores, declares or loops", "only compute its result from its arguments"
                raise BadFunction(op=op, what=what, expected=expected)

    def _read(self, e: Expr) -> Expr:
        """Replace the variables of the function by their last assignments."""

        def last(load: Expr) -> Expr:
            return next((v for b, v in self._cells if v is not None and load.source.same_as(b)), load)

        return map_expr(e, last, ir.TensorLoad)

    def around(self, result: Expr) -> Expr:
        """Return a result with the names that it uses."""
        result = self._read(result)
        for var, value in reversed(self.lets):
            if any(var.same_as(v) for v in collect(result, tirx.Var)):
                result = tirx.Let(var, value, result)
        return renamed_lets(result)


def _closed(op: str, lhs: list[Var], rhs: list[Var], results: list[Expr]) -> _Traced:
    """Replace what the results use besides their arguments: elements of buffers, then variables."""
    builder, own = current(f"T.{op}"), [*lhs, *rhs, *(let.var for r in results for let in collect(r, tirx.Let))]
    for load in [x for r in results for x in loads_of(r)]:
        if any(v.same_as(w) for i in load.indices for v in collect(i, tirx.Var) for w in own):
            expected = "read elements that do not depend on its arguments, or compute without tables"
            raise BadFunction(op=op, what=f"reads {load.source.name} at an index that it computes", expected=expected)
    inputs: list[Var] = []
    given: list[Value] = []
    mapping: dict[Var, Expr] = {}
    for n, result in enumerate(results):
        for load in loads_of(result):
            var = builder.bind("used", load)
            result = _replaced(result, load, var)
        results[n] = result
    for v in [v for r in results for v in collect(r, tirx.Var)]:
        if v in mapping or any(v.same_as(w) for w in own) or tirx.is_buffer_var(v):
            continue
        mapping[v] = tirx.Var(str(v.name), v.ty)
        inputs.append(mapping[v])
        given.append(as_value(v))
    return _Traced(lhs, rhs, [substitute(r, mapping) for r in results], inputs, given)


def _replaced(e: Expr, load: Expr, var: Var) -> Expr:
    return map_expr(e, lambda x: var if x.same_as(load) else x, ir.TensorLoad)


@dataclass(frozen=True)
class Fold:
    """A decoded fold.

    Attributes
    ----------
    sources, outs
        Per component of the state: the tile it comes from and the one it goes to; ``None`` for an index along the
        dimension, and for a component that is not kept.
    dtypes, identity
        Per component.
    kind
        ``"argmax"``, ``"argmin"``, or ``""`` for a function of the user's.
    dim
        The dimension, of the first source's buffer.
    """

    sources: tuple[View | None, ...]
    outs: tuple[View | None, ...]
    dtypes: tuple[str, ...]
    identity: tuple[Expr, ...]
    kind: str
    dim: int
    _lhs: tuple[Var, ...] = ()
    _rhs: tuple[Var, ...] = ()
    _results: tuple[Expr, ...] = ()

    @classmethod
    def of(cls, call: OpCall) -> Fold:
        """Decode a call of ``fold`` or ``fold_scan``."""
        count, kind, dim = int(call.attrs[COUNT]), str(call.attrs[KIND]), int(call.attrs[DIM])
        pairs = call.args[: 2 * count]
        sources = tuple(x if isinstance(x, View) else None for x in pairs[::2])
        outs = tuple(x if isinstance(x, View) else None for x in pairs[1::2])
        if kind:
            key = key_type(sources[0].dtype)  # type: ignore[union-attr]
            low = -(2 ** (DTYPES[key].bits - 1))
            first = (nodes.const(low, key), nodes.const(2**31 - 1, "int32"))
            return cls(sources, outs, (key, "int32"), first, kind, dim)
        function = call.attrs[FUNCTION]
        given = dict(zip(call.attrs[INPUTS], call.args[2 * count :], strict=True))
        results = tuple(substitute(r, given) for r in function.result)
        dtypes = tuple(nodes.dtype_of(v) for v in function.lhs)
        identity = tuple(function.identity_element)
        return cls(sources, outs, dtypes, identity, kind, dim, tuple(function.lhs), tuple(function.rhs), results)

    def lifted(self, values: Sequence[Expr | None], position: Expr) -> list[Expr]:
        """Return an element's state: its converted values, or its key and its position."""
        if self.kind:
            dtype = self.sources[0].dtype  # type: ignore[union-attr]
            return [key_of(self.kind, convert(values[0], wide_type(dtype)), dtype), position]
        return [convert(v, d) for v, d in zip(values, self.dtypes, strict=True)]

    def combined(self, a: Sequence[Expr], b: Sequence[Expr]) -> list[Expr]:
        """Return the combination of two states; each value is used several times."""
        if self.kind:
            better = tirx.Or(b[0] > a[0], tirx.And(tirx.EQ(b[0], a[0]), b[1] < a[1]))
            return [tirx.Select(better, y, x) for x, y in zip(a, b, strict=True)]
        mapping = dict(zip((*self._lhs, *self._rhs), (*a, *b), strict=True))
        return [renamed_lets(substitute(r, mapping)) for r in self._results]

    def combined_after(self, a: Sequence[Expr], b: Sequence[Expr]) -> list[Expr]:
        """Return the combined state if ``b`` comes after a non-empty ``a``."""
        if not self.kind:
            return self.combined(a, b)
        return [tirx.Select(b[0] > a[0], y, x) for x, y in zip(a, b, strict=True)]

    def step(
        self, totals: Sequence[BufferVar], at: Expr, other: Sequence[Expr], *, first: bool = True, after: bool = False
    ) -> Stmt:
        """Return ``totals[at] = combined(totals[at], other)``, or with the arguments exchanged if not ``first``.

        With ``after`` the other elements come after the elements of ``totals``.
        """
        names = [nodes.fresh("x", d) for d in self.dtypes]
        binds = [tirx.Bind(v, nodes.cast(x, d)) for v, x, d in zip(names, other, self.dtypes, strict=True)]
        own = [nodes.fresh("t", d) for d in self.dtypes]
        binds += [tirx.Bind(v, t[at]) for v, t in zip(own, totals, strict=True)]
        combined = self.combined_after if after else self.combined
        results = combined(own, names) if first else combined(names, own)
        return nodes.seq([*binds, *(nodes.store(t, r, [at]) for t, r in zip(totals, results, strict=True))])

    def assign(self, totals: Sequence[BufferVar], at: Expr, state: Sequence[Expr]) -> Stmt:
        """Return ``totals[at] = state``."""
        return nodes.seq([nodes.store(t, x, [at]) for t, x in zip(totals, state, strict=True)])

    def start(self, totals: Sequence[BufferVar], at: Expr) -> Stmt:
        """Return ``totals[at] = identity``."""
        return nodes.seq([nodes.store(t, x, [at]) for t, x in zip(totals, self.identity, strict=True)])

    def allocate(self, count: int, name: str = "acc") -> tuple[list[BufferVar], list[Stmt]]:
        """Return one array of ``count`` registers per component, and their allocations."""
        made = [nodes.alloc([count], d, name, "local") for d in self.dtypes]
        return [b for b, _ in made], [s for _, s in made]


def meaning(call: OpCall) -> Stmt:
    """acc = identity; for every k: acc = function(acc, src[.., k, ..]); dst = acc."""
    return _meaning(call, scan=False)


def scan_meaning(call: OpCall) -> Stmt:
    """Return the reference semantics of a scan.

    acc = identity; for every k in order: acc = function(acc, src[.., k, ..]); dst[.., k, ..] = acc.
    """
    return _meaning(call, scan=True)


def _meaning(call: OpCall, scan: bool) -> Stmt:
    fold = Fold.of(call)
    src, dim = fold.sources[0], fold.dim
    assert src is not None
    extent = src.extents[dim]
    outer = [d for d, e in enumerate(src.extents) if e != 1 and d != dim]
    shape_dims = [d for d, e in enumerate(src.extents) if e != 1] or [len(src.extents) - 1]
    totals, allocations = fold.allocate(1)
    zero = nodes.int_const(0)

    def body(*indices: Expr) -> Stmt:
        k = nodes.fresh("k")
        position = extent - 1 - k if call.attrs.get(REVERSE) else k
        by_dim = {**dict(zip(outer, indices, strict=False)), dim: position if extent > 1 else zero}
        compact = [by_dim.get(d, zero) for d in shape_dims]
        values = [None if s is None else nodes.load(s.buffer, s.spread(compact)) for s in fold.sources]
        step = [fold.step(totals, zero, fold.lifted(values, by_dim[dim]))]
        ends = [
            nodes.store(o.buffer, convert(t[0], o.dtype), o.spread(compact if scan else indices), call.span)
            for o, t in zip(fold.outs, totals, strict=True) if o is not None
        ]  # fmt: skip
        loop = nodes.for_loop(k, extent, nodes.seq(step + ends if scan else step))
        return nodes.seq([*allocations, fold.start(totals, zero), loop, *([] if scan else ends)])

    return nodes.nest([src.extents[d] for d in outer] or [1], body, "parallel", span=call.span)


_READS, _WRITES = tuple(range(0, 2 * MOST_TILES, 2)), tuple(range(1, 2 * MOST_TILES, 2))
OP = TileOp("fold", reads=_READS, writes=_WRITES, meaning=meaning, accumulates=True)
SCAN = TileOp("fold_scan", reads=_READS, writes=_WRITES, meaning=scan_meaning, accumulates=True)
