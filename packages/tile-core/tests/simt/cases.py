"""Programs of one thread to place barriers in."""

from __future__ import annotations

import numpy as np

from tile_core.compat.tvm import tirx
from tile_core.ir import nodes
from tile_core.simt.barriers.insertion import place_barriers
from tile_core.simt.variant import Block

from .thread_program import barriers, lockstep, scatter

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

    def place(self, *body):
        new, report = place_barriers(nodes.seq(body), self.block)
        return new, report

    def check(self, *body, count=None, extra=()):
        """Place barriers, compare random orders with lock step, and return the new body."""
        new, report = self.place(*body)
        if count is not None:
            assert barriers(new) == count, str(new)
        for seed in range(5):
            data = {**self.data(seed), **{b: a.copy() for b, a in extra}}
            want = lockstep(nodes.seq(body), self.block.extents, self.tid, data, seed)
            got = scatter(new, self.block.extents, self.tid, data, seed)
            for g, w in zip(got, want, strict=True):
                np.testing.assert_array_equal(g, w, err_msg=str(new))
        return new, report


def put_zero(s, t):
    return nodes.store(s, nodes.int_const(0), [t])
