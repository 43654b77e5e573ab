"""Copies by cp.async: every byte once, zeros out of bounds, proven vector widths."""

from __future__ import annotations

import re
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from machine import Machine

from tile_core.compat.tvm import ir, tirx, tvm
from tile_core.ir import nodes
from tile_core.ir.visit import collect, loads_of
from tile_core.layout import make_swizzled_layout
from tile_core.layout.layout import column_major, row_major
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import View
from tile_core.simt.memory.alignment import Aligned
from tile_core.simt.memory.launch_assumptions import assume
from tile_core.simt.memory.shared_layouts import apply_shared_layouts
from tile_core.simt.variant import Block, Placement, SimtCall
from tile_core.target import Capabilities
from tile_cuda.ops.copy_async import AsyncCopy, can_copy
from tile_cuda.ptx.table import TABLE

pytestmark = pytest.mark.sweep(3)

CTX = SimpleNamespace(capabilities=Capabilities(async_copies=frozenset({"cp.async"})))
TYPES = {"bfloat16": ml_dtypes.bfloat16, "float8_e4m3fn": ml_dtypes.float8_e4m3fn}


class Copy:
    """A copy of a tile at ``corner`` of its source into ``slot`` of ``slots``."""

    def __init__(
        self,
        dtype,
        shape,
        tile,
        corner,
        threads=32,
        *,
        aligned=None,
        slots=0,
        layout=None,
        pad=0,
        values=(),
        strides=None,
    ):
        self.kind = np.dtype(TYPES.get(dtype, dtype))
        self.values = dict(values)
        self.shape = [self.values.get(n, n) if not isinstance(n, int) else n for n in shape]
        self.strides = strides
        self.corner, self.tile, self.threads, self.layout = corner, tile, threads, layout
        self.source = tirx.decl_buffer(list(shape), dtype, "A", strides=strides, layout=None)
        self.to = tirx.decl_buffer(
            [*([slots] if slots else []), *tile[:-1], tile[-1] + pad], dtype, "S", scope="shared", layout=None
        )
        self.aligned = assume([self.source]) if aligned is None else aligned
        self.slots = slots
        self.dst = View(self.to, (0,) * len(self.to.shape), tuple([1] * bool(slots) + list(tile)))
        plain = View(self.to, self.dst.mins[bool(slots) :], tuple(tile))
        if slots:
            flat = tirx.decl_buffer([*tile[:-1], tile[-1] + pad], dtype, "S", scope="shared", layout=None)
            plain = View(flat, (0,) * len(tile), tuple(tile))
        self.src = View(self.source, tuple(corner), tuple(self.extents(tile)))
        self.answer = can_copy(SimtCall("copy", (self.src, plain), {}), CTX, self.aligned)

    def extents(self, tile):
        return [*([1] * (len(self.shape) - len(tile))), *tile]

    def lower(self, slot=0):
        thread = nodes.fresh("tid")
        dst = View(self.to, (slot, *self.dst.mins[1:]), self.dst.extents) if self.slots else self.dst
        placement = Placement(layouts={} if self.layout is None else {self.to: self.layout})
        ranges = tvm.sym.Analyzer()
        ranges.bind(thread, ir.Range.from_min_extent(0, self.threads))
        attrs = {"async": 1, **self.answer.facts}
        call = SimtCall(
            "copy",
            (self.src, dst),
            attrs,
            block=Block((self.threads, 1, 1), thread),
            placement=placement,
            ranges=ranges,
        )
        assert isinstance(AsyncCopy().accepts(call, CTX), Accept)
        return AsyncCopy().lower(call, CTX), thread

    def memory(self, rng):
        """The source: random bytes, none of them zero, between rows too."""
        shape, turned = list(self.shape), False
        if self.strides is not None:
            turned = self.strides[-1] != 1
            shape = [self.shape[1 if turned else 0], max(self.strides)]
        shape[-1] *= self.kind.itemsize
        found = rng.integers(1, 255, shape, dtype=np.uint8).view(self.kind)
        return (found.T if turned else found)[tuple(slice(0, n) for n in self.shape)]

    def run(self, values=(), slot=0, more=None):
        """Execute all threads; check the tile; return the instructions that were executed."""
        values = {**self.values, **dict(values)}
        rng = np.random.default_rng(7)
        array = self.memory(rng)
        body, thread = self.lower(slot)
        body = apply_shared_layouts(
            nodes.seq([tirx.AllocBuffer(self.to), body]), {} if self.layout is None else {self.to: self.layout}
        )
        (alloc,) = [a for a in collect(body, tirx.AllocBuffer) if nodes.scope_of(a.buffer) == "shared"]
        memory = np.full(int(nodes.shape_of(alloc.buffer)[0]) * self.kind.itemsize, 0xAA, np.uint8)
        written = np.zeros(len(memory), int)

        def instruction(name):
            width = int(re.search(r"global_(\d+)", name)[1])

            def execute(machine, args, on):
                to, start = args[:2]
                valid = args[2] if len(args) == 3 else np.full(machine.count, width)
                assert ((valid >= 0) & (valid <= width))[on].all()
                data = np.zeros((machine.count, width), np.uint8)
                for size in set(valid[on].tolist()) - {0}:
                    here = on & (valid == size)
                    data[here, :size] = start.read(size, here, width)[here]
                to.write(data, on)
                np.add.at(written, to.offsets[on][:, None] + np.arange(width), 1)

            return execute

        table = {n: instruction(n) for n in TABLE if re.fullmatch(r"cp_async_c[ag]_shared_global_\d+(_zfill)?", n)}
        arrays = {self.source: array, **(more or {}), alloc.buffer: memory.view(self.kind)}
        machine = Machine(self.threads, thread, arrays, values, instructions=table)
        machine.run(nodes.seq([part for part in body.seq if not isinstance(part, tirx.AllocBuffer)]))
        corner = [int(machine.eval(nodes.int_const(0) + c)[0]) for c in self.corner]
        self.check(memory.view(self.kind), written, array, corner, slot)
        return machine.used

    def check(self, memory, written, array, corner, slot):
        size = self.kind.itemsize
        want = np.zeros(self.extents(self.tile), self.kind)
        for at in np.ndindex(*want.shape):
            index = [c + i for c, i in zip(corner, at, strict=True)]
            if all(0 <= i < n for i, n in zip(index, self.shape, strict=True)):
                want[at] = array[tuple(index)]
        shape = nodes.shape_of(self.to)
        layout = row_major(tuple(shape)) if self.layout is None else self.layout
        placement = np.asarray(layout.tables()["memory"]).reshape(shape)
        region = placement[slot] if self.slots else placement
        region = region[tuple(slice(0, n) for n in self.tile)].reshape(want.shape)
        assert memory[region].tobytes() == want.tobytes()
        times = written.reshape(-1, size)[:, 0]
        assert set(times[region].reshape(-1)) <= {1} or not times.any()
        others = np.ones(len(times), bool)
        others[region.reshape(-1)] = False
        assert not times[others].any()
        assert (memory.view(np.uint8).reshape(-1, size)[others] == 0xAA).all()


