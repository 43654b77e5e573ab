"""The block product of narrow elements by instructions that multiply tiles.

A is packed into tiles of 16 rows, unless it is a scratch tile with short rows, B into strips of 32 columns. Four tiles
of accumulators then add up all words of both. The registers belong to a thread: they are configured for each product
and released after it.

Totals of floats begin at zero and are added to C by vector code, since the instructions flush a subnormal C. Strips
with so small elements that an instruction might flush a product are multiplied in float32, as in ``micro_dots``.
"""

from __future__ import annotations

from collections.abc import Callable

from tile_core.compat.tvm import ir, tirx, tvm
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.cpu.dots import TILES, tiles_of
from tile_core.cpu.isa import Isa
from tile_core.cpu.micro_dots import is_safe
from tile_core.cpu.micro_gemm import in_order, multiply_add
from tile_core.cpu.packing import BLOCK, bfloat16_codes, block_transpose, registers
from tile_core.cpu.row_dots import Call
from tile_core.cpu.share_packing import packing
from tile_core.cpu.tile2d import Tile2D, bits_of, cast, loop, plus, ramp, sequence, splat, times, zero
from tile_core.cpu.tile_panels import SIDE, WIDTH, index_of, pack_columns, pack_tiles, parts_of, tiles_over
from tile_core.cpu.words import join_words, least_magnitude, load_words, panel
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.records import dataclass

__all__ = ["micro_tiles", "tile_depth", "tile_features"]

#: Words of k that are multiplied at a time: a strip of B, and rows of A beside it, stay in the first-level cache. Few
#: rows use B once: there, long runs of memory matter.
_DEPTH, _LONG_DEPTH, _FEW = 128, 512, 64
#: The first registers of A and of B, after four of accumulators.
_LEFT, _RIGHT = 4, 6
#: Rows that are multiplied in float32 at a time.
_ROWS_AT_ONCE = 4
#: The most words in a row of scratch that is not packed.
_MOST_ROW = 256
#: Bytes of a configuration; where the bytes of a row and the rows of each register are in it.
_CONFIGURATION, _ROW_BYTES, _ROWS, _REGISTERS = 64, 16, 48, 8


def micro_tiles(
    a: Tile2D, b: Tile2D, c: Tile2D, m: int, n: int, k: int, *, isa: Isa, clear: Expr = False, flush: bool = False
) -> Stmt:
    """Return the statement ``C = (clear ? 0 : C) + A @ B``.

    Parameters
    ----------
    a, b, c, m, n, k, isa, clear, flush
        As in ``micro_dots``; the processor has an instruction for the types (``tiles_of``).
    """
    if c.transposed:
        a, b, c, m, n = b.flipped(), a.flipped(), c.flipped(), n, m
    depth = tile_depth(m)
    if b.transposed and not a.transposed and m <= _FEW:
        # Transposing a few rows of A, and of C, costs less than transposing B.
        a, b, c, m, n = b.flipped(), a.flipped(), c.flipped(), n, m
    products = tiles_of(isa, a.dtype, b.dtype, c.dtype, flush=flush)
    if products is None:
        raise AssertionError((a.dtype, b.dtype, c.dtype))
    acc = products.dot.types[2]
    depth *= products.dot.group
    split = depth if k > depth and bits_of(c.dtype) == bits_of(acc) else k

    def part(start: Expr, size: int, first: Expr) -> Stmt:
        call = Call(a.window(0, start), b.window(start, 0), c, m, n, size, products, acc, isa, first)
        return _TileProduct.of(call).product()

    return sequence(*_configured(m), in_order(k, split, clear, part), _do("tilerelease"))


def tile_depth(m: int) -> int:
    """Return the words of k that ``m`` rows of A are multiplied by."""
    return _LONG_DEPTH if m <= _FEW else _DEPTH


def tile_features(body: Stmt) -> list[str]:
    """Return LLVM's features of the tile instructions in a statement, sorted."""
    numbers = {int(nodes.as_int(c.args[0])) for c in collect(body, ir.Call) if nodes.operator_name(c) == _CALL}
    return sorted({feature for dot in TILES if _number(dot.intrinsic) in numbers for feature in dot.features})


