"""Proofs that values are equal in all blocks of a cluster, from block coordinates."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import product

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import Expr, Var
from tile_core.ir import nodes
from tile_core.ir.visit import collect, distinct, substitute
from tile_core.records import dataclass

_MOST_CLUSTERS = 2**28


@dataclass
class InCluster:
    """The blocks of a cluster.

    Attributes
    ----------
    cluster
        How many there are along x, y and z.
    axes
        The variables of the block's coordinates.
    binds
        Values of variables.
    """

    cluster: Sequence[int]
    axes: dict[int, Var] = field(default_factory=dict)
    binds: dict[Var, Expr] = field(default_factory=dict)

    def same(self, values: Iterable[Expr], ranks: Sequence[int]) -> bool:
        """Whether values are proved equal in the blocks of these ranks; loads never are."""
        return all(self._same(value, ranks) for value in values if not isinstance(value, int))

    def expanded(self, e: Expr) -> Expr:
        """Return an expression with the values of bound variables."""
        for _ in range(len(self.binds)):
            used = {v: self.binds[v] for v in distinct(collect(e, tirx.Var)) if v in self.binds}
            if not used:
                break
            e = substitute(e, used)
        return e

    def _same(self, value: Expr, ranks: Sequence[int]) -> bool:
        whole = self.expanded(value)
        if collect(whole, ir.TensorLoad) or any(nodes.is_tile_call(c) for c in collect(whole, ir.Call)):
            return False
        if distinct(collect(whole, tirx.Var)).isdisjoint(self.axes.values()):
            return True
        first, *others = [self.at(whole, rank) for rank in ranks]
        return all(tvm_ffi.structural_equal(first, other) for other in others)

    def at(self, e: Expr, rank: int) -> Expr:
        """Return an expression for the block of a rank, simplified, with coordinates of the cluster."""
        bases, ranges = self._clusters
        used = distinct(collect(e, tirx.Var))
        coordinates = list(product(*(range(n) for n in reversed(self.cluster))))[rank][::-1]
        given = {
            var: bases[axis] * nodes.int_const(self.cluster[axis], nodes.dtype_of(var)) + coordinates[axis]
            for axis, var in self.axes.items()
            if var in used
        }
        return ranges.simplify(substitute(e, given)) if given else e

    @functools.cached_property
    def _clusters(self) -> tuple[dict[int, Var], Analyzer]:
        """The coordinates of the cluster and their ranges, once all axes are known."""
        ranges = Analyzer()
        bases = {axis: nodes.fresh(f"cluster_{axis}", nodes.dtype_of(var)) for axis, var in self.axes.items()}
        for base in bases.values():
            kind = nodes.dtype_of(base)
            ranges.bind(base, ir.Range.from_min_extent(nodes.int_const(0, kind), nodes.int_const(_MOST_CLUSTERS, kind)))
        return bases, ranges
