"""The threads of a block as generators, which pause at synchronization points."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from tile_core.dtypes import DTYPES
from tile_core.testing.plain.memory import Memory, Region
from tile_core.testing.plain.numbers import Number, number
from tile_core.testing.plain.rewrite import WARP


class Deadlock(AssertionError):
    """Threads that wait for each other at different places."""


def run_block(language: Any, begin: Callable[[], Generator[Any, Any, None]], count: int) -> None:
    """Run the threads of a block to their ends."""
    threads = []
    for t in range(count):
        language.enter(t)
        threads.append(begin())
    answers: list[Any] = [None] * count
    waiting: dict[int, Any] = {}
    running = list(range(count))
    while running:
        for t in running:
            language.enter(t)
            waiting[t] = threads[t].send(answers[t])
        running = _meet(language, waiting, answers, count)


def _meet(language: Any, waiting: dict[int, Any], answers: list[Any], count: int) -> list[int]:
    """Perform the operation that a warp or the block waits for; return resumed threads."""
    for low in range(0, count, language.lanes):
        lanes = [t for t in range(low, min(low + language.lanes, count)) if waiting[t][0] != "end"]
        if lanes and all(waiting[t][0] in WARP for t in lanes):
            if len({waiting[t][0] for t in lanes}) > 1:
                raise Deadlock(f"lanes of a warp wait for {sorted({waiting[t][0] for t in lanes})}")
            _warp(waiting, answers, lanes, language.lanes)
            return lanes
    names = {w[0] for w in waiting.values()}
    if names == {"end"}:
        return []
    if len(names) > 1:
        raise Deadlock(f"threads wait for {sorted(names)}")
    (name,) = names
    if name.startswith("syncthreads_"):
        answers[:] = [_vote(name, [bool(number(waiting[t][1][0])) for t in range(count)])] * count
        return list(range(count))
    for t in range(count):
        language.enter(t)
        answers[t] = _block(language, waiting[t], t)
    return list(range(count))


def _vote(name: str, held: list[bool]) -> Number:
    if name == "syncthreads_count":
        return Number(sum(held), "int32")
    return Number(any(held) if name == "syncthreads_or" else all(held), "bool")


def _block(language: Any, request: Any, thread: int) -> Any:
    name = request[0]
    if name == "parallel":
        return request[1] if thread == 0 else ()
    if name == "sync_threads":
        return None
    own = any(getattr(_buffer(a), "scope", "") == "local" for a in (*request[1], *dict(request[2]).values()))
    if thread == 0 or own:
        return getattr(language, name)(*request[1], **dict(request[2]))
    return None


def _buffer(x: Any) -> Any:
    if isinstance(x, Region):
        return x.buffer
    if isinstance(x, Number) and x.element is not None:
        return x.element[0]
    return x if isinstance(x, Memory) else None


def _warp(waiting: dict[int, Any], answers: list[Any], lanes: list[int], width: int) -> None:
    name = waiting[lanes[0]][0]
    if name == "sync_warp":
        for t in lanes:
            answers[t] = None
        return
    given = {t: [*map(number, waiting[t][1])] for t in lanes}
    words = {t: dict(waiting[t][2]) for t in lanes}
    first = {t: g[0] if g else Number(True, "bool") for t, g in given.items()}
    if name.startswith("shfl"):
        for t in lanes:
            own = words[t].get("width") or (int(given[t][2]) if len(given[t]) > 2 else width)
            answers[t] = first[_source(name, t, int(given[t][1]), int(own), lanes)]
        return
    if name.startswith("match"):
        same = {t: sum(1 << (u % width) for u in lanes if _raw(first[u]) == _raw(first[t])) for t in lanes}
        for t in lanes:
            alike = name == "match_any_sync" or same[t].bit_count() == len(lanes)
            answers[t] = Number(same[t] if alike else 0, "uint64")
        return
    result = _combined(name, lanes, first, width)
    for t in lanes:
        answers[t] = result


def _raw(x: Number) -> bytes:
    return np.array([x.value], DTYPES[x.dtype].numpy()).tobytes()


def _source(name: str, t: int, by: int, width: int, lanes: list[int]) -> int:
    base, lane = t - t % width, t % width
    source = {"shfl_sync": by % width, "shfl_xor": lane ^ by, "shfl_up": lane - by, "shfl_down": lane + by}[name]
    source = source if 0 <= source < width else lane
    return base + source if base + source in lanes else t


def _combined(name: str, lanes: list[int], first: dict[int, Number], width: int) -> Number:
    if name in ("ballot", "activemask"):
        return Number(sum(1 << (t % width) for t in lanes if first[t]), "uint64")
    if name in ("any_sync", "all_sync"):
        return Number((any if name == "any_sync" else all)(bool(x) for x in first.values()), "bool")
    result = first[lanes[0]]
    for t in lanes[1:]:
        x = first[t]
        kind = name[len("warp_reduce_") :]
        if kind in ("max", "min"):
            result = x if bool(x > result) == (kind == "max") else result
        else:
            result = {"sum": result.__add__, "bitand": result.__and__, "bitor": result.__or__}[kind](x)
    return result
