"""Select a variant for every tile op; expand ops that have only plain loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tile_core.compat.structural import attribute
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Call, Stmt
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import StmtRewriter, loads_of, role
from tile_core.lowering.dispatch import Selection, select
from tile_core.ops.base import OpCall, View, is_op
from tile_core.ops.effects import PER_THREAD_OPS
from tile_core.ops.registry import OPS
from tile_core.passes.lower_ops import MeaningVariant, OpChoice, requires_order
from tile_core.records import dataclass
from tile_core.simt.role_threads import block_in, is_shared
from tile_core.simt.variant import Block, Placement, SimtCall, SimtVariant

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.lowering.variant import Variant

#: Ops whose variants read out-of-bounds elements as zero.
_ZERO_OUTSIDE = frozenset({"gemm", "gemm_sp"})


#: Reasons by the name of the variant, by the position of the call.
Withdrawals = Mapping[int, Mapping[str, str]]
_NONE: Withdrawals = {}


@dataclass(frozen=True)
class Selected:
    """The outcome.

    Attributes
    ----------
    body
        The program; remaining calls have a number (attribute ``tile.id``).
    selections
        The choice for each number.
    choices
        The choice for every op, for ``explain``.
    """

    body: Stmt
    selections: Mapping[int, Selection]
    choices: tuple[OpChoice, ...]

    def position(self, number: int) -> int:
        """Return the position of a numbered call among the choices."""
        return next(i for i, c in enumerate(self.choices) if c.selection is self.selections[number])


def select_ops(
    body: Stmt,
    ctx: Context,
    variants: Sequence[Variant],
    block: Block,
    safe_values: frozenset[str] = frozenset(),
    withdrawn: Withdrawals = _NONE,
    *,
    names_threads: bool,
) -> Selected:
    """Choose variants.

    Parameters
    ----------
    safe_values
        Names of buffers whose out-of-bounds reads are not zero: products of them take their plain loops.
    withdrawn
        Variants that gave a call back, with their reasons, by the call's position among all that are chosen for.
    names_threads
        Whether the traced program names its threads, which then execute such ops as atomics each for itself.

    Raises
    ------
    NoVariant, VariantMissing, VariantRefused
        If no variant (or not the forced one) lowers an op.
    """
    by_op: dict[str, list[Variant]] = {}
    for variant in variants:
        by_op.setdefault(variant.op, []).append(variant)
    rewriter = _Select(ctx, by_op, block, names_threads, safe_values)
    rewriter.withdrawn = withdrawn
    new = rewriter.stmt(body)
    return Selected(new, rewriter.selections, tuple(rewriter.choices))


def call_of(stmt: Stmt, block: Block, placement: Placement | None = None, divergent: bool = False) -> SimtCall:
    """Decode the tile call of a statement (or of a binding)."""
    call = OpCall.decode(stmt)
    return SimtCall(
        call.name, call.args, call.attrs, call.where, call.span, block=block, placement=placement or Placement(),
        divergent=divergent,
    )  # fmt: skip


def number_of(stmt: Stmt) -> int | None:
    """Return the number of a selected call in a statement; ``None`` without one."""
    if type(stmt) not in (tirx.Evaluate, tirx.Bind) or not nodes.is_tile_call(stmt.value):
        return None
    found = attribute(stmt.value, attributes.ID)
    return None if found is None else int(nodes.as_int(found))


class _Select(StmtRewriter):
    def __init__(
        self,
        ctx: Context,
        variants: Mapping[str, Sequence[Variant]],
        block: Block,
        names_threads: bool,
        safe_values: frozenset[str],
    ) -> None:
        self.safe_values = safe_values
        self.ctx, self.variants, self.block, self.names_threads = ctx, variants, block, names_threads
        self.withdrawn: Withdrawals = {}
        self.selections: dict[int, Selection] = {}
        self.choices: list[OpChoice] = []
        self.divergent = False

    def visit_For(self, s: Stmt) -> Stmt:
        outer, self.divergent = self.divergent, self.divergent or role(s) in ("parallel", "vectorized")
        new = super().visit_For(s)
        self.divergent = outer
        return new

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        outer, self.block = self.block, block_in(s, self.block) if is_shared(s) else self.block
        new = super().visit_AttrStmt(s)
        self.block = outer
        return new

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        if not is_op(s) or not self.known(s):
            return s
        call, selection = self.choose(s)
        if isinstance(selection.variant, SimtVariant):
            return tirx.Evaluate(self.numbered(s.value, selection), s.span)
        lowered = selection.lower(call, self.ctx)
        if not call.divergent and _is_of_fragments(lowered):
            # Of one element there is no loop; a fragment is placed by the loops that access it.
            lowered = nodes.for_loop(nodes.fresh("i"), 1, lowered, "parallel", span=call.span)
        return nodes.mark(attributes.OP_MARK, call.name, lowered, call.span)

    def visit_Bind(self, s: Stmt) -> Stmt:
        if not nodes.is_tile_call(s.value) or not self.known(s):
            return s
        _, selection = self.choose(s)
        return tirx.Bind(s.var, self.numbered(s.value, selection), s.span)

    def known(self, s: Stmt) -> bool:
        name = str(s.value.op.name)[5:]
        return name in OPS or name in self.variants

    def choose(self, s: Stmt) -> tuple[SimtCall, Selection]:
        alone = self.names_threads and str(s.value.op.name)[5:] in PER_THREAD_OPS
        call = call_of(s, self.block, divergent=self.divergent or alone)
        forced = call.attrs.get(attributes.VARIANT)
        mine = self.variants.get(call.name, ())
        if self.divergent:
            mine = [v for v in mine if isinstance(v, MeaningVariant) or getattr(v, "in_thread_code", False)]
        if attributes.HALVES in call.attrs:  # other variants would take the half of B for all of it
            mine = [v for v in mine if getattr(v, "of_pairs", False)]
        filled = any(isinstance(a, View) and a.name in self.safe_values for a in call.args)
        if filled and call.name in _ZERO_OUTSIDE:
            mine = [v for v in mine if isinstance(v, MeaningVariant)]
        gone = self.withdrawn.get(len(self.choices), {})
        named, in_order = None if forced is None else str(forced), requires_order(call, self.ctx)
        selection = select(call, mine, self.ctx, named, gone, in_order=in_order)
        self.choices.append(OpChoice(call, selection))
        return call, selection

    def numbered(self, value: Call, selection: Selection) -> Call:
        number = len(self.selections)
        self.selections[number] = selection
        attrs = {str(k): v for k, v in dict(value.attrs).items()} if value.attrs else {}
        return ir.Call(value.op, list(value.args), attrs={**attrs, attributes.ID: number}, ret_ty=value.ty)


def _is_of_fragments(s: Stmt) -> bool:
    """Whether a statement is one store that writes or reads an element of a fragment."""
    if not isinstance(s, tirx.BufferStore):
        return False
    return any(nodes.scope_of(b) == "local.fragment" for b in (s.buffer, *(x.source for x in loads_of(s))))
