"""Execute PTX of one thread: NVRTC's output for a text, checked without a GPU.

It implements the instructions of integer kernels (PTX ISA, "Instruction Set"), and refuses the others by their name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

_MASK32 = 0xFFFFFFFF
_LIMIT = 200_000


@dataclass
class Memory:
    """Global memory: arrays far from each other."""

    arrays: dict[int, bytearray] = field(default_factory=dict)

    def put(self, data: bytes) -> int:
        """Store an array and return its address."""
        address = 0x10000 * (len(self.arrays) + 1)
        self.arrays[address] = bytearray(data)
        return address

    def at(self, address: int, size: int) -> tuple[bytearray, int]:
        """Return the array that has ``size`` bytes at an address, and their offset."""
        for start, data in self.arrays.items():
            if start <= address and address + size <= start + len(data):
                return data, address - start
        raise IndexError(f"{size} bytes at {address:#x}")


def execute(ptx: str, arguments: list[int], memory: Memory) -> None:
    """Run the only kernel of a module with one thread.

    Parameters
    ----------
    ptx
        The module.
    arguments
        Values of the kernel's parameters: addresses in ``memory`` and integers.
    memory
        What is read and written.

    Raises
    ------
    IndexError
        If the kernel accesses what is no array's.
    """
    head, _, body = ptx.partition(".visible .entry")[2].partition("{")
    names = dict(zip(re.findall(r"\.param \S+ (\w+)", head), arguments, strict=True))
    lines, labels = [], {}
    for line in (text.split("//")[0].strip().rstrip(";") for text in body.splitlines()):
        if re.match(r"\$\w+:$", line):
            labels[line[:-1]] = len(lines)
        elif line and line[0] not in ".{}":
            lines.append(line)
    _Thread(lines, labels, names, memory).run()


class _Thread:
    def __init__(self, lines: list[str], labels: dict[str, int], names: dict[str, int], memory: Memory) -> None:
        self.lines, self.labels, self.names, self.memory = lines, labels, names, memory
        self.registers: dict[str, int] = {}

    def run(self) -> None:
        at = 0
        for _ in range(_LIMIT):
            line = self.lines[at]
            at += 1
            guarded = re.match(r"@(!?)(%\w+)\s+(.*)", line)
            if guarded:
                if bool(self.registers[guarded[2]]) == bool(guarded[1]):
                    continue
                line = guarded[3]
            opcode, _, rest = line.replace("\t", " ").partition(" ")
            operands = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", rest)
            if opcode == "ret":
                return
            if opcode.startswith("bra"):
                at = self.labels[operands[0]]
            else:
                self.step(opcode.split("."), operands)
        raise RuntimeError("the kernel does not end")

    def step(self, opcode: list[str], operands: list[str]) -> None:
        if opcode[0] == "ld" and opcode[1] == "param":
            self.registers[operands[0]] = self.names[operands[1][1:-1]]
        elif opcode[0] in ("ld", "st"):
            self.access(opcode, operands)
        elif opcode[0] == "mov" and "{" in "".join(operands):
            self.pack(_bits(opcode[-1]), *operands)
        elif opcode[0] == "setp":
            a, b = (_read(self.value(x), opcode[-1]) for x in operands[1:])
            self.registers[operands[0]] = int(_COMPARISONS[opcode[1]](a, b))
        elif opcode[0] == "cvt":
            self.registers[operands[0]] = _read(self.value(operands[1]), opcode[-1]) & _full(opcode[-2])
        else:
            self.registers[operands[0]] = self.compute(opcode, [self.value(x) for x in operands[1:]])

    def compute(self, opcode: list[str], values: list[int]) -> int:
        kind = opcode[-1]
        if opcode[0] in _BIT_FIELDS:
            return _BIT_FIELDS[opcode[0]](*values) & _full(kind)
        wide = "wide" in opcode
        numbers = [_read(v, kind) for v in values[:2]] + values[2:]
        width = 2 * _bits(kind) if wide else _bits(kind)
        return int(_ARITHMETIC[opcode[0]](*numbers)) & ((1 << width) - 1)

    def access(self, opcode: list[str], operands: list[str]) -> None:
        size = _bits(opcode[-1]) // 8
        address, values = operands if opcode[0] == "st" else operands[::-1]
        base, _, offset = address[1:-1].partition("+")
        for i, register in enumerate(re.findall(r"[^{},\s]+", values)):
            data, start = self.memory.at(self.value(base) + int(offset or 0) + i * size, size)
            if opcode[0] == "ld":
                self.registers[register] = int.from_bytes(data[start : start + size], "little")
            else:
                kept = self.value(register) & ((1 << 8 * size) - 1)
                data[start : start + size] = kept.to_bytes(size, "little")

    def pack(self, bits: int, to: str, source: str) -> None:
        parts = re.findall(r"[^{},\s]+", to if to.startswith("{") else source)
        width = bits // len(parts)
        if to.startswith("{"):
            for i, part in enumerate(parts):
                self.registers[part] = self.value(source) >> i * width & ((1 << width) - 1)
        else:
            self.registers[to] = sum((self.value(p) & ((1 << width) - 1)) << i * width for i, p in enumerate(parts))

    def value(self, text: str) -> int:
        return self.registers[text] if text.startswith("%") else int(text, 0)


def _bits(kind: str) -> int:
    return 1 if kind == "pred" else int(kind[1:])


def _full(kind: str) -> int:
    return (1 << _bits(kind)) - 1


def _read(value: int, kind: str) -> int:
    """Return a register's bits as a number of a type."""
    value &= _full(kind)
    return value - (1 << _bits(kind)) if kind[0] == "s" and value >> (_bits(kind) - 1) else value


def _permute(a: int, b: int, selector: int) -> int:
    both, found = (a & _MASK32) | (b & _MASK32) << 32, 0
    for i in range(4):
        code = selector >> 4 * i & 15
        byte = both >> 8 * (code & 7) & 255
        found |= (0xFF * (byte >> 7) if code & 8 else byte) << 8 * i
    return found


def _insert(a: int, b: int, start: int, length: int) -> int:
    mask = ((1 << length) - 1) << start
    return (b & ~mask) | (a << start & mask)


_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
}  # fmt: skip
_BIT_FIELDS: dict[str, Callable[..., int]] = {
    "prmt": _permute, "bfi": _insert, "selp": lambda a, b, c: a if c else b, "mov": lambda a: a, "cvta": lambda a: a,
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "mad": lambda a, b, c: a * b + c,
    "neg": lambda a: -a, "not": lambda a: ~a, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b, "min": min, "max": max,
    "shl": lambda a, b: a << b if b < 64 else 0, "shr": lambda a, b: a >> min(b, 63),
}  # fmt: skip
