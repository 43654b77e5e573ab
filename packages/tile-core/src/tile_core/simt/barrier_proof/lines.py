"""Lines of the function that executes a kernel's barriers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

_ACCESSES = ("x.use(", "x.touch(", "x.write(", "x.fill(", "x.register(", "x.operand(", "x.tensor(", "x.enter(")


class Level(IntEnum):
    """Effects of lines, in rising order.

    ``PLAIN`` computes a value, ``SOFT`` accesses memory or prepares a barrier, ``ORDER`` arrives or copies, and
    ``WAITS`` may block, or issues products.
    """

    PLAIN = 0
    SOFT = 1
    ORDER = 2
    WAITS = 3


@dataclass
class EmittedLine:
    """A line, or a block with its header.

    Attributes
    ----------
    text
        Without indentation.
    uses
        Variables that it reads.
    defines
        A variable that it assigns.
    level
        What the line itself does.
    body, other
        Lines inside, and those of the ``else`` branch.
    period
        Of the remainders in it.
    count
        Of a loop: its trip count if that is constant, else empty.
    highest
        The highest level of the line and the lines inside.
    assigned
        The variables that they assign.
    """

    text: str
    uses: frozenset[str] = frozenset()
    defines: str = ""
    level: Level = Level.PLAIN
    body: list[EmittedLine] = field(default_factory=list)
    other: list[EmittedLine] = field(default_factory=list)
    period: int = 1
    count: str | None = None
    highest: Level = field(init=False)
    assigned: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        inside = [*self.body, *self.other]
        self.highest = max([self.level, *[x.highest for x in inside]])
        own = (self.defines,) if self.defines else ()
        self.assigned = frozenset(own).union(*[x.assigned for x in inside])


def level_of(lines: Iterable[EmittedLine]) -> Level:
    """Return the highest level in some lines."""
    return max([x.highest for x in lines], default=Level.PLAIN)


def needed(lines: list[EmittedLine]) -> frozenset[str]:
    """Return the variables that the effects of some lines depend on."""
    used: frozenset[str] = frozenset()
    while True:
        more = used.union(*[x.uses for x in kept_lines(lines, used)])
        if more == used:
            return used
        used = more


def _is_kept(line: EmittedLine, used: frozenset[str]) -> bool:
    return line.highest > Level.PLAIN or not used.isdisjoint(line.assigned)


def kept_lines(lines: list[EmittedLine], used: frozenset[str]) -> list[EmittedLine]:
    """Return all lines that stay, blocks before the lines inside."""
    found = []
    for line in lines:
        if line.highest > Level.PLAIN or not used.isdisjoint(line.assigned):
            found.append(line)
            if line.body or line.other:
                found += [*kept_lines(line.body, used), *kept_lines(line.other, used)]
    return found


def rendered(lines: Iterable[EmittedLine], used: frozenset[str], depth: int = 1) -> Iterator[str]:
    """Yield the texts of the lines that stay."""
    for line in lines:
        if not _is_kept(line, used):
            continue
        yield "  " * depth + line.text
        if line.text.endswith(":") and line.body:
            yield from rendered(line.body, used, depth + 1)
        other = list(rendered(line.other, used, depth + 1)) if line.other else []
        if other:
            if not any(_is_kept(x, used) for x in line.body):
                yield "  " * (depth + 1) + "pass"
            yield "  " * depth + "else:"
            yield from other


def distinct_lines(lines: list[EmittedLine]) -> list[EmittedLine]:
    """Return lines without repeated accesses between two others."""
    kept: list[EmittedLine] = []
    seen: set[str] = set()
    for line in lines:
        if not line.text.startswith(_ACCESSES):
            seen.clear()
        elif line.text in seen:
            continue
        seen.add(line.text)
        kept.append(line)
    return kept


def prepares(lines: Sequence[EmittedLine]) -> bool:
    """Whether some lines initialize or invalidate barriers."""
    return any(x.text.startswith(("x.init", "x.drop")) or prepares([*x.body, *x.other]) for x in lines)


def inner_counts(lines: Sequence[EmittedLine]) -> set[str]:
    """Return the constant trip counts of loops with waits; empty for others."""
    found: set[str] = set()
    for line in lines:
        if line.count is not None and level_of([line]) > Level.SOFT:
            found.add(line.count)
        found |= inner_counts([*line.body, *line.other])
    return found
