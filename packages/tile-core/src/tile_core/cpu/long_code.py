"""Split long straight-line code into functions: LLVM's compile time grows faster than linearly.

TVM's code generator makes a function of its own, which LLVM does not merge back, of a statement with the attribute
``compute_scope``. Names that the statement uses become arguments. Pointers among them are promised not to alias: whole
arrays are passed, views are not. Values with names are put into memory first, so that parts share them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Stmt, Var
from tile_core.cpu.attributes import FUNCTION_SCOPE
from tile_core.cpu.packing import registers
from tile_core.cpu.spill import spill_bindings
from tile_core.cpu.unroll import statements_of
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect, statements

#: Statements of a sequence above which it is cut, and of a part.
LONGEST, PART = 512, 192


def cut_long_code(body: Stmt) -> Stmt:
    """Return the statement with the parts of its long sequences in functions of their own."""
    views = {s.buffer for s in collect(body, tirx.DeclBuffer)}
    pointers = {s.var for s in collect(body, tirx.Bind) if nodes.dtype_of(s.var) == "handle"}
    return _CutInParts(views | pointers).stmt(body)


class _CutInParts(StmtRewriter):
    def __init__(self, aliases: set[Var]) -> None:
        self.aliases = aliases

    def visit_SeqStmt(self, s: Stmt) -> Stmt:
        parts = [self.stmt(x) for x in s.seq]
        sizes = [statements_of(x) for x in parts]
        if sum(sizes) <= LONGEST or max(sizes) > LONGEST:
            same = all(new.same_as(old) for new, old in zip(parts, s.seq, strict=True))
            return s if same else nodes.seq(parts)
        return nodes.seq(self.cut(list(statements(spill_bindings(nodes.seq(parts))))))

    def cut(self, whole: Sequence[Stmt]) -> list[Stmt]:
        """Return the statements of a sequence with functions in the place of its parts."""
        last = {v: n for n, s in enumerate(whole) for v in collect(s, tirx.Var)}
        done: list[Stmt] = []
        part: list[Stmt] = []
        size = end = 0
        for n, s in enumerate(whole):
            if isinstance(s, tirx.AllocBuffer):
                done.append(s)
                continue
            until = last.get(s.var, n) if isinstance(s, tirx.Bind) else n
            if until > n + PART or not self.movable(s):
                done += [*_function(part, end < n), s]
                part, size, end = [], 0, 0
                continue
            part.append(s)
            size, end = size + statements_of(s), max(end, until)
            if size >= PART and end <= n:
                done += _function(part, True)
                part, size, end = [], 0, 0
        return [*done, *_function(part, end < len(whole))]

    def movable(self, s: Stmt) -> bool:
        """Whether a statement computes the same in another function."""
        leaves = collect(s, tirx.Break) or collect(s, tirx.Continue)
        return not leaves and not any(v in self.aliases for v in collect(s, tirx.Var))


def _function(part: Sequence[Stmt], whole: bool) -> list[Stmt]:
    """Return statements as one call, unless there are few, or later ones use their names."""
    if not whole or sum(map(statements_of, part)) < PART // 4:
        return list(part)
    allocation, after = registers(1, "int32", "after")
    zero = nodes.int_const(0)
    span = next((x.span for x in collect(nodes.seq(part), tirx.Stmt) if x.span is not None), None)
    call = nodes.mark(FUNCTION_SCOPE, 0, nodes.seq(part), span, ir.StringImm("part"))
    # The generator gives what follows a function the line of its last statement, and LLVM refuses it, unless another
    # statement has a line of its own. LLVM drops the store.
    return [allocation, call, tirx.BufferStore(after, zero, [zero], span)]
