"""Products with work of threads beside them: operands that they convert, totals of scaled products.

Storages, scales, zeros, conditions, trips and tails of operands that threads convert after their copy; products that
each iteration begins anew and adds to a total, multiplied by a scale of the iteration.

Data are small integers and scales powers of two: every product and sum is exact, so the result must be equal.
"""

from __future__ import annotations

import numpy as np

from tile_core.testing.case import VALUE, Data, Unit, one, output, tensor
from tile_core.testing.data import Array, numbers, stored, values
from tile_core.testing.source import lines

#: Storage of the operand, the elements of one of its words, the bits before them, and element ``e`` of a word.
SOURCES: dict[str, tuple[str, int, int, str]] = {
    "int4": ("int4", 1, 0, "q[{at}]"), "uint4": ("uint4", 1, 0, "q[{at}]"),
    "float4": ("float4_e2m1fn", 1, 0, "q[{at}]"), "int8": ("int8", 1, 0, "q[{at}]"),
    "fp8": ("float8_e4m3fn", 1, 0, "q[{at}]"), "float16": ("float16", 1, 0, "q[{at}]"),
    "bytes": ("uint8", 2, 0, '(T.cast(q[{at}], "int32") >> ({e} * 4) & 15)'),
    "signed": ("uint8", 2, 0, '((T.cast(q[{at}], "int32") >> ({e} * 4) & 15 ^ 8) - 8)'),
    "words": ("int32", 8, 0, "((q[{at}] >> ({e} * 4) & 15) - 8)"),
    "long words": ("int64", 16, 0, "((q[{at}] >> ({e} * 4) & 15) - 8)"),
    "high bits": ("int64", 2, 40, "((q[{at}] >> ({e} * 4 + 40) & 15) - 8)"),
}  # fmt: skip
#: Storages that a program may hold in packed order.
PACKED = ("int4", "uint4", "float4_e2m1fn")
#: Values of the operand from the element ``x``, its scale ``s``, its zero ``z``, and the first scale ``f`` of its row.
VALUES = {
    "scaled": 'T.cast({x}, "{kind}") * {s}', "plain": 'T.cast({x}, "{kind}")',
    "zeros": '(T.cast({x}, "{kind}") - T.cast({z}, "{kind}")) * {s}',
    "mask": 'T.if_then_else(i != 1, T.cast({x}, "{kind}"), 0)',
    "positive": 'T.cast(T.max(T.cast({x}, "float32"), 0) * T.cast({s}, "float32"), "{kind}")',
    # The same element under a condition of its group, and under one of elements in it.
    "steps": 'T.cast({x}, "{kind}") * T.if_then_else(o + j // 32 > 0, {s}, 1) * T.if_then_else(j % 16 >= 8, {s}, 1)',
    # The same element under a condition of the block, and under one of the iteration.
    "conditions": 'T.cast({x}, "{kind}") * T.if_then_else(bx > 0, {f}, 1) * T.if_then_else(o > 1, {f}, 1)',
}  # fmt: skip
#: Statements of an iteration behind the operands: one product of all, or a total of scaled ones.
PRODUCTS = {
    "sum": ("T.gemm(a, w, c, transpose_B=True)",),
    "total": (
        "T.gemm(a, w, p, transpose_B=True, clear_accum=True)", "for i, j in T.Parallel({m}, {n}):",
        '    c[i, j] += p[i, j] * T.cast(S[bx * {n} + j, o * {k} // {group}], "float32")',
    ),
}  # fmt: skip
#: Storage, value, element type, tile, iterations, stages, threads, rows and columns outside of the tensors, product,
#: whether threads read the tensor without a copy, and whether its elements are in packed order.
_UNITS = (
    ("int4", "scaled", "float16", (16, 64, 32), 5, 3, 128, (0, 3)),
    ("uint4", "zeros", "bfloat16", (64, 32, 64), 3, 2, 128, (1, 0)),
    ("float4", "scaled", "bfloat16", (8, 64, 32), 2, 2, 64, (0, 0)),
    ("int8", "conditions", "float16", (64, 64, 32), 4, 3, 128, (7, 5)),
    ("fp8", "positive", "bfloat16", (16, 64, 64), 1, 3, 128, (15, 1)),
    ("float16", "mask", "float16", (17, 40, 32), 3, 0, 96, (0, 0)),
    ("bytes", "zeros", "float16", (16, 64, 64), 2, 2, 256, (5, 0)),
    ("signed", "plain", "bfloat16", (64, 64, 32), 0, 2, 128, (0, 0)),
    ("words", "scaled", "bfloat16", (9, 64, 128), 3, 4, 128, (1, 7)),
    ("long words", "conditions", "bfloat16", (16, 32, 64), 3, 2, 128, (0, 1)),
    ("high bits", "scaled", "float16", (16, 64, 32), 2, 0, 128, (3, 0)),
    ("int4", "conditions", "bfloat16", (48, 64, 64), 3, 3, 128, (0, 0)),
    ("float16", "plain", "float16", (128, 64, 32), 5, 4, 256, (3, 1), "total"),
    ("int8", "scaled", "bfloat16", (64, 64, 64), 3, 2, 128, (0, 0), "total"),
    ("int4", "zeros", "float16", (16, 64, 64), 1, 3, 128, (5, 0), "total"),
    ("int4", "scaled", "float16", (16, 64, 64), 5, 3, 128, (3, 7), "sum", True),
    ("uint4", "conditions", "bfloat16", (64, 64, 64), 3, 2, 256, (0, 0), "sum", True),
    ("float4", "zeros", "float16", (17, 40, 32), 2, 3, 96, (1, 3), "sum", True),
    ("fp8", "mask", "bfloat16", (64, 64, 64), 4, 4, 128, (0, 1), "total", True),
    ("words", "scaled", "float16", (16, 64, 128), 3, 3, 128, (5, 0), "sum", True),
    ("bytes", "zeros", "bfloat16", (16, 64, 64), 0, 2, 128, (0, 0), "sum", True),
    ("high bits", "positive", "float16", (48, 32, 32), 1, 3, 64, (0, 5), "sum", True),
    ("int4", "scaled", "bfloat16", (16, 64, 128), 3, 3, 128, (1, 5), "sum", False, True),
    ("uint4", "zeros", "float16", (64, 40, 64), 2, 2, 128, (0, 3), "sum", False, True),
    ("float4", "conditions", "bfloat16", (17, 32, 32), 3, 3, 96, (0, 1), "sum", False, True),
    ("int4", "mask", "float16", (16, 64, 32), 4, 2, 128, (3, 7), "total", True, True),
    ("int4", "steps", "float16", (16, 64, 64), 4, 3, 128, (0, 3)),
)
_GROUP = 32


