"""Support of each tile op on each target, from the backends' legality tables.

A *row* is one tile op with element types and scopes; ``chosen`` reads from the tables the variant by which a target
lowers it. A test compiles the row's program for every target and compares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any

from pages.columns import targets
from tile_core.dtypes import DTYPES
from tile_core.errors.ops import GemmTypes
from tile_core.lowering.legality import Asked
from tile_core.lowering.variant import Variant
from tile_core.ops.atomic import BITS
from tile_core.ops.gemm import check_types
from tile_core.ops.gemm_sp import METADATA
from tile_core.ops.reduce import KINDS
from tile_core.plugins.manager import installed
from tile_core.target import ABSENT, Target

#: Rows, columns and depth of the tiles of all programs, and their threads.
SIZE = 32
#: Columns of what is reduced: more than two vectors of any CPU.
LONG = 256
THREADS = 128

FLOATS = tuple(n for n, d in DTYPES.items() if d.is_float)
INTEGERS = tuple(n for n, d in DTYPES.items() if d.is_integer)
SPARSE = tuple(n for n in (*FLOATS, *INTEGERS) if not DTYPES[n].is_packed and DTYPES[n].bits in (8, 16, 32))
ACCUMULATORS = ("float32", "float16", "bfloat16", "float64", "int32", "int64", "uint32", "uint64")
MIXED = (("float16", "bfloat16"), ("float16", "float8_e4m3fn"), ("float8_e4m3fn", "float8_e5m2"), ("int8", "uint8"))
ATOMIC = tuple(
    n for n, d in DTYPES.items() if (d.is_integer and d.bits >= 8) or (d.is_float and d.bits >= 16 and n != "tfloat32")
)


@dataclass(frozen=True)
class Row:
    """One tile op with the facts that tables constrain.

    Attributes
    ----------
    name
        As the program writes it, without ``T.``.
    op
        The op that variants lower.
    types, scopes
        Element type and scope by operand.
    sizes
        Size by axis, for a table of shapes.
    """

    name: str
    op: str
    types: Mapping[str, str]
    scopes: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = (
            f"{operand}={self.types[operand]}@{self.scopes.get(operand, '')}".rstrip("@") for operand in self.types
        )
        return f"{self.name}({', '.join(parts)})"

    def program(self) -> Any:
        """Return a kernel with this op."""
        from pages.support_programs import PROGRAMS

        return PROGRAMS[self.name if self.name in PROGRAMS else self.op](self)


def chosen(row: Row, target: Target) -> str:
    """Return a row's variant without options from the tables; empty if rejected."""
    absent = {str(name) for name in target.capabilities.fact(ABSENT)}
    if absent & {*row.types.values(), row.op}:
        return ""
    if row.op == "atomic" and not target.capabilities.supports_atomic(
        row.name.removeprefix("atomic_"), row.types["dst"]
    ):
        return ""
    asked = Asked(sizes=row.sizes, dtypes=row.types, scopes=row.scopes, threads=THREADS)
    mine = (v for v in variants(target) if v.op == row.op and not v.option)
    return next((v.name for v in mine if not v.legality.check(asked, v.name)), "")


def computes(row: Row, target: Target) -> tuple[str, ...]:
    """Return the instruction's types of A and B, if they differ from the row's."""
    name = chosen(row, target)
    if not name or "C" not in row.types:
        return ()
    asked = tuple(row.types[operand] for operand in "ABC")
    table = next(v.legality for v in variants(target) if v.name == name)
    found = next((atom.computes[:2] for atom in table.atoms if asked in atom.dtypes), ())
    return found if found != asked[:2] else ()


def fallback(target: Target, name: str) -> bool:
    """Return whether a variant is the op's plain loops."""
    return any(v.name == name and v.fallback for v in variants(target))


@cache
def variants(target: Target) -> tuple[Variant, ...]:
    """Return the variants of a target, the first choice first."""
    return tuple(sorted(installed().lowerings(target), key=lambda v: -v.priority))


@cache
def columns() -> dict[str, tuple[str, ...]]:
    """Return targets with distinct tables, each with its equivalents."""
    found: dict[tuple[object, ...], list[str]] = {}
    for text, target in targets().items():
        answers = ((chosen(row, target), computes(row, target)) for row in rows())
        found.setdefault((target.kind, *answers), []).append(text)
    return {mine[0]: tuple(mine) for mine in found.values()}


@cache
def rows() -> tuple[Row, ...]:
    """Return all rows, in the order of the page."""
    return (*_gemms(), *_sparse(), *_scaled(), *_block_scaled(), *_moves(), *_reductions(), *_atomics(), *_others())


def _gemms() -> Iterator[Row]:
    cube = dict.fromkeys("MNK", SIZE)
    staged = {"A": "shared", "B": "shared", "C": "fragment"}
    pairs = [*((t, t) for t in (*FLOATS, *INTEGERS)), *MIXED]
    for (a, b), c in product(pairs, ACCUMULATORS):
        if is_product(a, b, c):
            yield Row("gemm", "gemm", {"A": a, "B": b, "C": c}, staged, cube)
    combinations = product(
        ("shared", "fragment", "global"), ("shared", "fragment", "global"), ("fragment", "shared", "global")
    )
    for scopes in combinations:
        named = dict(zip("ABC", scopes, strict=True))
        if named != staged:
            yield Row("gemm", "gemm", {"A": "float16", "B": "float16", "C": "float32"}, named, cube)


