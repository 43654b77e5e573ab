"""State of a schedule's execution: threads, copies in flight, and barrier objects."""

from __future__ import annotations

from dataclasses import field

from tile_core.records import dataclass
from tile_core.simt.pipelining.schedule import CopyGroup, RoleProgram, Transactions


class Unbalanced(Exception):
    """A check failed."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(what, reason)
        self.what, self.reason = what, reason


@dataclass
class Thread:
    """A thread that represents several threads of a role.

    Attributes
    ----------
    weight
        The number of represented threads.
    block
        Of the cluster.
    clock
        The events before its next one, as a set of bits.
    met
        Whether it has met the other blocks, whose barriers exist since then.
    position
        Of its latest step among the steps of an iteration.
    open, groups
        Copies that are in no group yet, and groups of copies in flight, oldest first.
    uses
        Asynchronous uses: the event and the iteration of each, oldest first.
    """

    number: int
    program: RoleProgram
    leads: bool
    weight: int
    block: int = 0
    clock: int = 0
    met: bool = False
    iteration: int = -1
    position: int = 0
    at: int = -1
    open: list[Flight] = field(default_factory=list)
    groups: list[list[Flight]] = field(default_factory=list)
    uses: list[tuple[int, int]] = field(default_factory=list)
    waits: str = ""
    done: bool = False


@dataclass
class Flight:
    """Copies in flight for one slot, with their bytes; or uses until their arrival.

    Attributes
    ----------
    arrives
        The barrier at which it arrives when it is complete.
    """

    event: int
    iteration: int
    group: CopyGroup | None
    before: int
    block: int
    bytes: int
    arrives: str = ""

    @property
    def barrier(self) -> str:
        """The barrier at which it completes."""
        completion = None if self.group is None else self.group.completion
        return completion.barrier if isinstance(completion, Transactions) else self.arrives

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self.arrives if self.group is None else self.group.name


@dataclass
class Object:
    """One barrier object: current phase, missing arrivals and bytes, and events before its end."""

    phase: int = 0
    arrivals: int = 0
    bytes: int = 0
    announced: int = 0
    delivered: int = 0
    clock: int = 0
    ends: list[tuple[int, int]] = field(default_factory=list)
