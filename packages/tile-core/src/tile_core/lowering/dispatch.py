"""Variant selection by priority; an error lists the rejection reasons of all variants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tile_core.compat.types import Stmt
from tile_core.errors.base import TileError, Where
from tile_core.errors.lowering import NoVariant, OpUnavailable, VariantCrashed, VariantMissing, VariantRefused
from tile_core.errors.plugins import AmbiguousPriority, DuplicateVariant
from tile_core.ir.attributes import CALLED, Attrs
from tile_core.lowering.variant import Accept, DecodedCall, Reject, Variant, Withdrawn
from tile_core.records import dataclass
from tile_runtime.errors.guess import hint
from tile_runtime.errors.interrupts import passed_on

if TYPE_CHECKING:
    from tile_core.context import Context


_NONE: Mapping[str, str] = {}
OUT_OF_ORDER = 'it does not add floats in ascending order, as numerics="strict" requires'


class Rejection(NamedTuple):
    """A variant that refused the call."""

    name: str
    reason: str


@dataclass(frozen=True)
class Selection:
    """The outcome for one call, kept for ``explain``.

    Parameters
    ----------
    variant
        The chosen one.
    accepted
        Its answer.
    rejected
        Rejected variants of higher priority, in order, with their reasons.
    forced
        Whether the program named the variant.
    """

    variant: Variant
    accepted: Accept
    rejected: tuple[Rejection, ...] = ()
    forced: bool = False

    def lower(self, call: DecodedCall, ctx: Context) -> Stmt:
        """The statement that the chosen variant makes of the call.

        Raises
        ------
        VariantCrashed
            If it raises an error outside the catalogue, returns no statement, or one that writes nothing.
        """
        statement = guarded(self.variant, "lower", call, ctx)
        from tile_core.lowering.write_check import problem_of
        from tile_core.numerics.regions import in_region

        detail = "lowered the call to nothing" if statement is None else problem_of(call.name, statement)
        if detail:
            raise VariantCrashed(where=call.where, variant=self.variant.name, detail=detail)
        return in_region(statement, call.attrs, ctx.options)


def select(
    call: DecodedCall, variants: Sequence[Variant], ctx: Context, forced: str | None = None,
    withdrawn: Mapping[str, str] = _NONE, *, in_order: bool = False,
) -> Selection:  # fmt: skip
    """Choose the variant that lowers a call.

    Parameters
    ----------
    call
        The tile op.
    variants
        All variants of the target, in any order.
    ctx
        The compilation's context.
    forced
        Name of the only variant to consider, if the program requires one.
    withdrawn
        Reasons of variants that accepted the call before, by name.
    in_order
        Whether only variants that combine floats in the order of the reference semantics may lower it.

    Raises
    ------
    NoVariant
        If all refuse; the message is a table with one row per variant.
    OpUnavailable
        If the target has none for this op.
    VariantMissing, VariantRefused
        If ``forced`` does not exist or does not fit.
    VariantCrashed
        If a variant raises, or answers with another type.
    """
    mine = sorted((v for v in variants if v.op == call.name), key=lambda v: -v.priority)
    if in_order:
        withdrawn = {v.name: OUT_OF_ORDER for v in mine if not v.in_order} | dict(withdrawn)
    if forced is not None:
        return _take(call, mine, ctx, forced, withdrawn)
    if not mine:
        raise OpUnavailable(where=call.where, op=call.name, target=ctx.target, hint=_other_ops(variants))
    rejected: list[Rejection] = []
    for variant in mine:
        answer = _decide(variant, call, ctx, withdrawn)
        if isinstance(answer, Accept):
            return Selection(variant, answer, tuple(rejected))
        rejected.append(Rejection(variant.name, answer.reason))
    raise NoVariant(where=call.where, op=call.name, target=ctx.target, table=reasons_table(rejected))


def guarded(variant: Variant, method: str, call: DecodedCall, ctx: Context) -> Any:
    """Query a variant, possibly third-party, about a call.

    Raises
    ------
    VariantCrashed
        If it raises an error outside the catalogue.
    """
    try:
        return getattr(variant, method)(call, ctx)
    except TileError as error:
        raise error.at(call.where) from error.__cause__
    except (KeyboardInterrupt, Withdrawn):
        raise
    except BaseException as error:
        passed_on(error)
        # Passing over a crash would hide a defect behind a slower variant.
        detail = f"raised {type(error).__name__}: {error}"
        raise VariantCrashed(where=call.where, variant=variant.name, detail=detail) from error


def reasons_table(rejected: Sequence[Rejection]) -> str:
    """The reasons as lines of two columns."""
    width = max((len(name) for name, _ in rejected), default=0)
    return "\n".join(f"  {name:<{width}}  {reason}" for name, reason in rejected)


def check_variants(target: str, parts: Mapping[str, Sequence[Variant]]) -> tuple[Variant, ...]:
    """Join the variants of several backends for one target.

    Parameters
    ----------
    target
        The target's text, for messages.
    parts
        The variants by backend.

    Returns
    -------
    tuple
        All of them by op, highest priority first.

    Raises
    ------
    DuplicateVariant
        If two have the same name.
    AmbiguousPriority
        If two of the same op have the same priority.
    """
    owners: dict[str, str] = {}
    priorities: dict[tuple[str, int], str] = {}
    for backend, variants in parts.items():
        for variant in variants:
            if variant.name in owners:
                first = owners[variant.name]
                raise DuplicateVariant(target=target, found=variant.name, first=first, second=backend)
            owners[variant.name] = backend
            key = (variant.op, variant.priority)
            if key in priorities:
                first, second = priorities[key], variant.name
                raise AmbiguousPriority(op=variant.op, priority=variant.priority, first=first, second=second)
            priorities[key] = variant.name
    return tuple(sorted((v for part in parts.values() for v in part), key=lambda v: (v.op, -v.priority)))


def missing(
    attrs: Attrs, found: str, op: str, names: Sequence[str], target: object, where: Where | None
) -> VariantMissing:
    """Return the error for a variant that the target lacks; ``names`` are the op's others."""
    if CALLED in attrs:
        name, instead = (str(part) for part in attrs[CALLED])
        fix = f"{instead}, which every target has" if instead else "leave it out for this target"
        return VariantMissing(where=where, target=target, wanted=f"{name} ({found})", known="", hint=fix)
    fix = hint(found, names, "choose one that the target has, or do not force a variant", "'{}'")
    known = f"; it has: {', '.join(names) or 'none'}"
    return VariantMissing(where=where, target=target, wanted=f"variant {found!r} of {op}", known=known, hint=fix)


