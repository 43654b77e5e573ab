"""Rows of the support table: tile ops with element types and scopes.

The site shows what each target does with them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import partial
from typing import Any

from tile_core.dtypes import DTYPES
from tile_core.errors import KernelError
from tile_core.ops import atomic, dp4a, fp8, gemm, gemm_scaled, gemm_sp, reduce, scan
from tile_core.records import dataclass
from tile_core.testing.case import one, tensor
from tile_core.testing.run import load

#: Rows, columns and depth of the tiles of all programs, and their threads. Products are larger where a target's
#: instructions are.
SIZE = 32
#: Columns of what is reduced: more than two vectors of any CPU.
LONG = 256
THREADS = 128
FLOATS = tuple(n for n, d in DTYPES.items() if d.is_float)
INTEGERS = tuple(n for n, d in DTYPES.items() if d.is_integer)
ACCUMULATORS = ("float32", "float16", "bfloat16", "float64", "int32", "int64", "uint32", "uint64")
STAGED = ("shared", "shared", "fragment")
_MIXED = (("float16", "bfloat16"), ("float16", "float8_e4m3fn"), ("float8_e4m3fn", "float8_e5m2"), ("int8", "uint8"))


@dataclass(frozen=True, eq=False)  # rows are keys of caches, and their fields are not hashable
class Row:
    """One tile op with the facts that tables of legality constrain.

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
    shapes
        Shape by operand, if not ``SIZE`` by ``SIZE``.
    call
        The statements, with operands in braces; empty for a call with all operands, in the order of ``types``.
    result
        The operand that the op writes.
    reads_result
        Whether the op also reads it.
    others
        Element types of parameters that no table constrains.
    build
        Returns the row of a product for given M, N and K.
    """

    name: str
    op: str
    types: Mapping[str, str]
    scopes: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    call: str = ""
    result: str = "dst"
    reads_result: bool = False
    others: Mapping[str, str] = field(default_factory=dict)
    build: Callable[..., Row] | None = None

    def at(self, sizes: Mapping[str, int]) -> Row:
        """Return the row for other sizes of a product."""
        return self if self.build is None or sizes == self.sizes else self.build(**sizes)

    def __str__(self) -> str:
        parts = (
            f"{operand}={self.types[operand]}@{self.scopes.get(operand, '')}".rstrip("@") for operand in self.types
        )
        return f"{self.name}({', '.join(parts)})"

    def text(self) -> str:
        """Return a kernel with this op, which stages operands in their scopes."""
        call = self.call or f"T.{self.name}({', '.join(f'{{{name}}}' for name in self.types)})"
        types = {name: dtype for name, dtype in self.types.items() if f"{{{name}}}" in call}
        params, before, named, after = [], [], {}, []
        for name, dtype in {**types, **self.others}.items():
            shape, scope = self.shapes.get(name, (SIZE, SIZE)), self.scopes.get(name, "global")
            params.append(tensor(name, dtype, *shape))
            named[name] = name
            if scope != "global":
                named[name] = f"{name}_tile"
                before.append(f'{name}_tile = T.alloc_{scope}({shape}, "{dtype}")')
                before += [f"T.copy({name}, {name}_tile)"] * (name != self.result or self.reads_result)
                after += [f"T.copy({name}_tile, {name})"] * (name == self.result)
        body = "\n".join([*before, call.format(**named), *after])
        return one(self.op, self.name, params, body, dict, {}, threads=THREADS).text()

    def program(self) -> Any:
        """Return the kernel, traced."""
        return load(self.text(), str(self))


def accepted(check: Callable[..., object], *args: object) -> bool:
    """Return whether an op's check of its element types takes them."""
    try:
        check(*args)
    except KernelError:
        return False
    return True


def support() -> tuple[Row, ...]:
    """Return all rows of the support table, in its order."""
    found = (_products, _sparse, _scaled, _block_scaled, _copies, _fills, _rows, _reductions, _atomics, _views)
    return tuple(row for rows in found for row in rows())


def is_product(a: str, b: str, c: str) -> bool:
    """Return whether the language has products of these types."""
    return accepted(gemm.check_types, "gemm", DTYPES[a], DTYPES[b], DTYPES[c])


def _products() -> Iterator[Row]:
    """Yield the rows of the support table: types of staged operands, then scopes."""
    shared, more = ("shared", "fragment", "global"), ("fragment", "shared", "global")
    pairs = [*((t, t) for t in (*FLOATS, *INTEGERS)), *_MIXED]
    staged = [((a, b, c), STAGED) for (a, b), c in itertools.product(pairs, ACCUMULATORS) if is_product(a, b, c)]
    half = "float16", "float16", "float32"
    others = [(half, scopes) for scopes in itertools.product(shared, shared, more) if scopes != STAGED]
    for types, scopes in (*staged, *others):
        yield _dense(types, scopes, SIZE, SIZE, SIZE)