def _sparse() -> Iterator[Row]:
    cube = dict.fromkeys("MNK", SIZE)
    staged = {"A": "shared", "E": "shared", "B": "shared", "C": "fragment"}
    for a, c in product(SPARSE, ACCUMULATORS):
        if is_product(a, a, c):
            yield Row("gemm_sp", "gemm_sp", {"A": a, "B": a, "C": c, "E": "int16"}, staged, cube)
    half = {"A": "float16", "B": "float16", "C": "float32"}
    yield from (Row("gemm_sp", "gemm_sp", {**half, "E": e}, staged, cube) for e in METADATA if e != "int16")
    for operand in "AEB":
        yield Row("gemm_sp", "gemm_sp", {**half, "E": "int16"}, {**staged, operand: "global"}, cube)


def _scaled() -> Iterator[Row]:
    from tile_core.ops.fp8 import FORMATS

    staged = {"A": "shared", "B": "shared", "C": "fragment"}
    for a, b in product(FORMATS, FORMATS):
        yield Row("fp8_scaled_matmul", "gemm", {"A": a, "B": b, "C": "float32"}, staged, dict.fromkeys("MNK", SIZE))


def _block_scaled() -> Iterator[Row]:
    from tile_core.ops.gemm_scaled import ELEMENTS

    staged = {"A": "shared", "B": "shared", "C": "fragment"}
    for a, b in product(ELEMENTS, ELEMENTS):
        types = {"A": a, "B": b, "C": "float32"}
        yield Row("gemm_scaled", "gemm_scaled", types, staged, dict.fromkeys("MNK", SIZE))


def _moves() -> Iterator[Row]:
    for dtype in DTYPES:
        yield Row("pipelined copy", "copy", {"src": dtype, "dst": dtype}, {"src": "global", "dst": "shared"})
        for src, dst in (("shared", "fragment"), ("fragment", "global"), ("shared", "global")):
            yield Row("copy", "copy", {"src": dtype, "dst": dtype}, {"src": src, "dst": dst})
        yield Row("fill", "fill", {"dst": dtype}, {"dst": "fragment"})
        yield Row("transpose", "transpose", {"src": dtype, "dst": dtype}, {"src": "shared", "dst": "shared"})
        yield Row("gather", "gather", {"src": dtype, "dst": dtype}, {"src": "global", "dst": "shared"})
        yield Row("scatter", "scatter", {"src": dtype, "dst": dtype}, {"src": "shared", "dst": "global"})


def _reductions() -> Iterator[Row]:
    axes = {"N": LONG}
    for kind, (name, d) in product(KINDS, DTYPES.items()):
        narrow = (d.is_narrow or name == "tfloat32") and kind not in ("max", "min", "absmax")
        truth = kind in ("any", "all")
        if not truth and (narrow or (name == "bool" and kind in ("sum", "abssum", "prod"))):
            continue
        if d.is_float and kind.startswith("bit"):
            continue
        if truth:
            types = {"src": name, "dst": "bool"}
            yield Row(f"reduce_{kind}", "reduce", types, {"src": "fragment", "dst": "fragment"}, axes)
            continue
        yield Row(f"reduce_{kind}", "reduce", {"src": name, "dst": name}, {"src": "fragment", "dst": "fragment"}, axes)
    for kind, name in product(("argmax", "argmin"), DTYPES):
        yield Row(kind, "fold", {"src": name, "dst": "int32"}, {"src": "fragment", "dst": "fragment"}, axes)
    for kind, (name, d) in product(("cumsum", "cumprod", "cummax"), DTYPES.items()):
        if not d.is_narrow and name != "bool" and (kind == "cummax" or name != "tfloat32"):
            yield Row(kind, "scan", {"src": name, "dst": name}, {"src": "shared", "dst": "shared"}, axes)


def _atomics() -> Iterator[Row]:
    kinds = ("add", "max", "min", "and", "or", "xor", "load", "store")
    for kind, dtype, scope in product(kinds, ATOMIC, ("global", "shared")):
        if kind in BITS and DTYPES[dtype].is_float:
            continue
        op = f"atomic_{kind}" if kind in ("load", "store") else "atomic"
        yield Row(f"atomic_{kind}", op, {"dst": dtype}, {"dst": scope})


def _others() -> Iterator[Row]:
    for a, c in (("int8", "int32"), ("uint8", "uint32")):
        yield Row("dp4a", "dp4a", {"A": a, "B": a, "C": c}, {"A": "global", "B": "global", "C": "global"})
    for dtype in DTYPES:
        yield Row("c2d_im2col", "c2d_im2col", {"img": dtype, "col": dtype}, {"img": "global", "col": "shared"})


def is_product(a: str, b: str, c: str) -> bool:
    """Return whether the language has products of these types."""
    try:
        check_types("gemm", DTYPES[a], DTYPES[b], DTYPES[c])
    except GemmTypes:
        return False
    return True
