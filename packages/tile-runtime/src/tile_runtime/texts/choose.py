"""Choice of a call's text: the first whose facts hold for its addresses and values.

A text that reads vectors of 16 bytes is wrong for a misaligned row. Its facts state its assumptions,
``ParamFact.align`` and ``LaunchFacts.divides``, and ``KernelText.general`` makes a text that assumes less. Every
runtime that launches texts uses this module.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from tile_runtime.abi.kernel_text import KernelText, LaunchFacts
from tile_runtime.dtypes import dtype
from tile_runtime.errors.base import InternalError
from tile_runtime.errors.launch import TextDoesNotServe

Loaded = TypeVar("Loaded")


class TextChoice(Generic[Loaded]):
    """The texts of one kernel, each loaded at its first use; safe for several threads.

    Parameters
    ----------
    kernel
        The text to prefer; those that its ``general`` makes follow.
    load
        Makes a text launchable. Called at most once per text, unless it raises.
    """

    def __init__(self, kernel: KernelText, load: Callable[[KernelText], Loaded]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._choices: tuple[tuple[Assumptions, KernelText], ...] = ((Assumptions(kernel.facts), kernel),)
        self._loaded: dict[int, Loaded] = {}
        first = self._choices[0][0]
        self._masks, self._simple = first.masks, not first.divisors
        self._first: Loaded | None = None

    def __call__(self, values: Sequence[int | float]) -> Loaded:
        """Return the loaded form of the first text that serves these values.

        Parameters
        ----------
        values
            One per parameter of the text: the address of an array, or the value of a scalar.

        Raises
        ------
        TextDoesNotServe
            No text does.
        """
        # Nearly all calls take the first text; this is part of every launch.
        for i, mask in self._masks:
            if values[i] & mask:  # type: ignore[operator]
                break
        else:
            if self._simple and self._first is not None:
                return self._first
        index = 0
        for assumptions, _ in self._choices:
            if assumptions.hold(values):
                break
            index += 1
        else:
            index = self._generalise(values)
        return self.loaded(index)

    def repeated(
        self, values: Sequence[int | float], moving: Sequence[int]
    ) -> tuple[Loaded, tuple[tuple[int, int], ...]] | None:
        """Return the text for all values that differ from these at some positions only.

        Parameters
        ----------
        values
            One per parameter of the text.
        moving
            The positions.

        Returns
        -------
        tuple or None
            Its loaded form, and the bits of moving values that must be zero for it to serve them. ``None`` if moving
            values affect the choice in another way, or if these values need another text than other ones.
        """
        for index, (assumptions, _) in enumerate(self._choices):
            if assumptions.hold(values):
                if any(i in moving for i, _ in assumptions.divisors):
                    return None
                return self.loaded(index), tuple((i, mask) for i, mask in assumptions.masks if i in moving)
            masks = [(i, mask) for i, mask in assumptions.masks if i not in moving]
            divisors = [(i, n) for i, n in assumptions.divisors if i not in moving]
            if all(not values[i] & mask for i, mask in masks) and all(not values[i] % n for i, n in divisors):  # type: ignore[operator]
                return None
        return None

    @property
    def assumes(self) -> bool:
        """Whether the preferred text makes any assumption."""
        return bool(self._choices[0][0])

    def loaded(self, index: int = 0) -> Loaded:
        """Return the loaded form of a text that already exists, by default the preferred one."""
        found = self._loaded.get(index)
        if found is not None:
            return found
        with self._lock:
            if index not in self._loaded:
                self._loaded[index] = self._load(self._choices[index][1])
            self._first = self._loaded.get(0)
            return self._loaded[index]

    def _generalise(self, values: Sequence[int | float]) -> int:
        """Make more general texts until one serves, and return its position."""
        with self._lock:
            while True:
                # Another thread may have made it meanwhile.
                for index, (assumptions, _) in enumerate(self._choices):
                    if assumptions.hold(values):
                        return index
                last = self._choices[-1][1]
                text = last.general() if last.general is not None else None
                if text is None:
                    raise self._choices[-1][0].refusal(values)
                _check_same(last.facts, text.facts)
                self._choices = (*self._choices, (Assumptions(text.facts), text))


class Assumptions:
    """The assumptions of a text about the values of a launch.

    Parameters
    ----------
    facts
        The text's facts.

    Attributes
    ----------
    masks
        Positions of values, and bits that must be zero in them.
    divisors
        Positions of values, and numbers that divide them.
    """

    def __init__(self, facts: LaunchFacts) -> None:
        self.facts = facts
        masks: list[tuple[int, int]] = []
        divisors: list[tuple[int, int]] = []
        for i, param in enumerate(facts.params):
            if param.kind == "pointer" and param.align > 1 and param.align > _element_bytes(param.dtype):
                masks.append((i, param.align - 1))
            n = facts.divides.get(param.name, 1)
            if n > 1 and n & (n - 1) == 0:
                masks.append((i, n - 1))
            elif n > 1:
                divisors.append((i, n))
        self.masks, self.divisors = tuple(masks), tuple(divisors)

    def __bool__(self) -> bool:
        """Whether anything is assumed."""
        return bool(self.masks or self.divisors)

    def hold(self, values: Sequence[int | float]) -> bool:
        """Whether all assumptions hold for the addresses and scalars of a launch, one per parameter."""
        for i, mask in self.masks:
            if values[i] & mask:  # type: ignore[operator]
                return False
        return not any(values[i] % n for i, n in self.divisors)

    def refusal(self, values: Sequence[int | float]) -> TextDoesNotServe:
        """Return the error that names the first assumption that these values break."""
        for i, n in (*((i, mask + 1) for i, mask in self.masks), *self.divisors):
            param = self.facts.params[i]
            if values[i] % n:
                address = param.kind == "pointer"
                return TextDoesNotServe(
                    kernel=self.facts.kernel,
                    name=param.name,
                    found=f"the address {int(values[i]):#x}" if address else values[i],
                    expected=f"addresses that are a multiple of {n} bytes" if address else f"multiples of {n}",
                    where=self.facts.where,
                )
        raise InternalError(stage="choice of a text", detail=f"{values} breaks nothing", where=self.facts.where)


def _element_bytes(name: str) -> int:
    """The alignment that the binder has already checked, in bytes."""
    return max(dtype(name).bits // 8, 1)


def _check_same(first: LaunchFacts, second: LaunchFacts) -> None:
    """Check that both texts have the same calling convention."""

    def shape(facts: LaunchFacts) -> list[tuple[str, str, str]]:
        return [(p.name, p.kind, str(p.dtype)) for p in facts.given]

    if shape(first) != shape(second):
        detail = f"the general text of {first.entry} has other parameters: {shape(second)}"
        raise InternalError(stage="choice of a text", detail=detail, where=first.where)
