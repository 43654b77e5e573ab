"""Prevents contraction: float products in a kernel are rounded before an addition.

TVM lets LLVM contract ``a * b + c`` into one operation that rounds once, even across names, tiles, stores and loads.
The language rounds each operation. So a product whose value may reach an addition is fenced while the program is still
as the user wrote it. Op kernels and approximations of functions are not fenced: they may use the instruction.

There are two fences. ``llvm.arithmetic.fence`` emits no instruction, but LLVM vectorizes no loop that has one. So
products of single numbers in loops of independent iterations get ``llvm.canonicalize``: one instruction that returns
the product unchanged, which has vectors.
"""

from __future__ import annotations

from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import Call, Expr, Mutator, Stmt
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect, map_expr, replace_for, role
from tile_core.passes.float_rules import PREFIX

__all__ = ["fence_products", "reveal_products"]

_PRODUCT = f"{PREFIX}product"
#: Types in which a processor with the instruction may contract.
_TYPES = frozenset({"float16", "float32", "float64"})
#: Types of single numbers for which ``llvm.canonicalize`` is one instruction.
_VECTORIZED = frozenset({"float32", "float64"})
#: Loops whose iterations LLVM may compute at once.
_INDEPENDENT = ("parallel", "vectorized")
#: Users of a product that cannot be contracted with it, such as another product.
_ROUNDING = (tirx.Div, tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE)


def fence_products(body: Stmt) -> Stmt:
    """Return a program with calls around float products whose values may reach an addition."""

    def rounding(e: Expr, mutator: Mutator) -> Expr:
        """Rewrite an expression that rounds its operands: products in it are not fenced."""
        parts = [rounding(x, mutator) if _is_product(x) else mutator.mutate(x) for x in (e.a, e.b)]
        same = parts[0].same_as(e.a) and parts[1].same_as(e.b)
        return e if same else type(e)(*parts, e.span)

    def product(e: Expr, mutator: Mutator) -> Expr:
        new = rounding(e, mutator)
        if not _is_product(e):
            return new
        return ir.Call(nodes.register_scalar_op(_PRODUCT), [new], ret_ty=new.ty, span=e.span)

    return tvm_ffi.structural_mutate(body, [(tirx.Mul, product), (_ROUNDING, rounding)])


def reveal_products(body: Stmt, *, canonicalize: bool) -> Stmt:
    """Return the statement with LLVM's fences for the calls of ``fence_products``.

    Parameters
    ----------
    body
        The statement.
    canonicalize
        Whether the processor has an instruction for ``llvm.canonicalize``; LLVM fails on vectors of others.
    """
    return _fenced(_InIndependentLoops().stmt(body) if canonicalize else body, "llvm.arithmetic.fence")


class _InIndependentLoops(StmtRewriter):
    """Fences the products that LLVM may compute for several iterations at once."""

    def visit_For(self, s: Stmt) -> Stmt:
        if role(s) not in _INDEPENDENT or collect(s.body, tirx.For):
            return super().visit_For(s)
        return replace_for(s, _fenced(s.body, "llvm.canonicalize", _VECTORIZED))


def _fenced(body: Stmt, fence: str, types: frozenset[str] = _TYPES) -> Stmt:
    """Replace the calls around products, vectors too if ``types`` are all of them."""

    def restore(e: Call) -> Call:
        if str(getattr(e.op, "name", "")) != _PRODUCT or (types is not _TYPES and nodes.dtype_of(e) not in types):
            return e
        return tirx.call_llvm_pure_intrin(e.args[0].ty, fence, e.args[0])

    return map_expr(body, restore, ir.Call)


def _is_product(e: Expr) -> bool:
    return isinstance(e, tirx.Mul) and nodes.dtype_of(e) in _TYPES
