"""Guards for the out-of-range rule: such reads yield the safe value, such writes are dropped.

An access with provably in-bounds indices is unchanged. For a loop nest with other accesses, the pass emits two
versions: one without guards, taken when the whole nest stays in bounds, and one with a guard on each access. So a full
tile runs at full speed, and the tile at the edge is correct.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tile_core.analysis.affine import linear_form
from tile_core.analysis.proofs import Proofs
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import BufferVar, Call, Expr, Mutator, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import StmtRewriter, collect, renamed, role
from tile_core.passes import wrapping
from tile_core.passes.wide_indices import wide_index, widen_indices

_COMPARISONS = (tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.EQ, tirx.NE)
_VERSIONED = ("parallel", "vectorized")


def guard(body: Stmt, safe_values: Mapping[str, Expr] | None = None, symbols: Iterable[Var] = ()) -> Stmt:
    """Return the body with every access inside its buffer.

    Parameters
    ----------
    body
        A statement without tile ops.
    safe_values
        The value of an out-of-range read instead of zero, by buffer name.
    symbols
        Variables of symbolic dimensions, which are not negative.
    """
    guards = _Guard(dict(safe_values or {}), Proofs(aliased=bool(collect(body, tirx.DeclBuffer))))
    for s in symbols:
        guards.proofs.size(s)
    return guards.stmt(widen_indices(body))


def guarded(s: Stmt) -> Stmt:
    """Mark a statement whose accesses are all in bounds: ``guard`` leaves it unchanged."""
    return nodes.mark(attributes.GUARDED, "", s)


class _Condition:
    """An unproven bound: ``index < extent`` or ``index >= 0``."""

    def __init__(self, index: Expr, extent: Expr | None) -> None:
        self.index = index
        self.extent = extent

    def expr(self) -> Expr:
        if self.extent is None:
            return tirx.GE(self.index, _zero(self.index))
        return tirx.LT(*_alike(self.index, self.extent))

    def key(self) -> tuple[int, int]:
        """Return a key that is equal for equal conditions on the same variables.

        Variable names may be reused.
        """
        return _identity(self.index), 0 if self.extent is None else _identity(self.extent)

    def hull(self, loops: list[Stmt], wraps: Callable[[Expr], bool]) -> Expr | None:
        """Return the condition that implies this one for all iterations of ``loops``, or ``None``.

        What ``wraps`` in 32 bits is computed in 64: an index that overflows is out of bounds.
        """
        variables = [loop.loop_var for loop in loops]
        form = linear_form(self.index, variables)
        if form is None:
            return None
        extreme = form.rest
        for loop, c in zip(loops, form.steps, strict=True):
            if c == 0:
                continue
            last = loop.min + loop.extent - 1
            extreme = extreme + (last if (c > 0) == (self.extent is not None) else loop.min) * c
        if nodes.dtype_of(extreme) == "int32" and (wraps(self.index) or wraps(extreme)):
            extreme = wide_index(extreme)
        return _Condition(extreme, self.extent).expr()


class _Guard(StmtRewriter):
    def __init__(self, safe_values: Mapping[str, Expr], proofs: Proofs) -> None:
        self.proofs = proofs
        self.safe_values = safe_values
        self.found: list[_Condition] = []
        self.assumed: set[tuple[int, int]] = set()
        #: By index that may wrap: the plain sum that equals it under the assumed conditions.
        self.plain: dict[int, Any] = {}
        self.inside_nest = False
        #: Unproven bounds of the addresses that the instructions of the current statement take.
        self.addressed: list[Expr] = []

    def visit_For(self, s: Stmt) -> Stmt:
        self.proofs.loop(s)
        if self.inside_nest or role(s) not in _VERSIONED:
            return super().visit_For(s)
        self.inside_nest, self.found = True, []
        guarded = super().visit_For(s)
        conditions, self.found = self.found, []
        fast = self.unguarded(s, conditions)
        self.inside_nest = False
        return guarded if fast is None else tirx.IfThenElse(fast[0], fast[1], guarded, s.span)

    def unguarded(self, nest: Stmt, conditions: list[_Condition]) -> tuple[Expr, Stmt] | None:
        """Return (condition, nest without the guards that it makes redundant)."""
        loops = collect(nest, tirx.For)
        inner = {loop.loop_var for loop in loops} | {b.var for b in collect(nest, tirx.Bind)}
        written = {str(st.buffer.name) for st in collect(nest, tirx.BufferStore)}
        written |= {str(c.args[0].source.name) for c in collect(nest, ir.Call) if nodes.is_tile_call(c, "address")}
        hulls: dict[tuple[int, int], Expr] = {}
        plain: dict[int, Any] = {}
        for c in conditions:
            hull = c.hull(loops, self.proofs.wraps)
            if hull is None and (total := self.without_wrapping(c.index, loops)) is not None:
                hull = _Condition(total, c.extent).hull(loops, lambda _: True)
                plain[_identity(c.index)] = total
            if hull is None or any(v in inner for v in collect(hull, tirx.Var)) or self.changes(hull, written):
                continue
            hulls[c.key()] = self.proofs.simplify(hull)
        useful = [h for h in hulls.values() if not (isinstance(h, tirx.IntImm) and int(h.value) == 1)]
        if not hulls or any(isinstance(h, tirx.IntImm) and int(h.value) == 0 for h in useful):
            return None
        self.assumed |= hulls.keys()
        self.plain = plain
        fast = renamed(super().visit_For(nest))
        self.assumed -= hulls.keys()
        self.found, self.plain = [], {}
        if not useful:
            return nodes.const(True, "bool"), fast
        unique = {_identity(h): h for h in useful}
        return tirx.all(*unique.values()), fast

    def without_wrapping(self, index: Expr, loops: list[Stmt]) -> Any:
        """Return an index that may wrap as a sum with equal in-range values, if possible.

        The sum's first term is what the loops do not change, computed with wrapping; the rest cannot overflow.
        """
        if not nodes.operator_name(index).startswith(wrapping.PREFIX) or nodes.dtype_of(index) != "int32":
            return None
        variables = [loop.loop_var for loop in loops]
        form = linear_form(wrapping.plain(index), variables)
        if form is None:
            return None
        moved: Any = nodes.int_const(0)
        for variable, c in zip(variables, form.steps, strict=True):
            moved = moved if c == 0 else moved + variable * c
        return None if self.proofs.wraps(moved) else wrapping.wrapped(form.rest) + moved

    def changes(self, condition: Expr, written: set[str]) -> bool:
        """Whether writes to the buffers of these names may change a condition."""
        names = {str(load.source.name) for load in collect(condition, ir.TensorLoad)}
        return bool(names & written) or bool(names and written and self.proofs.aliased)

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        return s.body if s.attr_key == attributes.GUARDED else super().visit_AttrStmt(s)

    def visit_SeqStmt(self, s: Stmt) -> Stmt:
        """Rewrite a sequence; what is assumed between statements holds for the rest."""
        parts = structural.items(s.seq)
        for at, x in enumerate(parts[:-1]):
            if type(x) is tirx.Evaluate and nodes.operator_name(x.value) == "assume":
                before, rest = [self.stmt(y) for y in parts[: at + 1]], nodes.seq(parts[at + 1 :])
                with self.proofs.under(x.value.args[0], rest):
                    return nodes.seq([*before, self.stmt(rest)])
        return super().visit_SeqStmt(s)

    def visit_IfThenElse(self, s: Stmt) -> Stmt:
        condition = self.undecided(s.condition)
        if condition is None:
            return self.stmt(s.then_case)
        condition = self.expr(condition)
        with self.proofs.under(s.condition, s.then_case):
            then = self.stmt(s.then_case)
        other = None
        if s.else_case is not None:
            with self.proofs.under(tirx.Not(s.condition), s.else_case):
                other = self.stmt(s.else_case)
        same = condition.same_as(s.condition) and then.same_as(s.then_case)
        if same and (other is None or other.same_as(s.else_case)):
            return s
        return tirx.IfThenElse(condition, then, other, s.span)

    def visit_Bind(self, s: Stmt) -> Stmt:
        new = super().visit_Bind(s)
        self.proofs.value(new)
        return new

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        """Drop an instruction whose element may be outside of its buffer."""
        outer, self.addressed = self.addressed, []
        new = super().visit_Evaluate(s)
        conditions, self.addressed = self.addressed, outer
        return tirx.IfThenElse(tirx.all(*conditions), new, None, s.span) if conditions else new

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        new = super().visit_BufferStore(s)
        indices, conditions = self.inside(new.buffer, new.indices)  # its indices are guarded themselves
        if any(i is not old for i, old in zip(indices, new.indices, strict=True)):
            new = tirx.BufferStore(new.buffer, new.value, indices, span=s.span)
        if not conditions:
            return new
        before: list[Stmt] = []
        indices, value = [_bound(i, before) for i in new.indices], _bound(new.value, before)
        if before:
            indices, conditions = self.inside(new.buffer, indices)
            new = tirx.BufferStore(new.buffer, value, indices, span=s.span)
        return nodes.seq([*before, tirx.IfThenElse(tirx.all(*conditions), new, None, s.span)])

    def expr(self, e: Expr) -> Expr:
        """Guard the loads of an expression; each side of a conditional under its condition."""
        if type(e) in structural.ATOMS:
            return e
        if not collect(e, ir.TensorLoad):
            return e
        if nodes.operator_name(e) == "if_then_else":
            return self.choice(e)
        return structural.mutated(e, [(ir.Call, self.call), (ir.TensorLoad, self.read)])

    def read(self, e: Expr, mutator: Mutator) -> Expr:
        return self.load(mutator.default_mutate(e))

    def call(self, e: Call, mutator: Mutator) -> Expr:
        """Rewrite a call; the bounds of an address guard the instruction that takes it."""
        if nodes.is_tile_call(e, "address"):
            element = mutator.default_mutate(e.args[0])
            indices, conditions = self.inside(element.source, element.indices)
            self.addressed += conditions
            address = nodes.load(element.source, indices, element.span)
            return ir.Call(e.op, [address], e.attrs, ret_ty=e.ty)
        outer, self.addressed = self.addressed, []
        new = mutator.default_mutate(e)
        conditions, self.addressed = self.addressed, outer
        if conditions and nodes.dtype_of(new) in DTYPES:
            return tirx.if_then_else(tirx.all(*conditions), new, nodes.zero(nodes.dtype_of(new)))
        self.addressed = [*outer, *conditions]
        return new

    def choice(self, e: Call) -> Expr:
        condition = self.undecided(e.args[0])
        if condition is None:
            return self.expr(e.args[1])
        condition = self.expr(condition)
        with self.proofs.under(e.args[0], None):
            yes = self.expr(e.args[1])
        no = self.expr(e.args[2])
        return tirx.if_then_else(condition, yes, no)

    def undecided(self, condition: Expr) -> Expr | None:
        """Return a condition without the sides that always hold; ``None`` if it always holds."""
        if isinstance(condition, tirx.And):
            a = self.undecided(condition.a)
            with self.proofs.under(condition.a, None):
                b = self.undecided(condition.b)
            if a is None or b is None:
                return b if a is None else a
            return condition if a.same_as(condition.a) and b.same_as(condition.b) else tirx.And(a, b)
        fixed = isinstance(condition, _COMPARISONS) and not collect(condition, (ir.TensorLoad, ir.Call))
        return None if fixed and self.proofs.holds(condition) else condition

    def load(self, e: Expr) -> Expr:
        indices, conditions = self.inside(e.source, e.indices)
        if any(i is not old for i, old in zip(indices, e.indices, strict=True)):
            e = nodes.load(e.source, indices, e.span)
        if not conditions:
            return e
        dtype = nodes.dtype_of(e)
        safe = self.safe_values.get(str(e.source.name))
        fill = nodes.zero(dtype) if safe is None else nodes.cast(safe, dtype)
        return tirx.if_then_else(tirx.all(*conditions), e, fill)

    def inside(self, buffer: BufferVar, indices: Any) -> tuple[list[Expr], list[Expr]]:
        """Return the indices of an access, and the bounds that are not proven."""
        found, open_bounds = [], []
        at = indices if isinstance(indices, (list, tuple)) else structural.items(indices)
        for index, extent in zip(at, structural.items(buffer.ty.shape), strict=True):
            conditions = self.unproven(index, extent)
            unknown = [c for c in conditions if c.key() not in self.assumed]
            self.found += conditions
            open_bounds += [c.expr() for c in unknown]
            found.append(index if unknown else self.plain.get(_identity(index), index) if self.plain else index)
        return found, open_bounds

    def unproven(self, index: Expr, extent: Expr) -> list[_Condition]:
        if type(index) is tirx.IntImm and type(extent) is tirx.IntImm:
            inside = 0 <= int(index.value) < int(extent.value)
            return [] if inside else [_Condition(index, extent)]
        low, high = self.proofs.bound(index)
        result = []
        below, lowest = low < 0, _Condition(index, None)
        if below and not self.proofs.holds(lowest.expr()):
            result.append(lowest)
        size = nodes.as_int(extent)
        if isinstance(size, int) and high < size:
            return result
        if _remains(index, extent):
            # A remainder by the extent itself is in bounds unless the extent is zero.
            index = _zero(extent)
        index, extent = _alike(index, extent)
        if not self.proofs.holds(tirx.LT(index, extent)):
            # An overflow is negative: so a sum of non-negative numbers is not proven to be non-negative.
            wraps = not result and self.proofs.wraps(index)
            result += [*([lowest] if wraps else []), _Condition(index, extent)]
        return result


def _remains(index: Expr, extent: Expr) -> bool:
    return isinstance(index, tirx.FloorMod) and isinstance(extent, tirx.Var) and index.b.same_as(extent)


def _alike(index: Expr, extent: Expr) -> tuple[Expr, Expr]:
    """Return an index and an extent as numbers of one type that holds both."""
    kind, other = nodes.dtype_of(index), nodes.dtype_of(extent)
    if kind == other:
        return index, extent
    common = "uint64" if kind == "uint64" else "int64"
    return nodes.cast(index, common), nodes.cast(extent, common)


def _identity(e: Expr) -> int:
    return int(tvm_ffi.structural_hash(e))


def _bound(value: Expr, before: list[Stmt]) -> Expr:
    """Bind a shuffle or vote before its guard, so that all lanes take part."""
    if not any(nodes.is_tile_call(c) for c in collect(value, ir.Call)):
        return value
    var = nodes.fresh("value", nodes.dtype_of(value))
    before.append(tirx.Bind(var, value))
    return var


def _zero(index: Expr) -> Expr:
    return nodes.int_const(0, nodes.dtype_of(index))
