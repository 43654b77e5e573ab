"""Dot-product instructions of CPUs, as data: each adds groups of narrow products to 32-bit lanes.

Operands are vectors, or tiles of rows, of 32-bit *words*: elements of ``group`` consecutive values of k. Instructions
of vectors that LLVM names have a text in LLVM's language, which ``build`` links into a module that calls them. The text
is inlined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.cpu.attributes import IMPORTED
from tile_core.cpu.isa import Isa
from tile_core.cpu.tile2d import vector_dtype
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.ops.gemm_scaled import ELEMENTS
from tile_core.records import dataclass

__all__ = ["DOTS", "TILES", "Dot", "Products", "dot_of", "imported", "products_of", "tiles_of"]

_PREFIX = "tile_dot_"
_EXTERN = "tirx.call_pure_extern"
#: Bits of the offset between signed and unsigned elements of 8 bits, in each byte of a word.
OFFSET = 0x80808080


@dataclass(frozen=True)
class Dot:
    """One instruction.

    Attributes
    ----------
    name
        The processor maker's name.
    features
        LLVM's features, all of which it needs.
    vector_bits
        Bits of each operand, or of a row of each.
    types
        Types of the elements of its two operands, and of its accumulators.
    intrinsic
        LLVM's name.
    flushes
        Whether subnormal operands, and subnormal results of each step, count as zero.
    """

    name: str
    features: frozenset[str]
    vector_bits: int
    types: tuple[str, str, str]
    intrinsic: str
    flushes: bool = False

    @property
    def group(self) -> int:
        """Products that each lane adds up."""
        return 2 if self.types[0] == "bfloat16" else 4

    @property
    def symbol(self) -> str:
        """Name of the function that stands for it."""
        return f"{self.name}_{self.vector_bits}"

    @property
    def lanes(self) -> int:
        """Accumulators of one instruction."""
        return self.vector_bits // 32

    def __call__(self, total: Expr, x: Expr, y: Expr) -> Expr:
        """Return ``total`` plus the products of vectors of words."""
        return _call(self.symbol, self.types[2], self.lanes, total, x, y)

    def text(self, *, exact: bool) -> str:
        """Return the function in LLVM's language, an exact one by multiplications of float32."""
        acc, element = _LLVM[self.types[2]], _LLVM[self.types[0]]
        total, words = f"<{self.lanes} x {acc}>", f"<{self.lanes} x i32>"
        operand = f"<{self.lanes * self.group} x {element}>"
        head = (
            f"define linkonce_odr {total} @{_PREFIX}{self.symbol}{'_exact' if exact else ''}"
            f"({total} %c, {words} %a, {words} %b) alwaysinline nounwind memory(none) {{\n"
        )
        if exact:
            return f"declare {total} @llvm.fma.v{self.lanes}f32({total}, {total}, {total})\n{head}{self._exact()}}}\n"
        return (
            f"declare {total} @{self.intrinsic}({total}, {operand}, {operand})\n{head}"
            f"  %x = bitcast {words} %a to {operand}\n  %y = bitcast {words} %b to {operand}\n"
            f"  %r = call {total} @{self.intrinsic}({total} %c, {operand} %x, {operand} %y)\n  ret {total} %r\n}}\n"
        )

    def exactly(self, total: Expr, x: Expr, y: Expr) -> Expr:
        """Return the same by multiplications of float32, whose subnormal numbers count."""
        return _call(f"{self.symbol}_exact", self.types[2], self.lanes, total, x, y)

    def _exact(self) -> str:
        words, total = f"<{self.lanes} x i32>", f"<{self.lanes} x float>"
        lines = []
        for side in "ab":
            lines += [
                f"%{side}0 = shl {words} %{side}, splat (i32 16)",
                f"%{side}1 = and {words} %{side}, splat (i32 -65536)",
                *(f"%{side}{i}f = bitcast {words} %{side}{i} to {total}" for i in (0, 1)),
            ]
        fma = f"call {total} @llvm.fma.v{self.lanes}f32({total}"
        lines += [f"%s = {fma} %a0f, {total} %b0f, {total} %c)", f"%r = {fma} %a1f, {total} %b1f, {total} %s)"]
        return "".join(f"  {line}\n" for line in [*lines, f"ret {total} %r"])


