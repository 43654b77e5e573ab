"""The flow analysis on small programs, and on random ones in the test machine."""

from __future__ import annotations

import random
from collections import defaultdict

import numpy as np
import pytest
from machine import Machine

from tile_core.analysis.flow import Flow, jumps_of
from tile_core.analysis.uniformity import Varying
from tile_core.compat.tvm import tirx
from tile_core.errors import InternalError
from tile_core.ir import calls, nodes
from tile_core.ir.visit import replace_for

LANES = 3
SIZE = 4
STATEMENT, ITERATION, AGAIN, BOUND = range(4)


def put(buffer, value, index=0):
    return nodes.store(buffer, nodes.int_const(value) if isinstance(value, int) else value, [index])


def when(condition, then, other=None):
    return tirx.IfThenElse(condition, then, other)


def array(name, scope="shared"):
    return nodes.alloc([SIZE], "int32", name, scope)


def loop(extent, *body, role="serial"):
    return nodes.for_loop(nodes.fresh("k"), extent, nodes.seq(body), role)


def at(flow, s):
    return next(p for p in flow.points if p.stmt.same_as(s))


class Draw:
    """A random program of a block with shared and private arrays, and variables."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.tid = nodes.fresh("tid")
        self.arrays = [array(n, s) for n, s in (("S", "shared"), ("R", "shared"), ("P", "local"), ("Q", "local"))]
        self.numbers = [self.tid]
        allocs = [a for _, a in self.arrays]
        first = [put(b, self.rng.randrange(4), k) for b, _ in self.arrays for k in range(SIZE)]
        self.body = nodes.seq([*allocs, *first, *self.block(3, None)])

    def block(self, depth, inside):
        """Return statements; ``inside`` is the kind of the enclosing loop."""
        known = len(self.numbers)
        out = [self.statement(depth, inside) for _ in range(self.rng.randint(1, 4))]
        del self.numbers[known:]
        return out

    def statement(self, depth, inside):
        kind = self.rng.choice(["put"] * 4 + ["bind"] + (["if", "if", "for", "while", "mark"] if depth else []))
        if inside and self.rng.random() < 0.12:
            return when(self.condition(), self.rng.choice([tirx.Break, tirx.Continue])())
        if kind == "if":
            other = nodes.seq(self.block(depth - 1, inside)) if self.rng.random() < 0.5 else None
            return when(self.condition(), nodes.seq(self.block(depth - 1, inside)), other)
        if kind == "for":
            return self.counted(depth)
        if kind == "while":
            return self.repeated(depth)
        if kind == "mark":
            return calls.step(nodes.seq(self.block(depth - 1, inside)))
        if kind == "bind":
            v = nodes.fresh("v")
            s = tirx.Bind(v, self.value())
            self.numbers.append(v)
            return s
        return nodes.store(self.buffer(), self.value(), [self.index()])

    def counted(self, depth):
        k = nodes.fresh("k")
        extent = self.rng.choice([0, 1, 2, 3, tirx.floormod(self.load(), 3)])
        self.numbers.append(k)
        body = nodes.seq(self.block(depth - 1, "for"))
        self.numbers.remove(k)
        return nodes.for_loop(k, extent, body)

    def repeated(self, depth):
        """A loop that counts in a register of its own."""
        count, alloc = nodes.alloc([1], "int32", "count", "local.var")
        most = self.rng.randint(0, 2)
        more = nodes.load(count, [0]) < (most if self.rng.random() < 0.7 else tirx.floormod(self.tid, 3))
        body = [put(count, nodes.load(count, [0]) + 1), *self.block(depth - 1, "while")]
        return nodes.seq([alloc, put(count, 0), tirx.While(more, nodes.seq(body))])

    def buffer(self):
        return self.rng.choice(self.arrays)[0]

    def load(self):
        return nodes.load(self.buffer(), [self.index()])

    def index(self):
        e = self.rng.choice([nodes.int_const(self.rng.randrange(SIZE)), self.rng.choice(self.numbers)])
        return tirx.floormod(e, SIZE)

    def value(self):
        leaf = [nodes.int_const(self.rng.randrange(9)), self.rng.choice(self.numbers), self.load(), self.load()]
        a, b = self.rng.choice(leaf), self.rng.choice(leaf)
        forms = [a, a + b, a - b, tirx.if_then_else(self.condition(0), a, b), tirx.Select(a > b, a, b)]
        return self.rng.choice(forms)

    def condition(self, depth=1):
        left = self.rng.choice([self.load(), self.rng.choice(self.numbers)])
        plain = tirx.floormod(left, 3) < self.rng.randint(0, 3)
        if depth and self.rng.random() < 0.3:
            return self.rng.choice([tirx.And, tirx.Or])(plain, self.condition(0))
        return plain


def noted(points):
    """Return the statements of points with calls that note what is executed: see ``Traced.at``."""
    out = []
    for p in points:
        s = p.stmt
        if isinstance(s, tirx.AllocBuffer):
            out.append(s)
            continue
        out.append(note(p, STATEMENT))
        parts = [noted(part) for part in p.parts]
        if p.kind == "for":
            s = replace_for(s, nodes.seq([note(p, ITERATION), *parts[0]]))
        elif p.kind == "while":
            s = tirx.While(s.condition, nodes.seq([note(p, ITERATION), *parts[0], note(p, AGAIN)]))
        elif p.kind == "if":
            s = when(s.condition, nodes.seq(parts[0]), nodes.seq(parts[1]) if len(parts) == 2 else None)
        elif p.kind == "mark":
            s = tirx.AttrStmt(s.node, s.attr_key, s.value, nodes.seq(parts[0]))
        elif p.kind == "continue" and p.loops[-1].kind == "while":
            out.append(note(p.loops[-1], AGAIN))
        out.append(s)
        if isinstance(s, tirx.Bind):
            out.append(note(p, BOUND, s.var))
    return out


def note(p, kind, *values):
    return calls.execute("at", [nodes.int_const(p.order), nodes.int_const(kind), *values])


class Traced(Machine):
    """Notes by lane what is executed, and every access with the statement that makes it."""

    def __init__(self, draw):
        super().__init__(LANES, draw.tid, instructions={"at": self.at}, lenient=False)
        self.buffers = {str(b.name): b for b, _ in draw.arrays}
        #: By lane the statement that it executes.
        self.now = [None] * LANES
        self.trace = defaultdict(list)
        self.masks = defaultdict(list)
        self.seen = []
        self.bound = []
        #: By lane: (buffer, element) to the place in the trace where it was written last.
        self.kept = [{} for _ in range(LANES)]
        self.reads = []

    def at(self, state, args, on):
        order, kind = int(args[0][0]), int(args[1][0])
        if kind == BOUND:
            self.bound.append((order, args[2][on]))
            return
        if kind == STATEMENT:
            self.masks[order].append(on.copy())
        for lane in np.flatnonzero(on):
            self.trace[lane].append((order, kind))
            self.now[lane] = self.now[lane] if kind == ITERATION else order

    def read(self, region, at, on):
        found = super().read(region, at, on)
        self.touched(region, at, on, False, found)
        return found

    def write(self, region, at, value, on):
        super().write(region, at, value, on)
        self.touched(region, at, on, True, value)

    def touched(self, region, at, on, write, value):
        for lane in np.flatnonzero(on):
            element = tuple(int(np.broadcast_to(i, (LANES,))[lane]) for i in at)
            self.seen.append((self.now[lane], region.name, write, element))
            owner = lane if region.private else 0
            position = (lane, len(self.trace[lane]) - 1)
            if write:
                self.kept[owner][region.name, element] = position
            elif (region.name, element) in self.kept[owner]:
                written = self.kept[owner][region.name, element]
                if written[0] == lane:
                    self.reads.append((region.name, lane, written[1], position[1]))


def executed(seed):
    draw = Draw(seed)
    flow = Flow(draw.body)
    machine = Traced(draw)
    machine.run(nodes.seq(noted(flow.top)))
    return draw, flow, machine


SEEDS = range(120)
pytestmark = pytest.mark.sweep(3)


def test_points_know_their_parts_as_long_as_their_flow_lives():
    """A flow is no reference cycle: programs in cycles would fill the memory."""
    buffer, alloc = array("S")
    flow = Flow(nodes.seq([alloc, loop(2, put(buffer, 1))]))
    around = flow.top[1]
    inner = around.parts[0][0]
    assert inner.around is around
    del flow
    assert inner.path == (around,)
    assert inner.parts == []
    with pytest.raises(InternalError, match="requested after its flow is gone"):
        _ = around.parts


@pytest.mark.parametrize("seed", SEEDS)
def test_what_happens_is_what_the_analysis_says_may_happen(seed):
    draw, flow, machine = executed(seed)
    orders(flow, machine)
    accesses(flow, machine)
    lives(draw, flow, machine)
    threads(draw, flow, machine)


def orders(flow, machine):
    """Check that execution order agrees with ``precedes`` and ``dominates``."""
    points = flow.points
    for trace in machine.trace.values():
        earlier = set()
        for order, kind in trace:
            if kind == ITERATION:
                continue
            b = points[order]
            assert all(flow.precedes(points[a], b) for a in earlier), (order, sorted(earlier))
            earlier.add(order)
        pairs = [(a, b) for a in points for b in points if not is_alloc(a) and flow.dominates(a, b)]
        for a, b in random.Random(len(trace)).sample(pairs, min(len(pairs), 60)):
            common = next((x for x in reversed(a.loops) if x in b.loops), None)
            ready = False
            for order, kind in trace:
                if common is not None and (order, kind) == (common.order, ITERATION):
                    ready = False
                elif order == a.order and kind != ITERATION:
                    ready = True
                elif order == b.order and kind == STATEMENT:
                    assert ready, (a.order, b.order)
    certain(flow, machine)


def is_alloc(p):
    return isinstance(p.stmt, tirx.AllocBuffer)


def certain(flow, machine):
    """The first iteration executes all points that are certainly in it."""
    loops = [p for p in flow.points if p.kind in ("for", "while")]
    for within, p in ((w, p) for w in [None, *loops] for p in (flow.points if w is None else flow.inside(w))):
        if is_alloc(p) or not flow.always(p, within):
            continue
        for trace in machine.trace.values():
            begun = within is None
            done = False
            for order, kind in trace:
                if within is not None and order == within.order:
                    if kind == ITERATION and not begun:
                        begun, done = True, False
                    elif begun:
                        assert done, (within.order, p.order)
                        begun = False
                elif order == p.order and kind == STATEMENT:
                    done = True
            assert done or not begun


def accesses(flow, machine):
    """Each access is in the analysis's list for its statement, constant elements exactly."""
    listed = defaultdict(set)
    for a in flow.accesses:
        at = tuple(map(nodes.as_int, a.indices)) if a.how != "whole" else (None,)
        constant = at if all(isinstance(i, int) for i in at) else None
        listed[a.point.order, str(a.buffer.name), a.write].add(constant)
    assert [a.order for a in flow.accesses] == list(range(len(flow.accesses)))
    for order, name, write, element in machine.seen:
        known = listed[order, name, write]
        assert known, (order, name, write)
        assert None in known or element in known


