"""State of a block's threads: values, registers, memory, and effects of accesses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from machine.address import Address
from machine.copies import Copies
from machine.memory import Memory, Races
from machine.scope import Held, Numbers, Region
from machine.values import element_of, poisoned
from tile_core.compat.types import Array, BufferVar, Var

__all__ = ["Instruction", "State"]

#: What an instruction does: gets the state, an array or an ``Address`` per argument, and the lanes that execute it.
Instruction = Callable[["State", Sequence[Any], Any], Any]


class State:
    """Threads of a block.

    Parameters
    ----------
    threads
        The number, or the number along each axis.
    thread
        The variable that is a thread's number, if the program has one.
    arrays
        Memory by buffer; the arrays are changed.
    values
        Values of other variables (scalar parameters, symbols), equal for all threads.
    width
        Threads of a group.
    races
        Refuse two threads that touch one element between two barriers or steps, unless both read.
    lenient
        Accesses outside a buffer follow the out-of-range rule; otherwise they are errors.
    late
        Asynchronous copies complete at the wait for them, or at once.
    instructions
        What instructions do, by name.

    Attributes
    ----------
    lanes
        The numbers of the threads that execute a statement side by side.
    values
        By variable its value in every lane.
    private
        By buffer the registers of every lane: an array with the lanes first.
    left, skipped
        Lanes that have left the innermost loop, or the rest of its iteration.
    shuffles, used
        How many shuffles were executed, and the names of the instructions that were.
    """

    def __init__(
        self,
        threads: int | tuple[int, int, int] = 1,
        thread: Var | None = None,
        arrays: Mapping[BufferVar, Array] | None = None,
        values: Mapping[Var, int] | None = None,
        *,
        width: int = 32,
        races: bool = False,
        lenient: bool = False,
        late: bool = True,
        instructions: Mapping[str, Instruction] | None = None,
    ) -> None:
        self.extents = threads if isinstance(threads, tuple) else (threads, 1, 1)
        self.lanes = np.arange(int(np.prod(self.extents)), dtype=np.int32)
        self.width, self.lenient = width, lenient
        self.numbers = Numbers()
        self.memory, self.copies = Memory(self.numbers, arrays or {}), Copies(late)
        self.races = Races() if races else None
        self.instructions = dict(instructions or {})
        self.values, self.private = Held(self.numbers), Held(self.numbers)
        self.values.update(values or {})
        if thread is not None:
            self.values[thread] = self.lanes
        self.shuffles, self.used = 0, set[str]()
        self.left = self.skipped = np.zeros(self.count, bool)

    @property
    def count(self) -> int:
        """How many threads execute a statement side by side."""
        return len(self.lanes)

    @property
    def gone(self) -> Array:
        """The lanes that do not execute the rest of the iteration."""
        return self.left | self.skipped

    def allocate(self, buffer: BufferVar) -> Array:
        """Make the registers of every thread, full of poison, and return them."""
        self.private[buffer] = poisoned((self.count, *(int(d) for d in buffer.shape)), element_of(buffer))
        return self.private[buffer]

    # Accesses

    def locate(self, region: Region, at: list[Array]) -> tuple[Array, tuple[Array, ...]]:
        """Return a buffer's array and the index of every lane's element in it."""
        held = self.private.held.get(region.number)
        if held is not None:
            return held, (np.arange(self.count), *at)
        return self.memory.arrays.held[region.number], self.memory.indices(region, at)

    def address(self, region: Region, at: list[Array]) -> Address:
        """Return the address of an element in every lane, wherever that is."""
        return Address(region, at, *self.locate(region, at))

    def read(self, region: Region, at: list[Array], on: Array) -> Array:
        """Return an element in every lane."""
        at, inside = self._inside(region, at, on)
        array, indices = self.locate(region, at)
        if not array.size:
            return np.zeros(self.count, array.dtype)
        if region.number not in self.private.held:
            if at:
                self.copies.read(region, at[0], inside)
            if self.races is not None:
                self._touch(region, array.shape, indices, inside, store=False)
        found = array[indices] if indices else np.full(self.count, array[()])
        return found if inside is on else np.where(inside, found, array.dtype.type(0))

    def write(self, region: Region, at: list[Array], value: Array, on: Array) -> None:
        """Write an element in the lanes that are ``on``."""
        at, inside = self._inside(region, at, on)
        array, indices = self.locate(region, at)
        assert value.dtype == array.dtype, f"{value.dtype} into {region.name}, which has {array.dtype}"
        if not inside.any():
            return
        if self.races is not None and region.number not in self.private.held:
            self._touch(region, array.shape, indices, inside, store=True)
        array[tuple(p[inside] for p in indices)] = value[inside] if indices else value[inside][-1]

    def watch(self, address: Address, size: int, on: Array, *, store: bool) -> None:
        """Note the elements of a wide access, which lie along the last dimension."""
        region = address.region
        if region.private:
            return
        *rows, column = address.at
        for k in range(size // region.kind.itemsize):
            at, inside = self._inside(region, [*rows, column + column.dtype.type(k)], on)
            if not store:
                self.copies.read(region, at[0], inside)
            if self.races is not None:
                array, indices = self.locate(region, at)
                self._touch(region, array.shape, indices, inside, store=store)

    def part(self) -> None:
        """A step begins or ends: earlier accesses of threads are ordered before later ones."""
        if self.races is not None:
            self.races.clear()

    def _inside(self, region: Region, at: list[Array], on: Array) -> tuple[list[Array], Array]:
        """Return clamped indices, and the active lanes whose own indices are in bounds."""
        held = self.private.held.get(region.number)
        shape = self.memory.extents(region) if held is None else held.shape[1:]
        assert len(at) == len(shape), f"{len(at)} indices of {region.name}"
        good = _fits(at, shape)
        if good is None:
            return at, on
        inside = on & good
        assert self.lenient or good[on].all(), f"outside of {region.name}: {[i[on & ~good][:4] for i in at]} of {shape}"
        return [np.where(inside, i, 0) for i in at], inside if self.lenient else on

    def _touch(
        self, region: Region, shape: tuple[int, ...], indices: tuple[Array, ...], on: Array, *, store: bool
    ) -> None:
        if self.races is not None:
            self.races.touch(region, shape, tuple(p[on] for p in indices), self.lanes[on], store)


def _fits(at: list[Array], shape: Sequence[int]) -> Array | None:
    """Return which lanes' indices lie inside, or ``None`` if all do."""
    result = None
    for index, extent in zip(at, shape, strict=True):
        if len(index) == 1:
            if 0 <= index[0] < extent:
                continue
            return np.zeros(1, bool)
        good = (index >= 0) & (index < extent)
        if not good.all():
            result = good if result is None else result & good
    return result
