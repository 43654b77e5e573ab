"""Branches by thread index around work of several threads are roles; all others stay branches."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.errors import TileError
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import collect


def traced(*branches: str, use: str = "", threads: int = 128):
    """Return the program of a chain of branches, each around a copy of its own; ``use`` stands after them."""
    text = "".join(f"            {b}\n                T.copy(A[{i}, 0], s[{i}, :])\n" for i, b in enumerate(branches))
    source = f"""
def kernel(A: T.Tensor((4, 32), "float32"), B: T.Tensor((4, 32), "float32")):
        with T.Kernel(1, threads={threads}):
            s = T.alloc_shared((4, 32), "float32")
            T.clear(s)
            tx = T.get_thread_binding()
{text}            {use}
            T.copy(s, B)
"""
    name = f"<thread ranges {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    names: dict = {"T": T}
    exec(compile(source, name, "exec"), names)
    return T.prim_func(names["kernel"])


def ranges(program) -> list[tuple[int, int]]:
    marks = [s for s in collect(program.func.body, tirx.AttrStmt) if s.attr_key == attributes.ONLY]
    return [tuple(int(nodes.as_int(n)) for n in list(s.node)[1:3]) for s in marks]


CHAINS = {
    "two sides": (("if tx < 32:", "else:"), [(0, 32), (32, 96)]),
    "a chain": (("if tx < 32:", "elif tx < 96:", "else:"), [(0, 32), (32, 64), (96, 32)]),
    "warps": (("if tx // 32 == 2:",), [(64, 32)]),
    "a middle and others": (("if tx // 32 == 1:", "elif tx // 32 == 3:"), [(32, 32), (96, 32)]),
    "both bounds": (("if tx >= 64 and tx < 65:",), [(64, 1)]),
    "a side that no thread has": (("if tx < 64:", "elif tx < 32:"), [(0, 64)]),
    "beside another condition": (("if tx < 64 and A[0, 0] > 0:", "elif tx >= 64:"), [(0, 64), (64, 64)]),
}


@pytest.mark.parametrize("chain", CHAINS)
def test_roles(chain: str) -> None:
    branches, expected = CHAINS[chain]
    program = traced(*branches)
    assert ranges(program) == expected
    a = np.abs(np.random.default_rng().standard_normal((4, 32))).astype("float32") + 1
    out = np.full((4, 32), np.nan, "float32")
    tile.compile(program, "cpu")(a, out)
    for i in range(4):
        np.testing.assert_array_equal(out[i], a[i] if i < len(expected) else 0)


@pytest.mark.parametrize(
    ("branches", "use"),
    [
        (("if tx < 64 and A[0, 0] > 0:", "else:"), ""),  # the others are those with another condition, too
        (("if tx % 2 == 0:",), ""),
        (("if tx < 64:",), "B[0, 0] = T.cast(tx, 'float32')"),
        (("if tx < 64:",), "T.sync_threads()"),
        (("if T.get_lane_idx() < 4:",), ""),
    ],
)
def test_branches_that_stay_are_refused_around_such_work(branches: tuple[str, ...], use: str) -> None:
    program = traced(*branches, use=use)
    assert ranges(program) == []
    with pytest.raises(TileError, match="K218"):
        tile.compile(program, "cuda:sm_90a").source  # noqa: B018


def test_branches_of_single_threads_stay() -> None:
    @T.prim_func
    def kernel(B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            if tx < 32:
                B[tx] = tx
            else:
                B[tx] = -tx

    assert ranges(kernel) == []
    out = np.zeros(64, "int32")
    tile.compile(kernel, "cpu")(out)
    np.testing.assert_array_equal(out, [*range(32), *range(-32, -64, -1)])


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
def test_effects_of_each_thread_stay_those_of_each_thread(target: str) -> None:
    """A role would execute an atomic on one element once."""

    @T.prim_func
    def kernel(C: T.Tensor((2,), "int32")):
        with T.Kernel(3, threads=32):
            if T.get_thread_binding() < 10:
                T.atomic_add(C[0], 1)
            else:
                T.atomic_add(C[1], 1)

    assert ranges(kernel) == []
    c = np.zeros(2, "int32")
    tile.compile(kernel, target, runtime="host" if target == "cpu" else "emulator")(c)
    assert c.tolist() == [30, 66]


def test_atomics_beside_a_copy_make_no_role() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32,), "float32"), C: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((32,), "float32")
            if T.get_thread_binding() < 32:
                T.copy(A, s)
                T.atomic_add(C[0], 1)

    assert ranges(kernel) == []


@pytest.mark.parametrize("axis", [0, 1])
def test_an_index_of_a_block_of_two_dimensions_is_no_range(axis: int) -> None:
    """Its threads are not consecutive, and ``tx >= 8`` holds for none of 8 x 4."""

    @T.prim_func
    def kernel(A: T.Tensor((32,), "float32"), C: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=(8, 4)):
            s = T.alloc_shared((32,), "float32")
            T.clear(s)
            if T.get_thread_binding(axis) >= 8:
                T.copy(A, s)
            T.copy(s, C)

    assert ranges(kernel) == []
    with pytest.raises(TileError, match="K218"):
        tile.compile(kernel, "cpu")
