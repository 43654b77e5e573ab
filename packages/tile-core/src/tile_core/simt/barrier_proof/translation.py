"""Translate an emitted kernel to a Python function that executes its barriers.

The function is a generator that one agent executes, warps that behave equally: it yields where the agent has to wait.
Registers and arithmetic are left out unless a barrier depends on them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from math import lcm
from typing import Any

from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Call, Expr, Node, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, calls, nodes
from tile_core.records import dataclass
from tile_core.simt.barrier_proof.access_lines import AccessLines
from tile_core.simt.barrier_proof.accesses import (
    Address,
    AsyncAccesses,
    address_of,
    addresses_of,
    async_accesses,
)
from tile_core.simt.barrier_proof.expressions import EmittedValue, Expressions, Untranslated, in_threads
from tile_core.simt.barrier_proof.instructions import AsyncInstructions
from tile_core.simt.barrier_proof.lines import (
    EmittedLine,
    Level,
    distinct_lines,
    inner_counts,
    kept_lines,
    level_of,
    needed,
    prepares,
    rendered,
)

#: Longer loops may leave out whole periods between their first and last iterations.
_LONG = 8


@dataclass(frozen=True)
class Translated:
    """A kernel as a function.

    Attributes
    ----------
    text
        Of the generator function ``program(x, tid, ...)``.
    barriers
        Name and number of objects of each barrier.
    symbols
        Parameters of the function after ``x`` and ``tid``: those of the kernel, and ``block0`` to ``block2``.
    splits
        For each loop over lanes of a warp, the condition on threads that enter it and the values that differ.
    classes, roles
        Values that decide which warps behave differently, and which of these have a program of their own.
    extents
        Trip counts that depend on symbols, as texts.
    copied, rings
        Destinations of copies that barriers count; buffers of pipelined loops.
    aliases
        Buffers that share bytes with others.
    """

    text: str
    barriers: tuple[tuple[str, int], ...]
    symbols: tuple[str, ...]
    splits: tuple[tuple[str, tuple[str, ...]], ...]
    classes: tuple[str, ...]
    roles: tuple[str, ...]
    extents: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    rings: tuple[str, ...] = ()
    aliases: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Translation:
    """Translates one kernel.

    Parameters
    ----------
    uses
        Its asynchronous accesses.
    threads
        Of a block.
    """

    def __init__(self, uses: AsyncAccesses, instructions: AsyncInstructions, threads: int) -> None:
        self.uses, self.instructions, self.threads = uses, instructions, threads
        self.expressions = Expressions(instructions, self.symbol)
        self.memory = AccessLines(uses, instructions, self.value)
        self.barriers = {b: n for n, b in enumerate(uses.barriers)}
        self.names: dict[str, int] = {}
        # Addresses of allocations are not known: each begins where no other one has columns.
        self.expressions.values |= {key: EmittedValue(str(n << 10)) for n, key in enumerate(uses.tensor)}
        self.symbols: list[str] = []
        self.unknown: set[str] = set()
        self.cells: set[str] = set()
        self.splits: list[tuple[str, tuple[str, ...]]] = []
        self.classes: set[str] = set()
        self.roles: set[str] = set()
        self.extents: list[EmittedValue] = []
        #: Values that differ in the lanes of a warp, in effects of the innermost loop over lanes.
        self.lanes: set[str] | None = None
        self.varies: dict[str, bool] = {}

    def translated(self, body: Stmt) -> Translated:
        """Translate a body.

        Raises
        ------
        Untranslated
            If it has barriers that cannot be followed.
        """
        lines = self.stmt(body)
        used = needed(lines)
        if used & self.unknown:
            raise Untranslated(f"the value of {min(used & self.unknown)} is not known")
        period = lcm(*(x.period for x in kept_lines(lines, used)))
        symbols = tuple(x for x in self.symbols if x in used)
        head = f"def program(x, tid, {', '.join((*symbols, 'data'))}):"
        text = "\n".join([head, "  yield", f"  period = {period}", *rendered(lines, used)])
        barriers = tuple(self.uses.barriers.values())
        extents = dict.fromkeys(v.text for v in self.extents if v.uses and v.uses <= set(symbols))
        classes, roles = tuple(sorted(self.classes)), tuple(sorted(self.roles))
        facts = (text, barriers, symbols, tuple(self.splits), classes, roles, tuple(extents))
        rings = tuple(name for name, _ in self.uses.rings.values())
        return Translated(*facts, tuple(self.uses.names), rings, tuple(self.uses.aliases().items()))

    # Names

    def fresh(self, name: str) -> str:
        """Return a new variable of the function."""
        plain = "".join(c if c.isalnum() else "_" for c in name)
        self.names[f"{plain}_{len(self.names)}"] = 0
        return next(reversed(self.names))

    def symbol(self, var: Node) -> str:
        """Name a variable that no statement binds: a parameter, or the index of a block."""
        name = "".join(c if c.isalnum() else "_" for c in f"s_{var.name}")
        if name not in self.symbols:
            self.symbols.append(name)
        return name

    def value(self, e: Expr) -> EmittedValue:
        """Translate an expression."""
        found = self.expressions.value(e)
        for name in found.uses:
            if name.startswith("block") and name not in self.symbols:
                self.symbols.append(name)
        return found

    # Statements

    def stmt(self, s: Stmt) -> list[EmittedLine]:
        """Translate a statement."""
        kind = type(s)
        if kind is tirx.SeqStmt:
            return distinct_lines([line for x in structural.items(s.seq) for line in self.stmt(x)])
        if kind is tirx.AttrStmt:
            return self.stmt(s.body)
        if kind is tirx.Bind:
            return self.bind(s)
        if kind is tirx.Evaluate:
            return self.call(s, s.value) if type(s.value) is ir.Call else []
        if kind is tirx.For:
            return self.loop(s)
        if kind is tirx.IfThenElse:
            return self.branch(s)
        if kind is tirx.AllocBuffer:
            self.alloc(s)
            return []
        if kind is tirx.BufferStore:
            return [*self.memory.accesses(s), *self.assign(s)]
        if kind is tirx.While:
            body = self.stmt(s.body)
            if level_of(body) > Level.PLAIN:
                raise Untranslated("a loop that ends on a condition")
            self.forget(body)
            return []
        return []

    def bind(self, s: Stmt) -> list[EmittedLine]:
        """Translate the binding of a variable, or write its value out at its uses."""
        lines, values = self.memory.accesses(s), self.expressions.values
        try:
            value = self.value(s.value)
        except Untranslated as e:
            values[structural.identity(s.var)] = str(e)
            return lines
        written_out = value.uses <= set(self.symbols) or (value.atoms and not value.uses & self.cells)
        if value.of_thread or written_out:
            values[structural.identity(s.var)] = value
            return lines
        name = self.fresh(str(s.var.name))
        values[structural.identity(s.var)] = value._replace(text=name, uses=frozenset({name}), period=1)
        return [*lines, EmittedLine(f"{name} = {value.text}", value.uses, name, period=value.period)]

    def alloc(self, s: Stmt) -> None:
        """Note the shape of a buffer, or the name of a variable."""
        buffer = s.buffer
        key = structural.identity(buffer)
        if self.uses.has(key):
            shape = structural.entry(s.annotations, attributes.SHAPE)
            given = buffer.shape if shape is None else shape
            self.memory.shapes[key] = [int(nodes.as_int(n)) for n in given]
        elif nodes.shape_of(buffer) == [1] and nodes.scope_of(buffer).startswith("local"):
            name = self.fresh(str(buffer.name))
            self.cells.add(name)
            self.expressions.values[key] = EmittedValue(name, frozenset({name}))

    def assign(self, s: Stmt) -> list[EmittedLine]:
        """Translate an assignment to a variable of the thread."""
        cell = self.expressions.values.get(structural.identity(s.buffer))
        if not isinstance(cell, EmittedValue):
            return []
        try:
            value = self.value(s.value)
        except Untranslated:
            self.unknown.add(cell.text)
            return []
        # A parity that flips, or a counter that wraps at one of its constants.
        wraps = [int(x.value) for x in structural.collect(s.value, tirx.IntImm) if int(x.value) > 0]
        period = lcm(2, *wraps) if cell.text in value.uses and value.period == 1 else value.period
        return [EmittedLine(f"{cell.text} = {value.text}", value.uses, cell.text, period=period)]

    def forget(self, lines: Sequence[EmittedLine]) -> None:
        """Note that variables which some lines assign have unknown values."""
        for line in lines:
            self.unknown.update({line.defines} & self.cells)
            self.forget([*line.body, *line.other])

    def loop(self, s: Stmt) -> list[EmittedLine]:
        """Translate a loop: of accesses alone, its first iteration."""
        name = self.fresh(str(s.loop_var.name))
        self.expressions.values[structural.identity(s.loop_var)] = EmittedValue(name, frozenset({name}))
        body = self.stmt(s.body)
        if not body:
            return []
        level = level_of(body)
        if all(x.text.startswith(("x.register(", "x.operand(")) for x in body):
            return list({x.text: x for x in body}.values())
        try:
            first, count = self.value(s.min), self.value(s.extent)
        except Untranslated:
            if level > Level.SOFT or prepares(body):
                raise
            self.forget(body)
            return []
        if s.step is not None and nodes.as_int(s.step) != 1:
            raise Untranslated("a loop with a step")
        if level == Level.SOFT and not prepares(body):
            if count.text.isdigit() and count.text != "0":
                return [EmittedLine(f"{name} = {first.text}", first.uses, name), *body]
            header = f"for {name} in range({first.text}, {first.text} + min(1, {count.text})):"
        elif count.text.isdigit() and int(count.text) <= _LONG:
            header = f"for {name} in range({first.text}, {first.text} + {count.text}):"
        else:
            inner = inner_counts(body)
            around = "1" if inner else "period // 2 + 1"
            # Iterations are numbered over all executions of an inner loop.
            period = f"period // gcd(period, {inner.pop()})" if len(inner) == 1 and "" not in inner else "period"
            header = f"for {name} in trips({first.text}, {count.text}, {period}, {around}):"
        if level > Level.SOFT:
            self.classes |= count.atoms | first.atoms
            self.extents.append(count)
        of = count.text if count.text.isdigit() else ""
        return [
            EmittedLine(header, first.uses | count.uses, body=body, period=lcm(first.period, count.period), count=of)
        ]

    def branch(self, s: Stmt) -> list[EmittedLine]:
        """Translate a condition, within a loop over lanes if these differ."""
        outer, lanes = self.lanes, set[str]()
        try:
            condition: EmittedValue | None = self.value(s.condition)
        except Untranslated as e:
            condition, reason = None, e
        divides = condition is not None and outer is None and any(map(self.divides, condition.atoms))
        if divides:
            self.lanes = lanes
        body = self.stmt(s.then_case)
        other = self.stmt(s.else_case) if s.else_case is not None else []
        self.lanes = outer
        level = level_of([*body, *other])
        if condition is None:
            if level > Level.SOFT:
                raise reason
            self.forget([*body, *other])
            return [x for x in (*body, *other) if self.uses.rings]
        if not body and not other:
            return []
        text = condition.text if body else f"not ({condition.text})"
        parts = (body, other) if body else (other, [])
        line = EmittedLine(f"if {text}:", condition.uses, body=parts[0], other=parts[1], period=condition.period)
        if level < Level.ORDER:
            return self.taken_by_some(line, condition) if level == Level.SOFT else [line]
        self.classes |= condition.atoms
        self.roles |= condition.atoms if level == Level.WAITS else set()
        if outer is not None:
            outer |= condition.atoms
        if not divides:
            return [line]
        entered = condition.text if condition.of_thread and not other else "True"
        return [self.split(entered, condition.atoms | lanes, [line])]

    def taken_by_some(self, line: EmittedLine, condition: EmittedValue) -> list[EmittedLine]:
        """Return branches of accesses that an agent takes if one of its threads does."""
        if not condition.atoms:
            return [line]
        self.splits.append(("True", tuple(sorted(condition.atoms))))
        head = line.text.removeprefix("if ").removesuffix(":")
        among = f"[({head}) for tid in x.threads({len(self.splits) - 1})]"
        taken = replace(line, text=f"if any({among}):", other=[])
        left = replace(line, text=f"if not all({among}):", body=line.other, other=[])
        return [taken, left] if line.other else [taken]

    def split(self, entered: str, atoms: frozenset[str] | set[str], body: list[EmittedLine]) -> EmittedLine:
        """Return a loop over lanes with different values."""
        self.splits.append((entered, tuple(sorted(atoms))))
        lanes = EmittedLine(f"for tid in x.lanes({len(self.splits) - 1}):", body=body)
        return EmittedLine("if True:", body=[lanes, EmittedLine("tid = x.thread", level=Level.SOFT)])

    def divides(self, atom: str) -> bool:
        """Whether a value differs in the lanes of a warp."""
        if atom not in self.varies:
            values = in_threads(atom, self.threads)
            self.varies[atom] = any(len(set(values[i : i + 32])) > 1 for i in range(0, len(values), 32))
        return self.varies[atom]

    # Calls

    def call(self, s: Stmt, call: Call) -> list[EmittedLine]:
        """Translate a call that is a statement."""
        name = structural.op_name(call)
        args = structural.items(call.args)
        if name == "tile.barrier_init":
            return [self.effect(Level.SOFT, "init", *self.target(address_of(args[0])), self.value(args[1]))]
        if name == "tile.barrier_drop":
            return [self.effect(Level.SOFT, "drop", *self.target(address_of(args[0])))]
        if name == "tile.in_flight":
            return []
        if name == "tile.fence_init":
            return [EmittedLine("x.init_fence()", level=Level.SOFT)]
        if name == "tile.barrier_wait":
            return [self.wait(*self.target(address_of(args[0])), self.value(args[1]))]
        if name in ("tile.barrier_arrive", "tile.barrier_expect", "tile.barrier_announce", "tile.barrier_complete"):
            method = name.removeprefix("tile.barrier_")
            return [self.effect(Level.ORDER, method, *self.target(address_of(args[0])), *map(self.value, args[1:]))]
        if name == "tile.sync_threads":
            return [self.sync(0, self.threads)]
        if name == "tile.sync_part":
            return [self.sync(*(int(nodes.as_int(x)) for x in args))]
        if name == "tile.async_commit":
            return [EmittedLine(f"x.commit({calls.UNTIL_GROUP!r})", level=Level.WAITS)]
        if name == "tile.async_wait":
            return [EmittedLine(f"x.settle({calls.UNTIL_GROUP!r}, {int(nodes.as_int(args[0]))})", level=Level.WAITS)]
        if name == "tile.sync_warp":
            return [EmittedLine("x.converge()", level=Level.SOFT)]
        if name == "tile.cluster_arrive":
            relaxed = attributes.RELAXED in call.attrs
            return [EmittedLine(f"x.cluster_arrive({relaxed})", level=Level.WAITS)]
        if name == "tile.cluster_wait":
            return [EmittedLine("while not x.cluster_wait(): yield", level=Level.WAITS)]
        if name == "tile.fence_proxy":
            return [EmittedLine("x.fence()", level=Level.SOFT)]
        if name == "tile.store_commit":
            return [EmittedLine(f"x.commit({calls.UNTIL_READ!r})", level=Level.SOFT)]
        if name == "tile.store_wait":
            return [EmittedLine(f"x.settle({calls.UNTIL_READ!r}, 0)", level=Level.SOFT)]
        if name == "tile.move":
            to, source = args
            return [
                *self.memory.plain("write", to.source, to.indices),
                *self.memory.plain("read", source.source, source.indices),
            ]
        if name == "tile.instruction":
            return self.instruction(s, call, args)
        return self.memory.accesses(s)

    def instruction(self, s: Stmt, call: Call, args: list[Any]) -> list[EmittedLine]:
        """Translate an instruction."""
        known, name = self.instructions, str(call.attrs[attributes.NAME])
        if name in known.commits:
            return [EmittedLine(f"x.commit({known.commits[name]!r})", level=Level.WAITS)]
        if name in known.waits:
            until, pending = known.waits[name]
            return [EmittedLine(f"x.settle({until!r}, {pending})", level=Level.WAITS)]
        if name in known.register_fences:
            return [EmittedLine("x.register_fence()", level=Level.SOFT)]
        if known.tensor_allocates.get(name):
            return [EmittedLine("x.allocate_tensor()", level=Level.SOFT)]
        if name in known.tensor_frees:
            return [EmittedLine(f"x.free_tensor({known.tensor_frees[name]})", level=Level.SOFT)]
        given = addresses_of(call)
        barrier = next((a for a in given if a.key in self.barriers), None)
        if barrier is None:
            return self.memory.instruction(s, call, given)
        target = self.target(barrier)
        if name in known.completes:
            return [self.effect(Level.ORDER, "complete", *target, *map(self.value, args[1:]))]
        if name in known.arrives:
            return [self.effect(Level.ORDER, "arrive", *target, *map(self.value, args[1:]))]
        if name in known.phase_waits:
            return [self.wait(*target, self.value(args[1]))]
        to = [a for a in given if a.until == calls.UNTIL_PHASE and a.access == "w"]
        if len(to) != 1:
            raise Untranslated(f"the instruction {name}")
        count = known.size(call) * 8 // DTYPES[nodes.element_type(to[0].buffer)].bits
        mask = [self.value(args[-1])] if name in known.multicasts else []
        buffer = EmittedValue(repr(str(to[0].buffer.name)))
        facts = [EmittedValue(str(known.size(call))), buffer, self.value(to[0].index), EmittedValue(str(count))]
        return [self.effect(Level.ORDER, "copy", *target, *facts, *mask)]

    def target(self, at: Address) -> tuple[EmittedValue, EmittedValue]:
        """Return the number of a barrier and the index of its object."""
        if at.key not in self.barriers:
            raise Untranslated(f"{at.buffer.name} is not initialized as a barrier")
        return EmittedValue(str(self.barriers[at.key])), self.value(at.index)

    def effect(self, level: Level, method: str, *args: EmittedValue) -> EmittedLine:
        """Return a call of an agent's method, for each lane if arguments differ."""
        texts = ", ".join(v.text for v in args)
        uses = frozenset[str]().union(*(v.uses for v in args))
        line = EmittedLine(f"x.{method}({texts})", uses, level=level, period=lcm(*(v.period for v in args)))
        if level < Level.ORDER:
            return line
        # The first element of a copy decides nothing.
        atoms = frozenset[str]().union(*(v.atoms for v in (args[:3] if method == "copy" else args)))
        self.classes |= atoms
        apart = {a for a in atoms if self.divides(a)}
        if self.lanes is not None:
            self.lanes |= apart
        return self.split("True", apart, [line]) if apart and self.lanes is None else line

    def wait(self, barrier: EmittedValue, index: EmittedValue, parity: EmittedValue) -> EmittedLine:
        """Return a wait for a phase."""
        self.classes |= index.atoms | parity.atoms
        text = f"while not x.wait({barrier.text}, {index.text}, {parity.text}): yield"
        return EmittedLine(text, index.uses | parity.uses, level=Level.WAITS, period=lcm(index.period, parity.period))

    def sync(self, number: int, threads: int) -> EmittedLine:
        """Return a barrier of threads."""
        return EmittedLine(f"while not x.sync({number}, {threads}): yield", level=Level.WAITS)


def translate(
    body: Stmt, instructions: AsyncInstructions, threads: int, rings: Collection[str] = ()
) -> Translated | None:
    """Translate a kernel; ``None`` if it has no barriers with phases, groups or slots.

    Parameters
    ----------
    rings
        Names of the buffers with one slot for each stage of a pipelined loop.

    Raises
    ------
    Untranslated
        If it has barriers that cannot be followed.
    """
    uses = async_accesses(body, instructions, rings)
    if not uses.barriers and not uses.groups and not uses.rings:
        return None
    return Translation(uses, instructions, threads).translated(body)
