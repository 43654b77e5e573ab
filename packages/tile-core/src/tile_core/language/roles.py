"""``T.ws``: work of a part of a block's threads."""

from __future__ import annotations

from math import prod
from types import TracebackType

from tile_core.errors.language import BadArgument, OutsideKernel
from tile_core.errors.ops import BadRole
from tile_core.ir import calls
from tile_core.values.builder import Builder, Scope, current
from tile_core.values.checks import python_int, shown

#: Default number of threads of a group.
GROUP = 128


class RoleScope:
    """Statements that a part of the block's threads executes: ``with T.ws(0, 1):``.

    It selects the threads of the work, not its results: these equal the results of the kernel without it. Statements of
    different roles that do not depend on each other run at the same time; where they do, barriers order them, of the
    role's threads inside of it and of the block outside. Tiles in registers belong to the role if nothing else uses
    them.

    Parameters
    ----------
    *groups
        Numbers of groups of threads, ascending without gaps: ``T.ws(1, 2)`` is threads 128 to 383.
    size
        Threads of a group.

    Raises
    ------
    OutsideKernel, BadArgument, BadRole
        Outside a launch; for other numbers, or threads that the block does not have; inside another ``T.ws`` or a
        data-parallel loop.
    """

    def __init__(self, *groups: int, size: int = GROUP) -> None:
        self.builder: Builder = current("T.ws")
        if self.builder.threads is None:
            raise OutsideKernel(what="T.ws")
        threads, each = prod(self.builder.threads), python_int(size)
        if each is None or each < 1:
            expected, instead = "a positive number of threads", "leave it out"
            raise BadArgument(function="ws", name="size", found=shown(size), expected=expected, instead=instead)
        first = python_int(groups[0]) if groups else None
        if first is None or first < 0 or [python_int(g) for g in groups] != list(range(first, first + len(groups))):
            found, expected = (
                f"({', '.join(map(shown, groups))})",
                "numbers of groups without gaps, ascending, from 0 on",
            )
            raise BadArgument(function="ws", name="groups", found=found, expected=expected, instead="write T.ws(0)")
        self.first, self.count = first * each, len(groups) * each
        if self.first + self.count > threads:
            last, most = self.first + self.count - 1, threads - 1
            fix = f"launch with threads={self.first + self.count} or more, or name other groups"
            raise BadRole(found=f"T.ws names threads {self.first} to {last}, the block has 0 to {most}", fix=fix)
        around = {s.kind for s in self.builder.scope.ancestors()}
        if around & {"role", "parallel"}:
            where = "another T.ws" if "role" in around else "a data-parallel loop"
            raise BadRole(found=f"T.ws is inside {where}", fix="close that first: all threads arrive at T.ws")
        self.scope: Scope | None = None

    def __enter__(self) -> None:
        self.span = self.builder.span()
        self.scope = self.builder.push("role", runtime=False)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None or self.scope is None:
            return
        name = f"threads {self.first}-{self.first + self.count - 1}"
        self.builder.emit(calls.only((name, self.first, self.count), self.builder.pop(self.scope), self.span))


ws = RoleScope
RoleScope.__init__.__qualname__ = "ws.__init__"  # the public name, which Python's own errors print
