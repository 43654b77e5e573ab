"""Divisions and right shifts of masked values, hidden from NVRTC, which miscompiles some in loops.

In a loop that its compiler unrolls by itself or not at all, ``A[((i + 3) % 64) / 2]`` becomes ``A[i + 3]`` in steps
whose ``i`` is a known multiple of 4: mask and shift are both lost, and what is read or written may lie outside of
the array. It was seen with NVRTC 13.0.88 and 13.5.37 for all element types, with ``%``, ``&``, ``* 4`` after ``>> 2``
and narrowing conversions as the mask, and with ``/`` and ``>>`` as the shift, in 3 to 7 of 100 random expressions of
that form; the PTX is wrong already. Loops that a pragma unrolls whole are right, and so are thread numbers in place
of ``i``.

A 32-bit sum that wraps in a loop and is then extended to 64 bits becomes a 64-bit sum that does not wrap (PTX of NVRTC
and nvcc 13.0): a guard of its lower half passes, and the address lies outside of the array.

The value of such an expression is printed through a register move that the compiler does not look into (PTX
ISA, "mov"); the assembler removes it. 4,800 random expressions printed so were right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.emit.c_family import CFamilyEmitter
from tile_core.emit.expressions import WRAPPING
from tile_core.emit.text import UNARY, Text, infix, wrapped
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import annotation

_SHIFTS = ("/", ">>")
#: Operations whose results have known high or low bits.
_MASKS = (tirx.FloorMod, tirx.Mod, tirx.FloorDiv, tirx.Div, tirx.BitwiseAnd, tirx.RShift)
_MASK_CALLS = frozenset({"bitwise_and", "shift_right"})
_BITS = {f"{sign}int{bits}": bits for sign in ("", "u") for bits in (8, 16, 32, 64)}


class MaskedShifts(CFamilyEmitter):
    """Prints the numerators of divisions and shifts that vary with a loop."""

    if TYPE_CHECKING:

        def helper(self, name: str) -> str:
            """Return the name of a function of the table."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        #: Variables of loops that are not fully unrolled, and values computed from them.
        self._varying: set[Any] = set()
        #: Names of values that vary with a loop and wrap.
        self._wrapping: set[Any] = set()

    def operation(self, sign: str, a: Expr, b: Expr) -> str:
        """Print an operation of two operands of one type."""
        if sign not in _SHIFTS or not self._is_risky(a):
            return super().operation(sign, a, b)
        text, kind = infix(sign, self._opaque(a), self.bare(b)), nodes.dtype_of(a)
        return self.narrowed(text, kind) if _BITS[kind] < 32 else text

    def named(self, e: Expr) -> str:
        """Print an expression that is used twice, one use of which may divide it."""
        if not self._is_risky(e):
            return super().named(e)
        name = self.writer.fresh("t")
        self.writer.line(f"const {self.type(nodes.dtype_of(e))} {name} = {self._opaque(e)};")
        return name

    def write_For(self, s: Stmt) -> None:
        """Write a counted loop."""
        written_out = s.kind == tirx.ForKind.UNROLLED and annotation(s, attributes.UNROLL_FACTOR) is None
        if not written_out or not isinstance(s.extent, tirx.IntImm):
            self._varying.add(s.loop_var)
        super().write_For(s)

    def write_Bind(self, s: Stmt) -> None:
        """Write a constant."""
        self._named(s.var, s.value)
        super().write_Bind(s)

    def print_Let(self, e: Expr) -> str:
        """Write the bound value to a variable, and print the body."""
        self._named(e.var, e.value)
        return super().print_Let(e)

    def print_Cast(self, e: Expr) -> str:
        """Print a conversion."""
        source, target = nodes.dtype_of(e.value), nodes.dtype_of(e)
        if (
            _BITS.get(source) == 32
            and _BITS.get(target) == 64
            and self._varies(e.value)
            and self._wraps_itself(e.value)
        ):
            return self.convert(self._opaque(e.value), source, target)
        return super().print_Cast(e)

    def subscript(self, buffer: BufferVar, offset: Expr) -> str:
        """Print the offset of an element of a buffer.

        One of 32 bits that wraps is hidden: the address extends it, as a conversion does.
        """
        hidden = not nodes.scope_of(buffer).startswith("local") and _BITS.get(nodes.dtype_of(offset)) == 32
        if hidden and self._varies(offset) and self._wraps_itself(offset):
            return self._opaque(offset)
        return super().subscript(buffer, offset)

    def _named(self, var: Expr, value: Expr) -> None:
        """Remember a name for a value that varies with a loop."""
        if self._varies(value):
            self._varying.add(var)
            if self._wraps_itself(value):
                self._wrapping.add(var)

    def _wraps_itself(self, e: Expr) -> bool:
        parts = _parts(e)
        wraps = any(nodes.operator_name(x) in WRAPPING for x in parts if type(x) is ir.Call)
        return wraps or not self._wrapping.isdisjoint(parts)

    def _is_risky(self, numerator: Expr) -> bool:
        if nodes.dtype_of(numerator) not in _BITS:
            return False
        parts = _parts(numerator)
        return any(map(_is_mask, parts)) and any(map(self._varies_by_itself, parts))

    def _varies(self, e: Expr) -> bool:
        return any(self._varies_by_itself(x) for x in _parts(e) if type(x) is tirx.Var or type(x) is ir.TensorLoad)

    def _varies_by_itself(self, e: Expr) -> bool:
        """Whether a value varies with a loop in a way that the compiler analyses."""
        if type(e) is ir.TensorLoad:
            return e.source.scope().startswith("local") and all(nodes.as_int(n) == 1 for n in e.source.shape)
        return e in self._varying if type(e) is tirx.Var else False

    def _opaque(self, e: Expr) -> str:
        kind = nodes.dtype_of(e)
        bits = max(32, _BITS[kind])
        text = f"{self.helper(f'mov_b{bits}_opaque')}({self.bare(e)})"
        return Text(f"({self.type(kind)}){wrapped(text, UNARY)}", UNARY) if kind in ("uint32", "uint64") else text


def _parts(e: Expr) -> list[Expr]:
    """Return an expression and its operands, without the indices of elements that it reads."""
    found: list[Any] = [e]
    for x in found:  # which grows
        if type(x) is ir.Call:
            found += structural.items(x.args)
        else:
            for name in _OPERANDS.get(type(x), ()):
                found.append(getattr(x, name))
    return found


_BINARY = (
    tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod, tirx.Min, tirx.Max,
    tirx.BitwiseAnd, tirx.BitwiseOr, tirx.BitwiseXor, tirx.LShift, tirx.RShift,
)  # fmt: skip
_OPERANDS: dict[Any, tuple[str, ...]] = {
    **dict.fromkeys(_BINARY, ("a", "b")), tirx.Cast: ("value",), tirx.BitwiseNot: ("a",),
    tirx.Select: ("true_value", "false_value"), tirx.Let: ("value", "body"),
}  # fmt: skip


def _is_mask(e: Expr) -> bool:
    if type(e) is ir.Call:
        return nodes.operator_name(e) in _MASK_CALLS
    if type(e) is tirx.Cast:
        return _BITS.get(nodes.dtype_of(e), 64) < _BITS.get(nodes.dtype_of(e.value), 0)
    return type(e) in _MASKS
