"""T.gemm_sp: 2:4 sparse products, with every mask, metadata width and transpose."""

from __future__ import annotations

import numpy as np

from tile_core import sparse
from tile_core.dtypes import DTYPES
from tile_core.testing.case import VALUE, Data, Unit, one, output, refused, tensor
from tile_core.testing.data import Array, numbers, poisoned, stored, values

#: (A and B, accumulator, metadata).
TYPES = (
    ("float16", "float32", "int16"), ("bfloat16", "float32", "int16"), ("float16", "float32", "int32"),
    ("int8", "int32", "int32"), ("int8", "int32", "uint8"), ("float32", "float32", "int16"),
    ("float16", "float16", "uint16"),
    ("float8_e4m3fn", "float32", "int32"), ("float8_e5m2", "float32", "uint32"), ("uint8", "int32", "int8"),
    ("tfloat32", "float32", "int32"),
)  # fmt: skip


def units() -> list[Unit]:
    """Return the units of this table."""
    found = []
    for n, types in enumerate(TYPES):
        turned = (n % 2 == 1, n % 3 == 1, n % 4 >= 2)
        found.append(_unit(types, (32, 24, 64), turned, stages=n % 4))
    for tile in ((1, 8, 64), (7, 17, 64), (48, 40, 128), (63, 1, 192)):
        found.append(_unit(TYPES[0], tile, (False, False, False)))
    for n, types in enumerate(TYPES):  # tiles of many rows, for targets where groups of warps share an instruction
        turned = (n % 4 == 3, n % 3 == 2, n % 2 == 0 or DTYPES[types[0]].bits != 16)
        found.append(_unit(types, (64, (24, 64, 40)[n % 3], 128), turned, stages=(n + 1) % 4))
    for n, types in enumerate(_TALLEST):  # an instruction may take no fewer rows
        found.append(_unit(types, (128, (32, 48)[n % 2], 64), (False, n % 3 == 1, True), stages=n % 3))
    for types, blocks in ((TYPES[0], (2, 1)), (TYPES[3], (1, 2)), (TYPES[2], (2, 2))):  # which may load for each other
        found.append(_unit(types, (128, 48, 128), (False, False, True), stages=3, blocks=blocks))
    for n, (types, tile, along) in enumerate(_ALONG):  # rows of metadata that begin at multiples of 16 bytes
        turned = (False, n % 3 == 2, n % 4 > 0 or DTYPES[types[0]].bits == 8)
        found.append(_unit(types, tile, turned, stages=2 + n % 3, along=along))
    return [*found, *_refusals()]


#: Types, tiles, and constant extents along K.
_ALONG = (
    (TYPES[0], (64, 32, 64), 640), (TYPES[0], (64, 24, 64), 1152), (TYPES[0], (128, 32, 64), 192),
    (TYPES[1], (128, 32, 128), 896), (TYPES[2], (64, 48, 64), 512), (TYPES[1], (64, 24, 64), 320),
    (TYPES[3], (64, 40, 128), 1152), (TYPES[7], (128, 24, 64), 640), (TYPES[3], (256, 24, 128), 384),
    (TYPES[9], (64, 32, 256), 1280), (TYPES[4], (128, 32, 128), 640), (TYPES[4], (128, 24, 256), 512),
    (TYPES[1], (64, 32, 32), 512),
)  # fmt: skip
_TALLEST = tuple(
    types for types in TYPES
    if types[0] in ("float16", "bfloat16", "tfloat32", "int8", "float8_e4m3fn") and types[2] != "uint8"
)  # fmt: skip


def _factor(dtype: str, meta: str) -> int:
    """Elements of K that one element of metadata describes."""
    return DTYPES[meta].bits // 4 * (2 if DTYPES[dtype].bits == 32 else 4)


