"""A whole program on a made-up target with threads, run in lock step: groups of any width, no backend's text.

The program goes through the core's passes for threads as far as they keep logical indices; what is then between two
barriers is marked as a step, inside of which the machine refuses races.
"""

from __future__ import annotations

from typing import Any

from machine import Machine

from tile_core.context import Context
from tile_core.lowering.variant import Accept
from tile_core.manifest import BackendManifest
from tile_core.ops.registry import OPS
from tile_core.passes.lower_ops import MeaningVariant
from tile_core.passes.spine import SPINE, Plan, Spine
from tile_core.simt.kernel_plan import KernelPlan
from tile_core.simt.memory.launch_assumptions import assume
from tile_core.simt.ops.gather_scatter import GatherElements, ScatterColumns
from tile_core.simt.ops.gemm import GemmByThreads
from tile_core.simt.ops.reduce import ReduceByShuffles
from tile_core.simt.ops.reducer import FinalizeByShuffles
from tile_core.simt.ops.scan import ScanByShuffles
from tile_core.simt.spine import SimtHooks, simt_spine
from tile_core.target import Capabilities, Target

LAST = "warps"


def context(width: int | None = 32, **capabilities: Any) -> Context:
    """Return the context of a target whose groups have ``width`` threads."""
    facts = {"shared_bytes": 1 << 20, "vector_bytes": (1, 2, 4, 8, 16), **capabilities}
    found = Capabilities(execution_width=width, **facts)
    manifest = BackendManifest(name="wide", api=">=1,<2", target_kinds=("wide",), fingerprint="test", summary="test")
    return Context(Target("wide:any", "wide", "wide", found, "any"), manifest)


def variants() -> tuple[Any, ...]:
    """Return the core's variants for threads, and the plain meaning of everything."""
    kinds = (GemmByThreads, ReduceByShuffles, ScanByShuffles, FinalizeByShuffles, GatherElements, ScatterColumns)
    return (*(kind("wide") for kind in kinds), *(MeaningVariant("wide", op) for op in OPS))


def planned(program: Any, width: int | None = 32, last: str = LAST, **capabilities: Any) -> Plan:
    """Return the plan after the passes up to ``last``."""
    spine = simt_spine(SPINE, SimtHooks(can_copy=lambda *_: Accept()))
    names = [p.name for p in spine.passes]
    chosen = Spine(spine.passes[: names.index(last) + 1])
    plan = Plan.of(program, variants())
    return chosen.run(KernelPlan.extending(plan, aligned=assume(plan.params)), context(width, **capabilities))


def run(program: Any, *arrays: Any, width: int = 32, then: Any = None, **capabilities: Any) -> Plan:
    """Run a program, after another pass ``then``, on arrays, which it changes in place."""
    plan = planned(program, width, **capabilities)
    block = plan.block
    tensors = [p for p in plan.params if hasattr(p, "shape")]
    memory = dict(zip(tensors, arrays, strict=True))
    machine = Machine(block.extents, block.thread, memory, width=width, races=True)
    machine.run(plan.body if then is None else then(plan.body))
    return plan
