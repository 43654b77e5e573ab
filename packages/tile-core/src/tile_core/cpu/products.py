"""Prevents contraction: float products in a kernel are rounded before an addition.

TVM lets LLVM contract ``a * b + c`` into one operation that rounds once, even across names, tiles, stores and loads.
The language rounds each operation. So a product whose value may reach an addition is fenced while the program is still
as the user wrote it. Op kernels and approximations of functions are not fenced: their sums may use the instruction.
"""

from __future__ import annotations

from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import Call, Expr, Mutator, Stmt
from tile_core.ir import nodes
from tile_core.ir.visit import map_expr
from tile_core.passes.float_rules import PREFIX

__all__ = ["fence_products", "reveal_products"]

_PRODUCT = f"{PREFIX}product"
#: Types in which a processor with the instruction may contract.
_TYPES = frozenset({"float16", "float32", "float64"})
#: Users of a product that cannot be contracted with it, such as another product.
_ROUNDING = (tirx.Div, tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE)


def fence_products(body: Stmt) -> Stmt:
    """Return a program as written with calls around the products of floats that may be added to something."""

    def rounding(e: Expr, mutator: Mutator) -> Expr:
        """Rewrite an expression that rounds its operands: products among them are not part of a sum."""
        parts = [rounding(x, mutator) if _is_product(x) else mutator.mutate(x) for x in (e.a, e.b)]
        same = parts[0].same_as(e.a) and parts[1].same_as(e.b)
        return e if same else type(e)(*parts, e.span)

    def product(e: Expr, mutator: Mutator) -> Expr:
        new = rounding(e, mutator)
        if not _is_product(e):
            return new
        return ir.Call(nodes.register_scalar_op(_PRODUCT), [new], ret_ty=new.ty, span=e.span)

    return tvm_ffi.structural_mutate(body, [(tirx.Mul, product), (_ROUNDING, rounding)])


def reveal_products(body: Stmt) -> Stmt:
    """Return the statement with LLVM's fences for the calls of ``fence_products``."""

    def restore(e: Call) -> Call:
        if str(getattr(e.op, "name", "")) != _PRODUCT:
            return e
        return tirx.call_llvm_pure_intrin(e.args[0].ty, "llvm.arithmetic.fence", e.args[0])

    return map_expr(body, restore, ir.Call)


def _is_product(e: Expr) -> bool:
    return isinstance(e, tirx.Mul) and nodes.dtype_of(e) in _TYPES
