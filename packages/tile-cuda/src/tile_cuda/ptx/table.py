"""The table of functions: their names, their architectures, and their source."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any

from tile_cuda.ptx.bulk import bulk_instructions
from tile_cuda.ptx.composed import composed_instructions
from tile_cuda.ptx.errors import InstructionMissing
from tile_cuda.ptx.instruction import Instruction
from tile_cuda.ptx.matrix import matrix_instructions
from tile_cuda.ptx.memory import memory_instructions
from tile_cuda.ptx.registers import register_instructions
from tile_cuda.ptx.scalar import scalar_instructions
from tile_cuda.ptx.tensor import tensor_instructions
from tile_cuda.ptx.wgmma import wgmma_instruction, wgmma_instructions


class Functions(dict[str, Instruction]):
    """Functions by name; those of warpgroup products are made when they are looked up."""

    def __missing__(self, name: str) -> Instruction:
        found = wgmma_instruction(name)
        if found is None:
            raise KeyError(name)
        return found

    def get(self, name: str, default: Any = None) -> Any:
        """Return the function of a name, or the default."""
        return self[name] if name in self else default  # noqa: SIM401 - this is what it calls

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and wgmma_instruction(name) is not None)


TABLE: Mapping[str, Instruction] = Functions(
    {
        i.name: i
        for i in (
            *scalar_instructions(),
            *matrix_instructions(),
            *memory_instructions(),
            *bulk_instructions(),
            *wgmma_instructions(),
            *register_instructions(),
            *tensor_instructions(),
            *composed_instructions(),
        )
    }
)
"""Every function by its name, in the order in which texts print them; those that are made on demand come last."""

_ARCH = re.compile(r"sm_(\d+)([a-z]?)")


@functools.lru_cache(maxsize=1024)
def instruction(name: str, arch: str) -> Instruction:
    """Return a function of the table for an architecture.

    Parameters
    ----------
    name
        Its name: the opcode with underscores.
    arch
        ``"sm_80"``, ``"sm_90a"``, and so on.

    Raises
    ------
    InstructionMissing
        If there is no such function, or the architecture lacks the instruction.
    """
    found = TABLE.get(name)
    if found is None or not has(found, arch):
        raise InstructionMissing(
            arch=arch, name=name, hint="no architecture" if found is None else _range(found.arch)
        )  # fmt: skip
    return found


def has(found: Instruction, arch: str) -> bool:
    """Whether an architecture has an instruction, and all that its function calls."""
    number, suffix = _parts(arch)
    own = any((number, suffix) == (n, only) if only else number >= n for n, only in map(_parts, found.arch.split()))
    return own and all(has(TABLE[n], arch) for n in found.needs)


def prelude(names: Iterable[str], arch: str) -> list[str]:
    """Return the text of functions with their types and dependencies, in table order.

    Raises
    ------
    InstructionMissing
        As `instruction`.
    """
    wanted: dict[str, Instruction] = {}

    def add(name: str) -> None:
        if name not in wanted:
            wanted[name] = found = instruction(name, arch)
            for other in (*found.needs, *(("shared_address",) if found.shares else ())):
                add(other)

    for name in names:
        add(name)
    made = sorted(set(wanted).difference(TABLE.keys()))
    return [line for name in (*TABLE, *made) if name in wanted for line in wanted[name].lines()]


def _parts(arch: str) -> tuple[int, str]:
    found = _ARCH.fullmatch(arch)
    if found is None:
        raise InstructionMissing(arch=arch, name="anything", hint="architectures such as sm_80 and sm_90a")
    return int(found[1]), found[2]


def _range(arch: str) -> str:
    names = arch.split()
    return f"{' and '.join(names)} alone" if _parts(names[0])[1] else f"{arch} and later"
