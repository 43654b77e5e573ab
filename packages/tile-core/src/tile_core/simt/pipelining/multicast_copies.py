"""Multicast of a loop's copies: the target's choice, and the copies that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from tile_core.compat.types import Stmt
from tile_core.ir import nodes
from tile_core.ir.attributes import COMPLETION
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import OpCall
from tile_core.records import dataclass
from tile_core.simt.pipelining.async_products import accumulator_of
from tile_core.simt.pipelining.dependences import Analysis
from tile_core.simt.pipelining.multicast import (
    ChosenCluster,
    Clustering,
    halved,
    in_line,
    is_alone,
    marked,
    multicast_of,
)
from tile_core.simt.pipelining.plan import TRANSACTIONS, CanCopy, Prefetched, bytes_of, stages_of


@dataclass(frozen=True)
class Multicast:
    """The multicast decision for a loop.

    Attributes
    ----------
    choice
        Its copies.
    chosen
        The multicast; ``None`` if there is none.
    cluster
        Of the launch, along x, y and z.
    note
        Note in the report.
    """

    choice: Prefetched
    chosen: ChosenCluster | None
    cluster: tuple[int, int, int]
    note: str


@dataclass(frozen=True)
class MulticastAnalysis:
    """Facts about a program whose copies may be multicast.

    Attributes
    ----------
    clustering
        The target's part.
    analysis
        Of the program.
    can_copy
        Whether a copy can be made so.
    threads
        Of a block.
    """

    clustering: Clustering
    analysis: Analysis
    can_copy: CanCopy
    threads: int

    def of(
        self, grid: Mapping[int, Stmt], loop: Stmt, choice: Prefetched, call: OpCall, persistent: int | None = None,
    ) -> Multicast:  # fmt: skip
        """Return the multicast of a loop's copies.

        Parameters
        ----------
        grid
            The loops over blocks, by axis.
        loop
            As it was when the program was analysed.
        choice
            The prefetched copies.
        call
            Its asynchronous product.
        persistent
            The number of persistent blocks, numbered along one axis; ``None``: one block per tile.
        """
        counted = [c for c in choice.chosen if choice.facts.get(c.buffer, {}).get(COMPLETION) == TRANSACTIONS]
        if not counted:
            return _no_multicast(choice, "no copy completes on a transaction barrier")
        sizes = {c.buffer: bytes_of(c.buffer) for c in choice.chosen}
        binds = {v: e for v, e in self.analysis.flow.binds.items() if not nodes.is_tile_call(e)}
        alone = is_alone(grid, loop, call) and self.analysis.only_in(call.args[accumulator_of(call) - 1].buffer, [loop])
        found = multicast_of(
            self.clustering, grid, loop, counted, sizes, binds, call, alone, self.threads, stages_of(loop),
            self.can_copy, persistent is not None,
        )  # fmt: skip
        if isinstance(found, str):
            return _no_multicast(choice, found)
        if found.halves and persistent is not None:
            return _no_multicast(choice, "blocks with roles compute no product in pairs")
        if found.halves:
            return self.halves(choice, found, call)
        cluster, sets = found.offer.cluster, found.offer.sets
        if persistent is not None and persistent < prod(cluster):
            return _no_multicast(
                choice, f"{persistent} persistent block{'s'[: persistent - 1]}, fewer than a cluster of {prod(cluster)}"
            )
        launched = cluster if persistent is None else in_line(cluster)
        calls = {c.buffer: replace(c.call, attrs={**c.call.attrs, **marked(launched, sets[c.buffer])})
                 for c in choice.chosen if c.buffer in sets}  # fmt: skip
        answers = {b: self.can_copy(call) for b, call in calls.items()}
        facts = {**choice.facts, **{b: a.facts for b, a in answers.items() if isinstance(a, Accept)}}
        chosen = [replace(c, call=calls.get(c.buffer, c.call)) for c in choice.chosen]
        loads = f"each of which loads {found.offer.loaded:,} of {sum(sizes.values()):,} bytes an iteration"
        text = f"clusters of {' x '.join(map(str, cluster[:2]))} blocks, {loads}"
        return Multicast(replace(choice, chosen=chosen, facts=facts), found, launched, text)

    def halves(self, choice: Prefetched, found: ChosenCluster, call: OpCall) -> Multicast:
        """Return the copies and the note of a product that pairs of blocks compute."""
        cluster, b = found.offer.cluster, call.args[accumulator_of(call) - 1].buffer
        chosen = [halved(c, call, cluster) if c.buffer.same_as(b) else c for c in choice.chosen]
        answer = self.can_copy(next(c.call for c in chosen if c.buffer.same_as(b)))
        if not isinstance(answer, Accept) or answer.facts.get(COMPLETION) != TRANSACTIONS:
            reason = answer.reason if isinstance(answer, Reject) else "it does not complete on a transaction barrier"
            text = f"blocks compute no product in pairs: half of {b.name}: {reason}"
            return Multicast(choice, None, (1, 1, 1), text)
        text = f"pairs of blocks compute a product together; each loads half of the columns of {b.name}"
        return Multicast(replace(choice, chosen=chosen, facts={**choice.facts, b: answer.facts}), found, cluster, text)


def _no_multicast(choice: Prefetched, reason: str) -> Multicast:
    return Multicast(choice, None, (1, 1, 1), f"no multicast: {reason}")
