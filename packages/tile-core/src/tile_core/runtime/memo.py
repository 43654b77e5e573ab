"""Remember the kernels of this process, so that equal calls of a factory compile once.

A `Key` is made of named parts: the arguments, the target, the options. All else that a trace reads is checked at each
request, see `Reads`. When something is compiled again, the parts that differ from the nearest known key, or the name
that has another value, give the reason.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import field
from typing import Generic, TypeVar

from tile_core.records import dataclass
from tile_core.runtime.freeze import freeze
from tile_core.runtime.reads import Reads

Value = TypeVar("Value")

#: Of one key: a kernel for each state of globals and the like, the least recently used is forgotten.
_MOST_VALUES = 64


@dataclass(frozen=True)
class Key:
    """Identity of a compiled kernel.

    Attributes
    ----------
    function
        Readable name: module and qualified name.
    parts
        ``(name, frozen value)`` pairs; two kernels are equal when all parts are.
    """

    function: str
    parts: tuple[tuple[str, Hashable], ...]

    @functools.cached_property
    def _hash(self) -> int:
        return hash((self.function, self.parts))

    def __hash__(self) -> int:
        return self._hash

    def difference(self, other: Key) -> tuple[str, ...]:
        """Names of the parts that are not equal."""
        mine, theirs = dict(self.parts), dict(other.parts)
        absent = object()
        return tuple(n for n in {**mine, **theirs} if mine.get(n, absent) != theirs.get(n, absent))


def make_key(
    function: Callable[..., object], arguments: Mapping[str, object], *, target: str = "", options: object = None
) -> Key:
    """Return the key of a factory's call, without values that its code reads.

    Parameters
    ----------
    function
        The factory.
    arguments
        Bound arguments by name.
    target
        Canonical text of the resolved target (never ``"auto"``).
    options
        The backend's options and whatever else decides what is compiled.

    Raises
    ------
    CannotFreeze
        A value that cannot be hashed by content.
    """
    name = f"{function.__module__}.{function.__qualname__}"
    parts = [(f"argument {n}", freeze(v, f"argument {n} of {name}")) for n, v in arguments.items()]
    parts += [("target", target), ("options", freeze(options, f"options of {name}"))]
    return Key(name, tuple(parts))


@dataclass
class MemoStats:
    """Statistics of a memo.

    Attributes
    ----------
    hits
        Calls answered without compiling.
    misses
        Calls that compiled.
    reasons
        Why they compiled, with counts: ``"first compile"``, ``"changed: argument block_M"``, ``"cache disabled"``.
    """

    hits: int = 0
    misses: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        why = ", ".join(f"{reason} ({count})" for reason, count in self.reasons.most_common())
        return f"{self.hits} hits, {self.misses} compiles" + (f": {why}" if why else "")


class Memo(Generic[Value]):
    """A thread-safe map from keys to built values; equal keys build once, failures are dropped.

    Of one key there are several values where other values of globals and the like were read, see `Reads`.
    """

    def __init__(self) -> None:
        self.stats = MemoStats()
        self._values: dict[Key, list[tuple[Value, Reads | None]]] = {}
        self._made: dict[Hashable, Value] = {}
        self._building: dict[Key, threading.RLock] = {}
        self._lock = threading.Lock()

    def get(
        self,
        key: Key,
        build: Callable[[], Value],
        reads: Callable[[], Reads] | None = None,
        identity: Callable[[], Hashable] | None = None,
    ) -> Value:
        """Return the value of a key, built at the first request.

        Other threads wait for it.

        Parameters
        ----------
        key
            The key.
        build
            Builds the value.
        reads
            Finds the places that the value depends on; it is built again when one of them changes.
        identity
            Called before ``build``: if it equals that of an earlier value, this one is taken. ``None`` equals no other.
        """
        if not cache_enabled():
            with self._lock:
                self._count_miss("cache disabled")
            if identity is not None:
                identity()
            return build()
        found = self._valid(key)
        if found is not None:
            return found[0]
        with self._lock:
            building = self._building.setdefault(key, threading.RLock())
        with building:
            found = self._valid(key)
            if found is not None:
                return found[0]
            reason = self.reason(key)
            before = None if reads is None else reads()
            value = self._identified(reason, build, identity)
            after = before if reads is None or before is None else before.joined(reads())
            with self._lock:
                known = self._values.setdefault(key, [])
                known.insert(0, (value, after))
                del known[_MOST_VALUES:]
                self._building.pop(key, None)
            return value

    def _valid(self, key: Key) -> tuple[Value, Reads | None] | None:
        """Return the value of a key whose reads did not change."""
        known = self._values.get(key, ())
        for at, found in enumerate(known):
            if found[1] is None or found[1].changed() is None:
                with self._lock:
                    self.stats.hits += 1
                    if at and isinstance(known, list) and found in known:
                        known.remove(found)
                        known.insert(0, found)
                return found
        return None

    def _identified(self, reason: str, build: Callable[[], Value], identity: Callable[[], Hashable] | None) -> Value:
        what = None if identity is None else identity()
        with self._lock:
            if what is not None and what in self._made:
                self.stats.hits += 1
                return self._made[what]
            self._count_miss(reason)
        value = build()
        if what is not None:
            self._made[what] = value
        return value

    def reason(self, key: Key) -> str:
        """Return why a key has no valid value, such as the nearest key's difference."""
        for _, reads in self._values.get(key, ()):
            return f"changed: {reads.changed() if reads is not None else 'nothing'}"
        known = [k for k in self._values if k.function == key.function]
        if not known:
            return "first compile"
        differences: list[tuple[str, ...]] = [key.difference(k) for k in known]
        nearest: tuple[str, ...] = min(differences, key=len)
        return "changed: " + ", ".join(nearest)

    def clear(self) -> None:
        """Forget all values; the counters stay."""
        with self._lock:
            self._values.clear()
            self._made.clear()

    def __len__(self) -> int:
        return sum(map(len, self._values.values()))

    def _count_miss(self, reason: str) -> None:
        self.stats.misses += 1
        self.stats.reasons[reason] += 1


class _Switch:
    """Counts the blocks that disable the cache; blocks of several threads may overlap and nest."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users: set[_Off] = set()


class _Off:
    """Disables the cache, until the end of its block if used as one."""

    def __init__(self) -> None:
        self.depth = 0
        self._switch(True)

    def __enter__(self) -> None:
        with _SWITCH.lock:
            self.depth += 1
        self._switch(True)

    def __exit__(self, *error: object) -> None:
        with _SWITCH.lock:
            self.depth -= 1
            last = self.depth == 0
        if last:
            self._switch(False)

    def _switch(self, off: bool) -> None:
        with _SWITCH.lock:
            (_SWITCH.users.add if off else _SWITCH.users.discard)(self)


_SWITCH = _Switch()


def cache_enabled() -> bool:
    """Whether compiled kernels are remembered."""
    return not _SWITCH.users


def disable_cache() -> contextlib.AbstractContextManager[None]:
    """Compile at every request; as a context manager, until the end of the block.

    It holds for all threads. Blocks may nest, and those of several threads may overlap: the cache is on again when the
    last one ends.

    Examples
    --------
    >>> with disable_cache():
    ...     cache_enabled()
    False
    >>> cache_enabled()
    True
    """
    return _Off()


def enable_cache() -> None:
    """Remember compiled kernels again, regardless of who turned that off."""
    with _SWITCH.lock:
        _SWITCH.users.clear()