def lives(draw, flow, machine):
    """Between a write and a read of what it wrote the buffer is live."""
    buffers = {str(b.name): b for b, _ in draw.arrays}
    found = flow.lifetimes(buffers.values(), lambda p: set())
    times = {p.order: t for t, p in enumerate(found.points) if p is not None}
    for p in flow.points:
        around = next((q for q in p.path if q.is_step()), None)
        if around is not None:
            times[p.order] = times[around.order]
    for name, lane, first, last in machine.reads:
        if name not in buffers:
            continue
        low, high = found.spans[buffers[name]]
        between = {order for order, _ in machine.trace[lane][first : last + 1]}
        assert all(low <= times[o] <= high for o in between if o in times)


def threads(draw, flow, machine):
    """Threads agree where control flow does not diverge and values do not vary."""
    varying = Varying(draw.body, [draw.tid])
    for order, masks in machine.masks.items():
        if not varying.divergent(varying.flow.points[order]):
            assert all(m.all() for m in masks), order
    for order, values in machine.bound:
        if flow.points[order].stmt.var not in varying.vars:
            assert len(set(values.tolist())) == 1
    for b, _ in draw.arrays:
        if nodes.scope_of(b) == "local" and b not in varying.buffers:
            assert (machine.private[b] == machine.private[b][0]).all()


