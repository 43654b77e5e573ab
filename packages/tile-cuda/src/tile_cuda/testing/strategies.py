"""Programs for features of some architectures: tensor memory, gathers of rows, cluster copies."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tile_core.testing.case import VALUE, Unit, output, scalar, tensor
from tile_core.testing.data import stored, values
from tile_core.testing.sketch import sparse_operand
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import patterns, randoms, themed
from tile_cuda.testing.meanings import MEANINGS

_themed = functools.partial(themed, meanings=MEANINGS, optional="instructions of one architecture")

#: Element types of A, B and the accumulator, and the elements of a step along K.
_PRODUCTS = (
    ("float16", "float16", "float32", 16), ("float16", "float16", "float32", 16), ("float16", "float16", "float16", 16),
    ("bfloat16", "bfloat16", "float32", 16), ("tfloat32", "tfloat32", "float32", 8), ("int8", "uint8", "int32", 32),
    ("float8_e4m3fn", "float8_e5m2", "float32", 32), ("float8_e5m2", "float8_e5m2", "float32", 32),
)  # fmt: skip
_SPARSE = tuple(p for p in _PRODUCTS if p[0] == p[1] and p[2] != "float16")
#: What stands behind a product within the loop, and behind the loop.
_BEHIND = (
    "", "", "", "for i, j in T.Parallel({m}, {n}):\n    c[i, j] = c[i, j] * 2",
    "for i, j in T.Parallel({m}, {n}):\n    d[i, j] = d[i, j] + T.cast(c[i, j], d.dtype)", "T.gemm({s}, {t}, d{how})",
)  # fmt: skip
_LAST = ("", "", "for i, j in T.Parallel({m}, {n}):\n    c[i, j] = c[i, j] + j", "T.copy(c, d)\nT.copy(d, c)")


@st.composite
def tensor_memory(draw: Draw) -> Unit:
    """Draw a loop of products in tensor memory: dense or sparse, with a barrier."""
    sparse = draw(st.integers(0, 3)) == 0
    kind, other, acc, step = draw(st.sampled_from(_SPARSE if sparse else _PRODUCTS))
    m, n = draw(st.sampled_from((128, 128, 128, 256))), draw(st.sampled_from((16, 32, 48, 64, 96)))
    k = step * draw(st.sampled_from((1, 2, 4))) * (2 if sparse else 1)
    plain = step != 16 or sparse
    ta, tb = (False if plain else draw(st.booleans())), plain or draw(st.booleans())
    most, known = draw(st.integers(1, 4)), draw(st.booleans())
    trips = draw(st.integers(1 if known else 0, most))
    a_tile, b_tile = ((k, m) if ta else (m, k)), ((n, k) if tb else (k, n))
    a_all, b_all = ((k * most, m) if ta else (m, k * most)), ((n, k * most) if tb else (k * most, n))
    first_accumulators = "" if sparse or not known else draw(st.sampled_from(("", ", clear_accum=o == 0")))
    waits = draw(st.integers(0, 2)) == 0
    count = trips if known else "n"
    loop = f"range({count})" if waits else f"T.Pipelined({count}, num_stages={draw(st.integers(0, 3))})"
    how = f", {ta}, {tb}"
    names = {"m": m, "n": n, "s": "s", "t": "t", "how": how}
    lines = [f'c = T.{_accumulator_kind(draw, acc)}(({m}, {n}), "{acc}")', f'd = T.alloc_fragment(({m}, {n}), "{acc}")']
    lines += [f't = T.alloc_shared({b_tile}, "{other}")', "T.clear(d)"]
    lines += ["done = T.alloc_barrier(1)"] * waits
    lines += [] if first_accumulators else [draw(st.sampled_from(("T.clear(c)", "T.fill(c, 2)")))]
    arrival = ", mbar=done" if waits else ""
    params: list[Any]
    data: dict[str, Any]
    trip: list[str] = []
    if sparse:
        te = draw(st.booleans())
        params, data, made, trip = _sparse_operand(draw, (m, k, most), kind, te)
        lines += made
        trip += [f"T.copy(Y[{f'0, o * {k}' if tb else f'o * {k}, 0'}], t)"]
        trip += [f"T.tcgen05_gemm_sp(s, e, t, c, transpose_E={te}, transpose_B={tb}{arrival})"]
    else:
        lines += [f's = T.alloc_shared({a_tile}, "{kind}")']
        trip = [f"T.copy(X[{f'o * {k}, 0' if ta else f'0, o * {k}'}], s)"]
        trip += [f"T.copy(Y[{f'0, o * {k}' if tb else f'o * {k}, 0'}], t)"]
        held = not ta and draw(st.integers(0, 2)) == 0  # A goes through registers to columns beside the accumulator
        lines += [f'f = T.alloc_fragment({a_tile}, "{kind}")'] * held
        trip += ["T.copy(s, f)"] * held
        trip += [f"T.tcgen05_gemm({'f' if held else 's'}, t, c{how}{first_accumulators}{arrival})"]
        params, data = [tensor("X", kind, *a_all)], {"X": randoms(draw, a_all, kind, -2, 2)}
    behind = draw(st.sampled_from(_BEHIND[:-1] if sparse or acc == "float16" else _BEHIND))
    trip += ["T.mbarrier_wait_parity(done, o % 2)"] * waits + [behind]
    lines += [f"for o in {loop}:", *_indented(trip, names), draw(st.sampled_from(_LAST)).format(**names)]
    params += [tensor("Y", other, *b_all), output("B", acc, m, n), output("D", acc, m, n), scalar("n")]
    data |= {"Y": randoms(draw, b_all, other, -2, 2), "n": trips}
    body = "\n".join([*lines, "T.copy(c, B)", "T.copy(d, D)"])
    return _themed("tensor-memory", draw, params, body, {"": data}, VALUE, threads=128, needs=_named("tcgen05_gemm"))


#: Element types of A and B, the scales, and the elements of a block.
_SCALED = (
    ("float8_e4m3fn", "float8_e4m3fn", "float8_e8m0fnu", 32), ("float8_e5m2", "float8_e4m3fn", "float8_e8m0fnu", 32),
    ("float4_e2m1fn", "float4_e2m1fn", "float8_e8m0fnu", 32), ("float4_e2m1fn", "float4_e2m1fn", "float8_e4m3fn", 16),
    ("float4_e2m1fn", "float4_e2m1fn", "float8_e8m0fnu", 16),
)  # fmt: skip


@st.composite
def block_scales(draw: Draw) -> Unit:
    """Draw a loop of products with block scales: static or runtime trip counts, a barrier."""
    a, b, scale, block = draw(st.sampled_from(_SCALED))
    per, (m, n) = 2 if a == "float4_e2m1fn" else 1, draw(st.sampled_from(((128, 16), (128, 48), (128, 64), (256, 32))))
    k, most, known = 32 * per * draw(st.sampled_from((1, 2, 4))), draw(st.integers(1, 3)), draw(st.booleans())
    trips, waits = draw(st.integers(1 if known else 0, most)), draw(st.integers(0, 2)) == 0
    count, each, row = trips if known else "n", k // block, k // per
    loop = f"range({count})" if waits else f"T.Pipelined({count}, num_stages={draw(st.integers(0, 3))})"
    types = ("uint8", "uint8") if per == 2 else (a, b)
    how = f', A_format="{a}", B_format="{b}"' if per == 2 else ""
    lines = [f's = T.alloc_shared(({m}, {row}), "{types[0]}")', f't = T.alloc_shared(({n}, {row}), "{types[1]}")']
    lines += [f'p = T.alloc_shared(({m}, {each}), "{scale}")', f'q = T.alloc_shared(({n}, {each}), "{scale}")']
    lines += [
        f'c = T.{_accumulator_kind(draw, "float32")}(({m}, {n}), "float32")',
        draw(st.sampled_from(("T.clear(c)", "T.fill(c, 2)"))),
    ]
    lines += ["done = T.alloc_barrier(1)"] * waits
    trip = [f"T.copy(X[0, o * {row}], s)", f"T.copy(Y[0, o * {row}], t)", f"T.copy(P[0, o * {each}], p)"]
    trip += [f"T.copy(Q[0, o * {each}], q)"]
    trip += [f"T.tcgen05_gemm_scaled(s, p, t, q, c, transpose_B=True{how}{', mbar=done' if waits else ''})"]
    trip += ["T.mbarrier_wait_parity(done, o % 2)"] * waits
    trip += [draw(st.sampled_from(("", "", "for i, j in T.Parallel({m}, {n}):\n    c[i, j] = c[i, j] * 2")))]
    lines += [f"for o in {loop}:", *_indented(trip, {"m": m, "n": n}), "T.copy(c, B)"]
    rng, shapes = np.random.default_rng(draw(st.integers(0, 10**6))), {"P": (m, each * most), "Q": (n, each * most)}
    params = [tensor("X", types[0], m, row * most), tensor("Y", types[1], n, row * most)]
    params += [tensor(name, scale, *shape) for name, shape in shapes.items()]
    data = {"X": randoms(draw, (m, k * most), a, -2, 2), "Y": randoms(draw, (n, k * most), b, -2, 2), "n": trips}
    data = {name: x.view(np.uint8) if per == 2 and name != "n" else x for name, x in data.items()}
    data |= {name: stored(2.0 ** rng.integers(-2, 3, shape), scale) for name, shape in shapes.items()}
    params += [output("B", "float32", m, n), scalar("n")]
    return _themed(
        "block-scales",
        draw,
        params,
        "\n".join(lines),
        {"": data},
        VALUE,
        threads=128,
        needs=_named("tcgen05_gemm_scaled"),
    )


@st.composite
def tensor_roles(draw: Draw) -> Unit:
    """Draw two roles: one fills slots, the other multiplies and frees them."""
    kind, other, acc, step = draw(st.sampled_from([p for p in _PRODUCTS if p[2] != "float16"]))
    n, k = draw(st.sampled_from((16, 32, 64, 96))), step * draw(st.sampled_from((1, 2, 4)))
    slots, trips, role = draw(st.integers(1, 3)), draw(st.integers(1, 5)), draw(st.integers(0, 1))
    arrives, slot, iteration = draw(st.booleans()), f"o % {slots}", f"o // {slots}"
    freed = "" if arrives else f"\n        T.mbarrier_arrive(empty[{slot}])"
    last = f"range({max(0, trips - slots)}, {trips})"
    waited = f"for z in {last}:\n        T.mbarrier_wait_parity(empty[z % {slots}], z // {slots} % 2)"
    how = f", mbar=empty[{slot}]" if arrives else ""
    body = f"""\
