"""Cooperation of threads: shuffles, votes, reductions, atomics, shared memory, matrix products."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tile_core.compat.tvm import tirx
from tile_core.ir import calls, nodes
from tile_core.simt.threads.warp_calls import lower_warp_calls
from tile_core.simt.variant import Block
from tile_cuda.ptx import atomics

from .kit import buffer, kernel, passed, run, shared

pytestmark = pytest.mark.sweep(3)

TYPES = ("int8", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64")


def numpy_of(dtype: str) -> Any:
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def values(dtype: str, count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype.startswith(("int", "uint")):
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, count, dtype, endpoint=True)
    return rng.integers(-40, 41, count).astype(numpy_of(dtype))


def exchanged(parts: list[Any], thread: Any, threads: int) -> Any:
    """The statements with warp operations as the pipeline gives them to the emitter."""
    return passed(lower_warp_calls(nodes.seq(parts), Block((threads, 1, 1), thread), 32))


SHUFFLES = [
    ("shfl_sync", 5, 0), ("shfl_sync", -1, 8), ("shfl_xor", 1, 0), ("shfl_xor", 16, 0), ("shfl_xor", 9, 8),
    ("shfl_up", 3, 0), ("shfl_up", 40, 0), ("shfl_down", 7, 16), ("shfl_down", 16, 16), ("shfl_down", 33, 0),
]  # fmt: skip


def shuffled(x: np.ndarray, name: str, amount: np.ndarray, width: int) -> np.ndarray:
    """Apply the language's rule: invalid lanes and amounts beyond the group yield the own value."""
    out = x.copy()
    for t in range(len(x)):
        lane, first = t % width, t - t % width
        by = int(amount[t])
        source = {"shfl_sync": by % width, "shfl_xor": lane ^ by, "shfl_up": lane - by, "shfl_down": lane + by}[name]
        if 0 <= source < width and first + source < len(x):
            out[t] = x[first + source]
    return out


@pytest.mark.parametrize(
    ("dtype", "threads"), [*((d, 64) for d in TYPES), ("float32", 45), ("int8", 45), ("float64", 45)]
)
def test_shuffles(dtype: str, threads: int) -> None:
    x = values(dtype, threads, 1)
    amounts = np.random.default_rng(2).integers(-3, 36, threads).astype(np.int32)
    X, D, t = buffer((threads,), dtype, "X"), buffer((threads,), "int32", "D"), tirx.Var("t", "int32")
    outs, parts, want = [], [tirx.Bind(t, calls.thread_index(0))], []
    for i, (name, amount, width) in enumerate([*SHUFFLES, *((n, None, w) for n, _, w in SHUFFLES[::2])]):
        out = buffer((threads,), dtype, f"out{i}")
        by = D[t] if amount is None else nodes.int_const(amount)
        call = nodes.tile_call(name, [X[t], by, nodes.int_const(width)], ret=dtype)
        parts.append(nodes.store(out, call, [t]))
        outs.append(out)
        given = amounts if amount is None else np.full(threads, amount)
        want.append(shuffled(x, name, given, width or 32))
    text = kernel([X, D, *outs], exchanged(parts, t, threads), threads=threads)
    result = run(text, x, amounts, *[np.zeros_like(x) for _ in outs])
    for i, expected in enumerate(want):
        np.testing.assert_array_equal(result.outputs[f"out{i}"], expected, err_msg=str(i))


