"""What the site's search finds first: names of the language, then tutorials; no logs of runs."""

from __future__ import annotations

import json
from pathlib import Path

from pages.names import Name, names

#: Folders whose pages record runs and measurements: they repeat the names of all ops.
RECORDS = ("evidence/", "performance/")
#: Weight of a tutorial, and of a name that begins no other name.
TUTORIAL, NAME = 4.0, 3.0
#: A search finds all words that begin with the query, and rare ones first: a name outweighs those that begin with it.
SHORTER = 6.0


def meta_of(path: str) -> dict[str, object]:
    """Return the metadata of a page for the search plugin, by its path below ``docs``."""
    if path.startswith(RECORDS) and path != "evidence/README.md":
        return {"exclude": True}
    return {"boost": TUTORIAL} if path.startswith("tutorials/") else {}


def weigh_names(index: Path) -> None:
    """Write the weights of names into a built index."""
    found = json.loads(index.read_text(encoding="utf-8"))
    weights = {f"reference/{name.page}/#{name.anchor}": weight for name, weight in _weights().items()}
    for entry in found["docs"]:
        if entry["location"] in weights:
            entry["boost"] = weights[entry["location"]]
    index.write_text(json.dumps(found, separators=(",", ":")), encoding="utf-8")


def _weights() -> dict[Name, float]:
    """Return the weight of each name, longer names first: 3 for ``T.gemm_sp_v2``, 18 for ``T.gemm_sp``, ..."""
    levels: dict[Name, int] = {}
    for name in sorted(names(), key=lambda name: -len(name.text)):
        longer = (levels[other] for other in levels if _starts(other, name))
        levels[name] = 1 + max(longer, default=-1)
    return {name: NAME * SHORTER**level for name, level in levels.items()}


def _starts(longer: Name, name: Name) -> bool:
    first, second = (one.text.partition(".")[2].lower() for one in (longer, name))
    return first != second and first.startswith(second)
