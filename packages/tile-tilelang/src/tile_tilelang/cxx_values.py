"""Values and memory of functions in CUDA's C++."""

from __future__ import annotations

import operator
from typing import Any

import tile_core.language as T
from tile_core.dtypes import DTYPES
from tile_core.records import dataclass
from tile_core.values.builder import current
from tile_core.values.value import Value
from tile_tilelang.instructions import ElementPointer

#: Type of C++ -> tile's.
TYPES = {
    "int": "int32", "uint": "uint32", "unsigned": "uint32", "unsigned int": "uint32", "half": "float16",
    "signed char": "int8", "unsigned char": "uint8", "short": "int16", "unsigned short": "uint16",
    **{f"{kind}{bits}_t": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32)},
}  # fmt: skip


class Outside(Exception):
    """A construct outside of the subset."""


class CxxValue:
    """An operand in a translated text: a value, an element or an address."""

    def read(self) -> Typed:
        """Return its value."""
        raise Outside("an address that is used as a value")


@dataclass(frozen=True)
class Typed(CxxValue):
    """A value and its type: an integer of Python if it is known while tracing."""

    dtype: str
    value: Any

    def read(self) -> Typed:
        """Return itself."""
        return self

    def known(self) -> int:
        """Return the integer.

        Raises
        ------
        Outside
            It is computed by the kernel.
        """
        if isinstance(self.value, Value):
            raise Outside("a condition, a size, a bound, a shift, an index or a table that is computed")
        return int(self.value)

    def tile(self) -> Any:
        """Return a value of the language."""
        return self.value if isinstance(self.value, Value) else T.cast(self.value, self.dtype)

    def to(self, dtype: str) -> Typed:
        """Return it converted: integers modulo their range, floats rounded."""
        if isinstance(self.value, Value) or DTYPES[dtype].is_float:
            return self if dtype == self.dtype else Typed(dtype, T.cast(self.tile(), dtype))
        bits = DTYPES[dtype].bits
        number = int(self.value) % (1 << bits)
        return Typed(dtype, number - (1 << bits) if dtype[0] == "i" and number >> (bits - 1) else number)

    def bits_as(self, dtype: str) -> Typed:
        """Return its bits as a type of its size."""
        if dtype == self.dtype or not (isinstance(self.value, Value) or DTYPES[dtype].is_float):
            return self.to(dtype)
        return Typed(dtype, T.reinterpret(self.tile(), dtype))


def common_type(*values: Typed) -> str:
    """Return the type of the result of an operator with integers as operands.

    Raises
    ------
    Outside
        An operand is a float or has more than 32 bits.
    """
    kinds = [x.dtype for x in values]
    if wrong := [k for k in kinds if DTYPES[k].is_float or DTYPES[k].bits > 32]:
        raise Outside("arithmetic of floats" if DTYPES[wrong[0]].is_float else f"arithmetic of {wrong[0]}")
    return "uint32" if "uint32" in kinds else "int32"


def computed(name: str, a: Typed, b: Typed) -> Typed:
    """Return the result of an operator of Python's name, after C++'s conversions."""
    common, shifts = common_type(a, b), name.endswith("shift")
    if shifts:
        common = common_type(a)
        if not 0 <= b.known() < 32:
            raise Outside("a shift by another count than 0 to 31")
        b = b.to("int32")
    if name in ("floordiv", "mod"):
        if isinstance(a.value, Value) or isinstance(b.value, Value):
            raise Outside("a division of integers that the kernel computes")
        if not a.to(common).known() >= 0 < b.to(common).known():
            raise Outside("a division by zero, or of negative integers")
    a, b, function = a.to(common), b.to(common), getattr(operator, name)
    if isinstance(a.value, Value) or isinstance(b.value, Value):
        return Typed(common, function(a.tile(), b.tile()))
    return Typed(common, function(a.value, b.value)).to(common)


class Memory:
    """Elements of a variable, known while tracing, or of a buffer."""

    def __init__(self, dtype: str, count: int = 1, start: ElementPointer | None = None) -> None:
        self.dtype, self.size, self.count, self._start = dtype, DTYPES[dtype].bits // 8, count, start
        self._cells: dict[int, Typed] = {}

    def is_empty(self) -> bool:
        """Whether it is a variable and no element has a value."""
        return self._start is None and not self._cells

    def check(self, size: int) -> None:
        """Refuse accesses of a size that would take 64-bit words apart or together."""
        if size != self.size and max(size, self.size) > 4:
            raise Outside(f"an access of {8 * size} bits to elements of {8 * self.size}")

    def get(self, index: int) -> Typed:
        """Return an element."""
        if self._start is not None:
            return Typed(self.dtype, self._start.buffer[self._start.row(index)])
        if index not in self._cells:
            raise Outside("a variable that is read before it is written")
        return self._cells[index]

    def set(self, index: int, value: Typed) -> None:
        """Write an element; name a computed value, so that it is computed once."""
        if self._start is not None:
            self._start.buffer[self._start.row(index)] = value.tile()
        elif not 0 <= index < self.count:
            raise Outside("an index outside of an array")
        elif isinstance(value.value, Value):
            made = current("T.call_extern").bind("c", value.value.expr)
            self._cells[index] = Typed(value.dtype, Value(made, value.value.dtype))
        else:
            self._cells[index] = value


@dataclass(frozen=True)
class CxxPointer(CxxValue):
    """An address: bytes behind the start of a memory, read as elements of a type."""

    memory: Memory
    at: int
    dtype: str

    def __add__(self, count: CxxValue) -> CxxPointer:
        return CxxPointer(self.memory, self.at + count.read().known() * DTYPES[self.dtype].bits // 8, self.dtype)

    def __getitem__(self, count: CxxValue) -> Element:
        return Element(self + count)


@dataclass(frozen=True)
class Element(CxxValue):
    """The element at an address: one of the memory, a part of one, or several."""

    address: CxxPointer

    def is_unwritten(self) -> bool:
        """Whether it is a variable without a value."""
        return self.address.memory.is_empty()

    def read(self) -> Typed:
        """Return the value."""
        memory, dtype = self.address.memory, self.address.dtype
        size = DTYPES[dtype].bits // 8
        memory.check(size)
        first, inside = divmod(self.address.at, memory.size)
        if self.address.at % min(size, memory.size):
            raise Outside("an address that is not aligned")
        if size == memory.size:
            return memory.get(first).bits_as(dtype)
        word = Typed("uint32", 0)
        for k in range(max(1, size // memory.size)):
            part = memory.get(first + k).bits_as(f"uint{8 * memory.size}").to("uint32")
            word = computed("or_", word, computed("lshift", part, Typed("int32", 8 * memory.size * k)))
        return computed("rshift", word, Typed("int32", 8 * inside)).to(f"uint{8 * size}").bits_as(dtype)

    def write(self, value: Typed) -> None:
        """Write the value, which fills one or several elements of the memory."""
        memory, dtype = self.address.memory, self.address.dtype
        size = DTYPES[dtype].bits // 8
        memory.check(size)
        if self.address.at % memory.size or size < memory.size:
            raise Outside("a part of an element that is written")
        bits, first = value.to(dtype), self.address.at // memory.size
        if size == memory.size:
            memory.set(first, bits.bits_as(memory.dtype))
            return
        word = bits.bits_as(f"uint{8 * size}")
        for k in range(size // memory.size):
            part = computed("rshift", word, Typed("int32", 8 * memory.size * k)).to(f"uint{8 * memory.size}")
            memory.set(first + k, part.bits_as(memory.dtype))
