"""The passes of a compilation, as one readable list.

``SPINE`` is shared by every target. A backend's ``tile_pipeline`` hook gets it and returns its own list: it inserts
passes at published points and appends its tail. Each pass is a pure function from ``Plan`` and ``Context`` to ``Plan``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from tile_core.analysis.uniformity import uses_threads
from tile_core.compat.tvm import reason_of
from tile_core.compat.types import Stmt, Var
from tile_core.errors import InternalError, TileError
from tile_core.errors.plugins import HookFailed, HookReturned
from tile_core.ir.attributes import ATTRIBUTES, NUMERICS, SHARING_ROLES, Attribute
from tile_core.ir.program import cluster_of
from tile_core.ir.warp import WARP
from tile_core.numerics.levels import level_of
from tile_core.numerics.regions import resolved
from tile_core.passes.check_barriers import check_barriers
from tile_core.passes.check_blocks import check_blocks
from tile_core.passes.check_clusters import check_clusters
from tile_core.passes.check_launch_order import check_launch_order
from tile_core.passes.check_layouts import check_layouts
from tile_core.passes.check_parallel import check_parallel
from tile_core.passes.check_parts import check_parts
from tile_core.passes.check_private import check_private
from tile_core.passes.check_scratch import check_scratch
from tile_core.passes.check_target import check_target
from tile_core.passes.check_warps import check_warps
from tile_core.passes.check_written import check_written
from tile_core.passes.lower_ops import OpChoice, lower_ops
from tile_core.passes.performance import PerformanceNote
from tile_core.passes.private_ops import private_ops
from tile_core.passes.role_loops import check_role_loops
from tile_core.passes.roles import check_roles
from tile_core.records import dataclass
from tile_runtime.compat.exits import check_thread
from tile_runtime.errors.interrupts import passed_on

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.ir.program import Program
    from tile_core.lowering.variant import Variant


P = TypeVar("P", bound="Plan")


@dataclass(frozen=True)
class Plan:
    """The state that passes transform.

    A target whose passes leave more decisions for later ones derives a class with a field for each
    (``field(init=False)``), and begins with ``extending``.

    Attributes
    ----------
    program
        The program, with the clusters that a pass has made of its blocks.
    body
        The statement that passes rewrite.
    params
        Its parameters.
    variants
        The target's lowering variants.
    choices
        The variant selected for each tile op.
    defined
        Variables that the body uses and a later pass defines.
    hidden
        Symbols of the program that a launch takes after the parameters.
    lowered
        The output of the last pass, which the target's runtime loads: a ``KernelText``, or an object of the backend's.
    source
        Its text; empty if ``lowered`` holds the only one.
    seconds
        Name and time of each pass, if timed.
    slow
        Performance notes of passes.
    ordered
        The shared buffers whose accesses the program's own barriers order.
    written
        The program as written, if a pass has made clusters of its blocks.
    """

    program: Program
    body: Stmt
    params: tuple[Var, ...]
    variants: tuple[Variant, ...] = ()
    choices: tuple[OpChoice, ...] = ()
    defined: tuple[Var, ...] = ()
    hidden: tuple[str, ...] = ()
    lowered: Any = None
    source: str = ""
    seconds: tuple[tuple[str, float], ...] = ()
    slow: tuple[PerformanceNote, ...] = ()
    ordered: frozenset[str] = frozenset()
    written: Program | None = None

    @staticmethod
    def of(program: Program, variants: tuple[Variant, ...] = ()) -> Plan:
        """Return the plan before the first pass."""
        return Plan(program, program.func.body, tuple(program.func.params), variants)

    @classmethod
    def extending(cls: type[P], plan: Plan, **decided: Any) -> P:
        """Return a plan of this class that continues another one."""
        new = object.__new__(cls)
        new.__dict__.update(plan.__dict__)
        return new.replace(**decided)

    def replace(self: P, **changes: Any) -> P:
        """Return a plan with the given fields changed."""
        # As ``dataclasses.replace``, which fifty passes would wait for.
        if not changes.keys() <= self.__dataclass_fields__.keys():
            raise TypeError(f"a plan has no {', '.join(sorted(changes.keys() - self.__dataclass_fields__.keys()))}")
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, **changes)
        return new

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Refuse to read a field that no pass has set."""
            if name in type(self).__dataclass_fields__:
                raise InternalError(stage="passes", detail=f"no pass has decided {name!r}")
            raise AttributeError(name)


@dataclass(frozen=True)
class Pass:
    """One step.

    Attributes
    ----------
    name
        Appears in dumps and errors.
    run
        The step.
    why
        Why it has its position.
    stage
        The grammar's stage that its result belongs to (a key of ``ir.grammar.STAGES``); "" if it stays the same.
    """

    name: str
    run: Callable[[Any, Context], Plan]
    why: str = ""
    stage: str = ""

    def __call__(self, plan: Plan, ctx: Context) -> Plan:
        """Take the step.

        Raises
        ------
        HookFailed, HookReturned
            It is a backend's, and raises an error outside the catalogue, or returns no plan.
        """
        hook = f"tile_pipeline, pass {self.name!r},"
        try:
            new = self.run(plan, ctx)
        except (TileError, KeyboardInterrupt):
            raise
        except BaseException as error:
            passed_on(error)
            if getattr(self.run, "__module__", "").startswith("tile_core."):
                raise
            raise HookFailed(backend=ctx.target.backend, hook=hook, reason=reason_of(error)) from error
        if not isinstance(new, Plan):
            expected = "a Plan"
            raise HookReturned(backend=ctx.target.backend, hook=hook, found=repr(new)[:80], expected=expected)
        return new