@dataclass(frozen=True)
class Products:
    """A product of matrices by one instruction.

    Attributes
    ----------
    dot
        The instruction.
    swapped
        Whether B's elements are its first operand.
    offset
        Whether the sign bits of A's elements are flipped, and 128 times the totals of B's columns taken off.
    checked
        Whether operands with tiny elements take multiplications of float32 instead.
    """

    dot: Dot
    swapped: bool = False
    offset: bool = False
    checked: bool = False

    def add(self, total: Expr, a: Expr, b: Expr) -> Expr:
        """Return ``total`` plus the products of words of A and B."""
        return self.dot(total, b, a) if self.swapped else self.dot(total, a, b)

    @property
    def note(self) -> str:
        """The instruction, for ``explain``."""
        extra = ", A with flipped signs" if self.offset else ", float32 for tiny elements" if self.checked else ""
        size = "tiles" if self.dot in TILES else f"{self.dot.vector_bits} bits"
        return f"{self.dot.name} of {size}{extra}"


def dot_of(isa: Isa, a: str, b: str, c: str, *, flush: bool = False) -> Products | None:
    """Return the best instruction for a product's element types; ``None`` if the processor has none.

    Parameters
    ----------
    a, b, c
        Types of the elements of A, B and C.
    flush
        Whether subnormal numbers may count as zero.
    """
    (a, b), exact = _held(a, b)
    have = _available(DOTS, isa, c)
    found = {d.types[:2]: d for d in reversed(have)}
    if (a, b) in found:
        dot = found[a, b]
        return Products(dot, checked=dot.flushes and not (flush or exact))
    if (b, a) in found:
        return Products(found[b, a], swapped=True)
    other = {"int8": "uint8", "uint8": "int8"}.get(a, a)
    if (other, b) in found:
        return Products(found[other, b], offset=True)
    return Products(found[b, other], swapped=True, offset=True) if (b, other) in found else None


def tiles_of(isa: Isa, a: str, b: str, c: str, *, flush: bool = False) -> Products | None:
    """Return the same of the instructions that multiply tiles."""
    types, exact = _held(a, b)
    found = next((d for d in _available(TILES, isa, c) if d.types[:2] == types), None)
    return None if found is None else Products(found, checked=found.flushes and not (flush or exact))


def products_of(isa: Isa, a: str, b: str, c: str) -> Products | None:
    """Return the best instruction of either kind."""
    return tiles_of(isa, a, b, c) or dot_of(isa, a, b, c)


def _held(*dtypes: str) -> tuple[tuple[str, ...], bool]:
    """Return the types of elements that an instruction multiplies, and whether no product is subnormal.

    bfloat16 holds narrow floats. Their products, and the totals of these, are multiples of 2**-50.
    """
    return tuple("bfloat16" if d in ELEMENTS else d for d in dtypes), all(d in ELEMENTS for d in dtypes)


def _available(table: tuple[Dot, ...], isa: Isa, c: str) -> list[Dot]:
    acc = {"uint32": "int32", "bfloat16": "float32", "float16": "float32"}.get(c, c)
    return [
        d for d in table if d.vector_bits == isa.vector_bits and d.features.issubset(isa.features) and d.types[2] == acc
    ]


def imported(body: Stmt, isa: Isa, texts: Sequence[str] = ()) -> Stmt:
    """Return the statement with the texts of the instructions that it calls, and with others."""
    names = _called(body)
    if not names and not texts:
        return body
    # An exact function replaces an instruction whose features were disabled.
    dots = [
        text
        for dot in (*DOTS, *TILES)
        if names & {dot.symbol, f"{dot.symbol}_exact"}
        for text in _texts(dot, names, available=not any(f"-{off}" in isa.mattr for off in _without(dot)))
    ]
    text = ir.StringImm("\n".join([*texts, *dots]))
    return nodes.mark(IMPORTED, 0, body, value=text)


