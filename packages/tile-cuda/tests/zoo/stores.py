"""Bulk copies into and out of shared memory outside of pipelined loops; mistaken texts."""

from __future__ import annotations

import numpy as np
from zoo.case import Case, Wanted
from zoo.mutant import Mutant
from zoo.table import Entry

import tile_core.language as T

IN, NAME, LEFT = "tiles_in", "tiles_out", "tiles_left"
_CALL = r"cp_async_bulk_tensor_2d_global_shared_cta_tile_bulk_group\("
_PLAIN = "cp_async_bulk_tensor_2d_global_shared_cta_tile_bulk_group(&S[0], "
_ADDED = "cp_reduce_async_bulk_tensor_2d_global_shared_cta_add_tile_bulk_group(&S[0], "
_END = r" *if \(tid == 0\) \{\n *mbarrier_inval_\w+\(&S_arrived\[0\]\);\n *\}"
_STORE = rf"{_CALL}&S\[0\], "
_UPDATE = r"cp_reduce_async_bulk_tensor_2d_global_shared_cta_add_tile_bulk_group\(&S\[0\], "
_WAIT = r"\n *if \(tid == 0\) \{\n *cp_async_bulk_wait_group%s_0\(\);\n *\}"
_COMMIT = r"\n *cp_async_bulk_commit_group\(\);"
_READ, _DONE = _WAIT % "_read", _WAIT % ""


