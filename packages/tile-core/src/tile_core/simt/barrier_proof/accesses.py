"""Accesses of asynchronous instructions in emitted kernels."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field
from math import gcd, prod
from typing import NamedTuple

from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Call, Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, calls, nodes
from tile_core.records import dataclass
from tile_core.simt.barrier_proof.instructions import AsyncInstructions

PRODUCTS = "products"
"""What reads of products last until, if no other end is given."""


class Address(NamedTuple):
    """An address among the arguments of an instruction.

    Attributes
    ----------
    buffer, key, index
        The buffer, its identity, and the element.
    access, until
        As in ``ir.calls.address``.
    is_async
        Whether the asynchronous proxy accesses it.
    """

    buffer: BufferVar
    key: int
    index: Expr
    access: str
    until: str
    is_async: bool

    @property
    def is_shared(self) -> bool:
        """Whether it is in shared memory."""
        return nodes.scope_of(self.buffer).startswith("shared")


def address_of(call: Call) -> Address:
    """Return the data of an address."""
    load, attrs = structural.items(call.args)[0], call.attrs._dict()
    until, proxy = str(structural.entry(attrs, attributes.UNTIL, "")), structural.entry(attrs, attributes.PROXY)
    index = next(iter(structural.items(load.indices)), nodes.int_const(0))
    return Address(
        load.source,
        structural.identity(load.source),
        index,
        str(structural.entry(attrs, attributes.ACCESS)),
        until,
        proxy is not None,
    )


def addresses_of(call: Call) -> list[Address]:
    """Return the addresses among the arguments of a call, those in tensors of descriptors too."""
    found = []
    for x in structural.items(call.args):
        name = structural.op_name(x) if type(x) is ir.Call else ""
        if name == "tile.address":
            found.append(address_of(x))
        elif name == "tile.descriptor":
            found += addresses_of(x)
    return found


def is_product(given: Sequence[Address]) -> bool:
    """Whether an instruction with these operands is an asynchronous product."""
    reads = [a for a in given if a.access == "r" and a.is_async and a.is_shared]
    return (
        bool(reads)
        and all(a.until in ("", PRODUCTS) for a in reads)
        and all(a.access != "w" or nodes.scope_of(a.buffer).startswith("local") for a in given)
    )


@dataclass(frozen=True)
class AsyncAccesses:
    """Buffers that asynchronous instructions access, by identity.

    Attributes
    ----------
    barriers
        Buffers of barrier objects, with name and number of objects.
    copied
        Destinations of copies that barriers count, with the elements of each kind of copy.
    names
        Names of these destinations.
    stored
        Sources of copies to global memory, with the elements of each kind of copy.
    filled
        Destinations of copies in groups.
    read
        Shared buffers that the asynchronous proxy reads.
    accumulators, operands
        Register arrays that products write and read.
    rings
        Buffers of pipelined loops, with name and elements of a slot.
    tensor
        Shared variables with addresses of tensor memory.
    bytes
        The bytes of each shared buffer with a name: first and last.
    groups
        Whether the kernel commits groups.
    """

    barriers: dict[int, tuple[str, int]] = field(default_factory=dict)
    copied: dict[int, list[int]] = field(default_factory=dict)
    stored: dict[int, list[int]] = field(default_factory=dict)
    names: dict[str, None] = field(default_factory=dict)
    filled: set[int] = field(default_factory=set)
    read: set[int] = field(default_factory=set)
    accumulators: set[int] = field(default_factory=set)
    operands: set[int] = field(default_factory=set)
    rings: dict[int, tuple[str, int]] = field(default_factory=dict)
    tensor: list[int] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    bytes: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def shared(self) -> bool:
        """Whether there are shared buffers among them."""
        return bool(self.copied or self.filled or self.read or self.rings)

    def has(self, buffer: int) -> bool:
        """Whether a shared buffer is among them."""
        return any(buffer in of for of in (self.copied, self.filled, self.read, self.rings))

    def aliases(self) -> dict[str, tuple[str, ...]]:
        """Return the buffers that share bytes with slots of loops, and these, by name."""
        found: dict[str, tuple[str, ...]] = {}
        rings = {name for name, _ in self.rings.values()}
        for name, (first, last) in self.bytes.items():
            others = (x for x, (begin, end) in self.bytes.items() if begin <= last and first <= end)
            found[name] = tuple(x for x in others if x != name and not rings.isdisjoint((x, name)))
        return {name: others for name, others in found.items() if others}

    def granule(self, buffer: int, shape: list[int]) -> int:
        """Return the elements of a slot of a buffer."""
        copies = [*self.copied.get(buffer, ()), *self.stored.get(buffer, ())]
        if buffer in self.rings and not copies:
            return self.rings[buffer][1]
        size = prod(shape[1:]) if len(shape) > 1 else prod(shape)
        return size if all(n <= size for n in copies) else gcd(*copies)

    def add(self, call: Call, instructions: AsyncInstructions) -> None:
        """Note the accesses of an instruction."""
        name, given = str(call.attrs[attributes.NAME]), addresses_of(call)
        if name in instructions.commits:
            self.groups.append(name)
        if name in instructions.tensor_allocates:
            self.tensor.extend(a.key for a in given)
        multiplies = is_product(given)
        for a in given:
            if a.until == calls.UNTIL_PHASE and a.access == "w":
                bits = DTYPES[nodes.element_type(a.buffer)].bits
                self.names[str(a.buffer.name)] = None
                self.copied.setdefault(a.key, []).append(instructions.size(call) * 8 // bits)
            elif name in instructions.fills and a.access == "w":
                self.filled.add(a.key)
            elif a.access == "r" and a.is_async and a.is_shared:
                self.read.add(a.key)
                if not multiplies and (size := instructions.size(call)):
                    bits = DTYPES[nodes.element_type(a.buffer)].bits
                    self.stored.setdefault(a.key, []).append(size * 8 // bits)
            elif multiplies:
                (self.accumulators if "w" in a.access else self.operands).add(a.key)


def async_accesses(body: Stmt, instructions: AsyncInstructions, rings: Collection[str]) -> AsyncAccesses:
    """Return the buffers that asynchronous instructions and pipelined loops of a kernel access."""
    found = AsyncAccesses()
    for s in structural.collect(body, tirx.AllocBuffer):
        if not nodes.scope_of(s.buffer).startswith("shared"):
            continue
        shape, name = nodes.shape_of(s.buffer), str(s.buffer.name)
        first = structural.entry(s.annotations, attributes.OFFSET)
        if first is not None:
            size = prod(map(int, shape)) * DTYPES[nodes.element_type(s.buffer)].bits // 8
            found.bytes[name] = int(first), int(first) + max(size, 1) - 1
        if name in rings:
            slots = int(nodes.as_int(structural.entry(s.annotations, attributes.SHAPE, shape)[0]))
            found.rings[structural.identity(s.buffer)] = name, prod(map(int, shape)) // slots
    for call in structural.collect(body, ir.Call):
        name = structural.op_name(call)
        if name.startswith("tile.barrier_"):
            at = address_of(structural.items(call.args)[0])
            found.barriers[at.key] = str(at.buffer.name), int(nodes.shape_of(at.buffer)[0])
        elif name == "tile.async_commit":
            found.groups.append(name)
        elif name == "tile.instruction":
            found.add(call, instructions)
    return found