s = T.alloc_shared(({slots}, 128, {k}), "{kind}")
t = T.alloc_shared(({slots}, {n}, {k}), "{other}")
c = T.alloc_fragment((128, {n}), "{acc}")
full = T.alloc_barrier([128] * {slots})
empty = T.alloc_barrier([{1 if arrives else 128}] * {slots})
with T.ws({role}):
    T.clear(c)
for o in range({trips}):
    with T.ws({1 - role}):
        T.mbarrier_wait_parity(empty[{slot}], ({iteration} + 1) % 2)
        T.copy(X[0, o * {k}], s[{slot}, :, :])
        T.copy(Y[0, o * {k}], t[{slot}, :, :])
        T.mbarrier_arrive(full[{slot}])
    with T.ws({role}):
        T.mbarrier_wait_parity(full[{slot}], {iteration} % 2)
        T.tcgen05_gemm(s[{slot}, :, :], t[{slot}, :, :], c, False, True{how}){freed}
with T.ws({role}):
    {waited if arrives else "pass"}
    T.copy(c, B)"""
    data = {"X": randoms(draw, (128, k * trips), kind, -2, 2), "Y": randoms(draw, (n, k * trips), other, -2, 2)}
    params = [tensor("X", kind, 128, k * trips), tensor("Y", other, n, k * trips), output("B", acc, 128, n)]
    needs = _named("tcgen05_gemm") | _named("alloc_barrier")
    return _themed("tensor-roles", draw, params, body, {"": data}, VALUE, threads=256, needs=needs)


def _accumulator_kind(draw: Draw, acc: str) -> str:
    return draw(st.sampled_from(("alloc_tmem", "alloc_fragment"))) if acc in ("float32", "int32") else "alloc_fragment"


def _sparse_operand(
    draw: Draw, sizes: tuple[int, int, int], kind: str, te: bool
) -> tuple[list[Any], dict[str, Any], list[str], list[str]]:
    """Return parameters, data, allocations and copies of a 2:4 sparse operand and its metadata."""
    (m, k, most), meta = sizes, draw(st.sampled_from(("int16", "int32", "uint8")))
    per = {"int16": 4, "int32": 8, "uint8": 2}[meta] * (2 if kind == "tfloat32" else 4)
    meta, per = ("uint8", per // {"int16": 2, "int32": 4, "uint8": 1}[meta]) if k % per else (meta, per)
    kept, metadata = sparse_operand(draw(st.integers(0, 10**6)), m, k * most, kind, meta)
    found = np.ascontiguousarray(metadata.T) if te else metadata
    params = [tensor("X", kind, *kept.shape), tensor("E", meta, *found.shape)]
    made = [f's = T.alloc_shared(({m}, {k // 2}), "{kind}")']
    made += [f'e = T.alloc_shared(({m}, {k // per}), "{meta}")']
    trip = [f"T.copy(X[0, o * {k // 2}], s)", f"T.copy(E[0, o * {k // per}], e)"]
    if te:
        made[1] = f'e = T.alloc_shared(({k // per}, {m}), "{meta}")'
        trip[1] = f"T.copy(E[o * {k // per}, 0], e)"
    return params, {"X": stored(values(kept, kind), kind), "E": found}, made, trip


_ROW_TYPES = ("float16", "bfloat16", "float32", "int32", "uint8", "int64")


@st.composite
def four_rows(draw: Draw) -> Unit:
    """Draw a ring of gathered tiles of four rows, scattered or stored in order."""
    dtype = draw(st.sampled_from(_ROW_TYPES))
    size = np.dtype(dtype if dtype != "bfloat16" else "uint16").itemsize
    width, chunk = draw(st.sampled_from((16, 32, 48, 64, 128, 256))) // size, 16 // size
    height, columns = draw(st.sampled_from((5, 37, 64))), width + chunk * draw(st.integers(0, 3))
    stages = draw(st.integers(1, 3)) if width * size % 32 == 0 else 1  # each begins at a multiple of 128 bytes
    trips, threads = draw(st.integers(0, 4)), draw(st.sampled_from((32, 64, 96)))
    spread, known = draw(st.booleans()), draw(st.booleans())
    inside = st.integers(-2 if spread else -9, height + 2)
    rows = [draw(st.lists(inside, min_size=4, max_size=4, unique=spread)) for _ in range(max(trips, 1))]
    slot, column = f"s[k % {stages}, :, :]", draw(st.sampled_from((0, f"n * {chunk}", chunk if columns > width else 0)))
    numbers = draw(st.sampled_from(("R[k * 4 : k * 4 + 4]", "[R[k * 4], R[k * 4 + 1], R[k * 4 + 2], R[k * 4 + 3]]")))
    numbers = repr(rows[0]) if known else numbers
    barrier, announced = draw(st.booleans()), draw(st.booleans())
    trip = [f'T.mbarrier_expect_tx(full[k % {stages}], T.tma_gather4_bytes({width}, "{dtype}"))'] * announced
    full = f", barrier=full[k % {stages}]" if barrier else ""
    trip = (trip if barrier else []) + [f"T.tma_gather4(A, {slot}, {column}, {numbers}{full})"]
    waits = [f"T.mbarrier_arrive(full[k % {stages}])", f"T.mbarrier_wait_parity(full[k % {stages}], k // {stages} % 2)"]
    trip += waits * barrier
    to = f"T.tma_scatter4({slot}, B, {chunk if columns > width and draw(st.booleans()) else 0}, {numbers})"
    trip += [to if spread else f"T.copy({slot}, B[k * 4, 0])"]
    lines = [f's = T.alloc_shared(({stages}, 4, {width}), "{dtype}")']
    lines += [f"full = T.alloc_barrier([{threads}] * {stages})"] * barrier
    lines += [f"for k in range({trips}):", *_indented(trip or ["pass"], {})]
    shape = (height, columns) if spread else (max(trips, 1) * 4, width)
    params = [tensor("A", dtype, height, columns), tensor("R", "int32", len(rows) * 4), output("B", dtype, *shape)]
    params.append(scalar("n"))
    data = {"A": patterns(draw, (height, columns), dtype), "R": np.array(rows, "int32").reshape(-1)}
    data |= {"B": patterns(draw, shape, dtype), "n": draw(st.integers(-1, 3))}
    text, needs = "\n".join(lines), _named("tma_gather4")
    # The boxes of a tensor map are of a whole matrix.
    return _themed("four-rows", draw, params, text, {"": data}, threads=threads, needs=needs, whole=("A", "B"))


@st.composite
def multicast(draw: Draw) -> Unit:
    """Draw clusters in which one block multicasts tiles, with signals after reads."""
    dtype, blocks = draw(st.sampled_from(("float16", "float32", "uint8"))), draw(st.sampled_from((2, 2, 4, 3)))
    mask = draw(st.integers(1, 2**blocks - 1))
    rows, cols = draw(st.sampled_from((1, 4, 8, 16))), 128 // np.dtype(dtype).itemsize * draw(st.sampled_from((1, 2)))
    stages, trips, grid = draw(st.integers(1, 3)), draw(st.integers(0, 5)), blocks * draw(st.integers(1, 2))
    shape = (rows * max(trips, 1), cols)
    part = f"k * {rows} : (k + 1) * {rows}"
    if draw(st.booleans()):
        body = f"""\
