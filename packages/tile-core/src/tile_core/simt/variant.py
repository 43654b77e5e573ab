"""The interface of a lowering variant of a target with threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.ir import nodes
from tile_core.layout.fragment import FragmentLayout
from tile_core.lowering.variant import Variant
from tile_core.ops.base import OpCall
from tile_core.records import dataclass
from tile_core.simt.role import Role

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.layout import LayoutMap


@dataclass(frozen=True)
class Block:
    """The threads of a block.

    Attributes
    ----------
    extents
        Threads along x, y and z.
    thread
        The variable that holds a thread's index in the block, x fastest.
    first
        The index of its first thread: 0, but for a part of a block.
    begins
        The index in the launch's block of the thread whose index here is 0: not 0 in a role.
    """

    extents: tuple[int, int, int]
    thread: Any
    first: int = 0
    begins: int = 0

    @property
    def count(self) -> int:
        """Threads of the block."""
        return self.extents[0] * self.extents[1] * self.extents[2]

    @property
    def role(self) -> Role:
        """Its threads."""
        return Role("the block", self.first, self.count)

    @property
    def number(self) -> Any:
        """A thread's number among these threads, an expression."""
        return self.thread - nodes.int_const(self.first) if self.first else self.thread

    def part(self, role: Role) -> Block:
        """Return the threads of a role, as a block of one dimension."""
        return Block((role.count, 1, 1), self.thread, self.first + role.first, self.begins)


@dataclass(frozen=True)
class RegisterPrefetch:
    """Register fills that share one prefetching load over several iterations.

    Statements use the loop's variable. They bind all other values they need, since ``load`` is also executed before the
    loop.

    Attributes
    ----------
    iterations
        Iterations that one load serves, at least two.
    iteration
        The variable of an iteration's number among them. Statements bind it to 0 where nothing is prefetched.
    load
        Loads memory, which the program does not write, for the iterations from the current one on.
    fill
        Fills the registers of all these iterations but the last one from the loaded values, which may then be replaced.
    last
        Fills the registers of the last iteration from values kept by ``fill``. The preceding iteration may still read
        these registers.
    alone
        Fills the registers of the first iteration only, without a prefetch.
    arrays
        Further registers that ``load`` and ``fill`` write.
    """

    iterations: int
    iteration: Var
    load: Stmt
    fill: Stmt
    last: Stmt
    alone: Stmt
    arrays: tuple[BufferVar, ...] = ()


@dataclass(frozen=True)
class InFlight:
    """Registers that instructions read until they are waited for by another statement.

    Attributes
    ----------
    reads
        Statements that read them after that wait.
    first
        A value for these registers if nothing was issued.
    beyond
        Whether that wait is in the next iteration or after the loop; otherwise it is in the same list of statements.
    prefetch
        The load that fills them for several iterations; ``reads`` then are those of one iteration. By default each
        iteration fills them itself.
    """

    reads: tuple[Stmt, ...]
    first: Expr
    beyond: bool = True
    prefetch: RegisterPrefetch | None = None


@dataclass
class Placement:
    """The placement of the block's tiles, as far as it is decided.

    Attributes
    ----------
    fragments
        Layouts of fragments in registers, by buffer.
    arrays
        The register array (scope ``local``, one dimension) of such a fragment, by buffer; known before lowering.
    layouts
        Layouts of shared buffers, by buffer, over the buffer's whole shape; row-major if there is none.
    safe_values
        The value of out-of-bounds reads, by buffer; zero if there is none.
    in_flight
        Arrays of registers in flight (``pipelining/register_buffering.py``): variants add theirs when lowered.
    """

    fragments: Mapping[BufferVar, FragmentLayout] = field(default_factory=dict)
    arrays: Mapping[BufferVar, BufferVar] = field(default_factory=dict)
    layouts: Mapping[BufferVar, LayoutMap] = field(default_factory=dict)
    reducers: Mapping[BufferVar, str] = field(default_factory=dict)
    safe_values: Mapping[BufferVar, Expr] = field(default_factory=dict)
    in_flight: dict[BufferVar, InFlight] = field(default_factory=dict)


@dataclass(frozen=True)
class SimtCall(OpCall):
    """A tile op on a block of threads.

    Attributes
    ----------
    block
        The threads that execute it.
    placement
        The placement of its operands: empty in ``accepts``, what is decided so far in ``layouts``, complete in
        ``lower``. A fragment without a layout lives in shared memory and has scope ``shared``.
    divergent
        Whether the op is in a data-parallel loop or in thread code: one thread then executes it for itself.
    ranges
        In ``lower``, an analyzer with the ranges and divisors of the variables around the op.
    """

    block: Block = field(default_factory=lambda: Block((1, 1, 1), None))
    placement: Placement = field(default_factory=Placement)
    divergent: bool = False
    ranges: Analyzer = field(default_factory=Analyzer)

    @classmethod
    def on(cls, call: OpCall, threads: int) -> SimtCall:
        """Return a call as one of a block of threads, before its operands are placed."""
        found: SimtCall | None = call.decided.get((cls, threads))
        if found is None:
            block = Block((threads, 1, 1), nodes.fresh("tid"))
            found = cls(call.name, call.args, call.attrs, call.where, call.span, block=block)
            call.decided[cls, threads] = found
        return found


class SimtVariant(Variant):
    """A variant whose ``lower`` returns per-thread code.

    The statement is executed by all threads of the block. Registers of fragments are ``call.placement.arrays``; shared
    and global buffers are accessed by their logical indices; layouts are applied afterwards. Parts between which
    threads depend on each other are marked with ``ir.calls.step``: barriers are inserted between steps. Fragments
    without a layout are shared buffers, so every operand that may be a fragment may be shared too.

    A variant of a target with threads that is *not* a ``SimtVariant`` is lowered when it is selected: it returns loops
    of role ``parallel`` on the tiles as the program names them, which are then distributed like the user's.

    Attributes
    ----------
    in_thread_code
        The op is performed by a single thread, or is a nest of such (atomics). ``lower`` then returns statements on the
        tiles by their logical indices, ``parallel`` loops without numbers included, for the caller to distribute.
    of_pairs
        The variant supports products of a pair of blocks (``pipelining.multicast.HALVES``).
    takes_parts
        ``lower`` finds the registers of a part of a fragment, which may then stay in registers.
    """

    in_thread_code: bool = False
    of_pairs: bool = False
    takes_parts: bool = False

    def lower_value(self, call: SimtCall, ctx: Context) -> tuple[Stmt, Expr]:
        """Return (statement or ``None``, expression) for an op with a bound result.

        An atomic operation is an example.
        """
        raise NotImplementedError("it has no lower_value, but the program takes the result")

    def layouts(self, call: SimtCall, ctx: Context) -> Mapping[int, LayoutMap]:
        """Return the layouts that operands must have (fragments) or should have (shared buffers), by position.

        Inference calls this again whenever the placement of an operand of the call is decided; the result may depend on
        that, and be empty at first. A fragment for which two ops require different layouts, or an op requires a memory
        layout, is moved to shared memory, and inference restarts.
        """
        return {}
