"""Find the values that a trace can read, to detect stale ``tile.jit`` kernels.

The code of a function shows which names and attributes it reads. The search begins at the traced function and its
arguments, and follows values through closures, globals, modules, classes, objects and containers, and into the code of
the functions found there. Types of variables are unknown, so an attribute that any code reads of an unnamed object
counts for all objects that are found. A place too many costs a trace when it changes, and no compilation.
"""

from __future__ import annotations

import collections
import enum
import functools
import itertools
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tile_core.ir.program import Program
from tile_core.runtime.freeze import OWN, is_library, module_of
from tile_core.runtime.reads import MISSING, Reads, attribute, is_scalar
from tile_core.trace.by_name import ByName
from tile_core.trace.code_names import annotated_names, names_of

_MOST_READS = 5000
#: A larger installed package is taken as unchanging, like the standard library.
_MOST_FUNCTIONS = 256
#: Modules whose objects change while a kernel is traced, without an effect on it.
_STATEFUL = ("logging", "threading", "_thread", "io", "_io", "weakref", "asyncio", "concurrent", "socket", "warnings")
_NO_MEMBERS = frozenset(
    {"__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__slots__", "__qualname__"}
)
_WRAPPERS: tuple[tuple[type, tuple[str, ...]], ...] = (
    (types.MethodType, ("__self__", "__func__")),
    (functools.partial, ("func", "args", "keywords")),
    (functools.partialmethod, ("func", "args", "keywords")),
    (functools.cached_property, ("func",)),
    (property, ("fget",)),
    (staticmethod, ("__func__",)),
    (classmethod, ("__func__",)),
)


def readable(function: Callable[..., object], scope: Mapping[str, object], arguments: Iterable[object]) -> Reads:
    """Return the locations that a trace of a function can read, with their current objects.

    Parameters
    ----------
    function
        A factory or an eager kernel.
    scope
        Names in the scope that defines it.
    arguments
        Those of its arguments that are part of the trace.
    """
    search = _ReadSearch()
    search.kernel(function, scope)
    search.queue.extend(arguments)
    search.run()
    return search.reads


