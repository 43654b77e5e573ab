"""Roles: consecutive threads of a block with the same task; by default all threads."""

from __future__ import annotations

from tile_core.errors.base import InternalError
from tile_core.records import dataclass


@dataclass(frozen=True)
class Role:
    """A part of a block.

    Attributes
    ----------
    name
        For messages.
    first
        Number of its first thread in the block.
    count
        How many threads it has.

    Raises
    ------
    InternalError
        If it has no threads.
    """

    name: str
    first: int
    count: int

    def __post_init__(self) -> None:
        if self.first < 0 or self.count < 1:
            detail = f"{self.name} has {self.count} threads from {self.first} on"
            raise InternalError(stage="roles", detail=detail)

    @property
    def threads(self) -> range:
        """Numbers of its threads in the block."""
        return range(self.first, self.first + self.count)

    @property
    def leader(self) -> Role:
        """The first thread alone."""
        return self if self.count == 1 else Role(f"first of {self.name}", self.first, 1)

    def warps(self, width: int) -> int:
        """Return the number of groups of ``width`` threads in the role.

        Raises
        ------
        InternalError
            If it begins or ends inside of one.
        """
        if self.first % width or self.count % width:
            detail = f"{self.name}, threads {self.first} to {self.first + self.count - 1}, is not made of whole warps"
            raise InternalError(stage="roles", detail=detail)
        return self.count // width

    def __str__(self) -> str:
        last = self.first + self.count - 1
        return f"{self.name} (thread {last})" if self.count == 1 else f"{self.name} (threads {self.first}-{last})"
