"""Layouts of the operands of matrix instructions: accumulators, A and B.

A lane is ``4 * g + t``. It holds rows ``g`` and ``g + 8`` of a tile of A and C, column ``g`` of B, and columns ``2 t``
and ``2 t + 1`` of C. The registers of A count rows of tiles, blocks of K, halves, elements, so a C whose warps all lie
along the rows can be the A of another product without moving.
"""

from __future__ import annotations

from tile_core.layout.digits import Digit
from tile_core.layout.fragment import Digits, FragmentLayout
from tile_core.simt.ops.warp_partition import WarpPartition
from tile_cuda.ops.atoms import Family
from tile_cuda.target import WARP


def accumulator(m: int, n: int, split: WarpPartition, family: Family, threads: int) -> FragmentLayout:
    """Return the layout of C: registers count row tiles, column tiles, halves, column pairs."""
    per_tile = 2 * family.halves
    rows = _lines(split.warps_m, WARP * split.warps_n, split.atoms_m, split.atoms_n * per_tile, family.halves, 2)
    columns = (
        Digit(split.warps_n, WARP, "thread"),
        Digit(split.atoms_n, per_tile, "register"),
        Digit(4, 1, "thread"),
        Digit(2, 1, "register"),
    )
    return FragmentLayout((m, n), (rows, columns), threads)


def operand_a(m: int, k: int, split: WarpPartition, family: Family, threads: int) -> FragmentLayout:
    """Return the layout of a fragment A with stored extent ``k``; column warps hold copies."""
    blocks = -(-k // family.block)
    per_block = family.halves * family.per_word
    rows = _lines(
        split.warps_m, WARP * split.warps_n, split.atoms_m, blocks * per_block, family.halves, family.per_word
    )  # fmt: skip
    copies = (Digit(split.warps_n, WARP, "thread"),) if split.warps_n > 1 else ()
    return FragmentLayout((m, k), (rows, _depth(blocks, per_block, family)), threads, copies)


def operand_b(k: int, n: int, split: WarpPartition, family: Family, threads: int) -> FragmentLayout:
    """Return the layout of a fragment B; warps one below the other hold copies."""
    blocks = -(-k // family.block)
    columns = _lines(split.warps_n, WARP, split.atoms_n, blocks * family.per_word, 1, 1)
    copies = (Digit(split.warps_m, WARP * split.warps_n, "thread"),) if split.warps_m > 1 else ()
    return FragmentLayout((k, n), (_depth(blocks, family.per_word, family), columns), threads, copies)


def _lines(warps: int, warp_stride: int, tiles: int, tile_registers: int, halves: int, half_registers: int) -> Digits:
    return (
        Digit(warps, warp_stride, "thread"),
        Digit(tiles, tile_registers, "register"),
        Digit(halves, half_registers, "register"),
        Digit(8, 4, "thread"),
    )


def _depth(blocks: int, block_registers: int, family: Family) -> Digits:
    return (
        Digit(blocks, block_registers, "register"),
        Digit(4, 1, "thread"),
        Digit(family.per_word, 1, "register"),
    )