def refused(attrs: Attrs, found: str, op: str, reason: str, target: object, where: Where | None) -> VariantRefused:
    """Return the error of a call whose variant does not fit."""
    wanted, instead = f"requested variant {found} of {op}", "do not force the variant"
    if CALLED in attrs:
        name, other = (str(part) for part in attrs[CALLED])
        wanted, instead = f"{name} ({found})", other or "leave it out"
    return VariantRefused(where=where, target=target, wanted=wanted, instead=instead, reason=reason)


def _take(
    call: DecodedCall, mine: Sequence[Variant], ctx: Context, forced: str, withdrawn: Mapping[str, str]
) -> Selection:
    names = [variant.name for variant in mine]
    if forced not in names:
        raise missing(call.attrs, forced, call.name, names, ctx.target, call.where)
    variant = mine[names.index(forced)]
    answer = _decide(variant, call, ctx, withdrawn)
    if isinstance(answer, Reject):
        raise refused(call.attrs, forced, call.name, answer.reason, ctx.target, call.where)
    return Selection(variant, answer, forced=True)


def _decide(variant: Variant, call: DecodedCall, ctx: Context, withdrawn: Mapping[str, str]) -> Accept | Reject:
    if variant.name in withdrawn:
        return Reject(withdrawn[variant.name])
    answer = guarded(variant, "accepts", call, ctx)
    if isinstance(answer, (Accept, Reject)):
        return answer
    detail = f"answered {answer!r} where Accept or Reject is expected"
    raise VariantCrashed(where=call.where, variant=variant.name, detail=detail)


def _other_ops(variants: Sequence[Variant]) -> str:
    ops = sorted({variant.op for variant in variants})
    return f"it has variants of: {', '.join(ops)}" if ops else "the target has no variants"
