"""Ledger of explicit barriers: balanced programs pass, refusals name barrier and iterations."""

from __future__ import annotations

import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError

from .programs import TARGET

TRIPS = 6


def exchange(
    produce, consume, *, full=32, empty=32, stages=2, before=lambda full, empty: None, after=lambda full, empty: None,
    dynamic=True, trips=TRIPS,
):  # fmt: skip
    """A kernel whose first role fills a slot per iteration; a second role reads it.

    Parameters
    ----------
    produce, consume
        Calls on ``(full, empty, k, work)``; ``work`` is the copy, or the reading.
    before, after
        Calls by the whole block, of 64 threads.
    """

    @T.prim_func
    def main(A: T.Tensor((TRIPS, 64), "float32"), B: T.Tensor((TRIPS, 64), "float32"), n: T.int32):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((stages, 64), "float32")

            def fill(k):
                T.copy(A[k, 0:64], s[k % stages, :])

            def read(k):
                T.copy(s[k % stages, :], B[k, 0:64])

            ready = T.alloc_barrier([full] * stages)
            free = T.alloc_barrier([empty] * stages)
            before(ready, free)
            for k in range(n if dynamic else trips):
                with T.ws(0, size=32):
                    produce(ready, free, k, fill)
                with T.ws(1, size=32):
                    consume(ready, free, k, read)
            after(ready, free)

    return main


