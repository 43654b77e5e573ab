"""Rows of the support table: tile ops with element types and scopes.

A table of the kit lists the rows of its ops by ``support``, beside their cases. The site shows what each target does
with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from tile_core.errors import KernelError
from tile_core.records import dataclass
from tile_core.testing.case import one, tensor
from tile_core.testing.run import load

#: Rows, columns and depth of the tiles of all programs, and their threads.
SIZE = 32
#: Columns of what is reduced: more than two vectors of any CPU.
LONG = 256
THREADS = 128


@dataclass(frozen=True)
class Row:
    """One tile op with the facts that tables of legality constrain.

    Attributes
    ----------
    name
        As the program writes it, without ``T.``.
    op
        The op that variants lower.
    types, scopes
        Element type and scope by operand.
    sizes
        Size by axis, for a table of shapes.
    shapes
        Shape by operand, if not ``SIZE`` by ``SIZE``.
    call
        The statements, with operands in braces; empty for a call with all operands, in the order of ``types``.
    result
        The operand that the op writes.
    reads_result
        Whether the op also reads it.
    others
        Element types of parameters that no table constrains.
    """

    name: str
    op: str
    types: Mapping[str, str]
    scopes: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    call: str = ""
    result: str = "dst"
    reads_result: bool = False
    others: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = (
            f"{operand}={self.types[operand]}@{self.scopes.get(operand, '')}".rstrip("@") for operand in self.types
        )
        return f"{self.name}({', '.join(parts)})"

    def text(self) -> str:
        """Return a kernel with this op, which stages operands in their scopes."""
        call = self.call or f"T.{self.name}({', '.join(f'{{{name}}}' for name in self.types)})"
        types = {name: dtype for name, dtype in self.types.items() if f"{{{name}}}" in call}
        params, before, named, after = [], [], {}, []
        for name, dtype in {**types, **self.others}.items():
            shape, scope = self.shapes.get(name, (SIZE, SIZE)), self.scopes.get(name, "global")
            params.append(tensor(name, dtype, *shape))
            named[name] = name
            if scope != "global":
                named[name] = f"{name}_tile"
                before.append(f'{name}_tile = T.alloc_{scope}({shape}, "{dtype}")')
                before += [f"T.copy({name}, {name}_tile)"] * (name != self.result or self.reads_result)
                after += [f"T.copy({name}_tile, {name})"] * (name == self.result)
        body = "\n".join([*before, call.format(**named), *after])
        return one(self.op, self.name, params, body, dict, {}, threads=THREADS).text()

    def program(self) -> Any:
        """Return the kernel, traced."""
        return load(self.text(), str(self))


def accepted(check: Callable[..., object], *args: object) -> bool:
    """Return whether an op's check of its element types takes them."""
    try:
        check(*args)
    except KernelError:
        return False
    return True
