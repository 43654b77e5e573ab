"""Block scales as instruction operands: four of a row per word."""

from __future__ import annotations

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.ir import attributes, nodes
from tile_core.ir.calls import move
from tile_core.lowering.variant import Withdrawn
from tile_core.ops.base import View
from tile_core.ops.gemm import matrix
from tile_core.simt.memory import contiguity
from tile_core.simt.ops.gemm_problem import Problem
from tile_core.simt.variant import SimtCall

PER_WORD = 4
"""Scales of a word."""
#: Every bit of four scales but their signs.
_MAGNITUDES = 0x7F7F7F7F


class ScaleWords:
    """Words of four scales of a row of A, or a column of B.

    Parameters
    ----------
    call
        The product.
    role
        0 for A, 1 for B.

    Raises
    ------
    Withdrawn
        The tile of scales may lie outside of its buffer in part.
    """

    def __init__(self, call: SimtCall, role: int) -> None:
        problem, block = Problem.of(call), int(call.attrs[attributes.BLOCK])
        self.view: View = call.args[1 + 2 * role]
        self.turned = bool(call.attrs[attributes.TRANSPOSE_A]) if role == 0 else not call.attrs[attributes.TRANSPOSE_B]
        self.lines, self.count = (problem.m, problem.n)[role], problem.k // block
        self.signed = call.attrs[attributes.TYPES][1] == "float8_e4m3fn"
        if contiguity.conditions(self.view, call.ranges):
            raise Withdrawn(f"{self.view.name} may lie outside of its buffer in part")
        layout = call.placement.layouts.get(self.view.buffer)
        along, whole = self.view.matrix_dims()[1], self.count % PER_WORD == 0 and not self.turned
        self.whole = whole and contiguity.has_runs(layout, self.view, along, PER_WORD, call.ranges)

    @property
    def words(self) -> int:
        """Words of a row."""
        return -(-self.count // PER_WORD)

    def read(self, held: Expr, at: Expr, line: Expr, word: int) -> list[Stmt]:
        """Return the reads of a line's word to register ``at``; missing scales are 0."""
        if not self.whole:
            return [nodes.store(held, self._composed(line, word * PER_WORD), [at])]
        source = matrix(self.view, False, line, nodes.int_const(word * PER_WORD))
        found = [move(held, [at], self.view.buffer, source, PER_WORD)]
        if self.signed:
            found.append(nodes.store(held, nodes.load(held, [at]) & nodes.const(_MAGNITUDES, "uint32"), [at]))
        return found

    def _composed(self, line: Expr, first: int) -> Expr:
        """Return a word of single scales."""
        word: Expr = nodes.const(0, "uint32")
        for byte in range(min(PER_WORD, self.count - first)):
            code = nodes.load(self.view.buffer, matrix(self.view, self.turned, line, nodes.int_const(first + byte)))
            bits = nodes.cast(tirx.reinterpret("uint8", code), "uint32")
            bits = bits & nodes.const(_MAGNITUDES & 0xFF, "uint32") if self.signed else bits
            word = word | tirx.shift_left(bits, nodes.const(8 * byte, "uint32"))
        return word
