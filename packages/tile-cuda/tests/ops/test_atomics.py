"""Atomics as instructions: the function of each operation."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compat.tvm import ir, tirx
from tile_core.ir import nodes
from tile_core.ir.attributes import NAME
from tile_core.ir.visit import collect
from tile_core.lowering.variant import Accept
from tile_core.ops.base import View
from tile_core.simt.ops.atomics import atomic_variants
from tile_core.simt.variant import Block, SimtCall
from tile_cuda.ops.atomics import PtxAtomics
from tile_cuda.ptx import TABLE

CTX: Any = SimpleNamespace(target=SimpleNamespace(arch="sm_80"))
BLOCK = Block((64, 1, 1), nodes.fresh("tid"))
DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32",
          "float64")  # fmt: skip
ORDERS = ("relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst")
BY_OP: dict[str, Any] = {v.op: v for v in atomic_variants("cuda", PtxAtomics())}


def call(name: str, *args: Any, **attrs: Any) -> SimtCall:
    return SimtCall(name, args, attrs, block=BLOCK, divergent=True)


def names(statement: Any) -> list[str]:
    return [str(c.attrs[NAME]) for c in collect(statement, ir.Call) if nodes.is_tile_call(c, "instruction")]


def element(dtype: str, scope: str) -> View:
    return View(tirx.decl_buffer([8], dtype, "A", scope=scope, layout=None), (3,), (1,))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scope", ["", "shared"])
def test_every_update_is_a_function_of_the_table(dtype: str, scope: str) -> None:
    variant = BY_OP["atomic"]
    for kind in ("add", "max", "min"):
        for order in ORDERS:
            c = call("atomic", element(dtype, scope), nodes.const(2, dtype), kind=kind, order=order)
            before, value = variant.lower_value(c, CTX)
            assert nodes.dtype_of(value) == dtype
            plain = names(variant.lower(c, CTX))
            found = [*plain, *names(before)]
            assert variant.accepts(c, CTX) == Accept(note=plain[-1])
            assert len(found) == (4 if order == "seq_cst" else 2)
            assert set(found) <= set(TABLE)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scope", ["", "shared"])
def test_every_load_and_store_is_a_function_of_the_table(dtype: str, scope: str) -> None:
    for order in ORDERS:
        load = call("atomic_load", element(dtype, scope), order=order)
        store = call("atomic_store", element(dtype, scope), nodes.const(2, dtype), order=order)
        read, value = BY_OP["atomic_load"].lower_value(load, CTX)
        assert nodes.dtype_of(value) == dtype
        for c, statement in ((load, read), (store, BY_OP["atomic_store"].lower(store, CTX))):
            found = names(statement)
            assert BY_OP[c.name].accepts(c, CTX) == Accept(note=found[-1])
            assert len(found) == (2 if order == "seq_cst" else 1)
            assert set(found) <= set(TABLE)


def test_tiles_are_updated_by_the_same_functions() -> None:
    a, b = (View(tirx.decl_buffer([4, 6], "float32", n, layout=None), (0, 0), (4, 6)) for n in "AB")
    attrs = {"kind": "add", "order": "relaxed"}
    for c in (call("atomic_tile", a, b, **attrs), call("atomic_fill", a, nodes.const(1, "float32"), **attrs)):
        assert names(BY_OP[c.name].lower(c, CTX)) == ["red_global_add_f32"]


def test_all_threads_update_a_tile_beside_the_compilers_barriers() -> None:
    """Pipelines of cp.async add barriers, which do not make ops those of single threads."""

    @T.prim_func
    def k(A: T.Tensor((256, 64), "float16"), Out: T.Tensor((32, 64), "float32")) -> None:
        with T.Kernel(2, threads=128) as bx:
            a, s = T.alloc_shared((32, 64), "float16"), T.alloc_shared((32, 64), "float32")
            for n in T.Pipelined(4, num_stages=2):
                T.copy(A[(bx * 4 + n) * 32, 0], a)
                for i, j in T.Parallel(32, 64):
                    s[i, j] = T.cast(a[i, j], "float32")
                T.atomic_add(Out[0, 0], s)

    kernel = tile.compile(k, target="cuda:sm_80", runtime="emulator")
    text = kernel.source
    assert "cp_async" in text
    assert "if (tid == 0)" not in text
    a = np.random.default_rng().integers(-4, 5, (256, 64)).astype("float16")
    out = np.zeros((32, 64), "float32")
    kernel(a, out)
    np.testing.assert_array_equal(out, a.astype("float32").reshape(8, 32, 64).sum(0))


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "metal", "rocm:gfx942"])
def test_blocks_wait_for_a_flag_in_a_loop(target):
    """One thread reads it for the block, so all leave the loop at once."""

    @T.prim_func
    def main(A: T.Tensor((5, 32), "float32"), flag: T.Tensor((1,), "int32"), C: T.Tensor((3, 32), "float32")):
        with T.Kernel(3, threads=64) as x:
            while T.atomic_load(flag[0]) < x:
                pass
            tile_s = T.alloc_shared((32,), "float32")
            for k in T.serial(x + 2):
                T.copy(A[k, :], tile_s)
                T.copy(tile_s, C[x, :])

    kernel = tile.compile(main, target, runtime="emulator")
    a = np.random.default_rng().standard_normal((5, 32)).astype(np.float32)
    c = np.full((3, 32), np.nan, np.float32)
    kernel(a, np.array([2], np.int32), c)
    np.testing.assert_array_equal(c, a[1:4])