@dataclass(frozen=True)
class _TileProduct:
    """One product, whose operands are packed whole.

    Attributes
    ----------
    call
        The product.
    left
        A's panel; ``None`` if tiles are read where A is.
    least
        A's least magnitude, if it matters.
    scratch
        Accumulators on their way to C.
    """

    call: Call
    left: BufferVar | None
    least: BufferVar | None
    scratch: BufferVar
    before: tuple[Stmt, ...]

    @staticmethod
    def of(call: Call) -> _TileProduct:
        """Return the block of a product, with the statements that pack A."""
        scratch = tirx.decl_buffer((WIDTH * WIDTH,), call.acc, "totals", scope="global", layout=None)
        before, steps = [tirx.AllocBuffer(scratch)], []
        left = least = None
        rows, size = call.m, call.words
        if not _in_place(call):
            rows, size = 1, tiles_over(call.m) * tiles_over(call.words) * SIDE * SIDE
            allocate, left = panel(size, "a_tiles")
            before.append(allocate)
            made, a = bfloat16_codes(call.a, call.m, call.k, call.isa, "a_codes")
            steps += made + pack_tiles(a, call.m, call.k, left)

        def read(i: Expr, at: Expr, lanes: int) -> Expr:
            return load_words(call.a, i, at, lanes) if left is None else tirx.BufferLoad(left, [ramp(at, lanes)])

        if call.products.checked:
            (lanes, allocate, *made), least = least_magnitude(read, rows, size, SIDE, "a_least")
            before.append(allocate)
            steps += [lanes, *made]
        return _TileProduct(call, left, least, scratch, (*before, *([packing(*steps)] if steps else [])))

    def load_left(self, register: int, tile: Expr, s: Expr) -> Stmt:
        """Return the statement that loads a tile of A, ``s`` tiles along k."""
        if self.left is not None:
            return _load(register, self.left, [index_of(tile, 0, s, 0, self.steps)], SIDE)
        a = self.call.a
        return _load(register, a.buffer, a.at(times(tile, SIDE), times(s, SIDE * self.group)), _row_words(a))

    def word(self, tile: Expr, row: Expr, s: Expr, w: Expr) -> Expr:
        """Return a word of A."""
        if self.left is not None:
            return tirx.BufferLoad(self.left, [index_of(tile, row, s, w, self.steps)])
        i, p = plus(times(tile, SIDE), row), plus(times(s, SIDE), w)
        return join_words(self.call.a, i, p, 1, self.group)

    @property
    def group(self) -> int:
        """Elements of a word."""
        return self.call.products.dot.group

    @property
    def steps(self) -> int:
        """Tiles along k."""
        return tiles_over(self.call.words)

    def product(self) -> Stmt:
        """Return the whole product."""
        n, parts = self.call.n, list(self.before)
        if n >= WIDTH:
            parts += self.strips(0, n // WIDTH, WIDTH)
        if n % WIDTH:
            parts += self.strips(n - n % WIDTH, 1, n % WIDTH)
        return sequence(*parts)

    def strips(self, start: int, count: int, width: int) -> list[Stmt]:
        """Return the products of all rows with adjacent strips of some columns."""
        size = self.steps * SIDE * WIDTH
        allocate, right = panel(count * size, "b_tiles")
        before, other = [allocate], None
        b = self.call.b.window(0, start)
        packed, b = bfloat16_codes(b, self.call.k, count * width, self.call.isa, "b_codes")
        packed += pack_columns(b, count, width, self.call.k, right)
        if self.least is not None:
            allocate, other = registers(count, "uint16", "b_least")
            before.append(allocate)

            def least(j: Expr) -> Stmt:
                read: Callable[..., Expr] = lambda _, at, n: tirx.BufferLoad(right, [ramp(plus(times(j, size), at), n)])  # noqa: E731
                return sequence(*least_magnitude(read, 1, size, SIDE, "b_least", (other, j))[0])

            packed.append(loop("jt", count, least))

        def strip(j: Expr) -> Stmt:
            j0, base = plus(times(j, width), start), times(j, size)
            fast = self.rows(j0, width, lambda i, rows: self.corner(i, rows, j0, width, right, base), self.directly)
            if self.least is None or other is None:
                return fast
            slow = self.rows(j0, width, lambda i, rows: self.exact(i, rows, width, right, base), lambda *_: False)
            return tirx.IfThenElse(is_safe(self.least[0], other[j]), fast, slow)

        return [*before, packing(*packed), loop("jt", count, strip)]

    def rows(
        self, j0: Expr, width: int, corner: Callable[[Expr, int], Stmt], directly: Callable[[int, int], bool]
    ) -> Stmt:
        """Return the products of all rows, in parts of up to 32 of them."""
        m, parts = self.call.m, []

        def whole(i: Expr, rows: int) -> Stmt:
            if directly(rows, width):
                return corner(i, rows)
            i0 = times(i, WIDTH)
            if self.call.c.transposed:
                return sequence(corner(i, rows), *self.exchanged(i0, rows, j0, width))
            return sequence(corner(i, rows), loop("row", rows, lambda r: self.added(plus(i0, r), r, j0, width)))

        if m >= WIDTH:
            parts.append(loop("it", m // WIDTH, lambda i: whole(i, WIDTH)))
        if m % WIDTH:
            parts.append(whole(m // WIDTH, m % WIDTH))
        return sequence(*parts)

    def directly(self, rows: int, width: int) -> bool:
        """Whether accumulators are read from C and written to it, without vector code."""
        c, acc = self.call.c, self.call.acc
        whole = rows % SIDE == 0 and width % SIDE == 0 and not c.transposed
        return whole and (c.dtype in ("int32", "uint32") or (c.dtype == acc and self.call.clear is True))

    def corner(self, i: Expr, rows: int, j0: Expr, width: int, right: BufferVar, base: Expr) -> Stmt:
        """Return the product of the ``i``-th 32 rows with a strip, by the instruction."""
        down, across = tiles_over(rows), tiles_over(width)
        tiles = [(r, q) for r in range(down) for q in range(across)]

        def step(s: Expr) -> Stmt:
            made = []
            for r, q in tiles:
                if q == 0:
                    made.append(self.load_left(_LEFT + r, plus(times(i, 2), r), s))
                if r == 0:
                    at = plus(base, plus(times(s, SIDE * WIDTH), q * SIDE))
                    made.append(_load(_RIGHT + q, right, [at], WIDTH))
                made.append(_do(self.instruction, 2 * r + q, _LEFT + r, _RIGHT + q))
            return sequence(*made)

        steps = loop("step", self.steps, step)
        if self.directly(rows, width):
            i0 = times(i, WIDTH)
            return sequence(self.begun(i0, j0, tiles), steps, *self.stored(i0, j0, tiles))
        zeros = [_do("tilezero", 2 * r + q) for r, q in tiles]
        kept = [_store(2 * r + q, self.scratch, [(r * WIDTH + q) * SIDE], WIDTH) for r, q in tiles]
        return sequence(*zeros, steps, *kept)

    def exact(self, i: Expr, rows: int, width: int, right: BufferVar, base: Expr) -> Stmt:
        """Return the same by multiplications of float32."""
        call, across = self.call, tiles_over(width)
        cells = [(r, q, [ramp((r * across + q) * SIDE, SIDE)]) for r in range(_ROWS_AT_ONCE) for q in range(across)]

        def group(t: int, g: Expr) -> Stmt:
            allocate, held = registers(len(cells) * SIDE, call.acc, "acc")
            tile, row = plus(times(i, 2), t), times(g, _ROWS_AT_ONCE)

            def word(s: Expr, w: Expr) -> Stmt:
                stores = []
                for r, q, slot in cells:
                    left = self.word(tile, plus(row, r), s, w)
                    at = plus(base, plus(times(plus(times(s, SIDE), w), WIDTH), q * SIDE))
                    y = tirx.BufferLoad(right, [ramp(at, SIDE)])
                    total = call.products.dot.exactly(tirx.BufferLoad(held, slot), splat(left, SIDE), y)
                    stores.append(tirx.BufferStore(held, total, slot))
                return sequence(*stores)

            begin = [tirx.BufferStore(held, splat(zero(call.acc), SIDE), slot) for *_, slot in cells]
            steps = loop("step", self.steps, lambda s: loop("word", SIDE, lambda w: word(s, w)))
            end = []
            for r, q, slot in cells:
                at = plus(times(plus(row, t * SIDE + r), WIDTH), q * SIDE)
                end.append(tirx.BufferStore(self.scratch, tirx.BufferLoad(held, slot), [ramp(at, SIDE)]))
            return sequence(allocate, *begin, steps, *end)

        groups = [(t, min(SIDE, rows - t * SIDE)) for t in range(tiles_over(rows))]
        return sequence(*(loop("group", -(-n // _ROWS_AT_ONCE), lambda g, t=t: group(t, g)) for t, n in groups))  # type: ignore[misc]

    @property
    def instruction(self) -> str:
        """The instruction's name in LLVM."""
        return self.call.products.dot.intrinsic.removeprefix(_FAMILY)

    def begun(self, i0: Expr, j0: Expr, tiles: list[tuple[int, int]]) -> Stmt:
        """Return the statement that fills accumulators from C."""
        zeros = sequence(*(_do("tilezero", 2 * r + q) for r, q in tiles))
        if self.call.clear is True:
            return zeros
        held = sequence(*(_load(2 * r + q, self.call.c.buffer, *self.tile_of_c(i0, j0, r, q)) for r, q in tiles))
        return held if self.call.clear is False else tirx.IfThenElse(self.call.clear, zeros, held)

    def stored(self, i0: Expr, j0: Expr, tiles: list[tuple[int, int]]) -> list[Stmt]:
        """Return the statements that write accumulators to C."""
        return [_store(2 * r + q, self.call.c.buffer, *self.tile_of_c(i0, j0, r, q)) for r, q in tiles]

    def tile_of_c(self, i0: Expr, j0: Expr, r: int, q: int) -> tuple[list[Expr], int]:
        """Return the first element of a tile of C, and its stride."""
        c = self.call.c
        return c.at(plus(i0, r * SIDE), plus(j0, q * SIDE)), _row_words(c)

    def added(self, i: Expr, r: Expr, j0: Expr, width: int) -> Stmt:
        """Return the statements that add a row of accumulators to C."""
        made = []
        for at, lanes in parts_of(width, SIDE):
            total = tirx.BufferLoad(self.scratch, [ramp(plus(times(r, WIDTH), at), lanes)])
            made.append(self.add(total, self.call.c.at(i, plus(j0, at)), lanes))
        return sequence(*made)

    def exchanged(self, i0: Expr, rows: int, j0: Expr, width: int) -> list[Stmt]:
        """Return the statements that add accumulators to a C that is stored transposed."""
        made = []
        for r, down in parts_of(rows, BLOCK):
            for q, across in parts_of(width, BLOCK):
                made.append(
                    self.square(i0, r, j0, q, down) if down == across else self.single(i0, r, j0, q, down, across)
                )
        return made

    def square(self, i0: Expr, r: int, j0: Expr, q: int, size: int) -> Stmt:
        """Return the same for a block of accumulators, through registers."""

        def read(v: int, into: BufferVar) -> Stmt:
            row = tirx.BufferLoad(self.scratch, [ramp((r + v) * WIDTH + q, size)])
            return tirx.BufferStore(into, row, [ramp(v * size, size)])

        def write(v: int, row: Expr) -> Stmt:
            return self.add(row, self.call.c.at(plus(i0, r), plus(j0, q + v)), size)

        return block_transpose(read, write, size, self.call.acc)

    def single(self, i0: Expr, r: int, j0: Expr, q: int, down: int, across: int) -> Stmt:
        """Return the same, an element at a time."""

        def one(v: Expr, u: Expr) -> Stmt:
            total = tirx.BufferLoad(self.scratch, [plus(times(plus(v, r), WIDTH), plus(u, q))])
            return self.add(total, self.call.c.at(plus(plus(i0, r), v), plus(plus(j0, q), u)), 1)

        return loop("row", down, lambda v: loop("column", across, lambda u: one(v, u)))

    def add(self, total: Expr, where: list[Expr], lanes: int) -> Stmt:
        """Return the statement that adds accumulators to adjacent elements of C."""
        call, where = self.call, [*where[:-1], ramp(where[-1], lanes)]
        if call.clear is not True:
            held = cast(tirx.BufferLoad(call.c.buffer, where), call.c.dtype, call.acc, lanes)
            if call.clear is not False:
                held = tirx.Select(splat(call.clear, lanes), splat(zero(call.acc), lanes), held)
            one = splat(tirx.IntImm("int32", 1), lanes)
            total = held + total if call.acc == "float32" else multiply_add(held, total, one, "int32", lanes)
        return tirx.BufferStore(call.c.buffer, cast(total, call.acc, call.c.dtype, lanes), where)


def _in_place(call: Call) -> bool:
    """Whether tiles of A are read where they are: in scratch, whose rows are short.

    Rows of a tensor may all fall into a few sets of a cache: with 2,048 bytes each, that takes 1.3 times as long.
    """
    a = call.a
    whole = call.words % SIDE == 0 and call.k % call.products.dot.group == 0 and call.m % SIDE == 0
    held = nodes.scope_of(a.buffer) != "global" and a.load is None and not (a.transposed or a.between)
    return whole and held and 0 < _row_words(a) <= _MOST_ROW


def _row_words(tile: Tile2D) -> int:
    """Return the row stride of a scratch tile in words; 0 if not whole."""
    bits = int(nodes.shape_of(tile.buffer)[-1]) * bits_of(tile.dtype)
    return 0 if bits % 32 else bits // 32


def _configured(m: int) -> list[Stmt]:
    """Return the statements that give registers their sizes.

    Registers of fewer rows take less time.
    """
    byte = [0] * _CONFIGURATION
    byte[0] = 1
    for t in range(_REGISTERS):
        byte[_ROW_BYTES + 2 * t] = 4 * SIDE
        byte[_ROWS + t] = SIDE if t >= _RIGHT else min(m, SIDE)
    words = [int.from_bytes(bytes(byte[at : at + 4]), "little") for at in range(0, _CONFIGURATION, 4)]
    allocate, config = registers(len(words), "uint32", "tile_sizes")
    stores = [tirx.BufferStore(config, tirx.IntImm("uint32", word), [at]) for at, word in enumerate(words)]
    return [allocate, *stores, _do("ldtilecfg", tirx.address_of(tirx.BufferLoad(config, [0])))]


def _load(register: int, buffer: BufferVar, where: list[Expr], stride: int) -> Stmt:
    """Return the statement that loads a tile with a row stride in words."""
    return _do(
        "tileloadd64", register, tirx.address_of(tirx.BufferLoad(buffer, where)), tirx.IntImm("int64", 4 * stride)
    )


def _store(register: int, buffer: BufferVar, where: list[Expr], stride: int) -> Stmt:
    return _move("tilestored64", register, buffer, where, stride)


def _move(name: str, register: int, buffer: BufferVar, where: list[Expr], stride: int) -> Stmt:
    address = tirx.address_of(tirx.BufferLoad(buffer, where))
    return _do(name, register, address, tirx.IntImm("int64", 4 * stride))


def _do(name: str, *args: Expr) -> Stmt:
    """Return a call of an instruction; integers are numbers of registers."""
    given = [tirx.IntImm("int8", x) if isinstance(x, int) else x for x in args]
    return tirx.Evaluate(tirx.call_llvm_intrin("void", f"{_FAMILY}{name}", *given))


def _number(intrinsic: str) -> int:
    return int(tvm.target.codegen.llvm_lookup_intrinsic_id(intrinsic))


_FAMILY = "llvm.x86."
_CALL = "call_llvm_intrin"
