"""Operand layouts of matrix instructions: element maps of blocks, and fragments of blocks.

A block has 8 rows, and each lane ``l`` holds some neighbours of one of them: of row ``4 * (l / 16) + l % 8 / 2`` the
``each`` columns from ``each * (2 * (l / 8 % 2) + l % 2)`` on; the same for A, B and C. So a C whose simdgroups all lie
along the rows can be the A of another product without moving.
"""

from __future__ import annotations

from tile_core.layout.digits import Digit
from tile_core.layout.fragment import Digits, FragmentLayout
from tile_core.simt.ops.warp_partition import WarpPartition
from tile_metal.ops.atoms import Unit
from tile_metal.target import SIMD

Axis = tuple[int, int, int, int]
"""Simdgroups along an axis, the distance of their first threads, instructions, the distance of their registers."""


def accumulator(m: int, n: int, split: WarpPartition, unit: Unit, threads: int) -> FragmentLayout:
    """Return the layout of C: registers count instructions along M, then N, then elements."""
    size = unit.m * unit.n // SIMD
    first = SIMD * split.copies
    rows = (split.warps_m, first * split.warps_n, split.atoms_m, split.atoms_n * size)
    columns = (split.warps_n, first, split.atoms_n, size)
    copies = (Digit(split.copies, SIMD, "thread"),) if split.copies > 1 else ()
    return FragmentLayout((m, n), _blocks(unit, rows, columns, unit.m, unit.n), threads, copies)


def operand_a(m: int, k: int, split: WarpPartition, unit: Unit, threads: int) -> FragmentLayout:
    """Return the layout of a fragment A; simdgroups side by side hold copies."""
    size, steps = unit.m * unit.k // SIMD, -(-k // unit.k)
    beside = split.warps_n * split.copies
    rows = (split.warps_m, SIMD * beside, split.atoms_m, steps * size)
    copies = (Digit(beside, SIMD, "thread"),) if beside > 1 else ()
    return FragmentLayout((m, k), _blocks(unit, rows, (1, 1, steps, size), unit.m, unit.k), threads, copies)


def operand_b(k: int, n: int, split: WarpPartition, unit: Unit, threads: int) -> FragmentLayout:
    """Return the layout of a fragment B; simdgroups one below the other hold copies."""
    size, steps = unit.n * unit.k // SIMD, -(-k // unit.k)
    columns = (split.warps_n, SIMD * split.copies, split.atoms_n, steps * size)
    below = Digit(split.warps_m, SIMD * split.copies * split.warps_n, "thread")
    copies = tuple(d for d in (below, Digit(split.copies, SIMD, "thread")) if d.extent > 1)
    return FragmentLayout((k, n), _blocks(unit, (1, 1, steps, size), columns, unit.k, unit.n), threads, copies)


def _blocks(unit: Unit, rows: Axis, columns: Axis, height: int, width: int) -> tuple[Digits, Digits]:
    """Return the digits of rows and columns.

    An instruction's registers count blocks along its columns first.
    """
    high, wide = height // 8, width // unit.columns
    down = (*_outer(rows), Digit(high, unit.each, "register"), Digit(2, 16, "thread"), Digit(4, 2, "thread"))
    across = (
        *_outer(columns), Digit(wide, high * unit.each, "register"), Digit(2, 8, "thread"), Digit(2, 1, "thread"),
        Digit(unit.each, 1, "register"),
    )  # fmt: skip
    return down, across


def _outer(axis: Axis) -> Digits:
    warps, distance, atoms, registers = axis
    return Digit(warps, distance, "thread"), Digit(atoms, registers, "register")
