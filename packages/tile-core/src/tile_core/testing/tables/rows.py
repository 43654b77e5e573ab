"""T.gather and T.scatter: whole rows by an index vector of any length and type."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_core.testing.case import VALUE, Data, Unit, one, output, refused, scalar, tensor
from tile_core.testing.data import Array, anything, numbers, values
from tile_core.testing.source import lines

TYPES = ("float32", "float16", "int8", "bfloat16", "int64", "float8_e4m3fn", "uint16", "bool")


#: Of loops: type, type of row numbers, rows and columns of a tile, columns and row numbers in all, and stages.
_LOOPS = (
    ("float16", "int32", 17, 32, 96, 30, 3), ("float32", "int64", 8, 16, 60, 16, 2),
    ("int8", "int16", 5, 48, 48, 13, 4), ("bfloat16", "uint8", 4, 6, 37, 9, 2), ("float16", "int32", 16, 16, 0, 20, 2),
)  # fmt: skip


def units() -> list[Unit]:
    """Return the units of this table."""
    found = []
    for n, dtype in enumerate(TYPES):
        index = ("int32", "int64", "int16", "uint8")[n % 4]
        count, cols = (1, 3, 4, 7, 10, 31, 64, 5)[n], (24, 8, 17, 1, 40, 33, 16, 7)[n]
        found += [_gather(dtype, index, count, cols), _scatter(dtype, index, count, cols)]
    found += [_gather("float16", "int32", 17, 64), _gather("float32", "int64", 33, 64)]  # whole vectors
    loops = [_pipelined(*shape) for shape in _LOOPS]
    return [*found, *loops, *_others(), _operand(), *_refusals()]


def _rows(rng: np.random.Generator, count: int, index: str, unique: bool) -> Array:
    """Row numbers of a table of 40 rows, some outside."""
    low, high = (0, 60) if index == "uint8" else (-20, 60)
    drawn = rng.permutation(np.arange(low, high))[:count] if unique else rng.integers(low, high, count)
    found: Array = np.asarray(drawn).astype(index)
    return found


def _gather(dtype: str, index: str, count: int, cols: int) -> Unit:
    body = f'''
        s = T.alloc_{"shared" if count % 2 else "fragment"}(({count}, {cols}), "{dtype}")
        T.gather(A, R, s)
        T.copy(s, B)
    '''
    params = [tensor("A", dtype, 40, cols), tensor("R", index, count), output("B", dtype, count, cols)]
    launches = {
        f"{k}": lambda rng, k=k: {"A": anything(rng, (40, cols), dtype), "R": _rows(rng, count, index, k == "unique")}
        for k in ("unique", "repeated")
    }

    return one("gather", f"{dtype}-{index}-{count}x{cols}", params, body, None, launches)  # type: ignore[arg-type]


def _scatter(dtype: str, index: str, count: int, cols: int) -> Unit:
    body = f'''
        s = T.alloc_shared(({count}, {cols}), "{dtype}")
        T.copy(A, s)
        T.scatter(s, B, R)
    '''
    params = [tensor("A", dtype, count, cols), tensor("R", index, count), output("B", dtype, 40, cols)]
    launches = {
        f"{k}": lambda rng, k=k: {
            "A": anything(rng, (count, cols), dtype), "B": numbers(rng, (40, cols), dtype),
            "R": _rows(rng, count, index, k == "unique"),
        }
        for k in ("unique", "last-wins")
    }  # fmt: skip

    return one("scatter", f"{dtype}-{index}-{count}x{cols}", params, body, None, launches)  # type: ignore[arg-type]


def _others() -> list[Unit]:
    """#2601: constant rows; columns at a corner; a slice of the index; conversion."""
    a, b = tensor("A", "float32", 40, 24), output("B", "float16", 4, 8)
    data = {"": lambda rng: {"A": numbers(rng, (40, 24), "float32")}}
    at = {f"{c}": lambda rng, c=c: {"A": numbers(rng, (40, 24), "float32"), "c": c} for c in (0, 5, 16)}

    def picked(d: Data, rows: Any, columns: slice) -> Array:
        return values(d["A"], "float32")[rows, columns]

    constant = lines("""
        s = T.alloc_shared((4, 8), 'float32')
        T.gather(A[0, 8], [0, 39, 2, 3], s)
        T.copy(s, B)
    """)
    corner = lines("""
        s = T.alloc_shared((4, 8), 'float32')
        T.gather(A[0, c], [7, 3, 1, 0], s)
        T.copy(s, B)
    """)
    put = lines("""
        s = T.alloc_shared((3, 24), 'float32')
        T.copy(A[0:3, :], s)
        T.scatter(s, C, [5, 0, 2])
    """)
    sliced = lines("""
        s = T.alloc_shared((4, 24), 'float32')
        T.gather(A, R[bx * 4 : bx * 4 + 4], s)
        T.copy(s, C[bx * 4, 0])
    """)

    def both(rng: np.random.Generator) -> Data:
        return {"A": numbers(rng, (40, 24), "float32"), "C": numbers(rng, (6, 24), "float32")}

    rows = {"": lambda rng: {"A": numbers(rng, (40, 24), "float32"), "R": _rows(rng, 10, "int32", False)}}
    c = output("C", "float32", 10, 24)
    return [
        one("gather", "#2601-constant-rows", [a, b], constant, lambda d: picked(d, [0, 39, 2, 3], slice(8, 16)), data),
        one("gather", "corner", [a, b, scalar("c")], corner,
            lambda d: picked(d, [7, 3, 1, 0], slice(d["c"], d["c"] + 8)), at),  # type: ignore[arg-type]
        one("scatter", "#2601-constant-rows", [a, output("C", "float32", 6, 24)], put, None, {"": both}),
        one("gather", "blocks", [a, tensor("R", "int32", 10), c], sliced,
            None, rows, grid="T.ceildiv(10, 4)"),
    ]  # fmt: skip


