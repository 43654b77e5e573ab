"""Hypothesis strategies for the fuzzer's programs, each theme in its own file.

``STRATEGIES`` is the table; ``programs`` draws from all of them, ``mutants`` are programs that may be illegal.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tile_core.testing.case import Unit
from tile_core.testing.strategies.barriers import barriers
from tile_core.testing.strategies.boxes import boxes
from tile_core.testing.strategies.control import control
from tile_core.testing.strategies.grids import grids, launches
from tile_core.testing.strategies.illegal import illegal
from tile_core.testing.strategies.indexing import indices, nibbles
from tile_core.testing.strategies.memory import atomics, layouts, views, windows
from tile_core.testing.strategies.mutants import mutants_of
from tile_core.testing.strategies.rare import rare_ops
from tile_core.testing.strategies.reducers import functions, odd_products, reducers, reductions
from tile_core.testing.strategies.roles import role_programs
from tile_core.testing.strategies.scalars import casts, divisions, mathematics, parameters, roundings
from tile_core.testing.strategies.tall_products import tall_products
from tile_core.testing.strategies.threads import threads
from tile_core.testing.strategies.tiles import tile_programs

#: Name -> (strategy, how often it is drawn).
STRATEGIES: dict[str, tuple[st.SearchStrategy[Unit], int]] = {
    "tiles": (tile_programs(), 8),
    "indices": (indices(), 2),
    "nibbles": (nibbles(), 1),
    "threads": (threads(), 3),
    "grids": (grids(), 2),
    "launches": (launches(), 1),
    "parameters": (parameters(), 1),
    "casts": (casts(), 2),
    "roundings": (roundings(), 2),
    "divisions": (divisions(), 2),
    "mathematics": (mathematics(), 1),
    "control": (control(), 2),
    "reducers": (reducers(), 2),
    "reductions": (reductions(), 1),
    "functions": (functions(), 1),
    "odd-products": (odd_products(), 1),
    "tall-products": (tall_products(), 1),
    "views": (views(), 1),
    "layouts": (layouts(), 1),
    "atomics": (atomics(), 1),
    "windows": (windows(), 1),
    "boxes": (boxes(), 1),
    "rare": (rare_ops(), 1),
    "roles": (role_programs(), 1),
    "barriers": (barriers(), 1),
    "illegal": (illegal(), 1),
}


def programs(only: str = "", legal: bool = False) -> st.SearchStrategy[Unit]:
    """Return programs of one strategy, or of all; ``legal`` leaves out those that must be refused."""
    names = [only] if only else [n for n, (_, often) in STRATEGIES.items() for _ in range(often)]
    names = [n for n in names if not legal or n != "illegal"] or ["tiles"]
    return st.sampled_from(names).flatmap(lambda name: STRATEGIES[name][0])


def mutants(only: str = "") -> st.SearchStrategy[Unit]:
    """Return programs that may be illegal."""
    return mutants_of(programs(only, legal=True))
