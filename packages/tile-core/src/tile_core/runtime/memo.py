"""The kernels that this process has compiled, so that equal calls of a factory compile once.

A `Key` is made of named parts: the function's code and everything it closes over, its arguments, the target, the
options. When something is compiled again, the parts that differ from the nearest known key give the reason.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import hashlib
import struct
import sys
import threading
import types
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import field
from typing import Any, Generic, TypeVar

from tile_core.errors.launch import CannotFreeze
from tile_core.records import dataclass

Value = TypeVar("Value")


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
    """The key of one call of a factory.

    Parameters
    ----------
    function
        The factory; its code, defaults, closure and the globals that it names are part of the key.
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
    parts: list[tuple[str, Hashable]] = [("source", fingerprint(function))]
    parts += [(f"argument {n}", freeze(v, f"argument {n} of {name}")) for n, v in arguments.items()]
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
    """A thread-safe map from keys to what was built for them; equal keys are built once, failures are not kept."""

    def __init__(self) -> None:
        self.stats = MemoStats()
        self._values: dict[Key, Value] = {}
        self._building: dict[Key, threading.RLock] = {}
        self._lock = threading.Lock()

    def get(self, key: Key, build: Callable[[], Value]) -> Value:
        """The value of ``key``, built at the first request; other threads wait for it."""
        if not cache_enabled():
            with self._lock:
                self._count_miss("cache disabled")
            return build()
        with self._lock:
            if key in self._values:
                self.stats.hits += 1
                return self._values[key]
            building = self._building.setdefault(key, threading.RLock())
        with building:
            with self._lock:
                if key in self._values:
                    self.stats.hits += 1
                    return self._values[key]
                self._count_miss(self.reason(key))
            value = build()
            with self._lock:
                self._values[key] = value
                self._building.pop(key, None)
            return value

    def reason(self, key: Key) -> str:
        """Why ``key`` is unknown: the differences from the nearest key of the same function."""
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

    def __len__(self) -> int:
        return len(self._values)

    def _count_miss(self, reason: str) -> None:
        self.stats.misses += 1
        self.stats.reasons[reason] += 1


class _Switch:
    """Counts the blocks that disable the cache; blocks of several threads may overlap and nest."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users: set[_Off] = set()


class _Off:
    """Disables the cache, from its creation to the end of its block, if it has one."""

    def __init__(self) -> None:
        self.depth = 0
        self._turn(True)

    def __enter__(self) -> None:
        with _SWITCH.lock:
            self.depth += 1
        self._turn(True)

    def __exit__(self, *error: object) -> None:
        with _SWITCH.lock:
            self.depth -= 1
            last = self.depth == 0
        if last:
            self._turn(False)

    def _turn(self, off: bool) -> None:
        with _SWITCH.lock:
            (_SWITCH.users.add if off else _SWITCH.users.discard)(self)


_SWITCH = _Switch()


def cache_enabled() -> bool:
    """Whether compiled kernels are remembered."""
    return not _SWITCH.users


def disable_cache() -> contextlib.AbstractContextManager[None]:
    """Compile at every request from now on; as a context manager, until the end of the block.

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


def fingerprint(function: Callable[..., object]) -> Hashable:
    """A key of a function: its code, defaults, closure values and the values of the globals that it names.

    Raises
    ------
    CannotFreeze
        A closure value or a default that cannot be hashed by content. Globals are frozen if possible and otherwise
        compared by identity, because most of them are modules, classes and functions of other packages.
    """
    return _freeze_function(function, f"{function.__module__}.{function.__qualname__}", {})


def freeze(value: object, place: str = "the value") -> Hashable:
    """A hashable key that is equal only for values that compile to the same kernel.

    Types count (``1``, ``1.0`` and ``True`` differ), the sign of zero and the bits of NaN too. Lists, dicts (in order),
    sets, dataclasses, enums, dtypes, NumPy scalars and arrays (by content), functions (by code) and plain objects
    (by their attributes) are supported.

    Raises
    ------
    CannotFreeze
        For anything else that is not hashable.
    """
    return _freeze(value, place, {})


