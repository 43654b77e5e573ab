"""Declare every attribute of the IR: its type, the nodes that have it, its stages.

An attribute belongs to a loop, a mark (``AttrStmt``), an allocation, a call or the launch. A pass that needs one
declares it here, in one line; a backend declares its own with the same class in its package and adds them to its list
of passes (``Spine.declare``). ``ir/verify.py`` refuses all others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from tile_core.compat.types import BufferVar, Expr
from tile_core.records import dataclass

T = TypeVar("T")

LOOP, MARK, ALLOCATION, LAUNCH = "a loop", "a mark", "an allocation", "the launch"
#: A fact that a variant reports or a pass asks with; never part of the IR.
FACT = "a fact"
#: Any tile op, any call.
ANY_OP, ANY_CALL = "any op", "any call"
NODE_KINDS = frozenset({LOOP, MARK, ALLOCATION, LAUNCH, FACT, ANY_OP, ANY_CALL})

#: The stages in order; ``ir/grammar.py`` describes them.
STAGE_ORDER = ("program", "selected", "loops", "threads", "kernel", "lowered")


@dataclass(frozen=True)
class Kind(Generic[T]):
    """The type of an attribute's value.

    Attributes
    ----------
    name
        Appears in messages.
    holds
        Whether a value in the IR has the type.
    """

    name: str
    holds: Callable[[Any], bool]

    def one_of(self, *values: T) -> Kind[T]:
        """Return the kind whose values are the given ones."""
        name = " or ".join(map(repr, values))
        return Kind(name, lambda v: self.holds(v) and (getattr(v, "value", v) in values))


class Attribute(str, Generic[T]):
    """An attribute; the object is its key in the IR.

    Parameters
    ----------
    name
        The key.
    kind
        The type of its value; of a mark, of its node.
    on
        Where it may stand: ``LOOP``, ``MARK``, ``ALLOCATION``, ``LAUNCH``, ``ANY_OP``, ``ANY_CALL``, ``FACT``, or names
        of calls.
    since, until
        The first and the last stage that may have it.
    """

    kind: Kind[T]
    on: frozenset[str]
    stages: frozenset[str]

    def __new__(
        cls, name: str, kind: Kind[T], *on: str, since: str = "program", until: str = "lowered"
    ) -> Attribute[T]:
        """Declare an attribute."""
        self = super().__new__(cls, name)
        self.kind = kind
        self.on = frozenset(one for name in on for one in ([name] if name in NODE_KINDS else name.split()))
        self.stages = frozenset(STAGE_ORDER[STAGE_ORDER.index(since) : STAGE_ORDER.index(until) + 1])
        return self


def several(names: str, kind: Kind[T], *on: str, **stages: str) -> list[Attribute[T]]:
    """Declare attributes that differ only in their names."""
    return [Attribute(name, kind, *on, **stages) for name in names.split()]


#: Attributes by their keys; ``Any`` is what TVM returns.
Attrs: TypeAlias = Mapping[Attribute[Any], Any]

AttrDict: TypeAlias = dict[Attribute[Any], Any]


def _is_int(v: Any) -> bool:
    return isinstance(v, int) or type(v).__name__ == "IntImm"


def _is_text(v: Any) -> bool:
    return isinstance(v, str) or type(v).__name__ == "StringImm"


def _is_expr(v: Any) -> bool:
    return hasattr(v, "ty") or isinstance(v, (int, float))


def _all(v: Any, holds: Callable[[Any], bool]) -> bool:
    return (isinstance(v, (list, tuple)) or type(v).__name__ == "Array") and all(map(holds, v))


INT: Kind[int] = Kind("an integer", _is_int)
FLAG: Kind[bool] = Kind("a bool", lambda v: isinstance(v, bool) or (_is_int(v) and int(v) in (0, 1)))
#: An attribute that is present or absent.
PRESENT: Kind[int] = Kind("1", lambda v: _is_int(v) and int(v) == 1)
TEXT: Kind[str] = Kind("text", _is_text)
INTS: Kind[Sequence[int]] = Kind("integers", lambda v: _all(v, _is_int))
TEXTS: Kind[Sequence[str]] = Kind("texts", lambda v: _all(v, _is_text))
EXPRS: Kind[Sequence[Expr]] = Kind("expressions", lambda v: _all(v, _is_expr))
BUFFERS: Kind[Sequence[BufferVar]] = Kind("buffers", lambda v: _all(v, lambda b: type(b).__name__ == "Var"))
MAP: Kind[Mapping[str, Any]] = Kind("a map", lambda v: isinstance(v, Mapping) or type(v).__name__ == "Map")
REDUCER: Kind[Any] = Kind("a reducer", lambda v: type(v).__name__ == "CommReducer")
INT_OR_TEXT: Kind[Any] = Kind("an integer or text", lambda v: _is_int(v) or _is_text(v))
LEVEL: Kind[Any] = Kind("a level of numerics, or several", lambda v: _is_text(v) or _all(v, _is_text))
#: A Python object, of a fact only.
OBJECT: Kind[Any] = Kind("an object", lambda v: False)
#: Name, first thread and count of a role, and the variable that holds a thread's number in it.
THREADS_OF_ROLE: Kind[Sequence[Any]] = Kind(
    "a role", lambda v: len(v) in (3, 4) and _is_text(v[0]) and all(map(_is_int, v[1:3]))
)

_REDUCTIONS = "reduce scan fold fold_scan atomic atomic_tile atomic_fill finalize_reducer group_reduce"
_PRODUCTS = "gemm gemm_sp gemm_scaled"
_MOVES = "copy gather scatter"
_TO_LOOPS, _SELECTED, _THREADS = {"until": "selected"}, {"since": "selected", "until": "loops"}, {"until": "threads"}

# Loops.
#: What a loop is for, see ``ir/grammar.py``.
_ROLES = ("grid", "parallel", "pipelined", "serial", "unroll", "vectorized", "threads")
ROLE = Attribute("tile.role", TEXT.one_of(*_ROLES), LOOP)
#: Of a pipelined loop: the user's number of iterations in flight.
#: Of a loop over blocks of the program, which one block runs one after another: as iterations of the grid's loops they
#: share nothing but global memory, and of that no order.
NUM_STAGES, OVER_BLOCKS = several("tile.num_stages tile.blocks", INT, LOOP)
#: Of the outermost loop over the grid: the threads of a block along x, y and z.
THREADS = Attribute("tile.threads", INTS, LOOP, **_THREADS)
#: Of a loop over the grid: its axis.
AXIS = Attribute("tile.axis", INT, LOOP, **_THREADS)
#: Hints of users that no pass reads: elements of a vector access, a pipelined loop's schedule for each statement.
LOOP_COALESCED_WIDTH = Attribute("tile.coalesced_width", INT, LOOP)
STATEMENT_ORDER, STATEMENT_STAGE = several("tile.order tile.stage", INTS, LOOP)
#: The unroll factor of a loop that is not unrolled as a whole.
#: Of a loop over registers: its iterations are independent and access adjacent elements of the last dimension.
UNROLL_FACTOR, VECTOR = several("tile.unroll_factor tile.vector", INT, LOOP)
#: Of a loop whose slots ``simt/launch/strength_reduction.py`` counts.
RING = Attribute("tile.ring", INT, LOOP, since="loops")
#: Of the outermost loop of a data-parallel nest: its number.
NEST = Attribute("tile.nest", INT, LOOP, **_SELECTED)

# Allocations.
#: Of a program's own barrier: the arrivals that end a phase of each of its objects.
ARRIVALS = Attribute("tile.arrivals", INTS, ALLOCATION)
#: The alignment in bytes, a power of two.
ALIGNMENT = Attribute("tile.align", INT, ALLOCATION)
#: Of a shared buffer that became one-dimensional: its extents before.
SHAPE = Attribute("tile.shape", INTS, ALLOCATION, since="threads")
#: Of a shared buffer: its offset in bytes.
OFFSET = Attribute("tile.offset", INT, ALLOCATION, since="threads")
#: Of scratch memory of an op: another op's in the same bytes would wait until all threads have read it.
APART = Attribute("tile.apart", PRESENT, ALLOCATION, since="loops")
#: Of the registers of a reducer: iterations of one thread update the same element again and again.
UPDATED = Attribute("tile.updated", PRESENT, ALLOCATION, since="threads")

# Marks.
#: The name of the tile op that a statement was lowered from.
OP_MARK = Attribute("tile.op", TEXT, MARK, **_SELECTED)
#: Around a lowered op, by its name: per-thread code that all threads of the block execute.
LOWERED = Attribute("tile.lowered", TEXT, MARK, since="loops", until="loops")
#: Around a statement inside which the block's threads need no barrier; between two of them they may.
STEP = Attribute("tile.step", INT, MARK, since="selected")
#: Around a region that orders the accesses of some shared buffers itself.
MANAGED = Attribute("tile.managed", BUFFERS, MARK)
#: Around parts of a lowered op that operand prefetch may move: the name of the part.
PART = Attribute("tile.part", TEXT.one_of("setup", "first", "last", "middle", "ring"), MARK, since="loops")
#: Around a statement that only the threads of a role execute: its node is name, first thread and count. For
#: work of ``T.ws`` on a target with threads it goes on with the variable that holds a thread's number in the role: such
#: a statement is work that its threads share, while of any other each of its threads executes all.
ONLY = Attribute("tile.only", THREADS_OF_ROLE, MARK)
#: Around a store of a 4-bit element where another thread may store the other half of the byte.
SPLIT = Attribute("tile.split_byte", INT, MARK, since="threads")
#: Around a statement whose accesses are in bounds by a condition tested before; until the pass ``guard``.
GUARDED = Attribute("tile.guarded", TEXT, MARK, **_SELECTED)

# The launch.
#: Blocks of a cluster along x, y and z.
CLUSTER = Attribute("cluster", INTS, LAUNCH)
#: The order of blocks: ``panel`` and ``order`` of ``T.use_swizzle``.
RASTERIZATION = Attribute("swizzle", MAP, LAUNCH)
#: By name of a tensor: the value of reads out of bounds, the share of the L2 cache.
SAFE_VALUES, L2_HIT_RATIO = several("safe_values l2_hit_ratio", MAP, LAUNCH)
#: Names of roles that share the work of loops.
SHARING_ROLES = Attribute("turns", TEXTS, LAUNCH)
#: Conditions of ``T.assume`` on sizes.
ASSUMED = Attribute("assume", EXPRS, LAUNCH)

# Calls of tile ops: arguments of users.
#: The level of a region of numerics (``numerics/regions.py``); of a launch, the levels that occur.
NUMERICS = Attribute("numerics", LEVEL, ANY_CALL, LAUNCH)
#: The required name prefix of one of the target's variants; the variant that is forced.
REQUIRES, VARIANT = several("requires variant", TEXT, ANY_OP, **_TO_LOOPS)
#: The name that the user called, if it differs, and the one that replaces it.
CALLED = Attribute("called", TEXTS, ANY_OP, **_TO_LOOPS)
#: Keywords of other dialects.
HINTS = Attribute("hints", MAP, ANY_OP, **_TO_LOOPS)
#: The operation of a reduction or an atomic.
KIND = Attribute("kind", TEXT, _REDUCTIONS)
#: Dimensions of operands that an op works along.
DIM = Attribute("dim", INT, "reduce scan fold fold_scan sort", **_TO_LOOPS)
DIMS = Attribute("dims", INTS, "topk", **_TO_LOOPS)
SRC_DIMS, DST_DIMS = several("src_dims dst_dims", INTS, "transpose", **_TO_LOOPS)
CLEAR = Attribute("clear", FLAG, "reduce", **_TO_LOOPS)
NAN_PROPAGATE = Attribute("nan_propagate", FLAG, "reduce scan", **_TO_LOOPS)
REVERSE = Attribute("reverse", FLAG, "scan fold_scan", **_TO_LOOPS)
DESCENDING = Attribute("descending", FLAG, "sort", **_TO_LOOPS)
LARGEST = Attribute("largest", FLAG, "topk", **_TO_LOOPS)
#: Of a fold: operands of an iteration; a combination that the user defines, and its inputs.
COUNT = Attribute("count", INT, "fold fold_scan request_registers", **_TO_LOOPS)
FUNCTION = Attribute("function", REDUCER, "fold fold_scan", **_TO_LOOPS)
INPUTS = Attribute("inputs", EXPRS, "fold fold_scan", **_TO_LOOPS)
#: Of a product.
TRANSPOSE_A, TRANSPOSE_B = several("transpose_A transpose_B", FLAG, _PRODUCTS, **_TO_LOOPS)
TRANSPOSE_E = Attribute("transpose_E", FLAG, "gemm_sp", **_TO_LOOPS)
#: By operand.
TRANSPOSED = {"A": TRANSPOSE_A, "E": TRANSPOSE_E, "B": TRANSPOSE_B}
TYPES = Attribute("types", TEXTS, _PRODUCTS, **_TO_LOOPS)
POLICY, K_PACK, WG_WAIT = several("policy k_pack wg_wait", INT, _PRODUCTS, **_TO_LOOPS)
#: Elements of a group of 2:4 sparsity; elements of K that share a scale.
GROUP = Attribute("group", INT, "gemm_sp", **_TO_LOOPS)
BLOCK = Attribute("block", INT, "gemm_scaled", **_TO_LOOPS)
#: Memory order of an atomic; elements of a vector that it adds.
ORDER = Attribute("order", TEXT, "atomic atomic_tile atomic_fill atomic_load atomic_store", **_TO_LOOPS)
VECTOR_WIDTH = Attribute("vector", INT, "atomic_tile", **_TO_LOOPS)
#: Of a copy: elements of a vector access, a hint; the type that values are rounded to.
COALESCED_WIDTH = Attribute("coalesced_width", INT, "copy", **_TO_LOOPS)
ROUND = Attribute("round", TEXT, "copy", **_TO_LOOPS)
#: Of ``c2d_im2col``.
KERNEL, STRIDE, DILATION, PAD = several("kernel stride dilation pad", INT, "c2d_im2col", **_TO_LOOPS)
#: Of a scatter whose rows are all different.
DISTINCT = Attribute("distinct", PRESENT, "gather scatter", **_TO_LOOPS)
#: Of a request for registers: whether these are more than the role had.
MORE = Attribute("more", FLAG, "request_registers", **_TO_LOOPS)
#: Of debug output: a format string; the text of an error.
FORMAT = Attribute("format", TEXT, "print")
MESSAGE = Attribute("message", TEXT, "device_assert")
#: Of both: the format of the statement's location, and how many of its operands are the values of that.
AT = Attribute("at", TEXT, "print device_assert")
LOCATED = Attribute("located", INT, "print device_assert")

# Calls of tile ops: decisions of passes.
#: The number of a selected call in ``Selected.selections``.
ID = Attribute("tile.id", INT, ANY_OP, since="selected", until="selected")
#: Of a copy that may complete later: 1, or the target's kind of it. The wait is for its group, or for the phase of its
#: third operand.
ASYNC = Attribute("async", INT_OR_TEXT, _MOVES, **_TO_LOOPS)
#: Of a product, whose last operand is a barrier that its completion arrives at.
#: Of an asynchronous product that is the only one in flight on its accumulator.
#: Of an asynchronous product that one thread issues for others, in a role of that thread.
#: Of an asynchronous product: its wait is in the same list of statements.
COMPLETES, SETTLED, ISSUED, ENDED = several("completes settled issued ended", PRESENT, _PRODUCTS, **_TO_LOOPS)
#: Of a product that a later op ``wait_uses`` completes; and of such an op, if the compiler inserted it.
IN_FLIGHT = Attribute("lasts", PRESENT, f"{_PRODUCTS} wait_uses", **_TO_LOOPS)
#: Of a wait for products: how many of a thread's products may still be in flight behind it.
PENDING = Attribute("pending", INT, "wait_uses", **_TO_LOOPS)
#: Of a copy or a load: the number of its epilogue subtile.
SUBTILE = Attribute("later", INT, "copy", **_TO_LOOPS)
#: Of a multicast copy: blocks along x, y and z of a cluster, followed by a mask of ranks for each set of
#: blocks that load the same tile. Each block issues an equal part of the tile, for all blocks of its set.
MULTICAST = Attribute("together", INTS, _MOVES, **_TO_LOOPS)
#: Of a product of a pair of blocks: blocks along x, y and z of a cluster. Each block has half of the columns
#: of B in shared memory, and the product reads both halves.
HALVES = Attribute("halves", INTS, _PRODUCTS, **_TO_LOOPS)
#: Of a copy that fills the same tile in several blocks of a cluster: a mask of their ranks, in how many shares they
#: issue it (1: the first of them issues all of it), and the blocks of a cluster along x, y and z.
RANKS = Attribute("blocks", INTS, f"{_MOVES} copy_to_block", **_TO_LOOPS)
#: Of a product whose parts are exchanged: the transposed C is B transposed times A transposed.
EXCHANGED = Attribute("exchanged", PRESENT, FACT)

# Calls of one thread, see ``ir/calls.py``.
ACCESS = Attribute("access", TEXT.one_of("r", "w", "rw", "a"), "address")
PROXY, UNTIL = several("proxy until", TEXT, "address")
BOX = Attribute("box", INTS, "address")
ALIGN = Attribute("align", INT, "address descriptor", FACT)
BETWEEN_BLOCKS, WORDS = several("between_blocks words", PRESENT, "address")
#: The bytes that each thread accesses there.
CHUNK = Attribute("chunk", INT, "address")
#: The helper function of an instruction; the name of accesses that it waits for.
NAME, WAITS = several("name waits", TEXT, "instruction")
BYTES = Attribute("bytes", INT, "move descriptor")
#: A tensor descriptor of a launch, as text.
DESCRIPTOR = Attribute("descriptor", TEXT, "descriptor", since="loops")
#: Of a shuffle: how lanes are chosen, and among how many; of a vote: what of all conditions.
MODE = Attribute("mode", TEXT, "shuffle vote", since="loops")
WIDTH = Attribute("width", INT, "shuffle", since="loops")
#: Of a barrier, see ``sync_threads``; of an arrival at the barrier of the cluster, see ``cluster_arrive``.
AFTER_READS = Attribute("after_reads", PRESENT, "sync_threads")
MEETS, RELAXED = several("meets relaxed", PRESENT, "cluster_arrive")

# Facts.
#: Of an accepted copy, its completion mechanism: ``pipelining.plan.GROUP`` (by default), ``TRANSACTIONS``,
#: ``IMMEDIATE``, or, if all copies of a loop can go through registers (``staging.py``), ``REGISTERS``.
COMPLETION = Attribute("completion", TEXT, FACT)
#: Of an accepted copy: the layout that it needs of its buffer; ``ALIGN`` is the alignment of its slots in bytes.
#: Of the copy passed to ``can_copy``: the layout annotation of its buffer, if any.
#: Of metadata in the reference: where each element comes from.
LAYOUT, ASKED_LAYOUT, ORIGINS = several("layout asked_layout origins", OBJECT, FACT)
#: Of an accepted overlap: threads of each ping-pong group, see `OverlapPlan`.
PING_PONG = Attribute("turn", INT, FACT)

#: Every attribute of the core, by its key.
ATTRIBUTES: Mapping[str, Attribute[Any]] = {str(a): a for a in list(globals().values()) if isinstance(a, Attribute)}
