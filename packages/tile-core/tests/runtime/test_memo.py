"""Keys of compiled kernels, and the memo that holds them."""

import dataclasses
import enum
import functools
import threading
import types

import ml_dtypes
import numpy as np
import pytest

from tile_core import dtypes
from tile_core.errors import launch as errors
from tile_core.runtime.freeze import fingerprint, freeze
from tile_core.runtime.memo import Memo, cache_enabled, disable_cache, enable_cache, make_key


@dataclasses.dataclass
class Config:
    block: int
    names: list


class Order(enum.Enum):
    ROW = 1
    COL = 2


class Plain:
    def __init__(self, block):
        self.block = block


DISTINCT = [
    1, 1.0, True, 0, False, None, "1", b"1", 0.0, -0.0, 1j, float("nan"), (1,), [1], {"a": 1}, {"a": 2}, {1}, (1, [2]),
    Config(1, [2]), Config(1, [3]), Order.ROW, Order.COL, np.dtype("float16"), np.float32(1), np.float64(1),
    np.array([1, 2]), np.array([1, 3]), np.array([[1, 2]]), dtypes.dtype("float16"), int, ml_dtypes.bfloat16,
    slice, len, range(3), range(4), np,
]  # fmt: skip


def test_frozen_values_differ_where_kernels_may():
    keys = [freeze(v) for v in DISTINCT]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("i", range(len(DISTINCT)))
def test_freezing_again_gives_an_equal_key(i):
    assert freeze(DISTINCT[i]) == freeze(DISTINCT[i])
    assert hash(freeze(DISTINCT[i])) == hash(freeze(DISTINCT[i]))


def test_equal_contents_give_equal_keys():
    assert freeze([1, {"a": np.array([1.0])}]) == freeze([1, {"a": np.array([1.0])}])
    assert freeze(Config(1, [2])) == freeze(Config(1, [2]))
    assert freeze(functools.partial(max, 1)) == freeze(functools.partial(max, 1))


def test_mutation_of_plain_objects_is_seen():
    config = Plain(1)
    before = freeze(config)
    assert freeze(config) == before
    config.block = 2
    assert freeze(config) != before


def test_cycles():
    loop = []
    loop.append(loop)
    assert freeze(loop) == freeze(loop)


@pytest.mark.parametrize("value", [bytearray(b"1"), np.array([None]), [bytearray()]])
def test_cannot_freeze(value):
    with pytest.raises(errors.CannotFreeze) as caught:
        make_key(test_cycles, {"x": value})
    text = str(caught.value)
    assert text.startswith("[K431] argument x of ")
    assert "cannot be part of a cache key" in text


def factory(block, scale=2):
    def inner(n):
        return n * block + scale

    return inner


def test_fingerprint_sees_closures_defaults_and_code():
    one = fingerprint(factory(1))
    assert one == fingerprint(factory(1))
    assert hash(one) == hash(fingerprint(factory(1)))
    assert len({one, fingerprint(factory(2)), fingerprint(factory(1, 3)), fingerprint(factory(1.0))}) == 4
    functions = [lambda n, m=1: n, lambda n, m=2: n, lambda n, *, m=1: n, lambda n: 1, lambda n: 1.0, lambda n: True]
    assert len({fingerprint(f) for f in functions}) == len(functions)


def test_fingerprint_sees_globals_and_helpers():
    space = types.ModuleType("space")
    exec("BLOCK = 1\ndef helper(): return BLOCK\ndef kernel(): return helper()", space.__dict__)
    before = fingerprint(space.kernel)
    assert fingerprint(space.kernel) == before
    space.BLOCK = 2
    assert fingerprint(space.kernel) != before
    space.BLOCK = 1
    assert fingerprint(space.kernel) == before
    exec("def helper(): return BLOCK + 1", space.__dict__)
    assert fingerprint(space.kernel) != before


def test_fingerprint_of_recursion_and_unfrozen_globals():
    space = types.ModuleType("space")
    exec("DATA = bytearray()\ndef kernel(n): return kernel(n - 1) if DATA else 0", space.__dict__)
    before = fingerprint(space.kernel)
    assert before == fingerprint(space.kernel)
    space.DATA = bytearray()
    assert before != fingerprint(space.kernel)


def test_memo_builds_once_and_says_why():
    memo, built = Memo(), []

    def get(target="cpu", **arguments):
        return memo.get(make_key(factory, arguments, target=target), lambda: built.append(arguments) or len(built))

    assert [get(block=1), get(block=1), get(block=2), get(block=1, target="x"), get(block=1)] == [1, 1, 2, 3, 1]
    assert (memo.stats.hits, memo.stats.misses, len(memo)) == (2, 3, 3)
    assert memo.stats.reasons == {"first compile": 1, "changed: argument block": 1, "changed: target": 1}
    assert str(memo.stats).startswith("2 hits, 3 compiles: first compile (1)")
    memo.clear()
    assert get(block=1) == 4


def test_failures_are_not_kept():
    memo, key = Memo(), make_key(factory, {})
    with pytest.raises(ZeroDivisionError):
        memo.get(key, lambda: 1 // 0)
    assert memo.get(key, lambda: 5) == 5


def test_disable_cache():
    memo, key, built = Memo(), make_key(factory, {}), []
    with disable_cache():
        assert not cache_enabled()
        memo.get(key, lambda: built.append(1))
        memo.get(key, lambda: built.append(1))
    assert len(built) == 2
    assert cache_enabled()
    assert memo.stats.reasons == {"cache disabled": 2}
    disable_cache()
    assert not cache_enabled()
    enable_cache()
    assert cache_enabled()


def test_one_thread_builds():
    memo, key, built = Memo(), make_key(factory, {}), []
    start = threading.Barrier(4)

    def work():
        start.wait()
        memo.get(key, lambda: built.append(1))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1
    assert memo.stats.hits == 3


class TestOverlappingBlocks:
    def test_blocks_of_two_threads(self):
        first, second = disable_cache(), disable_cache()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert not cache_enabled()
        second.__exit__(None, None, None)
        assert cache_enabled()

    def test_one_block_within_itself(self):
        block = disable_cache()
        with block:
            with block:
                assert not cache_enabled()
            assert not cache_enabled()
        assert cache_enabled()

    def test_without_a_block_it_stays_off(self):
        disable_cache()
        with disable_cache():
            pass
        assert not cache_enabled()
        enable_cache()
        assert cache_enabled()

    def test_turned_on_inside(self):
        with disable_cache():
            enable_cache()
            assert cache_enabled()
        assert cache_enabled()

    def test_many_threads(self):
        def use():
            for _ in range(200):
                with disable_cache():
                    assert not cache_enabled()

        threads = [threading.Thread(target=use) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert cache_enabled()
