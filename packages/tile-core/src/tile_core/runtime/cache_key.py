"""The key of a kernel on disk: a hash of every input of compilation.

The program is hashed by content: types, attributes and values of every node, variables by order of occurrence. The key
does not depend on what else a process has compiled, which objects two programs share, the machine or folder of the
source, or the line where the kernel begins: locations are relative to the kernel's definition.

A program with an opaque value, for example a function, has no key: it is compiled, but not cached.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import os
import struct
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from tile_core.compat.types import Array, Node, Span
from tile_core.errors.base import TileError, Where
from tile_core.manifest import fingerprint_of
from tile_runtime.compat.distributions import version_of

if TYPE_CHECKING:
    from tile_core.abi.adapter import RuntimeAdapter
    from tile_core.abi.signature import Signature
    from tile_core.context import Context
    from tile_core.ir.program import Program
    from tile_core.plugins.manager import Plugins

SCHEMA = 1
"""Incremented when the parts of a key change their meaning."""

_LIBRARIES = ("apache-tvm", "apache-tvm-ffi", "numpy", "ml-dtypes")


class NotKeyed(Exception):
    """A value that cannot be hashed by content; the text names its type."""


def key_of(
    program: Program, signature: Signature, ctx: Context, plugins: Plugins, adapter: RuntimeAdapter
) -> str | None:
    """Return the key of a compilation, or ``None`` if there is none.

    Parameters
    ----------
    program
        The program to compile.
    signature
        Its signature.
    ctx
        Target, options and settings.
    plugins
        The backends.
    adapter
        The runtime that builds it.
    """
    knobs = {"verify_ir": ctx.knobs.verify_ir, "num_threads": ctx.knobs.num_threads}
    parts = {
        "schema": SCHEMA,
        "core": (fingerprint_of("tile_core"), fingerprint_of("tile_runtime")),
        "backend": _backends(ctx, plugins),
        "libraries": versions(),
        "target": (ctx.target.text, ctx.capabilities.as_dict()),
        "options": ctx.options,
        "knobs": knobs,
        "runtime": (adapter.name, adapter.toolchain()),
        "signature": {**signature.to_json(), "where": None},
        "program": program_parts(program),
    }
    try:
        return content_hash(parts, program.where)
    except (NotKeyed, RecursionError):
        return None


def identity_of(program: Program, decided: Hashable) -> Hashable:
    """Return a key that programs of one process share only if their kernels are equal.

    ``None`` if the program has none.

    Parameters
    ----------
    program
        The program.
    decided
        Whatever else decides the kernel.
    """
    try:
        return content_hash(program_parts(program), program.where), program.where, decided
    except (NotKeyed, RecursionError):
        return None


@functools.cache
def versions() -> Mapping[str, str]:
    """Return the versions of the libraries involved in a compilation."""
    return {name: version_of(name) or "" for name in _LIBRARIES}


def program_parts(program: Program) -> dict[str, object]:
    """Return all fields of a program except its location, ready for `content_hash`."""
    fields = {f.name: getattr(program, f.name) for f in dataclasses.fields(program)}
    del fields["where"]
    # The function first: it numbers the variables that the others use.
    return {"func": fields.pop("func"), **fields}


def content_hash(value: object, where: Where | None = None) -> str:
    """Return the hash of a value of plain data, dataclasses, layouts and IR nodes.

    Parameters
    ----------
    value
        The value.
    where
        Locations in the IR are relative to this one.

    Raises
    ------
    NotKeyed
        It contains an opaque value.
    """
    return _Hasher(where).digest(value).hex()


def _backends(ctx: Context, plugins: Plugins) -> list[tuple[str, str]]:
    found = [(ctx.backend.name, ctx.backend.fingerprint)]
    for name in plugins.addons(ctx.target.kind):
        try:
            found.append((name, plugins.manifest(name).fingerprint))
        except TileError as error:
            found.append((name, f"broken: {error.code}"))
    return found


class _Hasher:
    """Hashes values bottom-up; equal content gives equal digests, shared or not."""

    def __init__(self, where: Where | None) -> None:
        self._where = where
        self._nodes: dict[int, bytes] = {}  # by address
        self._alive: list[object] = []  # so that no address is reused
        self._variables = 0
        self._fields: dict[type, list[Callable[[object], object]] | None] = {}
        self._ways: dict[type, Callable[[Any], bytes]] = {}
        self._atoms: dict[tuple[type, object], bytes] = {}

    def digest(self, value: object) -> bytes:
        """Return the digest of a value."""
        kind = type(value)
        if kind in _ATOMS:
            found = self._atoms.get((kind, value))
            if found is None:
                found = self._atoms[kind, value] = _join(*_ATOMS[kind](value))
            return found
        way = self._ways.get(kind)
        if way is None:
            way = self._ways[kind] = self._way(value)
        return way(value)

    def _way(self, value: object) -> Callable[[Any], bytes]:
        """Return the function that hashes values of the type of this one."""
        if isinstance(value, enum.Enum):
            return lambda v: _join(_name(v), [v.name.encode()])
        for kind, parts in _ATOMS.items():
            if isinstance(value, kind):
                return lambda v: _join(*parts(v))
        if isinstance(value, float):
            return lambda v: _join(b"float", [struct.pack("<d", v)])
        if isinstance(value, (tuple, list)):
            return self._list
        if isinstance(value, (set, frozenset)):
            return lambda v: _join(b"set", sorted(map(self.digest, v)))
        if isinstance(value, PurePath):
            return lambda v: _join(b"path", [os.fsencode(v)])
        return self._way_of_object(value)

    def _way_of_object(self, value: object) -> Callable[[Any], bytes]:
        from tile_core.compat.tvm import tvm_ffi

        if isinstance(value, (tvm_ffi.Array, tvm_ffi.List)):
            return self._list
        if isinstance(value, (Mapping, tvm_ffi.Map, tvm_ffi.Dict)):
            return lambda v: _join(b"map", [self.digest(part) for item in v.items() for part in item])
        layouts = sys.modules.get("tile_core.layout.base")  # not loaded: then this is not a layout
        if layouts is not None and isinstance(value, layouts.LayoutMap):
            return self._layout
        if isinstance(value, tvm_ffi.Object):
            return self._node
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [f.name for f in dataclasses.fields(value)]
            return lambda v: _join(_name(v), [self.digest(part) for name in names for part in (name, getattr(v, name))])
        return self._array

    def _list(self, value: Iterable[object]) -> bytes:
        return _join(b"list", [self.digest(v) for v in value])

    def _array(self, value: Array) -> bytes:
        import numpy

        if isinstance(value, (numpy.ndarray, numpy.generic)) and not value.dtype.hasobject:
            return _join(b"array", [str(value.dtype).encode(), repr(value.shape).encode(), value.tobytes()])
        if isinstance(value, numpy.dtype):
            return _join(b"dtype", [str(value).encode()])
        raise NotKeyed(_name(value).decode())

    def _layout(self, value: Any) -> bytes:
        """Hash a layout by its map and its kind, which passes depend on."""
        import numpy

        from tile_core.layout.table import unwrap

        tables = [(axis, numpy.asarray(table, "int64")) for axis, table in value.tables().items()]
        declared = [getattr(value, name, None) for name in ("span", "width", "threads")]
        facts = (value.shape, value.axes, value.replicas, declared, value.note)
        kinds = [_name(value), _name(unwrap(value))]
        return _join(b"layout", [*kinds, self.digest(facts), self.digest(tables)])

    def _node(self, node: Node) -> bytes:
        address = int(node.__chandle__())
        found = self._nodes.get(address)
        if found is None:
            kind = type(node).__tvm_ffi_type_info__.type_key
            self._alive.append(node)
            if kind == "ir.Span":
                found = self._span(node)
            elif kind == "ir.Op":
                found = _join(b"op", [str(node.name).encode()])
            else:
                number = b""
                if kind.endswith("Var"):
                    # Variables of one name and type are still distinct: each is hashed by its order of occurrence.
                    number = str(self._variables).encode()
                    self._variables += 1
                fields = self._fields_of(node)
                found = _join(kind.encode() + b"#" + number, [self.digest(get(node)) for get in fields])
            self._nodes[address] = found
        return found

    def _fields_of(self, node: Node) -> list[Callable[[object], object]]:
        """Return the getter of every field of a node's type, those of its ancestors first."""
        kind = type(node)
        if kind not in self._fields:
            fields: list[tuple[str, Callable[[object], object]]] = []
            info, kinds = kind.__tvm_ffi_type_info__, []
            while info is not None:
                fields[:0] = [(f.name, f.getter) for f in info.fields]
                kinds.append(info.type_key)
                info = info.parent_type_info
            # The type of a function follows from its parameters. It is written in terms of TVM's language of models,
            # which is not imported: once there is an object of it, it could not be imported any more.
            typed = not {"ir.GlobalVar", "ir.BaseFunc"} & set(kinds)
            self._fields[kind] = [get for name, get in fields if typed or name != "ty"] or None
        found = self._fields[kind]
        if found is None:
            raise NotKeyed(kind.__tvm_ffi_type_info__.type_key)
        return found

    def _span(self, span: Span) -> bytes:
        file, line = str(span.source_name.name), int(span.line)
        if self._where is not None and file == self._where.file:
            return _join(b"here", [str(line - self._where.line).encode()])
        return _join(b"place", [os.fsencode(os.path.basename(file)), str(line).encode()])


def _join(kind: bytes, parts: Sequence[bytes]) -> bytes:
    """Hash a list of parts under an unambiguous encoding."""
    sized = [b"%d:%b" % (len(part), part) for part in parts]
    return hashlib.sha256(b"%d:%b%b" % (len(kind), kind, b"".join(sized))).digest()


def _word(value: object) -> tuple[bytes, list[bytes]]:
    return type(value).__name__.encode(), [repr(value).encode()]


#: How values are hashed that are equal only if they are the same: a float is not among them, for 0.0 equals -0.0.
_ATOMS: dict[type, Callable[[Any], tuple[bytes, list[bytes]]]] = {
    str: lambda value: (b"str", [str(value).encode("utf-8", "surrogatepass")]),
    int: _word,
    bool: _word,
    type(None): _word,
    bytes: lambda value: (b"bytes", [value]),
}


def _name(value: Any) -> bytes:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}".encode()
