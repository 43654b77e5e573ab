"""Facts of an emitter about a text: launch parameters, and the source of each line.

Everything here is plain data: frozen, comparable, and to JSON and back without loss, so that a text and its facts can
be stored, loaded and run where the compiler is not installed.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal

from tile_runtime.abi.descriptor import TensorDescriptor
from tile_runtime.abi.signature import Access, Dim, dim_from, evaluate, plain_dim, symbols_of
from tile_runtime.dtypes import dtype
from tile_runtime.errors.base import InternalError, Where
from tile_runtime.records import dataclass

if TYPE_CHECKING:
    from tile_runtime.abi.adapter import Built

Attribute = bool | int | float | str


@dataclass(frozen=True)
class ParamFact:
    """One parameter of the emitted function, in the order of its own parameter list.

    Attributes
    ----------
    name
        Its name in the text.
    kind
        ``"pointer"``: the address of an array; ``"scalar"``: a value; ``"opaque"``: bytes private to the
        backend, passed by value.
    dtype
        Element type of the array or type of the scalar; empty for opaque bytes.
    access
        How the function accesses the array.
    align
        The alignment, in bytes, that the text assumes of the array's first element, a power of two; 0 means the size of
        an element. `texts.choose` ensures that a launch satisfies it. For opaque bytes, their alignment.
    bytes
        The number of opaque bytes; 0 for arrays and scalars.
    descriptor
        What the runtime makes opaque bytes of, for each launch; without it, calls pass their value.
    """

    name: str
    kind: Literal["pointer", "scalar", "opaque"]
    dtype: str = ""
    access: Access = "readwrite"
    align: int = 0
    bytes: int = 0
    descriptor: TensorDescriptor | None = None

    def __post_init__(self) -> None:
        if self.kind != "opaque":
            dtype(self.dtype)
        if self.descriptor is not None and self.kind != "opaque":
            raise InternalError(stage="launch facts", detail=f"{self.name} is {self.kind}, and has a descriptor")
        if (self.bytes > 0) != (self.kind == "opaque"):
            raise InternalError(stage="launch facts", detail=f"{self.name} is {self.kind}, of {self.bytes} bytes")
        if self.align < 0 or self.align & (self.align - 1):
            raise InternalError(stage="launch facts", detail=f"{self.name} has an alignment of {self.align} bytes")

    def to_json(self) -> list[Any]:
        """Return a value of lists, dicts, strings and numbers that `from_json` reads."""
        row: list[Any] = [self.name, self.kind, str(self.dtype), self.access, self.align]
        if self.bytes:
            row.append(self.bytes)
        return row if self.descriptor is None else [*row, self.descriptor.to_json()]

    @staticmethod
    def from_json(row: Sequence[Any]) -> ParamFact:
        """Read what `to_json` wrote."""
        name, kind, element, access, align, *rest = row
        made = None if len(rest) < 2 else TensorDescriptor.from_json(rest[1])
        return ParamFact(name, kind, element, access, align, rest[0] if rest else 0, made)


@dataclass(frozen=True)
class SharedArray:
    """A named part of the block's shared memory.

    Parts whose live ranges do not overlap may share bytes.

    Attributes
    ----------
    name
        As the user wrote it.
    offset, bytes
        Where it lies in the block's shared memory.
    dtype
        Its element type.
    """

    name: str
    offset: int
    bytes: int
    dtype: str


@dataclass(frozen=True)
class LineMap:
    """A map from lines of an emitted text to locations in the user's source.

    Attributes
    ----------
    lines
        Pairs of a 1-based line of the text and a location, ordered by line. A pair applies up to the next one;
        ``None`` is text without a location.
    """

    lines: tuple[tuple[int, Where | None], ...] = ()

    def __post_init__(self) -> None:
        numbers = [line for line, _ in self.lines]
        if numbers != sorted(set(numbers)) or (numbers and numbers[0] < 1):
            raise InternalError(stage="line map", detail="the lines of the text must be positive and increasing")

    @staticmethod
    def of(locations: Iterable[Where | None]) -> LineMap:
        """Return the map of a text from the locations of its lines."""
        pairs: list[tuple[int, Where | None]] = []
        for line, where in enumerate(locations, 1):
            if where != (pairs[-1][1] if pairs else None):
                pairs.append((line, where))
        return LineMap(tuple(pairs))

    def where(self, line: int) -> Where | None:
        """Return the location that a line of the text comes from, if there is one."""
        at = bisect.bisect_right(self.lines, line, key=lambda pair: pair[0])
        return self.lines[at - 1][1] if at else None


@dataclass(frozen=True)
class LaunchFacts:
    """How to launch an emitted function.

    Attributes
    ----------
    entry
        Name of the function in the text.
    params
        Its parameters in order; those with a descriptor, which no call passes, come last.
    grid
        Blocks along x, y and z; dims of scalar parameters, for example ``("ceildiv", "m", 128)``.
    block
        Threads of a block along x, y and z.
    shared_bytes
        Bytes of shared memory that a launch gives to each block, in addition to arrays that the text declares itself.
    shared
        The arrays in them, for messages.
    attributes
        Private to the backend and its runtimes.
    line_map
        The source locations of the text's lines.
    where
        Location of the kernel's definition, for messages.
    divides
        For names of integer parameters a number that the text assumes to divide their values, for example
        ``{"n": 8}`` where rows of ``n`` elements are read in vectors of 8. `texts.choose` ensures that a launch
        satisfies it.
    cluster
        Blocks along x, y and z launched together that can access each other's shared memory; the grid is made of
        whole clusters.
    name
        Name of the kernel, for messages, where the text calls it otherwise.

    Raises
    ------
    InternalError
        If a field contradicts its meaning: an emitter is at fault.
    """

    entry: str
    params: tuple[ParamFact, ...]
    grid: tuple[Dim, Dim, Dim]
    block: tuple[int, int, int]
    shared_bytes: int = 0
    shared: tuple[SharedArray, ...] = ()
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    line_map: LineMap = LineMap()
    where: Where | None = None
    divides: Mapping[str, int] = field(default_factory=dict)
    cluster: tuple[int, int, int] = (1, 1, 1)
    name: str = ""

    def __post_init__(self) -> None:
        names = [p.name for p in self.params]
        scalars = {p.name for p in self.params if p.kind == "scalar"}
        integers = {p.name for p in self.params if p.kind == "scalar" and dtype(p.dtype).is_integer}
        unknown = {s for dim in self.grid for s in symbols_of(dim)} - scalars
        divided = set(self.divides) - integers
        made = [p.descriptor is not None for p in self.params]
        described = [d for d in (p.descriptor for p in self.params) if d is not None]
        sources = {d.source for d in described} - {p.name for p in self.params if p.kind == "pointer"}
        needed = {s for d in described for s in d.symbols} - integers
        for holds, detail in (
            (self.entry.isidentifier(), f"{self.entry!r} is not a name"),
            (len(set(names)) == len(names), f"parameters of one name: {names}"),
            (not unknown, f"the grid needs {sorted(unknown)}, which are not scalar parameters"),
            (made == sorted(made), "a parameter of a call stands after one with a descriptor"),
            (not sources, f"descriptors of {sorted(sources)}, which are not arrays"),
            (not needed, f"descriptors need {sorted(needed)}, which are not integer parameters"),
            (not divided, f"divisors of {sorted(divided)}, which are not integer parameters"),
            (all(n >= 1 for n in self.divides.values()), f"the divisors {dict(self.divides)}"),
            (len(self.grid) == len(self.block) == 3, "grid and block have three extents"),
            (all(n >= 1 for n in self.block), f"a block of {self.block} threads"),
            (len(self.cluster) == 3 and min(self.cluster) >= 1, f"a cluster of {self.cluster} blocks"),
            (
                all(n % c == 0 for n, c in zip(self.grid, self.cluster, strict=False) if isinstance(n, int)),
                f"a grid of {self.grid} blocks in clusters of {self.cluster}",
            ),
            (self.shared_bytes >= 0, f"{self.shared_bytes} bytes of shared memory"),
            (all(a.offset >= 0 and a.bytes > 0 for a in self.shared), "a shared array of no bytes"),
        ):
            if not holds:
                raise InternalError(stage="launch facts", detail=detail)

    @property
    def kernel(self) -> str:
        """The kernel's name, for messages."""
        return self.name or self.entry

    @property
    def given(self) -> tuple[ParamFact, ...]:
        """The parameters whose values a call passes: all but those with a descriptor."""
        return tuple(p for p in self.params if p.descriptor is None)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    def blocks(self, values: Mapping[str, int]) -> tuple[int, int, int]:
        """Return the grid for the values of scalar parameters; a negative extent counts as 0.

        Raises
        ------
        InternalError
            A value is missing, or divides by zero.
        """
        found = [evaluate(dim, values) for dim in self.grid]
        if any(n is None for n in found):
            raise InternalError(stage="launch", detail=f"the grid {self.grid} does not follow from {dict(values)}")
        x, y, z = (max(0, int(n or 0)) for n in found)
        return x, y, z

    def to_json(self) -> dict[str, Any]:
        """Return a value of lists, dicts, strings, numbers and booleans that `from_json` reads."""
        return {
            "entry": self.entry,
            "params": [p.to_json() for p in self.params],
            "grid": [plain_dim(dim) for dim in self.grid],
            "block": list(self.block),
            "shared_bytes": self.shared_bytes,
            "shared": [[a.name, a.offset, a.bytes, str(a.dtype)] for a in self.shared],
            "attributes": dict(self.attributes),
            "line_map": [[line, _encoded_location(where)] for line, where in self.line_map.lines],
            "where": _encoded_location(self.where),
            "divides": dict(self.divides),
            "cluster": list(self.cluster),
            **({"name": self.name} if self.name else {}),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> LaunchFacts:
        """Read what `to_json` wrote."""
        x, y, z = (dim_from(dim) for dim in data["grid"])
        bx, by, bz = data["block"]
        cx, cy, cz = data.get("cluster", (1, 1, 1))  # younger than the first format
        return LaunchFacts(
            entry=data["entry"],
            params=tuple(ParamFact.from_json(p) for p in data["params"]),
            grid=(x, y, z),
            block=(bx, by, bz),
            shared_bytes=data["shared_bytes"],
            shared=tuple(SharedArray(*a) for a in data["shared"]),
            attributes=dict(data["attributes"]),
            line_map=LineMap(tuple((line, _where(location)) for line, location in data["line_map"])),
            where=_where(data["where"]),
            divides=dict(data["divides"]),
            cluster=(cx, cy, cz),
            name=data.get("name", ""),  # younger, too
        )


@dataclass(frozen=True)
class KernelText:
    """A text that can be launched, as loaded by a runtime that builds from text.

    Attributes
    ----------
    text
        The text in the device's language.
    facts
        How to launch it. Its parameters are those of the kernel's signature in order, the symbols that the launch also
        takes, and those with descriptors.
    general
        Makes the text of the same kernel that assumes less about the arguments of a call, for calls that this one
        cannot take; ``None`` if it takes all. It returns ``None`` if there is none: the program demands an instruction
        that relies on all of it. Called at most once, by the runtime.
    built
        The text as built by a runtime.
    """

    text: str
    facts: LaunchFacts
    general: Callable[[], KernelText | None] | None = field(default=None, compare=False, repr=False)
    built: Built | None = field(default=None, compare=False, repr=False)


def _encoded_location(where: Where | None) -> list[Any] | None:
    return None if where is None else [where.file, where.line]


def _where(data: list[Any] | None) -> Where | None:
    return None if data is None else Where(*data)
