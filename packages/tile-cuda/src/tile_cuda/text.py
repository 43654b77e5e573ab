"""From a finished plan to the text of its kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tile_core.compat.tvm import tirx
from tile_core.dtypes import DTYPES
from tile_core.emit.facts import KernelText, SharedArray
from tile_core.ir import calls, nodes
from tile_core.ir.access import accesses
from tile_core.ir.visit import StmtRewriter
from tile_core.ops.effects import effects
from tile_cuda.emit import TextOptions, emit_kernel
from tile_cuda.ptx.memory import MOST_OPEN

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.passes.spine import Plan

#: Operations of one thread (see ``tile_core.simt.code_size``) beyond which nothing is promised of parameters.
_LONG = 12_000


def emit_plan(plan: Plan, ctx: Context) -> KernelText:
    """Return the text of a plan whose passes have all run."""
    program, options = plan.program, ctx.options
    access = accesses(program.func.body, effects)
    relied = plan.notes["relied"]
    arena = plan.notes["arena"]
    hidden = tuple(program.symbols[name] for name in plan.notes["hidden"])
    return emit_kernel(
        program.name,
        (*plan.notes["params"], *hidden),
        _Instructions().stmt(plan.body),
        grid=plan.notes["grid"].extents,
        block=plan.notes["block"].extents,
        shared_bytes=arena.bytes,
        shared=tuple(SharedArray(a.name, a.offset, a.bytes, a.dtype) for a in arena.arrays),
        access={str(v.name): _access(v, access.get(str(v.name), "read")) for v in program.func.params},
        align={str(b.name): size for b, size in relied.addresses.items()},
        aliased=_aliased(plan),
        attributes=options.attributes(),
        divides={str(v.name): by for v, by in relied.divisors.items()},
        where=program.where,
        options=TextOptions(
            arch=ctx.target.arch,
            fast_math=options.fast_math,
            line_info=options.line_info,
            limited=options.max_registers is not None,
        ),
    )


def _aliased(plan: Plan) -> frozenset[str]:
    """Return the parameters that are not promised to lie apart from all others.

    What the promise gains is lost on long code: the compiler's time is then more than the square of the accesses.
    """
    long = plan.notes["written"].operations > _LONG
    return frozenset(p.name for p in plan.program.params if p.kind == "pointer" or long)


def _access(param: Any, found: str) -> str:
    """Return what is done with a parameter; to store one of two elements of a byte reads the other."""
    packed = tirx.is_buffer_var(param) and DTYPES[nodes.element_type(param)].is_packed
    return "readwrite" if packed and found == "write" else found


class _Instructions(StmtRewriter):
    """Names the instructions that the core's calls for asynchronous copies are here."""

    def visit_Evaluate(self, s: Any) -> Any:
        if nodes.is_tile_call(s.value, "async_commit"):
            return calls.execute("cp_async_commit_group", [], s.span)
        if nodes.is_tile_call(s.value, "async_wait"):
            # Waiting for more of them than was asked for is right, too.
            still_open = min(int(nodes.as_int(s.value.args[0])), MOST_OPEN)
            return calls.execute(f"cp_async_wait_group_{still_open}", [], s.span)
        return s
