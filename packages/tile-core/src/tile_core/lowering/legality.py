"""Legality tables: the capabilities of an instruction as data, with rejection reasons.

A table constrains named sizes (``M``, ``N``, ``K``), operands (``A``, ``B``, ``C``) and the number of threads. Each
reason states the value found, the requirement and the nearest legal value:
``K=24 is not a multiple of the atom 16; nearest legal: 16 or 32``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TypeAlias, TypeVar

from tile_core.errors.lowering import VariantCrashed
from tile_core.errors.plugins import InvalidDeclaration
from tile_core.records import dataclass
from tile_core.target import FrozenMap

K = TypeVar("K")
V = TypeVar("V")

ALIGNED_THINGS = ("base", "offset", "stride", "size", "stage")


@dataclass(frozen=True)
class Extent:
    """The legal values of a number: multiples of ``step`` from ``low`` (default ``step``) to ``high``."""

    step: int = 1
    low: int | None = None
    high: int | None = None

    def __post_init__(self) -> None:
        low = self.step if self.low is None else self.low
        if self.step < 1 or low < 1 or low % self.step or (self.high is not None and self.high < low):
            expected = "step >= 1, low a positive multiple of it, high >= low"
            raise InvalidDeclaration(what="Extent", field="step, low, high", found=self, expected=expected)
        object.__setattr__(self, "low", low)

    @property
    def least(self) -> int:
        """The smallest legal value."""
        return self.step if self.low is None else self.low

    def __contains__(self, value: int) -> bool:
        return value % self.step == 0 and value >= self.least and (self.high is None or value <= self.high)

    def nearest(self, value: int) -> tuple[int, ...]:
        """Return the legal values next to ``value``, ascending; itself if it is legal."""
        top = None if self.high is None else self.high // self.step * self.step
        down, up = value // self.step * self.step, -(-value // self.step) * self.step
        clamped = {max(self.least, v if top is None else min(v, top)) for v in (down, up)}
        return tuple(sorted(clamped))

    def __str__(self) -> str:
        text = f"a multiple of {self.step}" if self.step > 1 else "any"
        text += f" from {self.least}" if self.least != self.step else ""
        return text + (f" up to {self.high}" if self.high is not None else "")


Size: TypeAlias = "int | Extent"  # an int is short for Extent(step=int)


@dataclass(frozen=True)
class Atom:
    """One shape of an instruction.

    Parameters
    ----------
    sizes
        Legal tile sizes by axis; an ``int`` is an atom that may be repeated any number of times.
    dtypes
        Combinations of element types (in the order of ``Legality.operands``) that the shape exists for;
        empty if for all of the table.
    computes
        Element types that the instruction itself takes, in the same order; operands of other types are converted,
        exactly, as they are read. Empty if it takes all of ``dtypes``.
    """

    sizes: Mapping[str, Size]
    dtypes: frozenset[tuple[str, ...]] = frozenset()
    computes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", FrozenMap({k: _extent(v) for k, v in self.sizes.items()}))
        object.__setattr__(self, "dtypes", frozenset(self.dtypes))

    def extents(self) -> dict[str, Extent]:
        """The legal values by axis."""
        return {axis: _extent(size) for axis, size in self.sizes.items()}

    def misfits(self, sizes: Mapping[str, int]) -> list[str]:
        """Every reason why sizes, by axis, are not legal; empty if all are."""
        found = [(axis, sizes[axis], extent) for axis, extent in self.extents().items() if axis in sizes]
        return [_outside(axis, value, extent, "the atom ") for axis, value, extent in found if value not in extent]

    def __str__(self) -> str:
        parts = [str(e.step) if e == Extent(e.step) else f"({e})" for e in self.extents().values()]
        of = f" of {', '.join(self.computes)}" if self.computes else ""
        return f"{' x '.join(self.sizes)} = {' x '.join(parts)}{of}"


@dataclass(frozen=True)
class Alignment:
    """An operand's ``what`` must be a multiple of ``bytes``.

    ``what`` is ``"base"`` (address of the buffer), ``"offset"`` (of the region in it), ``"stride"`` (of all axes but
    the innermost), ``"size"`` (of the innermost run) or ``"stage"`` (of one slot of a pipelined buffer).
    """

    operand: str
    what: str
    bytes: int

    def __post_init__(self) -> None:
        if self.what not in ALIGNED_THINGS or self.bytes < 1:
            expected = f"one of {', '.join(ALIGNED_THINGS)} and a positive number of bytes"
            found = (self.what, self.bytes)
            raise InvalidDeclaration(what="Alignment", field="what, bytes", found=found, expected=expected)


@dataclass(frozen=True)
class Asked:
    """The facts of one call that a table checks.

    Parameters
    ----------
    sizes
        Size by axis; ``None`` if it is not known at compile time.
    dtypes, scopes
        Element type and scope by operand.
    alignments
        The largest known divisor, in bytes, of (operand, what); 0 if it is zero.
    threads
        Threads that take part, or ``None`` if not known.
    """

    sizes: Mapping[str, int | None] = field(default_factory=FrozenMap)
    dtypes: Mapping[str, str] = field(default_factory=FrozenMap)
    scopes: Mapping[str, str] = field(default_factory=FrozenMap)
    alignments: Mapping[tuple[str, str], int] = field(default_factory=dict)
    threads: int | None = None


@dataclass(frozen=True)
class Legality:
    """Legal calls of a variant. Parts that are left out constrain nothing.

    Parameters
    ----------
    operands
        Names of the operands, in the order in which ``dtypes`` lists their types.
    dtypes
        Legal combinations of element types, for a product (A, B, accumulator).
    atoms
        Shapes; a call is legal if one of those that exist for its types fits.
    tails
        Axes along which the variant handles a remainder (and sizes not known at compile time) itself.
    scopes
        Legal scopes by operand.
    alignments
        What must be aligned.
    threads
        Legal numbers of threads.
    """

    operands: tuple[str, ...] = ()
    dtypes: frozenset[tuple[str, ...]] = frozenset()
    atoms: tuple[Atom, ...] = ()
    tails: frozenset[str] = frozenset()
    scopes: Mapping[str, Iterable[str]] = field(default_factory=FrozenMap)
    alignments: tuple[Alignment, ...] = ()
    threads: Extent | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtypes", frozenset(self.dtypes))
        object.__setattr__(self, "tails", frozenset(self.tails))
        object.__setattr__(self, "scopes", FrozenMap({k: tuple(v) for k, v in self.scopes.items()}))
        rows = self.dtypes.union(*(atom.dtypes for atom in self.atoms))
        wrong = sorted(row for row in rows if not isinstance(row, tuple) or len(row) != len(self.operands))
        if wrong:
            expected = f"one element type for each of {self.operands}"
            raise InvalidDeclaration(what="Legality", field="dtypes", found=wrong, expected=expected)

    def check(self, asked: Asked, name: str = "?") -> tuple[str, ...]:
        """Every reason why the table refuses a call; empty if it is legal.

        Parameters
        ----------
        asked
            The facts of one call.
        name
            The variant's name, for the error.

        Raises
        ------
        VariantCrashed
            If the table constrains a fact that ``asked`` does not state.
        """
        types = self._check_dtypes(asked, name)
        reasons = [*types, *self._check_scopes(asked, name)]
        reasons += [] if types else self._check_atoms(asked, name)
        reasons += self._check_alignments(asked, name)
        return (*reasons, *self._check_threads(asked))

    def rows(self) -> list[tuple[str, str]]:
        """The table as (what, legal values), for listings and documentation."""
        out = [("types", ", ".join(_types(self.operands, row))) for row in sorted(self.dtypes)]
        out += [("atom", str(atom)) for atom in self.atoms]
        out += [("tail", axis) for axis in sorted(self.tails)]
        out += [(f"scope of {operand}", ", ".join(scopes)) for operand, scopes in self.scopes.items()]
        out += [(f"{a.what} of {a.operand}", f"a multiple of {a.bytes} bytes") for a in self.alignments]
        return out + ([("threads", str(self.threads))] if self.threads else [])

    def _combination(self, asked: Asked, name: str) -> tuple[str, ...]:
        return tuple(_stated(asked.dtypes, operand, f"the type of {operand}", name) for operand in self.operands)

    def _check_dtypes(self, asked: Asked, name: str) -> list[str]:
        if not self.dtypes and self.operands and not any(atom.dtypes for atom in self.atoms):
            return ["the target has no such instruction for any types"]
        if not self.dtypes or self._combination(asked, name) in self.dtypes:
            return []
        return [no_instruction(self.operands, self.dtypes, self._combination(asked, name))]

    def _check_scopes(self, asked: Asked, name: str) -> list[str]:
        reasons = []
        for operand, legal in self.scopes.items():
            found = _stated(asked.scopes, operand, f"the scope of {operand}", name)
            if found not in legal:
                reasons.append(f"{operand} is in {found}; legal: {' or '.join(legal)}")
        return reasons

    def _check_atoms(self, asked: Asked, name: str) -> list[str]:
        if not self.atoms:
            return []
        found = self._combination(asked, name) if any(atom.dtypes for atom in self.atoms) else ()
        atoms = [atom for atom in self.atoms if not atom.dtypes or found in atom.dtypes]
        if not atoms:
            return [f"no shape for the types {', '.join(_types(self.operands, found))}"]
        answers = [self._check_atom(atom, asked, name) for atom in atoms]
        return min(answers, key=len)

    def _check_atom(self, atom: Atom, asked: Asked, name: str) -> list[str]:
        reasons = []
        for axis, extent in atom.extents().items():
            value = _stated(asked.sizes, axis, f"the size {axis}", name)
            if axis in self.tails and (value is None or extent.high is None or value <= extent.high):
                continue
            if value is None:
                reasons.append(f"{axis} is not known at compile time; it must be {extent}")
            else:
                reasons += atom.misfits({axis: value})
        return reasons

    def _check_alignments(self, asked: Asked, name: str) -> list[str]:
        reasons = []
        for need in self.alignments:
            what = f"the {need.what} of {need.operand}"
            known = _stated(asked.alignments, (need.operand, need.what), f"the alignment of {what}", name)
            if known % need.bytes:
                reasons.append(f"{what} is a multiple of {known} bytes; nearest legal: a multiple of {need.bytes}")
        return reasons

    def _check_threads(self, asked: Asked) -> list[str]:
        if self.threads is None:
            return []
        if asked.threads is None:
            return [f"the number of threads is not known at compile time; it must be {self.threads}"]
        if asked.threads in self.threads:
            return []
        return [_outside("threads", asked.threads, self.threads, "")]


def _extent(size: Size) -> Extent:
    return size if isinstance(size, Extent) else Extent(size)


def _outside(name: str, value: int, extent: Extent, noun: str) -> str:
    if extent.high is not None and value > extent.high:
        fault = f"above the limit {extent.high}"
    elif value % extent.step:
        fault = f"not a multiple of {noun}{extent.step}"
    else:
        fault = f"below the limit {extent.least}"
    return f"{name}={value} is {fault}; nearest legal: {' or '.join(map(str, extent.nearest(value)))}"


@functools.lru_cache(maxsize=4096)
def no_instruction(operands: tuple[str, ...], legal: frozenset[tuple[str, ...]], found: tuple[str, ...]) -> str:
    """Return the rejection reason of a combination of element types that is not legal."""
    nearest = max(sorted(legal), key=lambda row: sum(map(str.__eq__, row, found)))
    asked, instead = (", ".join(_types(operands, row)) for row in (found, nearest))
    return f"no instruction for the types {asked}; nearest legal: {instead}"


def _types(operands: tuple[str, ...], row: tuple[str, ...]) -> list[str]:
    return [f"{operand} {dtype}" for operand, dtype in zip(operands, row, strict=True)]


def _stated(facts: Mapping[K, V], key: K, what: str, name: str) -> V:
    try:
        return facts[key]
    except KeyError:
        detail = f"has a table that constrains {what}, but does not state it"
        raise VariantCrashed(variant=name, detail=detail) from None
