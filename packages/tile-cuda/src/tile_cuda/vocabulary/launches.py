"""Programmatic dependent launch: names that this package adds to ``T``."""

from __future__ import annotations

from tile_core.ir import calls
from tile_cuda.vocabulary.barriers import builder_in_launch


def pdl_sync() -> None:
    """Wait for earlier launches: their writes are visible, and their operands may be overwritten.

    A launch with it may begin while the one before it in the stream still runs, up to this point: it makes barriers
    and fills tiles. Where launches do not overlap, it waits for nothing.

    Raises
    ------
    BadLaunchOrder
        When it is compiled: in a loop, a branch or ``T.ws``; where a tensor is accessed before it.
    """
    builder = builder_in_launch("pdl_sync")
    builder.emit(calls.launch_wait(builder.span()))


def pdl_trigger() -> None:
    """Let the next launch begin once all blocks are here, if it uses ``T.pdl_sync``.

    It changes nothing that is computed: the next launch still waits for all that this one does.
    """
    builder = builder_in_launch("pdl_trigger")
    builder.emit(calls.launch_trigger(builder.span()))
