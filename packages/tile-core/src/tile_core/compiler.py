"""``tile.compile``: from a tile program to a kernel, one readable line of stages.

program ──passes──▶ plan ──finish──▶ lowered ──adapter──▶ launch ──▶ Kernel

A kernel whose text and binary are on disk begins at ``lowered``; its plan is made on demand.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile_core.abi.signature import Param, Signature
from tile_core.compat.types import Array, Expr, Var
from tile_core.context import Context
from tile_core.errors import InternalError, TileError
from tile_core.errors.cli import CannotWrite
from tile_core.errors.language import NotCompiled
from tile_core.numerics.levels import STANDARD, level_of
from tile_core.plugins.contexts import make_context
from tile_core.plugins.runtimes import find_runtime
from tile_core.reports.slow import warn_of_build, warn_of_plan
from tile_core.runtime.disk_slots import DiskSlot, slot_of
from tile_core.runtime.files import write_named
from tile_core.runtime.kernel import Kernel, Origin
from tile_core.runtime.launches import CompiledLaunch, hidden_of
from tile_core.runtime.settings import path_of, program_of
from tile_runtime.calls.arguments import normalise_out_idx
from tile_runtime.calls.launches import in_order
from tile_runtime.calls.wide import WideVersion
from tile_runtime.compat.exits import check_thread
from tile_runtime.errors.interrupts import passed_on, watched
from tile_runtime.loaders import ask_adapter
from tile_runtime.traces import short_traces

if TYPE_CHECKING:
    from tile_core.abi.adapter import RuntimeAdapter
    from tile_core.ir.program import ParamInfo, Program
    from tile_core.passes.spine import Plan
    from tile_core.plugins.manager import Plugins
    from tile_core.reference.observe import Observer
    from tile_core.reports.report import ReportText
    from tile_core.target import Target


@short_traces
def compile(
    program: Program,
    target: Target | str = "auto",
    out_idx: int | Sequence[int] | None = None,
    options: object = None,
    *,
    runtime: str | None = None,
    dump: str | Path | None = None,
) -> Kernel:
    """Compile a program for a target and load it.

    Parameters
    ----------
    program
        What ``@T.prim_func`` returned.
    target
        A target or its text (``"cpu"``, ``"cpu:znver4"``); ``"auto"`` finds the best device of this machine.
    out_idx
        Positions of the parameters that a call allocates and returns; negative ones count from the end.
    options
        The backend's options: an instance, a mapping of its fields, or ``None``.
    runtime
        Name of a runtime of the target or of one that serves all (``"emulator"``); by default its backend's choice.
    dump
        A folder that receives the program after each pass.

    Returns
    -------
    Kernel
        Call it with arrays.

    Raises
    ------
    KernelError
        The program is wrong.
    UnsupportedError
        The target cannot run it.
    SetupError
        This machine lacks something.
    """
    from tile_core.plugins.manager import installed
    from tile_core.reports.idle import warn_idle

    program, plugins = program_of("tile.compile", program), installed()
    dump = None if dump is None else path_of("tile.compile", "dump", dump)
    with watched():
        ctx = make_context(target, options, plugins=plugins)
        signature = signature_of(program, out_idx)
        warn_idle(program, signature)
        return _kernel(program, signature, ctx, plugins, runtime, dump)


def lower(program: Program, ctx: Context, plugins: Plugins, dump: str | Path | None = None) -> Plan:
    """Run all passes of a target; the plan's ``lowered`` is what its runtime adapter loads.

    Parameters
    ----------
    dump
        A folder that receives the program after each pass, numbered; the knob ``TILE_DUMP_DIR`` is its default.

    Raises
    ------
    HookReturned
        The backend's passes leave nothing to load.
    TileError
        What they refuse.
    """
    from tile_core.errors.plugins import HookReturned
    from tile_core.passes.spine import SPINE, Plan

    if len(program.stages) > 1:
        detail = f"{program.name} has {len(program.stages)} launches, and each is lowered as a program of its own"
        raise InternalError(stage="passes", detail=detail, where=program.where)
    spine = plugins.pipeline(ctx.target, SPINE)
    plan = Plan.of(program, plugins.lowerings(ctx.target))
    folder = dump if dump is not None else ctx.knobs.dump_dir
    watch = _dumper(Path(folder), plan) if folder else None
    plan = spine.run(plan, ctx, watch)
    if plan.lowered is None:
        found = "passes that do not set Plan.lowered"
        raise HookReturned(
            backend=ctx.target.backend, hook="tile_pipeline", found=found, expected="a last one that does"
        )
    return plan


def compiled_launches(programs: Sequence[Program], plans: Sequence[Plan], signature: Signature) -> list[CompiledLaunch]:
    """Return the launches of a kernel, which are not loaded.

    Parameters
    ----------
    programs, plans
        Each launch as a program of its own, and its plan.
    signature
        How the kernel is called.
    """
    made = []
    for one, plan in zip(programs, plans, strict=True):
        own = signature_of(one) if len(programs) > 1 else signature
        made.append(CompiledLaunch(one, own, plan.lowered, plan.hidden, functools.partial(_same, plan)))
    return made


def _same(plan: Plan) -> Plan:
    return plan


def _param(p: ParamInfo, access: Any) -> Param:
    return Param(p.name, p.kind, p.dtype, p.shape, p.strides, access, addresses=p.addresses)  # type: ignore[arg-type]


def signature_of(program: Program, out_idx: int | Sequence[int] | None = None) -> Signature:
    """Return the parameters of a program as the runtime checks them."""
    from tile_core.analysis.dominating_writes import initialised_by_program
    from tile_core.ir.access import accesses
    from tile_core.ops.effects import effects
    from tile_core.passes.check_reach import narrow_extents

    access = accesses(program.func.body, effects)
    access |= dict.fromkeys(initialised_by_program(program.func.body, effects) & access.keys(), "write")
    by_var = dict(zip((p.name for p in program.params), (str(v.name) for v in program.func.params), strict=True))
    params = tuple(_param(p, access.get(by_var[p.name], "read")) for p in program.params)
    chosen = tuple(program.outputs) if out_idx is None and program.outputs else out_idx
    if _index_bits(program) == 64:
        reach = narrow_extents(program)
        params = tuple(dataclasses.replace(p, narrow=reach.get(by_var[p.name], ())) for p in params)
    own = len(params) - len(program.workspaces)
    # A workspace has no defined content before a call: verify fills it with poison.
    params = (*params[:own], *(dataclasses.replace(p, access="write") for p in params[own:]))
    outputs = normalise_out_idx(program.name, params[:own], chosen, program.where)
    return Signature(
        name=program.name,
        params=params,
        out_idx=(*outputs, *range(own, len(params))),
        workspaces=len(program.workspaces),
        index_bits=_index_bits(program),
        where=program.where,
    )


def _index_bits(program: Program) -> int:
    """Return 64 if a symbol of the program is a 64-bit integer, else 32."""
    return 64 if any(nodes_dtype(v) == "int64" for v in program.symbols.values()) else 32


def nodes_dtype(var: Var) -> str:
    """Return the element type of a symbol."""
    return str(var.ty.dtype)


def source_of(lowered: Expr, plan: Callable[[], Plan]) -> str:
    """Return a kernel's text, without making its plan if that is not needed."""
    from tile_core.abi.kernel_text import KernelText

    return lowered.text if isinstance(lowered, KernelText) else source_text(plan())


