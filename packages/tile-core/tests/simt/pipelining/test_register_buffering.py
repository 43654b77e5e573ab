"""Double buffering of registers: the loops are executed by their remaining statements."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import ir, tirx
from tile_core.ir import nodes
from tile_core.ir.attributes import NAME, UNROLL_FACTOR
from tile_core.ir.calls import address, execute
from tile_core.ir.visit import annotation, collect, substitute
from tile_core.simt.code_size import likely_operations
from tile_core.simt.pipelining.register_buffering import double_buffer_registers, retired
from tile_core.simt.variant import InFlight, RegisterPrefetch

FIRST = 99


def loop(extent, begin=0, arrays=1, name="k", stages=None):
    """A loop whose product reads ``arrays`` until it is waited for one iteration later, and what is in flight.

    It fills them with the number of the iteration, or of its slot.
    """
    k = nodes.fresh(name)
    made = [nodes.alloc([2], "int32", f"held{n}", "local") for n in range(arrays)]
    slot = k if stages is None else tirx.floormod(k, nodes.int_const(stages))
    fills = [nodes.store(b, slot, [i]) for b, _ in made for i in range(2)]
    issue = [execute("issue", [address(b, [0]) for b, _ in made])]
    body = nodes.seq([*(s for _, s in made), *fills, *issue, retired(1)])
    whole = nodes.seq([nodes.for_loop(k, extent, body, start=begin), retired(0)])
    return whole, {b: InFlight((execute("read", [address(b, [0])]),), nodes.int_const(FIRST)) for b, _ in made}


def events(s, env=None):
    """Yield what a statement does: (action, name of the array, value)."""
    env, known = dict(env or {}), Analyzer()

    def number(e):
        return int(nodes.as_int(known.simplify(substitute(e, {v: nodes.int_const(x) for v, x in env.items()}))))

    if isinstance(s, tirx.SeqStmt):
        for x in s.seq:
            yield from events(x, env)
    elif isinstance(s, tirx.For):
        for x in range(number(s.min), number(s.min) + number(s.extent)):
            yield from events(s.body, env | {s.loop_var: x})
    elif isinstance(s, tirx.IfThenElse):
        if number(tirx.Select(s.condition, nodes.int_const(1), nodes.int_const(0))):
            yield from events(s.then_case, env)
    elif isinstance(s, tirx.BufferStore):
        yield "fill", s.buffer, number(s.value)
    elif isinstance(s, tirx.Evaluate):
        what = str(s.value.attrs[NAME])
        for load in collect(s.value, ir.TensorLoad):
            yield what, load.source, None
    else:
        assert isinstance(s, tirx.AllocBuffer), s


def checked(body, env=None):
    """Return the values that products read, in order; no array is filled between a product and the read behind it."""
    values, busy, read = {}, {}, []
    for what, array, value in events(body, env):
        if what == "fill":
            assert array not in busy, f"{array.name} is in flight"
            values[array] = value
        elif what == "issue":
            busy[array] = True
            read.append(values[array])
        else:
            assert array in values, "it is not filled"
            busy.pop(array, None)
    assert not busy
    return read


@pytest.mark.parametrize("begin", [0, 3])
@pytest.mark.parametrize("trips", [0, 1, 2, 3, 4, 7])
@pytest.mark.parametrize("arrays", [1, 2])
def test_every_iteration_has_a_set_of_its_own(trips, begin, arrays):
    body, in_flight = loop(trips, begin, arrays)
    new = double_buffer_registers(body, in_flight)
    assert checked(new) == [begin + i for i in range(trips) for _ in range(arrays)]
    assert len(collect(new, tirx.AllocBuffer)) == 2 * arrays


@pytest.mark.parametrize("trips", range(6))
def test_any_number_of_iterations(trips):
    n = nodes.fresh("n")
    body, in_flight = loop(n, 2)
    assert checked(double_buffer_registers(body, in_flight), {n: trips}) == [2 + i for i in range(trips)]


@pytest.mark.parametrize(
    ("trips", "stages", "factor"), [(12, 3, 3), (12, 4, 2), (10, 4, 2), (4, 3, None), (12, 2, None), (12, None, None)]
)
def test_slots_of_short_loops_are_constants(trips, stages, factor):
    body, in_flight = loop(trips, stages=stages)
    new = double_buffer_registers(body, in_flight)
    assert [annotation(x, UNROLL_FACTOR) for x in collect(new, tirx.For)] == [factor]
    assert checked(new) == [k if stages is None else k % stages for k in range(trips)]


def test_slots_of_long_loops_are_computed():
    body, in_flight = loop(8, stages=4, arrays=400)
    (pairs,) = collect(double_buffer_registers(body, in_flight), tirx.For)
    assert likely_operations(pairs.body) < 9216 < 2 * likely_operations(pairs.body)
    assert annotation(pairs, UNROLL_FACTOR) is None


def test_the_loop_as_it_was_would_not_do():
    body, _ = loop(3)
    with pytest.raises(AssertionError, match="held0 is in flight"):
        checked(_Plain(body))


def test_two_loops_have_sets_of_their_own():
    (one, first), (two, second) = loop(3), loop(4, name="j")
    new = double_buffer_registers(nodes.seq([one, two]), first | second)
    assert checked(new) == [0, 1, 2, 0, 1, 2, 3]
    assert len({str(b.name) for b in (a.buffer for a in collect(new, tirx.AllocBuffer))}) == 2
    assert len(collect(new, tirx.AllocBuffer)) == 4


def test_an_outer_loop_stays_as_it_is():
    inner, in_flight = loop(3)
    t = nodes.fresh("t")
    new = double_buffer_registers(nodes.for_loop(t, 2, inner), in_flight)
    assert checked(new) == [0, 1, 2, 0, 1, 2]


def test_a_wait_in_the_same_list_needs_one_set():
    """Its reads stand behind each wait in the list, whatever loop is around."""
    (held, new), k = nodes.alloc([2], "int32", "held", "local"), nodes.fresh("k")
    fills = [nodes.store(held, k, [i]) for i in range(2)]
    issue = execute("issue", [address(held, [0])])
    loop = nodes.for_loop(k, 3, nodes.seq([new, *fills, issue, retired(1), retired(0)]))
    reads = (execute("read", [address(held, [0])]),)
    body = double_buffer_registers(loop, {held: InFlight(reads, nodes.int_const(FIRST), beyond=False)})
    assert checked(body) == [0, 1, 2]
    assert len(collect(body, tirx.AllocBuffer)) == 1
    assert [what for what, *_ in events(body)] == ["fill", "fill", "issue", "read", "read"] * 3


def test_without_registers_in_flight_nothing_changes():
    body = nodes.for_loop(nodes.fresh("k"), 4, execute("issue", []))
    assert double_buffer_registers(body, {}) is body


def _Plain(body):
    """The loop with the reads where the marks are, but one set for all iterations."""
    from tile_core.ir.visit import StmtRewriter

    class Read(StmtRewriter):
        def visit_Evaluate(self, s):
            return execute("read", []) if nodes.is_tile_call(s.value, "retired") else s

    return Read().stmt(body)


# Registers that one load fills for several iterations

GROUP = 4


def prefetch(extent, begin=0, beyond=True, iterations=GROUP, name="k"):
    """A loop whose products read a register each, filled from what was loaded for ``turns`` of them."""
    k, iteration = nodes.fresh(name), nodes.fresh("turn")
    arrays = [nodes.alloc([iterations], "int32", n, "local") for n in ("held", "loaded", "turned")]
    ((held, new), (loaded, _), (turned, _)) = arrays
    taken = [nodes.store(turned, nodes.load(loaded, [i]), [i]) for i in range(iterations)]
    filled = [nodes.store(held, nodes.load(turned, [i]), [i]) for i in range(iterations)]
    made = RegisterPrefetch(
        iterations, iteration, load=nodes.seq([nodes.store(loaded, k + i, [i]) for i in range(iterations)]),
        fill=nodes.seq([*taken, *(filled[:-1] if beyond else filled)]),
        last=nodes.seq(filled[-1:] if beyond else []),
        alone=nodes.store(held, k, [0]), arrays=(loaded, turned),
    )  # fmt: skip
    issue = execute("issue", [address(held, [iteration])])
    waits = [retired(1)] if beyond else [retired(0)]
    body = nodes.for_loop(
        k, extent, nodes.seq([tirx.Bind(iteration, nodes.int_const(0)), new, issue, *waits]), start=begin
    )
    reads = (execute("read", [address(held, [iteration])]),)
    whole = nodes.seq([body, retired(0)]) if beyond else body
    return whole, {held: InFlight(reads, nodes.int_const(FIRST), beyond, made)}


def values_of(body, env=None):
    """Return what products read, in order; no register is written while a product may read it."""
    memory, busy, read = {}, set(), []

    def number(e, env):
        loads = {
            x: nodes.int_const(memory[str(x.source.name), number(x.indices[0], env)]) for x in collect(e, ir.TensorLoad)
        }
        if loads:
            (only,) = loads.values()
            return int(nodes.as_int(only))
        return int(nodes.as_int(Analyzer().simplify(substitute(e, {v: nodes.int_const(x) for v, x in env.items()}))))

    def run(s, env):
        if isinstance(s, tirx.SeqStmt):
            for x in s.seq:
                run(x, env)
        elif isinstance(s, tirx.For):
            for x in range(number(s.min, env), number(s.min, env) + number(s.extent, env)):
                run(s.body, env | {s.loop_var: x})
        elif isinstance(s, tirx.IfThenElse):
            if number(tirx.Select(s.condition, nodes.int_const(1), nodes.int_const(0)), env):
                run(s.then_case, env)
        elif isinstance(s, tirx.Bind):
            env[s.var] = number(s.value, env)
        elif isinstance(s, tirx.BufferStore):
            register = str(s.buffer.name), number(s.indices[0], env)
            assert register not in busy, f"{register} is in flight"
            memory[register] = number(s.value, env)
        elif isinstance(s, tirx.Evaluate):
            (load,) = collect(s.value, ir.TensorLoad)
            register = str(load.source.name), number(load.indices[0], env)
            if str(s.value.attrs[NAME]) == "issue":
                busy.add(register)
                read.append(memory[register])
            else:
                assert register in memory, "it is not filled"
                busy.discard(register)

    run(body, dict(env or {}))
    assert not busy
    return read


@pytest.mark.parametrize("beyond", [True, False], ids=["beyond", "ended"])
@pytest.mark.parametrize("begin", [0, 3])
@pytest.mark.parametrize("trips", [0, 1, 2, 3, 4, 5, 7, 8, 13])
@pytest.mark.parametrize("iterations", [2, 4, 8])
def test_one_load_fills_registers_of_several_iterations(iterations, trips, begin, beyond):
    body, in_flight = prefetch(trips, begin, beyond, iterations)
    assert values_of(double_buffer_registers(body, in_flight)) == [begin + i for i in range(trips)]


@pytest.mark.parametrize("trips", range(10))
def test_one_load_fills_registers_of_any_number_of_iterations(trips):
    n = nodes.fresh("n")
    body, in_flight = prefetch(n, 2)
    assert values_of(double_buffer_registers(body, in_flight), {n: trips}) == [2 + i for i in range(trips)]


def test_conditional_loads_are_not_prefetched():
    body, in_flight = prefetch(5)
    loop = body.seq[0]
    odd = tirx.EQ(tirx.floormod(loop.loop_var, nodes.int_const(2)), nodes.int_const(1))
    some = nodes.for_loop(loop.loop_var, 5, tirx.IfThenElse(odd, loop.body, None))
    assert values_of(double_buffer_registers(nodes.seq([some, retired(0)]), in_flight)) == [1, 3]


def test_without_a_loop_around_it_an_iteration_fills_its_registers_itself():
    body, in_flight = prefetch(5)
    loop = body.seq[0]
    alone = substitute(loop.body, {loop.loop_var: nodes.int_const(7)})
    (held,) = in_flight
    made = in_flight[held]
    there = replace(made, prefetch=replace(made.prefetch, alone=nodes.store(held, nodes.int_const(7), [0])))
    assert values_of(double_buffer_registers(nodes.seq([alone, retired(0)]), {held: there})) == [7]


def test_the_next_load_stands_before_the_products_it_is_not_for():
    body, in_flight = prefetch(8)
    inner = double_buffer_registers(body, in_flight)
    (loop,) = collect(inner, tirx.For)
    stores = [str(s.buffer.name) for s in collect(loop.body, tirx.BufferStore)]
    assert stores == ["turned"] * GROUP + ["held"] * (GROUP - 1) + ["loaded"] * GROUP + ["held"]