def _freeze(value: object, place: str, seen: dict[int, int]) -> Hashable:
    if value is None or isinstance(value, (str, bytes, int, bool, type, enum.Enum, types.ModuleType)):
        return (type(value), value)
    if isinstance(value, float):
        return (type(value), struct.pack("<d", value))
    if isinstance(value, complex):
        return (type(value), struct.pack("<dd", value.real, value.imag))
    if id(value) in seen:
        return ("again", seen[id(value)])
    seen = {**seen, id(value): len(seen)}
    if isinstance(value, (tuple, list)):
        return (type(value), tuple(_freeze(v, place, seen) for v in value))
    if isinstance(value, Mapping):
        return (type(value), tuple((_freeze(k, place, seen), _freeze(v, place, seen)) for k, v in value.items()))
    if isinstance(value, (set, frozenset)):
        return (type(value), frozenset(_freeze(v, place, seen) for v in value))
    if isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
        return _freeze_callable(value, place, seen)
    return _freeze_object(value, place, seen)


def _freeze_object(value: object, place: str, seen: dict[int, int]) -> Hashable:
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)) and not value.dtype.hasobject:
        return (type(value), str(value.dtype), value.shape, value.tobytes())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = tuple(
            (f.name, _freeze(getattr(value, f.name), f"{place}.{f.name}", seen)) for f in dataclasses.fields(value)
        )
        return (type(value), fields)
    kind: Any = type(value)
    if kind.__hash__ is object.__hash__ and kind.__eq__ is object.__eq__ and hasattr(value, "__dict__"):
        # A plain object: by its attributes, since its identity would hide a changed attribute.
        return (type(value), value, _freeze(vars(value), place, seen))
    try:
        hash(value)
    except TypeError:
        raise CannotFreeze(place=place, found=f"a {type(value).__name__}") from None
    return (type(value), value)


def _freeze_callable(value: Callable[..., object], place: str, seen: dict[int, int]) -> Hashable:
    if isinstance(value, functools.partial):
        parts = (value.func, value.args, value.keywords)
        return ("partial", tuple(_freeze(part, place, seen) for part in parts))
    if isinstance(value, types.MethodType):
        return ("method", _freeze(value.__self__, place, seen), _freeze(value.__func__, place, seen))
    return _freeze_function(value, place, seen)


def _freeze_function(function: Callable[..., object], place: str, seen: dict[int, int]) -> Hashable:
    function = getattr(function, "__wrapped__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return _freeze_object(function, place, seen)
    seen = {**seen, id(function): len(seen)}
    parts: list[Hashable] = [code_digest(code)]
    parts.append(_freeze((function.__defaults__, function.__kwdefaults__), f"a default of {place}", seen))
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            parts.append((name, _freeze(cell.cell_contents, f"variable {name!r} of {place}", seen)))
        except ValueError:  # not assigned yet
            parts.append((name, None))
    for name in _global_names(code):
        if name in function.__globals__:
            parts.append((name, _freeze_global(function.__globals__[name], function.__module__, place, seen)))
    return ("function", tuple(parts))


def _freeze_global(value: Any, module: str, place: str, seen: dict[int, int]) -> Hashable:
    if isinstance(value, types.FunctionType) and value.__module__ != module:
        # A function of another module is an import: its own module decides what it does.
        return ("import", value)
    try:
        return _freeze(value, place, seen)
    except CannotFreeze:
        return ("identity", _ById(value))


@dataclass(frozen=True, eq=False)
class _ById:
    """Compares by identity of the wrapped object, which it keeps alive so that its id is not reused."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


@functools.lru_cache(maxsize=4096)
def _digest(code: types.CodeType, line: int, file: str) -> str:
    digest = hashlib.sha256(code.co_code)
    facts = (code.co_names, code.co_varnames, code.co_freevars, code.co_argcount, code.co_flags, line, file)
    digest.update(repr(facts).encode())
    for constant in code.co_consts:
        text = code_digest(constant) if isinstance(constant, types.CodeType) else repr(freeze(constant))
        digest.update(text.encode())
    return digest.hexdigest()


def code_digest(code: types.CodeType) -> str:
    """A digest of a code object: instructions, constants, names and its place in the source."""
    return _digest(code, code.co_firstlineno, code.co_filename)


def _global_names(code: types.CodeType) -> tuple[str, ...]:
    names = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.update(dict.fromkeys(_global_names(constant)))
    return tuple(names)