def source_text(plan: Plan) -> str:
    """Return the emitted text, or the lowered program where a backend builds without text."""
    return plan.source or str(plan.lowered.script())


def _explain(plans: Sequence[Plan], ctx: Context) -> ReportText:
    from tile_core.reports.report import ReportText, facts_of

    return ReportText([facts_of(plan, ctx) for plan in plans])


def _kernel(
    program: Program, signature: Signature, ctx: Context, plugins: Plugins, runtime: str | None, dump: Path | None
) -> Kernel:
    """Return a loaded kernel; the plans of its launches are made now unless cached."""
    signature = _reaching(program, signature, ctx.capabilities.offset_bits)
    find = functools.cache(functools.partial(find_runtime, plugins, ctx.target))
    stages = _stages(program, signature, ctx, plugins, lambda: find(runtime), dump)
    hidden = hidden_of(stages)
    load = functools.partial(_load, program, stages, hidden, find)
    launch, adapter = load(runtime)
    for stage in stages:
        built = getattr(stage.lowered, "built", None)
        if built is not None and built.runtime == adapter.name:
            warn_of_build(stage.program.name, ctx.target.text, built.facts)
    return Kernel(
        signature,
        launch,
        adapter=adapter,
        hidden=hidden,
        wide=_wide_version(program, signature, ctx, plugins, find, runtime),
        origin=Origin(
            target=ctx.target.text,
            source=lambda: "\n\n".join(source_of(s.lowered, s.plan) for s in stages),
            program=program,
            explain=lambda: _explain([s.plan() for s in stages], ctx),
            reference=_reference(program, hidden, level_of(ctx.options)),
            export=lambda kernel, path: _export(path, signature, stages, ctx.target, plugins),
            runtimes=load,
        ),
    )


