"""Whether installed distributions belong together, from their metadata alone: nothing is imported to find out.

A package that plugs in states which tile-core it is made for, as a requirement of its distribution. Installers mostly
hold to it, but not always: an update of tile-core replaces the core and only prints a warning. What does
not belong together is refused here, before code of the one is imported by the other and fails in the middle.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from importlib.metadata import EntryPoint

from tile_core import __version__
from tile_core.errors.plugins import DamagedDistribution, OutOfStep
from tile_runtime.compat import distributions

CORE = "tile-core"


def check_in_step(entry: EntryPoint, what: str, core: str = __version__) -> None:
    """Refuse an entry point whose distribution is made for another tile-core than this one.

    Parameters
    ----------
    entry
        The entry point, not loaded yet; one that belongs to no distribution passes.
    what
        What it offers, for the message: ``"backend 'x'"``.
    core
        The version of tile-core.

    Raises
    ------
    OutOfStep
        The distribution's bounds on tile-core exclude this version.
    DamagedDistribution
        Its metadata cannot be read.
    """
    dist = getattr(entry, "dist", None)
    if dist is None:
        return
    name, version = distributions.identity_of(dist)
    if reason := distributions.problem_of(dist):
        folder = distributions.folder_of(dist)
        raise DamagedDistribution(what=what, folder=folder, reason=reason, distribution=name)
    bounds = bounds_on(CORE, dist.requires or ())
    if not satisfies(core, bounds):
        raise OutOfStep(what=what, distribution=name, version=version, expected=bounds, found=core)


def bounds_on(distribution: str, requirements: Iterable[str]) -> str:
    """Return the version bounds of a distribution among requirement lines, such as ``>=0.1.0,<0.2``.

    Requirements under a condition (``; python_version < "3.11"``, ``; extra == "test"``) are not looked at.
    """
    found = []
    for line in requirements:
        text, _, condition = line.partition(";")
        match = REQUIREMENT.fullmatch(text.strip())
        if match and not condition.strip() and _normal(match[1]) == distribution:
            found += [bound.strip() for bound in match[2].strip("() ").split(",") if bound]
    return ",".join(sorted(found, key=lambda bound: bound.startswith(("<", "!"))))


def satisfies(version: str, bounds: str) -> bool:
    """Whether a version is within bounds such as ``==0.27.0.post1``, ``>=2.1,<3`` or ``~=0.1.2``."""
    return all(_holds(version, *bound) for bound in _BOUND.findall(bounds))


#: A requirement without its condition: name, extras (not a group), and the bounds.
REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*([^;]*)")
_BOUND = re.compile(r"(===|~=|==|!=|>=|<=|>|<)\s*([0-9](?:[\w!+]|\.(?!\*))*)(\.\*)?")
_COMPARISONS = {
    "===": operator.eq, "==": operator.eq, "!=": operator.ne, ">=": operator.ge, "<=": operator.le, ">": operator.gt,
    "<": operator.lt,
}  # fmt: skip


def _holds(version: str, comparison: str, bound: str, any_more: str) -> bool:
    if comparison == "~=":  # at least this, with the same numbers but the last
        prefix = bound.rpartition(".")[0]
        return _holds(version, ">=", bound, "") and _holds(version, "==", prefix, ".*")
    mine, theirs = _key(version), _key(bound)
    if any_more:
        width = len(bound.split("."))
        mine, theirs = mine[:width], theirs[:width]
    width = max(len(mine), len(theirs))
    left, right = mine + (0,) * (width - len(mine)), theirs + (0,) * (width - len(theirs))
    return bool(_COMPARISONS[comparison](left, right))


def _key(version: str) -> tuple[int, ...]:
    """Return the numbers of a version; a pre-release counts as its release.

    ``0.27.0.post1`` is newer than ``0.27.0``.
    """
    release = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(part) for part in release[0].split(".")] if release else [0]
    post = re.search(r"\.post(\d+)", version)
    numbers = (numbers + [0, 0, 0, 0])[:4]
    return (*numbers, int(post[1]) + 1 if post else 0)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