def _dense(types: tuple[str, ...], scopes: tuple[str, ...], M: int, N: int, K: int) -> Row:
    a, b = (dict(zip("ABC", x, strict=True)) for x in (types, scopes))
    call, shape_of_b = _second_operand("T.gemm({A}, {B}, {C}", types[1], N, K)
    return Row(
        "gemm", "gemm", a, b, {"M": M, "N": N, "K": K}, {"A": (M, K), "B": shape_of_b, "C": (M, N)}, call, "C",
        reads_result=True, build=partial(_dense, types, scopes),
    )  # fmt: skip


def _second_operand(call: str, dtype: str, N: int, K: int) -> tuple[str, tuple[int, int]]:
    """Return a call and the shape of B: transposed, where `wgmma` and `tcgen05` need columns along K."""
    if DTYPES[dtype].bits < 16 or dtype == "tfloat32":
        return f"{call}, transpose_B=True)", (N, K)
    return f"{call})", (K, N)


def _sparse() -> Iterator[Row]:
    """Yield the rows of the support table: types, metadata, and operands in global memory."""
    staged = {"A": "shared", "E": "shared", "B": "shared", "C": "fragment"}
    pairs = itertools.product((*FLOATS, *INTEGERS), ACCUMULATORS)
    types = [(a, c, "int16") for a, c in pairs if a in gemm_sp.ELEMENTS and is_product(a, a, c)]
    half = ("float16", "float32")
    types += [(*half, e) for e in gemm_sp.METADATA if e != "int16"]
    rows = [(x, staged) for x in types] + [((*half, "int16"), {**staged, operand: "global"}) for operand in "AEB"]
    for combination, scopes in rows:
        yield _sparse_one(combination, scopes, SIZE, SIZE, SIZE)