def test_the_programs_have_everything():
    kinds = defaultdict(int)
    for seed in SEEDS:
        draw = Draw(seed)
        for p in Flow(draw.body).points:
            kinds[p.kind] += 1
    assert min(kinds[k] for k in ("plain", "for", "while", "if", "mark", "break", "continue")) > 20


def test_sides_exclude_each_other_but_in_a_loop():
    s, alloc = array("S")
    n = nodes.fresh("n")
    one, two, after = put(s, 1), put(s, 2), put(s, 3)
    flow = Flow(nodes.seq([alloc, when(n > 0, one, two), after]))
    a, b, c = (at(flow, x) for x in (one, two, after))
    assert flow.exclusive(a, b)
    assert not flow.precedes(a, b)
    assert not flow.precedes(b, a)
    assert flow.precedes(a, c)
    assert not flow.dominates(a, c)
    around = Flow(loop(n, when(n > 0, one, two), after))
    a, b, c = (at(around, x) for x in (one, two, after))
    assert around.exclusive(a, b)
    assert around.precedes(a, b)
    assert around.precedes(c, a)
    assert around.repeats(a, b) is around.points[0]


def test_what_dominates_runs_under_no_condition_and_at_least_once():
    s, alloc = array("S")
    n = nodes.fresh("n")
    first, maybe, part, last = put(s, 1), put(s, 2), put(s, 3), put(s, 4)
    body = [alloc, loop(3, first), loop(n, maybe), calls.only(("one", 0, 1), part), last]
    flow = Flow(nodes.seq(body))
    end = at(flow, last)
    assert [flow.dominates(at(flow, x), end) for x in (first, maybe, part)] == [True, False, False]
    leaving = Flow(nodes.seq([loop(3, when(n > 0, tirx.Break()), first), last]))
    assert not leaving.dominates(at(leaving, first), at(leaving, last))
    assert not leaving.always(at(leaving, first), leaving.points[0])


