"""Pictures of the layouts that a page shows.

A page requests one with a comment on a line of its own, ``<!-- picture: NAME, 8 rows, 16 columns -->``. NAME is a
layout that the page's own code assigns above; the numbers limit the drawn part.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from check_examples import python_blocks

import tile_core.language as T
import tile_core.layout as layouts

DIRECTIVE = re.compile(
    r"^<!-- picture: (?P<name>\w+)(?:, (?P<rows>\d+) rows)?(?:, (?P<columns>\d+) columns)? -->$", re.M
)
_MOST = 128


def draw_pictures(markdown: str) -> str:
    """Return a page with its comments replaced by SVG."""

    def picture(found: re.Match[str]) -> str:
        layout = layout_of(markdown[: found.start()], found["name"])
        svg = layouts.to_svg(layout, int(found["rows"] or _MOST), int(found["columns"] or _MOST))
        label = f'<figure class="layout" role="img" aria-label="Picture of the layout {found["name"]}">'
        return f"{label}{svg.strip()}</figure>".replace("\n", "")

    return DIRECTIVE.sub(picture, markdown)


def layout_of(before: str, name: str) -> Any:
    """Return the layout that the last assignment to a name makes.

    Raises
    ------
    LookupError
        If the page has no such assignment.
    """
    code = ast.parse(python_blocks(before))
    values = [s.value for s in code.body if isinstance(s, ast.Assign) and _names(s) == [name]]
    if not values:
        raise LookupError(f"no code above the picture assigns {name}")
    return eval(ast.unparse(values[-1]), {"T": T, **vars(layouts)})


def _names(statement: ast.Assign) -> list[str]:
    return [target.id for target in statement.targets if isinstance(target, ast.Name)]