def tiles_out_case(rows: int, columns: int) -> Case:
    """Return tiles stored, added to another tensor, and read by other threads, in a loop."""
    trips = 3

    @T.prim_func
    def tiles_out(
        A: T.Tensor((rows, columns), "float32"), B: T.Tensor((rows, columns), "float32"),
        C: T.Tensor((16, columns), "float32"), D: T.Tensor((rows, columns), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(columns, 32), T.ceildiv(rows, 16 * trips), threads=64) as (bx, by):
            S = T.alloc_shared((16, 32), "float32")
            for r in T.serial(trips):
                top = (by * trips + r) * 16
                T.copy(A[top, bx * 32], S)
                for i, j in T.Parallel(16, 32):
                    S[i, j] = S[i, j] * 2
                T.copy(S, B[top, bx * 32])
                T.atomic_add(C[0:16, bx * 32 : bx * 32 + 32], S)
            for i, j in T.Parallel(16 * trips, 32):
                below = by * 16 * trips + 16 * trips - 1 - i
                if below < rows and bx * 32 + j < columns:
                    D[below, bx * 32 + j] = B[below, bx * 32 + j]

    a = np.random.default_rng(rows).integers(-9, 10, (rows, columns)).astype("float32")
    totals = np.zeros((16, columns), "float32")
    for top in range(0, rows, 16):
        part = 2 * a[top : top + 16]
        totals[: len(part)] += part
    poison = (np.full((rows, columns), np.nan, "float32") for _ in range(2))
    b, d = poison
    wanted = (Wanted(1, 2 * a, 0), Wanted(2, totals, 0), Wanted(3, 2 * a, 0))
    return Case(tiles_out, (a, b, np.zeros((16, columns), "float32"), d), wanted)


def tiles_left_case(rows: int, columns: int) -> Case:
    """Return tiles that are copied out at the end of their blocks."""

    @T.prim_func
    def tiles_left(A: T.Tensor((rows, columns), "int32"), B: T.Tensor((rows, columns), "int32")):
        with T.Kernel(T.ceildiv(columns, 32), T.ceildiv(rows, 8), threads=32) as (bx, by):
            S = T.alloc_shared((8, 32), "int32")
            for i, j in T.Parallel(8, 32):
                S[i, j] = T.if_then_else(
                    T.all_of(by * 8 + i < rows, bx * 32 + j < columns), A[by * 8 + i, bx * 32 + j], 0
                )
            T.copy(S, B[by * 8, bx * 32])

    a = np.random.default_rng(rows).integers(-9, 10, (rows, columns)).astype("int32")
    return Case(tiles_left, (a, np.full((rows, columns), 77, "int32")), (Wanted(1, a, 0),))


def tiles_in_case(rows: int, columns: int) -> Case:
    """Return tiles that enter in a loop, and one that enters before it."""

    @T.prim_func
    def tiles_in(
        A: T.Tensor((rows, columns), "int32"), X: T.Tensor((8, columns), "int32"), B: T.Tensor((rows, columns), "int32")
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(columns, 32), threads=64) as bx:
            S = T.alloc_shared((8, 32), "int32")
            R = T.alloc_shared((8, 32), "int32")
            T.copy(X[0, bx * 32], R)
            for t in T.serial(T.ceildiv(rows, 8)):
                T.copy(A[t * 8, bx * 32], S)
                for i, j in T.Parallel(8, 32):
                    row, column = t * 8 + 7 - i, bx * 32 + 31 - j
                    if row < rows and column < columns:
                        B[row, column] = S[7 - i, 31 - j] + R[7 - i, 31 - j]

    rng = np.random.default_rng(rows)
    a, x = (rng.integers(-9, 10, (n, columns)).astype("int32") for n in (rows, 8))
    wanted = a + np.concatenate([x] * (rows // 8 + 1))[:rows]
    return Case(tiles_in, (a, x, np.full((rows, columns), 77, "int32")), (Wanted(2, wanted, 0),))


ENTRIES = (
    Entry(IN, lambda: tiles_in_case(45, 72)),
    Entry(NAME, lambda: tiles_out_case(85, 72)),
    Entry(LEFT, lambda: tiles_left_case(19, 72)),
)

MUTANTS: tuple[Mutant, ...] = (
    Mutant(IN, "no wait for the tile before the loop", r"\n *mbarrier_wait_parity\(&R_[^;]*;", ""),
    Mutant(IN, "no wait for the tile of a turn", r"\n *mbarrier_wait_parity\(&S_[^;]*;", ""),
    Mutant(IN, "a phase that does not alternate", r"\n *S_phase = 1u[^;]*;", ""),
    Mutant(IN, "a phase that begins with the other", r"S_phase = 0;", "S_phase = 1;"),
    Mutant(IN, "waits for the other tile's object", r"(wait_parity\(&)S(_arrived\[0\], )S_phase", r"\1R\g<2>0"),
    Mutant(IN, "a tile is filled while it is read", r"(for \(int t = 0[^\n]*)\n *__syncthreads\(\);", r"\1"),
    Mutant(IN, "too few bytes announced", r"(expect_tx_\w+\(&S_arrived\[0\]), 1024", r"\1, 512"),
    Mutant(IN, "bytes announced at the other tile's object", r"(expect_tx_\w+\(&)S(_arrived\[0\], 1024)", r"\1R\2"),
    Mutant(IN, "an object that is not initialised", r"\n *mbarrier_init_\w+\(&S_arrived[^;]*;", ""),
    Mutant(IN, "no fence after the initialisation", r"\n *fence_mbarrier_init_\w+\(\);", ""),
    Mutant(IN, "an object ends before the last wait", rf"\n *__syncthreads\(\);(\n{_END})", r"\1"),
    Mutant(NAME, "no fence before a box leaves", r"\n *fence_proxy_async_shared_cta\(\);", ""),
    Mutant(NAME, "no barrier before a box leaves", r"(fence_proxy_async_shared_cta\(\);)\n *__syncthreads\(\);", r"\1"),
    Mutant(NAME, "no wait before a tile is written again", _READ, "", 0),
    Mutant(LEFT, "no wait before the block ends", _READ, ""),
    Mutant(NAME, "no wait before what is stored is read", _DONE, "", -1),
    Mutant(NAME, "a wait for reads where writes count", r"wait_group_0\(\);\n", "wait_group_read_0();\n", -1),
    Mutant(NAME, "a wait for all groups but one", r'wait_group\.read 0;"', 'wait_group.read 1;"'),
    Mutant(NAME, "another thread waits", r"tid == 0(\) \{\n *cp_async_bulk_wait)", r"tid == 1\1"),
    Mutant(NAME, "a group that does not end", _COMMIT, ""),
    Mutant(LEFT, "a group that ends before its box", rf"(\n *{_CALL}[^;]*;)({_COMMIT})", r"\2\1"),
    Mutant(NAME, "every thread issues", rf"if \(tid == 0\) (\{{\n *{_UPDATE})", r"\1"),
    Mutant(NAME, "no thread issues", rf"tid == 0(\) \{{\n *{_STORE})", r"tid < 0\1"),
    Mutant(NAME, "coordinates exchanged", rf"({_STORE}&B_descriptor, )(.*), (.*)\);\n", r"\1\3, \2);\n"),
    Mutant(NAME, "a box of the next rows", rf"({_STORE}&B_descriptor, .*), (.*)\);\n", r"\1, \2 + 16);\n"),
    Mutant(NAME, "a box before the first column", rf"({_STORE}&B_descriptor, )", r"\1-32 + "),
    Mutant(NAME, "a box that begins inside of 16 bytes", rf"({_STORE}&B_descriptor, )", r"\g<1>2 + "),
    Mutant(NAME, "the map of the other tensor", rf"({_UPDATE}&)C", r"\1B"),
    Mutant(NAME, "an update that is a copy", _UPDATE, _PLAIN),
    Mutant(NAME, "a copy that is an update", _STORE, _ADDED),
    Mutant(NAME, "a maximum for a sum", r"cta\.add\.tile", "cta.max.tile"),
    Mutant(NAME, "a part of the tile", rf"({_CALL})&S\[0\]", r"\1&S[256]"),
    Mutant(NAME, "a tile at no multiple of 128 bytes", rf"({_CALL})&S\[0\]", r"\1&S[16]"),
    Mutant(LEFT, "written without the swizzle", r"\(\(j >> 2\) \^ \(r \* 4 \+ i\)\)", "(j >> 2)"),
)  # fmt: skip
