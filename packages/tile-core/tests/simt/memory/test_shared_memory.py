"""Shared buffers in one dimension, and their places in the arena."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tile_core.analysis.index_evaluation import evaluate
from tile_core.compat.tvm import ir, tirx
from tile_core.errors import InternalError
from tile_core.errors.memory import SharedMemoryExceeded
from tile_core.ir import calls, nodes
from tile_core.ir.attributes import ALIGNMENT, OFFSET
from tile_core.ir.visit import collect
from tile_core.layout import DigitLayout, make_swizzled_layout, row_major, strided
from tile_core.simt.memory.arena import plan_arena
from tile_core.simt.memory.shared_layouts import apply_shared_layouts
from tile_core.simt.variant import Block

TID = nodes.fresh("tid")
BLOCK = Block((128, 1, 1), TID)


def shared(name, shape, dtype="float16", where=None, **notes):
    b = tirx.decl_buffer(list(shape), dtype, name, scope="shared", layout=None)
    return b, tirx.AllocBuffer(b, notes or {}, where)


def put(b, *at):
    return nodes.store(b, nodes.zero(nodes.element_type(b)), list(at))


def indices_of(body):
    return [st.indices for st in collect(body, tirx.BufferStore)]


LAYOUTS = [
    lambda: None,
    lambda: make_swizzled_layout((64, 64), element_bits=16),
    lambda: make_swizzled_layout((64, 32), element_bits=16),
    lambda: make_swizzled_layout((32, 32), element_bits=32),
    lambda: strided((16, 24), (28, 1)),
    lambda: strided((16, 24), (1, 17)),
    lambda: row_major((3, 5)),
    lambda: DigitLayout((32, 8), "(4,8,8):(8,32,1)"),
]


@pytest.mark.parametrize("make", LAYOUTS)
def test_every_element_has_the_offset_of_its_layout(make):
    layout = make()
    shape = (16, 24) if layout is None else layout.shape
    s, alloc = shared("S", shape)
    i, j = nodes.fresh("i"), nodes.fresh("j")
    body = nodes.for_loop(i, shape[0], nodes.for_loop(j, shape[1], put(s, i, j)))
    new = apply_shared_layouts(nodes.seq([alloc, body]), {} if layout is None else {s: layout}, BLOCK)
    ((offset,),) = indices_of(new)
    (flat,) = [a.buffer for a in collect(new, tirx.AllocBuffer)]
    grid = np.meshgrid(*(np.arange(n) for n in shape), indexing="ij")
    got = np.broadcast_to(evaluate(offset, dict(zip((i, j), grid, strict=True))), shape)
    want = [(layout or row_major(shape))(*at) for at in itertools.product(*(range(n) for n in shape))]
    np.testing.assert_array_equal(got.ravel(), want)
    assert nodes.shape_of(flat) == [max(want) + 1]
    assert nodes.element_type(flat) == "float16"


def test_index_arithmetic_is_what_an_expert_writes():
    s, alloc = shared("S", (64, 64))
    r, v = nodes.fresh("r"), nodes.fresh("v")
    rows = put(s, tirx.floordiv(TID, 8) + r * 16, tirx.floormod(TID, 8) * 8)
    body = nodes.seq([alloc, nodes.for_loop(r, 4, rows), nodes.for_loop(v, 8, put(s, nodes.int_const(5), v + 24))])
    layout = make_swizzled_layout((64, 64), element_bits=16)
    ((first,), (second,)) = indices_of(apply_shared_layouts(body, {s: layout}, BLOCK))
    assert str(first) == "r * 1024 + tid // 8 * 64 + (tid % 8 ^ tid % 64 // 8) * 8"
    assert str(second) == "v + 368"
    ((first,), (second,)) = indices_of(apply_shared_layouts(body, {}, BLOCK))
    assert str(first) == "r * 1024 + tid * 8"
    assert str(second) == "v + 344"


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("seed", range(20))
def test_simplified_indices_keep_their_values(seed):
    rng = np.random.default_rng(seed)
    bits = int(rng.choice([8, 16, 32]))
    shape = (int(rng.choice([8, 16, 24, 64])), int(rng.choice([16, 32, 64, 128])))
    s, alloc = shared("S", shape, f"int{bits}")
    k, at = nodes.fresh("k"), nodes.fresh("at")
    width = int(rng.choice([1, 2, 4, 8]))
    rows = [tirx.floormod(TID + int(rng.integers(9)), shape[0]), tirx.floormod(TID * 3 + k, shape[0])]
    row = rows[rng.integers(2)]
    column = tirx.floormod(tirx.bitwise_xor(TID, k) * width + int(rng.integers(4)), shape[1])
    body = nodes.for_loop(k, 5, nodes.seq([tirx.Bind(at, column), put(s, row, at)]))
    layout = make_swizzled_layout(shape, element_bits=bits)
    new = apply_shared_layouts(nodes.seq([alloc, body]), {s: layout}, BLOCK)
    ((offset,),) = indices_of(new)
    tid, step = np.arange(128)[:, None], np.arange(5)[None, :]
    env = {TID: tid, k: step}
    env[at] = evaluate(column, env)
    got = np.broadcast_to(evaluate(offset, env), (128, 5))
    i, j = np.broadcast_to(evaluate(row, env), (128, 5)), np.broadcast_to(env[at], (128, 5))
    table = np.array([layout(*c) for c in itertools.product(*(range(n) for n in shape))]).reshape(shape)
    np.testing.assert_array_equal(got, table[i, j])


def test_addresses_moves_and_marks_follow():
    s, alloc = shared("S", (4, 8))
    g = tirx.decl_buffer([4, 8], "float16", "G", layout=None)
    body = nodes.seq([
        alloc, calls.move(s, [1, 0], g, [1, 0], 16), calls.execute("load", [calls.address(s, [2, 3], "r")]),
        calls.managed([s], put(s, nodes.load(s, [0, 1]).astype("int32"), 0)),
    ])  # fmt: skip
    new = apply_shared_layouts(body, {})
    (flat,) = [a.buffer for a in collect(new, tirx.AllocBuffer)]
    loads = {str(x) for x in collect(new, ir.TensorLoad)}
    assert loads == {"S[8]", "G[1, 0]", "S[19]", "S[1]"}
    (mark,) = collect(new, tirx.AttrStmt)
    assert next(iter(mark.node)).same_as(flat)
    assert not any(v.same_as(s) for v in collect(new, tirx.Var))


def view_of(s, shape, dtype, name="V"):
    data = tirx.buffer_data(s)
    v = tirx.decl_buffer(list(shape), dtype, name, data=data, scope="shared", layout=None)
    return v, tirx.DeclBuffer(v, data=data)


def test_views_share_bytes_and_have_no_layout():
    s, alloc = shared("S", (4, 8))
    v, decl = view_of(s, (8, 2), "float32")
    body = nodes.seq([alloc, decl, put(s, 1, 2), put(v, 3, 1)])
    new = apply_shared_layouts(body, {})
    assert [str(p[0]) for p in indices_of(new)] == ["10", "7"]
    (flat,), (shown,) = collect(new, tirx.AllocBuffer), collect(new, tirx.DeclBuffer)
    assert nodes.shape_of(shown.buffer) == [16]
    assert any(x.same_as(flat.buffer) for x in collect(shown.data, tirx.Var))
    with pytest.raises(InternalError, match="which has a view"):
        apply_shared_layouts(body, {s: row_major((4, 8))})
    with pytest.raises(InternalError, match="layout for the view"):
        apply_shared_layouts(body, {v: row_major((8, 2))})


def test_elements_smaller_than_a_byte():
    s, alloc = shared("S", (3, 5), "int4")
    plain = apply_shared_layouts(nodes.seq([alloc, put(s, 2, 1)]), {})
    assert str(indices_of(plain)[0][0]) == "11"
    assert plan_arena(plain, 1000)[1].bytes == 15
    v, decl = view_of(s, (9,), "uint8")
    packed = apply_shared_layouts(nodes.seq([alloc, decl, put(s, 2, 1), put(v, 1)]), {})
    assert str(indices_of(packed)[0][0]) == "13"
    assert plan_arena(packed, 1000)[1].bytes == 9


# The arena


def offsets(arena):
    return {a.name: a.offset for a in arena.arrays}


def test_buffers_of_different_times_share_bytes():
    (a, alloc_a), (b, alloc_b), (c, alloc_c) = (shared(n, (100,)) for n in "ABC")
    body = nodes.seq([alloc_a, alloc_b, alloc_c, put(a, 0), put(b, 0), nodes.store(c, nodes.load(b, [0]), [0])])
    new, arena = plan_arena(body, 1000)
    assert offsets(arena) == {"A": 0, "B": 0, "C": 256}
    assert arena.bytes == 456
    assert [int(x.annotations[OFFSET]) for x in collect(new, tirx.AllocBuffer)] == [0, 0, 256]


def test_a_loop_keeps_what_it_uses_alive():
    (a, alloc_a), (b, alloc_b), (c, alloc_c) = (shared(n, (64,), "float32") for n in "ABC")
    k = nodes.fresh("k")
    main = nodes.for_loop(k, 4, nodes.seq([put(a, 0), put(b, 0)]))
    _, arena = plan_arena(nodes.seq([alloc_a, alloc_b, alloc_c, main, put(c, 0)]), 1000)
    assert arena.bytes == 512
    assert offsets(arena)["A"] != offsets(arena)["B"]
    assert offsets(arena)["C"] == 0
    inside = nodes.for_loop(k, 4, nodes.seq([alloc_a, put(a, 0), alloc_b, put(b, 0)]))
    assert plan_arena(inside, 1000)[1].bytes == 256
    spin = tirx.While(nodes.load(a, [0]) > 0, put(b, 0))
    assert plan_arena(nodes.seq([alloc_a, alloc_b, spin]), 1000)[1].bytes == 512


def test_a_step_a_branch_and_a_region_are_one_moment():
    (a, alloc_a), (b, alloc_b) = (shared(n, (64,), "float32") for n in "AB")
    allocs = [alloc_a, alloc_b]
    two = [put(a, 0), put(b, 0)]
    assert plan_arena(nodes.seq([*allocs, *two]), 1000)[1].bytes == 256
    assert plan_arena(nodes.seq([*allocs, calls.step(nodes.seq(two))]), 1000)[1].bytes == 512
    assert plan_arena(nodes.seq([*allocs, tirx.IfThenElse(TID < 3, two[0], two[1])]), 1000)[1].bytes == 512
    assert plan_arena(nodes.seq([*allocs, calls.managed([a], nodes.seq(two))]), 1000)[1].bytes == 512


def test_alignment():
    (a, alloc_a), (b, alloc_b), (c, alloc_c), (d, alloc_d) = (
        shared("A", (3,), "int8"), shared("B", (5,), "int8"), shared("C", (128,), "int8"),
        shared("D", (7,), "int8", **{ALIGNMENT: 1024}),
    )  # fmt: skip
    use = calls.step(nodes.seq([put(x, 0) for x in (a, b, c, d)]))
    _, arena = plan_arena(nodes.seq([alloc_a, alloc_b, alloc_c, alloc_d, use]), 4096)
    for x, n in zip(arena.arrays, (16, 16, 128, 1024), strict=True):
        assert x.offset % n == 0
    spans = sorted((x.offset, x.offset + x.bytes) for x in arena.arrays)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))


@pytest.mark.parametrize("seed", range(20))
def test_what_is_used_at_one_time_never_overlaps(seed):
    rng = np.random.default_rng(seed)
    buffers = [shared(f"S{n}", (int(rng.integers(1, 300)),), "int8") for n in range(10)]
    moments = [sorted(rng.choice(10, int(rng.integers(1, 4)), replace=False)) for _ in range(12)]
    steps = [calls.step(nodes.seq([put(buffers[n][0], 0) for n in m])) for m in moments]
    _, arena = plan_arena(nodes.seq([*(x[1] for x in buffers), *steps]), 1 << 16)
    lives = {n: [t for t, m in enumerate(moments) if n in m] for n in range(10)}
    for (m, x), (n, y) in itertools.combinations(enumerate(arena.arrays), 2):
        alive = lives[m] and lives[n] and lives[m][0] <= lives[n][-1] and lives[n][0] <= lives[m][-1]
        if alive:
            assert x.offset + x.bytes <= y.offset or y.offset + y.bytes <= x.offset
    assert arena.bytes == max(x.offset + x.bytes for x in arena.arrays)


def test_views_keep_their_buffer_alive():
    (a, alloc_a), (b, alloc_b) = (shared(n, (64,), "float32") for n in "AB")
    v, decl = view_of(a, (128,), "int16")
    body = [alloc_a, alloc_b, decl, put(a, 0), put(b, 0), put(v, 0)]
    assert plan_arena(nodes.seq(body), 1000)[1].bytes == 512


def test_too_much_is_refused_with_the_breakdown():
    where = nodes.span_of(nodes.Where("kernel.py", 17))
    (a, alloc_a), (b, alloc_b) = shared("A_s", (3, 64, 64), where=where), shared("B_s", (64,), "float32")
    k = nodes.fresh("k")
    region = calls.managed([a], nodes.for_loop(k, 4, calls.step(nodes.seq([put(a, 0, 0, 0), put(b, 0)]))))
    body = apply_shared_layouts(nodes.seq([alloc_a, alloc_b, region]), {})
    assert plan_arena(body, 24832)[1].bytes == 24832
    with pytest.raises(SharedMemoryExceeded) as refused:
        plan_arena(body, 20000)
    text = str(refused.value)
    assert "needs 24832 bytes" in text
    assert "has 20000" in text
    assert "num_stages=2" in text
    assert "A_s  (3, 64, 64)  float16  24576 bytes  line 17" in text
    assert "B_s" in text
    assert refused.value.code == "U301"
    assert refused.value.where.line == 17
    with pytest.raises(SharedMemoryExceeded, match="make the tiles smaller, A_s"):
        plan_arena(body, 4000)


def test_nothing_shared():
    body = nodes.seq([put(tirx.decl_buffer([4], "int8", "G", layout=None), 0)])
    new, arena = plan_arena(body, 10)
    assert new is body
    assert arena.bytes == 0
    assert apply_shared_layouts(body, {}) is body
