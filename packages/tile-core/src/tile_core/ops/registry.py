"""The tile ops that the core defines."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from tile_core.ops.base import TileOp
from tile_core.vocabulary import PAGE_OF

#: Modules of ops without a name of ``T``.
_UNNAMED = ("add_blocks", "copy_to_block", "wait_uses", "pin_accumulator", "request_registers")


def _defined() -> Iterator[TileOp]:
    named = (module[4:] for module in PAGE_OF if module.startswith("ops."))
    for module in (*named, *_UNNAMED):
        found = vars(importlib.import_module(f"tile_core.ops.{module}")).values()
        yield from (x for x in found if isinstance(x, TileOp))


#: Name -> op.
OPS: dict[str, TileOp] = {op.name: op for op in _defined()}
