"""Shuffles, votes and reductions of groups of lanes: masks, partial groups, every width of element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from expected_errors import raises_error
from machine import Machine, numpy_type

from tile_core.compat.tvm import ir, tirx
from tile_core.errors.lowering import ShuffleTooWide
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.simt.threads.warp_calls import lower_warp_calls
from tile_core.simt.variant import Block

from ..bench import REDUCTIONS

THREADS = (1, 7, 31, 32, 48, 64, 96)
DTYPES = ("float16", "bfloat16", "int16", "int32", "float32", "int64", "float64", "uint8", "int8", "uint64", "uint32")


def run(threads: int, data: Any, dtype: str, out: str, make: Any) -> tuple[Any, Any, Machine]:
    """Store ``make(value, thread)`` of every thread; return the results, the statement and the machine."""
    thread = nodes.fresh("tid")
    a = tirx.decl_buffer([threads], dtype, "A", layout=None)
    b = tirx.decl_buffer([threads], out, "B", layout=None)
    body = nodes.store(b, make(nodes.load(a, [thread]), thread), [thread])
    lowered = lower_warp_calls(body, Block((threads, 1, 1), thread), 32)
    machine = Machine(threads, thread, {a: data, b: np.zeros(threads, numpy_type(out))}, races=True)
    machine.run(lowered)
    return machine.memory.arrays[b], lowered, machine


def shuffle(name: str, value: Any, amount: Any, width: int, dtype: str) -> Any:
    amount = nodes.int_const(amount) if isinstance(amount, int) else amount
    return nodes.tile_call(name, [value, amount, nodes.int_const(width)], ret=dtype)


def expected(name: str, threads: int, amount: Any, width: int) -> Any:
    """The thread that each reads, by the language's rule."""
    width = width or 32
    t = np.arange(threads)
    lane = t % width
    source = {
        "shfl_sync": amount % width,
        "shfl_xor": lane ^ amount,
        "shfl_up": lane - amount,
        "shfl_down": lane + amount,
    }[name]
    inside = (source >= 0) & (source < width) & (t - lane + source < threads)
    return np.where(inside, t - lane + source, t)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("name", ["shfl_sync", "shfl_xor", "shfl_up", "shfl_down"])
def test_shuffles_read_the_lane_that_the_language_says(threads: int, name: str) -> None:
    data = np.random.default_rng(threads).integers(-(2**31), 2**31, threads).astype(np.int32)
    for amount in (0, 1, 5, 16, 31, 32, 40, -1, -7):
        for width in (0, 1, 2, 8, 16, 32):
            found, _, _ = run(threads, data, "int32", "int32", lambda v, t: shuffle(name, v, amount, width, "int32"))  # noqa: B023
            np.testing.assert_array_equal(found, data[expected(name, threads, amount, width)])