def _texts(dot: Dot, names: set[str], *, available: bool) -> list[str]:
    if not dot.flushes:
        return [dot.text(exact=False)]
    exact = dot.text(exact=True)
    if dot.symbol not in names:
        return [exact]
    if available:
        return [dot.text(exact=False), exact]
    return [exact, exact.partition("\n")[2].replace(f"@{_PREFIX}{dot.symbol}_exact", f"@{_PREFIX}{dot.symbol}")]


def _without(dot: Dot) -> frozenset[str]:
    """Return features whose absence disables an instruction in LLVM."""
    return dot.features | ({"avx512bw"} if "avx512bf16" in dot.features else frozenset())


def _called(body: Stmt) -> set[str]:
    calls = (c for c in collect(body, ir.Call) if str(getattr(c.op, "name", "")) == _EXTERN)
    names = (str(c.args[0].value) for c in calls)
    return {name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX)}


def _call(name: str, acc: str, lanes: int, *args: Expr) -> Expr:
    return tirx.call_pure_extern(vector_dtype(acc, lanes), f"{_PREFIX}{name}", *args)


def _rows(*rows: tuple[str, str, int, tuple[str, str, str], str]) -> tuple[Dot, ...]:
    return tuple(
        Dot(name, frozenset(features.split()), bits, types, f"llvm.{intrinsic}", flushes="bfloat16" in types)
        for name, features, bits, types, intrinsic in rows
    )


_LLVM: Mapping[str, str] = {"bfloat16": "bfloat", "float32": "float", "int8": "i8", "uint8": "i8", "int32": "i32"}
_SS, _UU, _US = (("int8", "int8", "int32"), ("uint8", "uint8", "int32"), ("uint8", "int8", "int32"))
_BF16 = ("bfloat16", "bfloat16", "float32")
#: In order of preference. None of AVX10: LLVM has it only with AVX-512DQ, which is off (see isa.py). vdpbf16ps only
#: with SSE4A: other processors that have it (measured: Emerald Rapids) multiply float32 at twice its rate.
DOTS = _rows(
    ("vdpbf16ps", "avx512bf16 sse4a", 512, _BF16, "x86.avx512bf16.dpbf16ps.512"),
    ("vpdpbusd", "avx512vnni", 512, _US, "x86.avx512.vpdpbusd.512"),
    ("vpdpbssd", "avxvnniint8", 256, _SS, "x86.avx2.vpdpbssd.256"),
    ("vpdpbuud", "avxvnniint8", 256, _UU, "x86.avx2.vpdpbuud.256"),
    ("vpdpbusd", "avxvnni", 256, _US, "x86.avx512.vpdpbusd.256"),
    ("sdot", "dotprod", 128, _SS, "aarch64.neon.sdot.v4i32.v16i8"),
    ("udot", "dotprod", 128, _UU, "aarch64.neon.udot.v4i32.v16i8"),
    ("usdot", "i8mm", 128, _US, "aarch64.neon.usdot.v4i32.v16i8"),
)
#: Those that multiply a tile of up to 16 rows of A by one of 16 columns of B, each of up to 16 words of k.
TILES = _rows(
    ("tdpbf16ps", "amx-tile amx-bf16", 512, _BF16, "x86.tdpbf16ps"),
    ("tdpbssd", "amx-tile amx-int8", 512, _SS, "x86.tdpbssd"),
    ("tdpbuud", "amx-tile amx-int8", 512, _UU, "x86.tdpbuud"),
    ("tdpbusd", "amx-tile amx-int8", 512, _US, "x86.tdpbusd"),
    ("tdpbsud", "amx-tile amx-int8", 512, ("int8", "uint8", "int32"), "x86.tdpbsud"),
)
