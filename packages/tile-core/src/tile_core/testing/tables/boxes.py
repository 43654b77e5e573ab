"""Tiles with rows of whole 16 bytes, as copy engines move them in boxes.

Boxes have one to five dimensions.
"""

from __future__ import annotations

from math import prod
from typing import Any

from tile_core.dtypes import DTYPES
from tile_core.testing.case import Data, Launch, Part, Unit, output, tensor
from tile_core.testing.data import anything, numbers

_TYPES = (
    "uint8", "int8", "float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "int16", "float32", "int32", "uint32",
    "int64", "uint64", "float64",
)  # fmt: skip
_ATOMIC = ("float32", "float16", "bfloat16", "int32", "uint32", "int64", "uint64")
#: Extents of tiles in all dimensions but the last, and of how many more the tensor has.
_TILES = (((), ()), ((8,), (13,)), ((2, 4), (3, 1)), ((1, 2, 4), (2, 0, 3)), ((2, 1, 2, 3), (1, 1, 0, 2)))
_LOOPS = ("T.Pipelined({}, num_stages=3)", "T.serial({})", "T.Pipelined({}, num_stages=2)")


def units() -> list[Unit]:
    """Return the units of this table."""
    return [*(_moved(n, dtype) for n, dtype in enumerate(_TYPES)), *map(_whole_rows, ("uint8", "bfloat16", "float32"))]


def _whole_rows(dtype: str) -> Unit:
    """Move whole rows longer than any box: their bytes are contiguous."""
    shape, body = (
        (64, 13),
        f"""
        s = T.alloc_shared((16, 13), "{dtype}")
        for t in T.serial(4):
            T.copy(A[t * 16 : t * 16 + 16, :], s)
            T.copy(s, B[t * 16 : t * 16 + 16, :])
    """,
    )

    parts = {"": Part((output("B", dtype, *shape),), body, None)}
    launch = Launch(lambda rng: {"A": anything(rng, shape, dtype), "B": anything(rng, shape, dtype)})
    return Unit("copy", f"whole-rows-{dtype}", (tensor("A", dtype, *shape),), "", parts, {"": launch}, threads=96)


def _moved(n: int, dtype: str) -> Unit:
    """Move tiles along the first dimension in and out, the last partly outside.

    Then one tile alone.
    """
    wide = 128 // DTYPES[dtype].bits
    tile, more = _TILES[n % 5]
    block = (*tile, wide * (1, 2, 4, 8, 12)[n * 2 % 5])
    while prod(block) * DTYPES[dtype].bits < 1024:
        block = (block[0] * 2, *block[1:])
    grown = (*more, wide * (n % 2)) if more else (block[0] + wide,)
    shape = tuple(b + e for b, e in zip(block, grown, strict=True))
    trips, rest = -(-shape[0] // block[0]), ", 0" * (len(block) - 1)
    body = f"""
        s = T.alloc_shared({block}, "{dtype}")
        for t in {_LOOPS[n % 3].format(trips)}:
            T.copy(A[t * {block[0]}{rest}], s)
            T.copy(s, B[t * {block[0]}{rest}])
        r = T.alloc_shared({block}, "{dtype}")
        T.copy(A[0{rest}], r)
        T.copy(r, P)
    """

    parts = {"moved": Part((output("B", dtype, *shape), output("P", dtype, *block)), body, None)}
    reducible = dtype in _ATOMIC
    if reducible:
        add = f'''
            q = T.alloc_shared({block}, "{dtype}")
            T.copy(A[0{rest}], q)
            T.atomic_add(C[0{rest}], q)
        '''
        needs = frozenset({f"atomic:add:{dtype}"})
        parts["added"] = Part((output("C", dtype, *block),), add, None, needs=needs)

    def data(rng: Any) -> Data:
        make = numbers if reducible else anything
        found = {"A": make(rng, shape, dtype), "B": make(rng, shape, dtype)}
        return {**found, "C": numbers(rng, block, dtype)} if reducible else found

    name = f"boxes-{len(block)}d-{dtype}"
    return Unit(
        "copy", name, (tensor("A", dtype, *shape),), "", parts, {"": Launch(data)}, threads=(32, 96, 128)[n % 3]
    )