def _body(
    types: tuple[str, str, str], tile: tuple[int, int, int], turned: tuple[bool, bool, bool], stages: int, along: str
) -> str:
    """Return the statements of a block; ``along`` is the extent of K."""
    (dtype, acc, meta), (m, n, bk), (ta, te, tb) = types, tile, turned
    f = _factor(dtype, meta)
    shapes = {
        "A": (m, bk // 2)[:: -1 if ta else 1],
        "E": (m, bk // f)[:: -1 if te else 1],
        "B": (bk, n)[:: -1 if tb else 1],
    }
    row, column = f"by * {m}", f"bx * {n}"
    corner = {
        "A": f"ko * {bk // 2}, {row}" if ta else f"{row}, ko * {bk // 2}",
        "E": f"ko * {bk // f}, {row}" if te else f"{row}, ko * {bk // f}",
        "B": f"{column}, ko * {bk}" if tb else f"ko * {bk}, {column}",
    }  # fmt: skip
    return f'''
        A_s = T.alloc_shared({shapes["A"]}, "{dtype}")
        E_s = T.alloc_shared({shapes["E"]}, "{meta}")
        B_s = T.alloc_shared({shapes["B"]}, "{dtype}")
        C_f = T.alloc_fragment(({m}, {n}), "{acc}")
        T.clear(C_f)
        for ko in T.Pipelined(T.ceildiv({along}, {bk}), num_stages={stages}):
            T.copy(A[{corner["A"]}], A_s)
            T.copy(E[{corner["E"]}], E_s)
            T.copy(B[{corner["B"]}], B_s)
            T.gemm_sp(A_s, E_s, B_s, C_f, transpose_A={ta}, transpose_E={te}, transpose_B={tb})
        T.copy(C_f, C[{row}, {column}])
    '''


def _unit(
    types: tuple[str, str, str], tile: tuple[int, int, int], turned: tuple[bool, bool, bool], stages: int = 2,
    blocks: tuple[int, int] = (1, 1), along: int = 0,
) -> Unit:  # fmt: skip
    """Return a product; ``along`` is the extent of K, or 0 for a symbol."""
    (dtype, acc, meta), (m, n, bk), (ta, te, tb) = types, tile, turned
    f, (wide, high) = _factor(dtype, meta), blocks
    rows, columns = m * high, n * wide
    depth: tuple[int | str, ...] = (along // 2, along // f, along) if along else ("k // 2", f"k // {f}", "k")
    whole = {
        "A": (rows, depth[0])[:: -1 if ta else 1], "E": (rows, depth[1])[:: -1 if te else 1],
        "B": (depth[2], columns)[:: -1 if tb else 1]
    }  # fmt: skip

    def data(rng: np.random.Generator, k: int) -> Data:
        dense = _semi_sparse(rng, rows, k, dtype)
        kept, metadata = _compress(dense, dtype, meta)
        b = numbers(rng, (columns, k) if tb else (k, columns), dtype, -2, 2)
        return {
            **({} if along else {"k": k}), "A": stored(kept.T if ta else kept, dtype), "B": b, "dense": dense,
            "E": _copied(metadata.T if te else metadata, meta),
        }  # fmt: skip

    def want(d: Data) -> Array:
        b = values(d["B"], dtype).astype(np.float64)
        product: Array = d["dense"] @ (b.T if tb else b)
        return product.astype(np.int64) if DTYPES[acc].is_integer else product

    params = [
        tensor("A", dtype, *whole["A"]),
        tensor("E", meta, *whole["E"]),
        tensor("B", dtype, *whole["B"]),
        output("C", acc, rows, columns),
    ]
    launches = {f"k{k}": lambda rng, k=k: data(rng, k) for k in ((along,) if along else (bk, 3 * bk))}
    marks = "".join("t" if t else "n" for t in turned)
    name = f"{dtype}-{meta}-{m}x{n}x{bk}-{marks}{f'-{along}' if along else ''}"
    name += f"-{wide}x{high}" if wide * high > 1 else ""
    name = f"#3037-{name}" if DTYPES[dtype].bits == 8 else name
    return one(
        "gemm_sp", name, params, _body(types, tile, turned, stages, str(along or "k")), want, launches, VALUE,  # type: ignore[arg-type]
        symbols=() if along else ("k",), grid=f"{wide}, {high}", axes="(bx, by)",
    )  # fmt: skip


def _semi_sparse(rng: np.random.Generator, m: int, k: int, dtype: str) -> Array:
    """Small integers, at most 2 of 4 (1 of 2 for 32-bit types) non-zero.

    Every mask occurs, the empty one too.

    Every mask occurs, the empty one too.
    """
    low = 0 if DTYPES[dtype].kind == "uint" else -3
    dense = rng.integers(low, 4, (m, k)).astype(np.float64)
    group, kept = (2, 1) if DTYPES[dtype].bits == 32 else (4, 2)
    order = rng.random((m, k // group, group)).argsort(axis=-1)
    count = rng.integers(0, kept + 1, (m, k // group, 1))
    return np.where(order < count, dense.reshape(m, -1, group), 0).reshape(m, k)


def _compress(dense: Array, dtype: str, meta: str) -> tuple[Array, Array]:
    """Values and metadata, through the library: the kernel must read what it writes."""
    kept, metadata = sparse.compress(stored(dense, dtype), meta_dtype=meta)
    return values(np.asarray(kept).view(DTYPES[dtype].numpy()), dtype), np.asarray(metadata)


def _copied(array: Array, dtype: str) -> Array:
    out = poisoned(array.shape, dtype)
    out[...] = array
    return out


def _refusals() -> list[Unit]:
    def body(a: tuple[int, ...], e: tuple[int, ...], b: tuple[int, ...], types: tuple[str, str, str, str]) -> str:
        names = zip(("a", "e", "b", "c"), (a, e, b, (16, 16)), types, strict=True)
        return "\n".join([*(f"{n} = T.alloc_shared({s}, '{t}')" for n, s, t in names), "T.gemm_sp(a, e, b, c)"])

    f = ("float16", "int16", "float16", "float32")
    return [
        refused("gemm_sp", "illegal-k", body((16, 32), (16, 4), (32, 16), f), "K219"),
        refused("gemm_sp", "illegal-metadata-shape", body((16, 32), (16, 8), (64, 16), f), "K219"),
        refused("gemm_sp", "illegal-metadata-type",
            body((16, 32), (16, 4), (64, 16), ("float16", "float16", "float16", "float32")), "K211"),
        refused("gemm_sp", "illegal-type",
            body((16, 32), (16, 4), (64, 16), ("float64", "int16", "float64", "float64")), "K211"),
        refused("gemm_sp", "illegal-mix", body((16, 32), (16, 4), (64, 16), ("int8", "int16", "float16", "float32")),
            "K208"),
    ]  # fmt: skip
