"""The compile-time state of a program: indices of variables and buffers, and the current location."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tile_core.compat.tvm import ir
from tile_core.compat.types import Array, BufferVar, Operand, Stmt, Var
from tile_core.errors import Where
from tile_core.errors.execution import NoReferenceMeaning
from tile_core.ir import nodes
from tile_core.ir.program import Program
from tile_core.ir.visit import collect
from tile_core.ir.warp import WARP_CALLS
from tile_core.ops.base import View
from tile_core.ops.held_codes import Origins
from tile_core.reference.elements import holder
from tile_core.reference.state import State

__all__ = ["Expression", "CompileScope", "Statement"]

#: The compiled forms of an expression and a statement of the IR.
Expression = Callable[[State], Array]
Statement = Callable[[State], None]
#: Calls that make a kernel one whose body every thread of a block executes.
_THREAD_CALLS = WARP_CALLS | {"thread_index", "lane_index", "warp_index", "sync_threads", "sync_warp"}


class CompileScope:
    """The state of a program while its functions are made.

    Attributes
    ----------
    variables, buffers
        Numbers of variables and buffers.
    symbols
        Numbers of symbolic sizes by name.
    base
        By number of a buffer that of the one whose storage it shows.
    units
        By number of a buffer that has its own storage the bytes of the smallest element that a view has.
    reducers
        Numbers of ``T.alloc_reducer`` buffers, with what combines their partial results.
    spread
        Whether parallel loops are the meaning of a tile op, so that their iterations share a lane's private memory.
    loops
        Whether tile ops are always executed by the loops of their meaning.
    where
        The user's current line.
    reads
        Numbers of the buffers that loads were made for.
    ordered
        Whether atomic accesses order others.
    observed
        Whether statements call an observer.
    ended
        In an observed program: variables and buffers of loops and branches that ended, by kind and number.
    """

    def __init__(
        self, program: Program, loops: bool, compile_statement: Callable[[Stmt, CompileScope], Statement],
        observed: bool = False,
    ) -> None:  # fmt: skip
        self._compile = compile_statement
        self.variables: dict[Var, int] = {}
        self.buffers: dict[BufferVar, int] = {}
        self.base: dict[int, int] = {}
        self.units: dict[int, int] = {}
        self.reducers: dict[int, str] = {}
        self.spread, self.loops, self.observed = False, loops, observed
        self.where: Where | None = program.where
        self.reads: set[int] = set()
        self.ordered = False
        self.threads = uses_threads(program.func.body)
        self.ended: set[tuple[str, int]] = set()
        self._program = program
        self.symbols = {name: self.define(v) for name, v in program.symbols.items()}
        self._reducers = {str(k): str(v["op"]) for k, v in program.reducers.items()}

    def statement(self, s: Stmt) -> Statement:
        """Return the function that executes a statement, a part of the current one."""
        return self._compile(s, self)

    def define(self, var: Var) -> int:
        """Return the number of a variable, new or not."""
        return self.variables.setdefault(var, len(self.variables))

    def variable(self, var: Var) -> int:
        """Return the number of a variable that is defined."""
        number = self.variables.get(var)
        if number is None and str(var.name) in self.symbols:
            # A program that was pickled has its symbols twice.
            number = self.variables[var] = self.symbols[str(var.name)]
        if number is None:
            raise NoReferenceMeaning(what=f"the variable {var.name}", where=self.where)
        return number

    def allocate(self, buffer: BufferVar, base: BufferVar | None = None) -> int:
        """Return the number of a new buffer; ``base`` is the buffer with its storage."""
        number = self.buffers.setdefault(buffer, len(self.buffers))
        root = number if base is None else self.base[self.buffers[base]]
        self.base[number] = root
        size = holder(nodes.element_type(buffer)).itemsize
        self.units[root] = min(self.units.get(root, size), size)
        op = self._reducers.get(str(buffer.name))
        if op is not None:
            self.reducers[number] = op
        return number

    def buffer(self, buffer: BufferVar) -> int:
        """Return the number of a buffer that is defined."""
        return self.buffers[buffer]

    def origins(self, operand: Operand) -> list[tuple[str, int]]:
        """Return the parameters whose elements reach an operand, with their numbers."""
        assert isinstance(operand, View)
        program = self._program
        reaching = set(Origins(program.func.body).sources(operand))
        own = zip(program.func.params, program.params, strict=True)
        return [(p.name, self.buffers[v]) for v, p in own if p.kind == "tensor" and str(v.name) in reaching]

    def sharing(self, numbers: Iterable[int]) -> frozenset[int]:
        """Return the numbers of all buffers that show the storage of one of ``numbers``."""
        roots = {self.base[n] for n in numbers}
        return frozenset(n for n, root in self.base.items() if root in roots)


def uses_threads(body: Stmt) -> bool:
    """Return whether a program names its threads."""
    return any(nodes.is_tile_call(c) and str(c.op.name)[5:] in _THREAD_CALLS for c in collect(body, ir.Call))
