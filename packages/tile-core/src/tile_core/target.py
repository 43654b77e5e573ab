"""The target of a compilation: ``Target`` identifies it, ``Capabilities`` describes it.

Both are plain frozen data that a backend returns once. Passes query ``Capabilities``; no pass depends on the name of
its target, so that a backend that is installed later needs no change here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, fields
from typing import Any, Generic, TypeVar

from tile_core.dtypes import DTYPES
from tile_core.errors.plugins import InvalidDeclaration, MalformedTarget, MissingFact
from tile_core.records import dataclass

T = TypeVar("T")


class FrozenMap(Mapping[Any, Any]):
    """A read-only, ordered mapping that compares, pickles, and hashes by its keys."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Any] | None = None) -> None:
        self._items: dict[str, Any] = dict(items or {})

    def __getitem__(self, key: str) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items))

    def __repr__(self) -> str:
        return repr(self._items)


@dataclass(frozen=True)
class Fact(Generic[T]):
    """A typed key into ``Capabilities.extra``.

    A backend makes one at module level and both writes and reads with it: ``CLUSTERS = Fact("clusters", bool, False)``,
    ``Capabilities(extra=CLUSTERS.value(True))``, ``capabilities.fact(CLUSTERS)``.

    Parameters
    ----------
    name
        Key in ``Capabilities.extra``.
    type
        Type of the value.
    default
        Value for a target that does not state it; ``None`` makes the fact mandatory.
    """

    name: str
    type: type[T]
    default: T | None = None

    def value(self, value: T) -> dict[str, object]:
        """A mapping with this one fact, for ``Capabilities(extra=...)``."""
        return {self.name: value}


#: Features that a target lacks: element types, ops (rows of the kit's summary), ``"threads"``, ``"warps"``. The
#: conformance kit excuses a target from cases that need them, and kernels that hold such types are refused (U116).
ABSENT: Fact[tuple[Any, ...]] = Fact("absent", tuple, ())

_REDUCTIONS = ("sum", "max", "min", "bitand", "bitor")
#: Threads of a group: ``T.ballot`` has 64 bits, and lanes are distinguished by bits of a thread's index.
WIDTHS = (1, 2, 4, 8, 16, 32, 64)


def every_atomic(integers: Iterable[str], floats: Iterable[str]) -> frozenset[tuple[str, str]]:
    """Return ``Capabilities.atomics`` with every update of these types, bits of integers only."""
    whole, parts = list(integers), list(floats)
    updates = {(kind, dtype) for kind in ("add", "max", "min") for dtype in (*whole, *parts)}
    return frozenset(updates | {(kind, dtype) for kind in ("and", "or", "xor") for dtype in whole})