def units() -> list[Unit]:
    """Return the units of this table."""
    return [_unit(*given) for given in _UNITS]


def element(source: str, corner: tuple[str, str] | None = None, turned: bool = False) -> str:
    """Return element ``j`` of row ``i`` of a tile ``q`` of words.

    With a corner, it is an element of the tensor ``W``; ``turned``: rows of elements are columns of ``W``.
    """
    _, per, _, text = SOURCES[source]
    row, column = ("i", "j") if corner is None else (f"{corner[0]} + i", f"{corner[1]} + j")
    word = f"({column}) // {per}" if per > 1 and corner else f"{column} // {per}" if per > 1 else column
    at = f"{word}, {row}" if turned else f"{row}, {word}"
    found = text.format(at=at, e=f"(j % {per})" if per > 1 else "")
    return found if corner is None else found.replace("q[", "W[")


def _unit(
    source: str, value: str, kind: str, tile: tuple[int, int, int], trips: int, stages: int, threads: int,
    outside: tuple[int, int], product: str = "sum", direct: bool = False, packed: bool = False,
) -> Unit:  # fmt: skip
    storage, per = SOURCES[source][:2]
    (bm, bn, bk), k = tile, max(1, trips) * tile[2]
    m, n = bm - outside[0], 2 * bn - outside[1]
    at = f"bx * {bn} + i, (o * {bk} + j) // {_GROUP}"
    x = element(source, (f"bx * {bn}", f"o * {bk}") if direct else None)
    form = VALUES[value].format(x=x, s=f"S[{at}]", z=f"Z[{at}]", f=f"S[bx * {bn} + i, 0]", kind=kind)
    nested = "\n            ".join(PRODUCTS[product]).format(m=bm, n=bn, k=bk, group=_GROUP)
    body = lines(f"""
        a = T.alloc_shared(({bm}, {bk}), "{kind}")
        q = T.alloc_shared(({bn}, {bk // per}), "{storage}")
        w = T.alloc_shared(({bn}, {bk}), "{kind}")
        c = T.alloc_fragment(({bm}, {bn}), "float32")
        p = T.alloc_fragment(({bm}, {bn}), "float32")
        T.clear(c)
        for o in T.Pipelined({trips}, num_stages={stages}):
            T.copy(A[0, o * {bk}], a)
            {"pass" if direct else f"T.copy(W[bx * {bn}, o * {bk // per}], q)"}
            for i, j in T.Parallel({bn}, {bk}):
                w[i, j] = {form}
            {nested}
        T.copy(c, B[0, bx * {bn}])
    """)

    def data(rng: np.random.Generator) -> Data:
        words = (n, k // per)
        return {
            "A": numbers(rng, (m, k), kind, -3, 3), "Z": numbers(rng, (n, k // _GROUP), "int8", -2, 2),
            "S": stored(2.0 ** rng.integers(-1, 2, (n, k // _GROUP)), kind),
            "W": numbers(rng, words, storage, -3, 3) if per == 1 else stored(_any_words(rng, words, storage), storage),
        }  # fmt: skip

    def want(d: Data) -> Array:
        if not trips:
            return np.zeros((m, n))
        x = _elements(d["W"], source, (n, k)).astype(np.float64)
        scales = values(d["S"], kind)
        s, z = (np.repeat(v, _GROUP, 1) for v in (scales, values(d["Z"], "int8").astype(np.float64)))
        first, rows, ks = scales[:, :1], np.arange(n)[:, None], np.arange(k)
        others = {
            "scaled": x * s, "plain": x, "zeros": (x - z) * s, "positive": np.maximum(x, 0) * s,
            "mask": x * (rows % bn != 1), "steps": x * np.where(ks >= 32, s, 1) * np.where(ks % 16 >= 8, s, 1),
            "conditions": x * np.where(rows >= bn, first, 1) * np.where(ks >= 2 * bk, first, 1),
        }  # fmt: skip
        a, w = values(d["A"], kind), others[value]
        steps = [a[:, at : at + bk] @ w[:, at : at + bk].T for at in range(0, k, bk)]
        by = [scales[:, o * bk // _GROUP] if product == "total" else np.ones(n) for o in range(trips)]
        return np.asarray(np.sum([x * s for x, s in zip(steps, by, strict=True)], 0))

    params = [
        tensor("A", kind, m, k), tensor("W", storage, n, k // per), tensor("S", kind, n, k // _GROUP),
        tensor("Z", "int8", n, k // _GROUP), output("B", "float32", m, n),
    ]  # fmt: skip
    ends = f"{trips}" + "-total" * (product == "total") + "-direct" * direct + "-packed" * packed
    name = "-".join((source.replace(" ", "-"), value, kind, "x".join(map(str, tile)), ends))
    given = {"grid": "2", "threads": threads, "packed": ("W",) * packed}
    return one("converted_operands", name, params, body, want, {"": data}, VALUE, **given)


def _any_words(rng: np.random.Generator, shape: tuple[int, int], dtype: str) -> Array:
    kind = np.iinfo(dtype)
    words: Array = rng.integers(kind.min, kind.max, shape, dtype=dtype, endpoint=True)
    return words


def _elements(words: Array, source: str, shape: tuple[int, int]) -> Array:
    """Return the numbers that words hold."""
    storage, per, before, _ = SOURCES[source]
    if per == 1:
        return values(words, storage, shape)
    bits = words.astype(np.int64)[..., None] >> (4 * np.arange(per) + before)
    codes: Array = (bits & 15).reshape(shape)
    return codes if source == "bytes" else (codes ^ 8) - 8 if source == "signed" else codes - 8
