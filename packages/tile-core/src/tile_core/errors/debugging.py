"""K46x: what the tools for debugging refuse."""

from __future__ import annotations

from tile_core.errors.base import KernelError


class DebuggingError(KernelError):
    """Base of what ``tile debug``, ``tile.watch`` and ``tile.find_nan`` refuse."""

    code = "K460"


class NoSuchName(DebuggingError):
    """A name without a value at a line of the program."""

    code = "K461"
    template = "the program has no {name!r} here"
    remedy = "{hint}"


class BadExpression(DebuggingError):
    """An expression of a debugger's user that cannot be evaluated."""

    code = "K462"
    template = "{text!r}: found {found}, expected {expected}"
    remedy = "write it with the names of the program, such as max(scores) > 1e4 or scores[0, 3] != scores[0, 3]"


class NoSuchLine(DebuggingError):
    """A line at which the program has no statement."""

    code = "K463"
    template = "{kernel} has no statement in line {line}"
    remedy = "the nearest line with one is {near}"


class BadCommand(DebuggingError):
    """A command that the debugger does not have, or whose arguments it cannot read."""

    code = "K464"
    template = "{text!r} is not a command: {reason}"
    remedy = "{hint}"
