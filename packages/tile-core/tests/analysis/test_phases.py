"""Vector clocks of a cluster's blocks: copies between blocks, and the cluster barrier.

And products that add to one accumulator while others are in flight.
"""

from __future__ import annotations

import pytest

from tile_core.analysis.phases import OF_CLUSTER, PhaseError, Phases

#: Two blocks, each with a first thread and 31 others, and one object of one arrival.
THREADS, OBJECTS = [1, 31] * 2, [("got", 1), ("got of block 1", 1)]
S, R = ("S", ((0, 4),)), ("R@1", ((0, 4),))


def blocks() -> Phases:
    return Phases(THREADS, OBJECTS, 2)


def met(p: Phases, stored: bool = True) -> None:
    """All threads arrive at the barrier of the cluster, and wait."""
    known = [p.knowledge(t, t // 2) for t in range(4)] if stored else []
    for t in range(4):
        p.learn(t, known)


def test_those_who_have_waited_know_of_a_copy():
    p = blocks()
    p.send(0, p.barriers[1], 64, S, R)
    assert p.barriers[1].phase == 1
    p.wait([2, 3], p.barriers[1], 0)
    p.access([2, 3], *R, write=False)
    p.access([2, 3], *R, write=True)


@pytest.mark.parametrize("who", [2, 3])
def test_others_do_not(who):
    p = blocks()
    p.send(0, p.barriers[1], 64, S, R)
    p.wait([5 - who], p.barriers[1], 0)
    with pytest.raises(PhaseError, match="R may be read while a copy to another block still writes it"):
        p.access([who], *R, write=False)


def test_its_source_is_read_until_the_receiver_says_so():
    p = blocks()
    p.send(0, p.barriers[1], 64, S, R)
    p.access([0, 1], *S, write=False)
    with pytest.raises(PhaseError, match="S may be written while a copy to another block still reads it"):
        p.access([0], *S, write=True)
    p.wait([2, 3], p.barriers[1], 0)
    met(p)
    p.access([0, 1], *S, write=True)


def test_memory_is_free_once_its_block_has_arrived():
    p = blocks()
    p.access([2, 3], *R, write=False)
    with pytest.raises(PhaseError, match="a copy to another block may write R while it is in use there"):
        p.send(0, p.barriers[1], 64, S, R)
    p = blocks()
    p.access([2, 3], *R, write=False)
    met(p)
    p.send(0, p.barriers[1], 64, S, R)


def test_other_parts_are_free():
    p = blocks()
    p.access([2, 3], "R@1", ((4, 4),), write=True)
    p.send(0, p.barriers[1], 64, S, R)
    p.access([2, 3], "R@1", ((4, 4),), write=False)


def test_two_copies_to_one_location_are_not_ordered():
    p = blocks()
    p.send(0, p.barriers[1], 64, S, R)
    with pytest.raises(PhaseError):
        p.send(2, p.barriers[0], 64, ("S@1", S[1]), R)


@pytest.mark.parametrize("how", ["met", "relaxed", "arrival"])
def test_only_the_barrier_of_the_cluster_makes_stores_known(how):
    p = blocks()
    p.store([0, 1], 0, S, R)
    if how == "arrival":
        p.arrive([0], p.barriers[1])
        p.wait([2, 3], p.barriers[1], 0)
    else:
        met(p, how == "met")
    if how == "met":
        p.access([2, 3], *R, write=False)
        return
    with pytest.raises(PhaseError, match="R may be read while a copy to another block still writes it") as caught:
        p.access([2, 3], *R, write=False)
    assert caught.value.what == OF_CLUSTER


def test_stores_wait_for_what_is_in_use():
    p = blocks()
    p.access([3], *R, write=True)
    with pytest.raises(PhaseError, match="while it is in use there"):
        p.store([0, 1], 0, S, R)


def test_a_thread_that_has_not_waited_yet_does_not_pass_on_what_others_stored():
    """The clocks of a block's threads include its stores only for the storing threads."""
    p = blocks()
    p.store([0], 0, S, R)
    p.knowledge(1, 0)
    p.arrive([0], p.barriers[1])
    p.wait([2], p.barriers[1], 0)
    with pytest.raises(PhaseError):
        p.access([2], *R, write=False)


def products(*kinds: str, teams: tuple[int, ...] = (0, 0, 0), waits: int | None = None) -> Phases:
    """Products of two roles, each with its own object; the second uses another accumulator."""
    p = Phases([1, 31, 1, 31], [(f"done{n}", 1) for n in range(3)])
    for n, (kind, team) in enumerate(zip(kinds, teams, strict=False)):
        if waits is not None and n == len(kinds) - 1:
            p.wait([team, team + 1], p.barriers[waits], 0)
        p.complete([team, team + 1], p.barriers[n], [], ["D" if n == 1 and len(kinds) == 3 else "C"], kind)
    return p


def test_products_of_one_kind_add_in_order():
    products("f16", "f16")
    products("f16", "f16", "f16")


@pytest.mark.parametrize(
    ("kinds", "teams", "which"),
    [
        (("f16", "tf32"), (0, 0), "of another kind or shape adds to C"),
        (("f16", "f16"), (0, 2), "of another thread adds to C"),
        (("f16", "tf32", "f16"), (0, 0, 0), "with one of another kind or shape between them adds to C"),
    ],
)
def test_others_have_to_be_waited_for(kinds, teams, which):
    with pytest.raises(PhaseError, match=which):
        products(*kinds, teams=teams)
    products(*kinds, teams=teams, waits=0)


def test_a_product_of_another_kind_is_not_complete_before_those_of_its_thread():
    products("f16", "tf32", "f16", waits=1)
