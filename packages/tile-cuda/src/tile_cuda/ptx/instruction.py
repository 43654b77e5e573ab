"""One instruction: its operands, its architectures, and the C++ function that executes it."""

from __future__ import annotations

import re

from tile_core.records import dataclass

#: C++ type of a register, by the letter that stands for its class in ``asm``.
REGISTERS = {"r": "unsigned", "h": "unsigned short", "l": "unsigned long long", "f": "float", "d": "double"}

#: The architectures with tensor memory, which alone have some other instructions too.
TENSOR_MEMORY_ARCHS = "sm_100a sm_100f sm_103a sm_110a"

#: Parameter of a descriptor: chunks of 16 bytes between an address and the matrix.
CHUNKS = "chunks"

_INPUTS = ("in", "shared", "place", "global", "matrix", "tensor")
_HEAD = "__device__ __forceinline__"
_WIDTH = 140


@dataclass(frozen=True)
class PtxOperand:
    """An operand.

    Attributes
    ----------
    name
        Of the function's parameter.
    register
        Class of its registers: ``"r"`` 32 bits, ``"h"`` 16, ``"l"`` 64, ``"f"`` and ``"d"`` floats.
    count
        Registers of a vector, which the function takes as an array; 0 for a scalar.
    role
        ``"in"``; ``"out"``: an array that is written, ``"inout"``: one that is also read; ``"result"``: what the
        function returns; ``"shared"`` and ``"global"``: the address of memory; ``"place"``: one of shared memory, as a
        address in shared memory as an integer; ``"matrix"``: a matrix in shared memory, passed as a descriptor,
        ``"tensor"`` one of ``tcgen05``; ``"given"``: a parameter of the function alone.
    ctype
        C++ type of the parameter, of the array's elements, or of what an address points to; by default the register's.
    """

    name: str
    register: str = "r"
    count: int = 0
    role: str = "in"
    ctype: str = ""

    @property
    def element(self) -> str:
        """C++ type of one register's value."""
        return self.ctype or REGISTERS[self.register]

    @property
    def parameter(self) -> str:
        """The type of the function's parameter."""
        if self.role in ("shared", "place", "global", "matrix", "tensor"):
            return f"{self.ctype or 'const void'}*"
        if not self.count:
            return self.element
        return f"{self.element}*" if self.role in ("out", "inout") else f"const {self.element}*"


@dataclass(frozen=True)
class Instruction:
    """An instruction, or a few lines of C++ where one instruction is not enough.

    Attributes
    ----------
    name
        Of the function.
    opcode
        As PTX spells it; empty for C++.
    operands
        In the order of the function's parameters.
    form
        The instruction's operands in PTX order, with parameters in braces; vectors and addresses include brackets.
    arch
        First architecture that has it: ``"sm_80"``; with letters the only ones: ``"sm_90a"``, ``"sm_100a sm_103a"``.
    volatile
        Whether it must stay where it is.
    memory
        Whether it reads or writes memory that the compiler must see.
    body
        Lines of C++ instead of an instruction.
    needs
        Names of other functions that the body calls.
    """

    name: str
    opcode: str = ""
    operands: tuple[PtxOperand, ...] = ()
    form: str = ""
    arch: str = "sm_80"
    volatile: bool = False
    memory: bool = False
    body: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def result(self) -> str:
        """C++ type that the function returns."""
        return next((o.element for o in self.operands if o.role == "result"), "void")

    @property
    def parameters(self) -> tuple[PtxOperand, ...]:
        """The operands that the function takes."""
        return tuple([o for o in self.operands if o.role != "result"])

    @property
    def shares(self) -> bool:
        """Whether it takes addresses of shared memory."""
        return any(o.role in ("shared", "place") for o in self.operands) and not self.body

    def lines(self) -> list[str]:
        """Return the text of its function."""
        parameters = ", ".join(f"{p.parameter} {p.name}" for p in self.parameters)
        head = f"{_HEAD} {self.result} {self.name}({parameters}) {{"
        if self.body:
            inside = list(self.body)
            short = len(inside) == 1
        else:
            # Written on one line if it is short, else with one line per section of the statement.
            inside = self._statement("")
            short = len(head) + sum(len(text) + 1 for text in inside) + 2 <= _WIDTH
            inside = inside if short else self._statement("\n")
        if short:
            return [" ".join([head, *inside, "}"])]
        return [head, *(f"  {text}" for text in inside), "}"]

    def _statement(self, separator: str) -> list[str]:
        """Return the ``asm`` statement, with the declaration and return of a result around it."""
        outputs = [o for o in self.operands if o.role in ("out", "inout", "result")]
        inputs = [o for o in self.operands if o.role in _INPUTS]
        bound = [_bound(o, "+" if o.role == "inout" else "=") for o in outputs]
        sections = [", ".join(bound), ", ".join(_bound(o, "") for o in inputs)]
        sections += ['"memory"'] if self.memory else []
        while sections and not sections[-1]:
            sections.pop()
        keyword = "asm volatile" if self.volatile else "asm"
        text = f'{keyword}("{self._template(outputs, inputs)}"'
        text += "".join(f"{separator}{'    ' if separator else ' '}: {s}".rstrip() for s in sections)
        lines = [line.rstrip() for line in f"{text});".splitlines()]
        result = next((o for o in outputs if o.role == "result"), None)
        return lines if result is None else [f"{result.element} {result.name};", *lines, f"return {result.name};"]

    def _template(self, outputs: list[PtxOperand], inputs: list[PtxOperand]) -> str:
        """Return the instruction with the numbers of its operands: outputs come first."""
        placed, number = {"opcode": self.opcode}, 0
        for o in (*outputs, *inputs):
            placed[o.name] = _placed(o, number)
            number += max(o.count, 1)
        form = self.form if "{opcode}" in self.form else f"{{opcode}} {self.form}".rstrip() + ";"
        return re.sub(r"\{(\w+)(\[0\])?\}", lambda m: placed[m[1]].strip("{}") if m[2] else placed[m[1]], form)


def function_name(opcode: str) -> str:
    """Return the function name of an opcode: letters and digits, separated by single underscores."""
    return re.sub(r"\W+", "_", opcode)


def _placed(o: PtxOperand, number: int) -> str:
    if o.role in ("shared", "global"):
        return f"[%{number}]"
    if o.count:
        return "{" + ", ".join([f"%{number + i}" for i in range(o.count)]) + "}"
    return f"%{number}"


def _bound(o: PtxOperand, sign: str) -> str:
    if o.role in ("shared", "place"):
        return f'"r"(shared_address({o.name}))'
    if o.role == "global":
        return f'"l"({o.name})'
    if o.role in ("matrix", "tensor"):
        fields = ", ".join(f"{o.name}_{field}" for field in ("leading", "stride", "swizzle", CHUNKS))
        return f'"l"({o.role}_descriptor({o.name}, {fields}))'
    if o.count:
        return ", ".join([f'"{sign}{o.register}"({o.name}[{i}])' for i in range(o.count)])
    return f'"{sign}{o.register}"({o.name})'
