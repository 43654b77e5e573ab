"""Columns of tensor memory in an execution: accesses of threads and of products."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.analysis.phases import Location, PhaseError, Phases

NAME = "tensor memory"
"""As messages call it."""
_OF_THREADS, _OF_PRODUCTS = "tensor memory of threads", "tensor memory of products"


class TensorMemory:
    """The tensor memory of all blocks of a cluster.

    Threads access lanes of their own, so that only products and threads conflict, and products of different threads.

    Parameters
    ----------
    phases
        The order of events.
    ranks, names
        The block of each agent, and its name.
    """

    def __init__(self, phases: Phases, ranks: Sequence[int], names: Sequence[str]) -> None:
        self.phases, self.ranks, self.names = phases, ranks, names
        #: By agent, its latest access.
        self.latest: dict[int, int] = {}
        #: Blocks whose columns are free again.
        self.freed: set[int] = set()
        #: By agent, the accesses of products that arrive nowhere yet: block, columns, and whether it is a write.
        self.pending: dict[int, list[tuple[int, Location, bool]]] = {}

    def access(self, agent: int, where: Location, writes: bool) -> None:
        """Access columns by the threads of an agent."""
        rank, clock = self.ranks[agent], self.phases.clocks[agent]
        self._require_allocated(rank)
        self._require_arrived(agent, rank, where, writes, own=True)
        for (at, wrote, who), time in self.phases.accesses.get(f"{_OF_PRODUCTS}@{rank}", {}).items():
            if (writes or wrote) and _meet(at, where) and clock[who] < time:
                raise PhaseError(NAME, "it may be accessed while a product in flight uses it")
        found = self.phases.accesses.setdefault(f"{_OF_THREADS}@{rank}", {})
        self.latest[agent] = found[where, writes, agent] = self.phases.event(agent)

    def multiply(self, agent: int, ranks: Sequence[int], where: Location, writes: bool, joined: int) -> None:
        """Access columns of some blocks by a product, until it arrives.

        Parameters
        ----------
        joined
            When the threads of the agent have last waited for each other.
        """
        clock, mine = self.phases.clocks[agent], self.phases.products + agent
        for rank in ranks:
            self._require_allocated(rank)
            self._require_arrived(agent, rank, where, writes, own=False)
            for (at, wrote, who), time in self.phases.accesses.get(f"{_OF_THREADS}@{rank}", {}).items():
                known = joined if who == agent and self.phases.teams[agent] > 1 else clock[who]
                if (writes or wrote) and _meet(at, where) and known < time:
                    raise PhaseError(NAME, f"{self.names[who]} may not have accessed what a product uses")
            for (at, wrote, who), time in self.phases.accesses.get(f"{_OF_PRODUCTS}@{rank}", {}).items():
                if (writes or wrote) and who != mine and _meet(at, where) and clock[who] < time:
                    raise PhaseError(NAME, "products of several threads may use it")
            access = rank, where, writes
            if access not in self.pending.setdefault(agent, []):
                self.pending[agent].append(access)
        self.latest[agent] = self.phases.event(agent)

    def arrive(self, agent: int, number: int) -> None:
        """Let all products of an agent arrive, as its group of a number."""
        for rank, where, writes in self.pending.pop(agent, ()):
            found = self.phases.accesses.setdefault(f"{_OF_PRODUCTS}@{rank}", {})
            found[where, writes, self.phases.products + agent] = number

    def free(self, agent: int, of_cluster: bool) -> None:
        """Free all columns, after all accesses."""
        mine = set(self.ranks) if of_cluster else {self.ranks[agent]}
        for other, time in self.latest.items():
            if self.ranks[other] in mine and self.phases.clocks[agent][other] < time:
                raise PhaseError(NAME, f"{self.names[other]} may still access it")
        self.freed |= mine

    def _require_allocated(self, rank: int) -> None:
        if rank in self.freed:
            raise PhaseError(NAME, "it may be freed before")

    def _require_arrived(self, agent: int, rank: int, where: Location, writes: bool, own: bool) -> None:
        """Require that no product uses columns that arrives nowhere yet."""
        for other, accesses in self.pending.items():
            for of, at, wrote in accesses:
                if (own or other != agent) and of == rank and (writes or wrote) and _meet(at, where):
                    raise PhaseError(NAME, f"a product of {self.names[other]} in flight may use it")


def _meet(a: Location, b: Location) -> bool:
    """Whether two ranges of columns have common ones."""
    (first, count), (other, more) = a[0] or (0, 0), b[0] or (0, 0)
    return first < other + more and other < first + count