@pytest.mark.parametrize(
    ("dtype", "threads"), [*((d, 64) for d in TYPES), *((d, 43) for d in TYPES[1::3]), ("float32", 33), ("int32", 7)]
)
def test_reductions_of_a_warp(dtype: str, threads: int) -> None:
    x = values(dtype, threads, 3)
    integer = dtype.startswith(("int", "uint"))
    kinds = ["sum", "max", "min", *(["bitand", "bitor"] if integer else [])]
    X, t = buffer((threads,), dtype, "X"), tirx.Var("t", "int32")
    outs = [buffer((threads,), dtype, f"out_{k}") for k in kinds]
    parts = [tirx.Bind(t, calls.thread_index(0))]
    parts += [
        nodes.store(o, nodes.tile_call(f"warp_reduce_{k}", [X[t]], ret=dtype), [t])
        for o, k in zip(outs, kinds, strict=True)
    ]
    result = run(
        kernel([X, *outs], exchanged(parts, t, threads), threads=threads), x, *[np.zeros_like(x) for _ in outs]
    )
    with np.errstate(all="ignore"):
        combine = {
            "sum": lambda g: g.sum(dtype=g.dtype), "max": lambda g: g.max(), "min": lambda g: g.min(),
            "bitand": np.bitwise_and.reduce, "bitor": np.bitwise_or.reduce,
        }  # fmt: skip
        for kind in kinds:
            want = np.concatenate([np.full(len(g), combine[kind](g)) for g in np.split(x, range(32, threads, 32))])
            np.testing.assert_array_equal(result.outputs[f"out_{kind}"], want.astype(x.dtype), err_msg=kind)


