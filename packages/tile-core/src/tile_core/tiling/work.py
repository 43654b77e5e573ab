"""Count the work of a program: floating-point operations, and bytes of tensors."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tile_core.abi.signature import Signature, evaluate
from tile_core.analysis.ranges import Ranges
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.dtypes import DTYPES, dtype
from tile_core.ir.program import Program
from tile_core.ir.visit import bodies_of, collect, statements
from tile_core.numerics.build import type_name
from tile_core.ops.base import OpCall, is_op
from tile_core.records import dataclass
from tile_core.simt.ops.gemm_problem import Problem
from tile_core.simt.pipelining.async_products import products_of
from tile_core.tiling.workload import UNKNOWN_TRIPS, trip_count

_ARITHMETIC = (tirx.Add, tirx.Sub, tirx.Mul, tirx.Div)
_FOLDS = ("reduce", "scan")
SPARSE = " 2:4"
"""Ends the kind of a product whose A is 2:4 sparse."""


@dataclass(frozen=True)
class ProgramWork:
    """The work of one call.

    Attributes
    ----------
    products
        Floating-point operations of matrix products, two per multiplication, by the element type of A, with `SPARSE`
        behind it where A is 2:4 sparse; these count as dense.
    arithmetic
        Additions, subtractions, multiplications and divisions of other floats, those of reductions included.
    moved
        Bytes of tensors, each read or written once: what a launch moves at least if it uses all of each.
    known
        Whether all trip counts are known. Conditions count as true.
    """

    products: Mapping[str, float]
    arithmetic: float
    moved: int
    known: bool

    @property
    def operations(self) -> float:
        """Return all floating-point operations."""
        return sum(self.products.values()) + self.arithmetic

    @property
    def kind(self) -> str:
        """Return the element type of most operations: of products where there are any."""
        return max(self.products, key=lambda name: self.products[name]) if self.products else "float32"


def work_of(program: Program, signature: Signature, sizes: Mapping[str, int]) -> ProgramWork:
    """Count the work of one call.

    Parameters
    ----------
    program
        A traced program.
    signature
        Of its kernel.
    sizes
        Values of its symbolic sizes, by name.
    """
    counter = _Counter()
    for name, var in program.symbols.items():
        counter.ranges.set(var, (sizes[name], sizes[name]))
    counter.count(program.func.body, 1.0)
    return ProgramWork(counter.products, counter.arithmetic, _moved(signature, sizes), counter.known)


def _moved(signature: Signature, sizes: Mapping[str, int]) -> int:
    moved = 0
    for param in signature.params[: len(signature.params) - signature.workspaces]:
        if param.kind == "tensor":
            size = prod(evaluate(d, sizes) or 0 for d in param.shape) * dtype(param.dtype).bits // 8
            moved += size * (2 if param.access == "readwrite" else 1)
    return moved


class _Counter:
    """Adds up the operations of statements, times the trip counts of the loops around them."""

    def __init__(self) -> None:
        self.ranges = Ranges()
        self.products: dict[str, float] = {}
        self.arithmetic, self.known = 0.0, True

    def count(self, s: Stmt, times: float) -> None:
        """Count the operations of a statement that runs ``times`` times."""
        for one in statements(s):
            inner = times
            if type(one) is tirx.While:
                inner, self.known = times * UNKNOWN_TRIPS, False
            elif type(one) is tirx.For:
                trips = trip_count(one.extent, self.ranges)
                self.known = self.known and (trips != UNKNOWN_TRIPS or self.ranges.of(one.extent)[1] == UNKNOWN_TRIPS)
                inner = times * trips
                self.ranges.loop(one)
            elif is_op(one):
                self._op(one, times)
            elif not bodies_of(one):
                floats = (e for e in collect(one, _ARITHMETIC) if _is_float(type_name(e)))
                self.arithmetic += times * sum(1 for _ in floats)
            for body in bodies_of(one):
                self.count(body, inner)

    def _op(self, s: Stmt, times: float) -> None:
        call = OpCall.decode(s)
        if products_of(s):
            p = Problem.of(call)
            kind = p.types[0] + SPARSE * (call.name == "gemm_sp")
            self.products[kind] = self.products.get(kind, 0.0) + times * 2 * int(p.m) * int(p.n) * int(p.k)
        elif call.name in _FOLDS and call.args and _is_float(call.args[0].dtype):
            self.arithmetic += times * prod(call.args[0].extents)


def _is_float(name: str) -> bool:
    return name in DTYPES and DTYPES[name].is_float
