"""Mistakes that a writer of barriers could make, as changes of the emitted IR."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tile_core.compat.tvm import ir, tirx
from tile_core.ir import nodes
from tile_core.ir.attributes import NAME
from tile_core.ir.visit import StmtRewriter, collect, map_expr

Edit = Callable[[Any], "list[Any]"]

_ORDERS = {
    "barrier_wait": "wait", "barrier_arrive": "arrival", "barrier_expect": "expect", "barrier_complete": "completion",
    "async_commit": "commit", "async_wait": "group wait", "sync_threads": "barrier", "sync_part": "barrier",
    "cluster_arrive": "cluster arrival", "cluster_wait": "cluster wait", "fence_proxy": "fence",
    "fence_init": "init fence", "barrier_init": "init",
}  # fmt: skip


def kind_of(s: Any) -> str:
    """Return what a statement does for barriers; empty if nothing."""
    call = s.value if isinstance(s, tirx.Evaluate) else None
    if call is None or not nodes.is_tile_call(call):
        return ""
    name = nodes.operator_name(call).removeprefix("tile.")
    if name != "instruction":
        return _ORDERS.get(name, "")
    function = str(call.attrs[NAME])
    if "wait_group" in function:
        return "group wait"
    if "commit_group" in function:
        return "commit"
    if function.startswith("tcgen05_commit"):
        return "completion"
    if "mbarrier_complete_tx" in function:
        return "copy"
    return "fence" if "fence" in function else ""


def edits_of(s: Any) -> Iterator[tuple[str, Edit]]:
    """Yield name and change of each mutant of a statement."""
    kind = kind_of(s)
    if not kind:
        return
    yield f"{kind} dropped", lambda s: []
    yield f"{kind} doubled", lambda s: [s, s]
    call, name = s.value, nodes.operator_name(s.value).removeprefix("tile.")
    if name in ("barrier_wait", "barrier_arrive", "barrier_expect", "barrier_complete") or kind in (
        "copy",
        "completion",
    ):
        slots = [x for x in collect(call, ir.TensorLoad) if nodes.element_type(x.source) == "uint64"]
        count = int(nodes.as_int(slots[0].source.shape[0])) if slots else 1
        if count > 1:
            yield f"{kind} at the next slot", lambda s: [_next_slot(s, count)]
    if name == "barrier_wait":
        yield "other parity", lambda s: [_with_arg(s, 1, lambda p: 1 - p)]
    if name == "barrier_expect":
        yield "fewer bytes", lambda s: [_with_arg(s, 1, lambda n: nodes.int_const(int(nodes.as_int(n)) - 16))]
        yield "more bytes", lambda s: [_with_arg(s, 1, lambda n: nodes.int_const(int(nodes.as_int(n)) + 16))]
    if name == "barrier_init":
        yield "more arrivals", lambda s: [_with_arg(s, 1, lambda n: nodes.int_const(int(nodes.as_int(n)) + 1))]
        if int(nodes.as_int(call.args[1])) > 1:
            yield "fewer arrivals", lambda s: [_with_arg(s, 1, lambda n: nodes.int_const(int(nodes.as_int(n)) - 1))]
    if name == "async_wait":
        yield (
            "one group more in flight",
            lambda s: [_with_arg(s, 0, lambda n: nodes.int_const(int(nodes.as_int(n)) + 1))],
        )
    if name == "instruction" and "wait_group" in str(call.attrs[NAME]):
        yield "one group more in flight", lambda s: [_with_more_in_flight(s)]


def _with_arg(s: Any, at: int, change: Callable[[Any], Any]) -> Any:
    call = s.value
    args = [change(x) if n == at else x for n, x in enumerate(call.args)]
    return tirx.Evaluate(ir.Call(call.op, args, attrs=dict(call.attrs.items()), ret_ty=call.ty), s.span)


def _with_more_in_flight(s: Any) -> Any:
    name = str(s.value.attrs[NAME])
    head, _, pending = name.rpartition("_")
    return tirx.Evaluate(nodes.tile_call("instruction", [], {NAME: f"{head}_{int(pending) + 1}"}), s.span)


def _next_slot(s: Any, count: int) -> Any:
    def other(load: Any) -> Any:
        if nodes.element_type(load.source) != "uint64":
            return load
        return nodes.load(load.source, [tirx.floormod(load.indices[0] + 1, nodes.int_const(count))])

    return tirx.Evaluate(map_expr(s.value, other, ir.TensorLoad), s.span)


class _Edited(StmtRewriter):
    """Applies an edit to some statements, by their number; or moves one behind the next."""

    def __init__(self, at: int, edit: Edit | None, kinds: tuple[str, ...] = ()) -> None:
        self.at, self.edit, self.kinds, self.seen = at, edit, kinds, -1

    def visit_SeqStmt(self, s: Any) -> Any:
        body: list[Any] = []
        moved = None
        for x in s.seq:
            before = self.seen
            new = self.stmt(x)
            if self.edit is None and kind_of(x) and before < self.at <= self.seen:
                moved = new
                continue
            body.append(new)
            if moved is not None and not isinstance(x, tirx.AllocBuffer):
                body.append(moved)
                moved = None
        return nodes.seq([*body, moved])

    def visit_Evaluate(self, s: Any) -> Any:
        if not kind_of(s):
            return s
        self.seen += 1
        if self.edit is None or not (self.seen == self.at or kind_of(s) in self.kinds):
            return s
        return nodes.seq(self.edit(s))


def _edited(body: Any, at: int, edit: Edit | None, kinds: tuple[str, ...] = ()) -> Any:
    """Return a body with one change, or with one of each statement of some kinds."""
    return _Edited(at, edit, kinds).stmt(body)


def mutants_of(body: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield name and body of each mutant."""
    found = [s for s in collect(body, tirx.Evaluate) if kind_of(s)]
    for n, s in enumerate(_in_order(body)):
        for name, edit in edits_of(s):
            yield f"{n}: {name}", partial(_edited, body, n, edit)
        yield f"{n}: {kind_of(s)} moved", partial(_edited, body, n, None)
    if any(kind_of(s) == "wait" for s in found):
        flip = lambda s: [_with_arg(s, 1, lambda p: 1 - p)]  # noqa: E731
        yield "all parities wrong", partial(_edited, body, -2, flip, ("wait",))
    if any(kind_of(s) == "arrival" for s in found):
        yield "all releases dropped", partial(_edited, body, -2, lambda s: [], ("arrival",))


def _in_order(body: Any) -> list[Any]:
    """Return the statements for barriers in the order of `_Edited`."""
    found: list[Any] = []

    class Order(StmtRewriter):
        def visit_Evaluate(self, s: Any) -> Any:
            found.extend([s] if kind_of(s) else [])
            return s

    Order().stmt(body)
    return found
