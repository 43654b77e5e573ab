"""Arguments of a launch as one file, shared by caller and kernel process.

Each array has its own pages and lies at their end, so that an access past its end leaves them. Its address has exactly
exactly the guaranteed alignment.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Mapping
from dataclasses import field
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from tile_core.abi.kernel_text import LaunchFacts, ParamFact
from tile_core.dtypes import dtype
from tile_core.emit.dialect import Dialect
from tile_core.numerics.codecs import encode
from tile_core.records import dataclass
from tile_emulator import sparse
from tile_emulator.errors import BadArguments
from tile_emulator.process import above_standard
from tile_runtime.numerics.formats import FORMATS
from tile_runtime.texts.guarded import Footprint

PAGE = mmap.ALLOCATIONGRANULARITY
READ_ONLY, UNWRITTEN, VALUES = 1, 2, 4  # flags of engine/core.h
VALUE_ALIGNMENT = 128

Array = npt.NDArray[Any]


@dataclass
class Placed:
    """An array of the file.

    Attributes
    ----------
    param
        The parameter; ``None`` for the values of scalars.
    source
        The caller's array.
    file_offset, mapped
        Its pages, in bytes.
    start
        Where in them the lowest byte of its memory lies.
    footprint
        Its memory from there on.
    flags
        What the engine checks.
    shown
        Element type of the caller's array.
    """

    param: ParamFact | None
    source: Array
    file_offset: int
    mapped: int
    start: int
    footprint: Footprint
    flags: int
    shown: np.dtype[Any]


@dataclass
class Image:
    """The file, while it is open."""

    placed: list[Placed] = field(default_factory=list)
    args: list[tuple[int, int]] = field(default_factory=list)
    patches: list[tuple[int, int, int]] = field(default_factory=list)
    size: int = 0
    file: Any = None
    memory: mmap.mmap | None = None

    def __enter__(self) -> Image:
        if hasattr(os, "memfd_create"):
            self.file = os.fdopen(os.memfd_create("tile-emulator"), "r+b")
        else:
            self.file = tempfile.TemporaryFile()
        self.file = above_standard(self.file)
        self.file.truncate(max(self.size, PAGE))
        self.memory = mmap.mmap(self.file.fileno(), max(self.size, PAGE))
        self.fill()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.memory = None  # arrays that look at it keep it open
        self.file.close()

    def fill(self) -> None:
        """Put the caller's values into the file."""
        self.file.truncate(0)
        self.file.truncate(max(self.size, PAGE))
        for placed in self.placed:
            sparse.assign(self.view(placed), placed.source, empty=True)

    def view(self, placed: Placed) -> Array:
        """Return the array's current contents in the file, with the caller's shape and strides."""
        assert self.memory is not None
        return placed.footprint.elements(self.memory, placed.file_offset + placed.start)

    def outputs(self) -> dict[str, Array]:
        """Return copies of the arrays that the kernel may have written, by name."""
        written = [p for p in self.placed if p.param is not None and p.param.access != "read"]
        return {p.param.name: self._copy(p).view(p.shown) for p in written if p.param is not None}

    def _copy(self, placed: Placed) -> Array:
        """Return a copy of an array in the file; a large one remains sparse."""
        if placed.footprint.bytes < sparse.LARGE:
            return self.view(placed).copy()
        memory = sparse.zeros(placed.mapped)
        for start, end in self.data(placed):
            os.preadv(self.file.fileno(), [memoryview(memory)[start:end]], placed.file_offset + start)
        return placed.footprint.elements(memory, placed.start)

    def data(self, placed: Placed) -> list[tuple[int, int]]:
        """Return the parts of an array's pages that hold data, as first byte and end."""
        return sparse.extents(self.file.fileno(), placed.file_offset, placed.mapped)

    @property
    def buffers(self) -> list[tuple[int, int, int, int, int]]:
        """Return the fields that the engine reads: file offset, mapped, start, bytes, flags."""
        return [(p.file_offset, p.mapped, p.start, p.footprint.bytes, p.flags) for p in self.placed]

    def add(
        self, param: ParamFact | None, source: Array, alignment: int, flags: int, shown: np.dtype[Any] | None = None
    ) -> int:
        """Store an array and return its number."""
        footprint = Footprint.of(source)
        size = footprint.bytes
        mapped = -(-(size + 2 * alignment) // PAGE) * PAGE
        start = (mapped - size) // alignment * alignment
        if start % (2 * alignment) == 0 and alignment < VALUE_ALIGNMENT:
            start -= alignment
        self.placed.append(Placed(param, source, self.size, mapped, start, footprint, flags, shown or source.dtype))
        self.size += mapped
        return len(self.placed) - 1

    def put_behind(self, table: int, name: str, n: int, array: Array) -> None:
        """Store the array of a table's element ``n``, which receives its address in the process."""
        kind = np.dtype(f"u{array.itemsize}")
        param = ParamFact(behind(name, n), "pointer", kind.name, "readwrite")
        address = int(array.__array_interface__["data"][0])
        aligned = (
            min(address & -address, VALUE_ALIGNMENT) or VALUE_ALIGNMENT
        )  # the program's guarantees are the caller's duty
        number = self.add(param, array.view(kind), aligned, 0, array.dtype)
        placed = self.placed[table]
        placed.source = placed.source.copy() if not n else placed.source
        placed.source[n] = self.placed[number].footprint.first
        self.patches.append((table, number, placed.footprint.first + 8 * n))


def behind(name: str, n: int) -> str:
    """Return the name of the array whose address is an element of a table."""
    return f"{name}[{n}]"


def make_image(facts: LaunchFacts, values: Mapping[str, Any], dialect: Dialect) -> Image:
    """Lay out the arguments of a launch.

    Parameters
    ----------
    values
        One value per parameter, by name: arrays of storage elements, numbers.

    Raises
    ------
    BadArguments
        A value is missing, unknown or of the wrong kind.
    """
    _require_names(facts, values)
    image = Image()
    numbers: dict[str, int] = {}
    scalars: list[tuple[ParamFact, bytes]] = []
    pointers: list[tuple[str, int, str]] = []
    behind: list[tuple[str, int, Array]] = []
    for param in facts.params:
        value = values.get(param.name)
        if param.kind == "pointer":
            array = value if isinstance(value, np.ndarray) else np.asarray(value)
            stored = _storage(facts, param, array)
            numbers[param.name] = image.add(param, stored, _alignment(param), _flags(param), array.dtype)
            behind += [(param.name, n, np.asarray(other)) for n, other in enumerate(getattr(value, "arrays", ()))]
        elif param.kind == "scalar":
            scalars.append((param, _scalar(facts, param, value)))
        else:
            if dialect.opaque is None:
                raise _bad(facts, f"the dialect {dialect.name!r} makes no values for parameter {param.name!r}")
            data, inner = dialect.opaque(param, values)
            scalars.append((param, data))
            pointers += [(param.name, offset, target) for offset, target in inner]
    for name, _, target in pointers:
        if target not in numbers:
            raise _bad(facts, f"the value of {name!r} holds the address of {target!r}, which is not an array")
    firsts = {name: image.placed[number].footprint.first for name, number in numbers.items()}
    offsets = _add_values(image, [(param, _moved(param, data, pointers, firsts)) for param, data in scalars])
    block = len(image.placed) - 1
    image.args = [
        (numbers[p.name], firsts[p.name]) if p.name in numbers else (block, offsets[p.name]) for p in facts.params
    ]
    image.patches = [(block, numbers[target], offsets[name] + offset) for name, offset, target in pointers]
    for name, n, array in behind:
        image.put_behind(numbers[name], name, n, array)
    return image


def _moved(param: ParamFact, data: bytes, pointers: list[tuple[str, int, str]], firsts: Mapping[str, int]) -> bytes:
    """Return a value's bytes, with addresses relative to first bytes, not first elements."""
    for name, offset, target in pointers:
        if name == param.name and firsts[target]:
            moved = int.from_bytes(data[offset : offset + 8], "little") + firsts[target]
            data = data[:offset] + moved.to_bytes(8, "little") + data[offset + 8 :]
    return data


def _add_values(image: Image, scalars: list[tuple[ParamFact, bytes]]) -> dict[str, int]:
    offsets: dict[str, int] = {}
    content = b""
    for param, data in scalars:
        offsets[param.name] = len(content)
        content += data + bytes(-len(data) % VALUE_ALIGNMENT)
    image.add(None, np.frombuffer(content or bytes(1), np.uint8), VALUE_ALIGNMENT, VALUES)
    return offsets


def _alignment(param: ParamFact) -> int:
    return param.align or max(1, dtype(param.dtype).numpy().itemsize)


def _flags(param: ParamFact) -> int:
    return {"read": READ_ONLY, "write": UNWRITTEN}.get(param.access, 0)


def _storage(facts: LaunchFacts, param: ParamFact, array: Array) -> Array:
    expected = np.dtype(dtype(param.dtype).storage)
    if array.dtype == dtype(param.dtype).numpy():
        array = array.view(expected)
    if array.dtype != expected:
        raise _bad(facts, f"argument {param.name!r} must be an array of {expected}, found {array.dtype}")
    return array


def _scalar(facts: LaunchFacts, param: ParamFact, value: Any) -> bytes:
    try:
        if param.dtype in FORMATS:  # ml_dtypes rounds twice
            return encode(float(value), param.dtype).tobytes()
        return np.asarray(value).astype(dtype(param.dtype).numpy(), casting="unsafe").tobytes()
    except (TypeError, ValueError, OverflowError) as error:
        raise _bad(facts, f"argument {param.name!r} must be a number, found {value!r}") from error


def _require_names(facts: LaunchFacts, values: Mapping[str, Any]) -> None:
    names = [p.name for p in facts.given]
    missing = [name for name in names if name not in values]
    unknown = [name for name in values if name not in names]
    if missing or unknown:
        found = [f"missing {', '.join(missing)}"] * bool(missing) + [f"unknown {', '.join(unknown)}"] * bool(unknown)
        raise _bad(facts, "; ".join(found))


def _bad(facts: LaunchFacts, detail: str) -> BadArguments:
    expected = ", ".join(p.name for p in facts.given) or "nothing"
    return BadArguments(kernel=facts.kernel, detail=detail, expected=expected, where=facts.where)