def _stages(
    program: Program, signature: Signature, ctx: Context, plugins: Plugins, find: Callable[[], RuntimeAdapter],
    dump: Path | None,
) -> list[CompiledLaunch]:  # fmt: skip
    """Return the launches of a program, compiled."""
    several = len(program.stages) > 1
    stages: list[CompiledLaunch] = []
    for number, one in enumerate(program.stages, 1):
        folder = dump / f"launch{number}" if dump and several else dump
        plan = functools.cache(functools.partial(_planned, one, ctx, plugins, folder))
        own = _reaching(one, signature_of(one), ctx.capabilities.offset_bits) if several else signature
        slot = None if dump else slot_of(one, own, ctx, plugins, find)
        lowered, hidden = _guarded("code generation", one, functools.partial(_lowered, plan, slot, ctx))
        stages.append(CompiledLaunch(one, own, lowered, tuple(hidden), plan))
    return stages


def _wide_version(
    program: Program, signature: Signature, ctx: Context, plugins: Plugins,
    find: Callable[[str | None], RuntimeAdapter], own: str | None,
) -> WideVersion | None:  # fmt: skip
    """Return the version with 64-bit offsets, if the kernel has symbolic shapes."""
    symbolic = any(p.kind == "tensor" and not p.is_constant for p in signature.params)
    if signature.index_bits == 64 or ctx.capabilities.offset_bits == 32 or not symbolic:
        return None
    from tile_core.passes.check_reach import check_reach

    wide = dataclasses.replace(program, offset_bits=64)

    @functools.cache
    def compiled() -> list[CompiledLaunch]:
        return _stages(wide, signature, ctx, plugins, lambda: find(own), None)

    def load(runtime: str | None) -> Callable[..., object]:
        launch, _ = _load(wide, compiled(), hidden_of(compiled()), find, runtime or own)
        return launch

    return WideVersion(functools.partial(check_reach, program, 64), load)


def _planned(program: Program, ctx: Context, plugins: Plugins, dump: Path | None) -> Plan:
    return _guarded("passes", program, lambda: lower(program, ctx, plugins, dump))


def _reaching(program: Program, signature: Signature, bits: int) -> Signature:
    """Return the signature with the target's index width; tensors beyond it are refused."""
    from tile_core.passes.check_reach import check_reach

    if signature.index_bits == 32:
        check_reach(program, bits)
    return dataclasses.replace(signature, offset_bits=max(bits, signature.index_bits))


