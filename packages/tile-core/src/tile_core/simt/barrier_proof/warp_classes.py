"""Warps of a block that behave equally in a translated kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tile_core.simt.barrier_proof.expressions import in_threads
from tile_core.simt.barrier_proof.translation import Translated

_WARP = 32


class WarpClasses:
    """The warps of a block by behaviour.

    Attributes
    ----------
    agents
        Threads of each agent.
    lanes
        For each loop over lanes and each agent: threads that stand for others, and for how many.
    """

    def __init__(self, kernel: Translated, threads: int) -> None:
        values = [in_threads(atom, threads) for atom in kernel.classes]
        roles = [n for n, atom in enumerate(kernel.classes) if atom in kernel.roles]
        found: dict[tuple[Any, ...], list[int]] = {}
        for first in range(0, threads, _WARP):
            key = tuple(tuple(v[first : first + _WARP]) for v in values)
            found.setdefault(key, []).append(first)
        alike: dict[tuple[Any, ...], int] = {}
        for key in found:
            role = tuple(key[n] for n in roles)
            alike[role] = alike.get(role, 0) + 1
        self.agents: list[list[int]] = []
        for key, warps in found.items():
            alone = alike[tuple(key[n] for n in roles)] == 1 and len(warps) > 1
            parts = [warps[:1], warps[1:]] if alone else [warps]
            self.agents += [[t for w in part for t in range(w, min(w + _WARP, threads))] for part in parts]
        self.lanes = [self._split(entered, atoms, threads) for entered, atoms in kernel.splits]

    def _split(self, entered: str, atoms: Sequence[str], threads: int) -> list[list[tuple[int, int]]]:
        enters, values = in_threads(entered, threads), [in_threads(a, threads) for a in atoms]
        rows, result = list(zip(*values, strict=True)) or [()] * threads, []
        for mine in self.agents:
            groups: dict[tuple[Any, ...], list[int]] = {}
            for t in mine:
                if enters[t]:
                    groups.setdefault(rows[t], []).append(t)
            result.append([(found[0], len(found)) for found in groups.values()])
        return result
