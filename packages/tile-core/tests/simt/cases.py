"""Programs of one thread to place barriers in."""

from __future__ import annotations

import numpy as np
from machine import Machine

from tile_core.compat.tvm import ir, tirx
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.simt.barriers.insertion import insert_barriers
from tile_core.simt.variant import Block

N = 64


def tensor(name, shape=(N,), dtype="int32"):
    return tirx.decl_buffer(list(shape), dtype, name, layout=None)


def shared(name, shape=(N,), dtype="int32"):
    return nodes.alloc(shape, dtype, name, "shared")


def loop(var, extent, *body):
    return nodes.for_loop(var, extent, nodes.seq(body))


def when(condition, then, other=None):
    return tirx.IfThenElse(condition, then, other)


class Case:
    """A block of threads with an input ``A`` and an output ``B``."""

    def __init__(self, threads=N, width=N):
        self.tid = nodes.fresh("tid")
        self.block = Block((threads, 1, 1), self.tid)
        self.A, self.B = tensor("A", (width,)), tensor("B", (width,))

    def data(self, seed):
        rng = np.random.default_rng(seed)
        shapes = [tuple(int(n) for n in b.shape) for b in (self.A, self.B)]
        return {self.A: rng.integers(0, 9, shapes[0], np.int32), self.B: np.full(shapes[1], -77, np.int32)}

    def machine(self, data):
        arrays = {b: a.copy() for b, a in data.items()}
        return Machine(self.block.extents, self.tid, arrays, instructions={"atom_add": _atom_add, "sum": _sum})

    def insert(self, *body):
        new, report = insert_barriers(nodes.seq(body), self.block)
        return new, report

    def check(self, *body, count=None, extra=()):
        """Insert barriers, compare random orders with lock step, and return the new body."""
        new, report = self.insert(*body)
        if count is not None:
            assert barriers(new) == count, str(new)
        for seed in range(5):
            data = {**self.data(seed), **{b: a.copy() for b, a in extra}}
            want = self.machine(data).run(nodes.seq(body)).memory.arrays
            got = self.machine(data).scatter(new, seed).memory.arrays
            for g, w in ((got[b], want[b]) for b in data):
                np.testing.assert_array_equal(g, w, err_msg=str(new))
        return new, report


def barriers(body):
    """Return how many barriers a body holds."""
    return sum(nodes.is_tile_call(c, "sync_threads") for c in collect(body, ir.Call))


def put_zero(s, t):
    return nodes.store(s, nodes.int_const(0), [t])


def _atom_add(machine, args, on):
    np.add.at(args[0].array, tuple(p[on] for p in args[0].indices), args[1][on])


def _sum(machine, args, on):
    """The sum of a whole shared array into a register."""
    held, to = args[0].registers(1, on)
    held[to[0][on], to[1][on]] = args[1].array.sum()
