"""``cuda.tcgen05.sp``: products with a 2:4 sparse A, with accumulators and metadata in tensor memory.

Each thread reads the metadata of its lane from shared memory, in elements of any width and in any layout, and writes it
to columns behind the accumulator (``tcgen05.st``), with increasing indices: instructions support no others, and
empty nibbles have none. ``tcgen05.cp`` would copy whole blocks without registers, but such nibbles as they are.

Layout of the metadata of 128 rows (PTX ISA, "Sparsity selector"; the same as CUTLASS and JAX copy there): 8-bit types
have that of row i in lane i, a nibble for each group, along columns. Of 16- and 32-bit types, 16 bits describe a part
of 16 or 8 elements of K: part j of row m is in column j / 2, in lane ``m / 16 * 16 + j % 2 * 8 + m % 8``, in the low
half for rows whose ``m / 8`` is even, else in the high one.
"""

from __future__ import annotations

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.ir import attributes, nodes
from tile_core.ops.gemm_sp import increasing
from tile_core.simt.variant import SimtCall
from tile_cuda.ops.gemm_tensor import TENSOR_SP, TensorProduct, TensorVariant
from tile_cuda.ops.metadata import MmaMetadata
from tile_cuda.ops.tensor_plan import LANES, TensorPlan


class TensorGemmSp(TensorVariant):
    """Sparse products; the metadata is in shared memory."""

    name = TENSOR_SP
    op = "gemm_sp"
    sparse = True

    def statement(self, plan: TensorPlan, call: SimtCall) -> Stmt:
        """Return the product for one thread."""
        return SparseTensorProduct(plan, call).statement()


class LaneMetadata(MmaMetadata):
    """Words of a lane of tensor memory: one column describes a group of K."""

    def __init__(self, product: SparseTensorProduct, view: object, turned: bool) -> None:
        call, lane = product.call, product.lane
        layout = call.placement.layouts.get(view.buffer)  # type: ignore[attr-defined]
        super().__init__(product.plan, view, turned, lane, product.rows, call.ranges, layout)  # type: ignore[arg-type]
        self.group = 1 if self.wide else 2

    def word(self, i: int, column: int) -> Expr:  # type: ignore[override]
        """Return the word of a column for a row of tiles, as ``uint32``."""
        first = self.first + i * LANES
        if self.wide:
            return self._piece(first + self.lane.row, column, nodes.int_const(0))
        row = first + tirx.floordiv(self.lane.row, 16) * 16 + tirx.floormod(self.lane.row, 8)
        odd = tirx.floormod(tirx.floordiv(self.lane.row, 8), 2)
        low, high = (self._piece(row + rows, 2 * column, odd) for rows in (0, 8))
        return tirx.bitwise_or(low, tirx.shift_left(high, nodes.const(16, "uint32")))


class SparseTensorProduct(TensorProduct):
    """Adds metadata to a product."""

    def before(self, mine: Expr) -> list[Stmt]:
        """Return the statements that write a thread's metadata."""
        read = LaneMetadata(self, self.call.args[1], bool(self.call.attrs[attributes.TRANSPOSE_E]))
        each, found = self.plan.row_metadata, list[Stmt]()
        found += self.waited()
        for i in range(self.plan.split.atoms_m):
            held, new = nodes.alloc([each], "uint32", "metadata", "local")
            found.append(new)
            found += [nodes.store(held, increasing(read.word(i, c)), [c]) for c in range(each)]
            found += self.written(held, each, lambda at, i=i: mine + self.beside(i * each + at))  # type: ignore[misc]
        return found

    def extra(self, i: int, at: int, count: int, step: int) -> tuple[list[Expr], int]:
        """Return the address of the metadata of a step, and the descriptor with its selector."""
        column, selector = self.plan.metadata_column(step)
        return [self.base + self.beside(i * self.plan.row_metadata + column)], self.plan.descriptor(count, selector)
