"""Atomics as instructions: which function, for whom, with which guards; private elements need none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tile_core.compat.tvm import ir, tirx
from tile_core.ir import nodes
from tile_core.ir.visit import collect, role
from tile_core.lowering.variant import Accept
from tile_core.ops.base import View
from tile_core.simt import calls
from tile_core.simt.variant import Block, SimtCall
from tile_cuda.ops.atomics import AtomicElement, AtomicFill, AtomicLoad, AtomicStore, AtomicTile
from tile_cuda.ptx import TABLE

CTX: Any = SimpleNamespace(target=SimpleNamespace(arch="sm_80"))
BLOCK = Block((64, 1, 1), nodes.fresh("tid"))
DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32",
          "float64")  # fmt: skip


def buffer(shape: tuple[int, ...], dtype: str, scope: str = "") -> Any:
    return tirx.decl_buffer(list(shape), dtype, "A", scope=scope, layout=None)


def call(name: str, *args: Any, divergent: bool = True, **attrs: Any) -> SimtCall:
    return SimtCall(name, args, attrs, block=BLOCK, divergent=divergent)


def names(statement: Any) -> list[str]:
    return [str(c.attrs["name"]) for c in collect(statement, ir.Call) if nodes.is_tile_call(c, "instruction")]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scope", ["", "shared"])
def test_every_update_is_a_function_of_the_table(dtype: str, scope: str) -> None:
    view = View(buffer((8,), dtype, scope), (3,), (1,))
    for kind in ("add", "max", "min"):
        for order in ("relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"):
            c = call("atomic", view, nodes.const(2, dtype), kind=kind, order=order)
            assert isinstance(AtomicElement().accepts(c, CTX), Accept)
            before, value = AtomicElement().lower_value(c, CTX)
            assert nodes.dtype_of(value) == dtype
            found = [*names(AtomicElement().lower(c, CTX)), *names(before)]
            assert len(found) == (4 if order == "seq_cst" else 2)
            assert set(found) <= set(TABLE)


def test_places_that_may_not_exist_are_guarded() -> None:
    i = nodes.fresh("i")
    inside, maybe = (View(buffer((8,), "int32"), (m,), (1,)) for m in (tirx.floormod(i, 8), i))
    for view, guards in ((inside, 0), (maybe, 1)):
        c = call("atomic", view, nodes.const(1, "int32"), kind="add", order="relaxed")
        assert len(collect(AtomicElement().lower(c, CTX), tirx.IfThenElse)) == guards


def test_a_block_learns_what_one_thread_found() -> None:
    view = View(buffer((8,), "int32"), (3,), (1,))
    for variant, args, attrs in (
        (AtomicElement(), (view, nodes.const(1, "int32")), {"kind": "add", "order": "relaxed"}),
        (AtomicLoad(), (view,), {"order": "seq_cst"}),
    ):
        alone, _ = variant.lower_value(call(variant.op, *args, **attrs), CTX)
        together, _ = variant.lower_value(call(variant.op, *args, divergent=False, **attrs), CTX)
        steps = [s for s in collect(together, tirx.AttrStmt) if s.attr_key == calls.STEP]
        assert len(steps) == 2
        assert "shared" in str(together)
        assert "shared" not in str(alone)


def test_tiles_are_nests_and_vectors_are_not() -> None:
    dst, src = (View(buffer((4, 6), "float32"), (0, 0), (4, 6)) for _ in range(2))
    attrs = {"kind": "add", "order": "relaxed"}
    tile = AtomicTile().lower(call("atomic_tile", dst, src, divergent=False, **attrs), CTX)
    fill = AtomicFill().lower(call("atomic_fill", dst, nodes.const(1, "float32"), divergent=False, **attrs), CTX)
    alone = AtomicFill().lower(call("atomic_fill", dst, nodes.const(1, "float32"), **attrs), CTX)
    for statement, roles in ((tile, {"parallel"}), (fill, {"parallel"}), (alone, {"serial"})):
        assert {role(loop) for loop in collect(statement, tirx.For)} == roles
        assert names(statement) == ["red_global_add_f32"]
        assert not collect(statement, tirx.IfThenElse)
    row = View(buffer((4, 6), "float32"), (1, 2), (1, 4))
    vector = AtomicTile().lower(call("atomic_tile", row, row, divergent=False, vector=4, **attrs), CTX)
    assert {role(loop) for loop in collect(vector, tirx.For)} == {"serial"}


@pytest.mark.parametrize("scope", ["local", "local.fragment"])
def test_what_is_private_needs_no_instruction(scope: str) -> None:
    view = View(buffer((8,), "float16", scope), (3,), (1,))
    one = nodes.const(1, "float16")
    attrs = {"kind": "max", "order": "relaxed"}
    update = call("atomic", view, one, **attrs)
    statements = [
        AtomicElement().lower(update, CTX), AtomicElement().lower_value(update, CTX)[0],
        AtomicStore().lower(call("atomic_store", view, one, order="relaxed"), CTX),
        AtomicLoad().lower_value(call("atomic_load", view, order="relaxed"), CTX)[0],
    ]  # fmt: skip
    for statement in statements:
        assert names(statement) == []
    assert isinstance(AtomicElement().accepts(update, CTX), Accept)
