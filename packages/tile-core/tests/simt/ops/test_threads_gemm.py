"""Products by threads on the test machine: types, sizes, threads, places of the tiles, and what the grid is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.layout import LayoutMap
from tile_core.layout.fragment import FragmentLayout
from tile_core.lowering.variant import Accept
from tile_core.ops.base import View
from tile_core.simt.ops.gemm import GemmByThreads, grid_of
from tile_core.simt.variant import SimtCall

from ..bench import CTX, Bench, numpy_type

SCOPES = {"s": "shared", "r": "local.fragment"}
TYPES = (
    ("float32", "float32", "float32"), ("bfloat16", "float32", "float32"), ("int16", "int8", "int32"),
    ("int64", "int8", "int64"), ("float16", "float16", "float16"), ("float64", "float32", "float64"),
)  # fmt: skip
GEMM = GemmByThreads("core")


class Product:
    """A product whose tiles lie in larger buffers: ``corner`` is where they begin, ``margin`` what follows."""

    def __init__(
        self, m: int, n: int, k: int, types: Any = TYPES[0], *, scopes: str = "ssr", turned: Any = (False, False),
        threads: int = 64, clear: Any = False, corner: Any = (0, 0), margin: Any = (0, 0), runtime: int | None = None,
        variant: Any = GEMM,
    ) -> None:  # fmt: skip
        self.variant = variant
        self.bench, self.offset, self.runtime = Bench(threads), nodes.fresh("offset"), runtime
        self.corner, self.margin = corner, margin
        if runtime is not None:
            self.bench.machine.values[self.offset] = np.full(threads, runtime, np.int32)
        rng = np.random.default_rng(1)
        a, b, c = (
            rng.integers(-2, 3, shape).astype(numpy_type(t))
            for shape, t in zip(((m, k), (k, n), (m, n)), types, strict=True)
        )
        self.full: dict[str, Any] = {}
        self.start = c
        views = [
            self.view("A", a.T if turned[0] else a, types[0], scopes[0]),
            self.view("B", b.T if turned[1] else b, types[1], scopes[1]),
            self.view("C", c, types[2], scopes[2]),
        ]
        wide = np.int64 if DTYPES[types[0]].is_integer else np.float64
        self.product = a.astype(wide) @ b.astype(wide)
        clear = nodes.const(clear, "bool") if isinstance(clear, bool) else clear(self.bench.thread)
        attrs = {"transpose_A": turned[0], "transpose_B": turned[1], "policy": 0, "types": list(types)}
        self.args = (*views, clear)
        bench = self.bench
        self.call = SimtCall("gemm", self.args, attrs, block=bench.block, placement=bench.placement)
        assert isinstance(variant.accepts(self.call, CTX), Accept)
        self.wants = variant.layouts(self.call, CTX)

    def view(self, name: str, values: Any, dtype: str, scope: str) -> View:
        (top, left), (below, right) = ((0, 0), (0, 0)) if scope == "r" else (self.corner, self.margin)
        rows, columns = values.shape
        kind = values.dtype
        poison = np.array(77, kind) if kind.kind in "iu" else np.array(np.nan).astype(kind)
        full = np.full((rows + top + below, columns + left + right), poison, kind)
        full[top : top + rows, left : left + columns] = values
        self.full[name] = full
        at = self.offset if self.runtime is not None and name != "C" else left
        return View(self.bench.tile(full, dtype, name, SCOPES[scope]), (top, at), (rows, columns))

    def run(self) -> Any:
        """Return C; what lies beside it must be as it was."""
        bench, c = self.bench, self.args[2]
        found = self.wants.get(2)
        if isinstance(found, FragmentLayout):
            bench.hold(c.buffer, found)
            held = np.full((bench.machine.count, found.registers), 77).astype(self.start.dtype)
            held[found.thread_table, found.register_table[:, None]] = self.start.reshape(-1, 1)
            bench.machine.private[bench.placement.arrays[c.buffer]] = held
        bench.run(self.variant, "gemm", self.args, dict(self.call.attrs))
        if isinstance(found, FragmentLayout):
            return bench.value(c.buffer)
        full, (top, left), (rows, columns) = bench.value(c.buffer), c.mins, c.extents
        part = (slice(top, top + rows), slice(left, left + columns))
        beside = np.ones(full.shape, bool)
        beside[part] = False
        assert full[beside].tobytes() == self.full["C"][beside].tobytes(), "an element beside C was written"
        return full[part]


def check(m: int, n: int, k: int, types: Any = TYPES[0], **facts: Any) -> None:
    """Run a product; the result must be exact."""
    product = Product(m, n, k, types, **facts)
    want = product.product if facts.get("clear") is True else product.product + product.start.astype(np.float64)
    found = product.run()
    assert found.dtype == numpy_type(types[2])
    assert (found == want.astype(found.dtype)).all()


@pytest.mark.sweep(1)
@pytest.mark.parametrize("types", TYPES, ids="-".join)
@pytest.mark.parametrize("scopes", ["ssr", "sss"])
def test_types(types: tuple[str, str, str], scopes: str) -> None:
    for turned in ((False, False), (True, True)):
        check(32, 24, 16, types, scopes=scopes, turned=turned)
        check(9, 11, 7, types, scopes=scopes, turned=turned, threads=31)


@pytest.mark.parametrize("threads", [1, 31, 32, 96, 128])
def test_threads(threads: int) -> None:
    for m, n in ((16, 12), (7, 17), (1, 1)):
        check(m, n, 9, threads=threads, clear=True)
        check(m, n, 8, threads=threads, corner=(2, 4), margin=(1, 3), scopes="sss")


def test_runtime_clear_and_corner() -> None:
    for limit in (0, 1000):
        product = Product(9, 11, 16, clear=lambda t, limit=limit: t < limit, threads=128)
        assert (product.run() == product.product + (0 if limit else product.start)).all()
    check(16, 16, 16, corner=(0, 4), runtime=4)


def test_fragments_of_a_and_b_are_moved_to_shared_memory() -> None:
    product = Product(16, 16, 16, scopes="rsr")
    assert set(product.wants) == {0, 2}
    assert isinstance(product.wants[0], LayoutMap)
    assert (product.run() == product.product + product.start).all()


def test_the_grid_of_the_usual_tile() -> None:
    g = grid_of(128, 128, 256)
    assert (g.each_m * g.each_n, g.vector) == (64, 4)
    assert GEMM.name == "core.simt.gemm"
