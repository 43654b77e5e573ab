"""The grammar of the IR on one page, as data.

The IR is TVM's tirx. A *program* is what the frontend makes::

    program  = PrimFunc(params = buffers and scalars in the user's order, body = stmt)
    stmt     = SeqStmt(stmt, …)
             | For(var, min, extent, body, {"tile.role": role, …})
             | While(condition, body) | IfThenElse(condition, then, else?) | Break | Continue
             | AllocBuffer(buffer) | DeclBuffer(view, data = buffer_data(buffer))
             | Bind(var, expr) | BufferStore(buffer, expr, indices)
             | Evaluate(tile call) | Bind(var, tile call)
    tile call = Call(Op("tile.<name>"), [BufferRegion | expr, …], attrs)
    role     = grid | parallel | pipelined | serial | unroll | vectorized | threads
    scope    = "" (a parameter) | shared | local.fragment | local | local.var | matrix

Roles: ``grid`` loops surround the block's body, outermost the last axis, with the threads of a block in
``tile.threads``; iterations of ``parallel`` loops are independent; ``pipelined`` loops may overlap copies of later
iterations (``tile.num_stages``). A ``serial`` loop may be one over blocks (``tile.blocks``): as those of the grid they
have no order in global memory. A ``local.var`` buffer has shape (1,) and is a variable;
a ``matrix`` one is a backend's: memory of the matrix units, which only ops access. Every statement carries the
span of the user's line. In a region of numerics, functions of floats, ``div`` and tile ops that accumulate have its
level in the attribute ``numerics``; arithmetic of floats in a strict one consists of calls of
``ieee_<op>_rn_<type>``, which no pass combines with others. Buffers
have no layout (``layout=None``) and parameters guarantee no more alignment than their elements.

After ``lower_ops`` there are no tile ops, after the target's tail only roles that TVM supports. ``STAGES`` lists
the nodes of each stage; ``ir/verify.py`` checks them.
"""

from __future__ import annotations

from tile_core.records import dataclass

ROLES = frozenset({"grid", "parallel", "pipelined", "serial", "unroll", "vectorized", "threads"})
SCOPES = frozenset({"global", "shared", "local.fragment", "local", "local.var", "matrix"})
#: Headroom of symbolic sizes below the greatest index, so that kernels can round them up to whole tiles (K422).
SYMBOL_HEADROOM = 2**16
#: Threads of a block along one axis, at most.
MOST_THREADS = 65536
#: Scopes of thread-private memory.
PRIVATE = frozenset({"local", "local.var"})

_STATEMENTS = frozenset(
    "SeqStmt For While IfThenElse AllocBuffer DeclBuffer Bind BufferStore Evaluate AttrStmt AssertStmt".split()
)


@dataclass(frozen=True)
class Stage:
    """Nodes and scopes that a stage may hold.

    Attributes
    ----------
    statements
        Names of statement nodes.
    tile_ops
        Whether calls of tile ops may occur; thread-level calls always may until threads are distributed.
    scopes
        Storage scopes of buffers.
    """

    statements: frozenset[str]
    tile_ops: bool
    scopes: frozenset[str] = SCOPES


STAGES: dict[str, Stage] = {
    "program": Stage(_STATEMENTS | {"Break", "Continue"}, tile_ops=True),
    "loops": Stage(_STATEMENTS | {"Break", "Continue"}, tile_ops=False),
    "lowered": Stage(_STATEMENTS, tile_ops=False, scopes=frozenset({"global", "local"})),
}
