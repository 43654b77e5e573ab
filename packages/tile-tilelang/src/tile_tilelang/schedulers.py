"""``T.PersistentTileScheduler`` with TileLang's state: which tile a block, or each of its roles, computes."""

from __future__ import annotations

from typing import Any

import tile_core.language as T
from tile_core.values.value import Index
from tile_tilelang.devices import get_num_sms

__all__ = ["BaseTileScheduler", "PersistentTileScheduler"]


class BaseTileScheduler:
    """State of a walk over tiles: a position, its tile, and how often it moved.

    Attributes
    ----------
    m_idx, n_idx
        The current tile.
    linear_idx
        Its position.
    current_iter
        How many tiles came before it.
    """

    num_workers: Index
    _total_tiles: Index = 0

    def __init__(self, stateful: bool = True, name: str | None = None) -> None:
        if stateful:
            self._m_idx, self._n_idx, self._linear_idx, self._current_iter = (T.alloc_var("int32") for _ in range(4))

    m_idx = property(lambda self: self._m_idx[0])
    n_idx = property(lambda self: self._n_idx[0])
    linear_idx = property(lambda self: self._linear_idx[0])
    current_iter = property(lambda self: self._current_iter[0])

    def coord(self, tile_id: Any) -> tuple[Any, Any]:
        """Return the row and column of a position."""
        raise NotImplementedError

    def update_current_idx(self, linear_idx: Any) -> None:
        """Set the tile to that of a position."""
        self._m_idx[0], self._n_idx[0] = self.coord(linear_idx)

    def init(self, linear_init: Any) -> None:
        """Begin at a position."""
        self._current_iter[0], self._linear_idx[0] = 0, linear_init
        self.update_current_idx(self._linear_idx[0])

    def next_tile(self, step: Any = None) -> None:
        """Move on, by default by ``num_workers`` positions."""
        self._current_iter[0] = self._current_iter[0] + 1
        self._linear_idx[0] = self._linear_idx[0] + (self.num_workers if step is None else step)
        self.update_current_idx(self._linear_idx[0])

    def valid(self) -> Any:
        """Return whether there is a current tile."""
        return self._linear_idx[0] < self._total_tiles


class StatefulTileScheduler(BaseTileScheduler):
    """The tiles of a grid for persistent blocks.

    Block ``w`` has the positions ``w``, ``w + num_workers`` and so on.

    Parameters
    ----------
    num_m_tiles, num_n_tiles
        The grid.
    num_workers
        By default the blocks that run side by side, divided by ``cluster_size``.
    swizzle_size
        Columns, or rows unless ``column_major``, of a panel, which is finished before the next one begins.
    column_major
        Whether neighbouring positions are in one column.
    cluster_size
        Rows that are one tile here.
    stateful
        Without a state, only `coord` has a meaning.
    name
        A hint.
    """

    def __init__(
        self, num_m_tiles: Any, num_n_tiles: Any, num_workers: Any = None, swizzle_size: int = 1,
        column_major: bool = True, cluster_size: int = 1, stateful: bool = True, name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(stateful, name)
        rows = T.ceildiv(num_m_tiles, cluster_size)
        self.num_workers = get_num_sms() // cluster_size if num_workers is None else num_workers
        self.swizzle_size, self.cluster_size = swizzle_size, cluster_size
        self._column_major, self._total_tiles = column_major, rows * num_n_tiles
        self._along: Any = rows if column_major else num_n_tiles
        self._across: Any = num_n_tiles if column_major else rows

    def coord(self, tile_id: Any) -> tuple[Any, Any]:
        """Return the row and column of a position."""
        panel = self._along * self.swizzle_size
        first = tile_id // panel * self.swizzle_size
        # The last panel may be narrower; a position behind the grid has none.
        width = T.max(1, T.min(self.swizzle_size, self._across - first))
        inside = tile_id % panel
        along, across = inside // width, first + inside % width
        return (along, across) if self._column_major else (across, along)


#: TileLang's name.
PersistentTileScheduler = StatefulTileScheduler
