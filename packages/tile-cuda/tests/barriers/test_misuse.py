"""Barriers where they cannot be accounted for, and operands that they do not take."""

from __future__ import annotations

import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError

from .programs import TARGET


def made(body, threads=64, dtype="int32"):
    @T.prim_func
    def main(A: T.Tensor((64,), dtype), n: T.int32):
        with T.Kernel(1, threads=threads):
            s = T.alloc_shared((64,), dtype)
            body(A, s, n)

    return main


@T.macro
def in_parallel(A, s, n):
    b = T.alloc_barrier(64)
    for _ in T.Parallel(64):
        T.barrier_arrive(b)


@T.macro
def in_vectors(A, s, n):
    b = T.alloc_barrier(64)
    for _ in T.vectorized(4):
        T.barrier_arrive(b)


@T.macro
def in_while(A, s, n):
    b = T.alloc_barrier(64)
    i = T.alloc_var("int32", init=0)
    while i < n:
        T.barrier_arrive(b)
        i = i + 1


@T.macro
def in_loop_that_is_left(A, s, n):
    b = T.alloc_barrier(64)
    for k in range(4):
        T.barrier_arrive(b)
        T.barrier_wait(b, k % 2)
        if n == k:
            break


@T.macro
def by_some_threads(A, s, n):
    b = T.alloc_barrier(32)
    if T.get_thread_binding(0) % 2 == 0:
        T.barrier_arrive(b)


@T.macro
def under_a_value(A, s, n):
    b = T.alloc_barrier(64)
    if n > 3:
        T.barrier_arrive(b)
        T.barrier_wait(b, 0)


@T.macro
def parity_from_memory(A, s, n):
    b = T.alloc_barrier(64)
    for _ in range(4):
        T.barrier_arrive(b)
        T.barrier_wait(b, A[0])


@T.macro
def counted_for_ever(A, s, n):
    b = T.alloc_barrier(64)
    i = T.alloc_var("int32", init=0)
    for _ in range(n):
        T.barrier_arrive(b)
        T.barrier_wait(b, i % 2)
        i = i + 1


@T.macro
def outside_of_its_objects(A, s, n):
    b = T.alloc_barrier([64, 64])
    for k in range(3):
        T.barrier_arrive(b[k])


@T.macro
def from_the_end(A, s, n):
    b = T.alloc_barrier(64)
    for k in range(n):
        T.barrier_arrive(b)
        if k < n - 1:
            T.barrier_wait(b, k % 2)


BAD = {
    "in a data-parallel loop": (in_parallel, "no order"),
    "in a vectorized loop": (in_vectors, "no order"),
    "in a while loop": (in_while, "the trip count of a while loop is unknown"),
    "in a loop that is left": (in_loop_that_is_left, "leaves this loop"),
    "by some of the threads": (by_some_threads, "not all threads execute it together"),
    "under a value": (under_a_value, "not an expression of constants and loop variables"),
    "a parity from memory": (parity_from_memory, "not an expression of constants and loop variables"),
    "a count that grows": (counted_for_ever, "do not repeat their barrier states"),
    "outside of the objects": (outside_of_its_objects, "outside of its 2 objects"),
    "counted from the end": (from_the_end, "changes with k"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("target", [TARGET, "cpu"])
def test_unanalyzable_barriers_are_refused(name, target):
    body, reason = BAD[name]
    with pytest.raises(TileError) as caught:
        tile.compile(made(body), target, **({"runtime": "emulator"} if target != "cpu" else {}))
    assert caught.value.code == "K232", caught.value
    assert reason in str(caught.value)
    assert "test_misuse.py" in str(caught.value)


CALLS = {
    "no arrivals": (lambda s, n: T.alloc_barrier(0), "K1", "1 to 1048575 arrivals"),
    "an empty list": (lambda s, n: T.alloc_barrier([]), "K1", "1 to 1048575 arrivals"),
    "too many objects": (lambda s, n: T.alloc_barrier([1] * 65), "K1", "a list of 1 to 64 such numbers"),
    "arrivals at run time": (lambda s, n: T.alloc_barrier(n), "K1", "1 to 1048575 arrivals"),
    "too many arrivals": (lambda s, n: T.alloc_barrier(2**20), "K1", "1 to 1048575 arrivals"),
    "several objects": (lambda s, n: T.barrier_arrive(T.alloc_barrier([1, 2])), "K232", "has 2 objects"),
    "an object outside": (lambda s, n: T.barrier_arrive(T.alloc_barrier([1, 2])[2]), "K232", "outside of its 2"),
    "an index too much": (lambda s, n: T.barrier_arrive(T.alloc_barrier([1, 2])[0][0]), "K232", "is one object"),
    "a buffer": (lambda s, n: T.barrier_wait(s, 0), "K232", "is not a barrier"),
    "a number": (lambda s, n: T.barrier_arrive(3), "K232", "is not a barrier"),
    "a parity that is no integer": (lambda s, n: T.barrier_wait(T.alloc_barrier(1), 0.5), "K1", "an integer"),
    "no bytes": (lambda s, n: T.mbarrier_expect_tx(T.alloc_barrier(1), 0), "K1", "a positive number of bytes"),
    "bytes at run time": (lambda s, n: T.mbarrier_expect_tx(T.alloc_barrier(1), n), "K1", "a positive number"),
}


@pytest.mark.parametrize("name", CALLS)
def test_operands_are_checked(name):
    call, code, text = CALLS[name]
    with pytest.raises(TileError) as caught:
        made(lambda A, s, n: call(s, n))
    assert caught.value.code.startswith(code)
    assert text in str(caught.value)


@pytest.mark.parametrize("scope", ["loop", "role"])
def test_the_whole_block_makes_a_barrier(scope):
    with pytest.raises(TileError) as caught:

        @T.prim_func
        def main(A: T.Tensor((64,), "int32")):
            with T.Kernel(1, threads=64):
                if scope == "role":
                    with T.ws(0, size=32):
                        T.alloc_barrier(32)
                else:
                    for _ in range(3):
                        T.alloc_barrier(32)

    assert caught.value.code == "K232"
    assert "stands inside a loop, a branch or T.ws" in str(caught.value)


def test_outside_of_a_kernel():
    with pytest.raises(TileError) as caught:
        T.alloc_barrier(1)
    assert "T.alloc_barrier" in str(caught.value)


@pytest.mark.parametrize("stages", [0, 1, 3])
def test_a_pipelined_loop_with_barriers_is_serial(stages):
    """Its overlap is the program's own choice."""

    def text(loop):
        @T.macro
        def body(A, s, n):
            b = T.alloc_barrier(64)
            for k in loop(5):
                T.barrier_arrive(b)
                T.barrier_wait(b, k % 2)

        return tile.compile(made(body), TARGET, runtime="emulator").source

    assert text(lambda n: T.Pipelined(n, num_stages=stages)) == text(T.serial)