@pytest.mark.parametrize("threads", [64, 41])
def test_votes_and_lanes(threads: int) -> None:
    x = np.random.default_rng(4).integers(0, 2, threads).astype(np.int32)
    x[32:] = 1
    X, t = buffer((threads,), "int32", "X"), tirx.Var("t", "int32")
    holds = tirx.NE(X[t], nodes.int_const(0))
    found = {
        "bits": ("uint64", nodes.tile_call("ballot", [holds], ret="uint64")),
        "some": ("bool", nodes.tile_call("any_sync", [holds], ret="bool")),
        "every": ("bool", nodes.tile_call("all_sync", [holds], ret="bool")),
        "lane": ("int32", nodes.tile_call("lane_index", [], ret="int32")),
        "warp": ("int32", nodes.tile_call("warp_index", [], ret="int32")),
    }
    outs = {n: buffer((threads,), d, n) for n, (d, _) in found.items()}
    parts = [tirx.Bind(t, calls.thread_index(0)), *(nodes.store(outs[n], e, [t]) for n, (_, e) in found.items())]
    text = kernel([X, *outs.values()], exchanged(parts, t, threads), threads=threads)
    empty = [np.zeros(threads, d) for d, _ in found.values()]
    out = list(run(text, x, *empty).outputs.values())
    groups = np.split(x, range(32, threads, 32))
    wide = [sum(int(v) << i for i, v in enumerate(g)) for g in groups]
    each = [len(g) for g in groups]
    for value, want in zip(
        out,
        [np.repeat(np.array(wide, np.uint64), each), np.repeat([g.any() for g in groups], each),
         np.repeat([g.all() for g in groups], each), np.arange(threads) % 32, np.arange(threads) // 32],
        strict=True,
    ):  # fmt: skip
        np.testing.assert_array_equal(value, want)


@pytest.mark.parametrize(
    ("dtype", "space", "arch"),
    [
        *((d, "global", "sm_80") for d in ("int8", "uint8", "int16", "uint16", *TYPES[2:])),
        *((d, "shared", "sm_80") for d in ("uint8", "int32", "float32", "bfloat16")),
        *((d, s, "sm_90a") for d in ("float16", "bfloat16") for s in ("global", "shared")),
    ],
)
def test_atomic_updates(dtype: str, space: str, arch: str) -> None:
    """Update two elements by 64 threads; returned values are those of some order."""
    threads, t = 64, tirx.Var("t", "int32")
    x = values(dtype, threads, 5)
    kinds, orders = ("add", "max", "min"), ("relaxed", "acq_rel", "seq_cst")
    X = buffer((threads,), dtype, "X")
    parts: list[Any] = [tirx.Bind(t, calls.thread_index(0))]
    totals, befores, offset = [], [], 0
    for kind, order in zip(kinds, orders, strict=True):
        total, before = buffer((2,), dtype, f"total_{kind}"), buffer((threads,), dtype, f"before_{kind}")
        target = total
        if space == "shared":
            target, declared = shared((2,), dtype, f"part_{kind}", offset)
            offset += 64
            mine = nodes.store(target, total[t], [t])
            parts += [declared, tirx.IfThenElse(t < 2, mine, None), calls.sync_threads()]
        at = calls.address(target, [t % 2])
        for returns in (True, False):
            found = atomics.update(kind, dtype, space, order, returns=returns, arch=arch)
            operand = X[t] if found.dtype == dtype else tirx.reinterpret(found.dtype, X[t])
            parts += [calls.execute(found.fence, [])] if found.fence else []
            if returns:
                call = calls.instruction(found.name, [at, operand], found.dtype)
                parts.append(nodes.store(before, tirx.reinterpret(dtype, call), [t]))
            else:
                parts.append(calls.execute(found.name, [at, operand]))
        if space == "shared":
            parts += [calls.sync_threads(), tirx.IfThenElse(t < 2, nodes.store(total, target[t], [t]), None)]
        totals.append(total)
        befores.append(before)
    # Bytes are updated in pairs.
    even = {str(b.name): max(2, x.itemsize) for b in totals}
    text = kernel([X, *totals, *befores], nodes.seq(parts), threads=threads, arch=arch, shared_bytes=offset, align=even)
    start = values(dtype, 2, 6)
    arrays = [*(start.copy() for _ in totals), *(np.zeros_like(x) for _ in befores)]
    result = run(text, x, *arrays, arch=arch).outputs
    with np.errstate(all="ignore"):
        for half in range(2):
            mine = np.append(x[half::2], start[half])
            assert result["total_max"][half] == mine.max()
            assert result["total_min"][half] == mine.min()
            wide = np.float64(start[half]) + 2 * mine[:-1].astype(np.float64).sum()
            if x.dtype.kind in "iu":
                wide = start[half] + np.array(2, dtype) * mine[:-1].sum(dtype=dtype)
                assert result["total_add"][half] == wide
            elif dtype not in ("float16", "bfloat16"):
                assert result["total_add"][half] == wide
            else:
                assert abs(float(result["total_add"][half]) - wide) <= 64
    assert set(result["before_max"].astype(np.float64)) <= set(np.append(x, start).astype(np.float64))


def test_loads_and_stores_in_order() -> None:
    threads, t = 32, tirx.Var("t", "int32")
    parts: list[Any] = [tirx.Bind(t, calls.thread_index(0))]
    params, arrays, want = [], [], []
    for dtype in ("int8", "float16", "float32", "int64", "float64"):
        x = values(dtype, threads, 7)
        for order in ("relaxed", "acquire", "seq_cst"):
            source, out = buffer((threads,), dtype, f"X{len(want)}"), buffer((threads,), dtype, f"Y{len(want)}")
            load = atomics.load(dtype, "global", order)
            store = atomics.store(dtype, "global", "release" if order == "acquire" else order)
            value = calls.instruction(load.name, [calls.address(source, [t])], load.dtype)
            parts += [calls.execute(a.fence, []) for a in (load, store) if a.fence]
            parts.append(calls.execute(store.name, [calls.address(out, [t]), value]))
            params += [source, out]
            arrays += [x, np.zeros_like(x)]
            want.append(x)
    align = {str(p.name): a.itemsize for p, a in zip(params, arrays, strict=True)}
    # The emulator takes an ordered load for an access of both kinds.
    access = {str(p.name): "readwrite" for p in params}
    result = run(kernel(params, nodes.seq(parts), threads=threads, align=align, access=access), *arrays).outputs
    for i, x in enumerate(want):
        np.testing.assert_array_equal(result[f"Y{i}"], x)


def test_a_product_through_shared_memory_and_tensor_cores() -> None:
    """Multiply 16 x 16 x 8 in one warp: masked copies, ldmatrix, mma, vector stores."""
    m = tirx.Var("m", "int32")
    A, B, C = buffer((m, 16), "float16", "A"), buffer((8, 16), "float16", "B"), buffer((m, 8), "float32", "C")
    A_s, declare_a = shared((256,), "float16", "A_s", 0)
    B_s, declare_b = shared((128,), "float16", "B_s", 1024)
    t = tirx.Var("t", "int32")
    row, column = tirx.floordiv(t, 2), tirx.floormod(t, 2) * 8
    a, make_a = nodes.alloc([8], "float16", "a", "local")
    b, make_b = nodes.alloc([4], "float16", "b", "local")
    acc, make_acc = nodes.alloc([4], "float32", "acc", "local")
    i = tirx.Var("i", "int32")
    valid = tirx.Select(row < m, nodes.int_const(16), nodes.int_const(0))
    from_row = tirx.Select(row < m, row, nodes.int_const(0))
    to = calls.address
    body = nodes.seq(
        [
            tirx.Bind(t, calls.thread_index(0)),
            declare_a,
            declare_b,
            calls.execute("cp_async_cg_shared_global_16_zfill", [to(A_s, [t * 8]), to(A, [from_row, column]), valid]),
            tirx.IfThenElse(
                t < 16, calls.execute("cp_async_ca_shared_global_16", [to(B_s, [t * 8]), to(B, [row, column])]), None
            ),
            calls.execute("cp_async_commit_group", []),
            calls.execute("cp_async_wait_group_0", []),
            calls.sync_threads(),
            make_a,
            make_b,
            make_acc,
            nodes.for_loop(i, 4, nodes.store(acc, nodes.const(0, "float32"), [i]), "unroll"),
            calls.execute(
                "ldmatrix_sync_aligned_m8n8_x4_shared_b16",
                [to(a, [0]), to(A_s, [tirx.floormod(t, 16) * 16 + tirx.floordiv(t, 16) * 8])],
            ),
            calls.execute(
                "ldmatrix_sync_aligned_m8n8_x2_shared_b16",
                [to(b, [0]), to(B_s, [tirx.floormod(t, 8) * 16 + tirx.floormod(tirx.floordiv(t, 8), 2) * 8])],
            ),
            calls.execute(
                "mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32",
                [to(acc, [0]), to(a, [0]), to(b, [0]), to(acc, [0])],
            ),
            *(
                tirx.IfThenElse(
                    tirx.floordiv(t, 4) + r < m,
                    calls.move(C, [tirx.floordiv(t, 4) + r, tirx.floormod(t, 4) * 2], acc, [r // 4], 8),
                    None,
                )
                for r in (0, 8)
            ),
        ]
    )
    text = kernel([A, B, C, m], body, threads=32, shared_bytes=2048, align={"A": 16, "B": 16, "C": 8})
    rng = np.random.default_rng(8)
    for rows in (16, 13, 1):
        x, y = (rng.integers(-8, 9, s).astype(np.float16) for s in ((rows, 16), (8, 16)))
        result = run(text, x, y, np.full((rows, 8), np.nan, np.float32), rows)
        np.testing.assert_array_equal(result.outputs["C"], x.astype(np.float32) @ y.T.astype(np.float32))


def test_small_dot_products() -> None:
    threads, t = 32, tirx.Var("t", "int32")
    a, b = values("int8", 4 * threads, 9), np.random.default_rng(10).integers(0, 256, 4 * threads).astype(np.uint8)
    A, B, C = (
        buffer((4 * threads,), "int8", "A"),
        buffer((4 * threads,), "uint8", "B"),
        buffer((threads,), "int32", "C"),
    )
    fa, make_a = nodes.alloc([1], "uint32", "fa", "local")
    fb, make_b = nodes.alloc([1], "uint32", "fb", "local")
    body = nodes.seq(
        [
            tirx.Bind(t, calls.thread_index(0)), make_a, make_b,
            calls.move(fa, [0], A, [t * 4], 4), calls.move(fb, [0], B, [t * 4], 4),
            passed(nodes.store(C, calls.instruction("dp4a_s32_u32", [fa[0], fb[0], C[t]], "int32"), [t])),
        ]
    )  # fmt: skip
    start = values("int32", threads, 11)
    result = run(kernel([A, B, C], body, threads=threads, align={"A": 4, "B": 4, "C": 4}), a, b, start)
    with np.errstate(all="ignore"):
        want = start + (a.astype(np.int32) * b).reshape(-1, 4).sum(1, dtype=np.int32)
    np.testing.assert_array_equal(result.outputs["C"], want)
