"""Kernels with explicit threads: shared memory, barriers, private arrays, warps, votes, 4-bit elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field

from hypothesis import strategies as st

from tile_core.records import dataclass
from tile_core.testing.case import Data, Param, Unit, output, tensor
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import patterns, randoms, spelled, themed

_TYPES = ("int32", "int64", "uint32", "int16", "uint8")


@dataclass
class _Sketch:
    """A kernel of explicit threads under construction; ``x`` is the value of a thread."""

    draw: Draw
    shape: tuple[int, ...]
    dtype: str
    blocks: int
    lines: list[str] = field(default_factory=list)
    params: list[Param] = field(default_factory=list)
    data: Data = field(default_factory=dict)
    count: int = 0

    @property
    def n(self) -> int:
        """Threads of a block."""
        return math.prod(self.shape)

    def fresh(self, prefix: str) -> str:
        """Return a new name."""
        self.count += 1
        return f"{prefix}{self.count}"

    def output(self, dtype: str, *shape: int, low: int = 0) -> str:
        """Return a new output that starts with small numbers."""
        name = self.fresh("Q")
        self.params.append(output(name, dtype, *shape))
        self.data[name] = randoms(self.draw, shape, dtype, low)
        return name

    def constant(self, low: int, high: int) -> int:
        """Return a drawn number."""
        return int(self.draw(st.integers(low, high)))


@st.composite
def threads(draw: Draw) -> Unit:
    """Draw a kernel in which threads compute and exchange values."""
    shape = draw(st.sampled_from(((1,), (7,), (31,), (32,), (48,), (64,), (96,), (8, 4), (4, 2, 4))))
    s = _Sketch(draw, shape, draw(st.sampled_from(_TYPES)), draw(st.integers(1, 3)))
    n = s.n
    if len(shape) == 1 and draw(st.booleans()):
        s.lines.append("tx, ty, tz = T.get_thread_bindings()")
    else:
        below = [math.prod(shape[:d]) for d in range(len(shape))]
        s.lines.append("tx = " + " + ".join(f"T.get_thread_binding({d}) * {b}" for d, b in enumerate(below)))
    block = draw(st.sampled_from(("bx", "T.get_block_binding(0)", "T.get_block_bindings()[0]")))
    s.lines += [f"at = {block} * {n} + tx", f"s = T.alloc_shared(({n},), {spelled(draw, s.dtype)})"]
    s.lines.append(f"x = T.alloc_var({spelled(draw, s.dtype)}, init=A[at])")
    size = s.blocks * n - draw(st.integers(0, min(5, n - 1)))
    s.params += [tensor("A", s.dtype, "n"), output("B", s.dtype, s.blocks * n)]
    s.data = {"n": size, "A": patterns(draw, (size,), s.dtype), "B": randoms(draw, (s.blocks * n,), s.dtype)}
    steps = _STEPS + (_shuffle,) * 5 if n % 32 == 0 else _STEPS
    for _ in range(draw(st.integers(1, 4))):
        draw(st.sampled_from(steps))(s)
    s.lines.append("B[at] = x")
    needs = frozenset({"threads", "warps", "atomic:add:int32", "atomic:max:int32"})
    return themed(
        "threads", draw, s.params, "\n".join(s.lines), {"": s.data}, grid=str(s.blocks), threads=shape,
        symbols=("n",), needs=needs,
    )  # fmt: skip


def _exchange(s: _Sketch) -> None:
    """Write shared memory, wait at a barrier, read other threads' values."""
    form = s.draw(st.sampled_from(("x + s[(tx + {c}) % {n}]", "s[{last} - tx]", "s[(tx * {c}) % {n}] - x")))
    read = form.format(c=s.constant(0, s.n), n=s.n, last=s.n - 1)
    s.lines += ["T.sync_threads()", "s[tx] = x", "T.sync_threads()", f"x = {read}"]


def _private(s: _Sketch) -> None:
    """Fill a private array element by element, read it in another order."""
    r, size = s.fresh("r"), s.constant(1, 5)
    loop = s.draw(st.sampled_from(("serial", "serial", "vectorized")))
    value = s.draw(st.sampled_from(("x + k * tx", "x + k * tx", "k * 3", "A[k]")))
    s.lines += [
        f'{r} = T.alloc_local(({size},), "{s.dtype}")',
        f"for k in T.{loop}({size}):",
        f"    {r}[k] = {value}",
    ]
    s.lines += [
        f"for k in T.{s.draw(st.sampled_from(('serial', 'unroll')))}({size}):",
        f"    x = x + {r}[{size - 1} - k] * (k + 1)",
    ]