def test_lanes_that_are_not_constants() -> None:
    for threads in (48, 64):
        data = np.arange(threads, dtype=np.int32) * 3
        t = np.arange(threads)
        for name in ("shfl_sync", "shfl_xor", "shfl_up", "shfl_down"):
            found, _, _ = run(
                threads,
                data,
                "int32",
                "int32",
                lambda v, t: shuffle(name, v, tirx.floormod(t * 5, 37), 16, "int32"),  # noqa: B023
            )
            np.testing.assert_array_equal(found, data[expected(name, threads, t * 5 % 37, 16)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_width_of_element(dtype: str) -> None:
    raw = np.random.default_rng(len(dtype)).bytes(64 * 8)
    data = np.frombuffer(raw, numpy_type(dtype))[:64].copy()
    bits = f"uint{data.itemsize * 8}"
    found, _, machine = run(64, data, dtype, dtype, lambda v, t: shuffle("shfl_xor", v, 5, 0, dtype))
    np.testing.assert_array_equal(found.view(bits), data[np.arange(64) ^ 5].view(bits))
    assert machine.shuffles == (2 if data.itemsize == 8 else 1)


def test_constant_shuffles_of_whole_groups_are_one_instruction() -> None:
    _, lowered, _ = run(
        64, np.zeros(64, np.int32), "int32", "int32", lambda v, t: shuffle("shfl_down", v, 3, 16, "int32")
    )
    assert '"mode": "down"' in str(lowered) or "down" in str(lowered)
    with raises_error(ShuffleTooWide, found=64):
        run(64, np.zeros(64, np.int32), "int32", "int32", lambda v, t: shuffle("shfl_down", v, 3, 64, "int32"))


@pytest.mark.parametrize("threads", [*THREADS, 384])
def test_votes(threads: int) -> None:
    data = np.random.default_rng(threads).integers(-1, 2, threads).astype(np.int32)
    groups = [data[low : low + 32] for low in range(0, threads, 32)]
    table = {
        "ballot": ("uint64", lambda w: sum(1 << k for k, x in enumerate(w) if x > 0)),
        "any_sync": ("bool", lambda w: (w > 0).any()),
        "all_sync": ("bool", lambda w: (w > 0).all()),
    }
    for name, (out, function) in table.items():
        found, _, _ = run(threads, data, "int32", out, lambda v, t: nodes.tile_call(name, [v > 0], ret=out))  # noqa: B023
        want = np.concatenate([np.full(len(w), function(w), dtype=out) for w in groups])
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("dtype", ["int32", "float32", "float16", "int8", "uint64", "float64", "bfloat16", "uint16"])
def test_reductions(threads: int, dtype: str) -> None:
    rng = np.random.default_rng(threads)
    data = rng.integers(0 if dtype[0] == "u" else -9, 10, threads).astype(numpy_type(dtype))
    table: dict[str, Any] = {"sum": np.add, "max": np.maximum, "min": np.minimum}
    if "int" in dtype:
        table |= {"bitand": np.bitwise_and, "bitor": np.bitwise_or}
    for kind, function in table.items():
        found, _, _ = run(
            threads,
            data,
            dtype,
            dtype,
            lambda v, t: nodes.tile_call(f"warp_reduce_{kind}", [v], ret=dtype),  # noqa: B023
        )
        groups = [data[low : low + 32] for low in range(0, threads, 32)]
        want = np.concatenate(
            [np.full(len(w), function.reduce(w.astype(data.dtype))).astype(data.dtype) for w in groups]
        )
        np.testing.assert_array_equal(found, want)


def test_nan_is_left_out_of_reductions() -> None:
    for threads in (48, 64):
        data = np.arange(threads, dtype=np.float32)
        data[3] = data[31] = np.nan
        data[32:] = np.nan
        found, _, _ = run(
            threads, data, "float32", "float32", lambda v, t: nodes.tile_call("warp_reduce_max", [v], ret="float32")
        )
        np.testing.assert_array_equal(found[:32], 30)
        np.testing.assert_array_equal(found[32:], -np.inf)


def test_exchanges_leave_choices_and_short_circuits() -> None:
    """All lanes take part, also where only some need the result."""
    data = np.arange(48, dtype=np.int32)

    def chosen(v: Any, t: Any) -> Any:
        return tirx.if_then_else(t < 5, shuffle("shfl_xor", v, 1, 0, "int32"), nodes.int_const(-1))

    found, _, _ = run(48, data, "int32", "int32", chosen)
    np.testing.assert_array_equal(found, np.where(data < 5, data ^ 1, -1))

    def joined(v: Any, t: Any) -> Any:
        x = nodes.fresh("x")
        inner = tirx.And(t < 7, nodes.tile_call("any_sync", [x > 46], ret="bool"))
        return tirx.Let(x, shuffle("shfl_sync", v, 15, 0, "int32"), inner)

    found, _, _ = run(48, data, "int32", "bool", joined)
    np.testing.assert_array_equal(found, np.zeros(48, bool))


def test_a_loop_condition_is_evaluated_in_each_iteration() -> None:
    thread = nodes.fresh("tid")
    count, allocate = nodes.alloc([1], "int32", "count", "local.var")
    b = tirx.decl_buffer([40], "int32", "B", layout=None)
    again = nodes.tile_call("any_sync", [count[0] < tirx.floormod(thread, 32)], ret="bool")
    loop = tirx.While(again, nodes.store(count, count[0] + 1, [0]))
    body = nodes.seq([allocate, nodes.store(count, nodes.int_const(0), [0]), loop, nodes.store(b, count[0], [thread])])
    machine = Machine(40, thread, {b: np.zeros(40, np.int32)}, races=True)
    machine.run(lower_warp_calls(body, Block((40, 1, 1), thread), 32))
    np.testing.assert_array_equal(machine.memory.arrays[b], [31] * 32 + [7] * 8)


def test_lane_and_group_indices() -> None:
    found, _, _ = run(
        70, np.zeros(70, np.int32), "int32", "int32",
        lambda v, t: nodes.tile_call("warp_index", [], ret="int32") * 100
        + nodes.tile_call("lane_index", [], ret="int32"),
    )  # fmt: skip
    t = np.arange(70)
    np.testing.assert_array_equal(found, t // 32 * 100 + t % 32)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["sum", "max", "min", "bitand", "bitor"])
def test_one_instruction_where_the_target_has_it(kind: str, dtype: str, threads: int) -> None:
    number = "float" in dtype
    if kind.startswith("bit") and number:
        return
    rng = np.random.default_rng(threads)
    data = rng.integers(0, 9, threads).astype(numpy_type(dtype))
    if number and kind != "sum":
        data = rng.choice([0.0, -0.0, 1e-41, -1e-41, np.nan, -np.inf], threads).astype(numpy_type(dtype))
    results = []
    for reductions in (frozenset(), REDUCTIONS):
        thread = nodes.fresh("tid")
        a, b = (tirx.decl_buffer([threads], dtype, name, layout=None) for name in "AB")
        value = nodes.tile_call(f"warp_reduce_{kind}", [nodes.load(a, [thread])], ret=dtype)
        body = lower_warp_calls(nodes.store(b, value, [thread]), Block((threads, 1, 1), thread), 32, reductions)
        machine = Machine(threads, thread, {a: data, b: np.zeros(threads, numpy_type(dtype))}, races=True)
        machine.run(body)
        results.append(machine.memory.arrays[b])
        names = {str(c.op.name) for c in collect(body, ir.Call)}
    assert results[0].tobytes() == results[1].tobytes()
    acc = "float32" if dtype in ("float16", "bfloat16") else dtype
    native = threads % 32 == 0 and acc in ("float32", "int32", "uint32")
    assert ("tile.group_reduce" in names) == native
    assert ("tile.shuffle" in names) != native
