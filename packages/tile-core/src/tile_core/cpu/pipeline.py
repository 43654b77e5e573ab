"""The CPU's tail of the spine: from plain loops over scratch to LLVM's input."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from tile_core.abi.adapter import HOST_DEVICE
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.cpu.attributes import ATTRIBUTES, CALLS_BACK, CODED, DEVICE_ID, DEVICE_TYPE
from tile_core.cpu.code_tables import tabulate_codes
from tile_core.cpu.debug import calls_back, lower_debug
from tile_core.cpu.fuse_loops import fuse_loops
from tile_core.cpu.grid import fuse_grid
from tile_core.cpu.lane_selects import select_lanes
from tile_core.cpu.nibble_loads import nibble
from tile_core.cpu.poison import poison
from tile_core.cpu.prefetch_tiles import prefetch_tiles
from tile_core.cpu.products import fence_products
from tile_core.cpu.read_through import read_through
from tile_core.cpu.scratch import lower_scratch
from tile_core.cpu.share_packing import share_packing
from tile_core.cpu.target import isa_of
from tile_core.cpu.threads import run_threads
from tile_core.cpu.trim_tiles import trim_tiles
from tile_core.cpu.vector_functions import encoders, vector_math
from tile_core.cpu.vectorize import vectorize
from tile_core.cpu.watch import watch
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.attributes import SAFE_VALUES
from tile_core.ir.visit import collect, substitute
from tile_core.numerics.levels import level_of
from tile_core.passes import scalars
from tile_core.passes.apply_layouts import apply_layouts
from tile_core.passes.flatten_lets import flatten_lets
from tile_core.passes.float_rules import hide
from tile_core.passes.guard import guard
from tile_core.passes.legalize_floats import Conversions, legalize_floats
from tile_core.passes.legalize_math import LOOSE, legalize_math
from tile_core.passes.lower_break import lower_break
from tile_core.passes.roles import without_roles
from tile_core.passes.share import share
from tile_core.passes.spine import Pass, Plan, Spine
from tile_core.passes.wide_indices import wide_index
from tile_core.passes.wrap_unproven import wrap_unproven
from tile_core.records import dataclass
from tile_runtime.cpu.scalars import coded as coded_scalars

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.target import Target


@dataclass(frozen=True, eq=False, repr=False)
class CpuPlan(Plan):
    """A plan for the CPU.

    Attributes
    ----------
    calls_back
        Whether the code calls functions of this process, to print or to fail.
    """

    calls_back: bool = field(init=False)


def pipeline(target: Target, spine: Spine) -> Spine:
    """Return the core's passes followed by the CPU's."""
    roles = Pass("roles", _roles, "before all that looks at neighbouring statements: one thread does the work of all")
    through = Pass("read_through", _read_through, "before lowering: whole tiles show the use of a copy")
    trimmed = Pass("trim", _trim, "first: all other passes see fewer rows")
    poisoned = Pass("poison", _poison, "first: scratch that the program does not fill keeps its poison")
    products = Pass("products", _products, "after lowering, whose loops are not fused either; before math, which is")
    spine = spine.declare(*ATTRIBUTES)
    return spine.before("lower_ops", roles, trimmed, poisoned, through).then(
        products,
        Pass("watch", _watch, "while the accesses of a tensor are those of the program's blocks and atomics"),
        Pass("threads", _threads, "before guards: thread numbers become loop variables with known ranges"),
        Pass("debug", _debug, "before guards: what is printed is read like anything else"),
        Pass("wrap_unproven", _wrap_unproven, "before guards, which rely on plain arithmetic"),
        Pass("tables", _tables, "after wrap_unproven: what remains plain does not wrap; before guards of each element"),
        Pass("guard", _guard, "on whole loop nests, while grid coordinates still have their extents"),
        Pass("layouts", _layouts, "after guards, which compare logical coordinates with the shape"),
        Pass("packing", _packing, "before the grid is fused: its axes show which blocks pack the same"),
        Pass("grid", _grid, "after guards: fused coordinates are quotients that bounds analysis reads less well"),
        Pass("break", _break, "before vectors: a body without jumps may still have a vector form"),
        Pass("scalars", _scalars, "before passes that hide arithmetic, or that add arithmetic of their own"),
        Pass("floats", _floats, "before math and vectors, which support neither bfloat16 nor the 8-bit floats"),
        Pass("math", _math, "scalar calls become arithmetic, which has vectors"),
        Pass(
            "selects", _selects, "after math, whose expressions may be computed in any case; before branches of these"
        ),
        Pass("hide", _hide, "after all passes that look at float arithmetic, before TVM's simplifier sees it"),
        Pass("fuse_loops", _fuse_loops, "on the final bodies of loops; before vectors, which fused loops keep"),
        Pass("prefetch", _prefetch, "on the loops that are left of a block; before vectors, whose loops have no steps"),
        Pass("vectorize", _vectorize, "after all rewriting of loop bodies"),
        Pass("share", _share, "after vectors: whether a loop has any depends on its bindings"),
        Pass("place", _lower_scratch, "last of ours: from here on buffers are memory", "lowered"),
        Pass("function", _function, "the end: what the runtime adapter builds"),
    )


def _scalars(plan: Plan, ctx: Context) -> Plan:
    return plan.replace(body=scalars.defined(plan, sized=True, copies=True))


def _read_through(plan: Plan, ctx: Context) -> Plan:
    if ctx.options.generic:
        return plan
    return plan.replace(body=read_through(plan.body, plan.program.layouts, isa_of(ctx.target)))


def _trim(plan: Plan, ctx: Context) -> Plan:
    if ctx.options.generic:
        return plan
    return plan.replace(body=trim_tiles(plan.body, plan.program.layouts))


def _roles(plan: Plan, ctx: Context) -> Plan:
    return plan.replace(body=without_roles(plan.body))


def _products(plan: Plan, ctx: Context) -> Plan:
    if not ctx.options.is_strict or not isa_of(ctx.target).fma:
        return plan
    return plan.replace(body=fence_products(plan.body))


def _poison(plan: Plan, ctx: Context) -> Plan:
    return plan.replace(body=poison(plan.body)) if ctx.options.poison else plan


def _watch(plan: Plan, ctx: Context) -> Plan:
    return plan.replace(body=watch(plan.body)) if ctx.options.races else plan


def _threads(plan: Plan, ctx: Context) -> Plan:
    return plan.replace(body=run_threads(plan.body))


def _debug(plan: Plan, ctx: Context) -> Plan:
    return CpuPlan.extending(plan, calls_back=ctx.options.races or calls_back(plan.body), body=lower_debug(plan.body))


def _wrap_unproven(plan: Plan, ctx: Context) -> Plan:
    return plan.replace(body=wrap_unproven(plan.body, plan.params))


def _tables(plan: Plan, ctx: Context) -> Plan:
    if ctx.options.generic or isa_of(ctx.target).name != "avx512":
        return plan
    return plan.replace(body=tabulate_codes(plan.body))


def _guard(plan: Plan, ctx: Context) -> Plan:
    return plan.replace(body=guard(plan.body, plan.program.attrs.get(SAFE_VALUES), plan.program.symbols.values()))


def _layouts(plan: Plan, ctx: Context) -> Plan:
    return plan.replace(body=apply_layouts(plan.body, plan.params, plan.program.layouts))


def _packing(plan: Plan, ctx: Context) -> Plan:
    return plan.replace(body=share_packing(plan.body, [*plan.params, *plan.program.symbols.values()]))


def _grid(plan: CpuPlan, ctx: Context) -> Plan:
    atomics = any(c.call.name.startswith("atomic") for c in plan.choices)
    ordered = plan.calls_back or atomics or _shares_bytes(plan)
    return plan.replace(body=fuse_grid(plan.body, parallel=ctx.options.parallel and not ordered))


def _shares_bytes(plan: Plan) -> bool:
    """Whether blocks may write elements of one byte: then they must run in order."""
    packed = {p for p in plan.params if tirx.is_buffer_var(p) and DTYPES[nodes.element_type(p)].is_packed}
    return any(s.buffer in packed for s in collect(plan.body, tirx.BufferStore))


def _break(plan: Plan, ctx: Context) -> Plan:
    return plan.replace(body=lower_break(plan.body))


def _floats(plan: Plan, ctx: Context) -> Plan:
    encode = {} if ctx.options.generic else encoders(isa_of(ctx.target))
    conversions = Conversions(encode=encode, nibble=nibble, in_bytes=True)
    return _with_function(plan, legalize_floats(_function_of(plan), ctx.capabilities.native_dtypes, conversions))


def _math(plan: Plan, ctx: Context) -> Plan:
    loose = LOOSE if ctx.options.generic else {**LOOSE, **vector_math(isa_of(ctx.target))}
    return _with_function(plan, legalize_math(_function_of(plan), level=level_of(ctx.options), loose=loose))


def _selects(plan: Plan, ctx: Context) -> Plan:
    return plan if ctx.options.generic else plan.replace(body=select_lanes(plan.body))


def _hide(plan: Plan, ctx: Context) -> Plan:
    return plan.replace(body=flatten_lets(hide(plan.body)))


def _fuse_loops(plan: Plan, ctx: Context) -> Plan:
    bits = 0 if ctx.options.generic else isa_of(ctx.target).vector_bits
    return plan.replace(body=fuse_loops(plan.body, bits))


def _prefetch(plan: Plan, ctx: Context) -> Plan:
    bits = 0 if ctx.options.generic else isa_of(ctx.target).vector_bits
    return plan.replace(body=prefetch_tiles(plan.body, bits))


def _vectorize(plan: Plan, ctx: Context) -> Plan:
    bits = 0 if ctx.options.generic else isa_of(ctx.target).vector_bits
    return plan.replace(body=vectorize(plan.body, bits))


def _share(plan: Plan, ctx: Context) -> Plan:
    return plan.replace(body=share(plan.body, in_vectors=False))


def _lower_scratch(plan: Plan, ctx: Context) -> Plan:
    return plan.replace(body=lower_scratch(plan.body))


def _function(plan: CpuPlan, ctx: Context) -> Plan:
    plan = _alike_dimensions(plan)
    hidden = hidden_symbols(plan)
    params = (*plan.params, *(plan.program.symbols[name] for name in hidden))
    plan = plan.replace(params=params, hidden=hidden)
    if not any(map(tirx.is_buffer_var, params)):
        plan = plan.replace(body=on_a_device(plan.body))
    func = _function_of(plan).with_attr("tirx.noalias", True).with_attr(CALLS_BACK, plan.calls_back)
    coded = {
        str(i): d
        for i, d in coded_scalars([p.dtype if p.kind == "scalar" else None for p in plan.program.params]).items()
    }
    return plan.replace(lowered=func.with_attr(CODED, coded) if coded else func)


def _alike_dimensions(plan: CpuPlan) -> CpuPlan:
    """Give all extents and strides of a tensor the type of the first."""
    alike: dict[Var, Expr] = {}
    for p in filter(tirx.is_buffer_var, plan.params):
        dimensions = [*p.shape, *(p.ty.strides or [])]
        if len({nodes.dtype_of(d) for d in dimensions}) > 1:
            wide = [wide_index(d) for d in dimensions]
            alike[p] = tirx.decl_buffer(
                wide[: len(p.shape)], nodes.element_type(p), p.name, strides=wide[len(p.shape) :], layout=None,
                data_alignment=p.ty.data_alignment,
            )  # fmt: skip
    if not alike:
        return plan
    return plan.replace(params=tuple(alike.get(p, p) for p in plan.params), body=substitute(plan.body, alike))


def on_a_device(body: Stmt) -> Stmt:
    """Return the body with the device of allocations, which TVM otherwise reads from arrays."""
    for key, value in ((DEVICE_TYPE, HOST_DEVICE), (DEVICE_ID, 0)):
        body = nodes.mark(key, str(key), body, value=nodes.int_const(value))
    return body


def hidden_symbols(plan: Plan) -> tuple[str, ...]:
    """Return the symbols that are not an extent or stride: the launch passes their values."""
    plain: set[BufferVar] = set()
    for p in plan.params:
        if tirx.is_buffer_var(p):
            plain |= {d for d in [*p.shape, *(p.ty.strides or [])] if isinstance(d, tirx.Var)}
        else:
            plain.add(p)
    return tuple(name for name, var in plan.program.symbols.items() if var not in plain)


def _function_of(plan: Plan) -> Expr:
    return tirx.PrimFunc(list(plan.params), plan.body)


def _with_function(plan: Plan, func: Expr) -> Plan:
    return plan.replace(body=func.body, params=tuple(func.params))