s = T.alloc_shared(({rows}, {cols}), "{dtype}")
for k in range({trips}):
    T.tma_copy(A[{part}, :], s, cluster_mask={mask})
    T.copy(s, B[bx, {part}, :])"""
    else:
        slot, iteration = f"k % {stages}", f"k // {stages}"
        # The block that copies for all hears of it last: what others do earlier would be a phase too far for it.
        order, mask = [*draw(st.permutations(range(1, blocks))), 0], 2**blocks - 1
        reads = f"T.copy(s[{slot}, :, :], B[bx, {part}, :])"
        if draw(st.booleans()):
            reads = (
                f"for i, j in T.Parallel({rows}, {cols}):\n            B[bx, k * {rows} + i, j] = s[{slot}, i, j] + 1"
            )
        body = f"""\
s = T.alloc_shared(({stages}, {rows}, {cols}), "{dtype}")
ready = T.alloc_barrier([32] * {stages})
done = T.alloc_cluster_barrier([{32 * blocks}] * {stages})
for k in range({trips}):
    with T.ws(0, size=32):
        T.mbarrier_wait_parity(done[{slot}], ({iteration} + 1) % 2)
        T.tma_copy(A[{part}, :], s[{slot}, :, :], barrier=ready[{slot}], cluster_mask={mask})
        T.mbarrier_arrive(ready[{slot}])
    with T.ws(1, size=32):
        T.mbarrier_wait_parity(ready[{slot}], {iteration} % 2)
        {reads}
        for r in T.static_range({blocks}):
            T.mbarrier_arrive(done[{slot}], cta_id={order}[r])"""
    params = [tensor("A", dtype, *shape), output("B", dtype, grid, *shape)]
    data = {"A": randoms(draw, shape, dtype, 0, 9), "B": randoms(draw, (grid, *shape), dtype, 0, 9)}
    return _themed(
        "multicast", draw, params, body, {"": data}, grid=str(grid), threads=64, cluster=str(blocks),
        needs=_named("alloc_cluster_barrier"),
    )  # fmt: skip


def _named(name: str) -> frozenset[str]:
    return frozenset({f"name:{name}"})


def _indented(statements: list[str], names: dict[str, Any]) -> list[str]:
    return [f"    {line}" for s in statements for line in (s.format(**names) if names else s).splitlines()]


TENSOR_MEMORY = st.one_of(tensor_memory(), tensor_roles(), block_scales())
FOUR_ROWS, MULTICAST = four_rows(), multicast()
