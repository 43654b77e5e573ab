"""From a finished plan to the source of its kernel."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from tile_core.abi.kernel_text import KernelText
from tile_core.compat.tvm import tirx
from tile_core.emit.kernel import launch_of, parameters_of
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.numerics.regions import text_level
from tile_core.passes.check_launch_order import WAIT
from tile_core.simt.kernel_plan import KernelPlan
from tile_cuda.emit.printer import CudaPrinter
from tile_cuda.target import overlaps
from tile_cuda_runtime.architectures import DEPENDENT

if TYPE_CHECKING:
    from tile_core.context import Context

#: Operations of one thread (see ``tile_core.simt.code_size``) beyond which parameters are not declared ``restrict``.
_LONG = 12_000


def emit_plan(plan: KernelPlan, ctx: Context) -> KernelText:
    """Return the text of a plan whose passes have all run.

    Raises
    ------
    NotExpressible, InstructionMissing
        If there is no text for something in the plan, or the architecture lacks an instruction.
    """
    waits = any(nodes.is_tile_call(s.value, WAIT) for s in collect(plan.body, tirx.Evaluate))
    early = {DEPENDENT: True} if waits and overlaps(ctx.target.arch) else {}
    options = dataclasses.replace(ctx.options, numerics=text_level(ctx.options, plan.program.attrs))
    launch = launch_of(plan, {**options.attributes(), **early})
    if early or plan.code_size.operations > _LONG:
        # Without aliasing guarantees: with them, the compiler's time grows by more than the square of the accesses,
        # and loads may move before the wait for the launches that write.
        launch = dataclasses.replace(launch, aliased=frozenset(p.name for p in plan.program.params))
    printer = CudaPrinter(
        launch, ctx.target.arch, numerics=options.numerics, line_info=bool(options.line_info),
        limited=options.max_registers is not None, approximate=ctx.options.is_fast,
    )  # fmt: skip
    return printer.kernel(plan.program.name, parameters_of(plan), plan.body)
