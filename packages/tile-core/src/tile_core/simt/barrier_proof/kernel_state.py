"""State of an execution of a kernel's barriers: objects, groups in flight, writes without fences."""

from __future__ import annotations

from tile_core.analysis.phases import OF_CLUSTER, Location, PhaseError, Phases, overlap
from tile_core.simt.barrier_proof.tensor_memory import TensorMemory
from tile_core.simt.barrier_proof.translation import Translated
from tile_core.simt.barrier_proof.warp_classes import WarpClasses

Access = tuple[str, Location, bool]
"""Buffer, elements, and whether it is a write."""


def _threads(threads: list[int]) -> str:
    first, last = threads[0], threads[-1]
    return f"thread {first}" if first == last else f"threads {first} to {last}"


class KernelState:
    """Hold the data that agents of an execution share.

    Parameters
    ----------
    kernel
        The translated kernel.
    classes
        Its agents in each block.
    blocks
        Number of blocks of a cluster.

    Attributes
    ----------
    groups
        By agent and their end: accesses of its groups in flight, and of the open one.
    """

    def __init__(self, kernel: Translated, classes: WarpClasses, blocks: int) -> None:
        self.kernel, self.classes, self.copied = kernel, classes, frozenset(kernel.copied)
        #: Buffers of pipelined loops that threads fill themselves.
        self.rings = frozenset(kernel.rings) - self.copied
        self.ranks = range(blocks)
        names = [f"{name}[{i}]" if count > 1 else name for name, count in kernel.barriers for i in range(count)]
        weights = [len(threads) for threads in classes.agents]
        of = [f" of block {rank}" if rank else "" for rank in self.ranks]
        self.phases = Phases(weights * blocks, [(n + of[rank], 1) for rank in self.ranks for n in names], blocks)
        each = len(names)
        self.objects = [self.phases.barriers[rank * each : (rank + 1) * each] for rank in self.ranks]
        self.starts, total = [], 0
        for _, count in kernel.barriers:
            self.starts.append(total)
            total += count
        self.all_threads = sum(weights) * blocks
        of_block = [(rank, threads) for rank in self.ranks for threads in classes.agents]
        self.ranks_of = [rank for rank, _ in of_block]
        #: By agent, of the names of its block's buffers.
        self.suffixes = [f"@{rank}" if rank else "" for rank in self.ranks_of]
        self.names = [_threads(threads) + (f" of block {rank}" if blocks > 1 else "") for rank, threads in of_block]
        self.groups: list[dict[str, list[list[Access]]]] = [{} for _ in of_block]
        #: By number of an object: its initialization, and the phase in which it was.
        self.made: dict[int, tuple[int, int]] = {}
        self.first: dict[int, int] = {}
        #: By agent, the time of its latest use.
        self.used: dict[int, dict[int, int]] = {}
        #: The fence behind its initialization.
        self.visible: dict[int, tuple[int, int]] = {}
        self.waiting: dict[tuple[int, int], list[tuple[int, int, list[int]]]] = {}
        self.meetings: dict[int, tuple[list[list[int]], list[int]]] = {}
        self.filled: dict[str, dict[tuple[Location, int], int]] = {}
        #: By agent, the time of its latest wait for other threads.
        self.joined = [0 for _ in of_block]
        #: Slots that agents have written since their last fence, and the fences behind the writes.
        self.unfenced: dict[tuple[str, Location], set[int]] = {}
        self.fenced: dict[tuple[str, Location], dict[int, int]] = {}
        self.tensor = TensorMemory(self.phases, self.ranks_of, self.names)
        self.aliases = dict(kernel.aliases)
        #: By buffer that shares bytes with others, the latest access by each agent.
        self.entered: dict[str, dict[int, int]] = {}
        #: By block and column of clocks, the latest time of what others do to its objects and buffers.
        self.sent: dict[tuple[int, int], int] = {}
        self.has_content: set[tuple[str, Location]] = set()
        self.steps = 0

    def named(self, buffer: str, rank: int) -> str:
        """Return the name of a buffer in a block."""
        return f"{buffer}@{rank}" if rank else buffer

    def free(self, rank: int, buffer: str, where: Location, what: str) -> None:
        """Require that no reads in flight access a part of a buffer."""
        for agent, groups in enumerate(self.groups):
            if self.ranks_of[agent] != rank:
                continue
            for group in (*groups.get("products", ()), *groups.get("read", ())):
                for read, at, _ in group:
                    if read == buffer and overlap(at, where):
                        reason = f"{buffer} may be written while instructions of {self.names[agent]} in flight read it"
                        raise PhaseError(what, reason)

    def enter(self, agent: int, rank: int, buffer: str) -> None:
        """Require that earlier accesses to buffers with the same bytes as one have ended."""
        for other in self.aliases[buffer]:
            name = self.named(other, rank)
            times = [(who, time) for (_, _, who), time in self.phases.accesses.get(name, {}).items()]
            times += [(who, time) for (_, who), time in self.filled.get(name, {}).items()]
            times += self.entered.get(name, {}).items()
            if self.in_flight(rank, other) or not all(self.precedes(who, time, agent) for who, time in times):
                raise PhaseError(buffer, f"its bytes may still be in use by {other}")
        self.entered.setdefault(self.named(buffer, rank), {})[agent] = self.phases.event(agent)

    def in_flight(self, rank: int, buffer: str) -> bool:
        """Whether instructions in flight of a block's threads access a buffer."""
        of_block = (g for agent, g in enumerate(self.groups) if self.ranks_of[agent] == rank)
        return any(x[0] == buffer for groups in of_block for of in groups.values() for group in of for x in group)

    def require_content(self, agent: int, buffer: str, where: Location) -> None:
        """Require that copies to a slot were issued, or that threads wrote it."""
        name = buffer + self.suffixes[agent]
        if buffer not in self.copied or (name, where) in self.has_content:
            return
        written = [at for at, writes, _ in self.phases.accesses.get(name, ()) if writes]
        written += [at for other, at in (*self.unfenced, *self.fenced) if other == name]
        if not any(overlap(at, where) for at in written):
            raise PhaseError(buffer, "it is read before a copy to it")
        self.has_content.add((name, where))

    def require_filled(self, agent: int, buffer: str, where: Location) -> None:
        """Require that copies in groups to a slot have arrived for an agent."""
        for other, groups in enumerate(self.groups):
            if self.ranks_of[other] != self.ranks_of[agent]:
                continue
            for group in groups.get("group", ()):
                if (buffer, where, True) in group:
                    raise PhaseError(buffer, f"copies of {self.names[other]} to it may be in flight")
        for (at, number), time in self.filled.get(buffer + self.suffixes[agent], {}).items():
            if at == where and not self.precedes(number, time, agent):
                raise PhaseError(buffer, f"copies of {self.names[number]} to it may not be visible")

    def precedes(self, number: int, time: int, agent: int) -> bool:
        """Whether an event of one agent precedes the next one of another."""
        if number == agent and self.phases.teams[agent] > 1:
            return self.joined[agent] > time
        return self.phases.clocks[agent][number] >= time

    def require_free(self, agent: int, buffer: str, where: Location) -> None:
        """Require that all threads have read a slot before an agent writes it."""
        name = buffer + self.suffixes[agent]
        for (at, _, number), time in self.phases.accesses.get(name, {}).items():
            if number == agent and overlap(at, where) and not self.precedes(number, time, agent):
                raise PhaseError(buffer, "it may be written while other threads read it")
        if self.phases.conflicts(agent, name, where):
            raise PhaseError(buffer, "it may be written while it is in use")

    def require_fenced(self, agent: int, buffer: str, where: Location) -> None:
        """Require a fence and a barrier between writes of threads and an asynchronous read."""
        key = buffer + self.suffixes[agent], where
        if self.unfenced.get(key):
            who = self.names[min(self.unfenced[key])]
            raise PhaseError(buffer, f"no fence makes writes of {who} visible to asynchronous instructions")
        for number, time in self.fenced.get(key, {}).items():
            if self.phases.clocks[agent][number] < time:
                raise PhaseError(buffer, f"writes of {self.names[number]} may not be visible")

    def require_ended(self) -> None:
        """Require that threads have waited for copies and products, and blocks for each other."""
        for (rank, column), time in self.sent.items():
            clocks = (clock for n, clock in enumerate(self.phases.clocks) if self.ranks_of[n] == rank)
            if all(clock[column] < time for clock in clocks):
                raise PhaseError(OF_CLUSTER, f"block {rank} may end before another one has used its shared memory")
        for agent, groups in enumerate(self.groups):
            for buffer in (x[0] for of in groups.values() for group in of for x in group):
                if buffer in self.kernel.rings:
                    raise PhaseError(buffer, f"{self.names[agent]} never wait for copies or products that access it")

    def require_ordered(self) -> None:
        """Require that no two accesses are unordered."""
        if self.phases.unordered:
            name = min(self.phases.unordered).partition("@")[0]
            raise PhaseError(name, "a copy may not have arrived, or writes it while it is in use")
