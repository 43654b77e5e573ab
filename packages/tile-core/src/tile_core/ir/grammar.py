"""The grammar of the IR on one page, as data.

The IR is TVM's tirx. A *program* is what the frontend makes::

    program  = PrimFunc(params = buffers and scalars in the user's order, body = stmt)
    stmt     = SeqStmt(stmt, …)
             | For(var, min, extent, body, {ROLE: role, …})
             | While(condition, body) | IfThenElse(condition, then, else?) | Break | Continue
             | AllocBuffer(buffer, {…}) | DeclBuffer(view, data = buffer_data(buffer))
             | Bind(var, expr) | BufferStore(buffer, expr, indices)
             | Evaluate(tile call) | Bind(var, tile call) | AttrStmt(value, attribute, 0, stmt)
    tile call = Call(Op("tile.<name>"), [BufferRegion | expr, …], {attribute: value, …})
    role     = grid | parallel | pipelined | serial | unroll | vectorized | threads
    scope    = "" (a parameter) | shared | local.fragment | local | local.var | matrix

Roles: ``grid`` loops surround the block's body, outermost the last axis, with the threads of a block in
``THREADS``; iterations of ``parallel`` loops are independent; ``pipelined`` loops may overlap copies of later
iterations (``NUM_STAGES``). A ``serial`` loop may be one over blocks (``OVER_BLOCKS``): as those of the grid they
have no order in global memory. A ``local.var`` buffer has shape (1,) and is a variable;
a ``matrix`` one is a backend's: memory of the matrix units, which only ops access. Every statement carries the
span of the user's line. In a region of numerics, functions of floats, ``div`` and tile ops that accumulate have its
level in the attribute ``NUMERICS``; arithmetic of floats in a strict one consists of calls of
``ieee_<op>_rn_<type>``, which no pass combines with others. Buffers
have no layout (``layout=None``) and parameters guarantee no more alignment than their elements.

The stages, of which a target may skip some::

    program    as traced; passes on whole tiles
    selected   a variant is chosen for each tile op (targets with threads)
    loops      no tile ops; loops over tiles
    threads    the code of one thread of a block; fragments are arrays
    kernel     no loops over the grid: blocks have coordinates
    lowered    only the statements, scopes and roles that TVM's code generators support

``STAGES`` lists the nodes of each stage. ``ATTRIBUTES`` (``ir/attributes.py``) lists every attribute of loops, marks
(``AttrStmt``), allocations, calls and launches: the type of its value, where it may stand, at which stages. A backend
adds its own (``Spine.declare``). ``ir/verify.py`` checks all of this.
"""

from __future__ import annotations

from tile_core.ir.attributes import ATTRIBUTES
from tile_core.records import dataclass
from tile_runtime.abi.signature import SYMBOL_HEADROOM

__all__ = ["ATTRIBUTES", "MOST_THREADS", "PRIVATE", "SCOPES", "STAGES", "SYMBOL_HEADROOM", "Stage"]

SCOPES = frozenset({"global", "shared", "local.fragment", "local", "local.var", "matrix"})
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
    "selected": Stage(_STATEMENTS | {"Break", "Continue"}, tile_ops=True),
    "loops": Stage(_STATEMENTS | {"Break", "Continue"}, tile_ops=False),
    "threads": Stage(_STATEMENTS | {"Break", "Continue"}, tile_ops=False, scopes=SCOPES - {"local.fragment"}),
    "kernel": Stage(_STATEMENTS | {"Break", "Continue"}, tile_ops=False, scopes=SCOPES - {"local.fragment"}),
    "lowered": Stage(_STATEMENTS, tile_ops=False, scopes=frozenset({"global", "local"})),
}
