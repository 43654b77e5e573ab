"""The versions of other distributions that this tile-core is made for. Imports none of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tile_core.plugins.versions import REQUIREMENT
from tile_runtime.compat.distributions import requirements_of


def requirements() -> Mapping[str, str]:
    """The version bounds by distribution, from installed metadata or the source tree.

    Returns
    -------
    Mapping[str, str]
        For example ``{"numpy": ">=2.1,<3"}``; empty where neither is there.
    """
    known = requirements_of("tile-core")
    lines = _from_source() if known is None else known
    found = (REQUIREMENT.fullmatch(line.partition(";")[0].strip()) for line in lines if "extra ==" not in line)
    return {match[1].lower().replace("_", "-"): match[2].strip() for match in found if match}


def _from_source() -> list[str]:
    """The dependencies in the ``pyproject.toml`` of a source tree."""
    file = Path(__file__).resolve().parents[3] / "pyproject.toml"
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    block = re.search(r"^dependencies = \[(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    return re.findall(r'^\s*"([^"]+)"', block[1], re.MULTILINE) if block else []
