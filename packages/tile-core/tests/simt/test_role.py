import pytest

from tile_core.errors import InternalError
from tile_core.ir import nodes
from tile_core.simt.role import Role
from tile_core.simt.variant import Block


def test_a_part_of_a_block():
    role = Role("consumers", 128, 256)
    assert list(role.threads) == list(range(128, 384))
    assert role.warps(32) == 8
    assert role.leader == Role("first of consumers", 128, 1)
    assert role.leader.leader == role.leader
    assert str(role) == "consumers (threads 128-383)"
    assert str(role.leader) == "first of consumers (thread 128)"


@pytest.mark.parametrize(("first", "count"), [(-1, 32), (0, 0)])
def test_has_threads(first, count):
    with pytest.raises(InternalError, match="threads from"):
        Role("empty", first, count)


@pytest.mark.parametrize(("first", "count"), [(16, 32), (0, 33)])
def test_may_not_be_made_of_warps(first, count):
    with pytest.raises(InternalError, match="not made of whole warps"):
        Role("some", first, count).warps(32)


def test_a_block_has_parts():
    block = Block((32, 8, 1), nodes.fresh("tid"))
    assert block.role == Role("the block", 0, 256)
    assert block.number is block.thread
    part = block.part(Role("consumers", 128, 64))
    assert (part.count, part.first, part.extents) == (64, 128, (64, 1, 1))
    assert part.role.threads == range(128, 192)
    assert str(part.number) == "tid - 128"
