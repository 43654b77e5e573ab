"""Hypothesis strategies for the fuzzer's programs, each theme in its own file.

``STRATEGIES`` is the table, to which a target's backend adds its own; ``programs`` draws from all of them, ``mutants``
are programs that may be illegal.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tile_core.plugins.manager import installed
from tile_core.target import Target
from tile_core.testing.case import Unit
from tile_core.testing.strategies.awkward_names import awkward_names
from tile_core.testing.strategies.barriers import barriers
from tile_core.testing.strategies.block_races import block_races
from tile_core.testing.strategies.bools import bools
from tile_core.testing.strategies.boxes import boxes, numbered_rows
from tile_core.testing.strategies.clusters import clusters, exchanges
from tile_core.testing.strategies.control import control
from tile_core.testing.strategies.converted_operands import converted_operands
from tile_core.testing.strategies.data_races import data_races
from tile_core.testing.strategies.folding import folding
from tile_core.testing.strategies.gathered_loops import gathered_loops
from tile_core.testing.strategies.grids import grids, launches
from tile_core.testing.strategies.guards import guards
from tile_core.testing.strategies.illegal import illegal
from tile_core.testing.strategies.indexing import indices, nibbles
from tile_core.testing.strategies.lanes import lanes, vector_casts
from tile_core.testing.strategies.long_rows import long_rows
from tile_core.testing.strategies.memory import atomics, layouts, views, windows
from tile_core.testing.strategies.mutants import mutants_of
from tile_core.testing.strategies.names import names
from tile_core.testing.strategies.nested_loops import nested_loops
from tile_core.testing.strategies.packed import packed
from tile_core.testing.strategies.padded_rows import padded_rows
from tile_core.testing.strategies.pointers import pointers
from tile_core.testing.strategies.product_loops import product_loops
from tile_core.testing.strategies.rare import rare_ops
from tile_core.testing.strategies.reducers import functions, odd_products, reducers, reductions
from tile_core.testing.strategies.regions import regions, with_regions
from tile_core.testing.strategies.roles import role_programs
from tile_core.testing.strategies.scalars import casts, divisions, mathematics, parameters, roundings
from tile_core.testing.strategies.scaled_products import scaled_products
from tile_core.testing.strategies.symbols import corners, with_symbols
from tile_core.testing.strategies.tall_products import tall_products
from tile_core.testing.strategies.threads import threads
from tile_core.testing.strategies.tiles import tile_programs
from tile_core.testing.strategies.unused_tiles import with_unused_tile

#: Name -> (strategy, how often it is drawn).
STRATEGIES: dict[str, tuple[st.SearchStrategy[Unit], int]] = {
    "tiles": (tile_programs(), 8),
    "indices": (indices(), 2),
    "nibbles": (nibbles(), 1),
    "lanes": (lanes(), 2),
    "guards": (guards(), 3),
    "vector-casts": (vector_casts(), 1),
    "packed": (packed(), 2),
    "threads": (threads(), 3),
    "grids": (grids(), 2),
    "launches": (launches(), 1),
    "parameters": (parameters(), 1),
    "casts": (casts(), 2),
    "roundings": (roundings(), 2),
    "divisions": (divisions(), 2),
    "folding": (folding(), 3),
    "mathematics": (mathematics(), 1),
    "control": (control(), 2),
    "bools": (bools(), 1),
    "names": (names(), 2),
    "reducers": (reducers(), 2),
    "reductions": (reductions(), 1),
    "long-rows": (long_rows(), 1),
    "functions": (functions(), 1),
    "odd-products": (odd_products(), 1),
    "tall-products": (tall_products(), 1),
    "scaled-products": (scaled_products(), 1),
    "product-loops": (product_loops(), 1),
    "nested-loops": (nested_loops(), 2),
    "converted-operands": (converted_operands(), 2),
    "gathered-loops": (gathered_loops(), 1),
    "padded-rows": (padded_rows(), 2),
    "views": (views(), 1),
    "layouts": (layouts(), 1),
    "atomics": (atomics(), 1),
    "data-races": (data_races(), 1),
    "pointers": (pointers(), 1),
    "awkward-names": (awkward_names(), 1),
    "windows": (windows(), 1),
    "corners": (corners(), 4),
    "boxes": (boxes(), 1),
    "numbered-rows": (numbered_rows(), 1),
    "rare": (rare_ops(), 1),
    "regions": (regions(), 1),
    "roles": (role_programs(), 1),
    "barriers": (barriers(), 1),
    "clusters": (clusters(), 1),
    "exchanges": (exchanges(), 1),
    "block-races": (block_races(), 1),
    "illegal": (illegal(), 1),
}


#: How often a strategy that a target's backend adds is drawn.
_ADDED = 2


def strategies_of(target: Target | None = None) -> dict[str, tuple[st.SearchStrategy[Unit], int]]:
    """Return the table with what the backend of a target adds."""
    added = {} if target is None else installed().strategies(target)
    return {**{name: (strategy, _ADDED) for name, strategy in added.items()}, **STRATEGIES}


def programs(only: str = "", legal: bool = False, target: Target | None = None) -> st.SearchStrategy[Unit]:
    """Return programs of one or all strategies of a target.

    Half of them have symbols instead of constants, a fourth of them statements in a region of numerics, an eighth of
    them a tile that no statement uses.

    ``legal`` leaves out those that must be refused.
    """
    table = strategies_of(target)
    names = [only] if only else [n for n, (_, often) in table.items() for _ in range(often)]
    names = [n for n in names if not legal or n != "illegal"] or ["tiles"]
    return (
        st.sampled_from(names)
        .flatmap(lambda name: table[name][0])
        .flatmap(with_symbols)
        .flatmap(with_regions)
        .map(with_unused_tile)
    )


def mutants(only: str = "", target: Target | None = None) -> st.SearchStrategy[Unit]:
    """Return programs that may be illegal."""
    return mutants_of(programs(only, legal=True, target=target))
