"""Random programs of block-to-block copies without some waits: accepted ones are race-free.

Each program is one that could be right with all its waits; some of them are left out, weakened or exchanged.
"""

from __future__ import annotations

import linecache
import random
import textwrap
import types

import numpy as np
import pytest

import tile_emulator
from tile_core import reference
from tile_core.compiler import lower
from tile_core.errors.base import InternalError, TileError
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch

from .test_block_copies import ORDERS

#: What may stand where all blocks should meet.
_WEAKER = ("T.cluster_sync()", "T.sync_threads()", "T.cluster_arrive_relaxed()\nT.cluster_wait()", "pass")
_USES = (
    "x[i, j] = x[i, j] + r[k % {n}, i, j]", "s[k % {n}, i, j] = s[k % {n}, i, j] + r[k % {n}, i, j]",
    "s[(k + 1) % {n}, i, j] = r[k % {n}, i, j]", "r[k % {n}, i, j] = r[k % {n}, i, j] + 1",
)  # fmt: skip
#: Seeds of one test, and how many of their programs it runs: the first that are accepted.
COUNT, RUN = 20, 2


def drawn(seed: int) -> tuple[str, int]:
    """Return the text of a program, and its number of blocks."""
    rng = random.Random(seed)
    blocks, slots, counted = rng.choice((2, 2, 3, 4)), rng.choice((1, 2)), rng.random() < 0.6
    to = rng.choice((f"(rank + 1) % {blocks}", f"{blocks - 1} - rank", "0", "rank"))
    arrivals = blocks if to == "0" else 1

    def meet() -> str:
        return rng.choice(_WEAKER) if rng.random() < 0.3 else "T.cluster_sync()"

    wait = f"T.barrier_wait(got[k % {slots}], k // {slots} % 2)"
    rows = rng.choice((":", "0:1"))
    target_rows = "rank % 2:rank % 2 + 1" if to == "0" and rows != ":" else rows
    barrier = f", remote_barrier=got[k % {slots}]" if counted else ""
    trip = [f"T.copy(x, s[k % {slots}, :, :])"] if rng.random() < 0.3 else []
    trip.append(f"T.copy_cluster(s[k % {slots}, {rows}, :], r[k % {slots}, {target_rows}, :], dst_block={to}{barrier})")
    if counted and rng.random() < 0.9:
        trip.append(f"if rank == 0:\n    {wait}" if to == "0" else wait)
    trip += [meet()] if rng.random() < 0.8 or not counted else []
    trip.append("for i, j in T.Parallel(2, 8):\n    " + rng.choice(_USES).format(n=slots))
    trip += [meet()] if rng.random() < 0.8 else []
    before = [
        "rank = T.block_rank_in_cluster()", f's = T.alloc_shared(({slots}, 2, 8), "float32")',
        f'r = T.alloc_shared(({slots}, 2, 8), "float32")', 'x = T.alloc_shared((2, 8), "float32")',
        f"got = T.alloc_cluster_barrier([{arrivals}] * {slots})", "T.copy(A[bx, :, :], x)", "T.clear(r)", "T.clear(s)",
        "T.copy(x, s[0, :, :])", meet(), f"for k in range({rng.choice((1, 2, 3))}):",
    ]  # fmt: skip
    last = rng.choice(("x", "s[0, :, :]", "r[0, :, :]"))
    body = [*before, textwrap.indent("\n".join(trip), "    "), f"T.copy({last}, B[bx, :, :])"]
    shape = f'T.Tensor(({2 * blocks}, 2, 8), "float32")'
    head = f"with T.ClusterKernel({2 * blocks}, cluster_dims={blocks}, threads={rng.choice((1, 32, 64))}) as bx:"
    inside = textwrap.indent("\n".join(body), " " * 8)
    text = (
        f"import tile_core.language as T\n\n\n@T.prim_func\ndef main(A: {shape}, B: {shape}):\n    {head}\n{inside}\n"
    )
    return text, 2 * blocks


def loaded(text: str, seed: int) -> object:
    """Return the program of a text."""
    name, module = f"<blocks {seed}>", types.ModuleType("blocks")
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), module.__dict__)
    return module.main


@pytest.mark.sweep(12)
@pytest.mark.parametrize("first", range(0, 200 * COUNT, COUNT))
def test_accepted_programs_are_right(first):
    accepted, dialect = 0, dialect_of(Arch.of("sm_90a"))
    for seed in range(first, first + COUNT):
        text, blocks = drawn(seed)
        program = loaded(text, seed)
        try:
            lowered = lower(program, make_context("cuda:sm_90a", {}), installed()).lowered
        except InternalError:
            raise
        except TileError:
            continue
        accepted += 1
        if accepted > RUN:
            return
        a = np.random.default_rng(seed).integers(-9, 9, (blocks, 2, 8)).astype("float32")
        want = np.zeros_like(a)
        reference.execute(program, [a, want])
        for how in ORDERS:
            found = tile_emulator.run(lowered.text, lowered.facts, {"A": a, "B": np.zeros_like(a)}, dialect, **how)
            assert not found.reports, f"{found.reports}\n{text}"
            assert np.array_equal(found.outputs["B"].reshape(a.shape), want), text
    assert accepted, "all of these programs are refused"
