"""Hashable keys of values by content: equal only if they compile to the same kernel."""

from __future__ import annotations

import enum
import functools
import hashlib
import struct
import sys
import types
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from tile_core.errors.launch import CannotFreeze
from tile_core.records import dataclass


def fingerprint(function: Callable[..., object]) -> Hashable:
    """A key of a function: code, defaults, closure values and the globals that it names.

    Raises
    ------
    CannotFreeze
        A closure value or a default that cannot be hashed by content. Globals are frozen if possible and otherwise
        compared by identity, because most of them are modules, classes and functions of other packages.
    """
    return _freeze_function(function, f"{function.__module__}.{function.__qualname__}", {})


def freeze(value: object, holder: str = "the value") -> Hashable:
    """A hashable key that is equal only for values that compile to the same kernel.

    Types count (``1``, ``1.0`` and ``True`` differ), the sign of zero and the bits of NaN too. Lists, dicts (in order),
    sets, dataclasses, enums, dtypes, NumPy scalars and arrays (by content), functions (by code) and plain objects
    (by their attributes) are supported.

    Raises
    ------
    CannotFreeze
        For anything else that is not hashable.
    """
    return _freeze(value, holder, {})


def _freeze(value: object, holder: str, seen: dict[int, int]) -> Hashable:
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
        return (type(value), tuple(_freeze(v, holder, seen) for v in value))
    if isinstance(value, Mapping):
        return (type(value), tuple((_freeze(k, holder, seen), _freeze(v, holder, seen)) for k, v in value.items()))
    if isinstance(value, (set, frozenset)):
        return (type(value), frozenset(_freeze(v, holder, seen) for v in value))
    if isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
        return _freeze_callable(value, holder, seen)
    return _freeze_object(value, holder, seen)


def _freeze_object(value: object, holder: str, seen: dict[int, int]) -> Hashable:
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)) and not value.dtype.hasobject:
        return (type(value), str(value.dtype), value.shape, value.tobytes())
    kind: Any = type(value)
    plain = kind.__hash__ in (object.__hash__, None) or not is_library(module_of(kind))
    members = members_of(value) if plain else {}
    if members or (plain and hasattr(value, "__dict__")):
        # By its attributes: its identity would hide a changed one, and its own `==` may ignore one.
        return (kind, tuple((n, _freeze(v, f"{holder}.{n}", seen)) for n, v in members.items()))
    try:
        hash(value)
    except TypeError:
        raise CannotFreeze(holder=holder, found=f"a {type(value).__name__}") from None
    return (type(value), value)


def members_of(value: object) -> dict[str, Any]:
    """Return the attributes that an object itself holds, in its dictionary and in slots."""
    found: dict[str, Any] = dict(getattr(value, "__dict__", None) or {})
    for kind in type(value).__mro__:
        for name, slot in vars(kind).items():
            if type(slot) is types.MemberDescriptorType and not is_library(module_of(kind)):
                try:
                    found[name] = slot.__get__(value)
                except AttributeError:  # not assigned yet
                    continue
    return found


def is_library(module: str) -> bool:
    """Whether a module is assumed to be unchanging, such as the standard library."""
    top = module.partition(".")[0]
    return top in OWN or top in _LIBRARIES or top in sys.stdlib_module_names


def module_of(kind: type) -> str:
    """Return the name of the module of a type."""
    found: object = kind.__module__
    return found if isinstance(found, str) else "builtins"  # a descriptor, of some types of C's


OWN = {"tile_core", "tile_runtime"}
"""Packages whose own state decides no kernel; a front end adds its package."""

_LIBRARIES = frozenset(("builtins", "tvm", "tvm_ffi", "numpy", "ml_dtypes", "torch", "jax", "jaxlib", "mlx"))


def _freeze_callable(value: Callable[..., object], holder: str, seen: dict[int, int]) -> Hashable:
    if isinstance(value, functools.partial):
        parts = (value.func, value.args, value.keywords)
        return ("partial", tuple(_freeze(part, holder, seen) for part in parts))
    if isinstance(value, types.MethodType):
        return ("method", _freeze(value.__self__, holder, seen), _freeze(value.__func__, holder, seen))
    return _freeze_function(value, holder, seen)


def _freeze_function(function: Any, holder: str, seen: dict[int, int]) -> Hashable:
    code: types.CodeType = function.__code__
    seen = {**seen, id(function): len(seen)}
    parts: list[Hashable] = [code_digest(code)]
    parts.append(_freeze((function.__defaults__, function.__kwdefaults__), f"a default of {holder}", seen))
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            parts.append((name, _freeze(cell.cell_contents, f"variable {name!r} of {holder}", seen)))
        except ValueError:  # not assigned yet
            parts.append((name, None))
    for name in _global_names(code):
        if name in function.__globals__:
            parts.append((name, _freeze_global(function.__globals__[name], function.__module__, holder, seen)))
    return ("function", tuple(parts))


def _freeze_global(value: Any, module: str, holder: str, seen: dict[int, int]) -> Hashable:
    if isinstance(value, types.FunctionType) and value.__module__ != module:
        # A function of another module is an import: its own module decides what it does.
        return ("import", value)
    try:
        return _freeze(value, holder, seen)
    except CannotFreeze:
        return ("identity", _ById(value))


@dataclass(frozen=True, eq=False)
class _ById:
    """Compares by identity of the wrapped object, which it keeps alive."""

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