def _moved(s: _Sketch) -> None:
    """Copy or fill a thread's private array, move it to another one, and use that."""
    a, b, size = s.fresh("r"), s.fresh("r"), s.constant(1, 4)
    s.lines += [f'{name} = T.alloc_local(({size},), "{s.dtype}")' for name in (a, b)]
    first = s.draw(
        st.sampled_from((f"T.copy(A[at], {a})", f"T.fill({a}, tx + 3)", f"T.copy(A[tx : tx + {size}], {a})"))
    )
    s.lines.append(first)
    if s.draw(st.booleans()):
        s.lines.append(f"T.copy({a}, {b})")
    else:
        s.lines += [f"for k in T.serial({size}):", f"    {b}[k] = {a}[k]"]
    s.lines += [f"for k in T.serial({size}):", f"    x = x + {b}[k]"]


def _branch(s: _Sketch) -> None:
    """Threads diverge and reconverge."""
    c = s.constant(0, s.n)
    test = s.draw(st.sampled_from((f"tx < {c}", "tx % 3 == 1", "x > 5", f"tx >= {c} and x < 90", "not (x < 3)")))
    s.lines += [f"if {test}:", "    x = x + tx", "else:", "    x = x - 1"]


def _repeat(s: _Sketch) -> None:
    """A loop in each thread with the trip count of its value."""
    c = s.constant(0, 9)
    s.lines += s.draw(
        st.sampled_from((
            [f"for k in T.serial(tx % {c + 1}):", "    x = x + k"],
            ["k1 = T.alloc_var('int32', init=tx)", f"while k1 > {c}:", "    k1 = k1 // 2", "    x = x + k1"],
            ["for k in T.serial(12):", f"    if k > tx % {c + 2}:", "        break",
             "    if k % 2 == 0:", "        continue", "    x = x + k"],
        ))
    )  # fmt: skip


def _reduced(s: _Sketch) -> None:
    """Combine over the lanes of a warp that exist."""
    s.lines.append(f"x = x + T.warp_reduce_{s.draw(st.sampled_from(('sum', 'max', 'min', 'bitand', 'bitor')))}(x)")


def _voted(s: _Sketch) -> None:
    """Vote in a warp."""
    q = s.output("int32", s.blocks, s.n)
    vote = s.draw(st.sampled_from((
        "T.cast(T.popcount(T.ballot(x > {c})), 'int32')", "T.cast(T.any_sync(x == {c}), 'int32')",
        "T.cast(T.all_sync(x > {c}), 'int32')", "T.cast(T.popcount(T.match_any_sync(x & 3)), 'int32')",
        "T.cast(T.popcount(T.match_all_sync(x >> 3) ^ T.activemask()), 'int32')", "T.syncthreads_count(x > {c})",
        "T.cast(T.syncthreads_or(x == {c}), 'int32')", "T.cast(T.syncthreads_and(x < 9 - {c}), 'int32')",
    )))  # fmt: skip
    s.lines += [f"{q}[bx, tx] = {vote.format(c=s.constant(0, 6))}", "T.sync_warp()"]


def _shuffle(s: _Sketch) -> None:
    """Read numbers of other lanes of a full warp."""
    width = s.draw(st.sampled_from(("", "", ", 16", ", 8", ", width=4")))
    form = s.draw(
        st.sampled_from(("T.shfl_xor(x, {c}", "T.shfl_up(x, {c}", "T.shfl_down(x, {c}", "T.shfl_sync(x, tx + {c}"))
    )
    limit = {"": 31, ", 16": 15, ", 8": 7}.get(width, 3)
    s.lines.append("x = x + " + form.format(c=s.constant(0, limit)) + width + ")")


def _counted(s: _Sketch) -> None:
    """Count and compare atomically, in an order that does not matter."""
    q = s.output("int32", 8)
    index = s.draw(st.sampled_from(("tx % 8", "T.cast(x & 7, 'int32')", "bx")))
    s.lines.append(f"T.atomic_{s.draw(st.sampled_from(('add', 'max', 'min', 'and', 'or', 'xor')))}({q}[{index}], tx)")


def _nibbles(s: _Sketch) -> None:
    """Every thread stores an element of 4 bits: neighbours share a byte."""
    dtype = s.draw(st.sampled_from(("uint4", "int4")))
    q = s.output(dtype, s.blocks, 2 * s.n)
    position = s.draw(st.sampled_from(("tx", f"{s.n - 1} - tx", "tx * 2", "tx * 2 + 1")))
    s.lines.append(f'{q}[bx, {position}] = T.cast(x, "{dtype}")')


def _indices(s: _Sketch) -> None:
    """Use the numbers of lanes and warps."""
    s.lines.append("x = x + T.get_lane_idx() + T.get_warp_idx() * 3")


def _tiles(s: _Sketch) -> None:
    """Do a tile op among the threads."""
    q = s.fresh("u")
    s.lines += [f'{q} = T.alloc_shared(({s.n},), "{s.dtype}")', f"T.copy(A[bx * {s.n}], {q})", "T.sync_threads()"]
    s.lines.append(f"x = x + {q}[{s.n - 1} - tx]")


_STEPS: tuple[Callable[[_Sketch], None], ...] = (
    _exchange, _exchange, _private, _moved, _moved, _branch, _repeat, _reduced, _reduced, _voted, _voted, _counted,
    _nibbles, _indices, _tiles,
)  # fmt: skip
