"""The kernels that tools for debugging execute, and their lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.errors.debugging import NoSuchLine
from tile_core.errors.launch import BadSetting, NotProvided
from tile_core.ir import nodes

if TYPE_CHECKING:
    from tile_core.ir.program import Program
    from tile_core.runtime.kernel import Kernel

__all__ = ["kernel_of", "lines_of", "require_line"]


def kernel_of(given: Kernel | Program, function: str) -> Kernel:
    """Return a kernel whose reference can be executed.

    Raises
    ------
    BadSetting, NotProvided
        It is something else, or was loaded without its program.
    """
    from tile_core.compiler import reference_kernel
    from tile_core.ir.program import Program
    from tile_core.runtime.kernel import Kernel

    if isinstance(given, Program):
        return reference_kernel(given)
    if not isinstance(given, Kernel):
        raise BadSetting(
            function=function, name="kernel", found=f"of type {type(given).__name__}", expected="a kernel or a program",
            instead="pass what tile.compile or @T.prim_func returned",
        )  # fmt: skip
    if given.program is None:
        reason, advice = "it was loaded without its program", "compile it with tile.compile in this process"
        raise NotProvided(kernel=given.name, action=f"{function}()", target=given.target, reason=reason, advice=advice)
    return given


def lines_of(program: Program) -> list[int]:
    """Return the lines that have a statement, ascending."""
    from tile_core.compat.tvm import tirx
    from tile_core.ir.visit import collect, role

    kinds = (tirx.For, tirx.While, tirx.IfThenElse, tirx.BufferStore, tirx.Bind, tirx.Evaluate)
    reached = (s for s in collect(program.func.body, kinds) if not (isinstance(s, tirx.For) and role(s) == "grid"))
    found = {where.line for s in reached if (where := nodes.where_of(s)) is not None}
    return sorted(found)


def require_line(program: Program, line: int) -> None:
    """Refuse a line without a statement.

    Raises
    ------
    NoSuchLine
        Naming the nearest one that has one.
    """
    lines = lines_of(program)
    if line not in lines:
        near = min(lines, key=lambda n: (abs(n - line), n), default=0)
        raise NoSuchLine(kernel=program.name, line=line, near=near, where=program.where)
