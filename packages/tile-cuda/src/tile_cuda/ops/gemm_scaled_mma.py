"""``cuda.mma.block_scale``: products with scales for blocks of K on the matrix instructions of a warp.

PTX ISA, "Block Scaling for mma.sync", and CUTLASS (``mma_traits_sm120.hpp``): lane ``4 g + t`` gives the scales of row
``g`` if ``t`` is 0, and of row ``g + 8`` if it is 1; and those of column ``g`` of B if ``t`` is 0. A word has four
scales along K; an instruction takes one, two or all of them, from the byte on that it names.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cache
from itertools import product
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.calls import address, execute
from tile_core.layout import LayoutMap
from tile_core.lowering.legality import Atom
from tile_core.lowering.variant import Reject
from tile_core.numerics.exprs import nibble_expr
from tile_core.ops.gemm import matrix
from tile_core.records import dataclass
from tile_core.simt.memory import contiguity
from tile_core.simt.ops.gemm_problem import Problem, policy_of
from tile_core.simt.ops.products.plan import no_instruction, too_few_threads
from tile_core.simt.ops.products.shared_layout import swizzled
from tile_core.simt.ops.products.variant import MatrixVariant, matrix_legality
from tile_core.simt.ops.warp_partition import splits
from tile_core.simt.register_loops import choose, unrolled
from tile_core.simt.variant import SimtCall
from tile_cuda.ops.gemm_mma import HELD
from tile_cuda.ops.gemm_scaled_tensor import other_scales, scaled_family, scales_of
from tile_cuda.ops.operand import MmaLoader, MmaOperand
from tile_cuda.ops.plan import KStep, MmaPlan
from tile_cuda.ops.product import MmaProduct
from tile_cuda.ops.scale_words import PER_WORD, ScaleWords
from tile_cuda.ops.steps import StepByStep, Work
from tile_cuda.ptx.matrix import SCALED, scaled_name
from tile_cuda.target import WARP

MMA_SCALED = "cuda.mma.block_scale"


@dataclass(frozen=True)
class ScaledMmaPlan(MmaPlan):
    """How a product with scales is computed.

    Attributes
    ----------
    scale
        Element type of the scales.
    per
        Elements along K that one of them multiplies.
    """

    scale: str = ""
    per: int = 0

    @classmethod
    def facts(cls, call: SimtCall, problem: Problem) -> tuple[Hashable, ...]:
        """Return the policy and the scales."""
        return policy_of(call, problem), *scales_of(call)

    @classmethod
    def candidates(cls, problem: Problem, threads: int, *facts: Any) -> Sequence[Any] | Reject:
        """Return the splits of a product among warps, best first, or the rejection."""
        policy, scale, per = facts
        family = scaled_family(problem.types)
        if family is None:
            return no_instruction(problem, _table())
        wrong = too_few_threads(threads, WARP) or other_scales(family, scale, per, SCALED)
        if wrong:
            return Reject(wrong)
        tiles = -(-problem.m // family.instruction.m), -(-problem.n // family.instruction.n)
        every = splits(*tiles, threads // WARP, policy)
        return [cls(problem, s, threads, family, scale=scale, per=per) for s in every]

    @property
    def name(self) -> str:
        """The function of the instruction."""
        return scaled_name(self.family.a, self.family.b, self.scale, self.per)

    def __str__(self) -> str:
        return f"{self.name}, {self.split}; uncalibrated: no device has recorded it"


class MmaGemmScaled(MatrixVariant):
    """Tiles of every size in shared memory, with scales there, too."""

    name = MMA_SCALED
    op = "gemm_scaled"
    priority = 10
    group = WARP

    def __init__(self) -> None:
        scopes = {"A": ("shared",), "B": ("shared",), "C": HELD}
        self.legality = matrix_legality(_table(), scopes)

    def refuses(self, call: SimtCall) -> str:
        """Reject scales elsewhere than in shared memory."""
        outside = next((v for v in (call.args[1], call.args[3]) if v.scope != "shared"), None)
        return "" if outside is None else f"{outside.name} is not in shared memory"

    def plan(self, call: SimtCall) -> ScaledMmaPlan | Reject:
        """See `ProductPlan.for_call`."""
        return ScaledMmaPlan.for_call(call)

    def shared_layout(self, shape: tuple[int, ...], bits: int) -> LayoutMap | None:
        """Return a swizzled layout, unless 4-bit elements have a byte each."""
        return swizzled(shape, bits) if bits == 8 else None

    def statement(self, plan: Any, call: SimtCall) -> Stmt:
        """Return the product for one thread."""
        return ScaledMmaProduct(plan, call).statement()


@dataclass(frozen=True, kw_only=True)
class CodedOperand(MmaOperand):
    """A or B, possibly as codes in ``uint8``, two 4-bit elements per byte."""

    @property
    def packed(self) -> bool:
        """Whether two elements share a byte."""
        return self.view.dtype == "uint8" and self.family.bits == 4

    @property
    def way(self) -> str:
        """See `MmaOperand.way`: a block along K is 16 bytes."""
        if self.guarded or not self.k_major or (self.family.bits == 4 and not self.packed):
            return "elements"
        runs = contiguity.has_runs(self.layout, self.view, self.view.matrix_dims()[1], 16, self.ranges)
        return "ldmatrix" if runs else "elements"

    def at(self, line: Expr, k: Expr) -> list[Expr]:
        """Return the buffer's indices of an element, or of its byte."""
        two = nodes.int_const(2)
        if self.packed:
            line, k = (tirx.floordiv(line, two), k) if self.turned else (line, tirx.floordiv(k, two))
        return matrix(self.view, self.turned, line, k)

    def load(self, line: Expr, k: Expr, limits: Any = ()) -> Expr:
        """Return the bits of an element; zero outside the buffer or beyond a limit."""
        at = self.at(line, k)
        inside = contiguity.inside(self.view, at, self.ranges) if self.guarded else []
        code = nodes.load(self.view.buffer, at)
        if self.packed:
            code = nibble_expr(code, line if self.turned else k)
        elif self.view.dtype != "uint8":
            code = tirx.reinterpret("uint8", code)
        return choose([*limits, *inside], nodes.cast(code, "uint32"))


