"""Programs with a tile that no statement uses."""

from __future__ import annotations

import dataclasses
import re
import textwrap
import zlib

from tile_core.testing.case import Unit

_TILES = (
    'alloc_fragment((32,), "float32")', 'alloc_fragment((5, 7), "int8")', 'alloc_shared((3, 33), "float16")',
    'alloc_local((4,), "int64")',
)  # fmt: skip
#: The line of a launch in a program that has several.
_LAUNCH = re.compile(r"^( *)with T\.Kernel\(.*:$", re.MULTILINE)


def with_unused_tile(unit: Unit) -> Unit:
    """Return a program, one in eight with an unused tile.

    The text decides, not a draw: draws that follow stay the same.
    """
    number = zlib.crc32(unit.text().encode())
    if number % 8 or unit.illegal or unit.reported:
        return unit
    name = sorted(unit.parts)[number // 8 % len(unit.parts)]
    part = unit.parts[name]
    taken = re.search(r"\bunused\b", unit.text()) is not None
    tile = f"unused{'_tile' * taken} = T.{_TILES[number // 64 % len(_TILES)]}"
    body = textwrap.dedent(part.body).strip()
    if "T.Kernel(" in body:  # tiles belong to a launch
        body = _LAUNCH.sub(rf"\g<0>\n\g<1>    {tile}", body, count=1)
    else:
        body = f"{tile}\n{body}"
    return dataclasses.replace(
        unit, name=f"{unit.name}-unused", parts={**unit.parts, name: dataclasses.replace(part, body=body)}
    )
