"""Atomics on threads: for whom, under which conditions, and that what is private to a thread asks no backend."""

from __future__ import annotations

from typing import Any

import pytest

from tile_core.compat.tvm import ir, tirx
from tile_core.ir import calls, nodes
from tile_core.ir.attributes import NAME, STEP
from tile_core.ir.visit import collect, role
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import View
from tile_core.simt.ops.atomics import Atomics, atomic_variants, bits
from tile_core.simt.variant import Block, SimtCall

from ..bench import CTX

BLOCK = Block((64, 1, 1), nodes.fresh("tid"))


class Named(Atomics):
    """Each is a call of a function with its name; 64-bit atomics are missing."""

    def accepts(self, call: Any, ctx: Any) -> Accept | Reject:
        return Reject("64 bits") if "64" in call.args[0].dtype else Accept(note=call.name)

    def update(self, call: Any, dst: View, at: list[Any], value: Any, ctx: Any) -> Any:
        return calls.execute("update", [calls.address(dst.buffer, at, "rw"), value])

    def fetch(self, call: Any, dst: View, at: list[Any], value: Any, ctx: Any) -> tuple[Any, Any]:
        args = [calls.address(dst.buffer, at, "rw"), value]
        return calls.execute("fence", []), nodes.tile_call("instruction", args, {"name": "fetch"}, ret=dst.dtype)

    def load(self, call: Any, src: View, at: list[Any], ctx: Any) -> tuple[Any, Any]:
        return None, calls.instruction("load", [calls.address(src.buffer, at)], src.dtype)

    def store(self, call: Any, dst: View, at: list[Any], value: Any, ctx: Any) -> Any:
        return calls.execute("store", [calls.address(dst.buffer, at, "w"), value])


BY_OP: dict[str, Any] = {v.op: v for v in atomic_variants("core", Named())}
ELEMENT, FILL, TILE, LOAD, STORE = (
    BY_OP[op] for op in ("atomic", "atomic_fill", "atomic_tile", "atomic_load", "atomic_store")
)


def buffer(shape: tuple[int, ...], dtype: str, scope: str = "") -> Any:
    return tirx.decl_buffer(list(shape), dtype, "A", scope=scope, layout=None)


def call(name: str, *args: Any, divergent: bool = True, **attrs: Any) -> SimtCall:
    return SimtCall(name, args, attrs, block=BLOCK, divergent=divergent)


def names(statement: Any) -> list[str]:
    return [str(c.attrs[NAME]) for c in collect(statement, ir.Call) if nodes.is_tile_call(c, "instruction")]


def test_names_are_the_owners() -> None:
    assert [v.name for v in atomic_variants("core", Named())] == [
        "core.atomic.instruction", "core.atomic_fill.nest", "core.atomic_tile.nest", "core.atomic_load.instruction",
        "core.atomic_store.instruction",
    ]  # fmt: skip


def test_the_backend_answers_for_memory() -> None:
    for dtype, kind in (("int32", Accept), ("int64", Reject)):
        view = View(buffer((8,), dtype), (3,), (1,))
        for op, variant in BY_OP.items():
            assert isinstance(variant.accepts(call(op, view), CTX), kind)


def test_elements_of_memory() -> None:
    view = View(buffer((8,), "int32"), (3,), (1,))
    one = nodes.const(1, "int8")
    update = call("atomic", view, one, kind="add", order="relaxed")
    before, value = ELEMENT.lower_value(update, CTX)
    assert names(ELEMENT.lower(update, CTX)) == ["update"]
    assert names(before) == ["fence", "fetch"]
    assert nodes.dtype_of(value) == "int32"
    assert names(LOAD.lower_value(call("atomic_load", view, order="relaxed"), CTX)[0]) == ["load"]
    assert names(LOAD.lower(call("atomic_load", view, order="relaxed"), CTX)) == []
    stored = STORE.lower(call("atomic_store", view, one, order="relaxed"), CTX)
    assert names(stored) == ["store"]
    assert [nodes.dtype_of(c.args[1]) for c in collect(stored, ir.Call) if nodes.is_tile_call(c, "instruction")] == [
        "int32"
    ]


def test_elements_out_of_bounds_are_guarded() -> None:
    i = nodes.fresh("i")
    inside, maybe = (View(buffer((8,), "int32"), (m,), (1,)) for m in (tirx.floormod(i, 8), i))
    for view, guards in ((inside, 0), (maybe, 1)):
        c = call("atomic", view, nodes.const(1, "int32"), kind="add", order="relaxed")
        assert len(collect(ELEMENT.lower(c, CTX), tirx.IfThenElse)) == guards


def test_a_block_learns_what_one_thread_found() -> None:
    view = View(buffer((8,), "int32"), (3,), (1,))
    for variant, args, attrs in (
        (ELEMENT, (view, nodes.const(1, "int32")), {"kind": "add", "order": "relaxed"}),
        (LOAD, (view,), {"order": "seq_cst"}),
    ):
        alone, _ = variant.lower_value(call(variant.op, *args, **attrs), CTX)
        collective, _ = variant.lower_value(call(variant.op, *args, divergent=False, **attrs), CTX)
        steps = [s for s in collect(collective, tirx.AttrStmt) if s.attr_key == STEP]
        assert len(steps) == 2
        assert "shared" in str(collective)
        assert "shared" not in str(alone)


def test_tiles_are_nests_and_vectors_are_not() -> None:
    dst, src = (View(buffer((4, 6), "float32"), (0, 0), (4, 6)) for _ in range(2))
    attrs = {"kind": "add", "order": "relaxed"}
    tile = TILE.lower(call("atomic_tile", dst, src, divergent=False, **attrs), CTX)
    fill = FILL.lower(call("atomic_fill", dst, nodes.const(1, "float32"), divergent=False, **attrs), CTX)
    alone = FILL.lower(call("atomic_fill", dst, nodes.const(1, "float32"), **attrs), CTX)
    for statement, roles in ((tile, {"parallel"}), (fill, {"parallel"}), (alone, {"serial"})):
        assert {role(loop) for loop in collect(statement, tirx.For)} == roles
        assert names(statement) == ["update"]
        assert not collect(statement, tirx.IfThenElse)
    row = View(buffer((4, 6), "float32"), (1, 2), (1, 4))
    vector = TILE.lower(call("atomic_tile", row, row, divergent=False, vector=4, **attrs), CTX)
    assert {role(loop) for loop in collect(vector, tirx.For)} == {"serial"}


@pytest.mark.parametrize("scope", ["local", "local.fragment"])
def test_what_is_private_needs_no_instruction(scope: str) -> None:
    view = View(buffer((8,), "float64", scope), (3,), (1,))
    one = nodes.const(1, "float64")
    attrs = {"kind": "max", "order": "relaxed"}
    update = call("atomic", view, one, **attrs)
    statements = [
        ELEMENT.lower(update, CTX), ELEMENT.lower_value(update, CTX)[0],
        STORE.lower(call("atomic_store", view, one, order="relaxed"), CTX),
        LOAD.lower_value(call("atomic_load", view, order="relaxed"), CTX)[0],
        FILL.lower(call("atomic_fill", view, one, **attrs), CTX),
    ]  # fmt: skip
    for statement in statements:
        assert names(statement) == []
    assert isinstance(ELEMENT.accepts(update, CTX), Accept)
    assert isinstance(FILL.accepts(call("atomic_fill", view, one, **attrs), CTX), Accept)


def test_bits() -> None:
    value = nodes.fresh("x", "float32")
    assert bits(value, "float32") is value
    assert nodes.dtype_of(bits(value, "uint32")) == "uint32"
