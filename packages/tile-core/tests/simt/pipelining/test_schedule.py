"""Schedules in words, as reports have them."""

from __future__ import annotations

from tile_core.simt.pipelining.mma_warp import with_mma_warp
from tile_core.simt.pipelining.persistent import PersistentGrid

from .schedules import asynchronous, clustered, counted, specialised, transacted


def test_steps_in_words():
    assert transacted().lines() == [
        "copies: A_s, B_s, 96 bytes an iteration by first of the block (thread 0): bytes counted by full",
        "full: 3 barriers of 1 arrival",
        "the block, before: expect 96 bytes at full; issue copies; expect 96 bytes at full of iteration +1; "
        "issue copies of iteration +1",
        "the block, each iteration: wait for full; sync; "
        "expect 96 bytes at full of iteration +2; issue copies of iteration +2; "
        "use the slots",
        "the block, after: sync",
    ]
    assert counted().lines()[-2:] == [
        "the block, each iteration: wait for all but 1 group; sync; "
        "issue copies of iteration +2; commit; use the slots",
        "the block, after: wait for all groups; sync",
    ]
    assert asynchronous().lines()[-2:] == [
        "the block, each iteration: wait for all but 1 group; sync; use the slots, asynchronous until waited for; "
        "wait for all but 1 use; sync; issue copies of iteration +2; commit",
        "the block, after: wait for all uses; wait for all groups; sync",
    ]
    assert specialised().lines()[-2:] == [
        "the producer, each iteration: wait for empty, 1 phase earlier; expect 96 bytes at full; issue copies",
        "the block, each iteration: wait for full; use the slots; arrive at empty, one a warp",
    ]


def test_steps_of_clusters_in_words():
    lines = clustered().lines()
    assert "B_s: blocks 0, 1 of a cluster multicast it" in lines
    assert lines[-3] == (
        "the block, before: meet the other blocks; expect 96 bytes at full; issue copies; "
        "expect 96 bytes at full of iteration +1; issue copies of iteration +1; wait for all uses"
    )
    assert "arrive at free in all blocks that fill slots here of iteration -1, one a warp" in lines[-2]
    assert "wait for free of iteration +2, 1 phase earlier, the first thread" in lines[-2]
    assert lines[-1] == "the block, after: wait for all uses; meet the other blocks"


def test_steps_of_an_mma_warp_in_words():
    made = with_mma_warp(clustered(), 128, PersistentGrid(132, 32, "warp", 32, mma_threads=32), "free")
    assert [(p.role.name, p.role.first, p.role.count) for p in made.programs] == [
        ("the producer", 128, 1),
        ("the MMA warp", 160, 1),
    ]
    lines = "\n".join(made.lines())
    assert "arrive at free in all blocks that fill slots here when these uses are complete" in lines
    assert lines.count("meet the other blocks") == 4