def _lowered(plan: Callable[[], Plan], slot: DiskSlot | None, ctx: Context) -> tuple[Any, Sequence[str]]:
    """Return the artefact for a runtime, from disk if present, and the launch's extra symbols."""
    found = None if slot is None else slot.find(lambda: plan().lowered)
    if found is not None:
        return found
    lowered, hidden = plan().lowered, plan().hidden
    warn_of_plan(plan(), ctx)
    return (lowered if slot is None else slot.keep(lowered, hidden)), hidden


def _load(
    program: Program,
    stages: Sequence[CompiledLaunch],
    hidden: Sequence[str],
    find: Callable[[str | None], RuntimeAdapter],
    runtime: str | None,
) -> Any:
    """Return the launch of a compiled kernel and the runtime that loaded it."""
    adapter = find(runtime)
    loaded = [
        _guarded("code generation", s.program, functools.partial(ask_adapter, adapter, "load", s.lowered))
        for s in stages
    ]
    return in_order(loaded, stages, [p.name for p in program.params], hidden, adapter.convention), adapter


def _export(path: Path, *kernel: Any) -> None:
    from tile_core.runtime.export import write_artefact

    write_artefact(path, *kernel)


def _reference(program: Program, hidden: Sequence[str], level: str) -> Callable[..., object]:
    """Return the reference semantics of the program as a function: ``tile_core.reference``, without any backend.

    It is called as the kernel is: with the parameters, then the values of ``hidden``; with ``shake=seed`` results are
    changed as the level of numerics admits; with the positions of arrays that hold nothing yet, as ``unwritten``,
    memory is watched: what the program may not rely on is refused, and the elements of these arrays that it never
    writes are returned. ``observer`` is called before and after each statement.
    """

    def call(
        *values: Array, shake: int | None = None, unwritten: frozenset[int] | None = None,
        observer: Observer | None = None,
    ) -> object:  # fmt: skip
        from tile_core.reference import execute

        visible = len(values) - len(hidden)
        symbols = dict(zip(hidden, values[visible:], strict=True))
        watched = unwritten is not None
        return execute(
            program, values[:visible], check=watched, symbols=symbols, unwritten=unwritten, shake=shake, level=level,
            observer=observer,
        )  # fmt: skip

    call.shakes = call.watches = call.observes = True  # type: ignore[attr-defined]
    return call


def reference_kernel(program: Program, out_idx: int | Sequence[int] | None = None) -> Kernel:
    """Return a kernel that is compiled for no target: only its reference can be executed."""

    def refuse(*values: object) -> None:
        raise NotCompiled(kernel=program.name)

    return Kernel(
        signature_of(program, out_idx), refuse, hidden=(),
        origin=Origin(program=program, reference=_reference(program, (), STANDARD)),
    )  # fmt: skip


def _guarded(stage: str, program: Program, run: Callable[[], Any]) -> Any:
    """Run a stage; an error outside the catalogue becomes an ``InternalError`` that names the kernel."""
    try:
        check_thread()
        return run()
    except TileError as error:
        raise error.at(program.where) from error.__cause__
    except Exception as error:
        passed_on(error)
        from tile_core.compat.tvm import reason_of

        raise InternalError(stage=stage, detail=reason_of(error), where=program.where) from error


def _dumper(folder: Path, first: Plan) -> Callable[[str, Plan], None]:
    count = 0

    def write(name: str, plan: Plan) -> None:
        nonlocal count
        file = folder / f"{count:02d}-{name}.txt"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_named(file, body_text(plan))
        except OSError as error:
            raise CannotWrite(file=error.filename or file, reason=error.strerror or str(error)) from error
        count += 1

    write("program", first)
    return write


def body_text(plan: Plan) -> str:
    """Return the plan's current statement as text."""
    from tile_core.compat.tvm import tirx

    if plan.lowered is not None:
        return source_text(plan)
    return str(tirx.PrimFunc(list(plan.params), plan.body).script())
