"""The product as its call states it, and its query of a legality table."""

from __future__ import annotations

import functools
from dataclasses import replace

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr
from tile_core.ir import attributes, nodes
from tile_core.layout.fragment import FragmentLayout
from tile_core.lowering.legality import Asked
from tile_core.ops.base import OpCall, View
from tile_core.ops.gemm import GemmWarpPolicy
from tile_core.ops.gemm_scaled import is_packed
from tile_core.records import dataclass
from tile_core.simt.variant import SimtCall


@dataclass(frozen=True)
class Problem:
    """A product as its call states it.

    Attributes
    ----------
    a, b, c
        The tiles.
    types
        Element types of A, B and C as the program names them.
    turned_a, turned_b, turned_c
        Whether A is stored as (K, M), B as (N, K), and C as (N, M).
    m, n, k
        Extents; K is that of B.
    clear
        A bool or an expression: whether C counts as zero.
    positions
        Of A, B and C among the operands.
    """

    a: View
    b: View
    c: View
    types: tuple[str, str, str]
    turned_a: bool
    turned_b: bool
    m: int
    n: int
    k: int
    clear: Expr
    positions: tuple[int, int, int]
    turned_c: bool = False

    @classmethod
    def of(cls, call: OpCall) -> Problem:
        """Decode a call of a product."""
        found: Problem | None = call.decided.get("problem")
        if found is None:
            found = call.decided["problem"] = cls._decoded(call)
        return found

    @classmethod
    def _decoded(cls, call: OpCall) -> Problem:
        positions = {"gemm": (0, 1, 2), "gemm_sp": (0, 2, 3), "gemm_scaled": (0, 2, 4)}[call.name]
        a, b, c = (call.args[p] for p in positions)
        clear = call.args[positions[2] + 1]
        types = [str(t) for t in call.attrs[attributes.TYPES]]
        turned_a, turned_b = bool(call.attrs[attributes.TRANSPOSE_A]), bool(call.attrs[attributes.TRANSPOSE_B])
        (m, n), (k, _) = _extents(c), _extents(b)
        if turned_b:
            k = _extents(b)[1] * (2 if is_packed(b.dtype, types[positions[1]]) else 1)
        known = bool(int(clear.value)) if isinstance(clear, tirx.IntImm) else clear
        a_type, b_type, c_type = (types[p] for p in positions)
        found = cls(a, b, c, (a_type, b_type, c_type), turned_a, turned_b, m, n, k, known, positions)
        return found.exchanged() if attributes.EXCHANGED in call.attrs else found

    def exchanged(self) -> Problem:
        """Return the product of the transposed operands, whose result is C transposed."""
        types, positions = self.types, self.positions
        return replace(
            self, a=self.b, b=self.a, types=(types[1], types[0], types[2]), turned_a=not self.turned_b,
            turned_b=not self.turned_a, m=self.n, n=self.m, positions=(positions[1], positions[0], positions[2]),
            turned_c=not self.turned_c,
        )  # fmt: skip

    @property
    def form(self) -> Problem:
        """The product without its buffers and corners: equal for equal tiles, slots included."""
        a, b, c = map(_tile_of, self.views)
        return Problem(a, b, c, self.types, self.turned_a, self.turned_b, self.m, self.n, self.k, False, self.positions)

    @property
    def views(self) -> tuple[View, View, View]:
        """A, B and C."""
        return self.a, self.b, self.c

    @property
    def sizes(self) -> dict[str, int]:
        """Extents by the names of axes in legality tables."""
        return {"M": self.m, "N": self.n, "K": self.k}

    @property
    def axes(self) -> tuple[str, str, str]:
        """Axes of the rows and columns of A, B and C, in storage order."""
        return "KM" if self.turned_a else "MK", "NK" if self.turned_b else "KN", "NM" if self.turned_c else "MN"

    def resized(self, axis: str, size: int) -> Problem:
        """Return the product with another extent; the rest of its buffers remains."""
        views = zip((self.a, self.b, self.c), self.axes, strict=True)
        a, b, c = (_resized(view, axes.find(axis), self.sizes[axis], size) for view, axes in views)
        sizes = {**self.sizes, axis: size}
        return replace(self, a=a, b=b, c=c, m=sizes["M"], n=sizes["N"], k=sizes["K"])


def asked(call: SimtCall, sparse: bool) -> Asked:
    """Return a call's query of a legality table."""
    p = Problem.of(call)
    views = {"A": p.a, "B": p.b, "C": p.c}
    if sparse:
        views["E"] = call.args[1]
    return Asked(
        sizes=p.sizes,
        dtypes=dict(zip("ABC", p.types, strict=True)),
        scopes={role: "fragment" if v.scope == "local.fragment" else v.scope for role, v in views.items()},
        threads=call.block.count,
    )


def policy_of(call: OpCall, problem: Problem) -> int:
    """Return how warps are split: a fragment that several warps would replicate decides."""

    def held(view: View) -> bool:
        return view.scope == "local.fragment"

    asked_for = int(call.attrs[attributes.POLICY])
    if problem.turned_c and asked_for != GemmWarpPolicy.Square:
        asked_for = GemmWarpPolicy.FullRow + GemmWarpPolicy.FullCol - asked_for
    if asked_for == GemmWarpPolicy.Square and held(problem.a) != held(problem.b):
        return int(GemmWarpPolicy.FullRow if held(problem.a) else GemmWarpPolicy.FullCol)
    return int(asked_for)


def placed(found: FragmentLayout, extents: tuple[int, ...], rows: int, columns: int, turned: bool) -> FragmentLayout:
    """Extend the layout of a matrix, two dimensions of a buffer, to the whole buffer."""
    own = found.permute((1, 0)) if turned else found
    for d in range(len(extents)):
        if d not in (rows, columns):
            own = own.insert(d)
    return own


def _tile_of(view: View) -> View:
    """Return a tile like a view, without leading dimensions of which it takes one index."""
    shape, extents = tuple(nodes.shape_of(view.buffer)), view.extents
    if len(shape) > 2 and view.matrix_dims()[0] == len(shape) - 2 and extents[:-2] == (1,) * (len(shape) - 2):
        shape, extents = shape[-2:], extents[-2:]
    return _tile(view.dtype, view.scope, shape, extents)


@functools.lru_cache(maxsize=512)
def _tile(dtype: str, scope: str, shape: tuple[Expr, ...], extents: tuple[int, ...]) -> View:
    return View(nodes.alloc(shape, dtype, "tile", scope)[0], (0,) * len(shape), extents)


def _resized(view: View, at: int, old: int, new: int) -> View:
    """Return a tile with another extent of rows (0) or columns (1); unchanged for neither."""
    if at < 0:
        return view
    dimension, shape, extents = view.matrix_dims()[at], list(nodes.shape_of(view.buffer)), list(view.extents)
    extents[dimension] = extents[dimension] * new // old
    shape[dimension] += extents[dimension] - view.extents[dimension]
    return View(nodes.alloc(shape, view.dtype, view.name, view.scope)[0], view.mins, tuple(extents))


def _extents(view: View) -> tuple[int, int]:
    rows, columns = view.matrix_dims()
    return view.extents[rows], view.extents[columns]
