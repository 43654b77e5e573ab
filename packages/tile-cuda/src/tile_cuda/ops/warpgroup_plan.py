"""The plan of a wgmma product: instructions, parts of C, and fragment layouts.

A warpgroup is four consecutive warps. An instruction computes 64 rows of C, and from 8 to 256 columns; warp ``w`` of
the four holds rows ``16 w`` to ``16 w + 15``, each with the layout of ``mma.sync`` (`tile_cuda.ops.fragments`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property
from itertools import product
from typing import Any

from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.layout.digits import Digit
from tile_core.layout.fragment import Digits, FragmentLayout
from tile_core.lowering.legality import Atom
from tile_core.lowering.variant import Reject
from tile_core.ops.base import OpCall, View
from tile_core.ops.gemm import GemmWarpPolicy
from tile_core.records import dataclass
from tile_core.simt.ops.gemm_problem import Problem, policy_of
from tile_core.simt.ops.products.instruction import Lifetime, MatrixInstruction, MatrixOperand, OperandKind
from tile_core.simt.ops.products.plan import PlanT, ProductPlan, nearest, no_instruction, refused, too_few_threads
from tile_core.simt.ops.warp_partition import WarpPartition, splits
from tile_core.simt.variant import SimtCall
from tile_cuda.attributes import PROMOTE
from tile_cuda.occupancy import most_registers
from tile_cuda.ops.atoms import INPUTS, Family
from tile_cuda.ops.boxes import readable_rows
from tile_cuda.ptx.wgmma import product_name
from tile_cuda.target import WARP

WARPGROUP = 4 * WARP
ROWS, COLUMNS = 64, 8
"""Rows of an instruction, and what its columns are a multiple of."""
MOST_COLUMNS = 256
CHUNK = 32
"""Bytes along K that an instruction takes of each line of A."""
SWIZZLES = (128, 64, 32)
"""Bytes of a row whose chunks are permuted."""

_OTHERS = 40
"""Registers of a thread beside its accumulators: addresses, and what surrounds a product."""
_LEAST_PART = 32
"""Columns of partial accumulators that a thread holds at a time, at least: instructions of fewer read A too often."""
_BUDGET_OF_PARTS = 232
"""Registers of a thread that partial accumulators may fill, in a block with a producer warp."""
_MOST_THREADS = 1024
_FP8, _INT8 = ("float8_e4m3fn", "float8_e5m2"), ("int8", "uint8")
_FLOATS = ("float16", "bfloat16", "float32")


@dataclass(frozen=True)
class WarpgroupPlan(ProductPlan):
    """The plan of a product.

    Attributes
    ----------
    family
        The element types, as `tile_cuda.ops.atoms` has them.
    promote
        Elements along K between promotions of accumulators to float32; 0: no promotion.
    readable
        Of A and B in shared memory, the row lengths that all products of that tile can read, as a bit mask; 0 for any.
    """

    family: Family
    promote: int = 0
    readable: tuple[int, int] = (0, 0)

    @classmethod
    def facts(cls, call: SimtCall, problem: Problem) -> tuple[Hashable, ...]:
        """Return whether A is sparse, the policy, and the promoted part of K."""
        return call.name == "gemm_sp", policy_of(call, problem), int(call.attrs.get(PROMOTE, 0))

    @classmethod
    def candidates(cls, problem: Problem, threads: int, *facts: Any) -> Sequence[Any] | Reject:
        """Return the plans for which threads have registers, the best first, or the rejection reason."""
        sparse, policy, promote = facts
        chosen = family_of(problem.types, sparse)
        if chosen is None:
            return no_instruction(problem, table(sparse))
        few = too_few_threads(threads, WARPGROUP)
        if not few and threads % WARP:
            # All threads wait for the product, by an instruction of whole warps.
            few = f"threads={threads} is not a multiple of {WARP}; nearest legal: {threads // WARP * WARP}"
        wrong = [few] if few else Atom(steps_of(chosen)).misfits(problem.sizes)
        if wrong:
            return Reject("; ".join(wrong))
        ways = _Ways(chosen, policy, promote if chosen.is_fp8 else 0)
        return ways.able(problem, threads) or ways.crowded(problem, threads)

    @classmethod
    def decide(cls: type[PlanT], call: SimtCall, *given: Any) -> PlanT | Reject:
        """Return the plan of a call if descriptors describe its operands, else the rejection."""
        found: Any = super().decide(call, *given)
        if isinstance(found, Reject):
            return found
        found = replace(found, readable=readable_by_all(call, found.problem))
        return found.undescribed(policy_of(call, found.problem)) or found

    @property
    def most(self) -> int:
        """Registers that a thread can have."""
        return most_registers(self.threads)

    @property
    def registers(self) -> int:
        """Registers that a thread takes."""
        return self._needed + (self.widest // 2 if self.promote else 0)

    @property
    def _needed(self) -> int:
        """Registers of a thread without partial accumulators."""
        held = 4 * self.split.atoms_m * self.split.atoms_n
        if self.problem.a.scope == "local.fragment":
            held += self.split.atoms_m * self.depth * DTYPES[self.problem.types[0]].bits // 64
        if self.family.sparse:
            held += self.split.atoms_m * self.problem.k * self.family.bits // 1024 + 1
        return held + _OTHERS

    @property
    def widest(self) -> int:
        """Columns of an instruction at most: partial accumulators need registers of their own."""
        if not self.promote:
            return MOST_COLUMNS
        return partial_columns(self.split.atoms_n * COLUMNS, self._needed, self.most)

    @property
    def every(self) -> int:
        """Steps along K between promotions of the accumulator; 0: no promotion."""
        return self.promote and max(1, self.promote // self.step)

    @property
    def depth(self) -> int:
        """Stored extent along K of A."""
        return self.problem.k // 2 if self.family.sparse else self.problem.k

    @property
    def instruction(self) -> MatrixInstruction:
        """The instruction for 8 columns; wider ones repeat its fragment per 8 columns."""
        shared = MatrixOperand(OperandKind.DESCRIPTOR, Lifetime.WAITED)
        held = MatrixOperand(OperandKind.REGISTERS, Lifetime.WAITED)
        a = held if self.problem.a.scope == "local.fragment" else shared
        metadata = held if self.family.sparse else None
        return MatrixInstruction(ROWS, COLUMNS, self.step, WARPGROUP, a, shared, held, metadata)

    @property
    def step(self) -> int:
        """Extent along (dense) K of an instruction."""
        return (2 if self.family.sparse else 1) * CHUNK * 8 // self.family.bits

    @property
    def total(self) -> str:
        """Element type of the accumulators in registers."""
        return self.family.total

    @property
    def form(self) -> str:
        """``"rs"`` if A is a fragment, else ``"ss"``."""
        return "rs" if self.problem.a.scope == "local.fragment" else "ss"

    def name(self, columns: int, selector: int | None = None, new: bool = False) -> str:
        """Return the function of an instruction; with ``new`` it starts from zero."""
        p, f = self.problem, self.family
        types = (INPUTS[f.a][0], INPUTS[f.b][0], "s32" if f.total == "int32" else "f32")
        return product_name(
            columns, types, form=self.form, trans=(self.form == "ss" and p.turned_a, not p.turned_b),
            selector=selector, new=new,
        )  # fmt: skip

    def column_runs(self) -> Iterator[tuple[int, int]]:
        """Yield first column and number of columns of each instruction of a row tile."""
        at, end = 0, self.split.atoms_n * COLUMNS
        while at < end:
            count = min(end - at, self.widest)
            if self.total == "int32" and count % 16 and count > 24:
                count -= 8  # integers: multiples of 16, and 8 and 24
            yield at, count
            at += count

    def held(self, role: int) -> FragmentLayout:
        """Return where a fragment must be."""
        p, s, f = self.problem, self.split, self.family
        if role == 0:
            blocks = -(-self.depth // f.block)
            per_block = 2 * f.per_word
            copies = (Digit(s.warps_n, WARPGROUP, "thread"),) if s.warps_n > 1 else ()
            k = (Digit(blocks, per_block, "register"), Digit(4, 1, "thread"), Digit(f.per_word, 1, "register"))
            rows = _rows(s, blocks * per_block, f.per_word)
            return FragmentLayout((p.m, self.depth), (rows, k), self.threads, copies)
        columns = (
            Digit(s.warps_n, WARPGROUP, "thread"),
            Digit(s.atoms_n, 4, "register"),
            Digit(4, 1, "thread"),
            Digit(2, 1, "register"),
        )
        return FragmentLayout((p.m, p.n), (_rows(s, 4 * s.atoms_n, 2), columns), self.threads)

    def swizzle(self, role: int) -> int:
        """Return the swizzle of A (0) or B (1) in bytes; 0 if none fits."""
        return next((s for s in self.rows(role) if not self.readable[role] or s & self.readable[role]), 0)

    def rows(self, role: int) -> tuple[int, ...]:
        """Return the bytes of all rows that the instructions can read, the longest first."""
        return self._rows[role]

    @cached_property
    def _rows(self) -> tuple[tuple[int, ...], ...]:
        return tuple([tuple([s for s in SWIZZLES if not self.misfit(role, s)]) for role in (0, 1)])

    def unreadable(self, role: int) -> str:
        """Return why no descriptor fits A (0) or B (1); empty if one does."""
        if not self.shared(role) or self.swizzle(role):
            return ""
        rows, name = " or ".join(map(str, self.rows(role))), self.view(role).name
        if not rows:
            return self.misfit(role, self._least_row(role))
        others = " or ".join(str(s) for s in SWIZZLES if s & self.readable[role])
        return f"other products read {name} in rows of {others} bytes, and this one in rows of {rows}"

    def undescribed(self, policy: int) -> Reject | None:
        """Return the rejection if no descriptors describe A or B, else ``None``."""
        ways = _Ways(self.family, policy, self.promote, self.readable)
        for role in (0, 1):
            reason = self.unreadable(role)
            if reason:
                axis = self.problem.axes[role][1]
                steps = {axis: steps_of(self.family)[axis]}
                legal = nearest(self.problem, steps, lambda p: ways.is_legal(p, self.threads), above=True)
                return refused(reason, legal)
        return None

    def misfit(self, role: int, swizzle: int) -> str:
        """Return why no instruction reads this swizzle of A (0) or B (1)."""
        view = self.view(role)
        size, row = DTYPES[view.dtype].bits // 8, nodes.shape_of(view.buffer)[-1]
        if row * size % swizzle:
            return f"rows of {view.name} have {row} elements, and descriptors describe multiples of {swizzle // size}"
        if swizzle < self._least_row(role):
            return f"rows of {view.name} have {swizzle} bytes, and an instruction takes {self._least_row(role)} of each"
        group = self.split.atoms_n * COLUMNS if role == 1 and self.problem.axes[1] == "KN" else 0
        begins = (
            [(g * group + at, n) for g in range(self.split.warps_n) for at, n in self.column_runs()] if group else []
        )
        for at, n in begins:
            if at * size % swizzle and at * size % swizzle + n * size > swizzle:
                rows = f"to descriptors {view.name} has rows of {swizzle} bytes"
                return f"{rows}, which an instruction's columns from {at} on would cross"
        return ""

    def _least_row(self, role: int) -> int:
        """Return the bytes along K of an instruction: twice for B if A is sparse."""
        return CHUNK * (2 if role == 1 and self.family.sparse and self.problem.turned_b else 1)

    def __str__(self) -> str:
        s = self.split
        names = ", ".join(dict.fromkeys(self.name(n, 0 if self.family.sparse else None) for _, n in self.column_runs()))
        by = [f"{x} by descriptor, swizzle {self.swizzle(r)} bytes" for r, x in ((0, "A"), (1, "B")) if self.shared(r)]
        made = f"{names}, {s.warps_m} x {s.warps_n} warpgroups of {s.atoms_m} x {s.atoms_n} tiles; {'; '.join(by)}"
        if not self.promote:
            return made
        registers, held = 4 * s.atoms_m * s.atoms_n, max(n for _, n in self.column_runs()) // 2
        along = min(self.every * self.step, self.problem.k)
        adds = f"each {along} of K, a thread promotes {registers} partial accumulators to float32"
        return f"{made}; {adds} in {held} registers"

    def shared(self, role: int) -> bool:
        """Whether an operand is in shared memory."""
        return self.view(role).scope != "local.fragment"

    def view(self, role: int) -> View:
        """Return A (0), B (1) or C (2)."""
        return (self.problem.a, self.problem.b, self.problem.c)[role]


def partial_columns(columns: int, needed: int, most: int) -> int:
    """Return the columns of an instruction whose partial accumulators are promoted.

    An instruction of few columns reads A more often, so instructions are as few as registers permit, of equal widths.

    Parameters
    ----------
    columns
        Of a warpgroup.
    needed, most
        Registers of a thread for everything else, and all that it can have.
    """
    left = min(_BUDGET_OF_PARTS, most) - needed
    wide = min(MOST_COLUMNS, max(_LEAST_PART, 2 * left // COLUMNS * COLUMNS))
    return -(-columns // (-(-columns // wide) * COLUMNS)) * COLUMNS


@dataclass(frozen=True)
class _Ways:
    """The ways to compute a product, which differ in what a warpgroup computes.

    Attributes
    ----------
    family, promote, readable
        Of all plans.
    policy
        Which ways are the best.
    """

    family: Family
    policy: int
    promote: int
    readable: tuple[int, int] = (0, 0)

    def every(self, problem: Problem, threads: int) -> list[WarpgroupPlan]:
        """Return the plans of a product of whole instructions, at least one, the best first."""
        found = partitions(problem.m, problem.n, threads, self.policy)
        return [WarpgroupPlan(problem, s, threads, self.family, self.promote, self.readable) for s in found]

    def able(self, problem: Problem, threads: int) -> list[WarpgroupPlan]:
        """Return the plans for which threads have enough registers."""
        return [p for p in self.every(problem, threads) if p.registers <= p.most]

    def crowded(self, problem: Problem, threads: int) -> Reject:
        """Return the refusal of a product for none of whose plans threads have enough registers."""
        found = min(self.every(problem, threads), key=lambda p: p.registers)
        more = range(threads // WARPGROUP * WARPGROUP + WARPGROUP, _MOST_THREADS + 1, WARPGROUP)
        enough = next((n for n in more if self.is_legal(problem, n)), 0)
        smaller = nearest(problem, steps_of(self.family), lambda p: self.is_legal(p, threads))
        return refused(
            f"each of {threads} threads would need {found.registers} registers for its part of {problem.m} x "
            f"{problem.n} and has at most {found.most}", smaller + [f"threads={enough}"] * (enough > 0),
        )  # fmt: skip

    def is_legal(self, problem: Problem, threads: int) -> bool:
        """Whether a product of whole instructions has a plan whose descriptors describe A and B."""
        able = self.able(problem, threads)
        return bool(able) and not any(able[0].unreadable(role) for role in (0, 1))


def readable_by_all(call: OpCall, problem: Problem) -> tuple[int, int]:
    """Return the readable row lengths of A and B for all their products."""
    return readable_rows(call, problem.a), readable_rows(call, problem.b)


def family_of(types: tuple[str, str, str], sparse: bool) -> Family | None:
    """Return the instructions for types of operands and accumulator; only C is converted."""
    a, b, c = types
    if a in _INT8 and b in _INT8:
        return Family(a, b, "int32", sparse) if c in ("int32", "uint32") else None
    same = a == b and a in ("float16", "bfloat16", "tfloat32")
    return Family(a, b, "float32", sparse) if c in _FLOATS and (same or (a in _FP8 and b in _FP8)) else None


@cache
def table(sparse: bool) -> tuple[Atom, ...]:
    """Return the shapes and their element types as a legality table."""
    found: dict[Family, set[tuple[str, str, str]]] = {}
    inputs = ("float16", "bfloat16", "tfloat32", *_FP8, *_INT8)
    for types in product(inputs, inputs, (*_FLOATS, "int32", "uint32")):
        chosen = family_of(types, sparse)
        if chosen is not None:
            found.setdefault(chosen, set()).add(types)
    return tuple(
        Atom(steps_of(one), frozenset(types), (one.a, one.b, one.total))
        for one, types in sorted(found.items(), key=lambda entry: str(entry[0]))
    )


def steps_of(family: Family, rows: int = ROWS, columns: int = COLUMNS) -> dict[str, int]:
    """Return the required divisors of a product's extents."""
    return {"M": rows, "N": columns, "K": (2 if family.sparse else 1) * CHUNK * 8 // family.bits}


def _rows(s: WarpPartition, tile: int, half: int) -> Digits:
    """Return the digits of a row: warpgroup, tile, warp, half, row of 8."""
    return (
        Digit(s.warps_m, WARPGROUP * s.warps_n, "thread"),
        Digit(s.atoms_m, tile, "register"),
        Digit(4, WARP, "thread"),
        Digit(2, half, "register"),
        Digit(8, 4, "thread"),
    )


def partitions(m: int, n: int, threads: int, policy: int) -> list[WarpPartition]:
    """Return the partitions of a result among warpgroups that compute no padding, the best first."""
    tiles, groups = (m // ROWS, n // COLUMNS), threads // WARPGROUP
    every = splits(*tiles, groups, policy, (ROWS, COLUMNS))
    found = [s for s in every if (s.warps_m * s.atoms_m, s.warps_n * s.atoms_n) == tiles]
    if policy == GemmWarpPolicy.Square:
        # B is read once by each instruction: wide ones read the least.
        found.sort(key=lambda s: (s.atoms_m * s.atoms_n, s.atoms_m, s.warps))
    return found