@dataclass(frozen=True)
class Capabilities:
    """The capabilities of a target, as data.

    Parameters
    ----------
    execution_width
        Number of threads that execute in lockstep, a power of two up to 64, or ``None`` where there are no such groups.
    max_threads
        Largest number of threads of one block.
    shared_bytes
        Bytes of shared memory that one block may use.
    shared_banks
        Number of banks of four bytes, each of which serves one request at a time; 0 if unknown
        or irrelevant.
    resident_threads
        Number of threads for which a launch reserves local memory, whatever its grid:
        those that the largest device of the target runs at a time; 0 if launches reserve nothing.
    thread_registers, block_registers
        32-bit registers of one thread, and of all threads of a block, at most; 0 if unknown.
    code_operations
        Operations that loops may write out in the code of one thread: compilers of the target's text take more than
        seconds for more, so beyond it loops stay loops (see ``simt/code_size.py``).
    vector_bytes
        Legal widths of one vector access in bytes, ascending.
    async_copies
        Kinds of asynchronous copies, in the backend's own words; empty if copies are synchronous.
    native_dtypes
        Element types with native arithmetic; all others are converted before they are computed with.
    atomics
        Pairs (operation, element type) that are atomic on global memory.
    partial_barriers
        At how many barriers parts of a block's threads can wait, beside that of the block.
    phase_barriers
        Whether threads can arrive at objects in shared memory, and wait for a phase of one.
    grid_limits
        Blocks along x, y and z at most; empty if launches count them without a limit of their own.
    max_cluster
        Blocks of a cluster, which run together and reach each other's shared memory, at most; 1 without clusters.
    offset_bits
        Width of the integers that the elements of a tensor of constant shape are counted with: 32 or 64.
    group_reductions
        Pairs (operation, element type) that one instruction combines over all threads of a group: ``"sum"``, ``"max"``,
        ``"min"``, ``"bitand"`` and ``"bitor"`` of 32-bit types, but no extreme of floats: the core makes that from one
        of integers, so that NaN, zeros and subnormals are ordered on every machine.
    loose_extremes
        Whether the larger or smaller of two float32 is one instruction that ignores a NaN but may confuse zeros, or
        subnormals: rows are reduced by it, and again exactly where that matters.
    roundings
        Roundings of arithmetic that a program can name: ``"rn"`` and, where there are instructions, ``"rz"``, ``"ru"``
        and ``"rd"``.
    extra
        Facts for the backend's own code; read with ``fact``.

    Raises
    ------
    InvalidDeclaration
        If a field contradicts its meaning.
    """

    execution_width: int | None = None
    max_threads: int = 1024
    shared_bytes: int = 0
    shared_banks: int = 0
    resident_threads: int = 0
    thread_registers: int = 0
    block_registers: int = 0
    code_operations: int = 20_000
    vector_bytes: tuple[int, ...] = ()
    async_copies: frozenset[str] = frozenset()
    native_dtypes: frozenset[str] = frozenset({"float32", "int32"})
    atomics: frozenset[tuple[str, str]] = frozenset()
    partial_barriers: int = 0
    phase_barriers: bool = False
    grid_limits: tuple[int, ...] = ()
    max_cluster: int = 1
    offset_bits: int = 32
    group_reductions: frozenset[tuple[str, str]] = frozenset()
    loose_extremes: bool = False
    roundings: frozenset[str] = frozenset({"rn"})
    extra: Mapping[str, object] = field(default_factory=FrozenMap)

    def __post_init__(self) -> None:
        for name in ("async_copies", "native_dtypes", "atomics", "group_reductions", "roundings"):
            object.__setattr__(self, name, frozenset(getattr(self, name)))
        object.__setattr__(self, "vector_bytes", tuple(self.vector_bytes))
        object.__setattr__(self, "extra", FrozenMap(self.extra))
        width = self.execution_width
        positive = "a positive number"
        grouped = width is None or (_is_count(width, 1) and width in WIDTHS)
        _require(grouped, "execution_width", width, "a power of two up to 64, or None")
        _require(_is_count(self.max_threads, 1), "max_threads", self.max_threads, positive)
        _require(_is_count(self.shared_bytes, 0), "shared_bytes", self.shared_bytes, "0 or more bytes")
        banks = self.shared_banks
        _require(_is_count(banks, 0) and banks & (banks - 1) == 0, "shared_banks", banks, "0 or a power of two")
        _require(_is_count(self.resident_threads, 0), "resident_threads", self.resident_threads, "0 or more")
        for name in ("thread_registers", "block_registers"):
            _require(_is_count(getattr(self, name), 0), name, getattr(self, name), "0 or more")
        _require(_is_count(self.code_operations, 1), "code_operations", self.code_operations, positive)
        limits = tuple(self.grid_limits)
        object.__setattr__(self, "grid_limits", limits)
        three = len(limits) in (0, 3) and all(_is_count(n, 1) for n in limits)
        _require(three, "grid_limits", limits, "three positive numbers, or none")
        _require(_is_count(self.max_cluster, 1), "max_cluster", self.max_cluster, positive)
        _require(_is_count(self.partial_barriers, 0), "partial_barriers", self.partial_barriers, "0 or more")
        ascending = tuple(sorted(set(self.vector_bytes)))
        legal = self.vector_bytes == ascending and all(_is_count(v, 1) for v in self.vector_bytes)
        _require(legal, "vector_bytes", self.vector_bytes, "ascending positive numbers of bytes")
        _require(self.offset_bits in (32, 64), "offset_bits", self.offset_bits, "32 or 64")
        unknown = sorted(self.native_dtypes - set(DTYPES))
        _require(not unknown, "native_dtypes", unknown, "names of element types")
        pairs = all(isinstance(p, tuple) and len(p) == 2 and p[1] in DTYPES for p in self.atomics)
        _require(pairs, "atomics", sorted(map(str, self.atomics)), "pairs (operation, element type)")

        known = {(kind, d) for kind in _REDUCTIONS for d in ("int32", "uint32")} | {("sum", "float32")}
        strange = sorted(map(str, self.group_reductions - known))
        _require(not strange, "group_reductions", strange, "additions, maxima, minima and bits of 32-bit types")

    def supports_atomic(self, op: str, dtype: str) -> bool:
        """Whether the operation ``op`` is atomic on elements of ``dtype``."""
        return (op, dtype) in self.atomics

    def registers_of(self, threads: int) -> int | None:
        """Return the registers of each of ``threads`` threads, or ``None`` if unknown."""
        if not self.thread_registers or not self.block_registers:
            return None
        return min(self.thread_registers, self.block_registers // threads)

    def has_async_copy(self, kind: str) -> bool:
        """Whether asynchronous copies of ``kind`` exist."""
        return kind in self.async_copies

    def fact(self, key: Fact[T]) -> T:
        """The value of one of the backend's own facts.

        Raises
        ------
        MissingFact
            If the target does not state it and the key has no default, or its value is not of the key's type.
        """
        value = self.extra.get(key.name, key.default)
        if not isinstance(value, key.type):
            raise MissingFact(name=key.name, expected=key.type.__name__, found=value)
        return value

    def as_dict(self) -> dict[str, Any]:
        """All fields as JSON-ready values in a stable order (for cache keys, artefacts and listings)."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}


@dataclass(frozen=True)
class Target:
    """A compilation target, made by a backend's ``tile_target`` or ``tile_detect``.

    Parameters
    ----------
    text
        Canonical text: ``tile_target(target.text)`` gives an equal target again.
    kind
        The part of ``text`` before the colon.
    backend
        Name of the backend that owns the target.
    capabilities
        Its capabilities.
    arch
        Architecture within the kind; empty if the kind has none.
    options
        Further choices that the text made, for example ``{"threads": "4"}``.

    Raises
    ------
    InvalidDeclaration
        If the text does not belong to the kind, or a field has the wrong type.
    """

    text: str
    kind: str
    backend: str
    capabilities: Capabilities
    arch: str = ""
    options: Mapping[str, object] = field(default_factory=FrozenMap)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", FrozenMap(self.options))
        _require(isinstance(self.text, str) and bool(self.text), "text", self.text, "a canonical text", "Target")
        expected = f"the kind of {self.text!r}"
        _require(split_target(self.text).kind == self.kind, "kind", self.kind, expected, "Target")
        named = isinstance(self.backend, str) and bool(self.backend)
        _require(named, "backend", self.backend, "the name of the owning backend", "Target")
        known = isinstance(self.capabilities, Capabilities)
        _require(known, "capabilities", self.capabilities, "a Capabilities", "Target")

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class TargetText:
    """The parts of a target text ``kind[:arch][,key=value...]``."""

    kind: str
    arch: str = ""
    options: Mapping[str, str] = field(default_factory=FrozenMap)

    def __str__(self) -> str:
        parts = [self.arch] if self.arch else []
        parts += [f"{key}={value}" for key, value in self.options.items()]
        return f"{self.kind}:{','.join(parts)}" if parts else self.kind


def split_target(text: str) -> TargetText:
    """Split a target text; ``str`` of the result is its canonical spelling.

    Parameters
    ----------
    text
        ``kind``, ``kind:arch``, ``kind:arch,key=value`` or ``kind:key=value``.

    Raises
    ------
    MalformedTarget
        If the text has another shape.
    """
    kind, colon, rest = str(text).strip().partition(":")
    parts = [part.strip() for part in rest.split(",")] if colon else []
    arch = parts.pop(0) if parts and "=" not in parts[0] else ""
    pairs = [part.partition("=") for part in parts]
    options = dict(sorted((key.strip(), value.strip()) for key, _, value in pairs))
    complete = all(key.strip() and value.strip() for key, _, value in pairs)
    if not KIND.fullmatch(kind) or not complete or len(options) != len(pairs) or (colon and not (arch or options)):
        raise MalformedTarget(found=text)
    return TargetText(kind, arch, FrozenMap(options))


KIND = re.compile(r"[a-z][a-z0-9_-]*")


def _is_count(value: object, low: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= low


def _require(holds: bool, name: str, found: object, expected: str, what: str = "Capabilities") -> None:
    if not holds:
        raise InvalidDeclaration(what=what, field=name, found=found, expected=expected)


def _plain(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(_plain(v) for v in value)
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(v) for key, v in sorted(value.items(), key=lambda item: str(item[0]))}
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)