def _pipelined(dtype: str, index: str, count: int, cols: int, depth: int, total: int, stages: int) -> Unit:
    """Gather the rows of a loop's tiles.

    The last tile may have fewer columns, and the last block fewer row numbers.
    """
    body = f"""
        s, r = T.alloc_shared(({count}, {cols}), "{dtype}"), T.alloc_shared(({count},), "{index}")
        c = T.alloc_fragment(({count}, {cols}), "float32")
        T.copy(R[bx * {count}], r)
        T.clear(c)
        for o in T.Pipelined({-(-depth // cols)}, num_stages={stages}):
            T.gather(A[0, o * {cols}], {f"R[bx * {count} : bx * {count} + {count}]" if stages == 2 else "r"}, s)
            for i, j in T.Parallel({count}, {cols}):
                c[i, j] += T.cast(s[i, j], "float32")
        T.copy(c, C[bx * {count}, 0])
    """
    params = [tensor("A", dtype, 40, max(depth, 1)), tensor("R", index, total), output("C", "float32", total, cols)]

    def data(rng: np.random.Generator) -> Data:
        return {"A": numbers(rng, (40, max(depth, 1)), dtype, -4, 4), "R": _rows(rng, total, index, False)}

    name = f"loop-{dtype}-{index}-{count}x{cols}-{depth}"
    return one("gather", name, params, body, None, {"": data}, VALUE, grid=str(-(-total // count)), threads=64)


def _operand() -> Unit:
    """Rows that become a product's operand, with columns split over two thread groups.

    The tile has one layout.
    """
    params = [tensor("A", "float16", 64, 32), tensor("B", "float16", 40, 192), tensor("R", "int32", 32)]
    body = """
        a, b = T.alloc_shared((64, 32), 'float16'), T.alloc_shared((32, 192), 'float16')
        c = T.alloc_fragment((64, 192), 'float32')
        T.clear(c)
        T.copy(A, a)
        T.gather(B, R, b)
        T.gemm(a, b, c, policy=T.GemmWarpPolicy.FullCol)
        T.copy(b, G)
        T.copy(c, C)
    """

    def data(rng: np.random.Generator) -> Data:
        a, b = numbers(rng, (64, 32), "float16", -4, 4), numbers(rng, (40, 192), "float16", -4, 4)
        return {"A": a, "B": b, "R": _rows(rng, 32, "int32", False)}

    outputs = [output("G", "float16", 32, 192), output("C", "float32", 64, 192)]
    return one("gather", "operand", [*params, *outputs], body, None, {"": data}, VALUE, threads=256)


def _refusals() -> list[Unit]:
    a = [tensor("A", "float32", 40, 24), tensor("F", "float32", 4)]
    start = "s = T.alloc_shared((4, 24), 'float32')\n"
    return [
        refused("gather", "illegal-float-rows", start + "T.gather(A, F, s)", "K221", params=a),
        refused("gather", "illegal-scalar-rows", start + "T.gather(A, bx, s)", "K221", params=a),
        refused("gather", "illegal-shape", start + "T.gather(A, [1, 2, 3], s)", "K203", params=a),
        refused("scatter", "illegal-duplicates", start + "T.scatter(s, A, [1, 2, 1, 3])", "K220", params=a),
    ]