class _ReadSearch:
    """The state of a search.

    Attributes
    ----------
    reads
        What was found.
    queue
        Objects to follow.
    names
        Attributes that code reads of unnamed objects.
    reflective
        Whether code reads attributes by computed names.
    reached
        Modules, classes and objects whose attributes with those names count.
    """

    def __init__(self) -> None:
        self.reads = Reads()
        self.queue: list[Any] = []
        self.names: dict[str, None] = {}
        self.reflective = False
        self.reached: dict[int, Any] = {}
        self._seen: dict[int, object] = {}
        self._scanned: dict[int, tuple[int, bool | None]] = {}
        self._installed: collections.Counter[str] = collections.Counter()

    def run(self) -> None:
        """Follow everything until nothing new is found."""
        known: object = None
        while known != (known := self._drained()):
            for thing in list(self.reached.values()):
                self._attributes(thing)

    def _drained(self) -> object:
        """Follow the found objects; return the extent of the search, to detect its end."""
        while self.queue:
            if len(self.reads) > _MOST_READS:
                self.reads.complete = False
                self.queue.clear()
                break
            self._follow(self.queue.pop())
        return len(self.names), self.reflective, len(self.reached), len(self._seen), self.reads.complete

    # ------------------------------------------------------------------------------------------------------- functions

    def kernel(self, function: Any, scope: Mapping[str, object]) -> None:
        """Follow a function of the kernel language, whose annotations are evaluated in its scope."""
        self._function(function, scope)
        for chain in annotated_names(function):
            self._text(function, chain, scope)

    def _function(self, function: types.FunctionType, scope: Mapping[str, object] | None = None) -> None:
        self.queue.append(getattr(function, "__wrapped__", None))
        module, code = str(function.__globals__.get("__name__", "")), function.__code__
        if is_library(module) or not self._is_small(module, code):
            self.queue.extend(self._cells(function).values())  # a function of the user's in a library's wrapper
            self.queue.extend((function.__defaults__, os.environ if function is os.getenv else None))
            self.reflective |= not module.startswith((*OWN, "numpy", "tvm"))
            return
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            self.queue.append(self.reads.member(attribute(name), function, name))
        names = names_of(code)
        self.names.update(dict.fromkeys(names.attributes))
        self.reflective |= names.reflective
        for chain in names.globals:
            self._global(function, chain)
            if chain[0] in ("globals", "eval", "exec"):
                self.queue.append(function.__globals__)
        for chain in names.cells:
            self._cell(function, chain)
        for chain in names.texts:
            self._text(function, chain, scope or {})
        for name in names.imports:
            self._import(function, name)

    def _is_small(self, module: str, code: types.CodeType) -> bool:
        if not _is_installed(code.co_filename):
            return True
        top = module.partition(".")[0]
        self._installed[top] += 1
        return self._installed[top] <= _MOST_FUNCTIONS

    def _cells(self, function: types.FunctionType) -> dict[str, object]:
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        return {name: attribute("cell_contents")(cell) for name, cell in cells}

    def _global(self, function: types.FunctionType, chain: tuple[str, ...]) -> None:
        value = self.reads.item(function.__globals__, chain[0])
        if value is not MISSING:
            self._chain(value, chain[1:])

    def _cell(self, function: types.FunctionType, chain: tuple[str, ...]) -> None:
        cell = (function.__closure__ or ())[function.__code__.co_freevars.index(chain[0])]
        value = self.reads.member(attribute("cell_contents"), cell, chain[0])
        self._chain(value, chain[1:])

    def _text(self, function: types.FunctionType, chain: tuple[str, ...], scope: Mapping[str, object]) -> None:
        if chain[0] in function.__code__.co_freevars:
            self._cell(function, chain)
        elif chain[0] in scope:
            self._chain(scope[chain[0]], chain[1:])
        elif chain[0] in function.__globals__:
            self._global(function, chain)

    def _import(self, function: types.FunctionType, name: str) -> None:
        package = str(function.__globals__.get("__package__") or "").split(".")
        for whole in (name, *(".".join([*package[: n + 1], name]).rstrip(".") for n in range(len(package)))):
            if whole in sys.modules and not is_library(whole):
                self.queue.append(self.reads.item(sys.modules, whole))

    # --------------------------------------------------------------------------------------------- chains of attributes

    def _chain(self, value: Any, names: tuple[str, ...]) -> None:
        """Follow ``value.name.name``."""
        for at, name in enumerate(names):
            if _is_of_tile(value):
                return
            found = self._step(value, name)
            if found is MISSING:  # a method, or nothing that is known: all attributes of the rest count
                self.names.update(dict.fromkeys(names[at + 1 :]))
                return
            value = found
        self.queue.append(value)

    def _step(self, value: Any, name: str) -> Any:
        """Return an attribute that can be read without code of the user, or ``MISSING``."""
        if isinstance(value, types.ModuleType):
            found = self.reads.item(vars(value), name)
            if found is MISSING:
                self.queue.append(vars(value).get("__getattr__"))
            return found
        if isinstance(value, enum.EnumMeta) and name in value._member_map_:
            return self.reads.item(value._member_map_, name)
        if isinstance(value, types.FunctionType):
            return self.reads.item(vars(value), name)
        if isinstance(value, type):
            found = self._of_class(value, name)
        else:
            found = self._of_object(value, name)
        if found is MISSING or hasattr(type(found), "__get__"):
            self.queue.extend((value, found))
            self.names[name] = None
            return MISSING
        return found

    def _of_class(self, kind: type, name: str) -> Any:
        """Return an attribute of a class, without binding it."""
        for one in kind.__mro__:
            if module_of(one) != "builtins":
                found = self.reads.item(vars(one), name)
                if found is not MISSING:
                    return found
        return MISSING

    def _of_object(self, value: Any, name: str) -> Any:
        if is_scalar(value) or (is_library(module_of(type(value))) and not isinstance(value, types.SimpleNamespace)):
            return MISSING
        found = self._of_class(type(value), name)
        if type(found) is types.MemberDescriptorType:
            return self.reads.member(_slot(found), value, name)
        if isinstance(found, property):
            return found
        own = self._dictionary(value)
        inner = MISSING if own is None else self.reads.item(own, name)
        return found if inner is MISSING else inner

    def _dictionary(self, value: Any) -> Any:
        own = attribute("__dict__")(value)
        if isinstance(own, dict):
            self.reads.member(attribute("__dict__"), value, "__dict__")
            return own
        return None

    # ---------------------------------------------------------------------------------------------------------- objects

    def _follow(self, value: Any) -> None:
        if is_scalar(value) or value is MISSING or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, ByName):
            own: Any = value
            for name in ("fn", "function"):
                if isinstance(getattr(own, name, None), types.FunctionType):
                    self.kernel(self.reads.member(attribute(name), own, name), getattr(own, "scope", {}))
        elif _is_of_tile(value) or module_of(type(value)).startswith(_STATEFUL):
            return
        elif isinstance(value, (types.ModuleType, type)):
            self.reached[id(value)] = value
        elif not self._wrapper(value):
            self._object(value)

    def _wrapper(self, value: Any) -> bool:
        for kind, names in _WRAPPERS:
            if isinstance(value, kind):
                self.queue.extend(getattr(value, name, None) for name in names)
                return True
        if isinstance(value, types.MappingProxyType):
            self._content(value.values(), value, "values")
            self._content(value.keys(), value, "keys")
            return True
        if isinstance(value, types.BuiltinFunctionType):  # a bound method of C's, such as that of a list
            self.queue.append(None if isinstance(value.__self__, types.ModuleType) else value.__self__)
            return True
        if isinstance(value, functools._lru_cache_wrapper):
            self.queue.append(value.__wrapped__)
            return True
        return isinstance(value, types.CodeType)

    def _object(self, value: Any) -> None:
        numpy: Any = sys.modules.get("numpy")
        if value is sys.modules:
            own = [m for m in value.values() if isinstance(m, types.ModuleType) and not is_library(m.__name__)]
            self.queue.extend(m for m in own if not _is_installed(str(getattr(m, "__file__", ""))))
            return
        if isinstance(value, dict):
            self._content(dict.keys(value), value, "keys")
            self._content(dict.values(value), value, "values")
        elif isinstance(value, (tuple, frozenset)):
            self.queue.extend(value)
        elif isinstance(value, (list, set, collections.deque)):
            self._content(value, value, "elements")
        elif isinstance(value, (bytearray, memoryview)) or module_of(type(value)) == "array":
            self.reads.value(bytes, value, "bytes")
        elif numpy is not None and isinstance(value, numpy.ndarray):
            if value.dtype.hasobject:
                self._content(_ElementReads(value), value, "elements")
            else:
                self.reads.value(_array, value, "elements")
        elif module_of(type(value)).startswith("torch"):  # tensors count their changes
            self.reads.member(attribute("_version"), value, "_version")
        if module_of(type(value)).partition(".")[0] not in ("builtins", "numpy", "torch", "jax", "jaxlib", "mlx"):
            self.reached[id(value)] = value
            self.queue.append(type(value))

    def _content(self, view: Any, value: object, name: str) -> None:
        self.reads.content(view, value, name)
        self.queue.extend(view)

    def _attributes(self, value: Any) -> None:
        """Follow the attributes of an object whose names are new since the last time."""
        now = len(self.names), self.reflective
        count, _ = before = self._scanned.get(id(value), (0, None))
        if before == now:
            return
        names, self._scanned[id(value)] = frozenset(itertools.islice(self.names, count, None)), now
        if isinstance(value, types.ModuleType):
            library = is_library(value.__name__)
            whole = self.reflective and not library and not _is_installed(str(getattr(value, "__file__", "")))
            self._some(vars(value), names, whole=whole, closed=not library)
        elif isinstance(value, type):
            for one in value.__mro__:
                if not is_library(module_of(one)):
                    operators = (n for n, f in vars(one).items() if n[:2] == "__" and isinstance(f, types.FunctionType))
                    self._some(vars(one), names, operators, whole=self.reflective)
            if isinstance(value, enum.EnumMeta):
                self._content(value._member_map_.values(), value, "members")
            self.queue.append(None if type(value) is type else type(value))
        else:
            self._members(value, names)

    def _members(self, value: Any, names: frozenset[str]) -> None:
        library = is_library(module_of(type(value))) or isinstance(value, enum.Enum)
        whole = self.reflective or (library and not isinstance(value, types.SimpleNamespace))
        own = self._dictionary(value)
        if own is not None and whole:
            self._content(own.keys(), own, "attributes")
            self._content(own.values(), own, "values of attributes")
        elif own is not None:
            self._some(own, names)
        for kind in type(value).__mro__:
            for name, slot in vars(kind).items():
                if type(slot) is types.MemberDescriptorType and (whole or name in names):
                    self.queue.append(self.reads.member(_slot(slot), value, name))

    def _some(
        self,
        own: Mapping[str, Any],
        names: frozenset[str],
        more: Iterable[str] = (),
        *,
        whole: bool = False,
        closed: bool = True,
    ) -> None:
        """Follow attributes in a dictionary: all, or those that code reads and some more."""
        for name in (own.keys() if whole else {*(names & own.keys()), *more}) - _NO_MEMBERS:
            self.queue.append(self.reads.item(own, name))
        if closed:
            self.reads.lacking(own, names)


def _is_of_tile(value: Any) -> bool:
    """Whether something belongs to this package or to TVM, whose state does not decide kernels."""
    if isinstance(value, Program):
        return True
    module = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    if not isinstance(module, str):
        module = module_of(type(value))
    return module.partition(".")[0] in {*OWN, "tvm", "tvm_ffi"}


def _is_installed(file: str) -> bool:
    return "site-packages" in file or "dist-packages" in file


@functools.cache
def _slot(descriptor: Any) -> Callable[[Any], object]:
    return functools.partial(_read_slot, descriptor)


def _read_slot(descriptor: Any, value: object) -> object:
    try:
        found: object = descriptor.__get__(value)
    except AttributeError:  # not assigned yet
        return MISSING
    return found


class _ElementReads:
    """The elements of an array of objects."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __len__(self) -> int:
        return int(self.array.size)

    def __iter__(self) -> Iterator[object]:
        return iter(self.array.flat)

    def __contains__(self, value: object) -> bool:
        return any(value is v for v in self)


def _array(array: Any) -> tuple[object, ...]:
    return (str(array.dtype), array.shape, array.tobytes())
