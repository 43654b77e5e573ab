"""Hide the low bits of loop counters from LLVM's analysis of inductions.

LLVM's vectorizer loads ``x & 3`` and ``int8(x)`` of a counter ``x`` as if they never wrapped, behind a check at run
time. LLVM 22 drops the check of a narrow value where it also checks a wider one (llvm-project issue 191382): lanes
behind the wrap read outside of their range. A product by one that the analysis treats as opaque keeps such a value out
of it; LLVM's vectors of the product are free.
"""

from __future__ import annotations

import numpy as np

from tile_core.analysis.ranges import RangedRewriter, whole
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Mutator, Stmt
from tile_core.ir import nodes
from tile_core.numerics.build import constant, lanes_of, type_name

__all__ = ["hide_counters"]

#: LLVM folds the signed product and keeps the unsigned one.
_OPAQUE = "llvm.umul.fix"
_WIDE = ("int32", "int64", "uint32", "uint64")
_NARROW = ("int8", "int16", "uint8", "uint16")
_INTEGERS = (*_WIDE, *_NARROW)


def hide_counters(body: Stmt) -> Stmt:
    """Return the statement with opaque remainders, masks and widened values of counters that may wrap."""
    return _HideCounters().stmt(body)


class _HideCounters(RangedRewriter):
    def __init__(self) -> None:
        super().__init__()
        self.loops = 0

    def visit_For(self, s: Stmt) -> Stmt:
        self.loops += 1
        new = super().visit_For(s)
        self.loops -= 1
        return new

    def visit_While(self, s: Stmt) -> Stmt:
        self.loops += 1
        new = super().visit_While(s)
        self.loops -= 1
        return new

    def expr(self, e: Expr) -> Expr:
        if structural.is_atom(e):
            return e
        handlers = [(tirx.Cast, self.cast), (tirx.Mod, self.remainder), (tirx.BitwiseAnd, self.mask)]
        return structural.mutated(e, [*handlers, (tirx.RShift, self.shift)])

    def cast(self, e: Expr, mutator: Mutator) -> Expr:
        """Hide a widened value of 8 or 16 bits unless truncated; truncate constants.

        TVM's code generator fails over the conversion of a constant that does not fit.
        """
        kind, narrow = type_name(e), type_name(e.value)
        low, high = self.ranges.of(e.value) if narrow in _INTEGERS else (0, 1)
        if low == high and kind in _INTEGERS:
            return constant(int(np.array(low).astype(kind)), kind, e)
        new = mutator.default_mutate(e)
        wraps = narrow in _NARROW and (low, high) == whole(narrow)
        return self.opaque(new) if wraps and kind in _WIDE and _counts(e.value) else new

    def remainder(self, e: Expr, mutator: Mutator) -> Expr:
        """Hide a remainder by a power of two: LLVM makes a mask of it."""
        new, c = mutator.default_mutate(e), nodes.as_int(e.b)
        return self.opaque(new) if isinstance(c, int) and c & (c - 1) == 0 and self.wraps(e.a, c) else new

    def mask(self, e: Expr, mutator: Mutator) -> Expr:
        """Hide a mask by a constant."""
        new = mutator.default_mutate(e)
        pairs = [(x, c) for x, y in ((e.a, e.b), (e.b, e.a)) if isinstance(c := nodes.as_int(y), int)]
        return self.opaque(new) if any(self.wraps(x, c + 1 if c & (c + 1) == 0 else 0) for x, c in pairs) else new

    def shift(self, e: Expr, mutator: Mutator) -> Expr:
        """Hide a shift of a possibly negative value, which LLVM may turn into a mask."""
        new = mutator.default_mutate(e)
        return self.opaque(new) if self.ranges.of(e.a)[0] < 0 and self.wraps(e.a, 0) else new

    def opaque(self, e: Expr) -> Expr:
        """Return a scalar in a loop as a product by one."""
        kind = type_name(e)
        if not self.loops or lanes_of(e) > 1:
            return e
        return tirx.call_llvm_pure_intrin(kind, _OPAQUE, e, tirx.IntImm(kind, 1), tirx.IntImm("int32", 0))

    def wraps(self, x: Expr, modulus: int) -> bool:
        """Whether a counter may leave the numbers below a modulus."""
        if not self.loops or lanes_of(x) > 1 or type_name(x) not in _WIDE or not _counts(x):
            return False
        low, high = self.ranges.of(x)
        return low < 0 or high >= modulus


def _counts(e: Expr) -> bool:
    """Whether a value depends on register variables or scratch otherwise than through arrays."""
    found: list[Expr] = []

    def load(x: Expr, _: Mutator) -> Expr:
        if nodes.scope_of(x.source).startswith("local") and all(isinstance(nodes.as_int(i), int) for i in x.indices):
            found.append(x)
        return x

    def var(x: Expr, _: Mutator) -> Expr:
        found.append(x)
        return x

    if type(e) is tirx.Var:
        return True
    structural.mutated(e, [(ir.TensorLoad, load), (tirx.Var, var)])
    return bool(found)