def test_the_first_iteration_of_a_loop():
    s, _ = array("S")
    n = nodes.fresh("n")
    sure, under, deep = put(s, 1), put(s, 2), put(s, 3)
    outer = loop(n, sure, when(n > 1, under), loop(2, deep))
    flow = Flow(outer)
    assert [flow.always(at(flow, x), flow.points[0]) for x in (sure, under, deep)] == [True, False, True]
    assert not flow.always(at(flow, sure), None)


def test_jumps_belong_to_the_innermost_loop():
    n = nodes.fresh("n")
    inner = loop(n, when(n > 0, tirx.Break()))
    outer = loop(n, inner, when(n > 1, tirx.Continue()))
    flow = Flow(outer)
    assert [p.kind for p in flow.jumps(flow.points[0])] == ["continue"]
    assert [p.kind for p in flow.jumps(flow.points[1])] == ["break"]
    assert [p.kind for p in jumps_of(outer.body)] == ["continue"]
    assert jumps_of(inner) == []


def test_accesses_of_calls():
    s, _ = array("S")
    r, _ = array("R")
    p, _ = array("P", "local")
    flow = Flow(nodes.seq([
        calls.move(p, [0], s, [1], 8),
        calls.execute("go", [calls.address(s, [2], "rw"), calls.address(r, [nodes.load(p, [3])], "w"), p]),
    ]))  # fmt: skip
    found = [(str(a.buffer.name), a.write, a.how, a.point.order) for a in flow.accesses]
    assert found == [
        ("S", False, "move", 0), ("P", True, "move", 0), ("S", False, "address", 1), ("S", True, "address", 1),
        ("P", False, "element", 1), ("R", True, "address", 1), ("P", False, "whole", 1), ("P", True, "whole", 1),
    ]  # fmt: skip


def test_conditions_of_branches_and_choices():
    s, _ = array("S")
    n, m = nodes.fresh("n"), nodes.fresh("m")
    chosen = tirx.if_then_else(m > 0, nodes.load(s, [0]), nodes.load(s, [1]))
    flow = Flow(when(n > 0, put(s, 1), put(s, chosen)))
    held = [[holds for _, holds in a.conditions] for a in flow.accesses]
    assert held == [[True], [False, True], [False, False], [False]]


def test_views_count_as_what_they_alias():
    s, alloc = array("S")
    view = tirx.decl_buffer([SIZE], "int32", "V", data=tirx.buffer_data(s), scope="shared", layout=None)
    again = tirx.decl_buffer([SIZE], "int32", "W", data=tirx.buffer_data(view), scope="shared", layout=None)
    declared = [tirx.DeclBuffer(b, data=tirx.buffer_data(of)) for b, of in ((view, s), (again, view))]
    flow = Flow(nodes.seq([alloc, *declared, put(again, 1)]))
    assert [flow.root(b) for b in (s, view, again)] == [s, s, s]
    assert flow.lifetimes({s}, lambda p: set()).spans == {s: (1, 1)}
