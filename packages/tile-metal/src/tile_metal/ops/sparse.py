"""Operands of a 2:4 sparse product: decompressed A, finite B.

Metal has no sparse instructions, so A becomes dense in registers: each lane reads the nibble of its elements' group and
picks the stored values. The zeros that this fills in must not meet an infinity or NaN of B, which the sparse product
never looks at there: such numbers of B are zero for the instructions, and where a simdgroup finds any, what they
contribute to the rows that keep their index is added one by one.
"""

from __future__ import annotations

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.ir import nodes
from tile_core.ops.base import View
from tile_core.ops.gemm_sp import kept, nibble
from tile_core.records import dataclass
from tile_core.simt.register_loops import each
from tile_metal.ops.operand import SimdgroupOperand

_INFINITE = 0x7F800000


@dataclass(frozen=True)
class SparseMetadata:
    """Positions of the stored elements of A.

    Attributes
    ----------
    view
        The tile of metadata.
    turned
        Whether its rows are along K.
    group
        Elements of K per nibble: 4, of which 2 are stored, or 2, of which 1 is.
    """

    view: View
    turned: bool
    group: int

    def stored(self, a: SimdgroupOperand, line: Expr, k: Expr) -> tuple[list[Expr], list[Expr], Expr]:
        """Return a group's stored values, their positions, and the position of ``k``."""
        group = tirx.floordiv(k, self.group)
        slots = 2 if self.group == 4 else 1
        code = nibble(self.view, self.turned, line, group)
        values = [a.load(line, group * slots + slot) for slot in range(slots)]
        return values, kept(self.group, code), tirx.floormod(k, self.group)

    def element(self, a: SimdgroupOperand, line: Expr, k: Expr) -> Expr:
        """Return an element of A, zero where it is not stored."""
        values, positions, position = self.stored(a, line, k)
        found = nodes.zero(a.dtype)
        for value, where in reversed(list(zip(values, positions, strict=True))):
            found = tirx.Select(tirx.EQ(where, position), value, found)
        return found


def finite(registers: BufferVar, count: int, dtype: str, odd: BufferVar) -> Stmt:
    """Return the statement that replaces infinities and NaN by zero, and sets ``odd``."""

    def one(r: Var) -> Stmt:
        replace = nodes.seq([nodes.store(registers, nodes.zero(dtype), [r]), nodes.store(odd, nodes.int_const(1), [0])])
        return tirx.IfThenElse(is_odd(registers[r]), replace, None)

    return each(count, one)


def is_odd(value: Expr) -> Expr:
    """Return whether a float is infinite or NaN."""
    bits = tirx.reinterpret("uint32", nodes.cast(value, "float32"))
    limit = nodes.const(_INFINITE, "uint32")
    return tirx.EQ(tirx.bitwise_and(bits, limit), limit)


def contribution(
    metadata: SparseMetadata,
    a: SimdgroupOperand,
    b: SimdgroupOperand,
    at: tuple[Expr, Expr, Expr],
    total: BufferVar,
    r: Expr,
) -> Stmt:
    """Return the statement that adds one non-finite product to an accumulator.

    It acts if B is infinite or NaN there and A stores its factor.

    Parameters
    ----------
    at
        Row, column and index along K.
    total, r
        The accumulators, and the one to add to.
    """
    row, column, k = at
    values, positions, position = metadata.stored(a, row, k)
    factor = nodes.fresh("factor", "float32")
    own = nodes.cast(b.load(column, k), "float32")
    adds = [
        tirx.IfThenElse(
            tirx.EQ(where, position), nodes.store(total, total[r] + nodes.cast(v, "float32") * factor, [r]), None
        )
        for v, where in zip(values, positions, strict=True)
    ]
    return nodes.seq([tirx.Bind(factor, own), tirx.IfThenElse(is_odd(factor), nodes.seq(adds), None)])
