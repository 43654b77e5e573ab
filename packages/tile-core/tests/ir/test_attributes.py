"""Every attribute is declared, and the verifier refuses all others."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tile_core.compat.tvm import tirx
from tile_core.errors import InternalError
from tile_core.ir import attributes, nodes
from tile_core.ir.attributes import (
    BYTES,
    ID,
    INT,
    LOOP,
    MANAGED,
    NUM_STAGES,
    OFFSET,
    OP_MARK,
    ROLE,
    STAGE_ORDER,
    TEXT,
    THREADS,
    UNROLL_FACTOR,
    Attribute,
)
from tile_core.ir.grammar import ATTRIBUTES, STAGES
from tile_core.ir.verify import verify
from tile_core.ops.registry import OPS
from tile_core.passes.spine import Pass, Plan, Spine
from tile_core.plugins.contexts import make_context
from tile_runtime import knobs

NOTHING = tirx.Evaluate(nodes.int_const(0))


def kept(key: Attribute[Any], value: Any) -> Any:
    return nodes.for_loop(nodes.fresh("i"), 4, NOTHING, annotations={key: value})


def op(key: Attribute[Any], value: Any) -> Any:
    return tirx.Evaluate(nodes.tile_call("copy", [], {key: value}))


def allocated(key: Attribute[Any], value: Any) -> Any:
    buffer, _ = nodes.alloc([4], "float32", "s", "shared")
    return tirx.AllocBuffer(buffer, {key: value})


def refusal(statement: Any, stage: str) -> str:
    with pytest.raises(InternalError) as caught:
        verify(statement, stage)
    return str(caught.value.facts["detail"])


UNKNOWN: Attribute[Any] = Attribute("tile.unknown", INT, LOOP)
UNDECLARED = [
    (kept(UNKNOWN, 1), "program", "'tile.unknown' of a loop is not declared"),
    (allocated(UNKNOWN, 1), "loops", "'tile.unknown' of an allocation is not declared"),
    (op(UNKNOWN, 1), "program", "'tile.unknown' of a call of copy is not declared"),
    (nodes.mark(UNKNOWN, 1, NOTHING), "kernel", "'tile.unknown' of a mark is not declared"),
]
WRONG_TYPES = [
    (kept(NUM_STAGES, "three"), "program", "'tile.num_stages' of a loop is three, expected an integer"),
    (kept(ROLE, "thread"), "program", "'tile.role' of a loop is thread, expected 'grid' or "),
    (kept(THREADS, 32), "program", "'tile.threads' of a loop is 32, expected integers"),
    (allocated(OFFSET, [0]), "kernel", "'tile.offset' of an allocation is (0,), expected an integer"),
    (nodes.mark(MANAGED, [1], NOTHING), "program", "'tile.managed' of a mark is (1,), expected buffers"),
]
WRONG_NODES = [
    (kept(OFFSET, 0), "kernel", "'tile.offset' stands on a loop, declared for an allocation"),
    (
        allocated(UNROLL_FACTOR, 1),
        "loops",
        "'tile.unroll_factor' stands on an allocation, declared for a loop",
    ),
    (op(BYTES, 16), "program", "'bytes' stands on a call of copy, declared for "),
    (
        nodes.mark(NUM_STAGES, 2, NOTHING),
        "program",
        "'tile.num_stages' stands on a mark, declared for a loop",
    ),
]
WRONG_STAGES = [
    (kept(THREADS, [32, 1, 1]), "kernel", "'tile.threads' of a loop belongs to the stages program, selected, loops"),
    (op(ID, 0), "program", "'tile.id' of a call of copy belongs to the stages selected only"),
    (nodes.mark(OP_MARK, "copy", NOTHING), "threads", "'tile.op' of a mark belongs to the stages selected, loops only"),
    (allocated(OFFSET, 0), "program", "'tile.offset' of an allocation belongs to the stages threads, kernel"),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "stage", "message"), [*UNDECLARED, *WRONG_TYPES, *WRONG_NODES, *WRONG_STAGES])
def test_the_verifier_refuses(statement: Any, stage: str, message: str) -> None:
    assert refusal(statement, stage).startswith(f"the attribute {message}")


def test_attributes_on_their_nodes_pass() -> None:
    verify(kept(NUM_STAGES, 3), "program")
    verify(kept(THREADS, [32, 1, 1]), "threads")
    verify(op(ID, 0), "selected")
    verify(nodes.mark(OP_MARK, "copy", NOTHING), "loops")
    verify(allocated(OFFSET, 128), "kernel")


def test_a_nested_call_is_checked() -> None:
    call = nodes.tile_call("thread_index", [nodes.tile_call("lane_index", [], {UNKNOWN: 1}, "int32")], ret="int32")
    assert "'tile.unknown'" in refusal(tirx.Evaluate(tirx.Add(call, nodes.int_const(1))), "threads")


def test_the_launch_is_checked() -> None:
    verify(NOTHING, "program", launch={attributes.CLUSTER: [2, 1, 1]})
    for key in (UNKNOWN, NUM_STAGES):
        with pytest.raises(InternalError, match=f"'{key}'"):
            verify(NOTHING, "program", launch={key: 1})


def test_stages_and_nodes_exist() -> None:
    assert tuple(STAGES) == STAGE_ORDER
    named = {"address", "descriptor", "instruction", "move", "shuffle", "vote", "group_reduce", "sync_threads"}
    named |= {"cluster_arrive", "print", "device_assert", *OPS}
    kinds = {kind for a in ATTRIBUTES.values() for kind in a.on}
    assert kinds - named <= attributes.NODE_KINDS


def test_names_are_unique() -> None:
    declared = [str(a) for a in vars(attributes).values() if isinstance(a, Attribute)]
    assert [name for name, count in Counter(declared).items() if count > 1] == []


OWN: Attribute[str] = Attribute("toy.own", TEXT, LOOP, until="loops")


def _marks(plan: Plan, ctx: Any) -> Plan:
    return plan.replace(body=kept(OWN, "x"))


def _same(plan: Plan, ctx: Any) -> Plan:
    return plan


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("stage", ["loops", "threads"])
def test_a_backend_declares_its_own(declared: bool, stage: str) -> None:
    passes = Spine((Pass("own", _marks), Pass("later", _same, stage=stage)))
    passes = passes.declare(OWN) if declared else passes
    with knobs.override(verify_ir=True):
        ctx = make_context("cpu")
    plan = Plan(_program(), NOTHING, ())
    if declared and stage == "loops":
        passes.run(plan, ctx)
        return
    message = "pass later: .*'toy.own' of a loop belongs to the stages program, selected, loops only"
    with pytest.raises(InternalError, match=message if declared else "pass own: .*'toy.own' of a loop is not declared"):
        passes.run(plan, ctx)


def _program() -> Any:
    import tile_core.language as T

    @T.prim_func
    def empty(A: T.Tensor((4,), "float32")):  # type: ignore[no-untyped-def,valid-type]
        with T.Kernel(1, threads=32):
            A[0] = 1.0

    return empty


def test_a_name_of_the_core_is_not_declared_again() -> None:
    with pytest.raises(InternalError, match=r"'tile\.role' is one of the core's"):
        Spine(()).declare(Attribute("tile.role", TEXT, LOOP))
