"""All vectors, in groups that are one kernel each."""

from tile_cuda.emulation.opcodes import Arch, model_of

from . import atomics, conversions, extremes, movement, packed, products
from .table import Vector


def vectors() -> list[Vector]:
    """All vectors."""
    found = [*products.vectors(), *movement.vectors(), *conversions.vectors(), *atomics.vectors(),
             *extremes.vectors(), *packed.vectors()]  # fmt: skip
    assert len({v.name for v in found}) == len(found)
    return found


def groups(arch: Arch) -> dict[str, list[Vector]]:
    """The vectors of instructions that an architecture has, by group."""
    result: dict[str, list[Vector]] = {}
    for v in vectors():
        model = model_of(v.opcode)
        assert model is not None, v.opcode
        if arch.has(model.need):
            result.setdefault(v.group, []).append(v)
    return result
