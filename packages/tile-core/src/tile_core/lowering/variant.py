"""The interface that a backend implements for each way to lower a tile op.

A *variant* is a name, an op, a priority, a legality table as data and three functions. The dispatcher tries variants in
the order of their priorities and keeps each reason; a variant does not depend on the name of its target.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from tile_core.compat.types import Operand, Span, Stmt
from tile_core.errors.base import Where
from tile_core.ir.attributes import Attrs
from tile_core.lowering.legality import Asked, Legality
from tile_core.records import dataclass
from tile_core.target import FrozenMap

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.layout.base import LayoutMap


class DecodedCall(Protocol):
    """One decoded tile op of a program.

    Attributes
    ----------
    name
        Name of the op without its prefix, for example ``"gemm"``.
    args
        Buffer regions and expressions in the order of the op's signature.
    attrs
        The op's compile-time attributes.
    where
        The user's line.
    span
        The statement's place in the source.
    """

    @property
    def name(self) -> str:
        """Name of the op without its prefix."""

    @property
    def args(self) -> tuple[Operand, ...]:
        """Buffer regions and expressions in the order of the op's signature."""

    @property
    def attrs(self) -> Attrs:
        """The op's compile-time attributes."""

    @property
    def where(self) -> Where | None:
        """The user's line."""

    @property
    def span(self) -> Span:
        """The statement's place in the source."""


TargetCall: TypeAlias = Any
"""The call type of the target's pipeline, such as ``SimtCall``; each variant declares it."""


@dataclass(frozen=True)
class Accept:
    """The variant lowers this call.

    Parameters
    ----------
    note
        What ``explain`` prints about the choice, for example ``"64x128x16, 4 instructions per step"``.
    facts
        Decisions of the variant, for its own ``layouts`` and ``lower`` and for ``explain``.
    """

    note: str = ""
    facts: Attrs = field(default_factory=FrozenMap)


@dataclass(frozen=True)
class Reject:
    """A rejection; ``reason`` states the value found, the requirement and the nearest legal value."""

    reason: str


class Withdrawn(Exception):
    """Raised by ``lower`` if the placement or the known corners of operands do not fit.

    It then counts as one that has refused the call, and the choice begins anew.

    Parameters
    ----------
    reason
        As in ``Reject``.

    Attributes
    ----------
    number
        Of the call, set by the caller that requested the statement.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.number = -1


class Variant(ABC):
    """One way to lower one tile op.

    Attributes
    ----------
    name
        Unique per target, starting with its owner's name: ``"cpu.gemm.packed"``.
    op
        Name of the op without prefix: ``"gemm"``.
    priority
        Higher is tried first; unique among the variants of the op on a target.
    legality
        What the variant can lower, as data.
    fallback
        Whether this is the slow fallback that always exists; choosing it because better ones refuse is reported.
    option
        Name of the backend's option without which it accepts no call; empty if it needs none.
    in_order
        Whether it combines floats in the order of the op's reference semantics, each step rounded as written there.
    """

    name: str
    op: str
    priority: int = 0
    legality: Legality = Legality()
    fallback: bool = False
    option: str = ""
    in_order: bool = False

    def asked(self, call: TargetCall, ctx: Context) -> Asked:
        """State the facts of ``call`` for the legality table.

        A variant with a table must state every fact that the table constrains; sizes that are not known at compile
        time are ``None``.
        """
        return Asked()

    def accepts(self, call: TargetCall, ctx: Context) -> Accept | Reject:
        """Return whether this variant lowers ``call``; by default by its legality table.

        It must not change anything and must not raise for a call that the op's own checks accepted. An override
        extends the table: ``answer = super().accepts(call, ctx)``, then return it if it is a ``Reject``.
        """
        reasons = self.legality.check(self.asked(call, ctx), self.name)
        return Reject("; ".join(reasons)) if reasons else Accept()

    def layouts(self, call: TargetCall, ctx: Context) -> Mapping[int, LayoutMap]:
        """The layouts that this variant needs, by buffer; buffers that are not named are free.

        Called only after ``accepts`` answered with ``Accept``.
        """
        return {}

    @abstractmethod
    def lower(self, call: TargetCall, ctx: Context) -> Stmt:
        """The statement that replaces ``call``.

        Called after layouts are final. Returns a tirx statement with the call's span; new IR, never a changed input.
        """

    def __repr__(self) -> str:
        return f"<variant {self.name} of {self.op}, priority {self.priority}>"
