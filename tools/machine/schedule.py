"""In which order threads execute statements between barriers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from machine.state import State
from machine.statements import Statement
from tile_core.ir import nodes

__all__ = ["scattered", "lockstep"]

_ORDERS = ("up", "down", "random", "random", "random")


def lockstep(state: State, body: Statement) -> None:
    """Run all threads through the statements in lockstep; all must reach each barrier."""
    for barrier in body(state, np.ones(state.count, bool)):
        if barrier is not None:
            _meet(state)


def scattered(threads: Sequence[State], body: Statement, seed: int) -> None:
    """Run each thread from barrier to barrier by itself, in the order of ``seed``."""
    rng, order = random.Random(seed), _ORDERS[seed % len(_ORDERS)]
    running = [body(thread, np.ones(1, bool)) for thread in threads]
    ready, waiting, ended = list(range(len(threads))), dict[int, Any](), 0
    while ready or waiting:
        for part in _complete(waiting):
            threads[0].copies.barrier()
            ready += part
            waiting = {n: s for n, s in waiting.items() if n not in part}
        if not ready:
            assert not ended, "some threads wait, others have ended"
            first = next(iter(waiting.values()))
            assert all(first.same_as(s) for s in waiting.values()), "threads wait at different barriers"
            _meet(threads[0])
            ready, waiting = list(waiting), {}
        pick = {"up": 0, "down": len(ready) - 1}.get(order, rng.randrange(len(ready)))
        try:
            barrier = next(running[ready[pick]])
        except StopIteration:
            ready.pop(pick)
            ended += 1
            continue
        if barrier is not None:
            waiting[ready.pop(pick)] = barrier


def _complete(waiting: dict[int, Any]) -> list[list[int]]:
    """Return the threads at each barrier that all of its participants have reached."""
    parts: dict[Any, list[int]] = {}
    for n, s in waiting.items():
        if nodes.is_tile_call(s.value, "sync_part"):
            parts.setdefault(tuple(int(nodes.as_int(a)) for a in s.value.args), []).append(n)
    return [threads for (_, count), threads in parts.items() if len(threads) == count]


def _meet(state: State) -> None:
    state.copies.barrier()
    if state.races is not None:
        state.races.clear()
