"""What no target with threads takes, whoever its backend is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from expected_errors import raises_error

import tile_core.language as T
from tile_core.errors.lowering import PointerUnsupported
from tile_core.passes.spine import SPINE, Plan
from tile_core.simt.spine import SimtHooks, simt_spine


@T.prim_func
def by_address(p: T.ptr, B: T.Tensor((4,), "float32")):
    with T.Kernel(1, threads=32):
        T.copy(T.make_tensor(p, (4,), "float32"), B)


def test_addresses_are_refused_before_anything_is_lowered() -> None:
    threads = next(p for p in simt_spine(SPINE, SimtHooks(lambda *_: None)).passes if p.name == "threads")
    ctx: Any = SimpleNamespace(target=SimpleNamespace(text="threads"))
    with raises_error(PointerUnsupported, name="p", target="threads") as error:
        threads.run(Plan.of(by_address), ctx)
    assert 'p: T.Tensor((T.dynamic("n"),)' in str(error.value)
    assert "def by_address" in str(error.value)


def test_a_plan_has_the_fields_that_passes_have_decided() -> None:
    from tile_core.errors import InternalError
    from tile_core.passes.spine import Plan
    from tile_core.simt.kernel_plan import KernelPlan

    plan = KernelPlan.extending(Plan(None, None, ()), recomputed={})  # type: ignore[arg-type]
    assert (plan.recomputed, plan.replace(uncovered="x").uncovered) == ({}, "x")
    with pytest.raises(InternalError, match="no pass has decided 'arena'"):
        print(plan.arena)
    with pytest.raises(InternalError, match="no pass has decided 'uncovered'"):
        print(plan.uncovered)  # the old plan is as it was
    with pytest.raises(TypeError, match="a plan has no rows"):
        plan.replace(rows=1)
    with pytest.raises(AttributeError, match="rows"):
        print(plan.rows)  # type: ignore[attr-defined]
