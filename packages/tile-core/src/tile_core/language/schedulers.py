"""``T.PersistentTileScheduler``: the tiles of a block as a state that the kernel moves on."""

from __future__ import annotations

from tile_core.dtypes import DTYPES
from tile_core.errors.language import OutsideKernel
from tile_core.language.launch import Persistent, tile_numbers
from tile_core.language.threads import get_block_binding
from tile_core.trace.trip_counts import type_of
from tile_core.values import extremes
from tile_core.values.allocation import allocate
from tile_core.values.buffer import Buffer, store
from tile_core.values.builder import Builder, current
from tile_core.values.value import Index, Value, as_value, cast


class _Domain(Persistent):
    kind = "PersistentTileScheduler"


class PersistentTileScheduler:
    """The tiles of a domain that one persistent block computes, as in ``T.Persistent``.

    Parameters
    ----------
    m_tiles, n_tiles
        Extents of the domain.
    wave_size, index
        The number of blocks that share the tiles, and the index of this one; by default those of the first axis of the
        launch.
    group_size
        Accepted for other dialects' kernels: the order of the tiles is not part of the meaning.

    Attributes
    ----------
    m_idx, n_idx
        Of the current tile.

    Raises
    ------
    BadLoop
        For extents that are no integers, or negative constants.

    Notes
    -----
    A block has the tiles ``index``, ``index + wave_size`` and so on, counted row by row::

        tiles = T.PersistentTileScheduler(T.ceildiv(M, 64), T.ceildiv(N, 64))
        while tiles.valid():
            T.copy(A[tiles.m_idx * 64, tiles.n_idx * 64], S)
            ...
            tiles.next_tile()

    Loops of ``T.Persistent`` are equivalent, and easier to analyse for the compiler.
    """

    def __init__(
        self, m_tiles: Index, n_tiles: Index, wave_size: Index | None = None, index: Index | None = None,
        group_size: int = 8,
    ) -> None:  # fmt: skip
        builder: Builder = current("T.PersistentTileScheduler")
        if builder.threads is None or builder.launch is None:
            raise OutsideKernel(what="T.PersistentTileScheduler")
        wave = builder.launch.grid[0] if wave_size is None else wave_size
        spec = _Domain([m_tiles, n_tiles], wave, get_block_binding(0) if index is None else index)
        kind, (rows, columns) = tile_numbers(spec)
        dtype = DTYPES[kind]
        total = cast(as_value(rows), dtype) * cast(as_value(columns), dtype)
        self._own = type_of(*spec.domain, spec.wave, spec.index)
        self._total = Value(builder.bind("tiles", total.expr), dtype)
        self._columns = extremes.max(columns, 1)
        self._wave = spec.wave
        builder.hints = []
        self._at: Buffer = allocate("alloc_var", (1,), kind, "local.var", "tile")
        store(self._at, 0, cast(as_value(spec.index), dtype))

    def valid(self) -> Value:
        """Return whether there is a current tile."""
        return self._at.value() < self._total

    @property
    def m_idx(self) -> Value:
        """The row of the current tile."""
        return (self._at.value() // self._columns).astype(self._own)

    @property
    def n_idx(self) -> Value:
        """The column of the current tile."""
        return (self._at.value() % self._columns).astype(self._own)

    def next_tile(self) -> None:
        """Go on to the next tile of this block."""
        store(self._at, 0, self._at.value() + self._wave)