@dataclass(frozen=True)
class ScaledWork(Work):
    """A product with the registers of its scales, by tiles and words along K."""

    scales: tuple[BufferVar, BufferVar]
    words: int

    def instruction(self, i: Expr, j: Expr, a_at: Expr, b_at: Expr, step: KStep) -> Stmt:
        """Return the instruction for tile row ``i`` and column ``j``, with operand registers."""
        plan = self.plan
        assert isinstance(plan, ScaledMmaPlan)
        to = (i * plan.split.atoms_n + j) * (2 * plan.family.halves)
        args = [address(self.totals, [to], "rw"), address(self.a.registers, [a_at]), address(self.b.registers, [b_at])]
        args.append(address(self.totals, [to]))
        word, byte = divmod(step.first * plan.family.block // plan.per, PER_WORD)
        for registers, tile in zip(self.scales, (i, j), strict=True):
            scale = nodes.load(registers, [tile * self.words + word])
            args += [scale, nodes.int_const(byte), nodes.int_const(0)]
        return execute(plan.name, args, self.call.span)


class ScaledMmaProduct(MmaProduct):
    """Makes the statement of a product with scales."""

    def loop(self, guarded: bool, totals: BufferVar, whole: bool) -> list[Stmt]:
        """Return the reads of all scales, and the steps along K."""
        p, f = self.plan.problem, self.plan.family
        a = CodedOperand(**self.operand(0, guarded), dtype=f.a, family=f, depth=p.k, halves=f.halves)
        b = CodedOperand(**self.operand(1, guarded), dtype=f.b, family=f, depth=p.k, halves=1)
        readers = [ScaleWords(self.call, role) for role in (0, 1)]
        words, tiles = readers[0].words, (self.plan.split.atoms_m, self.plan.split.atoms_n)
        held = [nodes.alloc([n * words], "uint32", f"{x}_scales", "local") for x, n in zip("ab", tiles, strict=True)]
        # Lanes that give no scales read those of lanes that do.
        half = tirx.floormod(self.lane.column, 2) * 8
        firsts = (self.rows + self.lane.row + half, self.columns + self.lane.row)
        found = [new for _, new in held]
        for (registers, _), reader, first, count, each in zip(held, readers, firsts, tiles, (16, 8), strict=True):

            def read(
                tile: Expr, registers: Any = registers, reader: Any = reader, first: Any = first, each: int = each
            ) -> Stmt:
                line = tirx.min(first + tile * each, nodes.int_const(reader.lines - 1))
                return nodes.seq([
                    x for word in range(words) for x in reader.read(registers, tile * words + word, line, word)
                ])  # fmt: skip

            found.append(unrolled("scale_tile", count, read))
        scales = (held[0][0], held[1][0])
        loaders = MmaLoader(a, self.lane, "a"), MmaLoader(b, self.lane, "b")
        work = ScaledWork(self.plan, self.call, *loaders, totals, None, scales, words)
        return [*found, *StepByStep(work, self._steps(a)).plain()]


@cache
def _table() -> tuple[Atom, ...]:
    """Return the shapes and their element types as a legality table."""
    atoms, elements = [], [name for name, d in DTYPES.items() if d.is_narrow]
    for types in product(elements, elements, ("float32", "float16", "bfloat16")):
        family = scaled_family(types)
        if family is not None:
            sizes = {"M": family.rows, "N": 8, "K": family.depth(2)}
            atoms.append(Atom(sizes, frozenset({types}), (family.a, family.b, family.total)))
    return tuple(atoms)
