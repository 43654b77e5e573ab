"""Roles of a block's threads (``T.ws``): marks define thread numbers within a role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.compat import structural
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.errors.lowering import BarrierUnsupported, RoleUnsupported
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.visit import StmtRewriter
from tile_core.simt.role import Role
from tile_core.simt.variant import Block

if TYPE_CHECKING:
    from tile_core.context import Context


def enter_roles(body: Stmt, block: Block, ctx: Context) -> Stmt:
    """Return the body with a thread number variable in each mark of a role.

    Raises
    ------
    RoleUnsupported
        If the target has too few barriers for the roles, or a role is not made of whole groups of threads.
    """
    return _EnterRoles(block, ctx).stmt(body)


def role_of(mark: Stmt) -> Role:
    """Return the threads of a mark."""
    name, first, count, *_ = structural.items(mark.node)
    return Role(str(name.value), int(nodes.as_int(first)), int(nodes.as_int(count)))


def block_in(mark: Stmt | None, block: Block) -> Block:
    """Return the threads that share work in a mark, as a block.

    Without a mark these are the threads of the block.
    """
    if mark is None:
        return block
    _, first, count, thread = structural.items(mark.node)
    return Block((int(count.value), 1, 1), thread, begins=int(first.value))


def is_shared(s: Stmt) -> bool:
    """Whether a statement is a mark whose threads share the work."""
    return type(s) is tirx.AttrStmt and bool(s.attr_key == attributes.ONLY) and structural.size(s.node) == 4


class _EnterRoles(StmtRewriter):
    def __init__(self, block: Block, ctx: Context) -> None:
        self.block, self.ctx = block, ctx
        self.roles: set[tuple[int, int]] = set()
        #: The role that executes a statement; nothing for the whole block.
        self.around: Role | None = None

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        if s.attr_key != attributes.ONLY:
            return super().visit_AttrStmt(s)
        role = role_of(s)
        self.check(role, s)
        number = nodes.fresh("number")
        own = tirx.Bind(number, self.block.thread - nodes.int_const(role.first))
        self.around = role
        body = nodes.seq([own, self.stmt(s.body)])
        self.around = None
        return tirx.AttrStmt([*s.node, number], s.attr_key, s.value, body, s.span)

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        """Return the barrier of a role or block for a barrier with its thread count."""
        if not nodes.is_tile_call(s.value, "sync_part"):
            return s
        number, count = (int(nodes.as_int(a)) for a in s.value.args)
        most = self.ctx.capabilities.partial_barriers
        if number > most:
            found = f"{most} barriers of parts of a block" if most else "no barriers of parts of a block"
            facts = {"name": f"T.sync_threads({number}, {count})", "target": self.ctx.target.text, "found": found}
            raise BarrierUnsupported(**facts, where=nodes.where_of(s))
        whole = self.around is not None or count == self.block.count
        return tirx.Evaluate(calls.sync_threads().value, s.span) if whole else s

    def check(self, role: Role, s: Stmt) -> None:
        self.roles.add((role.first, role.count))
        most, width = self.ctx.capabilities.partial_barriers, self.ctx.capabilities.execution_width or 1
        found = fix = ""
        if not most:
            found, fix = "parts of a block have no barrier", "leave T.ws out: the block's threads then share all work"
        elif len(self.roles) > most:
            found, fix = f"there are {most} barriers of parts of a block", f"use at most {most} different roles"
        elif role.first % width or role.count % width:
            found, fix = f"threads execute in groups of {width}", f"use a size that is a multiple of {width}"
        if found:
            where = nodes.where_of(s)
            raise RoleUnsupported(role=role.name, found=found, target=self.ctx.target.text, fix=fix, where=where)
