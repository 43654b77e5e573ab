"""Rejections of the test machine, and differences between its two schedules."""

import numpy as np
import pytest
from machine import Machine

from tile_core.compat.tvm import tirx
from tile_core.ir import calls, nodes

N = 8


class Block:
    """Eight threads, a shared buffer and an output."""

    def __init__(self):
        self.t = nodes.fresh("tid")
        self.s, self.alloc = nodes.alloc([N], "int32", "S", "shared")
        self.out = tirx.decl_buffer([N], "int32", "B", layout=None)

    def machine(self, **how):
        return Machine(N, self.t, {self.out: np.zeros(N, np.int32)}, **how)

    def put(self, at=None, value=None):
        return nodes.store(self.s, self.t if value is None else value, [self.t if at is None else at])

    def get(self, at):
        return nodes.store(self.out, nodes.load(self.s, [at]), [self.t])


def refused(what, b, *body, **how):
    with pytest.raises(AssertionError, match=what):
        b.machine(**how).run(nodes.seq([b.alloc, *body]))


def test_orders():
    """In lockstep all threads write before any reads; alone, the first reads early."""
    b = Block()
    body = nodes.seq([b.alloc, b.put(), b.get(N - 1 - b.t)])
    want = np.arange(N)[::-1]
    np.testing.assert_array_equal(b.machine().run(body).memory.arrays[b.out], want)
    assert any((b.machine().scatter(body, seed).memory.arrays[b.out] != want).any() for seed in range(5))
    ordered = nodes.seq([b.alloc, b.put(), calls.sync_threads(), b.get(N - 1 - b.t)])
    for seed in range(5):
        np.testing.assert_array_equal(b.machine().scatter(ordered, seed).memory.arrays[b.out], want)


def test_races():
    b = Block()
    refused("race on S", b, b.put(), b.get(N - 1 - b.t), races=True)
    refused("two threads write", b, b.put(tirx.floordiv(b.t, 2)), races=True)
    b.machine(races=True).run(nodes.seq([b.alloc, b.put(), calls.sync_threads(), b.get(N - 1 - b.t)]))
    b.machine(races=True).run(nodes.seq([b.alloc, calls.step(b.put()), b.get(N - 1 - b.t)]))


def test_outside_and_misaligned():
    b = Block()
    refused("outside of S", b, b.put(b.t + 1))
    b.machine(lenient=True).run(nodes.seq([b.alloc, b.put(b.t + 1)]))
    move = lambda at, size: calls.move(b.out, [nodes.int_const(0)], b.s, [at], size)  # noqa: E731
    refused("misaligned", b, b.put(), tirx.IfThenElse(b.t < 1, move(nodes.int_const(1), 8), None))
    refused("outside", b, b.put(), tirx.IfThenElse(b.t < 1, move(nodes.int_const(8), 8), None))


def test_barriers_of_some_threads():
    b = Block()
    refused("a part of the threads", b, tirx.IfThenElse(b.t < 3, calls.sync_threads(), None))
    both = tirx.IfThenElse(b.t < 3, calls.sync_threads(), nodes.seq([calls.sync_threads(), b.put()]))
    for body, what in ((tirx.IfThenElse(b.t < 3, calls.sync_threads(), None), "ended"), (both, "different barriers")):
        with pytest.raises(AssertionError, match=what):
            b.machine().scatter(nodes.seq([b.alloc, body]), 0)


def test_masks():
    b = Block()
    value = tirx.Cast("uint32", b.t)

    def shuffle(mask):
        args = [nodes.const(mask, "uint32"), value, nodes.const(1, "uint32")]
        found = nodes.tile_call("shuffle", args, {"mode": "bfly", "width": 8}, ret="uint32")
        return nodes.store(b.out, tirx.Cast("int32", found), [b.t])

    run = b.machine(width=8).run(shuffle(255))
    np.testing.assert_array_equal(run.memory.arrays[b.out], np.arange(N) ^ 1)
    refused("the mask does not fit", b, shuffle(127), width=8)
    refused("does not take part", b, tirx.IfThenElse(b.t < 3, shuffle(7), None), width=8)


def copy_of(dst, src, slot):
    regions = [nodes.region(src, [0], [4]), nodes.region(dst, [slot, 0], [1, 4])]
    return tirx.Evaluate(nodes.tile_call("copy", regions, {"async": 1}))


def test_slots():
    s, alloc = nodes.alloc([2, 4], "int32", "S", "shared")
    a = tirx.decl_buffer([4], "int32", "A", layout=None)
    b = tirx.decl_buffer([4], "int32", "B", layout=None)
    begin, read = copy_of(s, a, 1), nodes.store(b, nodes.load(s, [1, 2]), [2])
    commit, wait, sync = calls.async_commit(), calls.async_wait(0), calls.sync_threads()

    def run(*body):
        arrays = {a: np.arange(4, dtype=np.int32), b: np.zeros(4, np.int32)}
        return Machine(arrays=arrays).run(nodes.seq([alloc, *body])).memory.arrays[b]

    np.testing.assert_array_equal(run(begin, commit, wait, sync, read), [0, 0, 2, 0])
    for body, what in (
        ((begin, commit, read), "while its copy is flying"),
        ((begin, commit, wait, read), "while its copy is arrived"),
        ((begin, commit), "still in flight"),
        ((begin, commit, wait, sync, read, begin), "may still read it"),
    ):
        with pytest.raises(AssertionError, match=what):
            run(*body)