def produce(full, empty, k, work, stages=2):
    T.barrier_wait(empty[k % stages], (k // stages + 1) % 2)
    work(k)
    T.barrier_arrive(full[k % stages])


def consume(full, empty, k, work, stages=2):
    T.barrier_wait(full[k % stages], k // stages % 2)
    work(k)
    T.barrier_arrive(empty[k % stages])


def three(role):
    return lambda full, empty, k, work: role(full, empty, k, work, 3)


def parity_as_variable(stages):
    """The parity of one slot changes after each round: a variable holds it."""

    @T.prim_func
    def main(A: T.Tensor((TRIPS, 64), "float32"), B: T.Tensor((TRIPS, 64), "float32"), n: T.int32):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            ready, free = T.alloc_barrier(32), T.alloc_barrier(32)
            phase = T.alloc_var("int32", init=0)
            for k in range(n):
                with T.ws(0, size=32):
                    T.barrier_wait(free, 1 - phase)
                    T.copy(A[k, 0:64], s)
                    T.barrier_arrive(ready)
                with T.ws(1, size=32):
                    T.barrier_wait(ready, phase)
                    T.copy(s, B[k, 0:64])
                    T.barrier_arrive(free)
                phase = phase ^ 1

    return main


@T.macro
def wait_from_the_second_round_on(full, empty, k, work):
    if k >= 2:
        T.barrier_wait(empty[k % 2], (k // 2 - 1) % 2)
    work(k)
    T.barrier_arrive(full[k % 2])


def bits(full, empty, k, work):
    T.barrier_wait(empty[k & 1], ((k >> 1) & 1) ^ 1)
    work(k)
    T.barrier_arrive(full[k & 1])


BALANCED = {
    "two slots": exchange(produce, consume),
    "three slots": exchange(three(produce), three(consume), stages=3),
    "a wait only where there is something to wait for": exchange(wait_from_the_second_round_on, consume),
    "bits": exchange(bits, consume),
    "a constant trip count": exchange(produce, consume, dynamic=False),
    "a long constant trip count": exchange(produce, consume, dynamic=False, trips=1001),
    "no trip": exchange(produce, consume, dynamic=False, trips=0),
    "a parity that is a variable": parity_as_variable(1),
}


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("name", BALANCED)
def test_these_balance(name):
    source = tile.compile(BALANCED[name], TARGET, runtime="emulator").source
    if name != "no trip":
        assert "mbarrier_wait_parity(" in source


def nested(outer, inner):
    """Phases that go on from one tile to the next."""

    @T.prim_func
    def main(A: T.Tensor((TRIPS, 64), "float32"), B: T.Tensor((TRIPS, 64), "float32"), m: T.int32, n: T.int32):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            ready, free = T.alloc_barrier(32), T.alloc_barrier(32)
            phase = T.alloc_var("int32", init=0)
            for i in range(m if outer is None else outer):
                for k in range(n if inner is None else inner):
                    with T.ws(0, size=32):
                        T.barrier_wait(free, 1 - phase)
                        T.copy(A[k, 0:64], s)
                        T.barrier_arrive(ready)
                    with T.ws(1, size=32):
                        T.barrier_wait(ready, phase)
                        T.copy(s, B[i, 0:64])
                        T.barrier_arrive(free)
                    phase = 1 - phase

    return main


@pytest.mark.parametrize(("outer", "inner"), [(None, None), (3, None), (None, 5), (2, 3)])
def test_loops_in_loops_balance(outer, inner):
    tile.compile(nested(outer, inner), TARGET, runtime="emulator")


def no_wait(full, empty, k, work):
    work(k)
    T.barrier_arrive(full[k % 2])


def wait_of_the_same_round(full, empty, k, work):
    T.barrier_wait(empty[k % 2], k // 2 % 2)
    work(k)
    T.barrier_arrive(full[k % 2])


def parity_of_the_trip(full, empty, k, work):
    T.barrier_wait(full[k % 2], k % 2)
    work(k)
    T.barrier_arrive(empty[k % 2])


def parity_of_the_next_round(full, empty, k, work):
    T.barrier_wait(full[k % 2], (k // 2 + 1) % 2)
    work(k)
    T.barrier_arrive(empty[k % 2])


def never_arrives(full, empty, k, work):
    T.barrier_wait(empty[k % 2], (k // 2 + 1) % 2)
    work(k)


def never_released(full, empty, k, work):
    T.barrier_wait(full[k % 2], k // 2 % 2)
    work(k)


def arrives_twice(full, empty, k, work):
    produce(full, empty, k, work)
    T.barrier_arrive(full[k % 2])


def arrives_at_the_other_slot(full, empty, k, work):
    T.barrier_wait(empty[k % 2], (k // 2 + 1) % 2)
    work(k)
    T.barrier_arrive(full[(k + 1) % 2])


def waits_for_the_other_slot(full, empty, k, work):
    T.barrier_wait(full[(k + 1) % 2], k // 2 % 2)
    work(k)
    T.barrier_arrive(empty[k % 2])


@T.macro
def skips_the_first_trip(full, empty, k, work):
    T.barrier_wait(empty[k % 2], (k // 2 + 1) % 2)
    work(k)
    if k > 0:
        T.barrier_arrive(full[k % 2])


def releases_early(full, empty, k, work):
    T.barrier_arrive(empty[k % 2])
    T.barrier_wait(full[k % 2], k // 2 % 2)
    work(k)


@T.macro
def stops_at_the_third_trip(full, empty, k, work):
    if k < 3:
        consume(full, empty, k, work)


def no_wait_for_the_copy(full, empty, k, work):
    work(k)
    T.barrier_arrive(empty[k % 2])


def announces(size):
    def role(full, empty, k, work):
        T.mbarrier_expect_tx(full[k % 2], size)
        produce(full, empty, k, work)

    return role


@T.macro
def waits_a_round_late(full, empty, k, work):
    if k >= 4:
        T.barrier_wait(empty[k % 2], k // 2 % 2)
    work(k)
    T.barrier_arrive(full[k % 2])


@T.macro
def waits_in_even_trips(full, empty, k, work):
    if k % 4 < 2:
        T.barrier_wait(full[k % 2], k // 2 % 2)
    work(k)
    T.barrier_arrive(empty[k % 2])


def one_too_many(full, empty):
    T.barrier_arrive(full[0])


def waits_at_the_end(full, empty):
    T.barrier_wait(full[0], 0)


def parity_two(full, empty, k, work):
    T.barrier_wait(full[k % 2], 2)
    work(k)


UNBALANCED = {
    # arrivals
    "more arrivals are counted than come": (exchange(produce, consume, full=64), "ready[0]", "gets 32 of 64 arrivals"),
    "fewer arrivals are counted than come": (exchange(produce, consume, full=16), "ready[0]", "gets 32 arrivals of 16"),
    "one arrival is counted, and each thread arrives": (
        exchange(produce, consume, empty=1), "free[0]", "gets 32 arrivals of 1",
    ),
    "no arrival": (exchange(never_arrives, consume), "ready[0]", "gets 0 of 32 arrivals before it"),
    "an arrival twice": (exchange(arrives_twice, consume), "ready[0]", "may come before phase 0 has ended"),
    "an arrival at another slot": (exchange(arrives_at_the_other_slot, consume), "ready[0]", "0 of 32 arrivals"),
    "no arrival in the first trip": (exchange(skips_the_first_trip, consume), "ready[0]", "0 of 32 arrivals"),
    "an arrival of all threads before": (
        exchange(produce, consume, before=one_too_many), "ready[0]", "gets 64 arrivals of 32",
    ),
    "a slot is never given back": (exchange(produce, never_released), "free[0]", "gets 0 of 32 arrivals"),
    # waits
    "no wait for the slot": (exchange(no_wait, consume), "ready[0]", "may come before phase 0 has ended"),
    "no wait for the copy": (exchange(produce, no_wait_for_the_copy), "free[0]", "phase 0 may end while a thread"),
    "a wait that would pass only later": (exchange(wait_of_the_same_round, consume), "free[0]", "does not pass"),
    "a parity of the wrong round": (exchange(produce, parity_of_the_next_round), "ready[0]", "does not pass"),
    "a parity that follows trips, not rounds": (exchange(produce, parity_of_the_trip), "ready[1]", "does not pass"),
    "a wait for another slot": (exchange(produce, waits_for_the_other_slot), "ready[1]", "gets 0 of 32 arrivals"),
    "a wait one round late": (exchange(waits_a_round_late, consume), "ready[0]", "may come before phase 0 has ended"),
    "a wait in every second round": (exchange(produce, waits_in_even_trips), "free[0]", "before phase 0 has ended"),
    "a slot is given back before the wait": (exchange(produce, releases_early), "free[0]", "may end while"),
    "a parity of two": (exchange(produce, parity_two), "ready[0]", "a parity is 0 or 1"),
    # ends
    "the reader leaves early": (exchange(produce, stops_at_the_third_trip), "free[1]", "gets 0 of 32 arrivals"),
    "a wait after the loop for what no trip makes": (
        exchange(produce, consume, after=waits_at_the_end), "ready[0]", "does not pass",
    ),
    "a phase is left open": (exchange(produce, consume, after=one_too_many, full=64), "ready[0]", "32 of 64"),
    # bytes
    "bytes that nothing copies": (exchange(announces(256), consume), "ready[0]", "expects 256 bytes and gets 0"),
    "more bytes than a phase counts": (exchange(announces(2**20), consume), "ready[0]", "the maximum is 1048575"),
}  # fmt: skip


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("name", UNBALANCED)
def test_these_are_refused(name):
    program, barrier, reason = UNBALANCED[name]
    with pytest.raises(TileError) as caught:
        tile.compile(program, TARGET, runtime="emulator")
    error = caught.value
    assert error.code == "K233", error
    assert error.facts["what"] == barrier, error
    assert reason in error.facts["reason"], error
    assert "of the loop k" in error.facts["when"] or "block ends" in error.facts["reason"] or not error.facts["when"]


@pytest.mark.parametrize("name", UNBALANCED)
def test_a_processor_refuses_them_too(name):
    with pytest.raises(TileError) as caught:
        tile.compile(UNBALANCED[name][0], "cpu")
    assert caught.value.code == "K233"


def test_the_refusal_names_the_line_and_the_iterations():
    with pytest.raises(TileError) as caught:
        tile.compile(exchange(produce, never_released), TARGET, runtime="emulator")
    text = str(caught.value)
    assert "[K233] the barrier free[0] does not balance in iteration 2 of 3 of the loop k" in text
    assert "a wait for parity 0 does not pass: phase 0 gets 0 of 32 arrivals before it" in text
    assert "produce(ready, free, k, fill)" in text


def test_a_long_loop_is_refused_where_it_goes_wrong():
    @T.macro
    def late(full, empty, k, work):
        T.barrier_wait(full[k % 2], k // 2 % 2)
        work(k)
        if k < 40:
            T.barrier_arrive(empty[k % 2])

    with pytest.raises(TileError) as caught:
        tile.compile(exchange(produce, late, dynamic=False, trips=300), TARGET, runtime="emulator")
    assert caught.value.code == "K233"
    assert "in iteration 42" in caught.value.facts["when"]
