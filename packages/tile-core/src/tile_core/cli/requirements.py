"""The versions that this tile-core is made for, and whether the installed ones satisfy them. Imports none of them."""

from __future__ import annotations

import importlib.metadata
import operator
import re
from collections.abc import Mapping
from pathlib import Path

_COMPARISONS = {
    "==": operator.eq, "!=": operator.ne, ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_BOUND = re.compile(r"(==|!=|>=|<=|>|<)\s*([0-9][\w.]*)")
_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)\s*([^;]*)")


def requirements() -> Mapping[str, str]:
    """The version bounds by distribution: from the installed metadata, or from the source tree that this runs in.

    Returns
    -------
    Mapping[str, str]
        For example ``{"numpy": ">=2.1,<3"}``; empty where neither is there.
    """
    try:
        lines = importlib.metadata.requires("tile-core") or []
    except importlib.metadata.PackageNotFoundError:
        lines = _from_source()
    found = (_REQUIREMENT.fullmatch(line.partition(";")[0].strip()) for line in lines if "extra ==" not in line)
    return {match[1].lower().replace("_", "-"): match[2].strip() for match in found if match}


def installed_version(distribution: str) -> str | None:
    """The installed version of a distribution, or ``None``."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def satisfies(version: str, bounds: str) -> bool:
    """Whether a version is within bounds such as ``==0.27.0.post1`` or ``>=2.1,<3``."""
    mine = _key(version)
    for comparison, bound in _BOUND.findall(bounds):
        theirs = _key(bound)
        width = max(len(mine), len(theirs))
        left, right = mine + (0,) * (width - len(mine)), theirs + (0,) * (width - len(theirs))
        if not _COMPARISONS[comparison](left, right):
            return False
    return True


def _key(version: str) -> tuple[int, ...]:
    """The numbers of a version; ``0.27.0.post1`` is later than ``0.27.0``, a pre-release counts as its release."""
    release = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(part) for part in release[0].split(".")] if release else [0]
    post = re.search(r"\.post(\d+)", version)
    numbers = (numbers + [0, 0, 0, 0])[:4]
    return (*numbers, int(post[1]) + 1 if post else 0)


def _from_source() -> list[str]:
    """The dependencies in the ``pyproject.toml`` of a source tree."""
    file = Path(__file__).resolve().parents[3] / "pyproject.toml"
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    block = re.search(r"^dependencies = \[(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    return re.findall(r'^\s*"([^"]+)"', block[1], re.MULTILINE) if block else []