def widths(used):
    return {int(re.search(r"global_(\d+)", n)[1]) for n in used}


@pytest.mark.parametrize("threads", [1, 7, 32, 96])
@pytest.mark.parametrize(("dtype", "tile"), [
    ("float16", (16, 32)), ("bfloat16", (5, 8)), ("float32", (17, 4)), ("int8", (8, 48)), ("float64", (3, 6)),
    ("float8_e4m3fn", (4, 64)), ("float32", (64,)), ("uint8", (1, 16)),
])  # fmt: skip
def test_whole_tiles(dtype, tile, threads):
    """Copy tiles within bounds by vectors of 16 bytes, without counts of bytes."""
    shape = (*(n + 3 for n in tile[:-1]), 2 * tile[-1])
    copy = Copy(dtype, shape, tile, (*(2 for _ in tile[:-1]), tile[-1]), threads)
    assert copy.run() == {"cp_async_cg_shared_global_16"}


@pytest.mark.parametrize(
    ("row", "column"), [(0, 0), (-3, 0), (14, 16), (15, -16), (13, 24), (40, 0), (0, 64), (-40, -40)]
)
@pytest.mark.parametrize("columns", [32, 40, 27])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_edges(dtype, columns, row, column):
    """Tiles across each edge and outside, at corners known at run time."""
    r, c = nodes.fresh("r"), nodes.fresh("c")
    copy = Copy(dtype, (17, columns), (4, 16), (r, c * 8), 32)
    if dtype == "float16" and columns == 27:
        assert copy.answer == Reject("rows of A are aligned to 2 bytes in segments of 32; cp.async needs 4")
        return
    used = copy.run({r: row, c: column // 8})
    assert widths(used) == ({4} if columns == 27 else {16})
    inside = 0 <= row <= 13 and 0 <= column <= columns - 16
    assert all(n.endswith("zfill") != inside for n in used)


@pytest.mark.parametrize("n", [16, 48, 80])
@pytest.mark.parametrize("m", [1, 8, 15])
def test_symbolic_extents(m, n):
    """Assume row lengths of multiples of 16 in the specialized version only."""
    rows, columns, k = nodes.fresh("m"), nodes.fresh("n"), nodes.fresh("k")
    values = {rows: m, columns: n}
    for step in (0, 1):
        copy = Copy("float16", (rows, columns), (8, 32), (k * 8, k * 32), values=values)
        assert int(copy.answer.facts["async_whole"]) == 1
        assert widths(copy.run({k: step})) == {16}
        general = Copy("float32", (rows, columns), (8, 32), (k * 8, k * 32), values=values, aligned=Aligned())
        assert widths(general.run({k: step})) == {4}
    refused = Copy("float16", (rows, columns), (16, 32), (0, 0), values=values, aligned=Aligned())
    assert isinstance(refused.answer, Reject)


@pytest.mark.parametrize("n", [29, 30, 31, 33, 3])
def test_partial_chunks(n):
    """Rows that end inside of a chunk: strides are multiples of 16 bytes, extents not."""
    c = nodes.fresh("c")
    copy = Copy("float16", (6, n), (4, 16), (1, c * 16), strides=[40, 1])
    for column in range(-1, 4):
        used = copy.run({c: column})
        assert widths(used) == {16}


@pytest.mark.parametrize(("slots", "slot"), [(2, 0), (3, 2), (4, 1)])
def test_slots_and_swizzles(slots, slot):
    swizzled = make_swizzled_layout((slots, 8, 64), 16)
    r = nodes.fresh("r")
    for layout in (None, swizzled):
        copy = Copy("float16", (20, 128), (8, 64), (r, 64), 32, slots=slots, layout=layout)
        for row in (0, 15):
            assert widths(copy.run({r: row}, slot)) == {16}
    line = Copy("float32", (9, 20), (20,), (r, 0), 32, slots=slots)
    for row in (4, 9):
        line.run({r: row}, slot)


def test_layouts_and_pitches_narrow_the_chunks():
    r = nodes.fresh("r")
    # 16 rows of 32 elements, one row after the other by columns: neighbours lie apart.
    by_columns = column_major((16, 32))
    torn = Copy("float32", (20, 32), (16, 32), (r, 0), 96, layout=by_columns)
    assert by_columns.shape == (16, 32)
    assert widths(torn.run({r: 7})) == {4}
    half = Copy("float16", (20, 32), (16, 32), (r, 0), 96, layout=by_columns)
    for row in (3, 7, -2):
        assert half.run({r: row}) == set()
        body, _ = half.lower()
        assert collect(body, tirx.BufferStore)
    for pad, width in ((8, 16), (4, 8), (2, 4)):
        padded = Copy("float16", (20, 32), (16, 32), (r, 0), 48, pad=pad)
        assert widths(padded.run({r: 6})) == {width}
    assert isinstance(Copy("float16", (20, 32), (16, 32), (r, 0), 48, pad=1).answer, Reject)


def test_columns():
    """Copy columns by single elements of 4 bytes; leave smaller elements to threads."""
    column = Copy("float32", (20, 7), (16, 1), (3, 2))
    assert widths(column.run()) == {4}
    turned = Copy("float32", (20, 8), (16, 4), (6, 2), strides=[1, 20])
    assert widths(turned.run()) == {4}
    assert isinstance(Copy("float16", (20, 8), (16, 4), (6, 2), strides=[1, 20]).answer, Reject)


def test_corners_of_64_bits_and_from_memory():
    k, row = nodes.fresh("k", "int64"), nodes.fresh("row", "int64")
    m = nodes.fresh("m")
    copy = Copy("float16", (m, 64), (4, 16), (row, k * 16), values={m: 9})
    for at in (0, 5, 7, -2):
        copy.run({row: at, k: 1})
    index = tirx.decl_buffer([4], "int32", "I", layout=None)
    rows = np.array([6, 0, -1, 8], np.int32)
    q = nodes.fresh("q")
    copy = Copy("float16", (9, 64), (4, 16), (nodes.load(index, [q]), 16))
    body, _ = copy.lower()
    # The index is read once, not in every chunk.
    assert sum(1 for load in loads_of(body) if str(load.source.name) == "I") == 1
    for at in range(4):
        copy.run({q: at}, more={index: rows})


def test_refusals():
    a = tirx.decl_buffer([16, 32], "float16", "A", layout=None)
    s = tirx.decl_buffer([16, 32], "float32", "S", scope="shared", layout=None)
    h = tirx.decl_buffer([16, 32], "float16", "H", scope="shared", layout=None)
    whole = lambda b: View(b, (0, 0), (16, 32))  # noqa: E731
    aligned = assume([a])

    def reason(attrs, to, ctx=CTX, promise=aligned):
        answer = can_copy(SimtCall("copy", (whole(a), whole(to)), attrs), ctx, promise)
        return answer.reason if isinstance(answer, Reject) else ""

    assert reason({}, h) == ""
    assert reason({}, s) == "it converts float16 to float32"
    assert reason({"variant": "cuda.copy.loops"}, h) == "it requests cuda.copy.loops"
    assert reason({}, h, SimpleNamespace(capabilities=Capabilities())) == "the target has no cp.async"
    assert "aligned to 2 bytes" in reason({}, h, promise=Aligned())
    answer = AsyncCopy().accepts(SimtCall("copy", (whole(a), whole(h)), {}), CTX)
    assert answer == Reject("the copy completes where it stands")