@dataclass(frozen=True)
class Spine:
    """An ordered, named list of passes; every method returns a new list."""

    passes: tuple[Pass, ...]
    #: The attributes that passes of a backend add to those of the core.
    attributes: tuple[Attribute[Any], ...] = ()

    def __post_init__(self) -> None:
        wrong = next((p for p in self.passes if not isinstance(p, Pass)), None)
        if wrong is not None:
            raise TypeError(f"{wrong!r} is not a Pass")

    def before(self, name: str, *new: Pass) -> Spine:
        """Insert passes before the named one."""
        at = self._index(name)
        return Spine((*self.passes[:at], *new, *self.passes[at:]), self.attributes)

    def after(self, name: str, *new: Pass) -> Spine:
        """Insert passes after the named one."""
        at = self._index(name) + 1
        return Spine((*self.passes[:at], *new, *self.passes[at:]), self.attributes)

    def then(self, *tail: Pass) -> Spine:
        """Append a backend's tail."""
        return Spine((*self.passes, *tail), self.attributes)

    def declare(self, *attributes: Attribute[Any]) -> Spine:
        """Add a backend's attributes to those that programs between passes may have.

        Raises
        ------
        InternalError
            An attribute of the core has the name.
        """
        for a in attributes:
            if str(a) in ATTRIBUTES:
                raise InternalError(stage="passes", detail=f"the attribute {str(a)!r} is one of the core's")
        return Spine(self.passes, (*self.attributes, *attributes))

    def run(self, plan: Plan, ctx: Context, watch: Callable[[str, Plan], None] | None = None) -> Plan:
        """Run all passes; ``watch`` is called with each pass's name and result.

        With the knob ``verify_ir`` the grammar of the current stage is checked after every pass.
        """
        stage = "program"
        verified: tuple[str, Plan] | None = None
        declared = {**ATTRIBUTES, **{str(a): a for a in self.attributes}}
        for step in self.passes:
            check_thread()
            plan = step(plan, ctx)
            stage = step.stage or stage
            if ctx.knobs.verify_ir and not (verified is not None and _as_verified(stage, plan, *verified)):
                _verify(step.name, stage, plan, declared)
                verified = stage, plan
            if watch is not None:
                watch(step.name, plan)
        return plan

    def __str__(self) -> str:
        width = max(len(p.name) for p in self.passes)
        return "\n".join(f"{p.name:<{width}}  {p.why}" for p in self.passes)

    def _index(self, name: str) -> int:
        for at, step in enumerate(self.passes):
            if step.name == name:
                return at
        known = ", ".join(p.name for p in self.passes)
        raise InternalError(stage="passes", detail=f"no pass {name!r} to insert at; passes: {known}")


def _as_verified(stage: str, plan: Plan, before: str, old: Plan) -> bool:
    """Whether a plan was verified already: most passes change nothing in most programs."""
    names = plan.params is old.params and plan.defined is old.defined and plan.program is old.program
    return stage == before and names and bool(plan.body.same_as(old.body))


def _verify(name: str, stage: str, plan: Plan, declared: Mapping[str, Attribute[Any]]) -> None:
    from tile_core.ir.verify import verify
    from tile_core.ops.registry import OPS

    try:
        defined = (*plan.params, *plan.program.symbols.values(), *plan.defined)
        verify(plan.body, stage, defined, frozenset(OPS), plan.program.attrs, declared)
    except InternalError as error:
        raise InternalError(stage=f"pass {name}", detail=error.facts["detail"]) from error


def _check(plan: Plan, ctx: Context) -> Plan:
    check_target(plan.body, plan.program, plan.variants, ctx)
    check_roles(plan.body, frozenset(plan.program.reducers))
    check_written(plan.body)
    check_layouts(plan.body, plan.program.layouts, frozenset(plan.program.reducers))
    check_parallel(plan.body, frozenset(plan.program.reducers))
    check_blocks(plan.body, cluster_of(plan.program.attrs))
    check_private(plan.body, frozenset(plan.program.reducers))
    check_scratch(plan.body)
    check_warps(plan.body, ctx.capabilities.execution_width or WARP)
    check_parts(plan.body, ctx.capabilities.execution_width or WARP, ctx.target.text)
    check_launch_order(plan.body)
    cluster = cluster_of(plan.program.attrs)
    check_clusters(plan.body, cluster)
    ordered = check_barriers(plan.body, cluster)
    check_role_loops([str(name) for name in plan.program.attrs.get(SHARING_ROLES, ())], ordered, plan.program.where)
    return plan.replace(ordered=ordered)


def resolve_levels(plan: P, ctx: Context) -> P:
    """Remove the marks of regions that change nothing."""
    return plan.replace(body=resolved(plan.body, level_of(ctx.options))) if NUMERICS in plan.program.attrs else plan


def _select_and_lower(plan: Plan, ctx: Context) -> Plan:
    body, choices = lower_ops(plan.body, ctx, plan.variants)
    return plan.replace(body=body, choices=tuple(choices))


def _private_ops(plan: Plan, ctx: Context) -> Plan:
    return plan.replace(body=private_ops(plan.body, uses_threads(plan.program.func.body)))


SPINE = Spine(
    (
        Pass("check", _check, "first: refusals should speak about the program as it was written"),
        Pass(
            "levels",
            resolve_levels,
            "before variants: marks of regions that change nothing hide arithmetic",
        ),
        Pass(
            "lower_ops", _select_and_lower, "variants see whole tiles, before loops are distributed or guarded", "loops"
        ),
        Pass(
            "private_ops",
            _private_ops,
            "before loops are distributed: ops on a thread's own arrays are not work of a block",
        ),
    )
)