def _sparse_one(types: tuple[str, str, str], scopes: Mapping[str, str], M: int, N: int, K: int) -> Row:
    a, c, e = types
    call, shape_of_b = _second_operand("T.gemm_sp({A}, {E}, {B}, {C}", a, N, K)
    metadata = (M, K // gemm_sp.e_factor(DTYPES[a], DTYPES[e]))
    return Row(
        "gemm_sp", "gemm_sp", {"A": a, "B": a, "C": c, "E": e}, scopes, {"M": M, "N": N, "K": K},
        {"A": (M, K // 2), "B": shape_of_b, "C": (M, N), "E": metadata}, call, "C", reads_result=True,
        build=partial(_sparse_one, types, scopes),
    )  # fmt: skip


def _scaled() -> Iterator[Row]:
    """Yield the rows of the support table: the product of each two formats."""
    for a, b in itertools.product(fp8.FORMATS, fp8.FORMATS):
        yield _scaled_one(a, b, SIZE, SIZE, SIZE)


def _scaled_one(a: str, b: str, M: int, N: int, K: int) -> Row:
    shapes = {"A": (M, K), "B": (N, K), "C": (M, N), "rows": (M,), "columns": (N,)}
    return Row(
        "fp8_scaled_matmul", "gemm", {"A": a, "B": b, "C": "float32"},
        {"A": "shared", "B": "shared", "C": "fragment"}, {"M": M, "N": N, "K": K}, shapes,
        "T.fp8_scaled_matmul({A}, rows, {B}, columns, {C}, transpose_B=True)", "C",
        others={"rows": "float32", "columns": "float32"}, build=partial(_scaled_one, a, b),
    )  # fmt: skip


def _block_scaled() -> Iterator[Row]:
    """Yield the rows of the support table: a power of two scales 32 elements."""
    for a, b in itertools.product(gemm_scaled.ELEMENTS, gemm_scaled.ELEMENTS):
        yield _block_scaled_one(a, b, SIZE, SIZE, SIZE)


def _block_scaled_one(a: str, b: str, M: int, N: int, K: int) -> Row:
    call = f"""
s = T.alloc_shared(({M}, {K // 32}), "float8_e8m0fnu")
t = T.alloc_shared(({N}, {K // 32}), "float8_e8m0fnu")
T.copy(rows, s)
T.copy(columns, t)
T.gemm_scaled({{A}}, s, {{B}}, t, {{C}}, transpose_B=True)"""
    shapes = {"A": (M, K), "B": (N, K), "C": (M, N), "rows": (M, K // 32), "columns": (N, K // 32)}
    return Row(
        "gemm_scaled", "gemm_scaled", {"A": a, "B": b, "C": "float32"},
        {"A": "shared", "B": "shared", "C": "fragment"}, {"M": M, "N": N, "K": K}, shapes, call, "C", reads_result=True,
        others={"rows": "float8_e8m0fnu", "columns": "float8_e8m0fnu"}, build=partial(_block_scaled_one, a, b),
    )  # fmt: skip


def _copies() -> Iterator[Row]:
    """Yield the rows of the support table: a pipelined load, then copies between scopes."""
    for dtype in DTYPES:
        types, wide = {"src": dtype, "dst": dtype}, (SIZE, LONG)
        pipelined = f"""
tile = T.alloc_shared((32, 32), "{dtype}")
for k in T.Pipelined(8, num_stages=2):
    T.copy({{src}}[0, k * 32], tile)
    for i, j in T.Parallel(32, 32):
        B[i, k * 32 + j] = tile[i, j]"""
        yield Row(
            "pipelined copy", "copy", types, {"src": "global", "dst": "shared"}, {}, {"src": wide, "B": wide},
            pipelined, others={"B": dtype},
        )  # fmt: skip
        for src, dst in (("shared", "fragment"), ("fragment", "global"), ("shared", "global")):
            yield Row("copy", "copy", types, {"src": src, "dst": dst})


def _fills() -> Iterator[Row]:
    """Yield the rows of the support table."""
    for dtype in DTYPES:
        yield Row("fill", "fill", {"dst": dtype}, {"dst": "fragment"}, call="T.fill({dst}, 1)")
        yield Row("transpose", "transpose", {"src": dtype, "dst": dtype}, {"src": "shared", "dst": "shared"})


def _rows() -> Iterator[Row]:
    """Yield the rows of the support table."""
    calls = (
        ("gather", "T.gather({src}, rows, {dst})", {"src": "global", "dst": "shared"}),
        ("scatter", "T.scatter({src}, {dst}, rows)", {"src": "shared", "dst": "global"}),
    )
    for name, call, scopes in calls:
        for dtype in DTYPES:
            types, others = {"src": dtype, "dst": dtype}, {"rows": "int32"}
            yield Row(name, name, types, scopes, shapes={"rows": (SIZE,)}, call=call, others=others)


def _reductions() -> Iterator[Row]:
    """Yield the rows of the support table: named reductions, indices of extremes, then scans."""
    found = []
    for kind, (name, d) in itertools.product(reduce.KINDS, DTYPES.items()):
        out = "bool" if kind in ("any", "all") else name
        if accepted(reduce.check_types, f"reduce_{kind}", kind, d, DTYPES[out]):
            found.append((f"reduce_{kind}", "reduce", name, out))
    found += [(kind, "fold", name, "int32") for kind in ("argmax", "argmin") for name in DTYPES]
    for kind, (name, d) in itertools.product(("sum", "prod", "max"), DTYPES.items()):
        if accepted(scan.check_types, f"cum{kind}", kind, d, d):
            found.append((f"cum{kind}", "scan", name, name))
    for name, op, src, dst in found:
        scopes = dict.fromkeys(("src", "dst"), "shared" if op == "scan" else "fragment")
        shapes = {"src": (4, LONG), "dst": (4, LONG) if op == "scan" else (4,)}
        call = f"T.{name}({{src}}, {{dst}}, dim=1)"
        yield Row(name, op, {"src": src, "dst": dst}, scopes, {"N": LONG}, shapes, call)


def _atomics() -> Iterator[Row]:
    """Yield the rows of the support table."""
    calls = {
        **{kind: f"T.atomic_{kind}({{dst}}[0], 1)" for kind in ("add", "max", "min", "and", "or", "xor")},
        "load": 'B[0] = T.atomic_load({dst}[0], memory_order="relaxed")',
        "store": 'T.atomic_store({dst}[0], 1, memory_order="relaxed")',
    }
    shapes = {"dst": (SIZE,), "B": (SIZE,)}
    for kind, dtype, scope in itertools.product(calls, DTYPES, ("global", "shared")):
        if accepted(atomic.check_types, "", kind, DTYPES[dtype]):
            name, others = f"atomic_{kind}", {"B": dtype} if kind == "load" else {}
            op = name if kind in ("load", "store") else "atomic"
            yield Row(
                name, op, {"dst": dtype}, {"dst": scope}, {}, shapes, calls[kind], reads_result=True, others=others
            )


def _views() -> Iterator[Row]:
    """Yield the rows of the support table, of ``T.dp4a`` and ``T.c2d_im2col``."""
    for a, c in zip(dp4a.FACTORS, dp4a.TOTALS, strict=True):
        scopes, of_four = dict.fromkeys("ABC", "global"), {"A": (4,), "B": (4,), "C": (1,)}
        yield Row("dp4a", "dp4a", {"A": a, "B": a, "C": c}, scopes, shapes=of_four)
    call = "T.c2d_im2col({img}, {col}, 0, 0, 2, 1, 1, 0)"
    for dtype in DTYPES:
        types, scopes, shapes = {"img": dtype, "col": dtype}, {"img": "global", "col": "shared"}, {"img": (1, 8, 8, 8)}
        yield Row("c2d_im2col", "c2d_im2col", types, scopes, shapes=shapes, call=call, result="col")
