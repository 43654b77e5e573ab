"""Merge the loops of roles that depend on each other in both directions.

Adjacent roles run concurrently. Where one waits, inside of a loop, for a later one, the waits do not pass in the order
of the text; but they do in the order of one loop around both roles, if it balances::

    with T.ws(0):                       for k in range(n):
        for k in range(n):                  with T.ws(0):
            wait, copy, arrive      →           wait, copy, arrive
    with T.ws(1):                           with T.ws(1):
        for k in range(n):                      wait, multiply, arrive
            wait, multiply, arrive

The threads execute the same statements in both orders. The second one then defines the program, on every target. It is
used only if the first one does not balance, and only if the barriers order all buffers that the roles share: otherwise
results could depend on the choice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from tile_core.analysis.flow import Flow
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import BufferVar, Stmt
from tile_core.errors.base import Where
from tile_core.errors.ops import BadBarrier, BadRole, UnbalancedBarrier
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import StmtRewriter, collect, replace_for, role, substitute
from tile_core.ops.effects import effects
from tile_core.passes.barrier_block import step_of
from tile_core.passes.check_barriers import barriers_of, check_barriers


class _No(Exception):
    """Roles whose loops do not match."""


def merge_role_loops(body: Stmt, cluster: Sequence[int] = (1, 1, 1)) -> tuple[Stmt, tuple[str, ...]]:
    """Return a launch's body with merged role loops, and the names that roles share.

    Unchanged where no loops have to be merged.

    Parameters
    ----------
    body
        The loops over the grid.
    cluster
        Blocks of a cluster along x, y and z.
    """
    if not any(len(run) > 1 for run in _runs_in(body)) or _balances(body, cluster):
        return body, ()
    for order in range(2):
        rewriter = _MergedLoops(order == 1, barriers_of(body))
        new = rewriter.stmt(body)
        if rewriter.done and _balances(new, cluster):
            return new, tuple(sorted(rewriter.shared))
    return body, ()


def check_role_loops(shared: Sequence[str], ordered: frozenset[str], where: Where | None) -> None:
    """Refuse merged role loops whose shared buffers the program's barriers do not order.

    Raises
    ------
    BadRole
        With its name.
    """
    for name in shared:
        if name not in ordered:
            found = f"roles with merged loops share {name}, which no barrier of the program orders"
            raise BadRole(found=found, fix="wait for what another role has written, or write one loop around the roles",
                          where=where)  # fmt: skip


class _MergedLoops(StmtRewriter):
    def __init__(self, backwards: bool, barriers: Collection[BufferVar]) -> None:
        self.backwards, self.done = backwards, 0
        self.barriers = {str(b.name) for b in barriers}
        #: What several of the roles access, and one of them writes.
        self.shared: set[str] = set()

    def visit_SeqStmt(self, s: Stmt) -> Stmt:
        found: list[Stmt] = []
        for run in _runs(structural.items(s.seq)):
            if len(run) == 1:
                found.append(self.stmt(run[0]))
                continue
            parts = [(mark, _statements(mark.body)) for mark in (run[::-1] if self.backwards else run)]
            try:
                found += self.merged(parts)
            except _No:
                found += run
                continue
            self.done += 1
            self.shared |= _shared(run) - self.barriers
        return nodes.seq(found)

    def merged(self, parts: Sequence[tuple[Stmt, list[Stmt]]]) -> list[Stmt]:
        """Return the statements of roles, with one loop for the waiting loops of all."""
        cuts = [[n for n, s in enumerate(body) if _is_loop(s) and _waits(s)] for _, body in parts]
        if len({len(c) for c in cuts}) > 1:
            raise _No
        found: list[Stmt] = []
        starts = [0] * len(parts)
        for number in range(len(cuts[0])):
            at = [c[number] for c in cuts]
            found += _sections([(mark, body[a:b]) for (mark, body), a, b in zip(parts, starts, at, strict=True)])
            loops = [body[n] for (_, body), n in zip(parts, at, strict=True)]
            first = loops[0]
            if not all(_same_bounds(first, other) for other in loops):
                raise _No
            inner = [
                (mark, _statements(substitute(loop.body, {loop.loop_var: first.loop_var})))
                for (mark, _), loop in zip(parts, loops, strict=True)
            ]
            found.append(replace_for(first, nodes.seq(self.merged(inner))))
            starts = [n + 1 for n in at]
        rest = [(mark, body[a:]) for (mark, body), a in zip(parts, starts, strict=True)]
        return [*found, *_sections(rest)]


def _sections(parts: Sequence[tuple[Stmt, list[Stmt]]]) -> list[Stmt]:
    """Return the statements of each role after the bindings of all roles."""
    names = (tirx.Bind, tirx.AllocBuffer, tirx.DeclBuffer)
    before = [s for _, body in parts for s in body if isinstance(s, names)]
    if any(
        isinstance(s, tirx.Bind) and (collect(s.value, ir.TensorLoad) or nodes.is_tile_call(s.value)) for s in before
    ):
        raise _No
    found = list(before)
    for mark, body in parts:
        own = [s for s in body if not isinstance(s, names)]
        if own:
            found.append(tirx.AttrStmt(mark.node, mark.attr_key, mark.value, nodes.seq(own), mark.span))
    return found


def _shared(marks: Sequence[Stmt]) -> set[str]:
    """Return the names of the buffers that several roles access and one writes."""
    reads: dict[BufferVar, set[int]] = {}
    writes: dict[BufferVar, set[int]] = {}
    for number, mark in enumerate(marks):
        flow = Flow(mark, effects)
        for a in flow.accesses:
            (writes if a.write else reads).setdefault(flow.root(a.buffer), set()).add(number)
    return {str(b.name) for b, by in writes.items() if len(by | reads.get(b, set())) > 1}


def _runs(statements: Sequence[Stmt]) -> Iterator[list[Stmt]]:
    """Yield statements singly, or as runs of adjacent roles with different threads and waiting loops."""
    run: list[Stmt] = []
    for s in statements:
        fits = _is_role(s) and any(_is_loop(x) and _waits(x) for x in _statements(s.body))
        if run and not (fits and all(_apart(s, other) for other in run)):
            yield run
            run = []
        if fits:
            run.append(s)
        else:
            yield [s]
    if run:
        yield run


def _runs_in(body: Stmt) -> Iterator[list[Stmt]]:
    for s in collect(body, tirx.SeqStmt):
        yield from _runs(structural.items(s.seq))


def _balances(body: Stmt, cluster: Sequence[int]) -> bool:
    try:
        check_barriers(body, cluster)
    except (UnbalancedBarrier, BadBarrier):
        return False
    return True


def _same_bounds(a: Stmt, b: Stmt) -> bool:
    """Whether two loops have the same bounds, in the same order."""
    pairs = ((a.min, b.min), (a.extent, b.extent))
    return a.step is None and b.step is None and all(tvm_ffi.structural_equal(x, y) for x, y in pairs)


def _statements(body: Stmt) -> list[Stmt]:
    return list(structural.items(body.seq)) if isinstance(body, tirx.SeqStmt) else [body]


def _is_role(s: Stmt) -> bool:
    return isinstance(s, tirx.AttrStmt) and bool(s.attr_key == attributes.ONLY)


def _is_loop(s: Stmt) -> bool:
    return isinstance(s, tirx.For) and role(s) in ("serial", "unroll")


def _waits(s: Stmt) -> bool:
    steps = map(step_of, collect(s, tirx.Evaluate))
    return any(step is not None and step.name == "wait" for step in steps)


def _apart(a: Stmt, b: Stmt) -> bool:
    """Whether two roles have no thread in common."""
    (first, count), (other, more) = ((int(nodes.as_int(s.node[1])), int(nodes.as_int(s.node[2]))) for s in (a, b))
    return first + count <= other or other + more <= first
